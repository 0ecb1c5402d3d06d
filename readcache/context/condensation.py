"""Apply condensations: each says, as data, how a conversation was shortened.

A condensation names messages and does not count them. So it can be applied to the harness's whole list, also after the
harness inserted, edited or moved messages.

    view_of(messages, [Condensation(id="1", why="compacted", forgotten=frozenset({"call:c1"}))])

`view_of` is a pure fold. `MessageView` keeps its result. A `Compactor` makes condensations, and so may a harness.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from readcache.context.changes import Change, Names, changed
from readcache.context.formed import repaired_each, sendable, shows_blocks
from readcache.core.messages.blocks import Raw
from readcache.core.messages.editing import user_message
from readcache.core.messages.messages import Message, normalise_one, raw_messages
from readcache.core.model.errors import UsageError
from readcache.core.model.text import digest

VERSION = 1  # of the form of a condensation


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensation:
    """One shortening of a conversation.

    - `forgotten`: names of messages (see `message_names`) that are gone. An unknown name has no effect.
    - `summary`: a text of the user that follows the message `after`; "" is the front of the list.
    - `restored`: the ID of a restored section that follows the summary. `section`: its text, which the log has, too.
    - `changes`: splices in the messages that stay.
    - `why`: "compacted", "pruned", "cleared", "mended" or "truncated".
    - `replaced`: the digest of the forgotten messages that the summary replaces (see `MessageView.digest_of`); "" if
      unknown. If the list has other messages under these names, the condensation is not applied.

    Raise UsageError if only one of `summary` and `after` is given, or a section without its ID.
    """

    id: str
    version: int = VERSION
    why: str
    forgotten: frozenset[str] = frozenset()
    summary: str | None = None
    after: str | None = None
    restored: str | None = None
    section: str | None = None
    changes: tuple[Change, ...] = ()
    tokens_saved: int = 0
    replaced: str = ""

    def __post_init__(self) -> None:
        if self.restored is None and (self.summary is None) != (self.after is None):
            raise UsageError(f"condensation {self.id!r}: give both summary and after, or neither")
        if (self.restored is not None and self.after is None) or (self.section is not None and self.restored is None):
            raise UsageError(f"condensation {self.id!r}: a restored section needs its ID, and after")

    @property
    def is_empty(self) -> bool:
        """True if it changes nothing."""
        return not (self.forgotten or self.summary or self.restored or self.changes)

    def texts(self) -> list[tuple[str, str]]:
        """Return the (name, text) of each message that it inserts, in order."""
        texts = ((f"{self.id}-summary", self.summary), (f"{self.id}-restored", self.section))
        return [(name, text) for name, text in texts if text]

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {**asdict(self), "forgotten": sorted(self.forgotten), "changes": [asdict(each) for each in self.changes]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Condensation:
        """Return the condensation that `to_dict` turned into data. Raise UsageError if it is not of this version or
        not complete."""
        version = data.get("version")
        if version != VERSION:
            raise UsageError(f"condensation {data.get('id')!r} has the unknown version {version!r}; upgrade readcache")
        try:
            changes = tuple(Change(**change) for change in data.get("changes", ()))
            known = {field.name: data[field.name] for field in fields(cls) if field.name in data}
            return cls(**{**known, "forgotten": frozenset(data.get("forgotten", ())), "changes": changes})
        except TypeError as error:
            raise UsageError(f"condensation {data.get('id')!r} cannot be read: {error}") from None

    def apply(self, messages: Sequence[Raw]) -> list[Raw]:
        """Return the messages as they are after it; see `view_of`."""
        return view_of(messages, [self])


def view_of(messages: Sequence[Raw], condensations: Iterable[Condensation]) -> list[Raw]:
    """Return the messages as they are after these condensations, in order. The list is well formed.

    A condensation is not applied if its version is unknown, if it lacks a text, if its summary follows an unknown
    message, or if the summary replaces other messages. Neither are the ones after it: then more is shown. Return the
    same list object if nothing changed.
    """
    view = MessageView(messages, condensations)
    out = view.messages
    if isinstance(messages, list) and len(out) == len(messages) and all(map(_is, out, messages)):
        return messages
    return out


def _is(one: object, other: object) -> bool:
    return one is other


@dataclass(slots=True)
class _Entry:
    """A message of the whole list, or an inserted text. `message`: None if it was forgotten."""

    name: str
    message: Message | None


class MessageView:
    """A conversation with its condensations: the whole list, and what is left of it.

    - `extend(new)` adds messages at the end of the whole list. It costs as much as the messages are long.
    - `condense(condensation)` applies one more condensation. It costs as much as the whole list is long.
    - `messages` is the list to send. `requested` is True if somebody requested a compaction that was not made yet.
    - `waiting` has the condensations that could not be applied.
    """

    def __init__(self, messages: Iterable[Raw | Message] = (), condensations: Iterable[Condensation] = ()) -> None:
        self.requested = False
        self.condensations: list[Condensation] = []  # the applied ones
        self.waiting: list[Condensation] = []
        self._entries: list[_Entry] = []
        self._names = Names()
        self.samples: list[Message] = []  # messages that show the API's shape
        self._forgotten = set[str]()
        self._changes: dict[str, list[tuple[Change, ...]]] = {}  # by name; a group for each condensation
        self._left: list[Message] | None = None  # caches
        self._sent: list[Message] | None = None
        self.extend(messages)
        for condensation in condensations:
            self.condense(condensation)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_left": None, "_sent": None}

    def extend(self, new: Iterable[Raw | Message]) -> None:
        """Add messages at the end of the whole list."""
        for given in new:
            message = given if isinstance(given, Message) else normalise_one(given)
            self._sample(message)
            name = self._names.name(message)
            entry = _Entry(name, replace(message, name=name))
            self._entries.append(entry)
            for changes in self._changes.get(entry.name, ()):
                entry.message = changed(entry.message or message, changes)
            if entry.name in self._forgotten:
                entry.message = None
        self._left = self._sent = None
        waiting, self.waiting = self.waiting, []
        for condensation in waiting:
            self._apply(condensation)

    def renew(self, newer: Mapping[int, Message]) -> None:
        """Take over what the harness changed beside the texts, such as marks for the prompt cache. `newer`: the new
        message by the `id` of the old `raw`."""
        for entry in self._entries:
            if entry.message is not None and (new := newer.get(id(entry.message.raw))) is not None:
                entry.message = replace(new, name=entry.name)
        self._left = self._sent = None

    def condense(self, condensation: Condensation) -> None:
        """Apply a condensation. If the view has a request, the condensation fulfils it."""
        self.requested = False
        self._apply(condensation)

    def digest_of(self, names: Collection[str]) -> str:
        """Return the digest of what the messages with these names say; "" if there are none."""
        said = [
            (entry.message.role, entry.message.parts)
            for entry in self._entries
            if entry.message is not None and entry.name in names
        ]
        return digest(repr(said)) if said else ""

    def _apply(self, new: Condensation) -> None:
        at = self._index_after(new.after)
        is_complete = new.version == VERSION and (new.restored is None) == (new.section is None)
        is_complete = is_complete and new.replaced in ("", self.digest_of(new.forgotten))
        if self.waiting or at is None or not is_complete:
            self.waiting.append(new)
            return
        self.condensations.append(new)
        groups: dict[str, list[Change]] = {}
        for change in new.changes:
            groups.setdefault(change.name, []).append(change)
        for entry in self._entries:
            if entry.name in new.forgotten:
                entry.message = None
            elif entry.message is not None and entry.name in groups:
                entry.message = changed(entry.message, groups[entry.name])
        self._forgotten |= new.forgotten
        for name, changes in groups.items():
            self._changes.setdefault(name, []).append(tuple(changes))
        inserted = [_Entry(name, replace(user_message(text, self.samples), name=name)) for name, text in new.texts()]
        self._entries[at:at] = [entry for entry in inserted if entry.name not in self._forgotten]
        self._left = self._sent = None

    def _index_after(self, name: str | None) -> int | None:
        """Return the index after the entry of that name. Return None if there is none."""
        if not name:
            return 0
        return next((at for at, entry in enumerate(self._entries, 1) if entry.name == name), None)

    def _sample(self, message: Message) -> None:
        has_shape, has_blocks = user_message("", [message]).raw != _PLAIN, shows_blocks([message])
        known = any(shows_blocks([each]) for each in self.samples)
        if (has_blocks and not known) or (has_shape and user_message("", self.samples).raw == _PLAIN):
            self.samples.append(message)

    @property
    def left(self) -> list[Message]:
        """The messages that are left, each with its name, before messages of one speaker are joined."""
        if self._left is None:
            there = [entry.message for entry in self._entries if entry.message is not None]
            self._left = [message for message in repaired_each(there) if message is not None]
        return self._left

    @property
    def sent(self) -> list[Message]:
        """The messages to send, in one shape for any API."""
        if self._sent is None:
            given = [entry.message for entry in self._entries]
            is_given = len(self.left) == len(given) and all(map(_is, self.left, given)) and not self.condensations
            self._sent = self.left if is_given else sendable(self.left, self.samples)
        return self._sent

    @property
    def messages(self) -> list[Raw]:
        """The messages to send, as the harness wrote them."""
        return raw_messages(self.sent)


_PLAIN = user_message("", ()).raw
