"""A bash without processes: what it answers from its script and from the files, and what it refuses to know."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    "command",
    [
        "make",
        "git log | cat",
        "cat $FILE",
        "cat *.py",
        "sed -n $p f",
        'sed -n "$p" f',
        "cat ''",
        "cat .",
        "cat ~/f",
        "cat < f",
        "cat f > g",
        "(cat f)",
        "cat $(ls)",
        "cat `ls`",
        "cat 'f",
        "cat f || cat f",
        "cat f & cat f",
        "cat -A f",
        "cat -",
        "cd",
        "cd -",
        "cd gone && cat f",
        "cat gone",
        "cat f gone | head -n 1",
        "sed -n 1p gone; cat f",
        "cd . | cat f",
        "cat",
        "head f f",
        "head -c 5 f",
        "head -n five f",
        "tail -f f",
        "nl -ba -w2 f",
        "cat f 2>/dev/null",
        "A=1 cat f",
        "head -n 3 f; make",
        "cat *f",
        "nl f",
        "sed 's/a/b/' f",
        "sed -n '/line/p' f",
        "sed -n '0,5p' f",
        "sed -n 5p -i f",
        "sed -i -n 5p f",
        "| cat",
        "cat f |",
        "",
    ],
)
def test_a_command_that_it_does_not_know_is_an_error_that_names_what_it_knows(tmp_path: Path, command: str) -> None:
    (tmp_path / "f").write_text(TEXT)
    bash = ScriptedBash({"git log": "", re.compile("git (pull|push)"): ""}, cwd=str(tmp_path))
    message = f"ScriptedBash has no answer to {command!r}; its script knows\n  'git log'\n  'git (pull|push)'"
    with pytest.raises(AssertionError, match=f"^{re.escape(message)}$"):
        bash(command)
    assert bash.calls == []


def test_comments_and_lines_are_read_as_bash_reads_them(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    assert ScriptedBash(cwd=str(tmp_path))("cat f # all\n# and the\ntail -n 1 f") == TEXT + TEXT.splitlines(True)[-1]


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


# ------------------------------------------------------------ from files

PATHS = st.sampled_from(["a", "b", "'c d'", "empty", "odd", "./a", "dir/../b"])
ONE = st.one_of(
    st.builds("cat {}".format, PATHS),
    st.builds("cat -n {} {}".format, PATHS, PATHS),
    st.builds("nl -ba {}".format, PATHS),
    st.builds("nl -b a {} {}".format, PATHS, PATHS),
    st.builds("{} {}".format, st.sampled_from(["head", "tail"]), PATHS),
    st.builds("{} {}{} {}".format, st.sampled_from(["head", "tail"]), st.sampled_from(["-n ", "-n", "-"]),
              st.integers(1, 15), PATHS),
    st.builds("tail -n +{} {}".format, st.integers(1, 15), PATHS),
    st.builds("sed -n '{},{}p' {} {}".format, st.integers(1, 15), st.sampled_from([1, 3, 14, "$"]), PATHS, PATHS),
    st.builds("sed -n '{}p;{}p' {}".format, st.integers(1, 15), st.sampled_from([2, " 3", "$"]), PATHS),
)  # fmt: skip
FILTER = st.sampled_from(
    ["cat", "cat -n", "nl -ba", "head -n 3", "tail -2", "tail -n +3", "sed -n '2,4p'", "sed -n '$p'"]
)
LISTS = st.lists(st.tuples(st.sampled_from([" && ", "; ", ";"]), ONE | st.sampled_from(["cd dir", "cd ."])), max_size=2)


@given(first=ONE, filters=st.lists(FILTER, max_size=2), rest=LISTS)
@example(first="sed -n '1p;$p' empty", filters=[], rest=[])
@example(first="sed -n '1,$p' odd empty", filters=[], rest=[])
@example(first="sed -n '1,3p' b a", filters=[], rest=[])
@example(first="sed -n '3p;$p' b", filters=[], rest=[])
@example(first="nl -ba b a", filters=[], rest=[])
@example(first="cat a", filters=[], rest=[("; ", "cd dir"), (" && ", "cat ../b")])
def test_files_are_read_as_bash_and_the_real_programs_read_them(
    tmp_path: Path, first: str, filters: list[str], rest: list[tuple[str, str]]
) -> None:
    (tmp_path / "dir" / "dir").mkdir(parents=True, exist_ok=True)
    texts = {"a": TEXT, "b": "one\n\nthree", "c d": "\n\n", "empty": "", "odd": "a\r\nb\x0cc\u2028d\ne\rf"}
    for name, text in texts.items():
        for directory in (tmp_path, tmp_path / "dir"):
            (directory / name).write_bytes(text.encode())
    command = " | ".join([first, *filters]) + "".join(operator + one for operator, one in rest)
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    real = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, check=False)
    answer = ScriptedBash(cwd=str(tmp_path)).run(command)
    assert (answer.stdout, answer.returncode) == (real.stdout.decode(), real.returncode)


def test_the_script_goes_before_the_files(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    bash = ScriptedBash({"cat f": "as it is in the container\n"}, cwd=str(tmp_path))
    assert bash("cat f") == "as it is in the container\n"
    assert bash("cat ./f") == TEXT


def test_an_answer_may_do_what_the_command_would(tmp_path: Path) -> None:
    def edit(_command: str) -> str:
        (tmp_path / "f").write_text(TEXT.upper())
        return ""

    (tmp_path / "f").write_text(TEXT)
    bash = ScriptedBash({"sed -i 's/.*/\\U&/' f": edit}, cwd=str(tmp_path))
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
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "f").write_text(TEXT)
    session = Session(tmp_path)
    tool = session.wrap(ScriptedBash(cwd=str(tmp_path)).execute)
    assert tool({"command": "cat f"}, cwd="sub")["output"] == TEXT
    assert session.view.covers(str(tmp_path / "sub" / "f"), 1, 40)


def test_an_unknown_command_is_not_hidden_by_wrapping() -> None:
    session = Session("/w")
    with pytest.raises(AssertionError, match="no answer to 'make'"):
        session.wrap(ScriptedBash())("make")
    assert session.stats() == {}
