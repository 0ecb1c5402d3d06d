"""The errors that a caller of this package can meet. The agent's tool never sees one of them.

Three classes, so that a harness can tell whose fault it was (the split is h11's): the caller's (`UsageError`), the
outside world's (`StoreError`); everything shares `ReadcacheError`. The text says what happened, to which path, and
what to do.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see readcache/__init__.py
if TYPE_CHECKING:
    from collections.abc import Iterable


class ReadcacheError(Exception):
    """Anything this package raises on purpose."""


class UsageError(ReadcacheError, ValueError):
    """The caller passed an invalid value; nothing was changed."""


class StoreError(ReadcacheError):
    """The store could not be opened, read or written; the session goes on and shows every byte."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What is added to a complaint about an unknown name: the known one that is most like it; "" for none."""
    from difflib import get_close_matches

    near = get_close_matches(word, [*known], 1)
    return f" (did you mean {near[0]}?)" if near else ""
