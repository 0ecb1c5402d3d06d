"""Turn a judgement into the reply for the reader and the event for the log: segments, markers, `Delivered`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, zip_longest

from readcache.core.judging.judge import Judgement
from readcache.core.judging.omissions import count_chars
from readcache.core.judging.protect import kept_label
from readcache.core.judging.replacements import Replacement, make_replacements
from readcache.core.model.call import Call, with_frame
from readcache.core.model.events import Account, Delivered, MappedSpan, MarkerRecord, Moment, Origin
from readcache.core.model.policy import Mode, Policy, Rules
from readcache.core.model.reply import UNCREDITED, Omitted, Outcome, Reason, Reply, Segment, Shown
from readcache.core.model.tokens import usual_model
from readcache.core.model.unconfirmed import without_text
from readcache.core.model.view import View

# An omission must save at least this many times the characters of its marker (contract: "costs twice over").
GAIN = 2
# Omissions beyond `Policy.max_markers` for which a marker is written, in case longer ones save too little. An output of
# 1 MB may have thousands, and writing a marker takes longer than finding its lines.
SPARE = 32
# The share of agents that request omitted lines again right away, by the origin of the lines: a result, the agent's
# own edit, a restored section. From 290 stubs in 164 public sessions, with one vote for each session; see
# tests/benchmarks/census.py. Restored sections have the share that was measured for text attached by a host.
ASKED_AGAIN = {Origin.RESULT: 0.04, Origin.COMMAND: 0.2, Origin.RESTORED: 0.3}


def compose(view: View, call: Call, judgement: Judgement, rules: Rules) -> tuple[Reply, Delivered]:
    """Return the reply and its event."""
    policy = rules.policy
    found = _worth(
        call, judgement, make_replacements(view, call, judgement, rules.tag, policy.max_markers + SPARE), policy
    )
    worth, would_save = _worth_a_turn(view, call, judgement, found, policy)
    everything = len(worth) == 1 and (worth[0].low, worth[0].high) == (0, len(judgement.lines))
    if found and not worth:
        judgement = replace(judgement, outcome=Outcome.FULL, reason=Reason.NOT_WORTH)
    elif (judgement.identical or judgement.omissions) and (not worth or (not policy.partial and not everything)):
        judgement, worth, would_save = replace(judgement, outcome=Outcome.FULL, reason=Reason.NO_GAIN), [], 0
    elif judgement.outcome is Outcome.UNCHANGED and sum(c.high - c.low for c in worth) < len(judgement.lines):
        judgement = replace(judgement, outcome=Outcome.PARTIAL)
    if policy.clip is not None and worth:  # count saved tokens only, not the value of seeing more of the rest
        would_save = saved_by(call.output, _assemble(call.output, judgement.lines, worth)[2], policy)
    if policy.mode is Mode.ADVISE and worth:
        judgement, worth = replace(judgement, outcome=Outcome.FULL, reason=Reason.ADVISED), []
    return _reply(view, call, judgement, worth, rules, would_save)


def _worth(call: Call, judgement: Judgement, replacements: Iterable[Replacement], policy: Policy) -> list[Replacement]:
    """Return the replacements that save enough characters, in the order of their lines.

    Return at most the first `policy.max_markers` of them: a reply with many gaps is hard to read.
    """
    worth = (
        replacement
        for replacement in replacements
        if _chars(call, judgement.lines, replacement) >= GAIN * len(replacement.text)
    )
    return sorted(islice(worth, policy.max_markers), key=lambda replacement: replacement.low)


def _worth_a_turn(
    view: View, call: Call, judgement: Judgement, replacements: list[Replacement], policy: Policy
) -> tuple[list[Replacement], int]:
    """Return the replacements that together save enough, and the tokens that they save.

    If all of them together do not save enough, drop those first whose lines agents request again most often. Return
    ([], 0) if none are left.
    """
    for share in sorted({_asked_again(replacement) for replacement in replacements}, reverse=True):
        some = [replacement for replacement in replacements if _asked_again(replacement) <= share]
        tokens = _saved(call.output, judgement.lines, some, policy)
        if is_worth(view, tokens, policy, share):
            return some, tokens
    return [], 0


def _asked_again(replacement: Replacement) -> float:
    return max(
        (ASKED_AGAIN[span.origin] for span in replacement.marker.source_spans), default=ASKED_AGAIN[Origin.RESULT]
    )


def is_worth(view: View, tokens: int, policy: Policy, asked_again: float = ASKED_AGAIN[Origin.RESULT]) -> bool:
    """Return True if omitting `tokens` tokens, net, saves enough for the risk of one more turn.

    The saving counts for as long as the tokens would be carried. It must be at least the share of a turn that the
    policy demands, and at least the share of readers that request the lines again. The text of the lines does not
    matter. If `policy.min_worth` is 0, every saving is enough.
    """
    if not policy.min_worth:
        return True
    carried = view.carried / policy.chars_per_token  # an estimate is enough
    share = max(policy.min_worth, asked_again)
    return policy.prices.of_text(tokens) >= share * policy.prices.of_turn(carried)


def pass_through(call: Call, reason: Reason) -> Reply:
    """Return a reply with the whole output, unchanged, and with the frame around it."""
    shown = (Shown(call.output),)
    reply = Reply(call.output, call.exit_code or 0, Outcome.FULL, reason, shown, call.call_id, 0, call.output)
    return with_frame(reply, call)


def _reply(
    view: View, call: Call, judgement: Judgement, replacements: list[Replacement], rules: Rules, would_save: int
) -> tuple[Reply, Delivered]:
    policy = rules.policy
    segments, markers, text = _assemble(call.output, judgement.lines, replacements)
    outcome, reason = judgement.outcome, judgement.reason
    asked = () if judgement.source_map else tuple(sorted(call.reading.keys))
    event = Delivered(
        call_id=call.call_id,
        text=text,
        label=kept_label(call, policy),
        source_map=_shown_source_map(judgement.source_map, replacements, len(judgement.lines)),
        markers=markers,
        changed=judgement.changed,
        credited=reason not in UNCREDITED,
        rendering=call.rendering,
        when=Moment(judgement.number, view.calls.tokens + policy.tokens(text), call.batch, call.started),
        account=Account(
            call.request,
            outcome,
            reason,
            count_shown(call.output, policy, len),
            would_save,
            asked,
            host=rules.host,
            tool=call.tool,
            model="" if policy.model == usual_model(rules.host) else policy.model,
        ),
    )
    if not event.credited:
        event = without_text(event)
    saved = would_save if replacements else 0
    return Reply(text, call.exit_code or 0, outcome, reason, segments, call.call_id, saved, call.output), event


def _chars(call: Call, lines: Sequence[str], replacement: Replacement) -> int:
    if replacement.high - replacement.low == len(lines):
        return len(call.output) + (not call.output.endswith("\n"))
    return count_chars(lines, replacement.low, replacement.high)


def count_shown(text: str, policy: Policy, count: Callable[[str], int]) -> int:
    """Return the part of a text that the harness shows, measured by `count` (in characters or tokens).

    Text that the harness itself truncates is not a saving of readcache.
    """
    return count(text) if policy.clip is None else sum(map(count, policy.clip.kept(text)))


def saved_by(output: str, text: str, policy: Policy) -> int:
    """Return how many tokens the reader saves by getting `text` instead of `output`."""
    return count_shown(output, policy, policy.tokens) - count_shown(text, policy, policy.tokens)


def _saved(output: str, lines: Sequence[str], replacements: list[Replacement], policy: Policy) -> int:
    count = policy.tokens
    if len(replacements) == 1 and replacements[0].high - replacements[0].low == len(lines):
        return count(output) - count(replacements[0].text + "\n")
    return sum(count("\n".join(lines[c.low : c.high]) + "\n") - count(c.text + "\n") for c in replacements)


def _shown_spans(replacements: list[Replacement], count: int) -> Iterator[tuple[int, int, int]]:
    """Yield (low, high, shown_at): output lines low to high - 1 are shown, from line `shown_at` of the reply on.

    There is one before each replacement and one after the last, and they may be empty.
    """
    at = shown_at = 0
    for replacement in replacements:
        yield at, replacement.low, shown_at
        shown_at += replacement.low - at + 1
        at = replacement.high
    yield at, count, shown_at


def _assemble(
    output: str, lines: Sequence[str], replacements: list[Replacement]
) -> tuple[tuple[Segment, ...], tuple[MarkerRecord, ...], str]:
    if not replacements:
        return (Shown(output),), (), output
    segments: list[Segment] = []
    markers: list[MarkerRecord] = []
    parts: list[str] = []
    for (low, high, shown_at), replacement in zip_longest(_shown_spans(replacements, len(lines)), replacements):
        if high > low:
            is_unterminated = high == len(lines) and not output.endswith("\n")
            parts.append("\n".join(lines[low:high]) + ("" if is_unterminated else "\n"))
            segments.append(Shown(parts[-1]))
        if replacement is not None:
            marker = replace(replacement.marker, line=shown_at + high - low)
            markers.append(marker)
            segments.append(Omitted(marker.path, marker.start, marker.end, marker.sources))
            parts.append(replacement.text + "\n")
    return tuple(segments), tuple(markers), "".join(parts)


def _shown_source_map(
    source_map: tuple[MappedSpan, ...], replacements: list[Replacement], count: int
) -> tuple[MappedSpan, ...]:
    """Return the mapped spans of the lines that are still shown, at their indexes in the reply's text."""
    if not replacements:
        return source_map
    out: list[MappedSpan] = []
    for mapped in source_map:
        end = mapped.at + mapped.count
        for low, high, shown_at in _shown_spans(replacements, count):
            first, last = max(low, mapped.at), min(high, end)
            if first < last:
                number = mapped.first and mapped.first + first - mapped.at
                at, eof = shown_at + first - low, mapped.eof and last == end
                out.append(replace(mapped, at=at, count=last - first, first=number, eof=eof))
    return tuple(out)
