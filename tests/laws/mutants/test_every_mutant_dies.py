"""The state machine notices each named fault, with every one of several seeds."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.laws.machine import machine_with
from tests.laws.mutants.mutants import MUTANTS, Mutant, applied

SEEDS = (1, 2, 3)
SETTINGS = settings(
    database=None,
    deadline=None,
    max_examples=1200,
    stateful_step_count=30,
    phases=[Phase.generate],
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@pytest.mark.parametrize("number", SEEDS)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_state_machine_notices(mutant: Mutant, number: int) -> None:
    machine = seed(number)(machine_with(mutant.policy))
    with applied(mutant), pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=SETTINGS)
