"""`link/../a` is the file that the kernel opens: it is beside the directory to which the link leads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from readcache import Outcome, Policy, Reply, Session
from tests.helpers.files import text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/sub")
    (tmp_path / "a").write_text(text(of="alpha"), encoding="utf-8")
    (tmp_path / "real" / "a").write_text(text(of="beta"), encoding="utf-8")
    return tmp_path


def read_by_command(session: Session, path: str) -> Reply:
    return session.run(f"cat {path}")


def read_by_tool(session: Session, path: str) -> Reply:
    return session.read(path)


def observed(session: Session, path: str) -> Reply:
    return session.observe_read(path, (Path(session.root) / path).read_text(encoding="utf-8"))


Read = Callable[[Session, str], Reply]
each_read = pytest.mark.parametrize("read", [read_by_command, read_by_tool, observed])


@each_read
def test_a_file_behind_a_link_is_restored_from_where_it_is(read: Read, root: Path) -> None:
    session = Session(root, local=True)
    read(session, "link/../a")
    (item,) = session.restore_plan(keep=[]).items
    assert (item.path, f"{item.text}\n") == (str(root / "real" / "a"), text(of="beta"))


@each_read
def test_a_file_of_the_same_name_beside_the_link_is_another_file(read: Read, root: Path) -> None:
    session = Session(root, local=True)
    with session.watch():
        read(session, "link/../a")
        assert (read(session, "a").outcome, session.changes()) == (Outcome.FULL, [])
        reply = read(session, "real/a")
    assert reply.outcome is Outcome.UNCHANGED
    assert "real/a lines 1-60, above in " in reply.text


def test_a_write_behind_a_link_outdates_the_file_that_was_written(root: Path) -> None:
    session = Session(root, local=True, policy=Policy(min_worth=0))
    session.run("cat real/a")
    session.run("sed -i 's/beta number 7 /beta number seven /' link/../a")
    assert session.run("cat real/a").outcome is Outcome.FULL


def test_where_the_files_are_elsewhere_such_a_path_is_the_name_of_no_other_file() -> None:
    session = Session("/w", local=False)
    session.observe("cat link/../a", text(of="beta"))
    assert not session.view.covers("/w/a", 1, 1)
    assert session.observe("cat a", text(of="alpha")).reason.value == "not_seen"


def test_a_protected_file_is_protected_by_such_a_path_too() -> None:
    session = Session("/w", local=False, policy=Policy(protected=("/etc/*",)))
    for _ in range(2):
        assert session.observe("cat /tmp/../etc/f", text()).reason.value == "protected"


def test_a_directory_that_was_entered_by_such_a_path_is_beside_the_link(root: Path) -> None:
    session = Session(root, local=True)
    session.run("cd link/..; cat a")
    (item,) = session.restore_plan(keep=[]).items
    assert (item.path, f"{item.text}\n") == (str(root / "a"), text(of="alpha"))
