"""Report changes to files as they happen, with watchdog, only in the directories of the given files.

A report only wakes up waiting threads. Events may get lost without notice: with a full queue, a write through a hard
link or a mapping, a network mount, a limit of the kernel, or a dead thread. So callers always check the files
themselves. Failures here are silent: then nothing is reported.

watchdog is imported with the first file, because the import takes 42 ms.
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

# The limit of watched directories. Before watchdog 7, each directory takes one of the 128 inotify instances that Linux
# gives to all programs of a user.
MOST_DIRECTORIES = 64
STOPPING = 2.0  # seconds to wait for the end of the threads


class Watch:
    """A watch over files until it is closed. Every method is safe to call from any thread, and never raises."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._is_silent = False  # closed, or not available
        self._lock = threading.Lock()  # never taken by the observer's threads, which have locks that `schedule` needs
        self._observer: Any = None
        self.directories: dict[str, Any] = {}  # watched directory -> watchdog's handle
        self._true_names: set[str] = set()  # of the followed files
        self._gone: set[str] = set()  # deleted directories, whose watches report nothing any more
        self._heard = threading.Event()

    def follow(self, path: str) -> None:
        """Let `wait` end when the file at this absolute path is touched, or the file that it links to."""
        if self._is_forked():
            return
        with self._lock:
            for name in _true_names(path):
                self._true_names.add(name)
                with contextlib.suppress(Exception):  # limits, permissions, systems, versions: no failure matters
                    self._watch(os.path.dirname(name))

    def wait(self, seconds: float) -> bool:
        """Wait until a followed file is touched, at most `seconds`. Return True if one was touched since the last
        wait."""
        if self._is_forked():
            time.sleep(seconds)
            return False
        heard = self._heard.wait(seconds)
        self._heard.clear()
        return heard

    def close(self) -> None:
        """Stop watching. Closing twice is allowed."""
        if self._is_forked():  # a child has no such threads, and the kernel's watches belong to the parent
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
        """Wake up `wait` if the event concerns a followed file, and note deleted directories. watchdog calls this in
        its own thread."""
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
        is_mocked = not isinstance(os, ModuleType)  # pyfakefs: the kernel does not know these files
        is_full = len(self.directories) >= MOST_DIRECTORIES
        if self._is_silent or is_mocked or is_full or directory in self.directories:
            return
        if self._observer is None:
            self._is_silent = True  # a failure of the next line is not repeated for every directory
            self._observer = _start_observer()
            self._is_silent = False
        self.directories[directory] = self._observer.schedule(self, directory, event_filter=_kinds())


def _start_observer() -> Any:
    import logging

    from watchdog.observers import Observer

    log = logging.getLogger("watchdog")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # without a handler, Python prints the errors that watchdog logs
    observer = Observer()
    observer.start()
    return observer


def _kinds() -> list[type[FileSystemEvent]]:
    """Return the kinds of events that a change causes. Opening and reading are not among them, because readcache's own
    reads would be reported."""
    from watchdog import events

    # FileClosed comes after writing, and is the only event for a mapping. FileAttrib exists since watchdog 7.
    names = ["FileModified", "FileMoved", "FileCreated", "FileDeleted", "FileClosed", "DirDeleted", "FileAttrib"]
    return [getattr(events, f"{name}Event") for name in names if hasattr(events, f"{name}Event")]


def _true_names(path: str) -> set[str]:
    """Return the names under which a change to the file at `path` is reported. The kernel reports only true names."""
    directory, name = os.path.split(path)
    return {os.path.join(os.path.realpath(directory), name), os.path.realpath(path)}
