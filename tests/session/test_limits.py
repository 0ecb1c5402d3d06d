"""`read(max_lines=)` and `run(max_chars=)`: the line that says what is not shown is never content."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache import Outcome, Reason, Session, UsageError

LINES = [f"line {n} of a long file\n" for n in range(1, 301)]
NOTE = "[lines 101-300 of a.py are not shown; to read on, start at line 101]\n"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "a.py").write_text("".join(LINES))
    return Session(tmp_path)


def test_a_long_read_ends_with_where_to_read_on(session: Session) -> None:
    assert session.read("a.py", max_lines=100, call_id="c1").text == "".join(LINES[:100]) + NOTE
    assert session.files()[0].ranges == ((1, 100),)
    reply = session.read("a.py", max_lines=100, call_id="c2")
    assert reply.outcome is Outcome.UNCHANGED
    assert reply.text.endswith("]\n" + NOTE)
    rest = session.read("a.py", start=101, max_lines=200, call_id="c3")
    assert rest.text == "".join(LINES[100:])
    assert session.files()[0].ranges == ((1, 300),)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_short_read_has_no_such_line(session: Session, fresh: bool) -> None:
    assert session.read("a.py", max_lines=300, fresh=fresh).text == "".join(LINES)
    assert session.read("missing", max_lines=1, fresh=fresh).exit_code == 1
    assert session.read("a.py", max_lines=2, fresh=True).text.count("\n") == 3


def test_a_file_with_the_line_itself_is_read_whole(session: Session, tmp_path: Path) -> None:
    session.read("a.py", max_lines=100, call_id="c1")
    (tmp_path / "b.py").write_text(NOTE * 80)
    assert session.read("b.py", call_id="c2").text == NOTE * 80


@pytest.mark.parametrize(("most", "shown"), [(1000, 43), (23, 1), (10, 0)])
def test_a_long_output_ends_with_what_is_not_shown(session: Session, most: int, shown: int) -> None:
    reply = session.run("cat a.py", max_chars=most, call_id="c1")
    body, _, note = reply.text.removesuffix("\n").rpartition("\n")
    assert body + "\n" == "".join(LINES[:shown]) if shown else body == LINES[0][:most]
    assert note.startswith(f"[{300 - shown} more lines of output, ")
    assert note.endswith("send the output to a file and read a part of it]")
    whole = session.run("cat a.py", max_chars=100_000, call_id="c2")
    assert whole.full_text == "".join(LINES)
    assert note not in whole.text


def test_a_link_to_a_protected_file_is_protected_also_if_it_is_long(session: Session, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("".join(LINES))
    (tmp_path / "link.txt").symlink_to(tmp_path / ".env")
    for reply in (session.run("cat link.txt", max_chars=1000), session.read("link.txt", max_lines=10)):
        assert reply.reason is Reason.PROTECTED


def test_a_limit_of_nothing_is_refused(session: Session) -> None:
    with pytest.raises(UsageError, match="max_lines=0"):
        session.read("a.py", max_lines=0)
    with pytest.raises(UsageError, match="max_chars=0"):
        session.run("cat a.py", max_chars=0)
