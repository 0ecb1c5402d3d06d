"""What a reader was shown, with nothing left out: reads, re-reads, and what compactions took away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from readcache import Mode, Policy, RestorePlan, Session
from readcache.replay.answers import answer_recorded, show_restored
from readcache.replay.bills import Carried
from readcache.replay.rereads import Rereads, ShownLines
from readcache.replay.tally import DearReread, Tally
from readcache.transcripts.records import HistoryCut, RecordedCall

_GREP = ":-"  # names what `grep -n` puts behind a number: one of the two
_BLOB = "git:"  # begins the keys of what is not a file of the work tree


@dataclass(slots=True)
class _Reread:
    """A call that showed lines again, until it is known how long they were carried."""

    call: RecordedCall
    at: int
    chars: int
    what: str
    saved: dict[str, int]


class Onlooker:
    """A session that omits nothing and tells which file lines each call showed."""

    def __init__(self, name: str) -> None:
        self._session = Session(root="/", policy=Policy(mode=Mode.ADVISE), local=False)
        self._rereads, self._carried = Rereads(), Carried()
        self._counts: Counter[str] = Counter()
        self._open: list[_Reread] = []
        self._where = name
        self.dearest: list[DearReread] = []

    def call(self, call: RecordedCall, saved: Mapping[str, int]) -> bool:
        """True for a read. `saved`: what each policy left out of it."""
        reply = answer_recorded(self._session, call)
        shown = [] if reply is None else self._shown(call.call_id)
        lost, held = self._rereads.after_cut(shown)
        again = self._rereads.add(call.call_id, shown)
        if again:
            self._open.append(_Reread(call, self._carried.calls, again, shown[0].key, dict(saved)))
        self._carried.add(call.call_id, len(call.output), 0, marked=False)
        read = sum(part.chars for part in shown)
        self._counts.update(reads=bool(shown), read=read, bound=again, reread=lost, held=held)
        return bool(shown)

    def _shown(self, call_id: str) -> list[ShownLines]:
        found = []
        for delivery in self._session.view.of_call(call_id):
            event = delivery.event
            if event.origin.value != "result":
                continue
            lines = event.text.split("\n")
            for piece in event.pieces:
                rows = lines[piece.at : piece.at + piece.count]
                if piece.keys[0].startswith(_BLOB):
                    continue
                bare = rows if piece.sep is None else [_without_number(row, piece.sep) for row in rows]
                found.append(ShownLines(piece.keys[0], tuple(bare), sum(map(len, rows)) + len(rows)))
        return found

    def cut(self, cut: HistoryCut) -> None:
        """What a restore plan would have put back is asked for before the calls go."""
        plan: RestorePlan | None = None
        if cut.compacts:
            plan = self._session.restore_plan(keep=cut.kept)
            self._counts.update(
                cuts=1, restored=bool(cut.restored), plan_tokens=sum(item.tokens for item in plan.items)
            )
        self._close(cut.kept)
        self._rereads.cut(cut.kept, plan)
        self._session.compacted(keep=cut.kept)
        show_restored(self._session, cut.restored)

    def _close(self, kept: frozenset[str] = frozenset()) -> None:
        """Those that are no longer carried have their price."""
        for one in [one for one in self._open if one.call.call_id not in kept]:
            price = one.chars * self._carried.price(one.at)
            self.dearest.append(DearReread(price, one.chars, one.what, f"{self._where} {one.call.call_id}", one.saved))
        self._open = [one for one in self._open if one.call.call_id in kept]
        self._carried.cut(kept)

    def end(self) -> Counter[str]:
        """The counters of the conversation, which is over."""
        self._close()
        self._session.close()
        best = Tally()
        best.add(Tally(dearest=self.dearest))
        self.dearest = best.dearest
        return self._counts


def _without_number(row: str, sep: str) -> str:
    """A numbered line as it stands in the file."""
    size = 1 if sep == _GREP else len(sep)
    return row.lstrip(" \t").lstrip("0123456789")[size:]
