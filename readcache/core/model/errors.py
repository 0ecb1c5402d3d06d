"""The errors that a caller of this package can meet. The agent's tool never sees any of them.

There are three classes, so that a harness can tell who caused the error (the split comes from h11): the caller
(`UsageError`) or the outside world (`StoreError`). `ReadcacheError` is the base of both. The text says what happened,
to which path, and what to do.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see readcache/__init__.py
if TYPE_CHECKING:
    from collections.abc import Iterable


class ReadcacheError(Exception):
    """Any error that this package raises on purpose."""


class UsageError(ReadcacheError, ValueError):
    """An invalid value from the caller. Nothing was changed."""


class StoreError(ReadcacheError):
    """A store that could not be opened, read or written. The session continues and shows every byte."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of an error text about an unknown name: the known name that is most similar to it, or "" if none
    is."""
    from difflib import get_close_matches

    near = get_close_matches(word, [*known], 1)
    return f" (did you mean {near[0]}?)" if near else ""
