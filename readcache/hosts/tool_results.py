"""Report to a session the results of tools that a host's user defined.

`ShellDirectory` follows the working directory of a persistent shell, if its commands show it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from readcache import Reply, Session, UsageError
from readcache.core.messages.tools import COMMANDS, DIRECTORIES, LinesRead, ToolUse, first_text, lines_read, tool_use
from readcache.core.model.claims import FileLines, is_blob
from readcache.core.model.text import split_lines
from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall
from readcache.transcripts.tools import patch_writes

_STATUS = r"[\[(<]?(?:(?:command|process) [a-z]+ with )?(?:exit|return)[ _]?(?:code|status)?[ :=]+-?\d+[\])>]?\.?"
_HEAD = re.compile(rf"{_STATUS}[ \t]*\n", re.IGNORECASE)
_TAIL = re.compile(rf"(?:\A|\n{{1,2}}){_STATUS}\s*\Z", re.IGNORECASE)
_LONGEST_TAIL = 200  # characters: searching the whole text would try each line


Judge = Callable[[Session, ToolCall], "Reply | None"]  # a user's own function; None: the result stays as it is


KINDS = ("bash", "read", "write", "other", "ignore")


def tool_kinds(given: Mapping[str, str | Judge] | None) -> dict[str, str | Judge]:
    """Return the user's kinds of tools, by name. Raise UsageError for a kind that does not exist."""
    for name, kind in (given or {}).items():
        if kind not in KINDS and not callable(kind):
            raise UsageError(f"invalid kind {kind!r} of the tool {name}: use {', '.join(KINDS)} or a function")
    return dict(given or {})


def answer_tool(session: Session, call: ToolCall, kind: str | Judge | None = None) -> Reply | None:
    """Return the session's reply to a call, or None if the result stays as it is.

    `kind`: the tool's kind as given by the user, instead of the kind that its name and arguments show (see `ToolUse`),
    or a function of the user's own. The reply is unconfirmed until the session gets a list that contains it. A user's
    function may confirm it immediately.
    """
    if callable(kind):
        return kind(session, call)
    arguments = call.arguments if isinstance(call.arguments, Mapping) else {}
    use = tool_use(call.name, arguments)
    kind = kind or use.kind
    command = use.command or first_text(arguments, COMMANDS)
    if kind == "ignore":
        return None
    if kind == "write" and (use.path is not None or use.patch is not None):
        if not call.is_error:
            _tell_writes(session, use, call.call_id)
        return None
    if kind == "bash" and command is not None:
        where = call.cwd or first_text(arguments, DIRECTORIES)
        is_complete = call.complete and not call.is_error  # an error's text may be the framework's own
        frame = call.frame or without_status
        call = replace(call, asked=AskedCommand(command), cwd=where, complete=is_complete, frame=frame)
    elif kind == "read" and use.path is not None:
        read = LinesRead(*call.lines, numbered=False) if call.lines else lines_read(arguments, call.output)
        read = LinesRead(1, None, numbered=False) if read is None and call.is_error else read
        call = call if read is None else replace(call, asked=AskedRead(_on_disk(session, use.path), *read))
    return session.answer(call, commit=False)


def _tell_writes(session: Session, use: ToolUse, call_id: str) -> None:
    if use.path is not None:
        session.wrote(_on_disk(session, use.path), content=use.content, call_id=call_id)
    for written in patch_writes(use.patch or "", session.root):
        session.wrote(written.path, call_id=call_id)


def without_status(text: str) -> tuple[str, str, str]:
    """Return (head, body, tail). A line like `Exit code: 1` at the start or the end comes from the tool, not the
    command."""
    head = found.end() if (found := _HEAD.match(text)) else 0
    found = _TAIL.search(text, max(head, len(text) - _LONGEST_TAIL))
    tail = found.start() if found else len(text)
    return text[:head], text[head:tail], text[tail:]


def _on_disk(session: Session, path: str) -> str:
    """Return the path as commands know it. Some tools use paths that start at the project (`/app.py`)."""
    below = os.path.join(session.root, path.lstrip("/"))
    is_virtual = path.startswith("/") and not os.path.exists(path) and os.path.exists(below)
    return below if is_virtual else path


def with_numbers(call: ToolCall, output: str, session: Session) -> ToolCall:
    """Return the call of a command, with how many blank lines the host removed from the start of its `output`.

    If the output does not start with the file's lines after these, it counts as not complete. The file is read only if
    the command may have printed more lines than the output has.
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


# ------------------------------------------------------------ omitted lines that a host keeps beside a reply
# They are shown again when no session knows the reply any more: its log in memory ended with the process, or readcache
# was switched off.


def lines_left_out(reply: Reply) -> list[list[str]]:
    """Return [marker, its omitted lines] for each marker, in order."""
    return [[marker, "\n".join(lines)] for _, marker, lines in reply.omissions()]


def put_back(text: str, kept: Iterable[Iterable[str]]) -> str:
    """Return the text with the omitted lines instead of their markers."""
    for marker, lines in kept:
        text = text.replace(marker, lines)
    return text


_MAY_MOVE = re.compile(r"\b(?:cd|pushd|popd|source|eval|exec|exit)\b|(?:^|[;&|({]|\s)\.\s")
_CD_FIRST = re.compile(r"\s*cd\s+(?:--\s+)?([\w./+-]+)\s*(?:$|&&|;|\n)")


class ShellDirectory:
    """The working directory of one shell.

    If it becomes unknown, `now` is a directory that contains no other path, so that files read there match no others.
    That ends with a `cd` to an absolute path.
    """

    def __init__(self, root: str) -> None:
        self._root = self.now = os.path.abspath(root)
        self._lost = 0

    def follow(self, command: str, *, restarted: bool = False) -> None:
        """Record that a command has ended, with any outcome. A leading `cd` to an existing directory is followed.
        `restarted`: the shell is a new one now."""
        if restarted:
            self.now = self._root
        if restarted or not _MAY_MOVE.search(command):
            return
        first = _CD_FIRST.match(command)
        there = os.path.normpath(os.path.join(self.now, first[1])) if first is not None else ""
        if first is not None and os.path.isdir(there) and not _MAY_MOVE.search(command[first.end() :]):
            self.now = there
        else:
            self._lost += 1
            self.now = os.path.join(self._root, f"?{self._lost}")
