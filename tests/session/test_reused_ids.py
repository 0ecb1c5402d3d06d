"""Models that count their calls from 0 in each response: an id says nothing of which call is meant."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from readcache import Outcome, Reply, Session, UsageError
from readcache.log.store.protocol import MemoryStore
from tests.helpers.one_call import answer

SECRET = "API_KEY=zzsecretzz\n"
PAD = "".join(f"# line {k} of padding, so that the file is long enough to be judged at all\n" for k in range(12))


def text(name: str, lines: int = 40) -> str:
    return "".join(f"{name} line {k} with some words behind it\n" for k in range(1, lines + 1))


def asked(call_id: str, command: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def result(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.fixture
def session() -> Iterator[Session]:
    with Session("/w", session_id="s", store=MemoryStore(), local=False) as one:
        yield one


def test_four_calls_of_one_id_have_four_numbers_and_four_names(session: Session) -> None:
    session.observe("cat f0.py", text("f0"), call_id="c")
    names = []
    for n in range(3):
        reply = session.observe(f"sed -n '1,{30 + n}p' f0.py", text("f0", 30 + n), call_id="call_0")
        assert reply.outcome is Outcome.UNCHANGED
        names.append(reply.text.split(": ")[0])
    assert session.view.calls.number == 4
    assert len({*names}) == 3


def test_an_older_reply_of_the_id_loses_its_marker_with_its_source(session: Session) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "task"}]
    markers: list[Reply] = []
    for turn in (["ls x", "make 0", "cat c.py"], ["cat c.py"], ["make 1"], ["make 0"], ["cat d.py"]):
        with session.batch():
            replies = [(f"call_{k}", session.observe(c, text(c), call_id=f"call_{k}")) for k, c in enumerate(turn)]
        for (name, reply), command in zip(replies, turn, strict=True):
            messages += [asked(name, command), result(name, reply.text)]
        messages = session.mend(messages)
        markers += [reply for _, reply in replies if reply.outcome is not Outcome.FULL]
    assert [marker.text.split('"')[1] for marker in markers] == ["cat c.py", "make 0"]
    messages[4] = result("call_1", "[old tool result cleared]")  # of `make 0`
    assert not any("UNCHANGED" in str(message.get("content")) for message in session.mend(messages))
    assert session.observe("cat d.py", text("cat d.py"), call_id="z").outcome is Outcome.UNCHANGED  # the newest stays


def test_a_marker_of_a_reply_that_was_on_its_way_is_not_foreign_later(session: Session) -> None:
    """A list has the reply before the log has its text."""
    session.observe("cat a.py", text("a"), call_id="1")
    lists: list[list[dict[str, Any]]] = []

    def show(reply: Any) -> None:
        lists.append([asked("1", "cat a.py"), result("1", text("a")), asked("2", "./x"), result("2", reply.text)])
        session.mend(lists[0])

    from readcache.core.model.call import command_call
    from readcache.core.shell.read import read_command

    command = "sed -n '3,35p' a.py"
    output = "".join(text("a").splitlines(True)[2:35])
    call = command_call("2", command, "/w", output, read_command(command, "/w"), exit_code=0)
    assert answer(session.reader, call, show).outcome is Outcome.UNCHANGED
    session.reader.forget("2")
    after = session.mend([*lists[0][2:]])
    assert "UNCHANGED" not in str(after[-1]["content"])


@pytest.mark.parametrize("how", ["cleared", "rewound", "not observed", "compacted before"])
def test_the_text_of_a_protected_file_is_not_stored_as_that_of_another_call(how: str) -> None:
    store = MemoryStore()
    with Session("/w", session_id="s", store=store, local=False) as session:
        secret = [asked("1", "cat .env"), result("1", PAD + SECRET)]
        if how != "not observed":
            session.observe("cat .env", PAD + SECRET, call_id="1")
        if how == "compacted before":
            session.compacted(keep=[])
        session.observe("cat a.py", text("a"), call_id="1")
        left = [] if how in ("rewound", "not observed") else [asked("1", "cat a.py"), result("1", "[cleared]")]
        session.sync([*secret, *left])
        assert "zzsecretzz" not in repr(session.events())
        assert session.observe("cat a.py", text("a"), call_id="2").outcome is Outcome.FULL


def test_an_id_used_twice_keeps_nothing_in_a_compaction(session: Session) -> None:
    session.observe("cat a.py", text("a"), call_id="call_0")
    session.observe("cat b.py", text("b"), call_id="call_0")
    session.compacted(keep=["call_0"])  # the first one, for all we know
    assert session.observe("cat b.py", text("b"), call_id="x").outcome is Outcome.FULL


def test_an_id_used_twice_is_no_place_to_go_back_to(session: Session) -> None:
    session.observe("cat a.py", text("a"), call_id="call_0")
    session.observe("cat b.py", text("b"), call_id="call_1")
    session.observe("cat c.py", text("c"), call_id="call_0")
    session.rewind("call_0")
    assert session.observe("cat b.py", text("b"), call_id="x").outcome is Outcome.FULL


@pytest.mark.parametrize("back_to", ["call_0", "never heard of"])
def test_a_marker_that_stayed_when_nobody_could_tell_what_did_is_replaced(session: Session, back_to: str) -> None:
    """After going back to an id that means two calls, or none, nothing counts as shown. The host may have kept it."""
    for name, call_id in (("a", "1"), ("b", "call_0"), ("c", "call_0")):
        session.observe(f"cat {name}.py", text(name), call_id=call_id)
    assert session.observe("cat a.py", text("a"), call_id="x").outcome is Outcome.UNCHANGED
    session.observe("cat d.py", text("d"), call_id="y")
    with contextlib.suppress(UsageError):
        session.rewind(back_to)
    assert session.compacted(keep=["x"]).rewrites["x"].startswith("[GONE")


def test_a_longer_result_of_the_id_is_not_taken_for_the_newest_that_is_gone(session: Session) -> None:
    session.observe("cat a.py", text("a"), call_id="call_0")
    first = "".join(text("a").splitlines(True)[:30])
    session.compacted(keep=[])
    session.observe("head -n 30 a.py", first, call_id="call_0")
    reply = session.observe("head -n 30 a.py", first, call_id="x")
    assert reply.outcome is Outcome.UNCHANGED
    messages = [asked("call_0", "cat a.py"), result("call_0", text("a"))]
    messages += [asked("x", "head -n 30 a.py"), result("x", reply.text)]
    assert "UNCHANGED" not in session.mend(messages)[3]["content"]


def test_what_was_written_is_not_kept_with_a_later_call_of_the_id(session: Session) -> None:
    session.wrote("f.py", content=text("f"), call_id="call_0")
    session.observe("cat g.py", text("g"), call_id="call_0")
    session.compacted(keep=["call_0"])
    assert session.observe("cat f.py", text("f"), call_id="x").outcome is Outcome.FULL


def test_a_result_is_not_kept_with_a_later_write_of_the_id(session: Session) -> None:
    session.observe("cat a.py", text("a"), call_id="call_0")
    session.observe("cat b.py", text("b"), call_id="call_1")
    session.wrote("f.py", call_id="call_0")
    session.compacted(keep=["call_0"])
    assert session.observe("cat a.py", text("a"), call_id="x").outcome is Outcome.FULL


def test_a_call_that_is_judged_again_is_one_call() -> None:
    """By a host that could not prove the first answer; also one that writes first."""
    with Session("/w", session_id="s", store=MemoryStore(), local=False) as session:
        session.observe("cat a.py", text("a"), call_id="1")
        for command in ("sed -n '1,40p' a.py", "touch b.py; cat a.py"):
            before = session.stats()["calls"]
            first = session.observe(command, text("a"), call_id=command)
            again = session.observe(command, text("a"), call_id=command)
            assert (first.outcome, again.outcome) == (Outcome.UNCHANGED, Outcome.FULL)
            assert session.stats()["calls"] == before + 1
            session.compacted(keep=["1", command])
            assert session.view.is_visible(command)


def test_an_older_result_that_holds_the_lines_is_not_taken_for_the_newest(session: Session) -> None:
    session.observe("./show", text("a"), call_id="call_0")
    part = "".join(text("a").splitlines(True)[20:])
    session.observe("tail -n 20 a.py", part, call_id="call_0")
    older = [asked("call_0", "./show"), result("call_0", text("a"))]
    session.sync([*older, asked("call_0", "tail -n 20 a.py"), result("call_0", "[cleared]")])
    assert session.observe("tail -n 20 a.py", part, call_id="x").outcome is Outcome.FULL


def test_a_marker_that_names_an_id_used_twice_does_not_outlive_a_compaction(session: Session) -> None:
    """The host may have kept the older of the two."""
    session.observe("cat a.py", text("a"), call_id="call_0")
    session.observe("cat b.py", text("b"), call_id="call_0")
    assert session.observe("cat b.py", text("b"), call_id="x").outcome is Outcome.UNCHANGED
    assert session.compacted(keep=["call_0", "x"]).rewrites["x"].startswith("[GONE")


@pytest.mark.parametrize("again", ["before the fork", "in the fork"])
@pytest.mark.parametrize("goes_on", ["here", "in another process"])
def test_a_fork_that_inherits_knows_the_ids_that_say_nothing(again: str, goes_on: str) -> None:
    store = MemoryStore()
    session = Session("/w", session_id="s", store=store, local=False)
    session.observe("cat a.py", text("a"), call_id="call_0")
    session.observe("cat b.py", text("b"), call_id="call_1")
    if again == "before the fork":
        session.observe("cat c.py", text("c"), call_id="call_0")
    else:
        session.compacted(keep=["call_1"])
    child = session.fork("child", inherit=True)
    if again == "in the fork":
        child.observe("cat c.py", text("c"), call_id="call_0")
    if goes_on == "in another process":
        child = Session("/w", session_id="s", agent_id=child.agent_id, store=store, local=False)
    assert child.observe("cat b.py", text("b"), call_id="x").outcome is Outcome.UNCHANGED  # the copy is one
    child.compacted(keep=["call_0"])  # the first one, for all we know
    assert child.observe("cat c.py", text("c"), call_id="z").outcome is Outcome.FULL


def test_lines_that_are_given_back_are_not_those_of_another_readers_call() -> None:
    """Two readers whose models count from 0 have calls of the same id."""
    store = MemoryStore()
    texts, replies = {"main": text("old"), "child": text("new")}, dict[str, Reply]()
    main = Session("/w", session_id="s", store=store, local=False)
    for session in (main, main.fork("child")):
        session.observe("cat a.py", texts[session.agent_id], call_id="call_0")
        replies[session.agent_id] = session.observe("cat a.py", texts[session.agent_id], call_id="call_1")
    assert replies["main"].text.replace(main.tag, session.tag) == replies["child"].text
    assert "UNCHANGED" in replies["main"].text
    main.reader.forget("call_1")
    main = Session("/w", session_id="s", store=store, local=False)
    left = main.mend([asked("call_1", "cat a.py"), result("call_1", replies["main"].text)])
    assert left[1]["content"].strip() == text("old").strip()


def test_a_marker_that_says_above_does_not_name_a_later_call_of_the_id(session: Session) -> None:
    """That one has the same text, but stands below the marker."""
    turns = [("call_0", session.observe("cat a.py", text("a"), call_id="call_0"))]
    turns += [(name, session.observe("cat a.py", text("a"), call_id=name)) for name in ("x", "call_0")]
    assert [reply.outcome for _, reply in turns] == [Outcome.FULL, Outcome.UNCHANGED, Outcome.FULL]
    messages = [one for name, reply in turns for one in (asked(name, "cat a.py"), result(name, reply.text))]
    messages[1] = result("call_0", "[old tool result cleared]")
    repaired = session.mend(messages)
    assert "UNCHANGED" not in repaired[3]["content"]
    assert repaired[5] == messages[5]
