"""How an event holds its text: in the smaller of two forms, with the digest that names it.

A session remembers every text. With one emoji in it, a `str` takes four bytes for each character; UTF-8 does not.
"""

from __future__ import annotations

from typing import Any, TypeVar

from readcache.model.text import count_lines, digest

T = TypeVar("T")


class _Stored:
    """A text, with its digest and number of lines once they were needed."""

    __slots__ = ("digest", "form", "lines")

    def __init__(self, text: str) -> None:
        self.form: str | bytes = text if text.isascii() else text.encode("utf-8", "surrogatepass")
        self.digest = ""
        self.lines = -1


class _TextField:
    """The field `text` of an event class."""

    def __init__(self, slot: Any) -> None:
        self.slot = slot

    def __get__(self, event: object, owner: type) -> Any:
        if event is None:
            return self
        form = self.slot.__get__(event, owner).form
        return form if isinstance(form, str) else form.decode("utf-8", "surrogatepass")

    def __set__(self, event: object, text: str) -> None:
        self.slot.__set__(event, _Stored(text))


def stores_text(cls: type[T]) -> type[T]:
    """Class decorator: the dataclass holds its field `text` in this way. To a type checker it stays a `str`."""
    setattr(cls, "text", _TextField(vars(cls)["text"]))  # noqa: B010
    return cls


def digest_of(event: Any) -> str:
    """The digest (`text.digest`) of an event's text, made at most once."""
    stored = _stored(event)
    if not stored.digest:
        stored.digest = digest(event.text)
    return stored.digest


def count_lines_of(event: Any) -> int:
    """How many lines an event's text has, counted at most once."""
    stored = _stored(event)
    if stored.lines < 0:
        stored.lines = count_lines(event.text)
    return stored.lines


def share_digest(event: Any, known: str) -> None:
    """Spares `digest_of(event)` its work: `known` is the digest of that very text."""
    _stored(event).digest = known


def _stored(event: Any) -> _Stored:
    stored: _Stored = type(event).text.slot.__get__(event)
    return stored
