"""One policy's side of a replay.

`counts`: `saved` and `cut` (characters: net of markers; of the results that something was left out of), `omissions`
(such results), `markers`, `wrong`, `saved_priced`, `out_priced`, `turns_priced` (see `prices.Carried`), and what the
session itself counts of `FROM_SESSION`.
"""

from __future__ import annotations

from collections import Counter

from readcache import Outcome, Policy, Reply, Session
from readcache.model.checker import Checker, Proof, Wrong
from readcache.replay.answers import answer_recorded, show_restored
from readcache.replay.prices import Carried
from readcache.replay.tally import PolicyTally
from readcache.transcripts.records import HistoryCut, RecordedCall

# What a session may count of readers that asked again for what was left out, and of failures of ours.
FROM_SESSION = ("bounces", "tokens_bounced", "internal_error", "store_failed")
KINDS = ("repeat", "covered", "overlap", "after an edit", "own writes", "other outputs")
_CHANGED = "changed since"  # markers say so of a file that may be another one now


class Arm:
    """One policy: its session, its checker, what it saves."""

    def __init__(self, policy: Policy) -> None:
        self._session = Session(root="/", policy=policy, local=False)
        self._checker, self._carried = Checker(), Carried()
        self._tally = PolicyTally(Counter(wrong=0))
        self._reply: tuple[Reply, list[Proof]] | None = None
        self._said: dict[str, str] = {}  # what the agent asked for -> the call in which it did so last

    def call(self, call: RecordedCall) -> int:
        """Characters that were left out, net of markers."""
        counts = self._tally.counts
        reply = answer_recorded(self._session, call)
        if reply is None:
            self._carried.add(call.call_id, len(call.output), 0, marked=False)
            self._checker.add(call.call_id, call.output, call.said, call.batch)
            self._reply = None
            return 0
        proofs: list[Proof] = []
        try:
            proofs = self._checker.check(reply, call.output, call.batch)
        except Wrong as wrong:
            counts["wrong"] += 1
            self._tally.wrong.append(f"{call.call_id}: {wrong}")
        saved = len(call.output) - len(reply.text)
        omitted = [each for each, _, _ in reply.omissions()]
        sources, markers = {name for each in omitted for name in each.sources}, len(omitted)
        counts.update(saved=saved, markers=markers, omissions=markers > 0, cut=len(call.output) if markers else 0)
        self._carried.add(call.call_id, len(call.output), saved, marked=markers > 0)
        self._checker.add(call.call_id, reply.text, call.said, call.batch, frozenset(sources))
        self._reply = reply, proofs
        return saved

    def credit(self, call: RecordedCall, saved: int, *, is_read: bool) -> None:
        """Book the last call's saving under its tool, and under the kinds of omitted text."""
        before, self._said[call.said] = self._said.get(call.said), call.call_id
        if self._reply is None or not saved:
            return
        reply, proofs = self._reply
        is_repeat = before is not None and self._checker.sees(before) and reply.outcome is not Outcome.PARTIAL
        self._tally.by_tool[call.tool] += saved
        left, chars = saved, sum(proof.chars for proof in proofs)
        for proof in proofs:
            part = saved * proof.chars // chars if proof is not proofs[-1] else left
            kind = _kind_of(proof, reply, is_read=is_read, is_repeat=is_repeat)
            self._tally.by_kind[kind] += part
            left -= part

    def cut(self, cut: HistoryCut) -> None:
        """The host took calls out."""
        done = self._session.compacted(keep=cut.kept)
        for fault in self._checker.cut(cut.kept, done.rewrites):
            self._tally.counts["wrong"] += 1
            self._tally.wrong.append(fault)
        self._carried.cut(cut.kept)
        show_restored(self._session, cut.restored)
        for call in cut.restored:
            self._checker.add(call.call_id, call.output, "")

    def end(self) -> PolicyTally:
        """The conversation is over."""
        self._carried.cut()
        carried, counts, stats = self._carried, self._tally.counts, self._session.stats()
        counts.update(saved_priced=round(carried.saved), out_priced=round(carried.out))
        counts.update(turns_priced=round(carried.turns))
        counts.update({name: stats.get(name, 0) for name in FROM_SESSION})
        self._session.close()
        return self._tally


def _kind_of(proof: Proof, reply: Reply, *, is_read: bool, is_repeat: bool) -> str:
    if proof.own:
        return "own writes"
    if not (is_read and (proof.of_file or reply.outcome is not Outcome.PARTIAL)):
        return "other outputs"
    if _CHANGED in proof.marker:
        return "after an edit"
    if is_repeat:
        return "repeat"
    return "overlap" if reply.outcome is Outcome.PARTIAL else "covered"
