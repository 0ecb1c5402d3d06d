from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from readcache import Session, UsageError
from tests.helpers.files import TEXT, text


def is_marker(session: Session, text: object) -> bool:
    return isinstance(text, str) and session.markers_in(text) == [text.rstrip("\n")]


def test_a_tool_from_a_string_to_a_string(session: Session) -> None:
    bash = session.wrap(lambda _command: TEXT)
    assert bash("cat f") == TEXT
    assert is_marker(session, bash("cat f"))
    assert bash("cat f") == TEXT, "who insists is served"


@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_tool_that_gives_a_completed_process(session: Session, as_bytes: bool) -> None:
    out: Any = TEXT.encode() if as_bytes else TEXT

    def bash(command: str) -> subprocess.CompletedProcess[Any]:
        return subprocess.CompletedProcess(command, 3, out, "a warning")

    wrapped = session.wrap(bash)
    first, second = wrapped("cat f"), wrapped("cat f")
    assert first == bash("cat f") or vars(first) == vars(bash("cat f"))
    text = second.stdout.decode() if as_bytes else second.stdout
    assert is_marker(session, text)
    assert (second.args, second.returncode, second.stderr) == ("cat f", 3, "a warning")
    assert session.events()[0].event.text == TEXT  # type: ignore[union-attr]


def test_bytes_that_are_no_text_come_back_as_they_are(session: Session) -> None:
    out = b"\xff\xfe" * 500
    bash = session.wrap(lambda command: subprocess.CompletedProcess(command, 0, out))
    assert bash("cat f").stdout == out


@pytest.mark.parametrize("status", ["returncode", "exit_code"])
def test_a_tool_from_a_dict_to_a_dict(session: Session, status: str) -> None:
    bash = session.wrap(lambda _action: {"output": TEXT, status: 1, "extra": [1]})
    assert bash({"command": "cat f"}) == {"output": TEXT, status: 1, "extra": [1]}
    second = bash({"command": "cat f", "cwd": "/w"})
    assert is_marker(session, second.pop("output"))
    assert second == {status: 1, "extra": [1]}


def test_an_async_tool_stays_async(session: Session) -> None:

    async def bash(_command: str) -> str:
        await asyncio.sleep(0)
        return TEXT

    wrapped = session.wrap(bash)

    async def calls() -> list[str]:
        return [await wrapped("cat f"), await wrapped("cat f")]

    assert asyncio.iscoroutinefunction(wrapped)
    first, second = asyncio.run(calls())
    assert first == TEXT
    assert is_marker(session, second)


def test_an_object_whose_call_is_async(session: Session) -> None:
    class Bash:
        async def __call__(self, _command: str) -> str:
            return TEXT

    wrapped = session.wrap(Bash())
    assert asyncio.run(wrapped("cat f")) == TEXT
    assert is_marker(session, asyncio.run(wrapped("cat f")))


def test_a_sync_tool_that_gives_an_awaitable(session: Session) -> None:

    async def later() -> str:
        return TEXT

    def bash(_command: str) -> Awaitable[str]:
        return later()

    async def call() -> Any:
        return await session.wrap(bash)("cat f")

    assert asyncio.run(call()) == TEXT
    assert is_marker(session, asyncio.run(call()))


def test_what_the_tool_raises_passes(session: Session) -> None:

    def bash(_command: str) -> str:
        raise TimeoutError("too slow")

    with pytest.raises(TimeoutError, match="too slow"):
        session.wrap(bash)("cat f")
    assert session.stats() == {}


@pytest.mark.parametrize("result", [None, 7, b"bytes", ["a"], {"text": TEXT}, {"output": None}])
def test_results_of_other_kinds_are_not_touched(session: Session, result: object) -> None:
    assert session.wrap(lambda _command: result)("cat f") is result


@pytest.mark.parametrize("action", [None, 7, {"cmd": "cat f"}, {"command": ["cat", "f"]}])
def test_actions_of_other_kinds_are_not_judged(session: Session, action: object) -> None:
    assert session.wrap(lambda _action: TEXT)(action) == TEXT
    assert session.stats() == {}


def test_a_call_id_is_used_and_passed_on_only_to_a_tool_that_takes_it(session: Session) -> None:
    got: list[object] = []

    def takes(_command: str, *, call_id: str) -> str:
        got.append(call_id)
        return TEXT

    session.wrap(takes)("cat f", call_id="c1")
    session.wrap(lambda _command: TEXT)("cat g", call_id="c2")
    assert got == ["c1"]
    assert session.view.is_visible("c1")
    assert session.view.is_visible("c2")


def test_the_directory_of_a_call_is_used_and_passed_on(session: Session) -> None:
    got: list[str] = []

    def bash(_command: str, cwd: str = "") -> str:
        got.append(cwd)
        return TEXT

    wrapped = session.wrap(bash)
    wrapped("cat f", cwd="/w/sub")
    assert got == ["/w/sub"]
    assert session.view.covers("/w/sub/f", 1, 40)


def test_the_wrapped_tool_keeps_its_name(session: Session) -> None:
    def run_in_docker(_command: str) -> str:
        """Runs it there."""
        return ""

    wrapped = session.wrap(run_in_docker)
    assert (wrapped.__name__, wrapped.__doc__) == ("run_in_docker", "Runs it there.")


def test_a_tool_is_called_by_keyword_as_by_position(session: Session) -> None:
    def bash(command: str, cwd: str = "") -> str:
        return TEXT if command and not cwd else ""

    wrapped = session.wrap(bash)
    assert wrapped(command="cat f") == TEXT
    assert is_marker(session, wrapped(command="cat f"))


def test_an_asynchronous_tool_is_called_by_keyword_too(session: Session) -> None:
    async def bash(action: dict[str, str]) -> str:
        return TEXT if action["command"] else ""

    wrapped = session.wrap(bash)
    assert asyncio.run(wrapped(action={"command": "cat f"})) == TEXT
    assert is_marker(session, asyncio.run(wrapped(action={"command": "cat f"})))


def test_a_method_is_called_by_keyword_too(session: Session) -> None:
    class Environment:
        def execute(self, command: str) -> str:
            return TEXT if command else ""

    assert session.wrap(Environment().execute)(command="cat f") == TEXT
    assert session.view.covers("/w/f", 1, 60)


def test_a_directory_that_is_given_by_position_counts(session: Session) -> None:
    def bash(command: str, cwd: str = "") -> str:
        return f"{command} in {cwd}\n{TEXT.replace('line', cwd)}"

    wrapped = session.wrap(bash)
    assert [wrapped("cat f", cwd) for cwd in ("/a", "/b")] == [bash("cat f", cwd) for cwd in ("/a", "/b")]
    assert session.view.covers("/a/f", 1, 60)
    assert session.view.covers("/b/f", 1, 60)


def test_a_call_that_the_tool_refuses_is_refused_in_the_tools_own_words(session: Session) -> None:
    def bash(command: str) -> str:
        return TEXT if command else ""

    with pytest.raises(TypeError, match="unexpected keyword argument 'shell'"):
        session.wrap(bash)(shell="cat f")


def test_of_parallel_calls_none_points_at_one_that_started_later_or_ended_after_its_start(session: Session) -> None:
    async def bash(command: str) -> str:
        await asyncio.sleep(0.05 if command.startswith("cat") else 0)
        return TEXT

    wrapped = session.wrap(bash)

    async def calls() -> list[str]:
        return list(await asyncio.gather(wrapped("cat f"), wrapped("sed -n '1,60p' f")))

    assert asyncio.run(calls()) == [TEXT, TEXT]
    assert is_marker(session, asyncio.run(wrapped("head -n 60 f")))


def test_commands_that_run_at_once_do_not_point_at_each_other(session: Session, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    replies: dict[str, str] = {}
    until = "until [ -e {} ]; do sleep 0.02; done"  # each ends when the other one runs, too
    commands = (f"touch a; cat f; {until.format('b')}", f"touch b; {until.format('a')}; sed -n '1,60p' f")
    threads = [Thread(target=lambda c=c: replies.update({c: session.run(c, cwd=tmp_path).text})) for c in commands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(replies.values()) == {TEXT}


@pytest.mark.parametrize("first", [b"caf\xe9\n", b"caf\xc3\xa9\n"])
def test_bytes_that_do_not_decode_are_never_equal_to_others(session: Session, first: bytes) -> None:
    outs = [TEXT.encode() + first, TEXT.encode() + b"caf\xe8\n"]
    bash = session.wrap(lambda command: subprocess.CompletedProcess(command, 0, outs[command.count("x")]))
    bash("cat f")
    assert bash("cat f #x").stdout == outs[1]
    bash("head -n 40 f")
    assert bash("cat f #x again").stdout == outs[1]


@pytest.mark.parametrize("result", [(TEXT, 0), TEXT.encode(), object(), None, ["a"], {"stdout": TEXT}])
def test_a_result_that_is_no_text_is_passed_on_and_counted(session: Session, result: object) -> None:
    bash = session.wrap(lambda _command: result)
    assert bash("cat f") is result
    assert bash("cat f") is result
    assert session.stats()["not_text"] == 2


def test_a_write_is_noted_though_its_result_is_no_text(session: Session) -> None:
    session.observe("cat f", TEXT)
    session.wrap(lambda _command: ("", 0))("sed -i s/a/b/ f")
    assert session.observe("cat f", TEXT).text == TEXT


def test_a_result_keeps_its_class(session: Session) -> None:
    class Done(subprocess.CompletedProcess[str]):
        extra = 7

    bash = session.wrap(lambda command: Done(command, 0, TEXT))
    bash("cat f")
    second = bash("cat f")
    assert isinstance(second, Done)
    assert is_marker(session, second.stdout)


@pytest.mark.parametrize("cwd", [b"/w", 7, object(), ["/w"]])
def test_a_directory_of_any_type_loses_no_output(session: Session, cwd: object) -> None:
    bash = session.wrap(lambda _command, cwd=None: TEXT)  # noqa: ARG005  as a tool has it
    assert bash("cat f", cwd=cwd) == TEXT
    given = {"output": text(of="g")}
    assert session.wrap(lambda _action: given)({"command": "cat g", "cwd": cwd}) == given
    assert session.observe("cat h", text(of="h"), cwd=cwd).text == text(of="h")  # type: ignore[arg-type]


def test_a_directory_in_bytes_is_a_directory(session: Session) -> None:
    session.observe("cat f", TEXT, cwd=b"/w/sub", call_id="c1")
    assert session.view.covers("/w/sub/f", 1, 60)


def test_calls_of_one_batch_do_not_point_at_each_other(session: Session) -> None:
    bash = session.wrap(lambda _command: TEXT)
    assert bash("cat f", call_id="c1", batch="b1") == TEXT
    assert bash("cat f", call_id="c2", batch="b1") == TEXT
    assert is_marker(session, bash("cat f", call_id="c3", batch="b2"))


# ------------------------------------------------------------ tools that write


def edit(path: str, new: str) -> str:
    Path(path).write_text(new)
    return f"wrote {new!r}"


async def edit_later(path: str, new: str) -> str:
    return edit(path, new)


def half_an_edit(path: str, new: str) -> str:
    edit(path, new)
    raise OSError("disk full")


async def half_an_edit_later(path: str, new: str) -> str:
    return half_an_edit(path, new)


def finished(result: Any) -> object:
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


@pytest.mark.parametrize("tool", [edit, edit_later, lambda path, new: edit_later(path, new)])
def test_a_wrapped_write_tells_the_session(session: Session, tmp_path: Path, tool: Any) -> None:
    file = tmp_path / "f"
    session.observe_read(str(file), TEXT, call_id="c1")
    assert finished(session.wrap_write(tool)(path=str(file), new="a\n", call_id="c2")) == "wrote 'a\\n'"
    assert session.observe_read(str(file), TEXT, call_id="c3").text == TEXT


@pytest.mark.parametrize("tool", [half_an_edit, half_an_edit_later])
def test_a_write_that_raises_may_have_written(session: Session, tmp_path: Path, tool: Any) -> None:
    file = tmp_path / "f"
    session.observe_read(str(file), TEXT, call_id="c1")
    with pytest.raises(OSError, match="disk full"):
        finished(session.wrap_write(tool)(str(file), "a\n"))
    assert session.observe_read(str(file), TEXT).text == TEXT


def test_the_parameter_with_the_path_has_a_name(session: Session, tmp_path: Path) -> None:
    def save(content: str, *, file_path: str) -> None:
        Path(file_path).write_text(content)

    with pytest.raises(UsageError, match=r"save\(\) has no parameter 'path'"):
        session.wrap_write(save)
    session.wrap_write(save, path="file_path")("a\n", file_path=str(tmp_path / "f"))
    assert [type(record.event).__name__ for record in session.events()] == ["Wrote"]


def test_a_path_that_is_none_costs_the_tool_nothing(session: Session) -> None:
    assert session.wrap_write(lambda path: f"no {path}")(None) == "no None"
    assert session.events() == []
