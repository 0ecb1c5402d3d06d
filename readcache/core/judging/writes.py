"""Turn the writes of a call into events, in the order in which they happened.

A command's own writes are in the log before the delivery of its output. If it read the file first
(`cat f; sed -i … f`), they are after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from readcache.core.judging.marker import name_of
from readcache.core.judging.notices import find_complaints
from readcache.core.judging.protect import kept_label, leads_to_protected, may_keep
from readcache.core.model.call import Call
from readcache.core.model.claims import Authored, Claim, FileLines, Reading, Write, concerns
from readcache.core.model.events import Delivered, Event, MappedSpan, Moment, Origin, Wrote
from readcache.core.model.paths import matches_any
from readcache.core.model.policy import Policy
from readcache.core.model.reply import Reason
from readcache.core.model.text import count_lines, split_lines
from readcache.core.model.view import View


def split_writes(reading: Reading) -> tuple[list[Write], list[Write]]:
    """Return the writes before the command's own reads of their files, and the writes after them."""
    before: list[Write] = []
    after: list[Write] = []
    for write in reading.writes:
        earlier = _read_keys(reading.claims[: write.before], write.key)
        later = _read_keys(reading.claims[write.before :], write.key)
        if not earlier or later:
            before.append(write)
        elif not later:
            after.append(write)
        after += [replace(write, key=key) for key in earlier if later and key not in later]
    return before, after


def _read_keys(claims: Iterable[Claim], written: str) -> list[str]:
    """Return the keys of these reads that a write concerns, or whose glob may match the written file."""
    keys = (key for claim in claims if isinstance(claim, FileLines) for key in claim.keys)
    return [key for key in keys if concerns(written, key) or concerns(key, written)]


def wrote_event(call: Call, number: int, writes: Iterable[Write], policy: Policy) -> Wrote:
    """Return the event of these writes of call `number`."""
    certain = dict.fromkeys(write.key for write in writes if write.is_certain)
    possible_writes = dict.fromkeys(write.key for write in writes if not write.is_certain)
    return Wrote(call.call_id, tuple(certain), kept_label(call, policy), number, tuple(possible_writes))


def events_before(view: View, call: Call, policy: Policy) -> list[Event]:
    """Return the events that must be in the view when the call's output is judged.

    They are the writes before its own reads, and the text that the agent wrote in it.
    """
    number = view.calls.number_of(call.call_id)
    before, _ = split_writes(call.reading)
    label = kept_label(call, policy)
    events: list[Event] = [wrote_event(call, number, before, policy)] if before else []
    texts = (part for part in certain_texts(call) if not matches_any(part.key, policy.protected))
    kept = [part for part in texts if may_keep(part.text, call.label, policy)]
    if kept and not leads_to_protected(call, policy):
        events.append(authored_event(view, policy, call.call_id, label, kept))
    return events


def certain_texts(call: Call) -> list[Authored]:
    """Return the texts in the call's own command that are certainly files' contents now. Other texts in it may be.

    A text counts if the status of the whole command proves the write. It also counts if the write was certainly tried,
    would have complained on failure, and nothing complained. After a failure, no text counts. If the command writes a
    file twice, or only may have written it, no text of that file counts.
    """
    authored = call.reading.authored
    if (
        not authored
        or not call.complete
        or call.skip_reason not in (None, Reason.NEVER)
        or call.exit_code not in (0, None)
    ):
        return []
    if find_complaints(split_lines(call.output)):
        return []
    written = [write.key for write in call.reading.writes if write.is_certain]
    is_proven = call.exit_code == 0
    return [
        part
        for part in authored
        if written.count(part.key) == 1 and (part.executed or (is_proven and part.status_covers))
    ]


def events_after(call: Call, number: int, policy: Policy) -> list[Event]:
    """Return the events that follow the delivery of call `number`: its writes after its own reads."""
    after = split_writes(call.reading)[1]
    return [wrote_event(call, number, after, policy)] if after else []


def tool_write(view: View, policy: Policy, call_id: str, key: str, content: str | None) -> list[Event]:
    """Return the events of an edit or write tool that wrote the file.

    `content`: the whole file, or None if the agent did not give it in that call.
    """
    label = f"write {key}"
    wrote = Wrote(call_id, (key,), label, view.calls.number_of(call_id))
    if not content or matches_any(key, policy.protected) or not may_keep(content, label, policy):
        return [wrote]
    return [wrote, authored_event(view, policy, call_id, label, [Authored(key, content, 1)])]


def authored_event(view: View, policy: Policy, call_id: str, label: str, authored: Sequence[Authored]) -> Delivered:
    """Return the text that the agent wrote in its own call, as a delivery that it can see."""
    texts: list[str] = []
    source_map: list[MappedSpan] = []
    at = 0
    for part in authored:
        text = part.text if part.text.endswith("\n") else part.text + "\n"
        count = count_lines(text)
        source_map.append(MappedSpan((part.key,), at, count, part.first, eof=part.first == 1))
        texts.append(text)
        at += count
    text = "".join(texts)
    when = Moment(view.calls.number_of(call_id), view.calls.tokens + policy.tokens(text))
    return Delivered(call_id, text, label, Origin.COMMAND, tuple(source_map), when=when)


def pasted_file(view: View, policy: Policy, call_id: str, key: str, text: str) -> list[Event]:
    """Return the events of a message that contains a whole file, which no tool call showed. Return none for a protected
    file or a text with a secret. If visible lines of the file differ, the file has changed since they were shown."""
    if not text or matches_any(key, policy.protected) or not may_keep(text, "", policy):
        return []
    lines = split_lines(text)
    spans = [visible for visible in view.key(key).current if visible.mapped.first]
    is_other = any(lines[v.mapped.first - 1 :][: v.mapped.count] != view.bodies(v) for v in spans)
    return [
        Delivered(
            call_id,
            text,
            f"{name_of(key)} in a user message",
            Origin.RESTORED,
            (MappedSpan((key,), 0, len(lines), 1, eof=True),),
            changed=(key,) if is_other else (),
            when=Moment(view.calls.number_of(call_id), view.calls.tokens + policy.tokens(text)),
        )
    ]
