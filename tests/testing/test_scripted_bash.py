"""A bash without processes: what it answers from its script, and what it refuses to know."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from readcache import Session
from readcache.testing import BashCall, ScriptedBash
from tests.helpers.files import TEXT


def test_the_script_is_answered_exactly_by_pattern_or_by_a_function() -> None:
    bash = ScriptedBash(
        {
            "pwd": "/repo\n",
            "false": ("", 1),
            re.compile(r"git (log|status).*"): lambda command: f"ran {command}\n",
            "git log": "the exact one comes first\n",
            re.compile("exit .*"): lambda command: ("", int(command.split()[1])),
        }
    )
    assert bash("pwd") == "/repo\n"
    assert bash("git status -s") == "ran git status -s\n"
    assert bash("git log") == "the exact one comes first\n"
    assert bash("false") == ""
    assert bash("exit 7") == ""
    assert [call.exit_code for call in bash.calls] == [0, 0, 0, 1, 7]


def test_what_was_sent_is_on_record() -> None:
    bash = ScriptedBash({"pwd": "/w\n"}, cwd="/w")
    bash("pwd")
    bash("pwd", cwd="sub/..")
    bash("pwd", cwd="/elsewhere")
    assert bash.calls == [BashCall("pwd", cwd, "/w\n", 0) for cwd in ("/w", "/w", "/elsewhere")]
    assert bash.commands == ["pwd"] * 3


def test_a_newer_answer_takes_the_older_ones_place() -> None:
    bash = ScriptedBash({"make": ("error\n", 2)})
    assert bash.run("make").returncode == 2
    bash.add("make", "done\n")
    assert bash.run("make").returncode == 0


def test_a_command_that_it_does_not_know_is_an_error_that_names_what_it_knows() -> None:
    bash = ScriptedBash({"git log": "", re.compile("git (pull|push)"): ""})
    message = "ScriptedBash has no answer to 'make'; its script knows\n  'git log'\n  'git (pull|push)'"
    with pytest.raises(AssertionError, match=f"^{re.escape(message)}$"):
        bash("make")
    assert bash.calls == []


def test_an_empty_script_knows_nothing() -> None:
    with pytest.raises(AssertionError, match=r"its script knows nothing$"):
        ScriptedBash()("make")


@pytest.mark.parametrize("answer", [b"a\n", ("a\n",), 1, None, lambda _command: None])
def test_an_answer_that_is_none_is_an_error_that_says_what_one_is(answer: Any) -> None:
    bash = ScriptedBash({"ls": answer})
    with pytest.raises(
        TypeError, match=r"^the script's answer to 'ls' is .*: it must be a text, or a text and an exit"
    ):
        bash("ls")
    assert bash.calls == []


def test_an_answer_may_do_what_the_command_would(tmp_path: Path) -> None:
    def edit(_command: str) -> str:
        (tmp_path / "f").write_text(TEXT.upper())
        return ""

    (tmp_path / "f").write_text(TEXT)
    script: dict[Any, Any] = {"sed -i 's/.*/\\U&/' f": edit, "cat f": lambda _: (tmp_path / "f").read_text()}
    bash = ScriptedBash(script, cwd=str(tmp_path))
    tool = Session(tmp_path).wrap(bash)
    assert [tool("cat f"), tool("sed -i 's/.*/\\U&/' f"), tool("cat f")] == [TEXT, "", TEXT.upper()]


# ------------------------------------------------------------ as a harness's tool


def test_it_can_be_wrapped_in_each_of_its_shapes() -> None:
    bash = ScriptedBash({"cat f": (TEXT, 3)})

    async def await_twice(session: Session) -> list[Any]:
        tool = session.wrap(bash.acall)
        return [await tool("cat f"), await tool("cat f")]

    def in_turn(tool: Any, command: Any) -> list[Any]:
        return [tool(command), tool(command)]

    s = Session("/w")
    full, marker = in_turn(s.wrap(bash), "cat f")
    assert (full, s.markers_in(marker)) == (TEXT, [marker.rstrip("\n")])
    s = Session("/w")
    full, marker = asyncio.run(await_twice(s))
    assert (full, s.markers_in(marker)) == (TEXT, [marker.rstrip("\n")])
    s = Session("/w")
    first, second = in_turn(s.wrap(bash.run), "cat f")
    assert (first.stdout, first.returncode, first.stderr) == (TEXT, 3, "")
    assert (s.markers_in(second.stdout), second.returncode) == ([second.stdout.rstrip("\n")], 3)
    s = Session("/w")
    first, second = in_turn(s.wrap(bash.execute), {"command": "cat f"})
    assert first == {"output": TEXT, "returncode": 3, "exception_info": ""}
    assert (s.markers_in(second["output"]), second["returncode"]) == ([second["output"].rstrip("\n")], 3)
    assert bash.commands == ["cat f"] * 8


def test_the_directory_of_a_call_is_that_of_the_session_too(tmp_path: Path) -> None:
    session = Session(tmp_path)
    tool = session.wrap(ScriptedBash({"cat f": TEXT}, cwd=str(tmp_path)).execute)
    assert tool({"command": "cat f"}, cwd="sub")["output"] == TEXT
    assert session.view.covers(str(tmp_path / "sub" / "f"), 1, 40)


def test_an_unknown_command_is_not_hidden_by_wrapping() -> None:
    session = Session("/w")
    with pytest.raises(AssertionError, match="no answer to 'make'"):
        session.wrap(ScriptedBash())("make")
    assert session.stats() == {}
