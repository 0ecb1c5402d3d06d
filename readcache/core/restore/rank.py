"""Scores of results, and the reasons in words.

    score = weight / (x + 2)

For a read of one file, x = sqrt(age * min(age, T)), and the weight falls slowly with the size of the read. T is the
number of calls since the agent wrote or named the file, or SEEN times the number of calls since it was only shown. For
any other command, x = age. The weight is 1 if the command was run more than once, otherwise ONCE.

The formula comes from a study of the rereads after 86 compactions that hosts really made. The study left out whole
repositories in turn, to test the formula on them. tests/benchmarks/README.md has the figures.
"""

from __future__ import annotations

from math import sqrt

from readcache.core.model.policy import CHARS_PER_TOKEN
from readcache.core.restore.evidence import Result

# An agent's writes and mentions of a file predict its next reads better than its reads do, by this factor.
SEEN = 4
# The weight of a command that was run once; 0.05 to 0.2 do as well.
ONCE = 0.1
# Calls. Older results of commands predict little and may be out of date. OLD is their weight: they come last.
COMMAND_WITHIN = 25
OLD = 0.01
# The smaller of two reads is slightly more likely to be needed. Tokens, and an exponent; 0 to 0.3 do nearly as well.
SIZE = 200
BY_SIZE = 0.15


def score(result: Result) -> float:
    """Return the score of the result. Only the score of a read depends on its size."""
    if result.key is None:
        weight = (1 if result.is_repeated else ONCE) * (1 if result.age <= COMMAND_WITHIN else OLD)
        return weight / (result.age + 2)
    tokens = len(result.event.text) / CHARS_PER_TOKEN
    touched: int = min(filter(None, (result.age, SEEN * result.shown, result.written, result.named)))
    size: float = (1 + tokens / SIZE) ** BY_SIZE
    return 1 / (size * (sqrt(result.age * touched) + 2))


def reasons_for(result: Result) -> str:
    """Return the evidence in words."""
    if not result.source_map:
        names = " and ".join(key.rsplit("/", 1)[-1] for key in result.changed[:2])
        return f"{_ago(result.age)}{f'; {names} changed since' if names else ''}"
    done = (("shown", result.shown), ("named", result.named), ("written", result.written))
    return ", ".join(f"{what} {_ago(ago)}" for what, ago in done if ago)


def _ago(calls: int) -> str:
    return f"{calls} call{'s' * (calls > 1)} ago"
