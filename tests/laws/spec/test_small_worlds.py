"""The promise in every small world, up to a depth: see `small_worlds`."""

from __future__ import annotations

import pytest

from readcache.core.model.spec.marker import Untrue
from tests.laws.mutants.mutants import MUTANTS, Mutant, applied
from tests.laws.spec.small_worlds import POLICIES, explore

EVENTS = {
    "shown",
    "at_once",
    "written",
    "changed",
    "clipped",
    "cleared",
    "compacted",
    "restored",
    "kept",
    "rewound",
    "forked",
    "by_number",
    "killed",
    "summarised",
}


@pytest.mark.parametrize(
    ("policy", "depth"),
    [("default", 3), *(pytest.param(policy, 4, marks=pytest.mark.slow) for policy in POLICIES)],
)
def test_the_promise_holds_in_every_small_world(policy: str, depth: int) -> None:
    tried = explore(POLICIES[policy], depth)
    assert set(tried.events) == EVENTS
    assert tried.omitting > tried.sequences / 3, "most of what is tried has to omit something"


# The others of `tests/laws/mutants` need more events than the depth, or kinds that these worlds do not have: a
# compaction by the API, an output clipped by the list, a host's own numbers.
NOTICED = (
    "compaction is ignored",
    "rewind is ignored",
    "what is not in the message list is not forgotten",
    "settle is ignored",
    "writes are ignored",
    "bytes are not compared",
    "a line next to those that are found is taken for one",
    "lines are found where they stood",
    "the batch is ignored",
)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.name in NOTICED], ids=lambda mutant: mutant.name)
def test_small_worlds_notice(mutant: Mutant) -> None:
    with applied(mutant), pytest.raises(Untrue, match=r" after: shown main cat f|after: at_once main"):
        explore(POLICIES["default"], 4)


def test_each_of_these_mutants_exists() -> None:
    assert {*NOTICED} <= {mutant.name for mutant in MUTANTS}
