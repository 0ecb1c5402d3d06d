"""What each result is worth, and the reasons in words.

    score = weight / (x + 2)

A read of one file: x = sqrt(age * min(age, T)), and a weight that falls slowly with its size. T is the number of calls
since the agent wrote or named the file, or SEEN times the number since it was merely shown. Any other command: x = age,
weight 1 if it was run more than once, else ONCE. The formula is of a study of what agents read again after 86
compactions that their hosts made, with whole repositories left out; tests/benchmarks/README.md has the figures.
"""

from __future__ import annotations

from math import sqrt

from readcache.core.model.policy import CHARS_PER_TOKEN
from readcache.core.restore.evidence import Result

# How much more an agent's actions predict its next reads than what it looked at.
SEEN = 4
# Of a command that was run once; 0.05 to 0.2 do as well.
ONCE = 0.1
# Calls. Older results of commands foresee little, and what they tell may be over: they come after all else.
COMMAND_WITHIN = 25
OLD = 0.01
# Of two reads the smaller one is the better bet, by a little. Tokens, and an exponent; 0 to 0.3 do nearly as well.
SIZE = 200
BY_SIZE = 0.15


def score(result: Result) -> float:
    """What the result is worth, whatever its size."""
    if result.key is None:
        weight = (1 if result.is_repeated else ONCE) * (1 if result.age <= COMMAND_WITHIN else OLD)
        return weight / (result.age + 2)
    tokens = len(result.event.text) / CHARS_PER_TOKEN
    touched: int = min(filter(None, (result.age, SEEN * result.shown, result.written, result.named)))
    size: float = (1 + tokens / SIZE) ** BY_SIZE
    return 1 / (size * (sqrt(result.age * touched) + 2))


def reasons_for(result: Result) -> str:
    """The evidence in words."""
    if not result.source_map:
        names = " and ".join(key.rsplit("/", 1)[-1] for key in result.changed[:2])
        return f"{_ago(result.age)}{f'; {names} changed since' if names else ''}"
    done = (("shown", result.shown), ("named", result.named), ("written", result.written))
    return ", ".join(f"{what} {_ago(ago)}" for what, ago in done if ago)


def _ago(calls: int) -> str:
    return f"{calls} call{'s' * (calls > 1)} ago"
