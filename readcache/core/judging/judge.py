"""Decide which lines of an output are shown, which are omitted, and why. Pure: (view, call, output) -> judgement.

The rules follow the order of `decide`. First come outputs that are never touched, then retries. Then the output is
compared with the view: with the files that it shows, with one identical result, and with any visible lines. If a rule
does not clearly apply, the bytes are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from readcache.core.judging import marker
from readcache.core.judging.cover import Coverage, Match, cover, is_outdated
from readcache.core.judging.line_index import LineIndex
from readcache.core.judging.match import OutputFacts, map_output
from readcache.core.judging.omissions import Omission, leave_text_at_end, make_omissions
from readcache.core.judging.protect import concerns_protected, shows_secrets
from readcache.core.judging.search import Sources, find_visible
from readcache.core.model import text
from readcache.core.model.call import Call
from readcache.core.model.events import MappedSpan
from readcache.core.model.key_view import Delivery, VisibleSpan
from readcache.core.model.limits import LARGEST_OUTPUT, MOST_LINES
from readcache.core.model.paths import matches_any
from readcache.core.model.policy import Insist, Policy, Rules
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.view import View

UNDECODED = "\ufffd"  # replaces any bytes that are not UTF-8, so equal texts may come from different bytes
# Logs, and the outputs of background tasks. An agent that reads one again waits for it to grow: of 17 agents that were
# told "nothing new", 15 requested it again within three calls.
POLLED = ("*.log", "*.output", "nohup.out")
# A repeat is a retry if at most this many other calls came since the omission. Other omissions and their repeats do not
# count. A model may look around (`pwd`, `ls`) before it repeats a request, or may repeat a whole batch of requests.
RETRY_WITHIN = 2
# Omissions of one request, with any number of calls between them: a weak model may loop over the same few requests.
# Chosen by replay.
MOST_OMISSIONS_IN_A_ROW = 2


@dataclass(frozen=True, slots=True)
class Judgement:
    """The decision about an output. `omissions` is empty if all of it is shown."""

    number: int  # of the call, counted from 1
    outcome: Outcome
    reason: Reason
    lines: Sequence[str] = ()
    source_map: tuple[MappedSpan, ...] = ()
    omissions: tuple[Omission, ...] = ()
    changed: tuple[str, ...] = ()
    identical: Delivery | None = None  # for IDENTICAL_OUTPUT: the result that contains all of it


def decide(view: View, call: Call, rules: Rules, index: LineIndex) -> Judgement:
    """Return the judgement of one call. `index` must contain the lines of the view."""
    policy, number = rules.policy, view.calls.number_of(call.call_id)
    untouched = _untouchable(call, rules)
    if untouched is not None:
        return Judgement(number, Outcome.FULL, untouched)
    sources = Sources(view, call, policy)
    lines = text.split_lines(call.output)
    failed, wrote = call.exit_code not in (0, None), bool(call.reading.writes)
    facts = OutputFacts(call.complete, failed=failed, wrote=wrote, uncut=call.uncut, exact=call.exact)
    source_map = map_output(call.reading.claims, lines, view, facts)
    shown = (key for mapped in source_map for key in mapped.keys)
    if any(matches_any(key, policy.protected) for key in shown):
        return Judgement(number, Outcome.FULL, Reason.PROTECTED, lines)
    coverage = cover(view, lines, source_map, sources.allow, call.rendering)
    changed = tuple(sorted(coverage.changed))
    full = Judgement(number, Outcome.FULL, Reason.NOT_SEEN, lines, source_map, changed=changed)
    # After `cover`: an output that is shown in full can still be a source, and a change that it shows must be recorded.
    if call.fresh:
        return replace(full, reason=Reason.FRESH)
    if any(matches_any(key, policy.always) for key in call.reading.keys):
        return replace(full, reason=Reason.ALWAYS)
    if any(matches_any(key, POLLED) for key in call.reading.keys):
        return replace(full, reason=Reason.POLLED)
    if policy.insist is Insist.SERVE and is_retry(view, call):
        return replace(full, reason=Reason.INSISTED)
    if len(call.output) < policy.min_chars:
        return replace(full, reason=Reason.TOO_SHORT)
    identical = _identical_output(view, call, source_map, sources, policy)
    if identical is None:
        matches = find_visible(view, lines, source_map, coverage, index, sources, policy)
    else:
        matches = _matches_of_identical(source_map, identical)
    found = leave_text_at_end(make_omissions(matches), lines)
    omissions = tuple(o for o in found if not call.edges_only or not o.low or o.high == len(lines))
    if identical is not None and not (len(omissions) == 1 and omissions[0].high - omissions[0].low == len(lines)):
        return replace(full, outcome=Outcome.IDENTICAL_OUTPUT, reason=Reason.IDENTICAL, identical=identical)
    if not omissions:
        return replace(full, reason=Reason.NO_PARTIAL if found else _why_nothing(coverage, sources))
    everything = sum(o.high - o.low for o in omissions) == len(lines)
    if not everything and not policy.partial:
        return replace(full, reason=Reason.NO_PARTIAL)
    outcome = Outcome.UNCHANGED if everything else Outcome.PARTIAL
    return replace(full, outcome=outcome, reason=_why(view, omissions, coverage, everything), omissions=omissions)


def _untouchable(call: Call, rules: Rules) -> Reason | None:
    if call.skip_reason is not None:
        return call.skip_reason
    if "\0" in call.output:
        return Reason.BINARY
    if UNDECODED in call.output:
        return Reason.NOT_TEXT
    if len(call.output) > LARGEST_OUTPUT or call.output.count("\n") > MOST_LINES:
        return Reason.TOO_LARGE
    if concerns_protected(call, rules.policy) or shows_secrets(call, rules.policy):
        return Reason.PROTECTED
    if marker.find_markers(call.output, rules.tag):  # a marker is never a source, even if a file contains it
        return Reason.HOLDS_A_MARKER
    return None


def _identical_output(
    view: View, call: Call, source_map: tuple[MappedSpan, ...], sources: Sources, policy: Policy
) -> Delivery | None:
    """Return the visible result that equals the whole output.

    Return None if there is none, or if the policy forbids it. Without `policy.delta`, also return None if a file in the
    output was written since.
    """
    identical = view.identical(call.digest) if policy.identical_output else None
    if identical is None or not sources.allow(identical) or identical.event.text != call.output:
        return None
    stale = any(view.was_written_since(key, identical) for mapped in source_map for key in mapped.keys)
    return None if stale and not policy.delta else identical


def _matches_of_identical(source_map: tuple[MappedSpan, ...], identical: Delivery) -> list[Match]:
    """Return matches for an output that is identical to a visible result.

    They are the mapped spans that are the same lines of the same file in both.
    """
    return [
        Match(ours.at, ours.at + ours.count, VisibleSpan(identical, theirs), 0, ours)
        # Another command may have printed it, with a source map of another length.
        for ours, theirs in zip(source_map, identical.event.source_map, strict=False)
        if ours.first and replace(theirs, eof=ours.eof) == ours
    ]


def _why(view: View, omissions: tuple[Omission, ...], coverage: Coverage, everything: bool) -> Reason:
    matches = [match for omission in omissions for match in omission.matches]
    if any(not match.mapped.keys or not match.visible.mapped.keys for match in matches):
        return Reason.REPEATED_LINES
    if is_outdated(view, matches, coverage.changed):
        return Reason.UNCHANGED_LINES
    return Reason.COVERED if everything else Reason.OVERLAP


def _why_nothing(coverage: Coverage, sources: Sources) -> Reason:
    if coverage.changed:
        return Reason.CHANGED
    if coverage.written:
        return Reason.WRITTEN
    if coverage.outdated:
        return Reason.CHANGED
    if coverage.other_views:
        return Reason.OTHER_VIEW
    if sources.same_batch:
        return Reason.SAME_BATCH
    if coverage.unnumbered:
        return Reason.UNNUMBERED
    return Reason.NOT_SEEN


def is_retry(view: View, call: Call) -> bool:
    """Return True if this request repeats an omitted one right after it, or if it got omissions too often in a row."""
    if view.calls.omissions_of(call.request) >= MOST_OMISSIONS_IN_A_ROW:
        return True
    others = view.calls.since_omission(call.request, view.calls.number_of(call.call_id))
    return others is not None and others <= RETRY_WITHIN
