"""The decision: what of an output is shown, what is left out, and why. Pure: (view, call, output) -> judgement.

The order of the rules is the order of `decide`: what is never touched; the reader who insists; what the reads in the
output are covered by; the whole output at one place; any visible lines. Every rule that does not clearly hold shows the
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from readcache.judging import marker
from readcache.judging.cover import Coverage, Run, can_stand_for, cover, find_runs
from readcache.judging.match import match
from readcache.model import text
from readcache.model.claims import Reading, path_of
from readcache.model.events import Piece
from readcache.model.line_index import LineIndex, stretches
from readcache.model.paths import matches
from readcache.model.view import Delivery, Reference, View
from readcache.policy import Insist, Mode, Policy
from readcache.reply import Outcome, Reason

# Characters. Splitting and comparing a larger output would cost more than the command that printed it.
LARGEST = 8_000_000
# A repeat counts as insisting when at most this many other calls came since the omission, not counting other omissions
# and their repeats: a model may look around (`pwd`, `ls`) before it asks again, or repeat a whole batch of requests.
INSIST_WITHIN = 2


@dataclass(frozen=True, slots=True)
class Call:
    """What is judged: one tool call and what it printed."""

    call_id: str
    command: str  # the command; a path for a read tool
    request: str  # equal for equal requests
    output: str
    reading: Reading
    batch: str = ""
    trouble: Reason | None = None  # TIMED_OUT, KILLED, NOT_RUN, UNREADABLE, UNSTABLE: never judged, never credited
    fresh: bool = False  # the reader asked for every byte


@dataclass(frozen=True, slots=True)
class Omission:
    """Output lines low to high - 1 that may be left out, and the runs that say where they stand."""

    low: int
    high: int
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What to do with an output; `omissions` is empty when all of it is shown."""

    lines: Sequence[str]
    pieces: tuple[Piece, ...]
    omissions: tuple[Omission, ...]
    outcome: Outcome
    reason: Reason
    changed: tuple[str, ...] = ()
    whole: Delivery | None = None  # IDENTICAL_OUTPUT: the result that holds all of it


def decide(view: View, call: Call, policy: Policy, session_tag: str, index: LineIndex | None = None) -> Judgement:
    """The judgement of one call. `index` is needed for `policy.any_output` alone."""
    untouched = _untouchable(call, policy)
    if untouched is not None:
        return Judgement((), (), (), Outcome.FULL, untouched)
    if marker.find_markers(call.output, session_tag):  # a marker is never a source, not even when a file holds one
        return Judgement((), (), (), Outcome.FULL, Reason.HOLDS_A_MARKER)
    same = view.whole(text.digest(call.output))
    lines = _split(view, call.output, same)
    pieces = match(call.reading.claims, lines, view)
    if any(matches(path_of(key), policy.protected) for piece in pieces for key in piece.keys):
        return Judgement(lines, (), (), Outcome.FULL, Reason.PROTECTED)
    usable = Usable(view, call, policy)
    coverage = cover(view, lines, pieces, usable, delta=policy.delta)
    full = Judgement(lines, pieces, (), Outcome.FULL, Reason.NOT_SEEN, tuple(sorted(coverage.changed)))
    if call.fresh:
        return _because(full, Reason.FRESH)
    if policy.insist is Insist.SERVE and insists(view, call):
        return _because(full, Reason.INSISTED)
    if len(call.output) < policy.min_chars:
        return _because(full, Reason.TOO_SHORT)
    whole = _whole(view, call, same, pieces, usable, policy)
    if policy.any_output and index is not None and whole is None:
        coverage.runs += _runs_anywhere(view, lines, pieces, coverage, index, usable)
    omissions = _omissions(coverage.runs, lines)
    if whole is not None and not (len(omissions) == 1 and omissions[0].high - omissions[0].low == len(lines)):
        return Judgement(lines, pieces, (), Outcome.IDENTICAL_OUTPUT, Reason.IDENTICAL, full.changed, whole)
    if not omissions:
        return _because(full, _why_nothing(coverage, usable))
    everything = sum(o.high - o.low for o in omissions) == len(lines)
    if not everything and not policy.partial:
        return _because(full, Reason.NO_PARTIAL)
    outcome = Outcome.UNCHANGED if everything else Outcome.PARTIAL
    return Judgement(lines, pieces, omissions, outcome, _why(view, omissions, everything, coverage), full.changed)


def _because(judgement: Judgement, reason: Reason) -> Judgement:
    return Judgement(judgement.lines, judgement.pieces, (), Outcome.FULL, reason, judgement.changed)


def _untouchable(call: Call, policy: Policy) -> Reason | None:
    if policy.mode is Mode.OFF:
        return Reason.MODE_OFF
    if call.trouble is not None:
        return call.trouble
    if policy.forbids(call.command):
        return Reason.NEVER
    if "\0" in call.output:
        return Reason.BINARY
    if len(call.output) > LARGEST:
        return Reason.TOO_LARGE
    return None


class Usable:
    """May a reference serve as a source for this call? Remembers whether only the batch stood in the way."""

    def __init__(self, view: View, call: Call, policy: Policy) -> None:
        self._call = call
        horizon = policy.horizon_tokens
        self._oldest = -1 if horizon is None else view.tokens - horizon
        self.same_batch = False

    def __call__(self, reference: Reference) -> bool:
        return self.delivery(reference.delivery)

    def delivery(self, delivery: Delivery) -> bool:
        """May anything of this delivery?"""
        event = delivery.event
        if event.call_id == self._call.call_id or event.tokens_so_far < self._oldest:
            return False
        if event.batch and event.batch == self._call.batch:
            self.same_batch = True
            return False
        return True


def insists(view: View, call: Call) -> bool:
    """Is it the request of an omission again, right after it?"""
    others = view.calls_since_omission(call.request, view.number_of(call.call_id))
    return others is not None and others <= INSIST_WITHIN


def _split(view: View, output: str, same: Delivery | None) -> Sequence[str]:
    """The lines; of a text that is visible already those that are at hand, since comparing them is free then."""
    if same is not None and len(same.event.pieces) == 1 and same.event.text == output:
        piece = same.event.pieces[0]
        if piece.sep is None and piece.at == 0:
            lines = view.bodies(Reference(same, piece))
            if len(lines) == text.count_lines(output):
                return lines
    return text.split_lines(output)


def _whole(
    view: View,
    call: Call,
    whole: Delivery | None,
    pieces: tuple[Piece, ...],
    usable: Usable,
    policy: Policy,
) -> Delivery | None:
    """The one result that holds the whole output, unless a file in it was written since and that matters."""
    if not policy.identical_output:
        return None
    if whole is None or not usable.delivery(whole) or whole.event.text != call.output:
        return None
    stale = any(view.key(key).is_stale(whole) for piece in pieces for key in piece.keys)
    return None if stale and not policy.delta else whole


def _runs_anywhere(
    view: View,
    lines: Sequence[str],
    pieces: tuple[Piece, ...],
    coverage: Coverage,
    index: LineIndex,
    usable: Usable,
) -> list[Run]:
    """Runs of visible lines among those that are still open, whatever printed them."""
    is_open = [True] * len(lines)
    for run in coverage.runs:
        is_open[run.low : run.high] = [False] * (run.high - run.low)
    out: list[Run] = []
    for piece in stretches(pieces, len(lines)):
        open_here = is_open[piece.at : piece.at + piece.count]
        if not any(open_here):
            continue
        texts = text.bodies(lines[piece.at : piece.at + piece.count], piece.sep)
        proposed = index.propose(
            [t for t, is_free in zip(texts, open_here, strict=True) if is_free], numbered=piece.sep is not None
        )
        sources = [
            (r, view.bodies(r)) for r in proposed if usable(r) and view.holds(r.delivery) and can_stand_for(r, piece)
        ]
        anonymous = replace(piece, keys=())
        for low, high, reference, at in find_runs(texts, open_here, sources):
            out.append(Run(piece.at + low, piece.at + high, reference, at, anonymous))
    return out


def _omissions(runs: list[Run], lines: Sequence[str]) -> tuple[Omission, ...]:
    """Adjacent runs become one omission, as long as its marker can name all their sources."""
    groups: list[list[Run]] = []
    for run in sorted(runs, key=lambda r: r.low):
        if groups and groups[-1][-1].high == run.low and _sources([*groups[-1], run]) <= marker.MOST_SOURCES:
            groups[-1].append(run)
        else:
            groups.append([run])
    for group in groups:
        for end in (0, -1):
            while len(group) > 1 and _costs_more(group, group[end], lines):
                del group[end]
    return tuple(Omission(group[0].low, group[-1].high, tuple(group)) for group in groups)


def _costs_more(group: list[Run], run: Run, lines: Sequence[str]) -> bool:
    """Would it take more characters to name the run's source than the run has?"""
    alone = _sources(group) > _sources([other for other in group if other is not run])
    return alone and sum(map(len, lines[run.low : run.high])) + run.high - run.low < marker.SOURCE_CHARS


def _sources(runs: Sequence[Run]) -> int:
    return len({(r.reference.delivery.event.call_id, r.reference.delivery.event.origin) for r in runs})


def _why(view: View, omissions: tuple[Omission, ...], everything: bool, coverage: Coverage) -> Reason:
    runs = [run for omission in omissions for run in omission.runs]
    if any(not run.piece.keys for run in runs):
        return Reason.REPEATED_LINES
    if any(_is_outdated(view, run, coverage) for run in runs):
        return Reason.UNCHANGED_LINES
    return Reason.COVERED if everything else Reason.OVERLAP


def _is_outdated(view: View, run: Run, coverage: Coverage) -> bool:
    """Was the run's source shown before its file, or the file it was copied from, changed?"""
    if not coverage.changed.isdisjoint(run.piece.keys):
        return True
    delivery = run.reference.delivery
    return any(view.key(key).is_stale(delivery) for key in run.reference.piece.keys)


def _why_nothing(coverage: Coverage, usable: Usable) -> Reason:
    if coverage.changed:
        return Reason.CHANGED
    if coverage.written:
        return Reason.WRITTEN
    if coverage.outdated:
        return Reason.CHANGED
    if usable.same_batch:
        return Reason.SAME_BATCH
    if coverage.unnumbered:
        return Reason.UNNUMBERED
    return Reason.NOT_SEEN
