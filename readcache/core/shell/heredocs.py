"""Heredocs: where a body ends (manual, "Here Documents")."""

from __future__ import annotations

import re
from dataclasses import dataclass

from readcache.core.shell.syntax import Heredoc

_QUOTES = re.compile(r"['\"\\]")


@dataclass(slots=True)
class PendingHeredoc:
    """A heredoc whose body is still to come; `index` is its token's; -1 if it is not needed."""

    index: int
    delimiter: str
    heredoc: Heredoc


def pending_heredoc(index: int, op: str, word: str) -> PendingHeredoc:
    """The heredoc that `op` and the delimiter's source `word` announce."""
    return PendingHeredoc(index, _QUOTES.sub("", word), Heredoc("", _QUOTES.search(word) is not None, op == "<<-"))


def read_body(source: str, start: int, one: PendingHeredoc) -> tuple[str, int]:
    """The body that begins at `start`, up to its delimiter or, as bash has it, to the end of the source; and the place
    behind it. Tabs and backslashes are left in it."""
    pos = start
    quoted, strip_tabs = one.heredoc.quoted, one.heredoc.strip_tabs
    while pos < len(source):
        end = _line_end(source, pos)
        while not quoted and end < len(source) and _is_continued(source, pos, end):
            end = _line_end(source, end + 1)
        line = source[pos:end] if quoted else source[pos:end].replace("\\\n", "")
        if (line.lstrip("\t") if strip_tabs else line) == one.delimiter:
            return source[start:pos], min(end + 1, len(source))
        pos = end + 1
    body = source[start:]
    return (body if not body or body.endswith("\n") else body + "\n"), len(source)


def _line_end(source: str, pos: int) -> int:
    end = source.find("\n", pos)
    return len(source) if end < 0 else end


def _is_continued(source: str, start: int, end: int) -> bool:
    """True if an odd number of backslashes stands before `end`, from `start` on."""
    pos = end
    while pos > start and source[pos - 1] == "\\":
        pos -= 1
    return (end - pos) % 2 == 1
