"""Answer `register.js`, the plugin in Claude Code. A result is judged as the text that the model will read.

The plugin proves each marker itself: it inserts one only if the texts given here are still in the conversation, above
the call. `needs_of` finds these texts.
"""

from __future__ import annotations

import os
import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from readcache import Outcome, Reply, Session, Sessions
from readcache.core.messages.tools import LINE_NUMBER
from readcache.core.model.events import Delivered, Origin
from readcache.core.model.spec.lines import is_same_line
from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall
from readcache.hosts.claude_code.proof import MAY_MOVE, TranscriptProof, session_of
from readcache.hosts.claude_code.results import MOST_SHOWN, names_true_lines, proven_reply, tell_write
from readcache.hosts.restored import fitting_plan
from readcache.hosts.tool_results import with_numbers
from readcache.process import failures
from readcache.transcripts.claude_code import MOVED_BACK, STATUS, WRITERS
from readcache.transcripts.tools import bare

Event = Mapping[str, Any]
MOST_RESTORED = 200_000  # bytes
_MOST_FAILED = 10_000  # characters of a failed command's text; Claude Code drops the middle of longer ones
_MOST_LINES = 2000  # shown by a Read without a limit
_NUMBER = re.compile(LINE_NUMBER, re.MULTILINE)
# Read shows a number after the last newline of a file, although the file has no line there.
_BEHIND_THE_END = re.compile(r"\n *\d+\t?\Z")
# Texts that Claude Code shows instead of a command's output: a preview, or where a background command writes it.
_NOT_OUTPUT = re.compile(r"<persisted-output>|.*\b[Cc]ommand .*running in (?:the )?background")
# Claude Code does not count exit status 1 of these commands as a failure, and does not report it.
_MAY_SAY_NO = re.compile(r"\b(?:e?grep|fgrep|rg|find|diff|test|cmp|git)\b|\[")


def answer_plugin(event: Event, sessions: Sessions, own_files: Callable[[Session], list[str]]) -> dict[str, Any] | None:
    """Return the answer to one event of the plugin, or None to change nothing. `own_files` returns the paths of the
    files that Claude Code itself restores after a compaction."""
    name, call_id, reader = event["hook_event_name"], event.get("tool_use_id", ""), event.get("agent_id") or "main"
    _take_told(event, sessions)
    if name == "Forked":
        sessions.fork(event["session_id"], reader, parent=event.get("parent_id") or "main", inherit=True)
        return None
    session = session_of(event, sessions)
    if name == "ToolResult" and not session.view.is_visible(call_id):  # if visible, a readcache hook has answered it
        return _shortened(event, session)
    if name == "Compacted":
        plan = fitting_plan(session, own_files(session), MOST_RESTORED)
        session.compacted(keep=event["kept"], restored=plan)
        return {"text": plan.render()} if plan.items else None
    return None


def _take_told(event: Event, sessions: Sessions) -> None:
    """Record what the plugin reports about earlier calls.

    `errors`: errors of the plugin itself. `settled`: the texts that were shown for readcache's replies. `missed`:
    results about which the plugin could not ask. `lost`: how many results are never judged, and why.
    """
    for text, count in event.get("errors", ()):
        failures.note(event["session_id"], "claude-code plugin", f"{text} ({count} times)" if count > 1 else text)
    for shown in event.get("settled", ()):
        there = sessions.get(shown.get("session_id") or event["session_id"], shown.get("agent_id") or "main")
        if not there.view.is_visible(shown["tool_use_id"]):
            continue
        if "text" in shown:
            there.settle(shown["tool_use_id"], shown["text"])
        elif shown["tool_use_id"] in there.view.waiting:
            there.commit(shown["tool_use_id"])
    for missed in event.get("missed", ()):
        session = session_of(missed, sessions)
        if not session.view.is_visible(missed["tool_use_id"]) and (call := _call_of(missed, session)):
            reply = session.answer(call, commit=False)
            session.settle(reply.call_id, reply.full_text)
    for why, count in event.get("lost", ()):
        session_of(event, sessions).missed(count, why)


def _shortened(event: Event, session: Session) -> dict[str, Any] | None:
    """Return the text with markers, and the texts that must be in the conversation for them. Return None if the result
    must be shown in full."""

    def is_proven(reply: Reply) -> bool:
        is_known = all(map(session.view.is_visible, _sources(reply))) and names_true_lines(reply, event, session)
        requests = TranscriptProof({**event, "agent_id": event.get("recorded_by")})
        return is_known and not requests.may_have_removed(event["since"] / 1000)

    is_confirmed_later = "missed" in event  # a plugin of an earlier version reports only texts that replaced the reply
    call = _call_of(event, session)
    reply = proven_reply(call, is_proven, session, commit=not is_confirmed_later) if call else None
    if reply is None:
        return None
    text = reply.text if event["text"].endswith("\n") else reply.text.removesuffix("\n")
    return {"text": text, "sources": needs_of(reply, session), "recalled": reply.outcome is Outcome.FULL}


def _sources(reply: Reply) -> set[str]:
    return {name for omitted, _, _ in reply.omissions() for name in omitted.sources}


def _call_of(event: Event, session: Session) -> ToolCall | None:
    """Return the call to judge, or None if nothing in the result may be omitted. A call that changes files, or whose
    output is not shown, is only recorded in the session."""
    name = event["tool_name"]
    call = ToolCall(event["tool_use_id"], name, event["tool_input"], event["text"])
    if name == "Bash":
        return _command(event, call, session)
    if event["is_error"]:
        return None
    if name in WRITERS:
        tell_write(call, session)
        return None
    return _read(event["tool_input"], call) if name == "Read" else call


def _command(event: Event, call: ToolCall, session: Session) -> ToolCall | None:
    command, text = event["tool_input"]["command"], event["text"]
    cwd = event.get("began") if MAY_MOVE.search(command) else event["cwd"]
    call = replace(call, asked=AskedCommand(command), cwd=cwd or event["cwd"])
    failed = STATUS.match(text) if event["is_error"] and len(text) < _MOST_FAILED else None
    is_output = bool(failed) if event["is_error"] else not _NOT_OUTPUT.match(text) and len(text) < MOST_SHOWN
    if not is_output or not cwd:
        session.answer(replace(call, output="", complete=False))  # it may have written files
        return None
    head = failed.end() if failed else 0
    tail = text.rfind("\n" + MOVED_BACK)
    end = len(text) if tail < 0 or "\n" in text[tail + 1 :] else tail
    frame = None if (head, end) == (0, len(text)) else lambda text: (text[:head], text[head:end], text[end:])
    code = int(failed[1]) if failed else None if _MAY_SAY_NO.search(command) else 0
    return with_numbers(replace(call, exit_code=code, frame=frame), text[head:end], session)


def _read(given: Mapping[str, Any], call: ToolCall) -> ToolCall | None:
    numbers = [int(found[1]) for found in _NUMBER.finditer(call.output)]
    if not numbers or not os.path.isabs(given["file_path"]):
        return None  # a picture, a notebook, or a note that the file is unchanged
    limit, start = given.get("limit"), numbers[0]
    is_to_the_end = len(numbers) < min(limit or _MOST_LINES, _MOST_LINES)
    end = None if is_to_the_end else start + len(numbers) - 1
    frame = _without_last_number if is_to_the_end else None
    return replace(call, asked=AskedRead(given["file_path"], start, end), frame=frame)


def _without_last_number(text: str) -> tuple[str, str, str]:
    end = found.start() if (found := _BEHIND_THE_END.search(text)) else len(text)
    return "", text[:end], text[end:]


Need = tuple[str, str]  # a call ("" for a restored section), and a text that it must show
_MOST = 100  # spans of one omission; each is searched for in all of its sources


def needs_of(reply: Reply, session: Session) -> list[Need]:
    """Return (call, text) for each span that the markers replace: consecutive whole lines, as that call shows them.

    The call is "" for a restored section, which has no ID. A restored section is needed as a whole. So is a source in
    which the lines are not found.
    """
    found = dict[Need, None]()
    for omitted, _, lines in reply.omissions():
        sources = [delivery.event for name in omitted.sources for delivery in session.view.of_call(name)]
        sections = [delivered for delivered in sources if delivered.origin is Origin.RESTORED]
        spans = [] if sections else _matching_spans(lines, sources)
        found.update(
            dict.fromkeys(
                spans or [("" if delivered in sections else delivered.call_id, delivered.text) for delivered in sources]
            )
        )
    return list(found)


def _matching_spans(lines: Sequence[str], sources: Sequence[Delivered]) -> list[Need]:
    """Return spans of the sources that together are the lines. Empty if the lines are not found, or need too many
    spans."""
    found, texts = list[Need](), [_Source(delivered) for delivered in sources]
    while lines and len(found) < _MOST:
        pairs = [(source.longest_match(lines), source.name) for source in texts]
        longest, name = max(pairs, key=lambda pair: len(pair[0]), default=([], ""))
        if not longest:
            return []
        found.append((name, "\n".join(longest)))
        lines = lines[len(longest) :]
    return [] if lines else found


class _Source:
    """The text that one delivery shows, split into lines."""

    def __init__(self, delivered: Delivered) -> None:
        self.name, self._lines = delivered.call_id, delivered.text.split("\n")
        self._forms = [_joined(self._lines), _joined(map(bare, self._lines))]

    def longest_match(self, wanted: Sequence[str]) -> list[str]:
        """Return the longest run of its lines that equals the first of the wanted lines. The line numbers before the
        lines may differ."""
        found = (
            self._first(form, lines) for form, lines in zip(self._forms, (wanted, [*map(bare, wanted)]), strict=True)
        )
        return max((match for match in found if all(map(is_same_line, wanted, match))), key=len, default=[])

    def _first(self, form: str, wanted: Sequence[str]) -> list[str]:
        counts = range(1, len(wanted) + 1)  # of lines; if some lines occur, so do fewer of them
        fits = bisect(counts, False, key=lambda count: _joined(wanted[:count]) not in form)
        at = form.count("\n", 0, form.find(_joined(wanted[:fits])))
        return self._lines[at : at + fits] if fits else []


def _joined(lines: Sequence[str] | Iterator[str]) -> str:
    return "\n".join(["", *lines, ""])
