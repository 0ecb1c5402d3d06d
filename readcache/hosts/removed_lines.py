"""Blank lines that a host removes from the start of a command's output, as Claude Code and Gemini CLI do."""

from __future__ import annotations

from dataclasses import replace

from readcache import Session
from readcache.core.model.claims import FileLines, is_blob
from readcache.core.model.text import split_lines
from readcache.core.model.tool_call import AskedCommand, ToolCall


def with_numbers(call: ToolCall, output: str, session: Session) -> ToolCall:
    """Return the call of a command, with the facts about the line numbers of its `output`.

    The host removes blank lines from the start of an output. The returned call has the number of removed lines. If that
    number is unknown, the call's output is marked as not complete. The file is read only if the command may have
    printed more lines than `output` has.
    """
    asked = call.asked
    if not isinstance(asked, AskedCommand):
        return call
    claims = session.reading(asked.command, call.cwd).claims
    first = claims[0] if claims else None
    if not isinstance(first, FileLines) or first.sep is not None or first.lines is None or is_blob(first.keys[0]):
        return call
    shown, (start, end) = split_lines(output), first.lines
    if not shown or not shown[0].strip() or (len(claims) == 1 and end is not None and len(shown) > end - start):
        return call
    asked_first = session.read(first.keys[0], start=start, end=start, fresh=True).text
    if not asked_first or asked_first.strip():
        return call
    there = split_lines(session.read(first.keys[0], start=start, end=end, fresh=True).text)
    skipped = next((at for at, line in enumerate(there) if line.strip()), len(there))
    if shown[0] not in there[skipped : skipped + 1]:
        return replace(call, complete=False)
    return replace(call, asked=replace(asked, skipped=skipped))
