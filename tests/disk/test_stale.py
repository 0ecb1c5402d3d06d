"""Edits that a time stamp does not show, and time stamps without an edit, each on the real file system, on disk and on
tmpfs: the read tool and `cat` show what stands there now, and a fingerprint tells the versions apart.

Among them are the failures that users of such caches reported of stale content.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from readcache import Outcome, Session
from readcache.session.disk.files import take_fingerprint
from tests.disk.edits import EDITED, EDITS, NO_EDITS, Edit
from tests.helpers.files import TEXT
from tests.laws.oracle import Reader


def directories() -> list[str]:
    """A disk, and tmpfs where there is one."""
    return ["/dev/shm"] if os.access("/dev/shm", os.W_OK) else []


@pytest.fixture(params=["disk", *directories()])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """The file `f`, in a directory of its own."""
    root = tmp_path if request.param == "disk" else Path(tempfile.mkdtemp(dir=request.param))
    path = root / "f"
    path.write_text(TEXT)
    yield path
    if root != tmp_path:
        shutil.rmtree(root)


class Agent:
    """One that reads the file by the read tool or by `cat`; each reply is held against the file and its context."""

    def __init__(self, path: Path, how: str) -> None:
        self.path, self.how = path, how
        self.session = Session(path.parent)
        self.reader = Reader(self.session, self.session.policy)

    def read(self) -> Outcome:
        reply = self.session.read("f") if self.how == "read" else self.session.run("cat f")
        text = self.path.read_text()
        self.reader.check(reply, text, False, paths=[str(self.path)])
        self.reader.take("cat f", reply, text, False, paths=[str(self.path)])
        if reply.outcome is Outcome.FULL:
            assert reply.text == text
        return reply.outcome


by_both_ways = pytest.mark.parametrize("how", ["read", "cat"])


@by_both_ways
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_what_was_edited_is_shown(path: Path, edit: Edit, how: str) -> None:
    """An edit within a second, or with its time restored, was not seen. An edit by an editor was not seen. A checkout
    was not seen."""
    agent, steps = Agent(path, how), edit(path)
    next(steps)
    agent.read()
    next(steps, None)
    assert path.read_text() == EDITED
    assert agent.read() is Outcome.FULL
    assert agent.read() is Outcome.UNCHANGED


@by_both_ways
@pytest.mark.parametrize("edit", NO_EDITS.values(), ids=NO_EDITS)
def test_what_is_as_it_was_is_left_out(path: Path, edit: Edit, how: str) -> None:
    """A new time without a change cost a full read."""
    agent, steps = Agent(path, how), edit(path)
    next(steps)
    agent.read()
    next(steps, None)
    assert agent.read() is Outcome.UNCHANGED


@pytest.mark.parametrize("edit", (EDITS | NO_EDITS).values(), ids=EDITS | NO_EDITS)
def test_a_fingerprint_tells_versions_apart_by_their_bytes(path: Path, edit: Edit) -> None:
    steps = edit(path)
    next(steps)
    old = take_fingerprint(str(path))
    assert old is not None
    next(steps, None)
    same = path.read_text() == TEXT
    new = take_fingerprint(str(path))
    assert (new is not None and new.digest == old.digest) is same


@by_both_ways
def test_an_own_write_within_one_tick_of_the_clock_is_shown(path: Path, how: str) -> None:
    """The agent's own write in the same tick of the clock was not seen."""
    agent, stamp = Agent(path, how), path.stat().st_mtime_ns
    for n in range(20):
        path.write_text(TEXT.replace("line number 17", f"line Number {n}"))
        os.utime(path, ns=(stamp, stamp))
        agent.session.wrote("f")
        assert agent.read() is Outcome.FULL


def test_a_file_of_another_machine_is_judged_by_its_output(path: Path) -> None:
    """The host's file was looked at for one in a container."""
    session = Session(path.parent)
    session.observe("cat f", EDITED)  # in a container, say; here `f` is another file
    assert session.observe("cat f", EDITED).outcome is Outcome.UNCHANGED
    assert session.observe("cat f", TEXT).text == TEXT


@by_both_ways
def test_a_time_that_goes_backward_is_a_change_like_any_other(path: Path, how: str) -> None:
    """A time that went backward was no change."""
    agent = Agent(path, how)
    agent.read()
    for n, hour in enumerate((9, 3, 12, 1)):
        path.write_text(TEXT.replace("line number 17", f"line Number {n}"))
        os.utime(path, (hour * 3600, hour * 3600))
        assert agent.read() is Outcome.FULL


def test_a_write_while_the_file_is_read_leaves_no_fingerprint(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write between the stat and the read was missed."""
    read, sizes = os.read, iter(range(1, 1_000))

    def read_and_be_overtaken(fd: int, count: int) -> bytes:
        data = read(fd, count)
        with open(path, "ab") as file:
            file.write(b"x" * next(sizes))
        return data

    monkeypatch.setattr(os, "read", read_and_be_overtaken)
    assert take_fingerprint(str(path)) is None


@pytest.mark.parametrize(
    "command", ["sed -i s/17/71/ f", "echo more >> f", 'python3 -c \'open("f", "w").write("new\\n" * 99)\'', "./tool"]
)
@by_both_ways
def test_a_file_written_by_a_command_is_shown(path: Path, command: str, how: str) -> None:
    """A command that wrote the file cleared nothing."""
    tool = path.with_name("tool")
    tool.write_text("#!/bin/sh\nsed -i 1d f\n")
    tool.chmod(0o755)
    agent = Agent(path, how)
    agent.read()
    agent.session.run(command)
    assert agent.read() is not Outcome.UNCHANGED


@by_both_ways
def test_times_that_change_by_themselves_cost_nothing(path: Path, how: str) -> None:
    """Times drifted, and the file was "modified" without end. The same within 50 ms on another file system. Mounts
    changed times twice or rounded them."""
    agent, stamp = Agent(path, how), path.stat().st_mtime_ns
    agent.read()
    rounded, drifted = stamp // 1_000_000 * 1_000_000, stamp + 50_000_000
    for n, other in enumerate((rounded, drifted, stamp)):
        os.utime(path, ns=(other, other))
        assert agent.read() is (Outcome.FULL if n % 2 else Outcome.UNCHANGED)  # every second one insists


def test_a_file_with_the_same_inode_number_is_read_again(path: Path) -> None:
    """An inode number stood for a file's identity."""
    agent = Agent(path, "read")
    other = path.with_name("other")
    other.write_text(EDITED)
    agent.read()
    os.link(path, path.with_name("kept"))
    path.unlink()
    os.link(other, path)  # another file, with its own number
    assert agent.read() is Outcome.FULL
    path.write_text(TEXT)  # the same number, another text
    assert agent.read() is Outcome.FULL


def test_right_after_an_edit_the_same_output_says_so(path: Path) -> None:
    """Right after an edit, when "did it change?" was the question, a marker."""
    session = Session(path.parent)
    session.run("cat f")
    session.run("sed -i s/nothing-of-the-kind/x/ f")
    text = session.run("cat f").text
    assert text == TEXT or "edit" in text


def test_what_is_read_in_one_way_and_written_in_another_is_one_file(path: Path) -> None:
    """Writer and reader had two names for one file."""
    session = Session(path.parent)
    session.read("f")
    session.run(f"cd / && cp {path} {path}.new && sed -i 1d {path}.new && mv {path}.new {path}")
    assert session.run("cat ./f").text == path.read_text()
    session.wrote(path.parent / "x" / ".." / "f")
    assert session.read(path).text == path.read_text()
