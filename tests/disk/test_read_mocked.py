"""`read`, `observe_read` and `wrote` on pyfakefs' file system: what a read tool meets in files and in their names.

What pyfakefs 6.3 does otherwise than a real system is tested on a real one (tests/disk/test_read.py, tests/log,
tests/disk/test_bash.py), and nothing here relies on it:

- the clock never stands still between two writes, and `os.utime` and `os.replace` leave the ctime as it was;
- an inode number is never used again; there is no mmap, FIFO, socket, device or /proc;
- nothing writes at the same time: no other thread between two looks at a file, no other process;
- SQLite files and processes are not seen by it at all, watchdog only by polling;
- it replaces `open` and modules such as `os` by name, not what was bound before: default arguments, class attributes,
  partials.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from pyfakefs.fake_filesystem import FakeFilesystem
from pyfakefs.helpers import reset_ids, set_uid

from readcache import Outcome, Policy, Reason, Reply, Session
from readcache.testing import assert_omitted, assert_shown, reconstruct
from tests.helpers.files import TEXT, text

NEW = TEXT.replace("number 7 ", "number seven ")
F = "/repo/f"


@pytest.fixture
def session(readcache_session: Session, fs: FakeFilesystem) -> Session:
    """Its root is `/`; `/repo/f` is there and was not read."""
    fs.create_file(F, contents=TEXT)
    return readcache_session


# ------------------------------------------------------------ what stands in a file

ODD = {
    "no final newline": (TEXT.removesuffix("\n").encode(), 60),
    "CRLF": (TEXT.replace("\n", "\r\n").encode(), 60),
    "lone CR": (TEXT.replace("\n", "\r").encode(), 1),
    "BOM": (b"\xef\xbb\xbf" + TEXT.encode(), 60),
    "beyond the BMP": (TEXT.replace("number", "\U0001f389").encode(), 60),
    "other line ends": (TEXT.replace("says", "\x0c\x0b\x85\u2028").encode(), 60),
    "long lines": (b"x" * 200_000 + b"\n" + b"y" * 200_000 + b"\n", 2),
    "blank lines": (b"\n" * 1_000, 1_000),
    "one line, no newline": (b"z" * 1_000, 1),
}
odd = pytest.mark.parametrize(("data", "count"), ODD.values(), ids=ODD.keys())


@odd
def test_every_text_is_shown_as_it_is_and_left_out_whole_after(session: Session, data: bytes, count: int) -> None:
    Path(F).write_bytes(data)
    first = session.read(F, call_id="c1")
    assert_shown(first, reason=Reason.NOT_SEEN)
    assert first.text == data.decode("utf-8", "replace")
    again = session.read(F)
    assert_omitted(again, F, lines=(1, count), source="c1", reason=Reason.COVERED)
    assert reconstruct(again, {"c1": first.text}) == first.text


@odd
def test_a_reader_who_insists_gets_the_same_text_again(session: Session, data: bytes, count: int) -> None:
    Path(F).write_bytes(data)
    first, _, third = (session.read(F) for _ in range(3))
    assert_shown(third, reason=Reason.INSISTED)
    assert third.text == first.text
    assert len(first.text.removesuffix("\n").split("\n")) == count


@odd
def test_numbers_do_not_change_what_a_line_is(session: Session, data: bytes, count: int) -> None:
    Path(F).write_bytes(data)
    first = session.read(F, numbered=True, call_id="c1")
    lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n")
    assert [line.split("\t", 1) for line in first.text.removesuffix("\n").split("\n")] == [
        [f"{number:6}", line] for number, line in enumerate(lines, 1)
    ]
    raw = session.read(F)
    if raw.outcome is Outcome.UNCHANGED:  # short texts cost more with a marker
        assert_omitted(raw, F, lines=(1, count), source="c1")
    assert reconstruct(raw, {"c1": first.text}) == data.decode("utf-8", "replace")


@odd
def test_a_read_by_another_tool_is_judged_like_our_own(session: Session, data: bytes, count: int) -> None:
    text = data.decode("utf-8", "replace")
    Path(F).write_bytes(data)
    assert_shown(session.observe_read(F, text, call_id="c1"), reason=Reason.NOT_SEEN)
    assert_omitted(session.read(F, call_id="c2"), F, lines=(1, count), source="c1")


@pytest.mark.parametrize(
    "data",
    [TEXT.replace("says", "s\udcffys").encode("utf-8", "surrogateescape"), TEXT.encode() + b"\xe2\x82"],
    ids=["invalid UTF-8", "UTF-8 cut short"],
)
def test_bytes_that_are_no_text_are_shown_each_time_and_stand_for_nothing(session: Session, data: bytes) -> None:
    Path(F).write_bytes(data)
    text = data.decode("utf-8", "replace")
    for reply in (session.read(F), session.observe_read(F, text), session.read(F)):
        assert_shown(reply, reason=Reason.NOT_TEXT)
    Path(F).write_bytes(TEXT.encode())
    assert_shown(session.read(F), reason=Reason.NOT_SEEN)


def test_an_empty_file_is_no_text_at_all(session: Session) -> None:
    Path(F).write_bytes(b"")
    for _ in range(3):
        reply = session.read(F)
        assert_shown(reply)
        assert (reply.text, reply.exit_code) == ("", 0)


def test_a_file_with_nul_bytes_is_passed_on_and_never_left_out(session: Session) -> None:
    Path(F).write_bytes(TEXT.encode() + b"\0\n")
    for _ in range(3):
        assert_shown(session.read(F), reason=Reason.BINARY)
    assert_shown(session.read(F, end=30), reason=Reason.NOT_SEEN)
    assert_omitted(session.read(F, end=20), F, lines=(1, 20))


def test_a_short_file_is_always_shown(session: Session) -> None:
    Path(F).write_text("a\nb\n")
    for _ in range(3):
        assert_shown(session.read(F), reason=Reason.TOO_SHORT)


# ------------------------------------------------------------ ranges


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [(1, None, 1, 60), (1, 60, 1, 60), (8, 30, 8, 30), (30, None, 30, 60), (30, 99, 30, 60), (8, 20, 8, 20)],
)
def test_a_range_of_a_file_that_was_shown_is_left_out(
    session: Session, start: int, end: int | None, first: int, last: int
) -> None:
    whole = session.read(F, call_id="c1")
    reply = session.read(F, start=start, end=end, call_id="c2")
    assert_omitted(reply, "repo/f", lines=(first, last), source="c1", reason=Reason.COVERED)
    assert reconstruct(reply, {"c1": whole.text}) == text(first, last)


@pytest.mark.parametrize(("start", "end"), [(61, None), (61, 70), (1_000, 2_000)])
def test_a_range_past_the_end_is_empty(session: Session, start: int, end: int | None) -> None:
    session.read(F)
    reply = session.read(F, start=start, end=end)
    assert_shown(reply)
    assert (reply.text, reply.exit_code) == ("", 0)


@pytest.mark.parametrize(("start", "end"), [(0, 5), (-3, None), (9, 8), (1, 0)])
def test_a_range_that_is_none_is_refused(session: Session, start: int, end: int) -> None:
    reply = session.read(F, start=start, end=end)
    assert_shown(reply, reason=Reason.UNREADABLE)
    assert reply.exit_code == 1


def test_after_a_range_only_the_rest_is_shown(session: Session) -> None:
    """A file of which a range was shown was not shown."""
    first = session.read(F, end=25, call_id="c1")
    reply = session.read(F)
    assert_omitted(reply, F, lines=(1, 25), source="c1", reason=Reason.OVERLAP)
    assert reply.text.endswith(text(26))
    assert reconstruct(reply, {"c1": first.text}) == TEXT


def test_ranges_together_are_the_file(session: Session) -> None:
    context = {f"c{n}": session.read(F, start=n, end=n + 9, call_id=f"c{n}").text for n in range(1, 60, 10)}
    reply = session.read(F)
    assert_omitted(reply, F, lines=(1, 60), source=context.keys())
    assert reconstruct(reply, context) == TEXT


def test_a_line_that_was_not_shown_since_it_changed_is_shown(session: Session) -> None:
    """A change outside the range that was read is still news."""
    session.read(F)
    Path(F).write_text(NEW)
    assert_omitted(session.read(F, start=20, end=35), F, lines=(20, 35))
    assert "number seven " in session.read(F).text


# ------------------------------------------------------------ changes


def overwritten() -> None:
    with open(F, "r+") as file:
        file.write(NEW)
        file.truncate()


def replaced() -> None:
    Path("/repo/new").write_text(NEW)
    os.replace("/repo/new", F)


def renamed_over() -> None:
    Path("/elsewhere").write_text(NEW)
    os.rename("/elsewhere", F)


def made_again() -> None:
    os.unlink(F)
    Path(F).write_text(NEW)


def with_its_times_restored() -> None:
    """Neither the time nor, here, the size tells."""
    before = os.stat(F)
    Path(F).write_text(TEXT.replace("number 7 ", "NUMBER 7 "))
    os.utime(F, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (os.stat(F).st_mtime_ns, os.stat(F).st_size) == (before.st_mtime_ns, before.st_size)


def with_its_times_set_back() -> None:
    """A time before the one that was seen."""
    Path(F).write_text(NEW)
    os.utime(F, (0, 0))


def by_its_other_name() -> None:
    os.link(F, "/repo/g")
    Path("/repo/g").write_text(NEW)


def through_a_link() -> None:
    os.symlink(F, "/link")
    Path("/link").write_text(NEW)


def of_a_directory_moved_away() -> None:
    os.rename("/repo", "/old")
    os.mkdir("/repo")
    Path(F).write_text(NEW)


def by_a_link_put_instead() -> None:
    Path("/repo/g").write_text(NEW)
    os.unlink(F)
    os.symlink("g", F)


CHANGES: list[Callable[[], None]] = [
    overwritten,
    replaced,
    renamed_over,
    made_again,
    with_its_times_restored,
    with_its_times_set_back,
    by_its_other_name,
    through_a_link,
    of_a_directory_moved_away,
    by_a_link_put_instead,
]
changed = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)


@changed
@pytest.mark.parametrize("told", [False, True], ids=["not told", "told"])
def test_a_file_that_changed_is_shown_in_full_and_then_counts_as_new(
    session: Session, change: Callable[[], None], told: bool
) -> None:
    session.read(F, call_id="c1")
    change()
    if told:
        session.wrote(F, call_id="c2")
    reply = session.read(F, call_id="c3")
    assert_shown(reply, reason=Reason.WRITTEN if told else Reason.CHANGED)
    assert reply.text == Path(F).read_text() != TEXT
    assert_omitted(session.read(F), F, lines=(1, 60), source="c3")


@changed
def test_with_delta_only_what_changed_is_shown(fs: FakeFilesystem, change: Callable[[], None]) -> None:
    fs.create_file(F, contents=TEXT)
    session = Session("/", policy=Policy(delta=True))
    first = session.read(F, call_id="c1")
    change()
    reply = session.read(F)
    assert_omitted(reply, F, source="c1", reason=Reason.UNCHANGED_LINES)
    assert Path(F).read_text().split("\n")[6] in reply.text.split("\n")
    assert reconstruct(reply, {"c1": first.text}) == Path(F).read_text()


def touched() -> None:
    os.utime(F, (2_000_000_000, 2_000_000_000))


def its_mode_changed() -> None:
    os.chmod(F, 0o600)


def linked() -> None:
    os.link(F, "/repo/g")


def written_again() -> None:
    Path(F).write_text(TEXT)


def replaced_by_a_copy() -> None:
    Path("/repo/new").write_text(TEXT)
    os.replace("/repo/new", F)


def changed_and_changed_back() -> None:
    Path(F).write_text(NEW)
    Path(F).write_text(TEXT)


@pytest.mark.parametrize(
    "act",
    [touched, its_mode_changed, linked, written_again, replaced_by_a_copy, changed_and_changed_back],
    ids=lambda act: act.__name__,
)
def test_a_file_whose_bytes_are_the_same_is_left_out_whatever_happened(
    session: Session, act: Callable[[], None]
) -> None:
    """A time that changed is no change."""
    session.read(F, call_id="c1")
    act()
    assert_omitted(session.read(F), F, lines=(1, 60), source="c1", reason=Reason.COVERED)


def test_what_the_agent_wrote_is_what_it_has_seen(session: Session) -> None:
    session.read(F, call_id="c1")
    Path(F).write_text(NEW)
    session.wrote(F, content=NEW, call_id="c2")
    reply = session.read(F)
    assert_omitted(reply, F, lines=(1, 60), source="c2")
    assert reconstruct(reply, {"c2": NEW}) == NEW


def test_what_became_of_a_written_file_is_shown_where_it_differs(session: Session) -> None:
    """A formatter ran after the write tool."""
    session.wrote(F, content=TEXT, call_id="c1")
    Path(F).write_text(NEW)
    assert_shown(session.read(F), reason=Reason.CHANGED)


# ------------------------------------------------------------ names


@pytest.mark.parametrize(
    "name", ["repo/f", "./repo/f", "/repo/./f", "/repo/../repo/f", "repo//f", "//repo/f", "/repo/d/../f"]
)
@pytest.mark.parametrize("as_path", [False, True])
def test_a_file_is_the_same_by_all_its_spellings(
    session: Session, fs: FakeFilesystem, name: str, as_path: bool
) -> None:
    fs.create_dir("/repo/d")
    session.read(F, call_id="c1")
    assert_omitted(session.read(Path(name) if as_path else name), F, lines=(1, 60), source="c1")


def test_a_relative_name_is_of_the_root_wherever_the_process_is(fs: FakeFilesystem) -> None:
    """The same text is another file in another directory."""
    fs.create_file(F, contents=TEXT)
    fs.create_file("/other/f", contents=NEW)
    here, there = Session("/repo"), Session("/other")
    os.chdir("/other")
    assert (here.read("f").text, there.read("f").text) == (TEXT, NEW)
    assert_omitted(here.read(F), F, lines=(1, 60))


def test_a_link_shows_what_it_points_at_now(session: Session) -> None:
    Path("/repo/g").write_text(NEW)
    os.symlink("/repo/f", "/link")
    assert session.read("/link").text == TEXT
    os.unlink("/link")
    os.symlink("/repo/g", "/link")
    assert_shown(session.read("/link"), reason=Reason.CHANGED)


def test_two_names_of_one_file_never_hide_a_line(session: Session) -> None:
    """Whether a second name is worth a pointer to the first is not decided here; its bytes are."""
    os.link(F, "/repo/g")
    context = {"c1": session.read(F, call_id="c1").text}
    reply = session.read("/repo/g")
    assert reconstruct(reply, context) == TEXT


@pytest.mark.parametrize("sensitive", [True, False])
@pytest.mark.parametrize("told", [True, False])
def test_names_that_differ_in_case_alone_never_hide_a_line(
    session: Session, fs: FakeFilesystem, sensitive: bool, told: bool
) -> None:
    """One file where the file system says so, and two names all the same: the bytes decide, by either of them."""
    fs.is_case_sensitive = sensitive
    context = {"c1": session.read(F, call_id="c1").text}
    Path(F.upper()).parent.mkdir(exist_ok=True)
    Path(F.upper()).write_text(NEW)
    if told:
        session.wrote(F.upper())
    reply = session.read(F)
    assert reply.full_text == (TEXT if sensitive else NEW)
    assert reconstruct(reply, context) == reply.full_text
    assert reply.outcome is (Outcome.UNCHANGED if sensitive else Outcome.FULL)
    assert session.read(F.upper(), fresh=True).text == NEW


# ------------------------------------------------------------ what cannot be read


def refuse(reply: Reply, why: str) -> None:
    assert_shown(reply, reason=Reason.UNREADABLE)
    assert reply.text.startswith(f"readcache: cannot read {F}: {why}")  # older pyfakefs says where the file is not
    assert (reply.text.count("\n"), reply.exit_code) == (1, 1)


def test_a_file_that_vanished_is_refused_and_shown_when_it_is_back(session: Session) -> None:
    """An error that is repeated is repeated in full."""
    session.read(F, call_id="c1")
    os.unlink(F)
    for _ in range(3):
        refuse(session.read(F), "No such file or directory")
    Path(F).write_text(NEW)
    assert session.read(F).text == NEW


def test_a_directory_is_refused(session: Session) -> None:
    os.unlink(F)
    os.mkdir(F)
    refuse(session.read(F), "is a directory")


def test_a_link_to_nowhere_and_a_loop_are_refused(session: Session) -> None:
    os.unlink(F)
    os.symlink("/nowhere", F)
    refuse(session.read(F), "No such file or directory")
    os.unlink(F)
    os.symlink(F, F)
    assert_shown(session.read(F), reason=Reason.UNREADABLE)


def test_a_file_in_place_of_a_directory_is_refused(session: Session) -> None:
    reply = session.read(f"{F}/g")
    assert_shown(reply, reason=Reason.UNREADABLE)
    assert reply.text.startswith(f"readcache: cannot read {F}/g: ")


def test_a_file_without_rights_is_refused_and_shown_when_they_are_given(
    readcache_session: Session, fs: FakeFilesystem
) -> None:
    """The fake user is no root here, whoever runs the tests."""
    set_uid(1000)
    try:
        fs.create_file(F, contents=TEXT, st_mode=stat.S_IFREG)
        refuse(readcache_session.read(F), "Permission denied")
        os.chmod(F, 0o600)
        assert_shown(readcache_session.read(F), reason=Reason.NOT_SEEN)
        assert_omitted(readcache_session.read(F), F, lines=(1, 60))
    finally:
        reset_ids()


def test_a_name_with_a_nul_is_refused(session: Session) -> None:
    reply = session.read("/repo/\0")
    assert_shown(reply, reason=Reason.UNREADABLE)
    assert reply.exit_code == 1
