"""One policy's side of a replay.

`counts`: `saved` and `cut` (characters: net of markers; of the results that something was left out of), `omissions`
(such results), `markers`, `wrong`, `saved_priced`, `out_priced`, `turns_priced` (see `bills.Carried`), and what the
session itself counts of `FROM_SESSION`.
"""

from __future__ import annotations

from collections import Counter

from readcache import Outcome, Policy, Reply, Session
from readcache.model.spec.marker import Finding, Marker
from readcache.model.spec.world import World
from readcache.replay.answers import answer_recorded, show_restored
from readcache.replay.bills import Carried
from readcache.replay.tally import PolicyTally
from readcache.transcripts.records import HistoryCut, RecordedCall

# What a session may count of readers that asked again for what was left out, and of failures of ours.
FROM_SESSION = ("bounces", "tokens_bounced", "internal_error", "store_failed")
KINDS = ("repeat", "covered", "overlap", "after an edit", "own writes", "other outputs")
_READER = "main"
_CHANGED = "changed since"  # markers say so of a file that may be another one now


class Arm:
    """One policy: its session, the specification that checks it, what it saves."""

    def __init__(self, policy: Policy) -> None:
        self._session = Session(root="/", policy=policy, local=False)
        self._world, self._carried = World(), Carried()
        self._tally = PolicyTally(Counter(wrong=0))
        self._reply: tuple[Reply, list[Finding]] | None = None
        self._said: dict[str, str] = {}  # what the agent asked for -> the call in which it did so last

    def call(self, call: RecordedCall) -> int:
        """Characters that were left out, net of markers."""
        counts = self._tally.counts
        reply = answer_recorded(self._session, call)
        if reply is None:
            self._carried.add(call.call_id, len(call.output), 0, marked=False)
            self._world.shown(_READER, call.call_id, call.output, said=call.said, batch=call.batch)
            self._reply = None
            return 0
        findings = self._world.answered(_READER, reply, call.output, said=call.said, batch=call.batch)
        self._count_wrong(findings)
        saved = len(call.output) - len(reply.text)
        markers = len(reply.omissions())
        counts.update(saved=saved, markers=markers, omissions=markers > 0, cut=len(call.output) if markers else 0)
        self._carried.add(call.call_id, len(call.output), saved, marked=markers > 0)
        self._reply = reply, findings
        return saved

    def _count_wrong(self, findings: list[Finding]) -> None:
        faults = [f"{finding.call}: {finding.fault}" for finding in findings if finding.fault]
        self._tally.counts["wrong"] += len(faults)
        self._tally.wrong += faults

    def credit(self, call: RecordedCall, saved: int, *, is_read: bool) -> None:
        """Book the last call's saving under its tool, and under the kinds of omitted text."""
        before, self._said[call.said] = self._said.get(call.said), call.call_id
        if self._reply is None or not saved:
            return
        reply, findings = self._reply
        proven = [(each, each.marker) for each in findings if each.marker is not None and not each.fault]
        is_repeat = before is not None and self._world.sees(_READER, before) and reply.outcome is not Outcome.PARTIAL
        self._tally.by_tool[call.tool] += saved
        left, chars = saved, sum(_chars_of(marker) for _, marker in proven)
        for each, marker in proven:
            part = saved * _chars_of(marker) // chars if each is not proven[-1][0] else left
            kind = "own writes" if each.own else _kind_of(marker, reply, is_read=is_read, is_repeat=is_repeat)
            self._tally.by_kind[kind] += part
            left -= part

    def cut(self, cut: HistoryCut) -> None:
        """The host took calls out."""
        done = self._session.compacted(keep=cut.kept)
        self._world.compacted(_READER, cut.kept)
        self._count_wrong(self._world.mended(_READER, done.rewrites))
        self._carried.cut(cut.kept)
        show_restored(self._session, cut.restored)
        for call in cut.restored:
            self._world.restored(_READER, call.call_id, call.output)

    def end(self) -> PolicyTally:
        """The conversation is over."""
        self._carried.cut()
        carried, counts, stats = self._carried, self._tally.counts, self._session.stats()
        counts.update(saved_priced=round(carried.saved), out_priced=round(carried.out))
        counts.update(turns_priced=round(carried.turns))
        counts.update({name: stats.get(name, 0) for name in FROM_SESSION})
        self._session.close()
        return self._tally


def _chars_of(marker: Marker) -> int:
    """Of the lines that it stands for."""
    lines = marker.lines or ()
    return sum(map(len, lines)) + len(lines)


def _kind_of(marker: Marker, reply: Reply, *, is_read: bool, is_repeat: bool) -> str:
    if not (is_read and (marker.file is not None or reply.outcome is not Outcome.PARTIAL)):
        return "other outputs"
    if _CHANGED in marker.words:
        return "after an edit"
    if is_repeat:
        return "repeat"
    return "overlap" if reply.outcome is Outcome.PARTIAL else "covered"
