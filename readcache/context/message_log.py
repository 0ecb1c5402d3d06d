"""The message list that a compactor works on, kept in the session's store for a process that comes after a crash.

It is stored in a context of its own, beside the reader's events: no view is folded from it, and no look-up for a single
call meets it. A failure of ours is counted, and costs the record and never the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from readcache.messages.messages import Message, Raw, normalise, normalise_one, plain
from readcache.model.errors import StoreError
from readcache.model.events import Compacted, Failed, Listed

if TYPE_CHECKING:
    from readcache.log.log import Log


class MessageLog:
    """The list as it was last, each message of it read once. Events that the store does not take are kept, and appended
    with the next ones."""

    def __init__(self, log: Log) -> None:
        self._log, self._context = log, (log.session_id, f"{log.agent_id}/list")
        self._is_loaded = False  # has what the store held before been read?
        self._messages: list[Message] = []
        self._later: list[Listed] = []

    def load(self) -> list[Message]:
        """The messages; those of earlier processes are read from the store, as soon as it can be read. An empty one
        stands where the store could not hold it."""
        stored = None if self._is_loaded else self._stored()
        if stored is not None:
            self._is_loaded, self._messages = True, normalise(stored)
        return self._messages

    def take(self, messages: Sequence[Raw]) -> list[Message]:
        """Reads the harness's list and records what is new, changed or gone in it."""
        try:
            pairs = zip_longest(self.load()[: len(messages)], messages)
            read = [m if m is not None and _holds(m.raw, raw) else normalise_one(plain(raw)) for m, raw in pairs]
            self.record(read)
            return read
        except Exception as error:  # a list that cannot be compared or copied is compacted all the same
            self._log.fail("", error)
            return normalise(messages)

    def record(self, messages: Sequence[Message]) -> None:
        """Records that these are the messages now."""
        pairs = enumerate(zip_longest(messages, self._messages))
        changed = [Listed(at, None if new is None else new.raw) for at, (new, old) in pairs if new is not old]
        self._messages = list(messages)
        if self._is_loaded:  # else what the store holds before these is not known: they are recorded when it is
            self._append(changed)

    def _stored(self) -> list[Raw] | None:
        """What the store holds; None when it cannot be read."""
        listed: dict[int, Raw] = {}
        try:
            for record in self._log.store.records(*self._context):
                event = record.event
                if isinstance(event, Failed | Compacted):  # a list with a hole is useless
                    raise StoreError(getattr(event, "detail", "the session has been removed from the store"))
                if isinstance(event, Listed) and event.message is not None:
                    listed[event.at] = event.message
                elif isinstance(event, Listed):
                    listed.pop(event.at, None)
        except StoreError as error:
            self._log.fail("", error)
            return None
        return [listed.get(at, {}) for at in range(max(listed, default=-1) + 1)]

    def _append(self, events: Sequence[Listed]) -> None:
        """Stores these events in one transaction. A message that is not JSON is not stored."""
        from readcache.log.store.codec import is_storable  # importing this module must load no store

        with self._log.lock:
            for event in events:
                is_json = is_storable(event)
                self._later.append(event if is_json else Listed(event.at))
                if not is_json:
                    self._log.fail("", StoreError("a message is not JSON: it is kept in memory only"))
            try:
                if self._later:
                    self._log.store.append(*self._context, self._later, self._log.clock())
                self._later = []
            except StoreError as error:
                self._log.fail("", error)


def _holds(known: Raw, message: Raw) -> bool:
    """True if the message is what it was when the copy `known` of it was made."""
    return known == message or known == plain(message)
