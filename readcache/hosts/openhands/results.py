"""Report results of OpenHands' tools to a session: the terminal's, and any other tool's.

The terminal is recognised by the names of its action's classes, so tools derived from it are recognised too.
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

# If the terminal's shell uses bracketed paste, its text has the echo of a command of several lines, then the output,
# then the control of the next prompt. Without these controls, blanks and empty lines were removed from both ends of the
# output.
_HEAD = re.compile(r"(?:[^\x1b]*\x1b\[\?2004l\x1b\[\?2004h)*[^\x1b]*\x1b\[\?2004l")
_TAIL = re.compile(r"(?:\x1b\[\?2004h)?\s*\Z")
_START = "\x1b[?2004l"  # the control before an output, on its first line
_HEADER = re.compile(r"(?:NOTE: [^\n]*\n)?Here's the result of running `cat -n` on [^\n]*:\n")
_MOVES = re.compile(r"\b(?:cd|pushd|popd)\b")


def terminal_frame(text: str) -> tuple[str, str, str]:
    """Return (controls, output, controls) of the terminal's text."""
    head = found.end() if (found := _HEAD.match(text)) else 0
    tail = text.rfind("\x1b[?2004h", head)
    end = tail if tail >= 0 and _TAIL.match(text, tail) else len(text)
    return text[:head], text[head:end], text[end:]


def editor_frame(text: str) -> tuple[str, str, str]:
    """Return (header, numbered lines, "") of the file editor's text."""
    end = found.end() if (found := _HEADER.match(text)) else 0
    return text[:end], text[end:], ""


def reply_to(session: Session, call: Any, event: Any, cwd: str | None) -> tuple[Reply | None, str | None]:
    """Return the reply to a result, or None if the result stays as it is, and the directory in which the next command
    starts.

    `call`: the event of the action, or None if it was condensed away. `cwd`: the directory in which this command
    started, or None if it is not known.
    """
    observation: Any = event.observation
    action: Any = getattr(call, "action", None)
    text: str = observation.text
    kinds = {kind.__name__ for kind in type(action).__mro__}
    batch = str(getattr(call, "llm_response_id", event.id))
    if "TerminalAction" in kinds:
        after = observation.metadata.working_dir
        told = ToolCall(event.tool_call_id, "terminal", action.model_dump(), text, batch)
        if _is_command(action, observation):
            # Parallel commands have a shell each: a command that cannot move ends in the directory where it began.
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
    """Return the text that the model is shown instead of `text`."""
    if reply is None:
        return text
    return reply.text if text.endswith("\n") else reply.text.removesuffix("\n")  # the newline of a final marker


def _is_command(action: Any, observation: Any) -> bool:
    """Return True for a command that ran. Return False for input to a running command, a look at its output, and a
    refused command."""
    asked = action.command.strip() and not action.is_input and not action.reset
    return bool(asked) and not observation.metadata.prefix and observation.exit_code is not None


def _reply_to_command(call: ToolCall, observation: Any) -> ToolCall:
    status = observation.metadata.exit_code
    head, _, tail = terminal_frame(call.output)
    is_complete = bool(head and tail) and status != -1 and TRUNCATED not in call.output
    return replace(call, exit_code=None if status == -1 else status, complete=is_complete, frame=terminal_frame)


def with_text(event: Any, text: str) -> Any:
    """Return the event of a result with another text."""
    from openhands.sdk.llm import TextContent

    observation = event.observation.model_copy(update={"content": [TextContent(text=text)]})
    return event.model_copy(update={"observation": observation})


def with_complete_lines(message: dict[str, Any]) -> dict[str, Any]:
    """Return the message with the terminal's control on a line of its own, so that the first line of an output is a
    complete line."""
    content = message.get("content")
    if message["role"] != "tool" or not isinstance(content, list):
        return message
    parts = [{**p, "text": p["text"].replace(_START, _START + "\n")} if "text" in p else p for p in content]
    return {**message, "content": parts}


def as_told(event: Any, message: dict[str, Any], repaired: dict[str, Any]) -> Any:
    """Return an event that is sent as the repaired message, including header and suffix. Return `event` itself if its
    message needed no repair."""
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
    plain: dict[str, Any] = {"is_error": False}  # the text has already what these would add
    if hasattr(told.observation, "metadata"):
        plain["metadata"] = type(told.observation.metadata)()
    return told.model_copy(update={"observation": told.observation.model_copy(update=plain), "extended_content": []})
