"""What a call of somebody else's tool does, and that hosts, recordings and pruning agree on it."""

from __future__ import annotations

from typing import Any

import pytest

from readcache import Session
from readcache.context.tool_calls import ListedCall, overwritten, source_map_of
from readcache.core.messages.messages import Kind, Part
from readcache.core.messages.tools import lines_read, tool_use
from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall
from readcache.hosts.tool_results import answer_tool
from readcache.transcripts.tools import understood
from tests.helpers.adversaries import beside_a_loop

TEXT = "".join(f"line {n} of a file with some words in it\n" for n in range(1, 61))


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("bash", {"command": "ls"}, "bash"),
        ("run_in_terminal", {"cmd": "ls", "timeout": 3}, "bash"),
        ("read_file", {"file_path": "/a.py", "offset": 3}, "read"),
        ("mcp__fs__read_text_file", {"path": "a.py"}, "read"),
        ("fs.ReadFile", {"path": "a.py"}, "read"),
        ("read_file", {"url": "https://example.org"}, "other"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}, "read"),
        ("str_replace_based_edit_tool", {"command": "create", "path": "a.py", "file_text": ""}, "write"),
        ("edit_file", {"path": "a.py", "old": "a", "new": "b"}, "write"),
        ("deploy", {"command": "now", "path": "a"}, "other"),
        ("grep", {"pattern": "x", "path": "src"}, "other"),
        ("summarise_file", {"path": "a.py"}, "other"),
        ("bash", {"command": ["ls"]}, "bash"),
        ("deploy", {"command": 3}, "other"),
    ],
)
def test_a_tool_is_known_by_its_name_and_its_arguments(name: str, arguments: dict[str, Any], kind: str) -> None:
    assert tool_use(name, arguments).kind == kind


@pytest.mark.parametrize("line", ["7" * 5000 + ": x", "0" * 5000 + "\tx"])
def test_digits_too_many_for_a_line_number_are_text(line: str) -> None:
    assert lines_read({"path": "/f"}, line + "\n") == (1, None, False)


def test_a_long_line_of_zeros_is_read_in_linear_time() -> None:
    assert beside_a_loop(lambda: lines_read({"path": "/f"}, "0" * 20_000 + "\n")) < 10


# ------------------------------------------------------------ what had drifted apart


def live(name: str, arguments: dict[str, Any], output: str) -> Session:
    """A session that an adapter told of the call."""
    session = Session("/repo")
    answer_tool(session, ToolCall("c", name, arguments, output, "c"))
    return session


def in_messages(name: str, arguments: dict[str, Any], output: str) -> ListedCall:
    call = Part(Kind.CALL, "", call_id="c", name=name, arguments=arguments)
    return ListedCall(call, Part(Kind.RESULT, output, call_id="c"), 0, 1, "/repo")


def recorded(name: str, arguments: dict[str, Any], output: str) -> Any:
    return understood(ToolCall("c", name, arguments, output, cwd="/repo"))


READS = [
    ("read", {"filePath": "a.py"}),
    ("open_file", {"target_file": "a.py"}),
    ("open", {"path": "a.py"}),
    ("mcp__fs__read_text_file", {"path": "a.py", "encoding": "utf-8"}),
    ("view", {"file": "a.py", "first_line": 1}),
]


@pytest.mark.parametrize(("name", "arguments"), READS)
def test_a_read_is_a_read_for_all(name: str, arguments: dict[str, Any]) -> None:
    assert live(name, arguments, TEXT).view.covers("/repo/a.py", 1, 60)
    assert isinstance(recorded(name, arguments, TEXT).asked, AskedRead)
    assert [mapped.keys for mapped in source_map_of(in_messages(name, arguments, TEXT))] == [("/repo/a.py",)]


@pytest.mark.parametrize("arguments", [{"path": "a.py", "offset": 5}, {"path": "a.py", "pattern": "x"}])
def test_a_read_of_uncertain_lines_is_not_a_read_for_any(arguments: dict[str, Any]) -> None:
    assert not live("read", arguments, TEXT).view.covers("/repo/a.py", 1, 1)
    assert not isinstance(recorded("read", arguments, TEXT).asked, AskedRead)
    assert source_map_of(in_messages("read", arguments, TEXT)) == ()


@pytest.mark.parametrize("key", ["command", "cmd", "script"])
def test_a_command_is_a_command_for_all(key: str) -> None:
    call = ("shell", {key: "cat a.py"}, TEXT)
    assert live(*call).view.covers("/repo/a.py", 1, 60)
    assert isinstance(recorded(*call).asked, AskedCommand)
    assert in_messages(*call).use.command == "cat a.py"


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch\n"
WRITES = [
    ("replace", {"file_path": "a.py", "old_string": "a", "new_string": "b"}),
    ("multiEdit", {"filePath": "a.py", "edits": []}),
    ("delete", {"path": "a.py"}),
    ("patch_file", {"path": "a.py", "diff": "-a"}),
    ("apply_patch", {"input": PATCH}),
    ("patch", {"patchText": PATCH}),
]


@pytest.mark.parametrize(("name", "arguments"), WRITES)
def test_an_edit_is_told_by_all(name: str, arguments: dict[str, Any]) -> None:
    session = Session("/repo")
    session.observe("cat a.py", TEXT)
    answer_tool(session, ToolCall("c", name, arguments, "done", "c"))
    assert not session.view.covers("/repo/a.py", 1, 1)
    assert [written.path for written in recorded(name, arguments, "done").writes] == ["/repo/a.py"]
    assert overwritten(in_messages(name, arguments, "done")) == frozenset()


@pytest.mark.parametrize(
    ("name", "more", "is_complete"),
    [
        ("write_to_file", {}, True),
        ("append_file", {}, False),
        ("write", {"append": True}, False),
        ("insert", {}, False),
    ],
)
def test_only_a_whole_new_content_is_content(name: str, more: dict[str, Any], is_complete: bool) -> None:
    call = (name, {"path": "a.py", "content": TEXT, **more}, "done")
    assert live(*call).view.covers("/repo/a.py", 1, 60) == is_complete
    assert (recorded(*call).writes[0].content == TEXT) == is_complete
    assert overwritten(in_messages(*call)) == (frozenset(["/repo/a.py"]) if is_complete else frozenset())


def test_a_list_of_things_to_do_is_left_alone_by_all() -> None:
    call: tuple[str, dict[str, Any], str] = ("TodoWrite", {"todos": []}, TEXT)
    assert not live(*call).view.deliveries
    assert recorded(*call).asked is None
