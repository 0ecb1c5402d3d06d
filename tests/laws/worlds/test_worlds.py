"""Random worlds: agents, hosts, files, stores and processes that fail, against the specification."""

from __future__ import annotations

import json

import pytest

from tests.laws.mutants.mutants import Mutant, applied
from tests.laws.worlds.__main__ import MEASURED, shortest, trouble, try_worlds
from tests.laws.worlds.faults import FAULTS, NOT_FOUND
from tests.laws.worlds.script import RARE_STEPS, STEPS, script_of
from tests.laws.worlds.world import play

WORLDS, PARTS = 2_000, 10
FOUND_WITHIN = 5_000  # worlds, each planted fault


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
def test_the_promise_holds_in_every_world(part: int) -> None:
    told, broken = try_worlds(part * WORLDS // PARTS, WORLDS // PARTS)
    assert not broken, broken[0]
    assert STEPS.keys() | RARE_STEPS.keys() <= told.keys()
    assert told["omissions"] > 2 * WORLDS // PARTS, "most worlds have to omit something"
    assert told["deaths"] > WORLDS // PARTS // 2


def test_a_world_is_the_same_each_time() -> None:
    for seed in range(20):
        assert play(script_of(seed)).sent == play(script_of(seed)).sent


def test_a_world_that_fails_is_made_short() -> None:
    fault = next(one for one in FAULTS if one.name == "writes are ignored")
    with applied(fault):
        seed = next(seed for seed in range(WORLDS) if trouble(script_of(seed)))
        text = shortest(script_of(seed))
    assert text.endswith("may have changed")
    assert text.count("\n") <= 8


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_planted_fault_is_found(fault: Mutant) -> None:
    first = json.loads(MEASURED.read_text(encoding="utf-8"))[fault.name]  # one takes thousands of worlds
    with applied(fault):
        assert any(trouble(script_of(seed)) for seed in range(max(0, first - 200), FOUND_WITHIN))


def test_there_are_faults_enough() -> None:
    names = [fault.name for fault in FAULTS]
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    assert measured.keys() == {*names}, "run: python -m tests.laws.worlds --faults"
    assert max(measured.values()) <= FOUND_WITHIN
    assert len({*names}) == len(names) >= 25
    assert not {*names} & {*NOT_FOUND}
