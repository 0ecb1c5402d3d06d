"""The runs of a replay: one for each policy, and the baseline, in which nothing is omitted.

The lines that a reader was shown before limit the savings of any cache of file lines. After a compaction, the lines
that are read again are compared with a restore plan.

The counts of a `PolicyRun`: `saved` (characters, net of markers), `omissions` (shortened results), `cut` (characters of
these), `markers`, `wrong`, `chars_bounced` (characters of the omissions in `tokens_bounced`). `bills.Carried` explains
`saved_priced`, `out_priced` and `turns_priced`. The session itself adds the counts in `FROM_SESSION`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from readcache import Mode, Outcome, Policy, Reply, RestorePlan, Session
from readcache.core.model.policy import Prices
from readcache.core.model.spec.marker import Finding
from readcache.core.model.spec.world import World
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.bills import USUAL, Carried
from readcache.report.replay.replay_totals import FROM_SESSION, PolicyTotals
from readcache.transcripts.records import HistoryRemoval

SHORTEST = 4  # characters of a significant line, without blanks: `}` by itself is not a re-read
RUN = 3  # such lines in a row: fewer may occur twice in a file
WATCHED = 20  # calls after a compaction: it counts as the cause of re-reads in these calls
_GREP = ":-"  # stands for the character that `grep -n` prints after a number: one of the two
_BLOB = "git:"  # prefix of keys that are not files of the work tree
_READER = "main"


class ShownLines(NamedTuple):
    """Lines of one file that a call showed, without the numbers before them."""

    key: str
    lines: tuple[str, ...]
    chars: int  # including the text before them


class FilesShown(NamedTuple):
    """The characters of lines of files that a call showed, and of these, the characters in runs of lines that were
    visible before."""

    lines: int
    known: int


class Rereads:
    """The lines that one reader knows, call by call."""

    def __init__(self) -> None:
        self._calls: dict[str, list[ShownLines]] = {}
        self._known: dict[str, set[str]] = {}
        self._lost: dict[str, set[str]] = {}
        self._restorable: set[str] = set()
        self._watch = 0

    def add(self, call_id: str, shown: list[ShownLines]) -> int:
        """Record the lines that a call showed. Return how many of their characters were known before."""
        red = sum(self._known_chars(part) for part in shown)
        for part in shown:
            self._known.setdefault(part.key, set()).update(part.lines)
        if shown:
            self._calls[call_id] = shown
        return red

    def trim(self, kept: frozenset[str], plan: RestorePlan | None) -> None:
        """Keep only these calls. `plan`: the restore plan, if a compaction removed the other calls."""
        before = self._known
        self._calls = {name: shown for name, shown in self._calls.items() if name in kept}
        self._known = {}
        for part in (part for shown in self._calls.values() for part in shown):
            self._known.setdefault(part.key, set()).update(part.lines)
        if plan is not None:
            self._lost = {key: lines - self._known.get(key, set()) for key, lines in before.items()}
            self._restorable = {line for item in plan.items for line in item.text.split("\n")}
            self._watch = WATCHED

    def after_removal(self, shown: Iterable[ShownLines]) -> tuple[int, int]:
        """Return (characters that the last compaction removed and this call shows again, characters of these that the
        plan contained). Each line counts once. Call this for every call."""
        if not self._watch:
            return 0, 0
        self._watch -= 1
        again = [line for part in shown for line in self._again(part)]
        return sum(len(line) + 1 for line in again), sum(len(line) + 1 for line in again if line in self._restorable)

    def _again(self, part: ShownLines) -> list[str]:
        lost = self._lost.get(part.key, set())
        found = [line for line in part.lines if line in lost and not _is_trivial(line)]
        lost.difference_update(part.lines)
        return found

    def _known_chars(self, part: ShownLines) -> int:
        """Return the characters of the known lines in runs that are long enough, or that are all the lines shown."""
        known, lines, total = self._known.get(part.key, set()), part.lines, 0
        for run in _runs(lines, known):
            if sum(not _is_trivial(lines[i]) for i in run) >= RUN or len(run) == len(lines):
                total += sum(len(lines[i]) + 1 for i in run)
        return total


def _runs(lines: tuple[str, ...], known: set[str]) -> Iterator[list[int]]:
    run: list[int] = []
    for i, line in enumerate(lines):
        if line in known or (run and _is_trivial(line)):
            run.append(i)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _is_trivial(line: str) -> bool:
    return len(line.strip()) < SHORTEST


class Baseline:
    """A session that omits nothing and records which file lines each call showed."""

    def __init__(self) -> None:
        self._session = Session(root="/", policy=Policy(mode=Mode.ADVISE), local=False)
        self._rereads = Rereads()
        self._counts: Counter[str] = Counter()

    def call(self, call: ToolCall) -> FilesShown:
        """Record a call. Return the lines of files that it showed."""
        reply = answer_recorded(self._session, call)
        shown = [] if reply is None else self._shown(call.call_id)
        lost, restorable = self._rereads.after_removal(shown)
        again = self._rereads.add(call.call_id, shown)
        read = sum(part.chars for part in shown)
        self._counts.update(reads=bool(shown), read=read, bound=again, reread=lost, held=restorable)
        return FilesShown(sum(len(line) + 1 for part in shown for line in part.lines), again)

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
        """Follow a removal by the host. After a compaction, compare the next calls with a restore plan."""
        plan: RestorePlan | None = None
        if removal.compacts:  # the plan must be made before the calls are removed
            plan = self._session.restore_plan(keep=removal.kept)
            self._counts.update(
                cuts=1, restored=bool(removal.restored), plan_tokens=sum(item.tokens for item in plan.items)
            )
        self._rereads.trim(removal.kept, plan)
        self._session.compacted(keep=removal.kept)
        show_restored(self._session, removal.restored)

    def end(self) -> Counter[str]:
        """End the conversation. Return its counters."""
        self._session.close()
        return self._counts


def _without_number(row: str, sep: str) -> str:
    """Return a numbered line as it is in the file."""
    size = 1 if sep == _GREP else len(sep)
    return row.lstrip(" \t").lstrip("0123456789")[size:]


class PolicyRun:
    """A recording under one policy: its session, the specification that checks it, and its savings."""

    def __init__(self, policy: Policy, prices: Prices = USUAL) -> None:
        self._session = Session(root="/", policy=policy, local=False)
        self._world, self._carried = World(), Carried(prices, policy.chars_per_token)
        self._totals = PolicyTotals()

    def call(self, call: ToolCall) -> str:
        """Record a call. Return the text that the reader gets: the output, or the rest of it with markers."""
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
        """Follow a removal by the host."""
        done = self._session.compacted(keep=removal.kept)
        self._world.compacted(_READER, removal.kept)
        self._count_wrong(self._world.repaired(_READER, done.rewrites))
        self._carried.trim(removal.kept)
        self.show(removal.restored)

    def show(self, restored: Sequence[ToolCall]) -> None:
        """Record that the host showed these calls again by itself."""
        show_restored(self._session, restored)
        for call in restored:
            self._world.restored(_READER, call.call_id, call.output)

    def end(self) -> PolicyTotals:
        """End the conversation. Return its totals."""
        self._carried.trim()
        carried, counts, stats = self._carried, self._totals.counts, self._session.stats()
        counts.update(saved_priced=round(carried.saved), out_priced=round(carried.out))
        counts.update(turns_priced=round(carried.turns))
        counts.update({name: stats.get(name, 0) for name in FROM_SESSION})
        counts["chars_bounced"] = round(counts["tokens_bounced"] * self._session.policy.chars_per_token)
        self._session.close()
        return self._totals


def answer_recorded(session: Session, call: ToolCall) -> Reply | None:
    """Record the call and its writes. Return the session's reply; None if the call is not judged, so that its result
    stays unchanged."""
    reply = session.answer(call) if call.is_judged else None
    for written in call.writes:
        session.wrote(written.path, content=written.content, call_id=call.call_id)
    return reply


def show_restored(session: Session, calls: Iterable[ToolCall]) -> None:
    """Record that the host showed these calls to the reader in full."""
    for call in calls:
        reply = answer_recorded(session, call)
        if reply is not None and reply.outcome is not Outcome.FULL:
            session.settle(call.call_id, call.output)
