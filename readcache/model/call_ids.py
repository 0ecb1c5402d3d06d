"""The calls that ids of the harness mean, as far as the log tells: some models count from 0 in each response."""

from __future__ import annotations

from readcache.model.events import Compacted, Forgot


class CallIds:
    """A fold of the log beside the view's."""

    def __init__(self) -> None:
        self.reused: set[str] = set()  # ids that more than one call had: they do not say which one is meant
        self.doubted: set[str] = set()  # calls that are not visible, and may be in the conversation all the same
        self._numbers: dict[str, int] = {}  # id -> number of the newest call that had it, whatever became of that

    def deliver(self, call_id: str, number: int, *, is_other: bool, is_again: bool) -> None:
        """Take in a delivery. See `name`."""
        self.name(call_id, number, is_other=is_other, is_again=is_again)
        self.doubted.discard(call_id)

    def name(self, call_id: str, number: int, *, is_other: bool, is_again: bool) -> None:
        """Give the id to call `number`. `is_again`: it is the same call as before. `is_other`: another call's text has
        the id."""
        if not is_again and (is_other or self._numbers.get(call_id, number) != number):
            self.reused.add(call_id)
        self._numbers[call_id] = number

    def kept(self, event: Compacted) -> frozenset[str]:
        """Take in a compaction. Return the ids that name calls which it certainly kept."""
        self.doubted.clear()
        return event.kept - self.reused

    def forget(self, event: Forgot) -> None:
        """Take in that calls left the conversation, or may have left it."""
        self.doubted = (self.doubted | event.call_ids) if event.doubted else (self.doubted - event.call_ids)
