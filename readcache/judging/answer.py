"""One call from judgement to events: the pure half of `Session`'s answering.

A command's own writes take effect in the order in which it made them: those before a read of the same file come before
the reply's delivery in the log, the others after it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from readcache.conversation.settle import clip
from readcache.judging.compose import compose
from readcache.judging.judge import Call, decide
from readcache.judging.reread import answer_again
from readcache.model.claims import WHOLE_TREE, Authored, FileLines, Reading, path_of
from readcache.model.events import Delivered, Event, Origin, Piece, Wrote
from readcache.model.line_index import LineIndex
from readcache.model.text import count_lines, digest
from readcache.model.view import View
from readcache.policy import Policy
from readcache.reply import Outcome, Reason, Reply, Shown

LONGEST_REQUEST = 300  # characters; five in six of the recorded commands stay below


def make_request(*parts: str | int | bool | None) -> str:
    """Equal for equal requests. A long one is known by its digest: every event keeps it."""
    request = json.dumps(parts)
    return request if len(request) <= LONGEST_REQUEST else digest(request)


def split_writes(reading: Reading) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys written before the command's own reads of them, and those written after."""
    before: list[str] = []
    after: list[str] = []
    for write in reading.writes:
        reads_earlier = any(_reads(claim, write.key) for claim in reading.claims[: write.before])
        reads_later = any(_reads(claim, write.key) for claim in reading.claims[write.before :])
        (after if reads_earlier and not reads_later else before).append(write.key)
    return tuple(dict.fromkeys(before)), tuple(dict.fromkeys(after))


def _reads(claim: object, written: str) -> bool:
    if not isinstance(claim, FileLines):
        return False
    paths = [path_of(key) for key in claim.keys]
    return any(written in (WHOLE_TREE, path) or path.startswith(written.rstrip("/") + "/") for path in paths)


def authored_event(call_id: str, label: str, authored: Sequence[Authored], view: View, policy: Policy) -> Delivered:
    """The text that the agent wrote in its own call, as something it can see."""
    texts: list[str] = []
    pieces: list[Piece] = []
    at = 0
    for part in authored:
        text = part.text if part.text.endswith("\n") else part.text + "\n"
        count = count_lines(text)
        pieces.append(Piece((part.key,), at, count, part.first, eof=part.first == 1))
        texts.append(text)
        at += count
    text = "".join(texts)
    return Delivered(
        call_id=call_id,
        text=text,
        label=label,
        origin=Origin.COMMAND,
        pieces=tuple(pieces),
        call=view.number_of(call_id),
        tokens_so_far=view.tokens + policy.tokens(text),
    )


def tool_write(view: View, policy: Policy, call_id: str, key: str, content: str | None) -> list[Event]:
    """An edit or write tool wrote the file; `content` is the whole of it where the agent gave it in that call."""
    label = f"write {key}"
    wrote = Wrote(call_id, (key,), label, view.number_of(call_id))
    if not content:
        return [wrote]
    return [wrote, authored_event(call_id, label, [Authored(key, content, 1)], view, policy)]


def written_first(view: View, call: Call, policy: Policy) -> list[Event]:
    """What a call wrote before it read: to be in the view when its output is judged."""
    before, _ = split_writes(call.reading)
    events: list[Event] = []
    if before:
        events.append(Wrote(call.call_id, before, call.command, view.number_of(call.call_id)))
    written = [write.key for write in call.reading.writes]
    authored = [part for part in call.reading.authored if written.count(part.key) == 1]
    if authored:
        events.append(authored_event(call.call_id, call.command, authored, view, policy))
    return events


def judge_call(
    view: View, call: Call, policy: Policy, *, session_tag: str, exit_code: int, index: LineIndex | None
) -> tuple[Reply, list[Event]]:
    """The reply to a call and what to log of it; `view` already knows `written_first`."""
    again = answer_again(view, call, policy, session_tag=session_tag, exit_code=exit_code)
    if again is None:
        judgement = decide(view, call, policy, session_tag, index)
        again = compose(view, call, judgement, policy, session_tag=session_tag, exit_code=exit_code)
    reply, delivered = again
    if policy.clip is not None:
        delivered = clip(delivered, policy.clip.kept(delivered.text))
    events: list[Event] = [delivered]
    _, after = split_writes(call.reading) if call.reading.writes else ((), ())
    if after:
        events.append(Wrote(call.call_id, after, call.command, delivered.call))
    return reply, events


def plain_reply(call: Call, exit_code: int, reason: Reason) -> Reply:
    """All of the output, untouched."""
    return Reply(call.output, exit_code, Outcome.FULL, reason, (Shown(call.output),), call.call_id, 0, call.output)
