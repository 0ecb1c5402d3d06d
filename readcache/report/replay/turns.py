"""Count the turns of conversations by kind, with their costs. A turn has a kind if all its calls have it.

A turn is one answer of the model. It costs its prompt, read from the cache, and its output. The price of writing new
text to the cache is not part of it, because that text would also be paid for without this turn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

from readcache.core.messages.tools import is_poll, is_to_do
from readcache.core.model.claims import FileLines
from readcache.core.model.tool_call import AskedCommand, ToolCall
from readcache.core.restore.evidence import is_check
from readcache.core.shell.read import read_command
from readcache.report import share
from readcache.report.replay.bills import ModelPrices
from readcache.report.replay.policy_run import FilesShown
from readcache.transcripts.records import RequestSent

REST = "rest"
KINDS = {  # name in JSON -> name in tables
    "visible reads": "reads of visible lines",
    "other reads": "other reads",
    "edits": "edits",
    "tests and builds": "tests and builds",
    "polls": "polls of a running command",
    "to-do lists": "to-do lists",
    "failures": "failed reads and edits",
    REST: "the rest, or several kinds",
}
ALL = "all"
# A kind below this share of a host's bill is not worth a setting.
WORTH_A_SETTING = 0.02
# (host, kind) -> what the kind is, and the setting that changes it.
_SETTINGS = {
    ("codex", "polls"): (
        "only ask whether a command has ended. Ask for longer waits in AGENTS.md: "
        "an empty write_stdin, or wait, gets yield_time_ms 120000"
    ),
    ("claude-code", "to-do lists"): (
        "only change the to-do list. Switch it off in settings.json: "
        '"permissions": {"deny": ["TodoWrite", "TaskCreate", "TaskUpdate"]}'
    ),
}
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_NEXT = re.compile(r"[;&|()\n]+\s*(?:\w+=[^\s;&|()]*\s+)?")  # between two simple commands

TurnCounts = Mapping[str, Counter[str]]  # host -> kind -> turns, or millionths of a dollar


class TurnKinds:
    """The turns of one conversation by kind, and their costs in millionths of a dollar."""

    def __init__(self, prices: ModelPrices | None) -> None:
        self.turns: Counter[str] = Counter()
        self.bills: Counter[str] = Counter()
        self._prices = prices
        self._request: RequestSent | None = None
        self._kinds: set[str] = set()
        self._batch = ""

    def sent(self, request: RequestSent) -> None:
        """Begin a turn with its request."""
        self.end()
        self._request = request

    def call(self, call: ToolCall, shown: FilesShown) -> None:
        """Add a call to its turn. Without a request, calls that share no batch are turns of their own."""
        is_same = call.batch == self._batch and (call.batch or self._request is not None)
        if self._kinds and not is_same:
            self.end()
        self._batch = call.batch
        self._kinds.add(_kind_of(call, shown))

    def end(self) -> None:
        """End the turn."""
        if self._request is not None or self._kinds:
            kind = next(iter(self._kinds)) if len(self._kinds) == 1 else REST
            self.turns[kind] += 1
            if self._request is not None and self._prices is not None:
                one = self._request
                self.bills[kind] += round(self._prices.cost(read=one.prompt, output=one.output))
        self._request, self._kinds = None, set()


def _kind_of(call: ToolCall, shown: FilesShown) -> str:
    """Return the kind of a call. `shown`: the lines of files in its result."""
    if is_poll(call.name, call.arguments):
        return "polls"
    if is_to_do(call.name):
        return "to-do lists"
    if isinstance(call.asked, AskedCommand):
        return _kind_of_command(call, call.asked.command, shown)
    if call.is_error:
        return "failures"
    return "edits" if call.tool in ("edit", "write") or call.writes else _kind_of_read(shown)


def _kind_of_command(call: ToolCall, command: str, shown: FilesShown) -> str:
    reading = read_command(command, call.cwd or "/")
    # Quoted texts and heredocs may name a test that does not run.
    if any(map(is_check, _NEXT.split(_QUOTED.sub("", command.split("<<")[0])))):
        return "tests and builds"
    if any(write.is_certain for write in reading.writes):
        return "edits"
    is_read = any(isinstance(claim, FileLines) for claim in reading.claims)
    if is_read and call.exit_code and not shown.lines:
        return "failures"
    return _kind_of_read(shown)


def _kind_of_read(shown: FilesShown) -> str:
    if not shown.lines:
        return REST
    return "visible reads" if shown.known == shown.lines else "other reads"


def turn_rows(turns: TurnCounts, bills: TurnCounts, hosts: list[str]) -> list[tuple[str, ...]]:
    """Return a row for each kind: its name, and for each host its share of the turns and of the bill."""
    rows = []
    for kind, label in KINDS.items():
        shares = (
            (share(turns[host][kind], turns[host].total()), share(bills[host][kind], bills[host][ALL]))
            for host in hosts
        )
        rows.append((f"  {label}", *chain.from_iterable(shares)))
    return rows


def settings(turns: TurnCounts, bills: TurnCounts) -> Iterator[str]:
    """Yield a sentence for each kind of a host that a setting changes, if it has more than `WORTH_A_SETTING` of the
    bill; of the turns, if no bill is known."""
    for (host, kind), advice in _SETTINGS.items():
        if host not in turns:
            continue
        bill = bills[host][ALL]
        counts, total = (bills[host], bill) if bill else (turns[host], turns[host].total())
        if counts[kind] > WORTH_A_SETTING * total:
            what = "bill is for turns that" if bill else "turns"
            yield f"{host}: {share(counts[kind], total)} of the {what} {advice}"
