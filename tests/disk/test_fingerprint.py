"""One version of a file, by its bytes. The edits that a stat does not show are in test_stale."""

from __future__ import annotations

import mmap
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyfakefs.fake_filesystem import FakeFilesystem

from readcache.session.disk.files import BLOCK, Fingerprint, take_fingerprint
from tests.helpers import colliding


def take(path: Path) -> Fingerprint:
    taken = take_fingerprint(str(path))
    assert taken is not None
    return taken


def is_unchanged(path: Path, old: Fingerprint) -> bool:
    new = take_fingerprint(str(path))
    return new is not None and new.digest == old.digest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f"
    path.write_text("some text\n")
    return path


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_the_bytes_decide(tmp_path_factory: pytest.TempPathFactory, before: bytes, after: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(before)
    old = take(path)
    times = path.stat()
    path.write_bytes(after)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert is_unchanged(path, old) is (before == after)


def test_texts_that_were_made_to_have_one_xxh3_are_two_versions(path: Path) -> None:
    path.write_text(colliding.ONE)
    old = take(path)
    path.write_text(colliding.OTHER)
    assert not is_unchanged(path, old)


def test_what_is_no_file_has_no_fingerprint(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for name in (".", "fifo", "missing", "loop", "\0"):
        assert take_fingerprint(os.path.join(tmp_path, name)) is None


def test_a_look_at_a_fifo_leaves_its_writer_alone(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = subprocess.Popen(["bash", "-c", "echo one > fifo"], cwd=tmp_path)
    try:
        for _ in range(20):
            assert take_fingerprint(str(path)) is None
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
    taken = take_fingerprint(str(path), most=1)
    assert taken is not None
    assert (taken.head, taken.is_truncated) == (path.read_bytes(), False)


def test_of_a_large_file_the_beginning_is_kept_and_all_of_it_counts(path: Path) -> None:
    path.write_bytes(b"a" * (3 * BLOCK))
    old = take_fingerprint(str(path), most=10)
    assert old is not None
    assert 10 <= len(old.head) <= BLOCK
    assert old.is_truncated
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"b")
    assert not is_unchanged(path, old)


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


def test_on_tmpfs_a_mapping_is_written_without_a_time_and_seen(tmp_path: Path) -> None:
    directory = Path("/dev/shm")
    if not os.access(directory, os.W_OK):
        pytest.skip("there is no tmpfs")
    path = directory / f"{tmp_path.name}-{os.getpid()}"
    path.write_bytes(b"a" * BLOCK)
    try:
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            assert memory[0] == 97
            old, before = take(path), path.stat()
            memory[0] = 98
            assert path.stat() == before
            assert not is_unchanged(path, old)
    finally:
        path.unlink()


def test_a_mocked_file_system_is_one_too(fs: FakeFilesystem) -> None:
    fs.create_file("/w/f", contents="a")
    path = Path("/w/f")
    old = take(path)
    assert is_unchanged(path, old)
    path.write_text("b")
    assert not is_unchanged(path, old)
