"""The read tool on a real file system: what it prints is what `cat`, `sed -n` and `cat -n` print, or one line that says
why not; and what it leaves out was shown.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from readcache import Omitted, Outcome, Reason, Session
from readcache.session.disk import files
from tests.helpers.files import TEXT, text


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def shell(command: str, directory: Path) -> str:
    done = subprocess.run(["bash", "-c", command], cwd=directory, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


# ------------------------------------------------------------ what it prints

PARTS = st.sampled_from(
    [b"a", b"bc", b"\n", b"\n", b"\r\n", b"\r", b"\0", b"\xef\xbb\xbf", b"\xff", b"\xe2\x82", b"\xe2\x82\xac", b"\x0c"]
)


@given(
    data=st.lists(PARTS, max_size=12).map(b"".join),
    start=st.integers(1, 8),
    count=st.none() | st.integers(1, 8),
)
@example(data=b"", start=1, count=None)
@example(data=b"a\nb", start=2, count=1)
@example(data=b"a\n\xe2\x82\n\xac", start=2, count=1)
def test_a_range_is_what_sed_prints(tmp_path: Path, data: bytes, start: int, count: int | None) -> None:
    """A range was cut from a summary."""
    (tmp_path / "f").write_bytes(data)
    end = None if count is None else start + count - 1
    plain = shell(f"LC_ALL=C sed -n '{start},{end or '$'}p' f", tmp_path)
    numbered = shell(f"LC_ALL=C cat -n f | LC_ALL=C sed -n '{start},{end or '$'}p'", tmp_path)
    session = Session(tmp_path)
    assert session.read("f", start=start, end=end, fresh=True).text == plain
    assert session.read("f", start=start, end=end, numbered=True, fresh=True).text == numbered


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"one line without a newline",
        b"a\r\nb\r\n" * 40,
        b"a\rb\rc" * 40,
        b"\xef\xbb\xbf# with a mark in front\n" * 20,
        b"caf\xe9 and \xff\xfe\n" * 30,
        b"x" * 100_000 + b"\n" + b"y" * 100_000,
        b"one\x0ctwo\xe2\x80\xa8three\x85\n" * 20,
    ],
    ids=["empty", "no newline", "CRLF", "CR", "BOM", "not UTF-8", "long lines", "odd separators"],
)
def test_a_reread_of_any_text_is_whole_or_points_at_all_of_it(session: Session, data: bytes) -> None:
    Path(session.root, "f").write_bytes(data)
    first = session.read("f", call_id="c1")
    assert first.text == data.decode("utf-8", "replace")
    second = session.read("f", call_id="c2")
    lines = first.text.count("\n") + (not first.text.endswith("\n") and first.text != "")
    if len(first.text) >= session.policy.min_chars and "\ufffd" not in first.text:
        assert second.segments == (Omitted(os.path.join(session.root, "f"), 1, lines, ("c1",)),)
    else:
        assert second.text == first.text
    assert second.full_text == first.text


def test_bytes_that_are_no_text_are_passed_on_and_never_left_out(session: Session) -> None:
    Path(session.root, "f").write_bytes(TEXT.encode() + b"\0" + TEXT.encode())
    for _ in range(3):
        assert session.read("f").reason is Reason.BINARY
    assert session.read("f", end=20).reason is Reason.NOT_SEEN, "a range without them is text"


def test_a_range_past_the_end_is_empty_and_counts_for_nothing(session: Session) -> None:
    Path(session.root, "f").write_text(TEXT)
    reply = session.read("f", start=61, end=80)
    assert (reply.text, reply.exit_code, reply.outcome) == ("", 0, Outcome.FULL)
    assert not session.view.covers(os.path.join(session.root, "f"), 61, 80)
    assert session.read("f", start=30, end=80).text == text(30)


@pytest.mark.parametrize(("start", "end"), [(0, 5), (-1, None), (5, 4)])
def test_a_range_that_is_none_says_so_and_is_not_seen(session: Session, start: int, end: int | None) -> None:
    Path(session.root, "f").write_text(TEXT)
    reply = session.read("f", start=start, end=end)
    assert (reply.exit_code, reply.reason) == (1, Reason.UNREADABLE)
    assert "count from 1" in reply.text
    assert session.read("f").reason is Reason.NOT_SEEN


@pytest.mark.parametrize(("start", "end"), [(1, 10**30), (1, 2**63), (10**30, None), (10**30, 10**31), (2, 10**30)])
def test_a_range_may_end_anywhere(session: Session, start: int, end: int | None) -> None:
    Path(session.root, "f").write_text(TEXT)
    expected = "".join(TEXT.splitlines(True)[start - 1 : end])
    assert session.read("f", start=start, end=end).text == expected
    assert session.read("f", start=start, end=end, numbered=True, fresh=True).exit_code == 0


# ------------------------------------------------------------ what cannot be read


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "vanished": lambda _path: None,
    "directory": lambda path: path.mkdir(),
    "FIFO": lambda path: os.mkfifo(path),
    "socket": _socket,
    "device": lambda path: path.symlink_to("/dev/null"),
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path),
    "dangling": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("make", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_file_is_refused_in_one_line_and_repeated_as_often_as_asked(
    session: Session, make: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed read that is repeated must not be answered "unchanged"."""
    monkeypatch.chdir(session.root)
    make(Path(session.root, "f"))
    replies = [session.read("f") for _ in range(3)]
    assert {(reply.exit_code, reply.reason) for reply in replies} == {(1, Reason.UNREADABLE)}
    assert len({reply.text for reply in replies}) == 1
    assert replies[0].text.startswith(f"readcache: cannot read {os.path.join(session.root, 'f')}: ")
    assert replies[0].text.count("\n") == 1


@pytest.mark.parametrize("name", ["two\nlines", "caf\udce9", "\ud800", "a\0b"])
def test_a_refusal_is_one_line_of_text_whatever_the_file_is_called(session: Session, name: str) -> None:
    text = session.read(name).text
    assert text.count("\n") == 1
    assert text.encode().decode().removesuffix("\n").isprintable()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_rights_is_refused(session: Session) -> None:
    Path(session.root, "f").write_text(TEXT)
    Path(session.root, "f").chmod(0)
    assert "Permission denied" in session.read("f").text


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("path", ["/proc/version", "/proc/sys/kernel/pid_max"])
def test_files_that_say_they_are_empty_are_read_to_their_end(session: Session, path: str) -> None:
    assert session.read(path).text == Path(path).read_text()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_files_that_say_they_are_empty_are_not_cut_where_it_becomes_too_much(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 200)
    monkeypatch.setattr(files, "BLOCK", 100)
    reply = session.read("/proc/self/status")
    assert (reply.exit_code, reply.reason) == (1, Reason.UNREADABLE)
    assert session.read("/proc/self/status", end=2).text.startswith("Name:")


def test_a_look_at_a_fifo_leaves_its_writer_alone(session: Session) -> None:
    """Opening it would let the writer go on, and closing it would break its pipe."""
    path = Path(session.root, "f")
    os.mkfifo(path)
    writer = subprocess.Popen(["bash", "-c", "echo one > f"], cwd=path.parent)
    try:
        for _ in range(20):
            assert session.read("f").reason is Reason.UNREADABLE
            time.sleep(0.01)
        assert shell("timeout 10 cat f", path.parent) == "one\n"
    finally:
        writer.kill()
        writer.wait()


def test_a_file_that_was_refused_is_seen_when_it_can_be_read(session: Session) -> None:
    session.read("f")
    Path(session.root, "f").write_text(TEXT)
    assert session.read("f").reason is Reason.NOT_SEEN
    assert session.read("f").reason is Reason.COVERED


def test_of_a_file_too_large_to_be_read_whole_a_range_is_read(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 100_000)
    monkeypatch.setattr(files, "BLOCK", 1_000)
    Path(session.root, "f").write_text(TEXT * 100)
    assert session.read("f").reason is Reason.UNREADABLE
    assert "range of lines" in session.read("f").text
    assert session.read("f", start=55, end=65).text == text(55) + text(1, 5)
    assert session.read("f", start=55, end=65).reason is Reason.COVERED
    assert session.read("f", start=3990, end=3999).reason is Reason.UNREADABLE


def test_a_file_that_is_written_all_the_time_is_shown_and_what_is_left_out_was_shown(session: Session) -> None:
    """A write between the look at the state and the read must not be taken for the old state."""
    path, stop = Path(session.root, "f"), threading.Event()
    versions = [TEXT.replace("\n", f", version {v}\n") for v in range(2)]
    path.write_text(versions[0])

    def write() -> None:
        with open(path, "r+b", buffering=0) as file:
            while not stop.is_set():
                for version in versions:
                    file.seek(0)
                    file.write(version.encode())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        shown: dict[str, str] = {}
        for n in range(300):
            reply = session.read("f", call_id=f"c{n}")
            for segment in reply.segments:
                if isinstance(segment, Omitted):
                    rest = reply.full_text.split("\n")[segment.start - 1 : segment.end]
                    there = "\n".join(shown[source] for source in segment.sources)
                    assert all(line in there for line in rest)
            shown[f"c{n}"] = reply.text
    finally:
        stop.set()
        writer.join()


# ------------------------------------------------------------ names of files


def test_a_path_is_the_same_however_it_is_spelled(session: Session) -> None:
    root = Path(session.root)
    (root / "d").mkdir()
    (root / "f").write_text(TEXT)
    session.read("f", call_id="c1")
    for spelled in ("./f", "d/../f", str(root / "f"), f"{root}//d/.././f"):
        assert session.read(spelled, call_id=spelled).reason in (Reason.COVERED, Reason.INSISTED), spelled
    assert session.read("d/../f", start=3, end=30).reason is Reason.COVERED


def test_a_parent_of_a_link_is_the_parent_of_its_target(session: Session) -> None:
    """`link/../f` is beside the link's target, not beside the link."""
    root = Path(session.root)
    (root / "far" / "away").mkdir(parents=True)
    (root / "link").symlink_to("far/away")
    (root / "f").write_text(TEXT)
    (root / "far" / "f").write_text(TEXT.replace("number", "NUMBER"))
    assert session.read("f").text == TEXT
    assert session.read("link/../f").text == TEXT.replace("number", "NUMBER")
    assert session.read("f").reason is Reason.COVERED


def test_a_link_that_is_pointed_elsewhere_shows_the_other_file(session: Session) -> None:
    root = Path(session.root)
    (root / "a").write_text(TEXT)
    (root / "b").write_text(TEXT.replace("number", "NUMBER"))
    (root / "link").symlink_to("a")
    assert session.read("link").text == TEXT
    (root / "link").unlink()
    (root / "link").symlink_to("b")
    assert session.read("link").text == TEXT.replace("number", "NUMBER")


def test_a_write_through_another_hard_link_is_noticed(session: Session) -> None:
    root = Path(session.root)
    (root / "a").write_text(TEXT)
    os.link(root / "a", root / "b")
    assert session.read("a").text == TEXT
    (root / "b").write_text(TEXT.upper())
    assert session.read("a").text == TEXT.upper()


# ------------------------------------------------------------ afresh


def test_a_fresh_read_shows_every_byte_and_counts_when_it_is_a_call_of_the_agent(session: Session) -> None:
    Path(session.root, "f").write_text(TEXT)
    assert session.read("f", fresh=True, call_id="c1").text == TEXT
    assert session.read("f", fresh=True, call_id="c2").text == TEXT
    reply = session.read("f", call_id="c3")
    assert [segment.sources for segment in reply.segments if isinstance(segment, Omitted)] == [("c2",)]


def test_a_fresh_read_without_a_call_id_is_no_delivery(session: Session) -> None:
    """A read made by a program gets the bytes, and is no delivery."""
    Path(session.root, "f").write_text(TEXT)
    reply = session.read("f", fresh=True)
    assert (reply.text, reply.full_text, reply.reason) == (TEXT, TEXT, Reason.FRESH)
    assert session.events() == []
    assert session.read("f").reason is Reason.NOT_SEEN


def test_a_fresh_read_notices_that_a_file_changed(session: Session) -> None:
    """`fresh` is not answered from memory, and what was shown before is out of date afterwards."""
    path = Path(session.root, "f")
    path.write_text(TEXT)
    session.read("f", call_id="c1")
    path.write_text(TEXT.replace("number 7 ", "NUMBER 7 "))
    assert "NUMBER 7 " in session.read("f", fresh=True, call_id="c2").text
    reply = session.read("f", call_id="c3")
    assert [segment.sources for segment in reply.segments if isinstance(segment, Omitted)] == [("c2",)]


def test_a_reply_keeps_all_of_the_text_whatever_it_left_out(session: Session) -> None:
    Path(session.root, "f").write_text(TEXT)
    session.read("f", end=30)
    reply = session.read("f")
    assert reply.outcome is Outcome.PARTIAL
    assert reply.full_text == TEXT


def test_threads_may_read_with_one_session(tmp_path: Path) -> None:
    texts = [TEXT.replace("line", f"line of {n}") for n in range(8)]
    for n, content in enumerate(texts):
        (tmp_path / f"f{n}").write_text(content)
    session = Session(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda k: session.read(f"f{k % 8}", call_id=f"c{k}"), range(400)))
    assert all(reply.full_text == texts[k % 8] for k, reply in enumerate(replies))
    assert session.stats().get("internal_error", 0) == 0
