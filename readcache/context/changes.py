"""Names of messages, and changes of their texts: the parts of a `Condensation`."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from readcache.core.messages.blocks import Raw, as_mapping
from readcache.core.messages.editing import with_arguments, with_result_texts, with_texts, without_images
from readcache.core.messages.messages import Kind, Message, Part, normalise
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
            message = message.with_raw(without_images(message.raw, change.note))
        else:
            splices[change.part, change.key].append(change)
    raw, parts = message.raw, message.parts
    for (at, key), found in splices.items():
        if not 0 <= at < len(parts):
            continue
        text = _texts_of(parts[at]).get(key)
        if text is not None and all(change.digest == digest(text) for change in found):
            raw = _with_text(raw, parts, at, key, _spliced(text, found))
    return message.with_raw(raw)


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


# ---------------------------------------------------------------- changes between two messages

# Pairs of lines that are compared to find several splices of one text. Otherwise one splice has all of them.
MOST_COMPARED = 100_000
_IMAGE_NOTE = re.compile(r"\[PRUNED[^\n\]]*: an image was shown here\]")


def changes_between(old: Message, new: Message) -> tuple[Change, ...]:
    """Return the changes that make `new` of `old`. They may be incomplete if splices cannot express the difference."""
    if old is new or old == new:
        return ()
    found = []
    is_shown = any(part.kind is Kind.IMAGE for part in old.parts) > any(part.kind is Kind.IMAGE for part in new.parts)
    if is_shown and (note := _IMAGE_NOTE.search("\n".join(part.text for part in new.parts))):
        found.append(Change(name=old.name, part=IMAGES, first=0, last=0, note=note[0], digest=""))
    for at, (before, after) in enumerate(zip(changed(old, found).parts, new.parts, strict=False)):
        texts, new_texts = _texts_of(before), _texts_of(after)
        for key in (key for key, text in texts.items() if new_texts.get(key, text) != text):
            seen = digest(texts[key])
            for first, last, note_ in _splices(texts[key], new_texts[key]):
                found.append(Change(name=old.name, part=at, first=first, last=last, note=note_, digest=seen, key=key))
    return tuple(found)


def _texts_of(part: Part) -> Mapping[str, str]:
    """Return the texts of a part that a change may replace, by the change's `key`."""
    if part.kind is not Kind.CALL:
        return {"": part.text}
    return {key: value for key, value in (part.arguments or {}).items() if isinstance(value, str)}


def _splices(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    """Yield (first, last, new text) for each run of lines of `old` that `new` replaces, in characters of `old`."""
    a, b = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (old, new))
    shorter = min(len(a), len(b))
    head = next((at for at in range(shorter) if a[at] != b[at]), shorter)
    tail = next((at for at in range(shorter - head) if a[-1 - at] != b[-1 - at]), shorter - head)
    a_left, b_left = a[head : len(a) - tail], b[head : len(b) - tail]
    runs: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(a_left), 0, len(b_left))]
    if len(a_left) * len(b_left) <= MOST_COMPARED:
        runs = SequenceMatcher(None, a_left, b_left, autojunk=False).get_opcodes()
    starts = [sum(map(len, a[:head]))]
    for line in a_left:
        starts.append(starts[-1] + len(line))
    for what, first, last, new_first, new_last in runs:
        if what != "equal":
            yield _trimmed(old, starts[first], starts[last], "".join(b_left[new_first:new_last]))


def _trimmed(old: str, first: int, last: int, note: str) -> tuple[int, int, str]:
    """Return the splice of the middle of a long line if both ends stay, otherwise the same splice."""
    before = old[first:last]
    head = len(posixpath.commonprefix([before, note]))
    tail = len(posixpath.commonprefix([before[head:][::-1], note[head:][::-1]]))
    if head + tail <= len(note) // 2:
        return first, last, note
    return first + head, last - tail, note[head : len(note) - tail]
