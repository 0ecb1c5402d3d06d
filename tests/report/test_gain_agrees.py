"""What `gain` adds up is what the session itself counts, and what a replay counts, whatever happened."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from readcache import Mode, Policy, Session, UsageError
from readcache.core.model.call import command_call
from readcache.core.model.tool_call import AskedCommand, ToolCall
from readcache.core.shell.read import read_command
from readcache.log.log import Log
from readcache.log.reader import Reader
from readcache.log.store import open_store
from readcache.report.gain import gain_json
from readcache.report.net import ENOUGH_CALLS, net_of, short_line
from readcache.report.page.page import session_page
from readcache.report.page.savings import gain_page
from readcache.report.replay.policy_run import PolicyRun
from readcache.report.totals import Gain
from readcache.transcripts.records import HistoryRemoval
from tests.report.parsed import parse
from tests.report.reported import DAY, NOON, Clock, asked, counters, gain_of, numbered, printed, stats

FILES = {"a.py": numbered(120), "b.py": numbered(90, "another line of a file")}
STEPS = st.tuples(
    st.sampled_from(["read", "read", "read", "again", "tool", "write", "compact", "rewind", "settle", "fork"]),
    st.sampled_from(sorted(FILES)),
    st.integers(1, 60),
    st.integers(20, 100),
    st.sampled_from(["main", "main", "sub"]),
    st.booleans(),
)


class Conversation:
    """A session and its sub-agent, driven as a harness would."""

    def __init__(self, policy: Policy, way: str = "one step") -> None:
        self.way = way
        self.clock, self.store, self.files = Clock(NOON - 40 * DAY), open_store(None), dict(FILES)
        common = {"session_id": "s", "store": self.store, "policy": policy, "clock": self.clock, "local": False}
        self.readers = {name: Session("/w", agent_id=name, host=name, **common) for name in ("main", "sub")}  # type: ignore[arg-type]
        self.calls: dict[str, list[str]] = {"main": [], "sub": []}
        self.asked: dict[str, tuple[str, int, int]] = {}
        self.full: dict[str, str] = {}

    def step(self, kind: str, name: str, first: int, count: int, reader: str, flag: bool) -> None:
        session, calls = self.readers[reader], self.calls[reader]
        call_id = f"{reader}{len(calls)}"
        self.clock.now += 3 * 3600.0
        if kind == "again" and reader in self.asked:
            name, first, count = self.asked[reader]
        if kind in ("read", "again"):
            self.asked[reader] = name, first, count
            lines = self.files[name].splitlines(True)[first - 1 : first + count]
            command, output = f"sed -n '{first},{first + count}p' {name}", "".join(lines)
            self.observe(session, command, output, call_id, "b" if flag and first % 7 == 0 else "")
            self.full[call_id] = output
            calls.append(call_id)
        elif kind == "tool":
            session.observe_tool("grep", self.files[name], arguments={"pattern": "line"}, call_id=call_id)
            self.full[call_id] = self.files[name]
            calls.append(call_id)
        elif kind == "write":
            self.files[name] = self.files[name].replace(f"{first}: ", f"{first}: new ", 1)
            session.wrote(name, call_id=call_id)
        elif kind == "compact":
            plan = session.restore_plan() if count % 2 else None
            session.compacted(keep=calls[-first % 5 :] if flag else (), restored=plan)
        elif kind == "rewind" and calls:
            session.rewind(calls[-1 - first % min(3, len(calls))])
        elif kind == "settle" and calls:
            text = self.full[calls[-1]]
            with contextlib.suppress(UsageError):
                session.settle(calls[-1], text if flag else text[: len(text) * (count % 3) // 4])

    def observe(self, session: Session, command: str, output: str, call_id: str, batch: str) -> None:
        """In two steps, the reply is logged before it is shown and completed afterwards: the server and `run` do so,
        `run` with a process for each call."""
        if self.way == "one step":
            session.observe(command, output, call_id=call_id, batch=batch)
            return
        reader = session.reader
        if self.way == "processes":
            log = Log(lambda: self.store, session.session_id, session.agent_id, self.clock)
            reader = Reader(log, reader.rules, one_call=True)
        call = command_call(call_id, command, "/w", output, read_command(command, "/w"), batch=batch)
        reader.judge(call).commit()


@given(st.lists(STEPS, max_size=30), st.sampled_from(["default", "delta"]))
@example([("read", "a.py", 1, 80, "main", False)] * 2 + [("read", "a.py", 1, 79, "main", False)], "default")
@example(
    [("read", "a.py", 1, 20 + (at == 4), "main", False) for at in range(13)]
    + [("compact", "a.py", 1, 20, "main", True)],
    "default",
)  # a compaction retires a marker whose reply was logged in two steps: that reply is not read again
@example(
    [("read", "a.py", 1, 20, "main", False)] * 14
    + [("settle", "a.py", 1, 20, "main", False), ("settle", "a.py", 1, 20, "main", True)],
    "default",
)  # a part of a reply, and then the whole output: what was counted as shown is taken back, not what is visible
def test_every_way_of_logging_gives_the_same_figures(
    steps: list[tuple[str, str, int, int, str, bool]], preset: str
) -> None:
    """A bounce by another command was not seen where a reply is logged in two steps, and `gain` counted it as saved."""
    talks = [Conversation(Policy.named(preset), way) for way in ("one step", "two steps")]
    for step in steps:
        for talk in talks:
            talk.step(*step)
    one, two = talks
    assert counters(gain_of(one.store)) == counters(gain_of(two.store))
    sums = [gain_of(talk.store).total.sums for talk in talks]
    for name in ("priced_net", "priced_output", "markers", "faults"):
        assert round(sums[0][name]) == round(sums[1][name])
    for name, session in one.readers.items():
        assert stats(session) == stats(two.readers[name])


@given(
    st.lists(STEPS, max_size=30),
    st.sampled_from(["default", "delta", "max"]),
    st.booleans(),
    st.sampled_from(["one step", "two steps", "processes"]),
)
def test_gain_says_of_each_reader_what_its_stats_say(
    steps: list[tuple[str, str, int, int, str, bool]], preset: str, on: bool, way: str
) -> None:
    policy = Policy.named(preset) if on else Policy(mode=Mode.ADVISE)
    talk = Conversation(policy, way)
    for step in steps:
        talk.step(*step)
    for name, session in talk.readers.items():
        assert counters(gain_of(talk.store, only=[("s", name)])) == stats(session)
    both = gain_of(talk.store)
    assert both.proof.faults == []
    assert both.proof.proven == both.proof.markers
    assert both.total.sums["faults"] <= both.total.sums["markers"]
    for groups in both.by.values():
        total: Counter[str] = Counter()
        for totals in groups.values():
            total.update(totals.counts)
        assert {name: count for name, count in total.items() if count} == counters(both)
    if not on:
        assert both.total.saved == both.total.sums["results_cut"] == both.total.sums["chars_saved"] == 0


NET = r"[ +](-?[\d,]+) input tokens at full price, (-?[\d.]+ %|n/a) of the cost of tool output"


def nets_of(gain: Gain) -> dict[str, tuple[str, ...] | None]:
    """The net saving of all calls and its share, wherever they stand; None where nothing says them."""
    lines, page = printed(gain), verdict_in(gain_page(gain))
    nets: dict[str, tuple[str, ...] | None] = {}
    for place, text in (("the first line", lines[0]), ("the page", page), ("a status bar", short_line(gain.total))):
        found = re.search(NET, text.replace("loss is ", "loss is -"))
        nets[place] = found and (found[1], found[2].lstrip("-"))
    rows = [re.split(r"\s{2,}", line)[-1] for line in lines if line.startswith("net, ")]
    nets["the table"] = (rows[0], rows[1].lstrip("-")) if rows else None
    return nets


def verdict_in(page: Iterable[str]) -> str:
    (verdict,) = parse("".join(page)).all("p", "verdict")
    return verdict.text


@settings(max_examples=25)
@given(
    st.lists(STEPS, min_size=5, max_size=30), st.sampled_from(["default", "delta", "max"]), st.sampled_from([0, 180])
)
@example([("read", "a.py", 1, 100, "main", False)] + [("again", "a.py", 1, 1, "main", False)] * 29, "default", 180)
def test_every_place_says_the_same_net_saving(
    steps: list[tuple[str, str, int, int, str, bool]], preset: str, more: int
) -> None:
    """The line for a status bar said that 26 % was saved where the table said that 15 % was lost."""
    talk = Conversation(Policy.named(preset))
    for step in steps:
        talk.step(*step)
    for number in range(more):
        talk.readers["main"].observe("ls", "a.py\nb.py\n", call_id=f"more{number}")
    for question in (asked(), asked(NOON - 40 * DAY, NOON - 39 * DAY)):
        gain = gain_of(talk.store, question)
        if not gain.sessions:
            continue
        net, said = net_of(gain.total), gain_json(gain)["windows"]["all"]["net"]
        assert (net is None) == (said is None) == (gain.total.counts["calls"] < ENOUGH_CALLS)
        if net is not None:
            assert said["input_tokens"] == net.tokens == round(gain.total.sums["priced_net"])
            assert said["share_of_tool_output"] == pytest.approx(net.tokens / (net.output or 1), abs=1e-4)
        expected = net and (f"{net.tokens:,}", net.part.lstrip("-"))
        assert nets_of(gain) == dict.fromkeys(nets_of(gain), expected)
    records = list(talk.store.records("s"))
    assert not records or verdict_in(session_page(records, "s", {})) == verdict_in(gain_page(gain_of(talk.store)))


def sed(call_id: str, first: int, last: int) -> ToolCall:
    output = "".join(FILES["a.py"].splitlines(True)[first - 1 : last])
    command = f"sed -n '{first},{last}p' a.py"
    return ToolCall(
        call_id, "bash", {"command": command}, output, exit_code=0, cwd="/w", asked=AskedCommand(command), said=command
    )


@given(st.lists(st.tuples(st.integers(1, 80), st.integers(20, 60), st.booleans()), min_size=1, max_size=20))
def test_what_a_call_saved_and_what_that_was_worth_are_what_a_replay_counts(steps: list[tuple[int, int, bool]]) -> None:
    run, store = PolicyRun(Policy()), open_store(None)
    session = Session("/w", session_id="s", store=store, clock=Clock(), local=False)
    bounced = 0
    for number, (first, count, removes) in enumerate(steps):
        call = sed(f"c{number}", first, first + count)
        run.call(call)
        asked = call.asked
        assert isinstance(asked, AskedCommand)
        session.observe(asked.command, call.output, cwd="/w", call_id=call.call_id)
        if removes and number % 4 == 3:
            run.trim(HistoryRemoval(frozenset({call.call_id})))
            session.compacted(keep=[call.call_id])
    gain, replayed = gain_of(store).total, run.end().counts
    bounced = gain.counts["tokens_bounced"]
    assert (gain.sums["chars_saved"], gain.sums["results_cut_chars"], gain.sums["results_cut"]) == (
        replayed["saved"],
        replayed["cut"],
        replayed["omissions"],
    )
    assert (gain.counts["bounces"], bounced) == (replayed["bounces"], replayed["tokens_bounced"])
    assert round(gain.sums["priced_output_chars"]) == replayed["out_priced"]
    if not bounced:
        assert round(gain.sums["priced_chars_net"]) == replayed["saved_priced"]
