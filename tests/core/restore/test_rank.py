"""What comes back first after a compaction, and why: each kind of evidence by itself."""

from __future__ import annotations

import json

import pytest

from readcache import Budget, Policy, Session
from tests.helpers.files import text

LINES = 60
ROOM = Budget(max_tokens=950)  # for one of the files that are shown here and not for two


def show(session: Session, *paths: str) -> None:
    for path in paths:
        session.observe(f"cat {path}", text(of=path))


def first(session: Session, budget: Budget = ROOM) -> str | None:
    return session.restore_plan(budget=budget).items[0].path


def wait(session: Session, calls: int = 4) -> None:
    """Calls that tell nothing of the files."""
    for n in range(calls):
        session.observe(f"echo {n}", "")


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
    wait(session)
    session.observe(command, "")
    assert first(session) == "/w/a.py"
    assert "mentioned 1 call ago" in session.restore_plan().items[0].why


def test_arguments_of_other_tools_name_files_too(session: Session) -> None:
    show(session, "a.py", "b.py", "c.py")
    wait(session)
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
    wait(session)
    session.observe("tsc one/index.ts", "")
    assert first(session) == "/w/one/index.ts"
    assert "named" not in next(i for i in session.restore_plan().items if i.path == "/w/two/index.ts").why


def test_a_file_that_the_agent_wrote_comes_before_one_that_it_looked_at_later(session: Session) -> None:
    show(session, "a.py", "b.py", "c.py")
    wait(session)
    session.wrote("/w/a.py")
    assert first(session) == "/w/a.py"
    assert "edited 1 call ago" in session.restore_plan().items[0].why


def test_what_an_earlier_compaction_took_may_come_back_at_the_next(session: Session) -> None:
    show(session, "a.py")
    session.compacted()
    show(session, "b.py")
    wait(session)
    session.observe("make a.py", "")
    assert first(session) == "/w/a.py"


def test_what_a_rewind_undid_does_not_come_back(session: Session) -> None:
    session.observe("cat a.py", text(of="a.py"), call_id="c1")
    session.observe("cat b.py", text(of="b.py"), call_id="c2")
    session.rewind("c1")
    assert [item.path for item in session.restore_plan().items] == ["/w/a.py"]


def test_a_write_of_another_reader_is_dated_by_the_calls_of_this_one(session: Session) -> None:
    other = session.fork("other")
    for n in range(20):
        other.observe(f"echo {n}", f"{n}\n")
    show(session, "a.py", "b.py")
    other.wrote("/w/a.py")
    session.observe("true", "")
    items = session.restore_plan().items
    assert "internal_error" not in session.stats()
    assert "edited 2 calls ago" in next(item.why for item in items if item.path == "/w/a.py")


def test_what_the_harness_cut_away_was_never_shown(session: Session) -> None:
    session.observe("cat a.py", text(of="a.py"), call_id="c1")
    session.settle("c1", text(1, 20, of="a.py") + "[cut]\n")
    assert [(item.start, item.end) for item in session.restore_plan().items] == [(1, 20)]


def test_a_restored_section_is_no_reason_to_restore_its_lines_again(session: Session) -> None:
    show(session, "a.py", "b.py")
    for n in range(20):
        session.observe(f"echo {n}", f"{n}\n")
    session.compacted(restored=session.restore_plan(budget=ROOM))
    assert "last read 22 calls ago" in session.restore_plan(budget=ROOM).items[0].why


def test_lines_for_which_a_marker_stands_that_stays_come_first(session: Session) -> None:
    show(session, "a.py", "b.py")
    session.observe("sed -n '41,60p' a.py", text(41, 60, of="a.py"), call_id="kept")
    show(session, "c.py")
    plan = session.restore_plan(keep=["kept"], budget=Budget(max_tokens=400))
    assert ("/w/a.py", 41, 60) in [(item.path, item.start, item.end) for item in plan.items]
    assert plan.heading in session.compacted(keep=["kept"], restored=plan).rewrites["kept"]


def test_of_equal_files_the_smaller_one_comes_first(session: Session) -> None:
    """For its tokens it is as likely to be read again as the other for many more."""
    with session.batch():
        session.observe("cat large.py", text(of="large.py"), call_id="d")
        session.observe("cat small.py", text(1, 10, of="small.py"), call_id="c")
    session.observe("make small.py large.py", "")
    assert first(session, Budget()) == "/w/small.py"


def test_a_plan_says_why_each_file_was_open(session: Session) -> None:
    """Restored files arrived without the reason they were open."""
    show(session, "a.py")
    session.wrote("/w/a.py")
    show(session, "a.py")
    session.observe("git log a.py", "")
    plan = session.restore_plan()
    why = "last read 2 calls ago, mentioned 1 call ago, edited 3 calls ago; as last seen"
    assert plan.items[0].why == why
    assert f"### /w/a.py lines 1-60: {why}\n" in plan.render()


def test_calls_of_the_message_list_that_nobody_told_of_name_files_too(session: Session) -> None:
    """An editor's search, a sub-agent's task, a list of things to do: the tools that a harness does not hand over."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    for path in ("a.py", "b.py", "c.py", "d.py", "e.py", "f.py"):
        reply = session.observe(f"cat {path}", text(of=path), call_id=path)
        messages += turn(path, "bash", {"command": f"cat {path}"}, reply.text)
    session.sync(messages)
    assert "named" not in session.restore_plan().render()
    messages += turn("t1", "Task", {"prompt": "who calls total() of a.py?"}, "nobody")
    assert first(session) == "/w/f.py"
    for plan in (session.restore_plan(messages=messages), (session.sync(messages), session.restore_plan())[1]):
        positions = [item.path for item in plan.items]
        assert positions.index("/w/a.py") < positions.index("/w/d.py")
        assert "### /w/a.py lines 1-60: last read 6 calls ago, mentioned 1 call ago" in plan.render()


def turn(call_id: str, name: str, arguments: dict[str, str], result: str) -> list[dict[str, object]]:
    """A call and its result, as OpenAI's API has them."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


# ------------------------------------------------------------ results of commands


def test_the_result_of_a_command_comes_back_as_it_was_with_its_command_and_age(session: Session) -> None:
    output = "".join(f"test_{n} failed: expected {n}, got {n + 1}\n" for n in range(30))
    session.observe("pytest -q", output)
    show(session, "a.py")
    plan = session.restore_plan()
    item = next(item for item in plan.items if item.kind == "result")
    assert (item.path, item.start, item.end, item.command) == (None, None, None, "pytest -q")
    assert item.text + "\n" == output
    assert "### Output of `pytest -q` from 2 calls ago\n" + output in plan.render()


def test_of_one_command_the_newest_result_comes_back(session: Session) -> None:
    for n in range(3):
        session.observe(f"pytest -q 2>&1 | tail -{n + 5}", f"{n} tests failed\n" + text(1, 9))
    assert [item.text[0] for item in session.restore_plan().items] == ["2"]


def test_a_command_that_was_run_again_comes_before_one_that_was_run_once(session: Session) -> None:
    for command in ("make test", "make test", "make lint", "ls build"):
        session.observe(command, f"what {command} printed {'in a long line ' * 40}\n")
    assert session.restore_plan().items[0].command == "make test"


def test_a_result_names_the_files_of_its_lines_that_changed_since(session: Session) -> None:
    added = "".join("+" + line for line in text(1, 20).splitlines(True))
    show(session, "a.py")
    session.observe("git diff", f"--- a/a.py\n+++ b/a.py\n@@ -0,0 +1,20 @@\n{added}")
    session.wrote("/w/a.py")
    item = next(item for item in session.restore_plan().items if item.command)
    assert item.why == "2 calls ago; a.py has changed since"


def test_a_result_whose_unnumbered_lines_may_have_changed_says_so(session: Session) -> None:
    both = text(1, 5, of="a.py") + "".join(f"note {n} beside the lines of the file\n" for n in range(9))
    session.observe("sed -n '1,5p' a.py; ./notes", both)
    assert [item.text + "\n" for item in session.restore_plan().items] == [both]
    session.wrote("/w/a.py")
    (item,) = session.restore_plan().items
    assert item.text + "\n" == "[14 lines that may be from before a.py changed:]\n" + both
    assert item.why == "2 calls ago; a.py has changed since"


def test_earlier_results_of_a_command_come_last_and_without_the_lines_of_the_newest(session: Session) -> None:
    first = "".join(f"test {n} failed in the first run, and nobody knows why\n" for n in range(20))
    session.observe("pytest -q", first + text(1, 30, of="trace"))
    show(session, "a.py")
    session.observe("pytest -q", text(1, 30, of="trace"))
    items = session.restore_plan().items
    assert [item.path or item.command for item in items] == ["pytest -q", "pytest -q", "/w/a.py"]
    assert [item.text for item in items[:2]] == [
        text(1, 30, of="trace").rstrip("\n"),
        first + "[30 lines that another part has]",
    ]
    room = Budget(max_tokens=1350)
    assert [item.path or item.command for item in session.restore_plan(budget=room).items] == ["pytest -q", "/w/a.py"]


def test_a_short_result_fills_the_room_that_is_left(session: Session) -> None:
    session.observe("make lint", "".join(f"{n} problems were found in a file of the project\n" for n in range(9)))
    session.observe("make check", "All the 7 checks have passed, and nothing else was found to do.\n" * 2)
    assert {item.command for item in session.restore_plan().items} == {"make lint", "make check"}
    room = Budget(max_tokens=150)
    assert [item.command for item in session.restore_plan(budget=room).items] == ["make lint"]


def test_of_short_results_of_one_command_only_the_newest_comes_back(session: Session) -> None:
    for n in range(3):
        session.observe("make check", f"{n} checks have passed\n")
    assert [item.text for item in session.restore_plan().items] == ["2 checks have passed"]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("pytest -q tests/test_a.py", "pytest -x tests/test_b.py 2>&1 | tail -40"),
        ("npm run test:unit -- --watch=false", "npm run test:unit && npm run lint"),
        ("go test ./...", "go test -run Total ./pkg/sum"),
        ("python -m pytest", "python -m  pytest --lf"),
    ],
)
def test_a_test_command_counts_as_run_again_in_another_form(session: Session, earlier: str, later: str) -> None:
    for n, command in enumerate((earlier, later, "ls build", "./show")):
        session.observe(command, "".join(f"line {n}-{m} of what this command prints\n" for m in range(30)))
    assert [item.command for item in session.restore_plan().items] == [later, "./show", "ls build", earlier]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("make test", "make lint"),
        ("cargo test total", "cargo test other"),
        ("git check-ignore a", "git check-ignore b"),
    ],
)
def test_other_commands_of_the_same_program_are_no_other_form(session: Session, earlier: str, later: str) -> None:
    for n, command in enumerate((earlier, later, "./show")):
        session.observe(command, "".join(f"line {n}-{m} of what this command prints\n" for m in range(30)))
    assert [item.command for item in session.restore_plan().items] == ["./show", later, earlier]


def test_a_result_counts_for_more_the_more_of_it_is_lines_of_files(session: Session) -> None:
    notes = "".join(f"note {n} of a program that is no line of a file\n" for n in range(60))
    session.observe("cat a.py b.py; ./notes", text(of="a.py") + text(of="b.py") + notes)
    session.observe("./make-all", text(of="other"))
    session.observe("./make-more", text(of="more"))
    assert session.restore_plan().items[0].command == "cat a.py b.py; ./notes"


def test_a_read_of_several_files_comes_before_a_command_that_was_run_once(session: Session) -> None:
    session.observe("cat a.py b.py", text(of="a.py") + text(of="b.py"))
    session.observe("./make-all", text(of="other"))
    assert [item.command for item in session.restore_plan().items] == ["cat a.py b.py", "./make-all"]


def test_a_result_that_does_not_fit_is_cut_at_its_end_alone(session: Session) -> None:
    output = "".join(f"{n} says what it says, and says no more than that\n" for n in range(500))
    session.observe("make", output)
    (item,) = session.restore_plan(budget=Budget(max_tokens=1000)).items
    assert output.startswith(item.text + "\n")
    assert 800 < item.tokens <= 1000
    assert session.restore_plan(budget=Budget(max_tokens=50)).items == ()


@pytest.mark.parametrize("command", ["cat /w/.env; make", "make", "python show.py server.pem"])
@pytest.mark.parametrize("policy", [Policy(), Policy(protected=())], ids=["protected", "unprotected"])
def test_a_result_that_may_hold_a_secret_does_not_come_back(policy: Policy, command: str) -> None:
    session = Session("/w", policy=policy)
    output = "".join(f"{n} says what it says, and says no more than that\n" for n in range(30))
    session.observe("make all", output)
    session.observe(command, f"{output}token: ghp_{'a1' * 20}\n")
    assert [item.command for item in session.restore_plan().items] == ["make all"]


def test_a_restored_result_answers_the_command_when_it_runs_again() -> None:
    session = Session("/w", policy=Policy.named("max"))
    output = "".join(f"test_{n} failed: expected {n}, got {n + 1}\n" for n in range(30))
    session.observe("pytest -q", output)
    plan = session.restore_plan()
    session.compacted(restored=plan)
    assert f'in the section "{plan.heading}"' in session.observe("pytest -q", output).text
