"""One version of a file, by its stat and its bytes. The edits that a stat does not show are in test_stale."""

from __future__ import annotations

import contextlib
import mmap
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyfakefs.fake_filesystem import FakeFilesystem

from readcache.disk import fingerprint
from readcache.disk.fingerprint import ALWAYS_HASHED, SETTLED_AFTER, Fingerprint, Stat

SECOND = 1_000_000_000


def take(path: Path, *, later: int = 0) -> Fingerprint:
    """`later`: as if so many nanoseconds had passed since the file was written."""
    taken = fingerprint.take(str(path), now_ns=time.time_ns() + later)
    assert taken is not None
    return taken


def is_unchanged(path: Path, old: Fingerprint, *, suspect: bool = False) -> bool:
    new = fingerprint.look(str(path), old, now_ns=time.time_ns(), suspect=suspect)
    return new is not None and new.digest == old.digest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f"
    path.write_text("some text\n")
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file whose stat may be trusted, where this directory is on a file system that is known."""
    path = tmp_path / "large"
    path.write_bytes(b"a" * (ALWAYS_HASHED + 1))
    if fingerprint._file_system(path.stat().st_dev) not in fingerprint.KNOWN_FILE_SYSTEMS:
        pytest.skip("the stat of a file on this file system is never trusted")
    return path


def write_unseen(path: Path) -> AbstractContextManager[None]:
    """Another byte, and for a while every stat value is as it was."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.write(b"b")
    return stand_still(lambda _: before)


@contextlib.contextmanager
def stand_still(stat: Callable[[Any], os.stat_result]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("stat", "fstat"):
            patch.setattr(os, name, stat)
        yield


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=50), st.binary(max_size=50))
def test_the_bytes_decide(tmp_path_factory: pytest.TempPathFactory, before: bytes, after: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(before)
    old = take(path)
    times = path.stat()
    path.write_bytes(after)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert is_unchanged(path, old) is (before == after)


def test_what_is_no_file_has_no_fingerprint(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for name in (".", "fifo", "missing", "loop", "\0"):
        assert fingerprint.take(os.path.join(tmp_path, name), now_ns=0) is None


def test_a_look_at_a_fifo_leaves_its_writer_alone(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = subprocess.Popen(["bash", "-c", "echo one > fifo"], cwd=tmp_path)
    try:
        for _ in range(20):
            assert fingerprint.take(str(path), now_ns=0) is None
            time.sleep(0.01)
        assert subprocess.check_output(["timeout", "10", "cat", path]) == b"one\n"
    finally:
        writer.kill()
        writer.wait()


def test_a_file_that_is_gone_or_is_no_file_any_more_has_changed(path: Path) -> None:
    old = take(path)
    path.unlink()
    assert not is_unchanged(path, old)
    path.mkdir()
    assert not is_unchanged(path, old)


def test_files_that_say_they_are_empty_are_read_to_their_end() -> None:
    path = Path("/proc/self/limits")
    if not path.exists():
        pytest.skip("there is no /proc")
    taken = fingerprint.take_with_head(str(path), now_ns=0, most=1)
    assert taken is not None
    assert taken[1] == path.read_bytes()


def test_a_file_that_was_written_meanwhile_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, writes = os.read, iter([b"first", b"second"])

    def read_and_be_overtaken(fd: int, count: int) -> bytes:
        data = read(fd, count)
        if not data and (written := next(writes, None)):
            path.write_bytes(written)
        return data

    monkeypatch.setattr(os, "read", read_and_be_overtaken)
    found = take(path)
    monkeypatch.undo()
    assert path.read_bytes() == b"second"
    assert found.digest == take(path).digest


def test_a_file_settles_when_both_its_times_are_old() -> None:
    now = 100 * SECOND
    old, young = now - SETTLED_AFTER - 1, now - SETTLED_AFTER
    for mtime, ctime, settled in [
        (old, old, True),
        (old, young, False),
        (young, old, False),
        (now + SECOND, old, False),
    ]:
        assert Stat(1, 1, 1, mtime, ctime).has_settled(now) is settled


def test_a_small_file_is_hashed_though_its_stat_is_the_same(path: Path) -> None:
    old = take(path, later=10 * SECOND)
    assert old.settled
    assert not old.trusted
    with write_unseen(path):
        found = fingerprint.has_same_stat(str(path), old), is_unchanged(path, old)
    assert found == (True, False)


def test_a_large_file_with_the_same_stat_is_not_read_again(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = take(large, later=10 * SECOND)
    assert old.trusted
    monkeypatch.setattr(os, "read", None)
    assert is_unchanged(large, old)


def test_a_large_file_that_is_suspect_is_read_again(large: Path) -> None:
    old = take(large, later=10 * SECOND)
    with write_unseen(large):
        found = is_unchanged(large, old), is_unchanged(large, old, suspect=True)
    assert found == (True, False)


def test_a_large_file_that_is_racily_clean_is_read_again(large: Path) -> None:
    old = take(large)
    with write_unseen(large):
        found = is_unchanged(large, old)
    assert not found


def test_a_large_file_whose_time_went_backward_is_read_again(large: Path) -> None:
    old = take(large, later=10 * SECOND)
    with open(large, "r+b") as file:
        file.write(b"b")
    os.utime(large, (0, 0))
    assert not is_unchanged(large, old)


@pytest.mark.parametrize("name", ["", "nfs4", "tmpfs", "overlay"])
def test_a_large_file_on_a_file_system_that_is_not_known_is_read_again(
    large: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(fingerprint, "_file_system", lambda _: name)
    old = take(large, later=10 * SECOND)
    assert old.settled
    assert not old.trusted


def test_a_page_of_a_large_file_that_was_dirty_cannot_be_written_unseen(large: Path) -> None:
    with open(large, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0] = 98
        old = take(large, later=10 * SECOND)
        assert old.trusted
        memory[0] = 99
        assert not is_unchanged(large, old)


def test_on_tmpfs_a_mapping_is_written_without_a_time_and_seen(tmp_path: Path) -> None:
    directory = Path("/dev/shm")
    if not os.access(directory, os.W_OK):
        pytest.skip("there is no tmpfs")
    path = directory / f"{tmp_path.name}-{os.getpid()}"
    path.write_bytes(b"a" * (ALWAYS_HASHED + 1))
    try:
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            assert memory[0] == 97
            old = take(path, later=10 * SECOND)
            memory[0] = 98
            assert fingerprint.has_same_stat(str(path), old)
            assert not is_unchanged(path, old)
    finally:
        path.unlink()


@pytest.mark.parametrize("size", [10, ALWAYS_HASHED + 1])
def test_a_clock_that_stands_still_hides_nothing(tmp_path: Path, size: int) -> None:
    """A file system that counts whole seconds: the tuple is the same after a write within the second."""
    path = tmp_path / "f"
    path.write_bytes(b"a" * size)
    hour = time.time_ns() // (3600 * SECOND) * 3600 * SECOND
    real = os.stat

    def coarse(target: Any) -> Any:
        values = {name: getattr(found, name) for found in [real(target)] for name in dir(found) if name[:3] == "st_"}
        return SimpleNamespace(**{**values, "st_mtime_ns": hour, "st_ctime_ns": hour})

    with stand_still(coarse):
        old = fingerprint.take(str(path), now_ns=hour + SECOND)
        with open(path, "r+b") as file:
            file.write(b"b")
        same = old and fingerprint.has_same_stat(str(path), old)
        new = old and fingerprint.look(str(path), old, now_ns=hour + SECOND)
        unchanged = old and new and new.digest == old.digest
    assert (same, unchanged) == (True, False)


def test_every_value_of_the_stat_counts(path: Path) -> None:
    old = take(path)
    for name in ("dev", "ino", "size", "mtime_ns", "ctime_ns"):
        for step in (-1, 1):
            other = replace(old.stat, **{name: getattr(old.stat, name) + step})
            assert not fingerprint.has_same_stat(str(path), replace(old, stat=other))


def test_a_mocked_file_system_is_one_too(fs: FakeFilesystem) -> None:
    fs.create_file("/w/f", contents="a")
    path = Path("/w/f")
    old = take(path)
    assert is_unchanged(path, old)
    path.write_text("b")
    assert not is_unchanged(path, old)
