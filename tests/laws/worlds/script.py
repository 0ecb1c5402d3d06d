"""A random world as a script: drawn from one number, short enough to read, and the same each time it is played."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

# How often each kind of step comes, as against the others. The names are those of the methods of `RandomWorld`.
STEPS = {
    "reads": 30,
    "reads_again": 30,
    "reads_at_once": 6,
    "reads_by_an_old_id": 2,
    "reads_with_the_hosts_numbers": 4,
    "reads_unconfirmed": 8,
    "writes": 5,
    "writes_and_shows": 3,
    "told_of_a_write": 3,
    "somebody_writes": 4,
    "saves_a_reply": 2,
    "settles": 4,
    "changes_its_list": 8,
    "compacts": 4,
    "takes_a_section": 2,
    "rewinds": 3,
    "forks": 5,
    "dies": 3,
    "dies_soon": 3,
    "loses_the_store": 2,
    "has_a_bad_connection": 2,
    "finds_the_store": 4,
    "clock_jumps": 2,
}
# In one of `RARELY` worlds these come, too.
RARE_STEPS = {"counts_its_calls_from_0": 16, "dies_and_goes_on": 12, "takes_a_section": 10}
RARELY = 4
LONGEST = 40  # steps


@dataclass(frozen=True)
class Step:
    """`who`: the number of a reader; `seed`: of what the step draws by itself."""

    what: str
    who: int
    seed: int

    def __str__(self) -> str:
        return f"reader {self.who} {self.what.replace('_', ' ')} ({self.seed})"


@dataclass(frozen=True)
class Script:
    """`seed`: of the files, the policy, the host's kind of messages and the store."""

    seed: int
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "\n".join([f"world {self.seed}", *map(str, self.steps)])


def script_of(seed: int) -> Script:
    """The script of that world."""
    rng = random.Random(seed)
    steps = STEPS | RARE_STEPS if seed % RARELY == RARELY - 1 else STEPS
    kinds = rng.choices(list(steps), list(steps.values()), k=rng.randint(6, LONGEST))
    return Script(seed, tuple(Step(kind, rng.randrange(3), rng.randrange(10_000)) for kind in kinds))


def shrink(script: Script, fails: Callable[[Script], bool]) -> Script:
    """A shorter script that fails, too: steps are left out, many at once and then one by one."""
    size = len(script.steps) // 2
    while size:
        at = 0
        while at < len(script.steps):
            shorter = replace(script, steps=_without(script.steps, at, size))
            if fails(shorter):
                script = shorter
            else:
                at += size
        size //= 2
    return script


def _without(steps: Sequence[Step], at: int, size: int) -> tuple[Step, ...]:
    return (*steps[:at], *steps[at + size :])
