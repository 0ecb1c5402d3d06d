"""Which files, and which lines of them, are worth their tokens, and the reasons in words.

    score of a file = 1 / (T · √(tokens + 200))

T is the number of calls since the agent wrote or named the file, or SEEN times the number since it was merely shown,
capped at the number of calls. Among files shown long ago, small ones rank higher. Each part predicts more of what
recorded agents read again after a compaction. tests/benchmarks/README.md lists what each one bought, and what bought
nothing. Formulas with more in them learned the sessions that they were fitted to and foresaw less in others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from readcache.model.key_view import Reference
from readcache.model.spans import SpanMap, Spans
from readcache.restore.evidence import FileEvidence

# How much more an agent's actions predict its next reads than what it looked at. 3 to 10 do nearly as well.
SEEN = 4
# Tokens that a file costs beside its own: 50 to 600 do as well.
FILE_TOKENS = 200
# Lines around a line that a search or a stack trace named; 10 to 60 do as well.
NEAR = 20
LAST_LINE = 1 << 60
MARKED, POINTED, OTHER = "a marker that stays points here", "a search or a trace points here", ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines of one showing that no later showing replaced, and what makes them likely to be read again."""

    reference: Reference
    outdated: bool
    start: int
    end: int
    why: str


def score(evidence: FileEvidence, tokens: float, *, is_marked: bool) -> float:
    """What the file is worth, by the token. `tokens`: of what it has to give. `is_marked`: a marker for some of its
    lines stays, so that the agent knows of them."""
    times = 1 if is_marked else SEEN
    since = (evidence.calls + 1, times * (evidence.shown or 0), evidence.written, evidence.named)
    return 1 / (min(filter(None, since)) * sqrt(tokens + FILE_TOKENS))


def stretches_of(evidence: FileEvidence, wanted: Spans) -> list[Stretch]:
    """The stretches of one file, the best first: `wanted` lines, for which a marker stands that stays, then those near
    lines that were pointed at, then from the top."""
    newest: SpanMap[Reference] = SpanMap()
    for reference in (*evidence.outdated, *evidence.current):
        newest.assign(reference.piece.first, reference.piece.first + reference.piece.count - 1, reference)
    reasons: SpanMap[str] = SpanMap()
    reasons.assign(1, LAST_LINE, OTHER)
    for line in evidence.pointed:
        reasons.assign(max(1, line - NEAR), line + NEAR, POINTED)
    for first, last in wanted:
        reasons.assign(first, last, MARKED)
    outdated = frozenset(evidence.outdated)
    found = [
        Stretch(reference, reference in outdated, start, end, why)
        for first, last, reference in newest.overlaps(1, evidence.total or LAST_LINE)
        for start, end, why in reasons.overlaps(first, last)
    ]
    return sorted(found, key=lambda each: ((MARKED, POINTED, OTHER).index(each.why), each.start))


def reasons_for(evidence: FileEvidence, stretch: Stretch) -> str:
    """The evidence in words, as far as there is any."""
    done = (("shown", evidence.shown), ("named", evidence.named), ("written", evidence.written))
    reasons = [f"{what} {ago} call{'s' * (ago > 1)} ago" for what, ago in done if ago]
    return ", ".join(filter(None, [*reasons, stretch.why])) or "restored before"
