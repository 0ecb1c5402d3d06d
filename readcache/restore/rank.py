"""Which ranges are worth their tokens: a score for each stretch of a file, and the reasons in words.

    score = (1 + named)² · max(1, writes) · (4 if pointed at, 3 near that) / calls since it was shown

Each factor stays because with it more was foreseen of what recorded agents read again after a compaction; what each one
bought, and what bought nothing, stands in tests/benchmarks/README.md. Whole numbers do as well as fitted ones: given
more freedom, the ranking learned the sessions that it was fitted to and foresaw less in others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from readcache.model.key_view import Reference
from readcache.model.spans import SpanMap, Spans
from readcache.restore.evidence import NAMED_WITHIN, FileEvidence

# Lines. Files are weighed in stretches of this length, so that the part that a search points at can be taken alone;
# 10 and 40 do as well.
STRETCH = 20
# Lines between a stretch and a line that a search or a stack trace named: about what a reader asks for around one.
NEAR = 10
POINTED = 4
NEAR_POINTED = 3
LAST_LINE = 1 << 60


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines of one showing that no later showing replaced, what they are worth and why."""

    reference: Reference
    outdated: bool
    start: int
    end: int
    score: float
    why: str


def rank(evidence: FileEvidence, wanted: Spans) -> Iterator[Stretch]:
    """The stretches of one file, in order of their lines. `wanted`: lines for which a marker stands that stays."""
    newest: SpanMap[Reference] = SpanMap()
    for reference in (*evidence.outdated, *evidence.current):
        newest.assign(reference.piece.first, reference.piece.first + reference.piece.count - 1, reference)
    outdated = frozenset(evidence.outdated)
    file_score = (1 + evidence.named) ** 2 * max(1, evidence.writes)
    for first, last, reference in newest.overlaps(1, evidence.total or LAST_LINE):
        for start in range(first, last + 1, STRETCH):
            end = min(last, start + STRETCH - 1)
            restored_ago = evidence.calls + 1 - reference.delivery.call  # if only a restored section showed it
            calls_ago = min((ago for ago, (a, b) in evidence.shown if a <= end and start <= b), default=restored_ago)
            distance = min((max(start - line, line - end, 0) for line in evidence.pointed), default=NEAR + 1)
            marked = any(a <= end and start <= b for a, b in wanted)
            pointed = POINTED if marked or not distance else NEAR_POINTED if distance <= NEAR else 1
            why = _reasons(evidence, calls_ago, found=distance <= NEAR, marked=marked)
            score = file_score * pointed / calls_ago
            yield Stretch(reference, reference in outdated, start, end, score, why)


def _reasons(evidence: FileEvidence, calls_ago: int, *, found: bool, marked: bool) -> str:
    """The evidence in words, as far as there is any."""
    reasons = ["shown 1 call ago" if calls_ago == 1 else f"shown {calls_ago} calls ago"]
    if evidence.named:
        reasons.append(f"named by {evidence.named} of the last {NAMED_WITHIN} calls")
    if evidence.writes:
        reasons.append("written once" if evidence.writes == 1 else f"written {evidence.writes} times")
    if found:
        reasons.append("a search or a trace points here")
    if marked:
        reasons.append("a marker that stays points here")
    return ", ".join(reasons)
