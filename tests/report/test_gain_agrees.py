"""What `gain` adds up is what the session itself counts, and what a replay counts, whatever happened."""

from __future__ import annotations

import contextlib
from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from readcache import Mode, Policy, Session, UsageError
from readcache.core.model.call import command_call
from readcache.core.model.tool_call import AskedCommand, ToolCall
from readcache.core.shell.read import read_command
from readcache.log.log import Log
from readcache.log.reader import Reader
from readcache.log.store import open_store
from readcache.report.replay.policy_run import PolicyRun
from readcache.transcripts.records import HistoryRemoval
from tests.report.reported import DAY, NOON, Clock, counters, gain_of, numbered, stats

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
    assert round(gain_of(one.store).total.sums["priced_net"]) == round(gain_of(two.store).total.sums["priced_net"])
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
    for groups in both.by.values():
        total: Counter[str] = Counter()
        for totals in groups.values():
            total.update(totals.counts)
        assert {name: count for name, count in total.items() if count} == counters(both)
    if not on:
        assert both.total.saved == both.total.sums["results_cut"] == both.total.sums["chars_saved"] == 0


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
