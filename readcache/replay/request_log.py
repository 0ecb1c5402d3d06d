"""The requests of a conversation, and which of them carried what."""

from __future__ import annotations

from collections.abc import Mapping

from readcache.replay.bills import Bill, Stay
from readcache.replay.prices import ModelPrices
from readcache.transcripts.records import RecordedCall, RequestSent


class RequestLog:
    """Which requests carried what."""

    def __init__(self) -> None:
        self._sent: list[RequestSent] = []
        self._added: list[int] = []
        self._cuts: set[int] = set()
        self._new = 0  # characters that came since the last request
        self._live: dict[str, tuple[int, dict[str, int]]] = {}
        self._stays: dict[str, list[Stay]] = {}

    def sent(self, request: RequestSent) -> None:
        """One more request, with all that came since the last one."""
        self._sent.append(request)
        self._added.append(self._new + request.added)
        self._new = 0

    def call(self, call: RecordedCall, saved: Mapping[str, int]) -> None:
        """A result, which stands in the next request."""
        self._new += len(call.output)
        if any(saved.values()):
            self._live[call.call_id] = len(self._sent), dict(saved)

    def cut(self, kept: frozenset[str]) -> None:
        """All but these results are gone."""
        self._cuts.add(len(self._sent))
        for name in [name for name in self._live if name not in kept]:
            first, saved = self._live.pop(name)
            for policy, chars in saved.items():
                self._stays.setdefault(policy, []).append(Stay(chars, first, len(self._sent)))

    def bill(self, prices: ModelPrices | None) -> Bill:
        """What the requests cost. `prices`: None where they are not known."""
        self.cut(frozenset())
        return Bill(self._sent, self._added, frozenset(self._cuts), prices)

    def stays(self, policy: str) -> list[Stay]:
        """What this policy left out, and which requests it would have stood in."""
        return [stay for stay in self._stays.get(policy, []) if stay.chars]
