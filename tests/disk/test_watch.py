"""What is heard of changes to files. That nothing depends on it is tested in test_changes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import watchdog.observers
from pyfakefs.fake_filesystem import FakeFilesystem

from readcache.session.disk import watch as watch_module
from readcache.session.disk.watch import Watch
from tests.helpers.files import WATCHDOG


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    watch.close()


@pytest.fixture
def path(tmp_path: Path, watch: Watch) -> Path:
    """A followed file."""
    path = tmp_path / "a" / "f"
    path.parent.mkdir()
    path.write_text("text")
    watch.follow(str(path))
    if not watch.directories:
        pytest.skip("no directory can be watched here (any more)")
    return path


def quiet(watch: Watch) -> None:
    """Waits until all that happened has been heard."""
    while watch.wait(0.2):
        pass


def replaced(path: Path) -> None:
    path.with_name("new").write_text("other")
    os.replace(path.with_name("new"), path)


def moved_in(path: Path) -> None:
    path.parent.with_name("new").write_text("other")
    os.replace(path.parent.with_name("new"), path)


EDITS: dict[str, Callable[[Path], object]] = {
    "written": lambda path: path.write_text("other"),
    "replaced": replaced,
    "moved in": moved_in,
    "deleted": lambda path: path.unlink(),
    "moved away": lambda path: path.rename(path.with_name("g")),
    "time set": lambda path: os.utime(path, (0, 0)),
    "mode set": lambda path: path.chmod(0o600),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_a_change_to_a_followed_file_is_heard(watch: Watch, path: Path, edit: Callable[[Path], object]) -> None:
    edit(path)
    assert watch.wait(WATCHDOG)


def test_only_the_directories_of_the_files_are_watched(watch: Watch, path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (path.parents[1] / name).mkdir(parents=True)
    (path.parent / "b" / "g").write_text("text")
    watch.follow(str(path.with_name("not there")))
    assert set(watch.directories) == {str(path.parent)}
    watch.follow(str(path.parent / "b" / "g"))
    assert set(watch.directories) == {str(path.parent), str(path.parent / "b")}


def test_files_that_are_not_followed_and_files_that_are_read_are_not_heard_of(watch: Watch, path: Path) -> None:
    path.with_name("other").write_text("text")
    path.read_text()
    assert not watch.wait(0.3)


def test_of_a_link_both_the_link_and_the_file_are_followed(tmp_path: Path, watch: Watch, path: Path) -> None:
    directory = tmp_path / "links"
    directory.mkdir()
    link, file = directory / "link", path.with_name("not followed itself")
    file.write_text("text")
    link.symlink_to(file)
    watch.follow(str(link))
    assert set(watch.directories) == {str(path.parent), str(directory)}
    file.write_text("other")
    assert watch.wait(WATCHDOG)
    quiet(watch)
    (directory / "new").symlink_to(path.with_name("elsewhere"))
    os.replace(directory / "new", link)
    assert watch.wait(WATCHDOG)


def test_a_file_in_a_directory_that_is_a_link_is_heard_of(tmp_path: Path, watch: Watch, path: Path) -> None:
    (tmp_path / "dir").symlink_to(path.parent)
    watch.follow(str(tmp_path / "dir" / "g"))
    path.with_name("g").write_text("text")
    assert watch.wait(WATCHDOG)


def test_a_directory_that_was_deleted_and_made_again_is_watched_again(watch: Watch, path: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    assert watch.wait(WATCHDOG)
    quiet(watch)
    path.parent.mkdir()
    path.write_text("text")
    deadline = time.monotonic() + WATCHDOG
    while not watch.wait(0.1):  # the old watch goes when its thread comes to it
        assert time.monotonic() < deadline
        watch.follow(str(path))
        path.write_text("other")


def test_a_missing_directory_is_not_watched(watch: Watch, tmp_path: Path) -> None:
    watch.follow(str(tmp_path / "missing" / "f"))
    assert not watch.directories


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE, errno.EACCES])
@pytest.mark.parametrize("where", ["schedule", "start", "__init__"])
def test_at_the_limits_of_the_kernel_nothing_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, where: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    observer: Any = watchdog.observers.Observer  # which class that is depends on the system
    limited = type("Limited", (observer,), {where: fail})
    monkeypatch.setattr(watchdog.observers, "Observer", limited)
    watch = Watch()
    (tmp_path / "f").write_text("text")
    for name in (tmp_path / "f", tmp_path.parent / "g"):
        watch.follow(str(name))
    (tmp_path / "f").write_text("other")
    assert (watch.directories, watch.wait(0.01)) == ({}, False)
    watch.close()


def test_without_watchdog_nothing_is_heard(watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchdog.observers", None)
    watch.follow(str(tmp_path / "f"))
    assert not watch.directories


def test_only_so_many_directories_are_watched(watch: Watch, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "MOST_DIRECTORIES", 2)
    for name in "bcd":
        (path.parents[1] / name).mkdir()
        watch.follow(str(path.parents[1] / name / "f"))
    assert set(watch.directories) == {str(path.parent), str(path.parents[1] / "b")}


def test_an_observer_that_died_is_not_missed(watch: Watch, path: Path) -> None:
    watch._observer.stop()
    watch._observer.join()
    path.write_text("other")
    watch.follow(str(path))
    watch.follow(str(path.parents[1] / "f"))
    assert not watch.wait(0.01)


def test_a_forked_process_hears_nothing_and_takes_nothing_away(watch: Watch, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, which is what this is about
        child = os.fork()
    if not child:
        watch.follow("/")
        heard = watch.wait(0.01)
        watch.close()
        os._exit(1 if heard else 0)
    assert os.waitpid(child, 0)[1] == 0
    path.write_text("other")
    assert watch.wait(WATCHDOG)


def test_after_closing_nothing_is_followed(watch: Watch, path: Path) -> None:
    watch.close()
    watch.close()
    path.write_text("other")
    watch.follow(str(path.parents[1] / "f"))
    assert (watch.directories, watch.wait(0.01)) == ({}, False)


def test_what_was_heard_is_told_once(watch: Watch, path: Path) -> None:
    path.write_text("other")
    assert watch.wait(WATCHDOG)
    quiet(watch)
    assert not watch.wait(0.01)


def test_on_a_mocked_file_system_nothing_is_heard(fs: FakeFilesystem, watch: Watch) -> None:
    fs.create_file("/w/f")
    watch.follow("/w/f")
    Path("/w/f").write_text("other")
    assert (watch.directories, watch.wait(0.01)) == ({}, False)


def test_what_watchdog_has_to_say_is_not_printed() -> None:
    """Version 7.1 logs an error when it is stopped while events come in; without a handler, Python prints those."""
    program = (
        "import logging, os, readcache.session.disk.watch as w; watch = w.Watch(); watch.follow(os.path.abspath('f'));"
        "logging.getLogger('watchdog.observers.inotify').error('called when inactive'); watch.close()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_watchdog_is_loaded_with_the_first_file() -> None:
    program = "import sys, readcache.session.disk.changes as c; c.SeenFiles().close(); print('watchdog' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
