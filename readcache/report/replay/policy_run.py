"""One policy's side of a replay.

`counts`: `saved` and `cut` (characters: net of markers; of the results that something was left out of), `omissions`
(such results), `markers`, `wrong`, `saved_priced`, `out_priced`, `turns_priced` (see `bills.Carried`), and what the
session itself counts of `FROM_SESSION`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from readcache import Policy, Session
from readcache.core.model.policy import Prices
from readcache.core.model.spec.marker import Finding
from readcache.core.model.spec.world import World
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.answers import answer_recorded, show_restored
from readcache.report.replay.bills import Carried
from readcache.report.replay.prices import USUAL
from readcache.report.replay.replay_totals import PolicyTotals
from readcache.transcripts.records import HistoryRemoval

# What a session may count of readers that asked again for what was left out, and of failures of ours.
FROM_SESSION = ("bounces", "tokens_bounced", "internal_error", "store_failed")
_READER = "main"


class PolicyRun:
    """One policy: its session, the specification that checks it, what it saves."""

    def __init__(self, policy: Policy, prices: Prices = USUAL) -> None:
        self._session = Session(root="/", policy=policy, local=False)
        self._world, self._carried = World(), Carried(prices)
        self._totals = PolicyTotals(Counter(wrong=0))

    def call(self, call: ToolCall) -> str:
        """What the reader is given: the output, or what is left of it and markers."""
        counts = self._totals.counts
        reply = answer_recorded(self._session, call)
        if reply is None:
            self._carried.add(call.call_id, len(call.output), 0, marked=False)
            self._world.shown(_READER, call.call_id, call.output, said=call.said, batch=call.batch)
            return call.output
        findings = self._world.answered(_READER, reply, call.output, said=call.said, batch=call.batch)
        self._count_wrong(findings)
        saved = len(call.output) - len(reply.text)
        markers = len(reply.omissions())
        counts.update(saved=saved, markers=markers, omissions=markers > 0, cut=len(call.output) if markers else 0)
        self._carried.add(call.call_id, len(call.output), saved, marked=markers > 0)
        if saved:
            self._totals.by_tool[call.tool] += saved
        return reply.text

    def _count_wrong(self, findings: list[Finding]) -> None:
        faults = [f"{finding.call}: {finding.fault}" for finding in findings if finding.fault]
        self._totals.counts["wrong"] += len(faults)
        self._totals.wrong += faults

    def trim(self, removal: HistoryRemoval) -> None:
        """The host took calls out."""
        done = self._session.compacted(keep=removal.kept)
        self._world.compacted(_READER, removal.kept)
        self._count_wrong(self._world.repaired(_READER, done.rewrites))
        self._carried.trim(removal.kept)
        self.show(removal.restored)

    def show(self, restored: Sequence[ToolCall]) -> None:
        """The host showed these by itself."""
        show_restored(self._session, restored)
        for call in restored:
            self._world.restored(_READER, call.call_id, call.output)

    def end(self) -> PolicyTotals:
        """The conversation is over."""
        self._carried.trim()
        carried, counts, stats = self._carried, self._totals.counts, self._session.stats()
        counts.update(saved_priced=round(carried.saved), out_priced=round(carried.out))
        counts.update(turns_priced=round(carried.turns))
        counts.update({name: stats.get(name, 0) for name in FROM_SESSION})
        self._session.close()
        return self._totals
