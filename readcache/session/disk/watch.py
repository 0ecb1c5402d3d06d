"""Reports changes to files as they happen, with watchdog, in the directories of the given files only.

It only wakes up waiting threads. Events get lost without notice (a full queue, a write through a hard link or a
mapping, a network mount, a limit of the kernel, a dead thread), so callers always look at the files themselves.
Failures here are silent: then nothing is reported.

watchdog is imported with the first file: it takes 42 ms.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent

# Watch at most so many. Before watchdog 7, each directory takes one of the 128 inotify instances that Linux gives to
# all programs of a user.
MOST_DIRECTORIES = 64
STOPPING = 2.0  # seconds that the threads have to end


class Watch:
    """Hears of files until it is closed. Every method is safe to call from any thread, and never raises."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._is_silent = False  # closed, or not to be had
        self._lock = threading.Lock()  # never taken by the observer's threads, which hold locks that `schedule` needs
        self._observer: Any = None
        self.directories: dict[str, Any] = {}  # those that are watched -> watchdog's handle
        self._true_names: set[str] = set()  # of the followed files
        self._gone: set[str] = set()  # directories that were deleted: what is watched stands nowhere any more
        self._heard = threading.Event()

    def follow(self, path: str) -> None:
        """From now on `wait` ends when the file at this absolute path is touched, or the one that it is a link to."""
        if self._is_forked():
            return
        with self._lock:
            for name in _true_names(path):
                self._true_names.add(name)
                with contextlib.suppress(Exception):  # limits, permissions, systems, versions: none of them matters
                    self._watch(os.path.dirname(name))

    def wait(self, seconds: float) -> bool:
        """Waits until a followed file is touched, at most `seconds`. True if one was, since the last wait."""
        if self._is_forked():
            time.sleep(seconds)
            return False
        heard = self._heard.wait(seconds)
        self._heard.clear()
        return heard

    def close(self) -> None:
        """Stops watching. Closing twice is allowed."""
        if self._is_forked():  # the threads are not here, and the kernel's watches are the parent's
            return
        with self._lock:
            self._is_silent = True
            observer, self._observer = self._observer, None
            self.directories.clear()
        if observer is not None:
            with contextlib.suppress(Exception):
                observer.stop()
                observer.join(STOPPING)

    def dispatch(self, event: FileSystemEvent) -> None:
        """Called by watchdog, in a thread of its own."""
        names = {os.fsdecode(name) for name in (event.src_path, event.dest_path) if name}
        if event.is_directory and event.event_type == "deleted":
            self._gone |= names
        if not self._true_names.isdisjoint(names):
            self._heard.set()

    def _is_forked(self) -> bool:
        return os.getpid() != self._pid

    def _watch(self, directory: str) -> None:
        if directory in self._gone:
            self._gone.discard(directory)
            if directory in self.directories:
                self._observer.unschedule(self.directories.pop(directory))
        is_mocked = not isinstance(os, ModuleType)  # pyfakefs: the kernel knows nothing of those files
        is_full = len(self.directories) >= MOST_DIRECTORIES
        if self._is_silent or is_mocked or is_full or directory in self.directories:
            return
        if self._observer is None:
            self._is_silent = True  # unless this succeeds: it is not tried with every directory
            self._observer = _start_observer()
            self._is_silent = False
        self.directories[directory] = self._observer.schedule(self, directory, event_filter=_kinds())


def _start_observer() -> Any:
    import logging

    from watchdog.observers import Observer

    log = logging.getLogger("watchdog")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # else Python prints the errors that it logs
    observer = Observer()
    observer.start()
    return observer


def _kinds() -> list[type[FileSystemEvent]]:
    """The events of a change. Not opening and reading: our own looks would be heard of."""
    from watchdog import events

    # FileClosed comes after writing, and is the only event of a mapping. FileAttrib is there since watchdog 7.
    names = ["FileModified", "FileMoved", "FileCreated", "FileDeleted", "FileClosed", "DirDeleted", "FileAttrib"]
    return [getattr(events, f"{name}Event") for name in names if hasattr(events, f"{name}Event")]


def _true_names(path: str) -> set[str]:
    """Where a change to what is read at `path` would be heard of: the kernel reports true names only."""
    directory, name = os.path.split(path)
    return {os.path.join(os.path.realpath(directory), name), os.path.realpath(path)}
