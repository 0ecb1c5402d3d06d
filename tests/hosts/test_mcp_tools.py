"""What `readcache mcp` does without a client: files, roots, and the lack of its package."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from readcache import Policy, UsageError
from readcache.serve.mcp.files import allowed_path, root_directories
from readcache.serve.mcp.readers import CONVERSATION, READER, McpReaders
from readcache.serve.mcp.tools import McpTools

TEXT = "".join(f"line {n} of a file that is read again and again\n" for n in range(40))


def test_markers_of_any_conversation_are_found() -> None:
    readers = McpReaders("/w", policy=Policy())
    other = readers.sessions.get("another", "main")
    other.observe("cat f", TEXT, call_id="c1")
    marker = other.observe("cat f", TEXT, call_id="c2").text
    assert marker.startswith("[FILE_UNCHANGED")
    assert readers.sessions.markers_in(f"x\n  {marker}\n") == [marker.strip()]


@pytest.mark.parametrize("key", [READER, CONVERSATION])
def test_each_reader_that_a_client_names_is_answered_by_what_it_was_shown_itself(key: str) -> None:
    readers = McpReaders("/w", policy=Policy())

    def shown(name: str, call_id: str) -> str:
        session = readers.session_of({READER: "main", key: name})
        return session.observe("cat f", TEXT, call_id=call_id).text

    assert shown("one", "c1") == TEXT
    assert shown("two", "c2") == TEXT
    assert shown("one", "c3").startswith("[FILE_UNCHANGED")


def test_of_readers_that_a_client_does_not_name_each_is_shown_everything() -> None:
    session = McpReaders("/w", policy=Policy()).session_of({})
    assert [session.observe("cat f", TEXT, call_id=name).text for name in ("c1", "c2")] == [TEXT, TEXT]


def test_calls_without_a_pause_between_them_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    readers, batches = McpReaders("/w", policy=Policy(), one_reader=True), list[str]()

    def call(seconds: float, meta: Mapping[str, str] | None = None) -> None:
        nonlocal now
        with readers.call(meta or {}) as caller:
            batches.append(caller.batch)
            now += seconds

    call(0.01)
    call(3.0)  # at once after the first one's result
    with readers.call({}) as long:
        now += 1.0
        call(0.1)  # while another one is under way
        now += 1.0
        call(0.1)
    assert len({*batches, long.batch}) == 1
    now += 0.06
    call(0.1)
    assert batches[-1] != long.batch
    call(0.1, {"readcache/batch": "the client's own"})
    call(0.1, {"readcache/reader": "another"})
    assert batches[-2] == "the client's own"
    assert batches[-1] not in batches[:-1]


def test_what_ends_after_its_call_was_cancelled_does_not_count_as_shown(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    tools = McpTools(str(tmp_path), McpReaders(str(tmp_path), policy=Policy(), one_reader=True))
    session = tools.readers.session_of({})

    async def read() -> str:
        with tools.readers.call({}, [str(tmp_path)]) as call:
            return str((await tools._read(call, "f"))["content"][0]["text"])

    async def cancel() -> str:
        with session.reader.log.lock:  # the read waits for it
            task = asyncio.ensure_future(read())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.sleep(0.1)
        return await read()

    assert asyncio.run(cancel()) == TEXT
    assert session.stats()["calls"] == 2


def test_local_roots_alone_are_directories() -> None:
    uris = ["file:///a%20b/c", "file://localhost/d", "file://elsewhere/e", "https://x.y/z", "relative"]
    assert root_directories(uris) == ["/a b/c", "/d"]


def test_paths_are_of_the_directory_or_of_the_first_root(tmp_path: Path) -> None:
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    os.mkdir(one)
    os.mkdir(two)
    assert allowed_path("f", [one, two], one) == f"{one}/f"
    assert allowed_path("f", [one, two], two) == f"{two}/f"
    assert allowed_path("f", [one, two], str(tmp_path)) == f"{one}/f"
    assert allowed_path(f"{two}/./g", [one, two], one) == f"{two}/g"
    assert allowed_path(".", ["/"], "/") == "/"
    for path in (f"{one}-and-more", "..", "../three", "a\0b"):
        with pytest.raises(UsageError):
            allowed_path(path, [one, two], one)


@pytest.mark.skipif(importlib.util.find_spec("mcp") is not None, reason="the package is here")
def test_without_its_package_the_server_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "readcache", "mcp", "--store", str(tmp_path / "s.db")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "pip install 'readcache[mcp]'" in done.stderr
