"""`readcache mcp`, by the stdio client of the official package."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from readcache.core.model.policy import PRESETS
from tests.real_hosts.mcp.client import NOW, Connected, connected

LINES = [f"def item_{n}(count: int) -> float:  # number {n} of the shop" for n in range(1, 61)]
TEXT = "\n".join(LINES) + "\n"
ONE = "--one-reader"
PAUSE = 0.08  # seconds that no model needs less of, see `mcp_readers`
ERAS = ["auto", "legacy"] if NOW else ["legacy"]  # protocols that the client speaks


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with shop.py in it."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "shop.py").write_text(TEXT)
    return project


def edit(root: Path) -> None:
    """Change one line of shop.py, as a client's own edit tool does."""
    (root / "shop.py").write_text(TEXT.replace("number 7 of", "number seven of"))


def with_server(*options: str, **kinds: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[[Path], None]]:
    """A test that is given a connected client."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[[Path], None]:
        takes_root = "root" in inspect.signature(test).parameters

        async def converse(root: Path) -> None:
            async with connected(root, *options, **kinds) as server:
                await (test(server, root) if takes_root else test(server))

        @functools.wraps(test)
        def run(root: Path) -> None:
            asyncio.run(asyncio.wait_for(converse(root), 60))

        del run.__wrapped__  # pytest would take its parameters for fixtures
        return run

    return decorate


# ---------------------------------------------------------------- what is listed


@with_server()
async def test_the_tools_say_what_they_take_and_do(server: Connected) -> None:
    listed = (await server.client.list_tools()).model_dump(by_alias=True, exclude_none=True)["tools"]
    tools = {tool["name"]: tool for tool in listed}
    assert list(tools) == ["read", "run", "recall", "restore_plan", "compacted", "stats"]
    assert all(len(tool["description"]) > 40 and tool["inputSchema"]["type"] == "object" for tool in listed)
    assert tools["read"]["inputSchema"]["required"] == ["path"]
    hints = {name: tool["annotations"] for name, tool in tools.items()}
    assert hints["read"]["readOnlyHint"]
    assert not hints["read"]["destructiveHint"]
    assert hints["run"]["destructiveHint"]
    assert hints["run"]["openWorldHint"]
    assert not hints["run"]["readOnlyHint"]


# ---------------------------------------------------------------- what is left out


@with_server(ONE)
async def test_the_second_read_is_a_marker_and_who_insists_gets_the_bytes(server: Connected) -> None:
    first = await server.call("read", path="shop.py")
    await asyncio.sleep(PAUSE)
    second = await server.call("read", path="shop.py")
    await asyncio.sleep(PAUSE)
    third = await server.call("read", path="shop.py")
    assert (first.text, first.data["outcome"], first.failed) == (TEXT, "full", False)
    assert second.text.startswith("[FILE_UNCHANGED")
    assert second.data["text"] == second.text
    assert second.data["tokens_saved"] > 500
    assert second.data["call_id"] != first.data["call_id"]
    assert (third.text, third.data["reason"]) == (TEXT, "insisted")


@with_server(ONE)
async def test_commands_and_reads_are_sources_for_each_other(server: Connected) -> None:
    assert await server.shown("run", command="cat shop.py") == TEXT
    await asyncio.sleep(PAUSE)
    assert (await server.shown("read", path="shop.py", start=11, end=50)).startswith("[UNCHANGED")
    await asyncio.sleep(PAUSE)
    assert await server.shown("read", path="shop.py", start=11, end=50, fresh=True) == "\n".join(LINES[10:50]) + "\n"
    numbered = await server.shown("read", path="shop.py", start=2, end=2, numbered=True)
    assert numbered == f"     2\t{LINES[1]}\n"


@with_server(ONE)
async def test_after_an_edit_the_file_is_shown_in_full(server: Connected, root: Path) -> None:
    await server.call("read", path="shop.py")
    edit(root)
    await asyncio.sleep(PAUSE)
    assert await server.shown("read", path="shop.py") == TEXT.replace("number 7 ", "number seven ")


@pytest.mark.parametrize("way", ["option", "environment"])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_chosen_by_an_option_or_in_the_environment(root: Path, way: str, preset: str) -> None:
    options = ["--policy", preset] if way == "option" else []

    async def converse() -> str:
        async with connected(root, ONE, *options, READCACHE_POLICY=preset if way == "environment" else "max") as server:
            await server.call("read", path="shop.py")
            edit(root)
            await asyncio.sleep(PAUSE)
            return await server.shown("read", path="shop.py")

    shown = asyncio.run(asyncio.wait_for(converse(), 60))
    assert ("number seven" in shown, len(shown) < len(TEXT) / 2) == (True, preset != "default")


@with_server(ONE)
async def test_nothing_is_left_out_because_of_what_was_compacted_away(server: Connected) -> None:
    await server.call("read", path="shop.py")
    plan = await server.call("restore_plan", max_tokens_per_file=300)
    assert plan.text.startswith("## Files restored after compaction")
    assert plan.data["items"]
    await server.call("compacted")
    await asyncio.sleep(PAUSE)
    assert await server.shown("read", path="shop.py") == TEXT
    await asyncio.sleep(PAUSE)
    whole = await server.call("restore_plan")
    done = await server.call("compacted", restored=whole.data)
    assert done.data["restored_id"]
    await asyncio.sleep(PAUSE)
    assert "Files restored after compaction" in await server.shown("read", path="shop.py")


@with_server(ONE)
async def test_a_call_that_stays_keeps_its_credit(server: Connected) -> None:
    first = await server.call("read", path="shop.py")
    await server.call("compacted", keep=[first.data["call_id"]])
    await asyncio.sleep(PAUSE)
    assert (await server.shown("read", path="shop.py")).startswith("[FILE_UNCHANGED")


@with_server(ONE)
async def test_parallel_calls_never_point_at_each_other(server: Connected) -> None:
    slow = asyncio.ensure_future(server.shown("run", command="touch began; sleep 1; cat shop.py"))
    await server.call("run", command="while [ ! -e began ]; do sleep 0.01; done")
    asked = [server.shown("read", path="shop.py"), server.shown("run", command="cat shop.py")]
    texts = await asyncio.gather(*asked, server.shown("read", path="shop.py"), slow)
    assert texts == [TEXT] * 4
    await asyncio.sleep(PAUSE)
    assert (await server.shown("read", path="shop.py", start=5)).startswith("[UNCHANGED")


# ---------------------------------------------------------------- readers


@with_server()
async def test_nothing_is_left_out_for_readers_that_cannot_be_told_apart(server: Connected) -> None:
    for _ in range(3):
        assert await server.shown("read", path="shop.py") == TEXT
        assert await server.shown("run", command="cat shop.py") == TEXT
        await asyncio.sleep(PAUSE)
    assert (await server.call("stats")).data["tokens_saved_if_on"] > 1000


@with_server()
async def test_readers_that_the_client_names_are_served_apart(server: Connected) -> None:
    def read(reader: str, **more: str) -> Awaitable[Any]:
        meta = {"readcache/reader": reader, **{f"readcache/{key}": value for key, value in more.items()}}
        return server.call("read", path="shop.py", meta=meta)

    assert (await read("one", call_id="toolu_1")).data["call_id"] == "toolu_1"
    assert (await read("two")).text == TEXT
    await asyncio.sleep(PAUSE)
    assert (await read("one", conversation="another")).text == TEXT
    assert (await read("one")).text.startswith("[FILE_UNCHANGED")
    assert await server.shown("read", path="shop.py") == TEXT
    batched = [await read("three", batch="m1"), await read("three", batch="m1")]
    assert [got.text for got in batched] == [TEXT, TEXT]


# ---------------------------------------------------------------- errors, roots


@with_server()
async def test_errors_are_plain_words(server: Connected) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("read", {"path": "nowhere.py"}, "cannot read"),
        ("read", {}, "'path' is a required property"),
        ("read", {"path": "shop.py", "start": "first"}, "start: 'first' is not of type 'integer'"),
        ("read", {"path": "shop.py", "limit": 5}, "'limit' was unexpected"),
        ("read", {"path": "."}, "irectory"),
        ("compacted", {"restored": {"items": 3}}, "not a restore plan"),
        ("no_such_tool", {}, "there are read, run, recall, restore_plan"),
    ]
    for name, given, words in wrong:
        got = await server.call(name, **given)
        assert (got.failed, words in got.text, "Traceback" in got.text) == (True, True, False), got


@with_server()
async def test_a_failed_command_is_no_failed_call(server: Connected) -> None:
    got = await server.call("run", command="echo partly; exit 3")
    assert (got.text, got.data["exit_code"], got.failed) == ("partly\n\nExit status: 3", 3, False)
    assert (await server.call("run", command="true")).text == "Exit status: 0"
    late = await server.call("run", command="echo began; sleep 20", timeout=0.3)
    assert late.text == "began\n\nKilled after 0.3 s."
    assert late.data["exit_code"] == 124


@pytest.mark.parametrize("mode", ERAS)
def test_the_clients_roots_are_respected_also_through_links(root: Path, mode: str) -> None:
    outside = root.parent / "outside"
    allowed = root.parent / "allowed too"
    outside.mkdir()
    allowed.mkdir()
    (outside / "secret").write_text("secret\n")
    (allowed / "open").write_text("open\n")
    (root / "link").symlink_to(outside)
    (root / "secret").symlink_to(outside / "secret")
    (root / "fine").symlink_to(allowed)
    (root / "dangling").symlink_to(outside / "no file")

    async def converse() -> None:
        async with connected(root, mode=mode, roots=[root.as_uri(), allowed.as_uri()]) as server:
            for path in ("link/secret", "secret", "../outside/secret", str(outside / "secret"), "dangling"):
                got = await server.call("read", path=path)
                assert (got.failed, "outside what this client allows" in got.text) == (True, True), path
            got = await server.call("read", path="link/secret")
            assert f"since it is a link to {outside}/secret" in got.text
            assert (await server.call("run", command="pwd", cwd="link")).failed
            assert await server.shown("read", path="fine/open") == "open\n"
            assert await server.shown("read", path=f"{allowed}/open") == "open\n"
            assert await server.shown("run", command="pwd") == f"{root}\n"

    asyncio.run(converse())


@pytest.mark.parametrize("mode", ERAS)
def test_a_server_that_starts_elsewhere_works_in_the_clients_root(root: Path, tmp_path: Path, mode: str) -> None:
    async def converse() -> None:
        async with connected(tmp_path, mode=mode, roots=[root.as_uri()]) as server:
            assert await server.shown("read", path="shop.py") == TEXT
            assert await server.shown("run", command="pwd") == f"{root}\n"
            assert (await server.call("read", path=str(tmp_path / "x"))).failed

    asyncio.run(converse())


def test_without_roots_the_working_directory_is_the_limit(root: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x\n")

    async def converse() -> None:
        async with connected(root) as server:
            assert (await server.call("read", path="../x")).failed
        async with connected(root, "--root", "..") as server:
            assert await server.shown("read", path="x") == "x\n"

    asyncio.run(converse())


# ---------------------------------------------------------------- long commands


@with_server()
async def test_a_long_command_reports_progress(server: Connected) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(so_far: float, total: float | None, words: str | None) -> None:
        told.append((so_far, total, words))

    got = await server.call("run", command="sleep 2.5; echo done", timeout=30, progress=progress)
    assert got.text == "done\n"
    assert len(told) == 2
    assert told[0][0] < told[1][0] < 3
    assert told[0][1] == 30
    assert told[0][2] == "still running after 1 s"


@with_server(ONE)
async def test_cancelling_kills_the_command_and_nothing_of_it_counts_as_shown(server: Connected, root: Path) -> None:
    command = "cat shop.py; echo $$ > pid; sleep 30; touch survived"
    running = asyncio.ensure_future(server.call("run", command=command))
    while not (root / "pid").exists() or not (root / "pid").read_text().endswith("\n"):
        await asyncio.sleep(0.02)
    await server.cancel(running)
    pid = (root / "pid").read_text().strip()
    until = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}/cwd") and time.monotonic() < until:
        await asyncio.sleep(0.02)
    assert not os.path.exists(f"/proc/{pid}/cwd")
    await asyncio.sleep(PAUSE)
    assert await server.shown("run", command="cat shop.py") == TEXT
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None])
def test_no_command_outlives_its_server(root: Path, number: int | None) -> None:
    """`None`: the client closes the connection."""

    async def converse() -> None:
        async with connected(root) as server:
            running = asyncio.ensure_future(server.call("run", command="echo $$ $PPID > pids; sleep 60"))
            while not (root / "pids").exists() or not (root / "pids").read_text().endswith("\n"):
                await asyncio.sleep(0.02)
            if number is not None:
                os.kill(int((root / "pids").read_text().split()[1]), number)
                await asyncio.wait([running], timeout=5)
            running.cancel()

    asyncio.run(converse())
    pid, until = (root / "pids").read_text().split()[0], time.monotonic() + 5
    while os.path.exists(f"/proc/{pid}/cwd") and time.monotonic() < until:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{pid}/cwd")


# ---------------------------------------------------------------- switches, failures, the end


@pytest.mark.parametrize("switch", ["off", "advise", "no such word"])
def test_switched_off_the_tools_work_and_leave_nothing_out(root: Path, switch: str) -> None:
    async def converse() -> None:
        async with connected(root, ONE, READCACHE=switch) as server:
            for _ in range(2):
                assert await server.shown("read", path="shop.py") == TEXT
                assert await server.shown("run", command="cat shop.py") == TEXT
                await asyncio.sleep(PAUSE)
            saved = (await server.call("stats")).data.get("tokens_saved_if_on", 0)
            assert (saved > 0) is (switch == "advise")

    asyncio.run(converse())


def test_a_store_that_cannot_be_used_costs_the_agent_nothing(root: Path) -> None:
    (root.parent / "garbage").write_bytes(b"no data base" * 1000)

    async def converse() -> None:
        async with connected(root, ONE, "--store", str(root.parent / "garbage")) as server:
            for _ in range(3):
                assert await server.shown("read", path="shop.py") == TEXT
                await asyncio.sleep(PAUSE)

    asyncio.run(converse())


def test_a_new_start_is_a_new_conversation(root: Path) -> None:
    async def converse() -> None:
        for _ in range(2):
            async with connected(root, ONE) as server:
                assert await server.shown("read", path="shop.py") == TEXT

    asyncio.run(converse())


def test_it_ends_with_its_client_in_silence(root: Path) -> None:
    command = [sys.executable, "-m", "readcache", "mcp", "--store", str(root.parent / "s.db")]
    done = subprocess.run(command, input=b"", cwd=root, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
