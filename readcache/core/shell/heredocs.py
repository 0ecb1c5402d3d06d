"""Heredocs: find the end of a body (manual, "Here Documents")."""

from __future__ import annotations

import re
from dataclasses import dataclass

from readcache.core.shell.syntax import Heredoc

_QUOTES = re.compile(r"['\"\\]")


@dataclass(slots=True)
class PendingHeredoc:
    """A heredoc whose body has not been read yet.

    `index` is the index of its token, or -1 if the token is not needed.
    """

    index: int
    delimiter: str
    heredoc: Heredoc


def pending_heredoc(index: int, op: str, word: str) -> PendingHeredoc:
    """Return the heredoc that `op` and the delimiter's source `word` announce. `index` is the index of its token."""
    return PendingHeredoc(index, _QUOTES.sub("", word), Heredoc("", _QUOTES.search(word) is not None, op == "<<-"))


def read_body(source: str, start: int, one: PendingHeredoc) -> tuple[str, int]:
    """Return the body that begins at `start`, and the position after its delimiter.

    The body ends before the delimiter or, as in bash, at the end of the source. It keeps its tabs and backslashes.
    """
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
    """Return True if an odd number of backslashes comes before `end`, counted from `start` on."""
    pos = end
    while pos > start and source[pos - 1] == "\\":
        pos -= 1
    return (end - pos) % 2 == 1
