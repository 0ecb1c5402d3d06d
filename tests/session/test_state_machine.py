"""The state machine of `tests/laws/machine.py`, over the package as it is."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.laws.machine import Sessions


@pytest.mark.parametrize("examples", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_whatever_happens_every_byte_is_shown_or_still_visible_where_the_reply_says(examples: int) -> None:
    some = settings(
        derandomize=True,
        deadline=None,
        max_examples=examples,
        stateful_step_count=30,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Sessions, settings=some)
