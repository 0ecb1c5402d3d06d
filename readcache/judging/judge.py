"""The decision: which lines of an output are shown, which are omitted, and why. Pure: (view, call, output) ->
judgement.

The order of the rules is the order of `decide`: what is never touched; the reader who insists; what the reads in the
output are covered by; the whole output at one place; any visible lines. Every rule that does not clearly hold shows the
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from readcache.judging import marker
from readcache.judging.cover import Coverage, Run, cover, is_outdated
from readcache.judging.insistence import insists
from readcache.judging.line_index import LineIndex
from readcache.judging.match import Trust, map_output
from readcache.judging.omissions import Omission, make_omissions
from readcache.judging.protect import concerns_protected, shows_secrets
from readcache.judging.search import find_visible
from readcache.judging.sources import Sources
from readcache.model import text
from readcache.model.call import Call
from readcache.model.events import Piece
from readcache.model.key_view import Delivery, Reference
from readcache.model.limits import LARGEST_OUTPUT, MOST_LINES
from readcache.model.paths import matches
from readcache.model.policy import Insist, Policy, Rules
from readcache.model.reply import Outcome, Reason
from readcache.model.view import View

UNDECODED = "\ufffd"  # bytes that are not UTF-8, whatever they were: two of them are not known to be equal
# Logs, and the outputs of tasks in the background. An agent that reads one again waits for it to grow: of 17 that were
# told "nothing new", 15 asked again within three calls.
POLLED = ("*.log", "*.output", "nohup.out")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What to do with an output; `omissions` is empty when all of it is shown."""

    number: int  # of the call, from 1
    outcome: Outcome
    reason: Reason
    lines: Sequence[str] = ()
    pieces: tuple[Piece, ...] = ()
    omissions: tuple[Omission, ...] = ()
    changed: tuple[str, ...] = ()
    whole: Delivery | None = None  # IDENTICAL_OUTPUT: the result that holds all of it


def decide(view: View, call: Call, rules: Rules, index: LineIndex) -> Judgement:
    """The judgement of one call. `index`: of what the view holds."""
    policy, number = rules.policy, view.calls.number_of(call.call_id)
    untouched = _untouchable(call, rules)
    if untouched is not None:
        return Judgement(number, Outcome.FULL, untouched)
    sources = Sources(view, call, policy)
    same = view.whole(call.digest)
    lines = text.split_lines(call.output)
    failed, wrote = call.exit_code not in (0, None), bool(call.reading.writes)
    trust = Trust(call.complete, failed=failed, wrote=wrote, uncut=call.uncut, exact=call.exact)
    pieces = map_output(call.reading.claims, lines, view, trust)
    shown = (key for piece in pieces for key in piece.keys)
    if any(matches(key, policy.protected) for key in shown):
        return Judgement(number, Outcome.FULL, Reason.PROTECTED, lines)
    coverage = cover(view, lines, pieces, sources.allow)
    changed = tuple(sorted(coverage.changed))
    full = Judgement(number, Outcome.FULL, Reason.NOT_SEEN, lines, pieces, changed=changed)
    # Not before `cover`: what is shown in full is credited all the same, and a change that it shows is one.
    if call.fresh:
        return replace(full, reason=Reason.FRESH)
    if any(matches(key, policy.always) for key in call.reading.keys):
        return replace(full, reason=Reason.ALWAYS)
    if any(matches(key, POLLED) for key in call.reading.keys):
        return replace(full, reason=Reason.POLLED)
    if policy.insist is Insist.SERVE and insists(view, call):
        return replace(full, reason=Reason.INSISTED)
    if len(call.output) < policy.min_chars:
        return replace(full, reason=Reason.TOO_SHORT)
    whole = _whole(view, call, same, pieces, sources, policy)
    if whole is None:
        runs = find_visible(view, lines, pieces, coverage, index, sources, policy)
    else:
        runs = _same_pieces(pieces, whole)
    found = make_omissions(runs)
    omissions = tuple(o for o in found if not call.edges_only or not o.low or o.high == len(lines))
    if whole is not None and not (len(omissions) == 1 and omissions[0].high - omissions[0].low == len(lines)):
        return replace(full, outcome=Outcome.IDENTICAL_OUTPUT, reason=Reason.IDENTICAL, whole=whole)
    if not omissions:
        return replace(full, reason=Reason.NO_PARTIAL if found else _why_nothing(coverage, sources))
    everything = sum(o.high - o.low for o in omissions) == len(lines)
    if not everything and not policy.partial:
        return replace(full, reason=Reason.NO_PARTIAL)
    outcome = Outcome.UNCHANGED if everything else Outcome.PARTIAL
    return replace(full, outcome=outcome, reason=_why(view, omissions, coverage, everything), omissions=omissions)


def _untouchable(call: Call, rules: Rules) -> Reason | None:
    if call.trouble is not None:
        return call.trouble
    if "\0" in call.output:
        return Reason.BINARY
    if UNDECODED in call.output:
        return Reason.NOT_TEXT
    if len(call.output) > LARGEST_OUTPUT or call.output.count("\n") > MOST_LINES:
        return Reason.TOO_LARGE
    if concerns_protected(call, rules.policy) or shows_secrets(call, rules.policy):
        return Reason.PROTECTED
    if marker.find_markers(call.output, rules.tag):  # a marker is never a source, not even when a file holds one
        return Reason.HOLDS_A_MARKER
    return None


def _whole(
    view: View,
    call: Call,
    whole: Delivery | None,
    pieces: tuple[Piece, ...],
    sources: Sources,
    policy: Policy,
) -> Delivery | None:
    """The one result that holds the whole output, unless a file in it was written since and that matters."""
    if not policy.identical_output:
        return None
    if whole is None or not sources.allow(whole) or whole.event.text != call.output:
        return None
    stale = any(view.was_written_since(key, whole) for piece in pieces for key in piece.keys)
    return None if stale and not policy.delta else whole


def _same_pieces(pieces: tuple[Piece, ...], whole: Delivery) -> list[Run]:
    """Pieces of an output whose text stands whole at one place, and is the same lines of the same file there."""
    return [
        Run(ours.at, ours.at + ours.count, Reference(whole, theirs), 0, ours)
        for ours, theirs in zip(pieces, whole.event.pieces, strict=False)
        if ours.first and replace(theirs, eof=ours.eof) == ours
    ]


def _why(view: View, omissions: tuple[Omission, ...], coverage: Coverage, everything: bool) -> Reason:
    runs = [run for omission in omissions for run in omission.runs]
    if any(not run.piece.keys or not run.reference.piece.keys for run in runs):
        return Reason.REPEATED_LINES
    if is_outdated(view, runs, coverage.changed):
        return Reason.UNCHANGED_LINES
    return Reason.COVERED if everything else Reason.OVERLAP


def _why_nothing(coverage: Coverage, sources: Sources) -> Reason:
    if coverage.changed:
        return Reason.CHANGED
    if coverage.written:
        return Reason.WRITTEN
    if coverage.outdated:
        return Reason.CHANGED
    if sources.same_batch:
        return Reason.SAME_BATCH
    if coverage.unnumbered:
        return Reason.UNNUMBERED
    return Reason.NOT_SEEN
