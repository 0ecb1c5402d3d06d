"""What a call of somebody else's tool is taken for, and what a session is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from readcache import Reason, Reply, Session
from readcache.core.model.tool_call import ToolCall
from readcache.hosts.tool_results import answer_tool, without_status

TEXT = "".join(f"line {n} of a file with some words in it\n" for n in range(1, 61))
NUMBERED = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(TEXT.splitlines(), 1))


def answer(session: Session, name: str, arguments: dict[str, Any], output: str, **known: Any) -> Reply | None:
    answer.calls += 1  # type: ignore[attr-defined]  # numbers the calls of a test
    call_id = f"call-{answer.calls}"  # type: ignore[attr-defined]
    return answer_tool(session, ToolCall(call_id, name, arguments, output, call_id, **known))


answer.calls = 0  # type: ignore[attr-defined]


def test_the_error_of_a_view_is_shown_each_time() -> None:
    session, error = Session("/repo"), "ERROR: " + "no such file, " * 40
    for _ in range(2):
        reply = answer(session, "editor", {"command": "view", "path": "a.py"}, error, is_error=True)
        assert reply is not None
        assert reply.text == error


def test_reads_and_commands_are_sources_for_each_other() -> None:
    session = Session("/repo")
    answer(session, "read_file", {"path": "a.py"}, NUMBERED)
    reply = answer(session, "bash", {"command": "sed -n '11,50p' a.py"}, "".join(TEXT.splitlines(True)[10:50]))
    assert reply is not None
    assert reply.reason is Reason.COVERED


@pytest.mark.parametrize(
    ("arguments", "first", "last"),
    [
        ({"start_line": 11, "end_line": 50}, 11, 50),
        ({"start": 11, "end": None}, 11, 60),
        ({"view_range": [11, 50]}, 11, 50),
        ({"view_range": [11, -1]}, 11, 60),
        ({"end_line": 40}, 1, 40),
        ({"encoding": "utf-8"}, 1, 60),
    ],
)
def test_the_lines_that_were_asked_for_are_understood(arguments: dict[str, Any], first: int, last: int) -> None:
    session = Session("/repo")
    answer(session, "read_file", {"path": "a.py", **arguments}, "".join(TEXT.splitlines(True)[first - 1 : last]))
    assert session.view.covers("/repo/a.py", first, last)
    assert not session.view.covers("/repo/a.py", 1, 60) or (first, last) == (1, 60)


@pytest.mark.parametrize(
    "arguments", [{"offset": 10}, {"offset": 10, "limit": 40}, {"head": 20}, {"view_range": "1-20"}, {"start": "10"}]
)
def test_of_a_read_that_is_not_understood_no_line_has_a_number(arguments: dict[str, Any]) -> None:
    session = Session("/repo")
    call = ("read_file", {"path": "a.py", **arguments}, TEXT)
    answer(session, *call)
    again = answer(session, *call)
    assert again is not None
    assert "a.py lines" not in again.text
    assert not session.view.covers("/repo/a.py", 1, 1)


@pytest.mark.parametrize("offset", [10, 11])
def test_numbers_say_from_where_an_offset_counts(offset: int) -> None:
    session = Session("/repo")
    window = "".join(NUMBERED.splitlines(True)[10:50])
    answer(session, "read_file", {"path": "a.py", "offset": offset, "limit": 40}, window)
    reply = answer(session, "bash", {"command": "sed -n '11,50p' a.py"}, "".join(TEXT.splitlines(True)[10:50]))
    assert reply is not None
    assert reply.reason is Reason.COVERED
    assert session.view.covers("/repo/a.py", 11, 50)
    assert not session.view.covers("/repo/a.py", 10, 10)


def test_numbers_in_front_of_lines_are_seen() -> None:
    session = Session("/repo")
    framed = f"Here is the file:\n{NUMBERED}(end of file)\n"
    answer(session, "view", {"path": "a.py"}, framed)
    assert session.view.covers("/repo/a.py", 1, 60)
    assert not session.view.covers("/repo/a.py", 61, 61)


def test_the_list_of_a_directory_is_not_taken_for_a_file() -> None:
    session, call = Session("/repo"), ("str_replace_editor", {"command": "view", "path": "src"}, TEXT)
    answer(session, *call)
    again = answer(session, *call)
    assert again is not None
    assert "FILE" not in again.text


def test_after_a_write_the_file_is_shown_and_its_own_text_is_visible() -> None:
    session = Session("/repo")
    answer(session, "bash", {"command": "cat a.py"}, TEXT)
    assert answer(session, "edit_file", {"path": "a.py", "old": "1", "new": "2"}, "edited") is None
    changed = answer(session, "bash", {"command": "cat a.py"}, TEXT.replace("line 1 ", "line 2 "))
    assert changed is not None
    assert changed.reason is Reason.WRITTEN
    answer(session, "write_file", {"path": "b.py", "content": TEXT}, "written")
    own = answer(session, "bash", {"command": "cat b.py"}, TEXT)
    assert own is not None
    assert own.reason is Reason.COVERED


def test_a_write_that_failed_wrote_nothing() -> None:
    session = Session("/repo")
    answer(session, "bash", {"command": "cat a.py"}, TEXT)
    answer(session, "edit_file", {"path": "a.py", "old": "1", "new": "2"}, "no such text", is_error=True)
    again = answer(session, "bash", {"command": "cat a.py"}, TEXT)
    assert again is not None
    assert again.reason is Reason.COVERED


def test_a_tool_to_be_ignored_is_ignored() -> None:
    session = Session("/repo")
    assert answer_tool(session, ToolCall("c", "bash", {"command": "cat a.py"}, TEXT, "b"), "ignore") is None
    assert not session.view.deliveries


def test_paths_that_begin_at_the_project_are_those_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    session = Session(tmp_path)
    answer(session, "read_file", {"path": "/a.py"}, TEXT)
    assert session.view.covers(str(tmp_path / "a.py"), 1, 60)


@pytest.mark.parametrize(
    ("text", "head", "tail"),
    [
        ("one\ntwo\n", "", ""),
        ("exit code: 0\none\n", "exit code: 0\n", ""),
        ("one\n\n[Command succeeded with exit code 0]", "", "\n\n[Command succeeded with exit code 0]"),
        ("one\n\nExit code: 1", "", "\n\nExit code: 1"),
        ("one\nReturn code = -9\n", "", "\nReturn code = -9\n"),
        ("[exit status 2]", "", "[exit status 2]"),
        ("exit code: 0\n", "", "exit code: 0\n"),
        ("the exit code: 0 was not\n", "", ""),
        ("", "", ""),
    ],
)
def test_a_status_line_around_the_output_is_the_tools(text: str, head: str, tail: str) -> None:
    found = without_status(text)
    assert "".join(found) == text
    assert found in {(head, text[len(head) : len(text) - len(tail)], tail), (text, "", "")}


def test_lines_behind_a_status_are_those_of_the_file() -> None:
    session = Session("/repo")
    output = TEXT + "\n[Command succeeded with exit code 0]"
    answer(session, "execute", {"command": "cat a.py"}, output)
    again = answer(session, "execute", {"command": "cat a.py"}, output)
    assert again is not None
    assert "a.py lines 1-60," in again.text
    assert again.text.endswith("\n[Command succeeded with exit code 0]")


def test_what_a_framework_says_of_a_command_that_failed_is_no_content_of_a_file() -> None:
    session, said = Session("/repo"), "Tool 'bash' timed out after 0.3 seconds."
    for n, output in enumerate((TEXT, said, TEXT)):
        result = ToolCall(f"c{n}", "bash", {"command": "cat a.py"}, output, f"b{n}", is_error=output == said)
        reply = answer_tool(session, result)
    assert reply is not None
    assert reply.text.startswith("[FILE_UNCHANGED")
