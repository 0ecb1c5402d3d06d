"""What OpenHands' tools gave, told to a session: the terminal, and any other.

The terminal is known by its action's class, by name, so that tools that are derived from it are known too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from readcache import Reply, Session
from readcache.core.messages.tools import tool_use
from readcache.core.model.tool_call import AskedCommand, ToolCall
from readcache.hosts.tool_results import answer_tool
from readcache.transcripts.openhands import TRUNCATED

# A terminal whose shell brackets pastes shows the echo of a command of several lines, then the output, then the next
# prompt's. Where it is not there, blanks and empty lines at both ends of the output were taken off.
_HEAD = re.compile(r"(?:[^\x1b]*\x1b\[\?2004l\x1b\[\?2004h)*[^\x1b]*\x1b\[\?2004l")
_TAIL = re.compile(r"(?:\x1b\[\?2004h)?\s*\Z")
_START = "\x1b[?2004l"  # the control in front of an output, on its first line
_HEADER = re.compile(r"(?:NOTE: [^\n]*\n)?Here's the result of running `cat -n` on [^\n]*:\n")
_MOVES = re.compile(r"\b(?:cd|pushd|popd)\b")


def terminal_frame(text: str) -> tuple[str, str, str]:
    """(controls, output, controls) of what the terminal gave."""
    head = found.end() if (found := _HEAD.match(text)) else 0
    tail = text.rfind("\x1b[?2004h", head)
    end = tail if tail >= 0 and _TAIL.match(text, tail) else len(text)
    return text[:head], text[head:end], text[end:]


def editor_frame(text: str) -> tuple[str, str, str]:
    """(header, numbered lines, "") of the file editor's text."""
    end = found.end() if (found := _HEADER.match(text)) else 0
    return text[:end], text[end:], ""


def reply_to(session: Session, call: Any, event: Any, cwd: str | None) -> tuple[Reply | None, str | None]:
    """The reply to a result, None where that stays as it is; and the directory where the next command starts. `call`:
    the event of the action, None when it was condensed away; `cwd`: where this command started, as far as it is
    known."""
    observation: Any = event.observation
    action: Any = getattr(call, "action", None)
    text: str = observation.text
    kinds = {kind.__name__ for kind in type(action).__mro__}
    batch = str(getattr(call, "llm_response_id", event.id))
    if "TerminalAction" in kinds:
        after = observation.metadata.working_dir
        told = ToolCall(event.tool_call_id, "terminal", action.model_dump(), text, batch)
        if _is_command(action, observation):
            # Parallel commands have a shell each: what does not move ends where it began.
            where = after if after and not _MOVES.search(action.command) else cwd
            told = replace(_reply_to_command(told, observation), asked=AskedCommand(action.command), cwd=where)
        return session.answer(told, commit=False), after or cwd
    if action is None:
        return None, cwd
    given = action.model_dump(mode="json", exclude={"kind"})
    if tool_use(event.tool_name, given).kind != "write" and (len(observation.content) != 1 or not text):
        return None, cwd
    is_error, frame = observation.is_error, editor_frame
    told = ToolCall(event.tool_call_id, event.tool_name, given, text, batch, is_error=is_error, frame=frame)
    return answer_tool(session, told), cwd


def shown_text(reply: Reply | None, text: str) -> str:
    """The text that the model is shown for `text`."""
    if reply is None:
        return text
    return reply.text if text.endswith("\n") else reply.text.removesuffix("\n")  # of a marker that is the last line


def _is_command(action: Any, observation: Any) -> bool:
    """No input to a running command, no look at its output, and no command that was refused."""
    asked = action.command.strip() and not action.is_input and not action.reset
    return bool(asked) and not observation.metadata.prefix and observation.exit_code is not None


def _reply_to_command(call: ToolCall, observation: Any) -> ToolCall:
    status = observation.metadata.exit_code
    head, _, tail = terminal_frame(call.output)
    is_complete = bool(head and tail) and status != -1 and TRUNCATED not in call.output
    return replace(call, exit_code=None if status == -1 else status, complete=is_complete, frame=terminal_frame)


def with_text(event: Any, text: str) -> Any:
    """The event of a result, with another text in it."""
    from openhands.sdk.llm import TextContent

    observation = event.observation.model_copy(update={"content": [TextContent(text=text)]})
    return event.model_copy(update={"observation": observation})


def with_complete_lines(message: dict[str, Any]) -> dict[str, Any]:
    """The message with the terminal's control on a line of its own, so that the first line of an output is known."""
    content = message.get("content")
    if message["role"] != "tool" or not isinstance(content, list):
        return message
    parts = [{**p, "text": p["text"].replace(_START, _START + "\n")} if "text" in p else p for p in content]
    return {**message, "content": parts}


def as_told(event: Any, message: dict[str, Any], repaired: dict[str, Any]) -> Any:
    """The event that gives the mended message, header, suffix and all."""
    if repaired is message:
        return event
    text = "".join(part["text"] for part in repaired["content"] if part["type"] == "text").replace(
        _START + "\n", _START
    )
    if hasattr(event, "summary") and not hasattr(event, "tool_call_id"):
        return event.model_copy(update={"summary": text})
    if not hasattr(event, "observation"):
        return event
    told = with_text(event, text)
    plain: dict[str, Any] = {"is_error": False}  # what these would add is in the text
    if hasattr(told.observation, "metadata"):
        plain["metadata"] = type(told.observation.metadata)()
    return told.model_copy(update={"observation": told.observation.model_copy(update=plain), "extended_content": []})
