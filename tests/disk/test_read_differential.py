"""Random files, random edits through every route that a file system offers, random reads: what a reply leaves out
stands, byte for byte, where the reply says.

The truth is `cat`, `sed` and `open().read()` on the same file, and an agent's context that the test keeps itself. Only
the real file system will do: a mocked one has neither mmap nor time stamps that lie.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from readcache import Budget, Insist, Policy, Session
from tests.laws.oracle import Reader

NAMES = ("a.py", "b.py", "link.py", "hard.py", "d/../a.py")
REAL = {"link.py": "a.py", "hard.py": "b.py", "d/../a.py": "a.py"}
COMMANDS = ("cat {}", "sed -n '3,20p' {}", "cat -n {}", "tail -n 9 {}")
POLICIES = (Policy(), Policy(insist=Insist.STUB), Policy(delta=True), Policy(min_chars=0), Policy(any_output=True))


def content(seed: int, ending: str) -> bytes:
    """Texts that share most of their lines, in several dresses."""
    lines = [f"    line {n} of the file = {n * (1 + (n % 7 == seed % 7) * seed)}" for n in range(1, 30 + seed % 9)]
    if seed % 5 == 0:
        lines[3] = "caf\udce9 \udcff\u20ac"
    text = "\ufeff" * (seed % 6 == 1) + ending.join(lines) + ending * (seed % 3 > 0)
    return text.encode("utf-8", "surrogateescape")


def overwritten(path: Path, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def times_kept(path: Path, data: bytes) -> None:
    before = path.stat()
    overwritten(path, data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def times_backward(path: Path, data: bytes) -> None:
    overwritten(path, data)
    os.utime(path, ns=(0, 1_000_000_000))


def moved_over(path: Path, data: bytes) -> None:
    other = path.with_name("new")
    other.write_bytes(data)
    shutil.copystat(path, other)
    os.replace(other, path)


def copied_over(path: Path, data: bytes) -> None:
    other = path.with_name("new")
    other.write_bytes(data)
    subprocess.run(["cp", "-p", other, path], check=True)
    other.unlink()


def made_anew(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def mapped(path: Path, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.truncate(len(data))
        with mmap.mmap(file.fileno(), 0) as memory:
            memory[:] = data


def touched(path: Path, _data: bytes) -> None:
    os.utime(path)


def mode_changed(path: Path, _data: bytes) -> None:
    path.chmod(0o600)


def sed_without_a_match(path: Path, _data: bytes) -> None:
    subprocess.run(["sed", "-i", "s/there is no such text//", path], check=True)


ROUTES: list[Callable[[Path, bytes], None]] = [
    overwritten,
    times_kept,
    times_backward,
    moved_over,
    copied_over,
    made_anew,
    mapped,
    touched,
    mode_changed,
    sed_without_a_match,
]


class Reads(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.root = Path(self.directory.name)
        (self.root / "d").mkdir()
        for n, name in enumerate(("a.py", "b.py")):
            (self.root / name).write_bytes(content(n + 1, "\n"))
        (self.root / "link.py").symlink_to("a.py")
        os.link(self.root / "b.py", self.root / "hard.py")
        self.reader: Reader | None = None
        self.calls = 0

    def teardown(self) -> None:
        self.directory.cleanup()

    def now(self, policy: Policy = POLICIES[0]) -> Reader:
        if self.reader is None:
            self.reader = Reader(Session(self.root, policy=policy), policy)
        return self.reader

    def take(self, command: str, reply: Any, output: str, *, numbered: bool = False) -> None:
        reader = self.now()
        reader.check(reply, output, numbered)
        reader.take(command, reply, output, numbered)

    @rule(policy=st.sampled_from(POLICIES))
    def begin(self, policy: Policy) -> None:
        self.now(policy)

    @rule(
        name=st.sampled_from(NAMES),
        start=st.integers(1, 36),
        count=st.none() | st.integers(1, 30),
        whole=st.booleans(),
        numbered=st.booleans(),
        fresh=st.integers(0, 9).map(lambda n: n == 0),
    )
    def read(self, name: str, start: int, count: int | None, whole: bool, numbered: bool, fresh: bool) -> None:
        start, end = (1, None) if whole else (start, None if count is None else start + count - 1)
        lines = (self.root / name).read_bytes().split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        newline = (self.root / name).read_bytes().endswith(b"\n") or (end is not None and end < len(lines))
        chosen = [line.decode("utf-8", "replace") for line in lines[start - 1 : end]]
        if numbered:
            chosen = [f"{n:6}\t{line}" for n, line in enumerate(chosen, start)]
        output = "\n".join(chosen) + "\n" * (bool(chosen) and newline)
        self.calls += 1
        session = self.now().session
        reply = session.read(name, start=start, end=end, numbered=numbered, fresh=fresh, call_id=f"c{self.calls}")
        self.take(f"read {name}", reply, output, numbered=numbered)

    @rule(
        name=st.sampled_from(NAMES),
        start=st.integers(1, 36),
        sep=st.none() | st.sampled_from(("\t", "→", ": ", "| ", ". ")),
        around=st.booleans(),
    )
    def observe_read(self, name: str, start: int, sep: str | None, around: bool) -> None:
        """Another tool reads it, with text of its own before and after."""
        lines = (self.root / name).read_bytes().decode("utf-8", "replace").removesuffix("\n").split("\n")[start - 1 :]
        if sep is not None:
            lines = [f"{n:5}{sep}{line}" for n, line in enumerate(lines, start)]
        output = "\n".join(["Here it is:", *lines, "<end of the file>"] if around else lines)
        self.calls += 1
        session = self.now().session
        numbered = sep is not None
        reply = session.observe_read(name, output, start=start, numbered=numbered, call_id=f"c{self.calls}")
        self.take(f"read {name}", reply, output, numbered=numbered)

    @rule(name=st.sampled_from(NAMES), command=st.sampled_from(COMMANDS))
    def run(self, name: str, command: str) -> None:
        numbered, command = command.startswith("cat -n"), command.format(name)
        done = subprocess.run(["bash", "-c", command], cwd=self.root, capture_output=True, check=True)
        self.calls += 1
        reply = self.now().session.run(command, call_id=f"c{self.calls}")
        self.take(command, reply, done.stdout.decode("utf-8", "replace"), numbered=numbered)

    @rule(
        name=st.sampled_from(("a.py", "b.py")),
        route=st.sampled_from(ROUTES),
        seed=st.integers(0, 60),
        ending=st.sampled_from(["\n", "\n", "\r\n", "\r"]),
        told=st.booleans(),
    )
    def edit(self, name: str, route: Callable[[Path, bytes], None], seed: int, ending: str, told: bool) -> None:
        route(self.root / name, content(seed, ending))
        if told:
            self.now().session.wrote(name)

    @rule(name=st.sampled_from(("a.py", "b.py")))
    def point_the_link(self, name: str) -> None:
        (self.root / "link.py").unlink()
        (self.root / "link.py").symlink_to(name)

    @rule(kept=st.integers(0, 3), restore=st.booleans())
    def compact(self, kept: int, restore: bool) -> None:
        reader = self.now()
        keep = list(reader.texts)[len(reader.texts) - kept :]
        plan = reader.session.restore_plan(keep=keep, budget=Budget(max_tokens=2_000)) if restore else None
        done = reader.session.compacted(keep=keep, restored=plan)
        reader.compacted(keep, plan, done)


@pytest.mark.parametrize("examples", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_what_is_left_out_was_shown_and_is_what_the_file_holds(examples: int) -> None:
    run_state_machine_as_test(Reads, settings=settings(max_examples=examples, stateful_step_count=30))
