"""Turns a judgement into what the reader sees and what the log keeps: segments, markers, the `Delivered` event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from readcache.judging import marker
from readcache.judging.cover import Run
from readcache.judging.judge import Judgement
from readcache.judging.omissions import Omission
from readcache.model.call import Call
from readcache.model.events import Account, Delivered, Moment, Origin, Piece, Pointer
from readcache.model.key_view import Delivery
from readcache.model.spans import merge_spans
from readcache.model.stored_text import share_digest
from readcache.model.view import View
from readcache.policy import Mode, Policy, Rules
from readcache.reply import UNCREDITED, Omitted, Outcome, Reason, Reply, Segment, Shown

# An omission must save at least this many times the characters of its marker (contract: "costs twice over").
GAIN = 2


@dataclass(frozen=True, slots=True)
class _Cut:
    """Output lines low to high - 1 give way to `text`."""

    low: int
    high: int
    text: str
    omitted: Omitted
    numbered: bool = False


def compose(view: View, call: Call, judgement: Judgement, rules: Rules) -> tuple[Reply, Delivered]:
    """The reply and its event."""
    policy = rules.policy
    cuts = _cuts(view, judgement, rules.tag)
    worth = [cut for cut in cuts if _chars(call, judgement.lines, cut) >= GAIN * len(cut.text)]
    whole = len(worth) == 1 and (worth[0].low, worth[0].high) == (0, len(judgement.lines))
    if cuts and (not worth or (not policy.partial and not whole)):
        judgement = replace(judgement, outcome=Outcome.FULL, reason=Reason.NO_GAIN)
        worth = []
    elif judgement.outcome is Outcome.UNCHANGED and sum(c.high - c.low for c in worth) < len(judgement.lines):
        judgement = replace(judgement, outcome=Outcome.PARTIAL)
    would_save = _saved(call.output, judgement.lines, worth, policy)
    if policy.mode is Mode.ADVISE and worth:
        judgement, worth = replace(judgement, outcome=Outcome.FULL, reason=Reason.ADVISED), []
    return _reply(view, call, judgement, worth, policy, would_save)


def pass_through(call: Call, reason: Reason) -> Reply:
    """All of the output, untouched."""
    shown = (Shown(call.output),)
    return Reply(call.output, call.exit_code, Outcome.FULL, reason, shown, call.call_id, 0, call.output)


def _reply(
    view: View, call: Call, judgement: Judgement, cuts: list[_Cut], policy: Policy, would_save: int
) -> tuple[Reply, Delivered]:
    segments, pointers, text = _assemble(call.output, judgement.lines, cuts)
    outcome, reason = judgement.outcome, judgement.reason
    asked = () if judgement.pieces else tuple(sorted(call.reading.keys))
    event = Delivered(
        call_id=call.call_id,
        text=text,
        label=call.label,
        pieces=_shown_pieces(judgement.pieces, cuts, len(judgement.lines)),
        pointers=pointers,
        changed=judgement.changed,
        credited=reason not in UNCREDITED,
        when=Moment(judgement.number, view.calls.tokens + policy.tokens(text), call.batch),
        account=Account(call.request, outcome, reason, len(call.output), would_save, asked),
    )
    if not cuts:
        share_digest(event, call.digest)
    saved = would_save if cuts else 0
    return Reply(text, call.exit_code, outcome, reason, segments, call.call_id, saved, call.output), event


def _chars(call: Call, lines: Sequence[str], cut: _Cut) -> int:
    if cut.high - cut.low == len(lines):
        return len(call.output) + (not call.output.endswith("\n"))
    return sum(map(len, lines[cut.low : cut.high])) + cut.high - cut.low


def _saved(output: str, lines: Sequence[str], cuts: list[_Cut], policy: Policy) -> int:
    count = policy.tokens
    if len(cuts) == 1 and cuts[0].high - cuts[0].low == len(lines):
        return count(output) - count(cuts[0].text + "\n")
    return sum(count("\n".join(lines[c.low : c.high]) + "\n") - count(c.text + "\n") for c in cuts)


def _shown_stretches(cuts: list[_Cut], count: int) -> Iterator[tuple[int, int, int]]:
    """(low, high, place): output lines low to high - 1 are shown, from line `place` of the reply on.

    There is one before each cut and one after the last, and they may be empty."""
    at = place = 0
    for cut in cuts:
        yield at, cut.low, place
        place += cut.low - at + 1
        at = cut.high
    yield at, count, place


def _assemble(
    output: str, lines: Sequence[str], cuts: list[_Cut]
) -> tuple[tuple[Segment, ...], tuple[Pointer, ...], str]:
    if not cuts:
        return (Shown(output),), (), output
    segments: list[Segment] = []
    pointers: list[Pointer] = []
    parts: list[str] = []
    for (low, high, place), cut in zip_longest(_shown_stretches(cuts, len(lines)), cuts):
        if high > low:
            is_cut_line = high == len(lines) and not output.endswith("\n")
            parts.append("\n".join(lines[low:high]) + ("" if is_cut_line else "\n"))
            segments.append(Shown(parts[-1]))
        if cut is not None:
            gap = cut.omitted
            line = place + high - low
            pointers.append(Pointer(line, gap.path, gap.start, gap.end, gap.sources, cut.numbered, cut.text))
            segments.append(gap)
            parts.append(cut.text + "\n")
    return tuple(segments), tuple(pointers), "".join(parts)


def _shown_pieces(pieces: tuple[Piece, ...], cuts: list[_Cut], count: int) -> tuple[Piece, ...]:
    """The pieces of what is left, at their places in the reply's text."""
    if not cuts:
        return pieces
    out: list[Piece] = []
    for piece in pieces:
        end = piece.at + piece.count
        for low, high, place in _shown_stretches(cuts, count):
            first, last = max(low, piece.at), min(high, end)
            if first < last:
                number = piece.first and piece.first + first - piece.at
                at, eof = place + first - low, piece.eof and last == end
                out.append(replace(piece, at=at, count=last - first, first=number, eof=eof))
    return tuple(out)


# ---------------------------------------------------------------- markers


def _cuts(view: View, judgement: Judgement, tag: str) -> list[_Cut]:
    if judgement.whole is not None:
        return [_identical(view, judgement, judgement.whole, tag)]
    return [_cut(judgement, omission, tag) for omission in judgement.omissions]


def _identical(view: View, judgement: Judgement, whole: Delivery, tag: str) -> _Cut:
    number, last_write = judgement.number, view.calls.last_write
    count = len(judgement.lines)
    note = ""
    if last_write is not None and last_write.call >= whole.call:
        ago = _ago(number, last_write.call)
        note = f", before your edit {ago} call{'s' if ago > 1 else ''} ago"
    what = f"this output, {count} line{'s' if count > 1 else ''}"
    source = marker.Source(whole.event.label, _ago(number, whole.call))
    text = marker.write_marker(tag, what, [source], note=note)
    return _Cut(0, count, text, Omitted(None, 1, count, (whole.event.call_id,)))


def _ago(number: int, call: int) -> int:
    return max(1, number - call)


def _cut(judgement: Judgement, omission: Omission, tag: str) -> _Cut:
    runs = omission.runs
    piece = runs[0].piece
    one_file = all(run.piece is piece for run in runs) and len(piece.keys) == 1 and piece.first > 0
    if one_file:
        start = piece.first + omission.low - piece.at
        omitted = Omitted(piece.keys[0], start, start + omission.high - omission.low - 1, _ids(runs))
    else:
        omitted = Omitted(None, omission.low + 1, omission.high, _ids(runs))
    whole = (omission.low, omission.high) == (0, len(judgement.lines))
    what, paths = _what(runs, omitted)
    sources = _name_sources(runs, judgement.number)
    text = marker.write_marker(tag, what, sources, paths=paths, whole_read=whole and bool(piece.keys))
    numbered = any(run.piece.sep is not None for run in runs)
    return _Cut(omission.low, omission.high, text, omitted, numbered)


def _ids(runs: tuple[Run, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run.reference.event.call_id for run in runs))


def _what(runs: tuple[Run, ...], omitted: Omitted) -> tuple[str, list[str]]:
    """In words: the files' lines where all are known, else this output's; and the paths that this names."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for run in runs:
        if len(run.piece.keys) != 1 or not run.piece.first:
            break
        start = run.piece.first + run.low - run.piece.at
        known = spans.setdefault(run.piece.keys[0], [])
        if known and known[-1][1] == start - 1:
            known[-1] = (known[-1][0], start + run.high - run.low - 1)
        else:
            known.append((start, start + run.high - run.low - 1))
    else:
        if len(spans) <= 2 and sum(map(len, spans.values())) <= 4:
            return " and ".join(marker.name_lines(path, found) for path, found in spans.items()), list(spans)
    paths = list(dict.fromkeys(key for run in runs for key in run.piece.keys))
    if not 0 < len(paths) <= 2:
        return f"lines {omitted.start}-{omitted.end} of this output", []
    named = ", ".join(map(marker.name_of, paths))
    return f"lines {omitted.start}-{omitted.end} of this output ({named})", paths


def _name_sources(runs: tuple[Run, ...], number: int) -> list[marker.Source]:
    by_text: dict[tuple[str, Origin], list[Run]] = {}
    for run in runs:
        event = run.reference.event
        by_text.setdefault((event.call_id, event.origin), []).append(run)
    out: list[marker.Source] = []
    for (_, origin), theirs in by_text.items():
        delivery = theirs[0].reference.delivery
        out.append(
            marker.Source(
                delivery.event.label,
                _ago(number, delivery.call),
                own_command=origin is Origin.COMMAND,
                restored=origin is Origin.RESTORED,
                there=_other_numbers(theirs),
            )
        )
    return out


def _other_numbers(runs: list[Run]) -> tuple[tuple[int, int], ...]:
    """The numbers that stand in front of the lines at the source, where they differ from those left out here."""
    spans: list[tuple[int, int]] = []
    differ = False
    for run in runs:
        source, piece = run.reference.piece, run.piece
        if piece.sep is None:
            return ()
        there = source.first + source.shift + run.at
        differ |= there != piece.first + piece.shift + run.low - piece.at
        spans.append((there, there + run.high - run.low - 1))
    return merge_spans(spans) if differ else ()
