"""Names of messages, and changes of their texts: the parts of a `Condensation`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from readcache.core.messages.blocks import Raw, as_mapping
from readcache.core.messages.editing import with_arguments, with_result_texts, with_texts, without_images
from readcache.core.messages.messages import Kind, Message, Part, normalise, normalise_one
from readcache.core.model.text import digest

IMAGES = -1  # the `part` of a change that replaces all images of a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A splice: `note` replaces the characters `first` to `last` (from 0, exclusive) of one text of a message.

    `part`: the index of the part in the message (`IMAGES`: all its images). `key`: the argument, if the part is a call.
    `digest`: the digest of the whole text before the splice. A text with another digest stays as it is.
    """

    name: str
    part: int
    first: int
    last: int
    note: str
    digest: str
    key: str = ""


# ---------------------------------------------------------------- names


class Names:
    """Gives each message of a growing list its name."""

    def __init__(self) -> None:
        self._found = Counter[str]()

    def name(self, message: Message) -> str:
        """Return the name of the next message."""
        base = _base_name(message)
        self._found[base] += 1
        return base if self._found[base] == 1 else f"{base}#{self._found[base]}"


def message_names(messages: Sequence[Raw | Message]) -> list[str]:
    """Return a name for each message, all different. Messages that are appended do not change the names.

    It is the message's own ID. Without one, it is the ID of its first call or result, such as `call:c1` and
    `result:c1`, otherwise a digest of what it says. From its second occurrence on, a name ends with `#2` and so on.
    """
    names = Names()
    return [names.name(message) for message in normalise(messages)]


def _base_name(message: Message) -> str:
    own = (as_mapping(message.raw) or {}).get("id")
    if isinstance(own, str) and own:
        return own
    named = next((p for p in message.parts if p.call_id and p.kind in (Kind.CALL, Kind.RESULT)), None)
    if named is not None:
        return f"{named.kind.value}:{named.call_id}"
    said = [message.role, *(text for part in message.parts for text in (part.kind.value, part.name, part.text))]
    return f"text:{digest(chr(0).join(said))[:16]}"


# ---------------------------------------------------------------- changes of a message


def changed(message: Message, changes: Iterable[Change]) -> Message:
    """Return the message with these changes. A change that does not fit is skipped: then more is shown."""
    splices = defaultdict[tuple[int, str], list[Change]](list)
    for change in changes:
        if change.part == IMAGES:
            message = _update(message, without_images(message.raw, change.note))
        else:
            splices[change.part, change.key].append(change)
    raw, parts = message.raw, message.parts
    for (at, key), found in splices.items():
        if not 0 <= at < len(parts):
            continue
        text = _text_of(parts[at], key)
        if text is not None and all(change.digest == digest(text) for change in found):
            raw = _with_text(raw, parts, at, key, _spliced(text, found))
    return _update(message, raw)


def _update(message: Message, raw: Raw) -> Message:
    return message if raw is message.raw else normalise_one(raw)


def _text_of(part: Part, key: str) -> str | None:
    if part.kind is not Kind.CALL:
        return part.text
    value = (part.arguments or {}).get(key)
    return value if isinstance(value, str) else None


def _spliced(text: str, changes: Iterable[Change]) -> str:
    for change in sorted(changes, key=lambda each: each.first, reverse=True):
        text = text[: change.first] + change.note + text[change.last :]
    return text


def _with_text(raw: Raw, parts: Sequence[Part], at: int, key: str, text: str) -> Raw:
    """Return the message with another text of its part `at`."""
    part = parts[at]
    if part.kind is Kind.CALL:
        return with_arguments(raw, part.call_id, {**(part.arguments or {}), key: text}, part.nth)
    if part.kind is Kind.RESULT:
        found = (part.call_id, part.nth, part.text)
        return with_result_texts(raw, lambda *result: text if result == found else None)
    nth = sum(before.kind is Kind.TEXT for before in parts[:at]) if part.kind is Kind.TEXT else -1
    visited = iter(range(len(parts)))
    return with_texts(raw, lambda old: text if next(visited, -1) == nth and old == part.text else old)
