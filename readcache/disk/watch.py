"""Hears of changes to files as they happen, by watchdog: the directories of the files it is given, and no others.

It can only add suspicion. Events are lost (a full queue, a write through a hard link or a mapping, a network mount, a
limit of the kernel, a thread that died), and nobody is told; so what was not heard of may have changed all the same,
and whoever asks must look at the files too. Whatever fails here, fails silently: then nothing is heard.

watchdog is imported with the first file: it takes 42 ms.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent

# Watched at most. Before watchdog 7 each directory takes one of the user's inotify instances, of which Linux gives 128
# for all of the user's programs.
MOST_DIRECTORIES = 64
STOPPING = 2.0  # seconds that the threads have to end


class Watch:
    """Follows files until it is closed. Every method is safe to call from any thread, and never raises."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._is_silent = False  # closed, or not to be had
        self._lock = threading.Lock()  # never taken by the observer's threads, which hold locks that `schedule` needs
        self._observer: Any = None
        self._files: dict[str, tuple[str, ...]] = {}  # path -> where it and what it is a link to stand
        self._directories: dict[str, Any] = {}  # -> watchdog's handle; None: cannot be watched
        self._uses: Counter[str] = Counter()  # of directories, by places
        self._heard = threading.Condition(threading.Lock())  # guards the three below
        self._places: dict[str, set[str]] = {}  # place -> the paths that it matters to
        self._touched: set[str] = set()
        self._gone: set[str] = set()  # directories that were deleted: what is watched stands nowhere any more

    @property
    def directories(self) -> frozenset[str]:
        """The directories that are watched."""
        return frozenset(name for name, handle in list(self._directories.items()) if handle is not None)

    def follow(self, path: str) -> None:
        """From now on `touched` names the absolute path when its file is touched, or the one that it is a link to."""
        if self._is_forked():
            return
        places = _places(path)
        with self._lock:
            if self._is_silent:
                return
            if self._files.get(path) != places:
                self._forget(path)
                self._files[path] = places
                with self._heard:
                    for place in places:
                        self._places.setdefault(place, set()).add(path)
                self._uses.update(map(os.path.dirname, places))
            for directory in map(os.path.dirname, places):
                self._watch(directory)

    def forget(self, path: str) -> None:
        """The opposite of `follow`."""
        if not self._is_forked():
            with self._lock:
                self._forget(path)

    def touched(self) -> set[str]:
        """The followed paths that were heard of since the last time this was asked, each once."""
        if self._is_forked():
            return set()
        with self._heard:
            touched, self._touched = self._touched, set()
        return touched

    def wait(self, seconds: float) -> None:
        """Until something is heard of, at most `seconds`."""
        if self._is_forked():
            time.sleep(seconds)
            return
        with self._heard:
            self._heard.wait_for(lambda: self._touched, seconds)

    def close(self) -> None:
        """Stops watching. Closing twice is allowed."""
        if self._is_forked():  # the threads are not here, and the kernel's watches are the parent's
            return
        with self._lock:
            self._is_silent = True
            observer, self._observer = self._observer, None
            self._directories.clear()
        if observer is not None:
            with contextlib.suppress(Exception):
                observer.stop()
                observer.join(STOPPING)

    def dispatch(self, event: FileSystemEvent) -> None:
        """Called by watchdog, in a thread of its own."""
        places = {os.fsdecode(place) for place in (event.src_path, event.dest_path) if place}
        with self._heard:
            for place in places:
                self._touched |= self._places.get(place, set())
            if event.is_directory and event.event_type == "deleted":
                self._gone |= places & self._directories.keys()
            if self._touched:
                self._heard.notify_all()

    def _is_forked(self) -> bool:
        return os.getpid() != self._pid

    def _forget(self, path: str) -> None:
        for place in self._files.pop(path, ()):
            directory = os.path.dirname(place)
            with self._heard:
                self._places[place].discard(path)
                if not self._places[place]:
                    del self._places[place]
            self._uses[directory] -= 1
            if not self._uses[directory]:
                del self._uses[directory]
                self._unwatch(directory)

    def _watch(self, directory: str) -> None:
        with self._heard:
            is_gone = directory in self._gone
            self._gone.discard(directory)
        if is_gone:
            self._unwatch(directory)
        is_mocked = not isinstance(os, ModuleType)  # pyfakefs: the kernel knows nothing of those files
        if is_mocked or directory in self._directories or len(self._directories) >= MOST_DIRECTORIES:
            return
        self._directories[directory] = None
        with contextlib.suppress(Exception):  # of limits, permissions, systems, versions: none of them matters
            self._directories[directory] = self._schedule(directory)

    def _schedule(self, directory: str) -> Any:
        if self._observer is None:
            self._is_silent = True  # unless this succeeds: it is not tried with every directory
            self._observer = _start_observer()
            self._is_silent = False
        from watchdog import events

        # Not opening and reading: our own looks would be heard of.
        kinds: list[type[FileSystemEvent]] = [
            events.FileModifiedEvent,
            events.FileMovedEvent,
            events.FileCreatedEvent,
            events.FileDeletedEvent,
            events.FileClosedEvent,  # after writing: all that is heard of a mapping
            events.DirDeletedEvent,
        ]
        kinds += [events.FileAttribEvent] if hasattr(events, "FileAttribEvent") else []  # since watchdog 7
        return self._observer.schedule(self, directory, event_filter=kinds)

    def _unwatch(self, directory: str) -> None:
        handle = self._directories.pop(directory, None)
        if handle is not None and self._observer is not None:
            with contextlib.suppress(Exception):
                self._observer.unschedule(handle)


def _start_observer() -> Any:
    import logging

    from watchdog.observers import Observer

    log = logging.getLogger("watchdog")
    if not log.handlers:
        log.addHandler(logging.NullHandler())  # else Python prints the errors that it logs
    observer = Observer()
    observer.start()
    return observer


def _places(path: str) -> tuple[str, ...]:
    """Where a change to what is read at `path` would be heard of: the kernel reports true names only."""
    directory, name = os.path.split(path)
    return tuple({os.path.join(os.path.realpath(directory), name): None, os.path.realpath(path): None})
