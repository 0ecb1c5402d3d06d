"""What a reader was shown, with nothing left out: reads, re-reads, and what compactions took away."""

from __future__ import annotations

from collections import Counter

from readcache import Mode, Policy, RestorePlan, Session
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.answers import answer_recorded, show_restored
from readcache.report.replay.rereads import Rereads, ShownLines
from readcache.transcripts.records import HistoryRemoval

_GREP = ":-"  # names what `grep -n` puts behind a number: one of the two
_BLOB = "git:"  # begins the keys of what is not a file of the work tree


class Baseline:
    """A session that omits nothing and tells which file lines each call showed."""

    def __init__(self) -> None:
        self._session = Session(root="/", policy=Policy(mode=Mode.ADVISE), local=False)
        self._rereads = Rereads()
        self._counts: Counter[str] = Counter()

    def call(self, call: ToolCall) -> bool:
        """True for a read."""
        reply = answer_recorded(self._session, call)
        shown = [] if reply is None else self._shown(call.call_id)
        lost, restorable = self._rereads.after_removal(shown)
        again = self._rereads.add(call.call_id, shown)
        read = sum(part.chars for part in shown)
        self._counts.update(reads=bool(shown), read=read, bound=again, reread=lost, held=restorable)
        return bool(shown)

    def _shown(self, call_id: str) -> list[ShownLines]:
        found = []
        for delivery in self._session.view.of_call(call_id):
            event = delivery.event
            if event.origin.value != "result":
                continue
            lines = event.text.split("\n")
            for mapped in event.source_map:
                rows = lines[mapped.at : mapped.at + mapped.count]
                if mapped.keys[0].startswith(_BLOB):
                    continue
                bare = rows if mapped.sep is None else [_without_number(row, mapped.sep) for row in rows]
                found.append(ShownLines(mapped.keys[0], tuple(bare), sum(map(len, rows)) + len(rows)))
        return found

    def trim(self, removal: HistoryRemoval) -> None:
        """What a restore plan would have put back is asked for before the calls go."""
        plan: RestorePlan | None = None
        if removal.compacts:
            plan = self._session.restore_plan(keep=removal.kept)
            self._counts.update(
                cuts=1, restored=bool(removal.restored), plan_tokens=sum(item.tokens for item in plan.items)
            )
        self._rereads.trim(removal.kept, plan)
        self._session.compacted(keep=removal.kept)
        show_restored(self._session, removal.restored)

    def end(self) -> Counter[str]:
        """The counters of the conversation, which is over."""
        self._session.close()
        return self._counts


def _without_number(row: str, sep: str) -> str:
    """A numbered line as it stands in the file."""
    size = 1 if sep == _GREP else len(sep)
    return row.lstrip(" \t").lstrip("0123456789")[size:]
