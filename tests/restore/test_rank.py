"""What comes back first after a compaction, and why: each kind of evidence by itself."""

from __future__ import annotations

import json

import pytest

from readcache import Budget, Session
from tests.helpers.files import text

LINES = 60
ROOM = Budget(max_tokens=950)  # for one of the files that are shown here and not for two


def show(session: Session, *paths: str) -> None:
    for path in paths:
        session.observe(f"cat {path}", text(of=path))


def first(session: Session, budget: Budget = ROOM) -> str:
    return session.restore_plan(budget=budget).items[0].path


def test_without_other_evidence_what_was_shown_last_comes_first(session: Session) -> None:
    show(session, "a.py", "b.py", "c.py")
    assert first(session) == "/w/c.py"
    session.observe("sed -n '1,50p' a.py", text(1, 50, of="a.py"))  # answered by a marker, and asked for all the same
    assert first(session) == "/w/a.py"


@pytest.mark.parametrize(
    "command", ["pytest -q a.py", "git diff a.py", "rg total src a.py", "python - <<'EOF'\nopen('a.py').read()\nEOF"]
)
def test_a_file_that_the_agent_names_comes_before_files_read_later(session: Session, command: str) -> None:
    show(session, "a.py", "b.py", "c.py")
    session.observe(command, "")
    assert first(session) == "/w/a.py"
    assert "named 1 call ago" in session.restore_plan().items[0].why


def test_arguments_of_other_tools_name_files_too(session: Session) -> None:
    show(session, "a.py", "b.py", "c.py")
    session.observe_tool("Task", "done\n", arguments={"prompt": "look for callers of total() in /w/a.py"})
    assert first(session) == "/w/a.py"


def test_an_output_names_no_file(session: Session) -> None:
    """Whatever is listed or fails would be at work."""
    show(session, "a.py", "b.py", "c.py")
    session.observe("git status --short", " M a.py\n")
    assert first(session) == "/w/c.py"
    assert "named" not in next(item.why for item in session.restore_plan().items if item.path == "/w/a.py")


def test_only_the_whole_name_names_a_file(session: Session) -> None:
    show(session, "a.py", "c.py")
    session.observe("wc data.py ba.py a.pyi a.py.orig-not x-a.py", "")
    assert first(session) == "/w/c.py"


def test_a_file_is_not_named_by_reads_of_itself(session: Session) -> None:
    session.observe("cat a.py", "# a.py\n" + text(of="a.py"))
    session.observe("sed -n '2,9p' a.py", text(1, 8, of="a.py"))
    assert "named" not in session.restore_plan().items[0].why


def test_files_of_one_name_are_told_apart_by_their_directory(session: Session) -> None:
    show(session, "one/index.ts", "two/index.ts", "other.ts")
    session.observe("tsc one/index.ts", "")
    assert first(session) == "/w/one/index.ts"
    assert "named" not in next(i for i in session.restore_plan().items if i.path == "/w/two/index.ts").why


def test_of_files_that_were_merely_read_long_ago_the_small_ones_come_first(session: Session) -> None:
    session.observe("cat small.py", text(1, 10, of="small.py"))
    show(session, "a.py", "b.py", "c.py")
    for n in range(40):
        session.observe(f"echo {n}", f"{n}\n")
    assert first(session) == "/w/small.py"


@pytest.mark.parametrize(
    "output",
    [
        "a.py:50:    def total(self):\n",
        '  File "/w/a.py", line 50, in total\n',
        "a.py(50,3): error: no such name\n",
        "\tat a.py:50\n",
        "--> /w/a.py:50:121\n",
    ],
)
def test_the_lines_that_a_search_or_a_trace_points_at_come_first(session: Session, output: str) -> None:
    show(session, "a.py")
    session.observe("make", output)
    (item,) = session.restore_plan(budget=Budget(max_tokens=500)).items
    assert 20 < item.start <= 50 <= item.end
    assert "a search or a trace points here" in item.why


def test_a_file_that_the_agent_wrote_comes_before_one_that_it_looked_at_later(session: Session) -> None:
    show(session, "a.py", "b.py")
    session.wrote("/w/a.py")
    show(session, "b.py", "c.py")
    assert first(session) == "/w/a.py"
    assert "written 3 calls ago" in session.restore_plan().items[0].why


def test_what_an_earlier_compaction_took_may_come_back_at_the_next(session: Session) -> None:
    show(session, "a.py")
    session.compacted()
    show(session, "b.py")
    session.observe("make a.py", "")
    assert first(session) == "/w/a.py"


def test_what_a_rewind_undid_does_not_come_back(session: Session) -> None:
    session.observe("cat a.py", text(of="a.py"), call_id="c1")
    session.observe("cat b.py", text(of="b.py"), call_id="c2")
    session.rewind("c1")
    assert [item.path for item in session.restore_plan().items] == ["/w/a.py"]


def test_what_the_harness_cut_away_was_never_shown(session: Session) -> None:
    session.observe("cat a.py", text(of="a.py"), call_id="c1")
    session.settle("c1", text(1, 20, of="a.py") + "[cut]\n")
    assert [(item.start, item.end) for item in session.restore_plan().items] == [(1, 20)]


def test_a_restored_section_is_no_reason_to_restore_its_lines_again(session: Session) -> None:
    show(session, "a.py", "b.py")
    for n in range(20):
        session.observe(f"echo {n}", f"{n}\n")
    session.compacted(restored=session.restore_plan(budget=ROOM))
    assert "shown 22 calls ago" in session.restore_plan(budget=ROOM).items[0].why


def test_what_a_restored_section_alone_showed_may_come_back(session: Session) -> None:
    show(session, "a.py")
    other = Session("/w")
    show(other, "b.py")
    session.compacted(restored=other.restore_plan())
    session.compacted()
    assert [item.path for item in session.restore_plan().items] == ["/w/a.py", "/w/b.py"]


def test_lines_for_which_a_marker_stands_that_stays_come_first(session: Session) -> None:
    show(session, "a.py", "b.py")
    session.observe("sed -n '41,60p' a.py", text(41, 60, of="a.py"), call_id="kept")
    show(session, "c.py")
    plan = session.restore_plan(keep=["kept"], budget=Budget(max_tokens=400))
    item = plan.items[-1]
    assert (item.path, item.end) == ("/w/a.py", 60)
    assert item.start <= 41
    assert "a marker that stays points here" in item.why
    assert plan.heading in session.compacted(keep=["kept"], restored=plan).rewrites["kept"]


def test_of_equal_files_the_smaller_one_comes_first(session: Session) -> None:
    """For its tokens it is as likely to be read again as the other for many more."""
    with session.batch():
        session.observe("cat large.py", text(of="large.py"), call_id="d")
        session.observe("cat small.py", text(1, 10, of="small.py"), call_id="c")
    session.observe("make small.py large.py", "")
    assert first(session, Budget()) == "/w/small.py"


def test_where_few_files_may_come_back_and_tokens_are_left_the_larger_one_does(session: Session) -> None:
    with session.batch():
        session.observe("cat large.py", text(of="large.py"), call_id="d")
        session.observe("cat small.py", text(1, 10, of="small.py"), call_id="c")
    session.observe("make small.py large.py", "")
    assert first(session, Budget(max_files=1)) == "/w/large.py"


def test_a_plan_says_why_each_file_was_open(session: Session) -> None:
    """Restored files arrived without the reason they were open."""
    show(session, "a.py")
    session.wrote("/w/a.py")
    show(session, "a.py")
    session.observe("git log a.py", "a.py:7: error\n")
    plan = session.restore_plan()
    why = "shown 2 calls ago, named 1 call ago, written 3 calls ago, a search or a trace points here; last seen"
    assert plan.items[0].why == why
    assert f"### /w/a.py lines 1-60: {why}\n" in plan.render()


def test_calls_of_the_message_list_that_nobody_told_of_name_files_too(session: Session) -> None:
    """An editor's search, a sub-agent's task, a list of things to do: the tools that a harness does not hand over."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    for call_id, path in (("c1", "a.py"), ("c2", "b.py"), ("c3", "c.py")):
        reply = session.observe(f"cat {path}", text(of=path), call_id=call_id)
        messages += turn(call_id, "bash", {"command": f"cat {path}"}, reply.text)
    session.sync(messages)
    assert first(session) == "/w/c.py"
    messages += turn("t1", "Task", {"prompt": "who calls total() of a.py?"}, "nobody")
    assert session.restore_plan(budget=ROOM, messages=messages).items[0].path == "/w/a.py"
    session.sync(messages)
    assert first(session) == "/w/a.py"
    assert "named 1 call ago" in session.restore_plan().items[0].why


def turn(call_id: str, name: str, arguments: dict[str, str], result: str) -> list[dict[str, object]]:
    """A call and its result, as OpenAI's API has them."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]
