"""Each mutant of the package's edges dies by the tests that it names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.laws.mutants.guarded import MUTANTS
from tests.laws.mutants.guarded.patching import Guarded
from tests.laws.mutants.killing import ROOT, Killers


@pytest.fixture(scope="module")
def killers() -> Iterator[Killers]:
    with Killers() as started:
        yield started


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def test_every_mutant_names_killers_that_are_there() -> None:
    assert [guarded.mutant.name for guarded in MUTANTS if not guarded.killers] == []
    named = {tuple(killer.split("::")) for guarded in MUTANTS for killer in guarded.killers}
    assert [(file, name) for file, name in sorted(named) if name not in names_in(file)] == []


def test_no_two_mutants_have_one_name() -> None:
    names = [guarded.mutant.name for guarded in MUTANTS]
    assert len(names) == len(set(names))


@pytest.mark.slow
def test_without_a_mutant_every_killer_passes(killers: Killers) -> None:
    named = sorted({killer for guarded in MUTANTS for killer in guarded.killers})
    run = killers.run("", named)
    assert [name for name in named if "passed" not in run.outcomes[name]] == [], run.printed
    assert [name for name in named if "failed" in run.outcomes[name]] == [], run.printed


@pytest.mark.slow
@pytest.mark.parametrize("guarded", MUTANTS, ids=lambda each: each.mutant.name)
def test_a_mutant_dies(guarded: Guarded, killers: Killers) -> None:
    run = killers.run(guarded.mutant.name, guarded.killers)
    alive = [name for name in guarded.killers if "failed" not in run.outcomes[name]]
    assert not alive, f"with this mutant these tests pass, or cannot run:\n{run.printed}"
