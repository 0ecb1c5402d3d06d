"""Locks that a fork cannot leave locked.

A child has only the thread that forked. If another thread has a lock at that time, the lock stays locked in the child,
and that thread's change stays half done. So before a fork the process takes every such lock, in the order in which
calls take them. Afterwards the parent and the child release them. One more lock of the process is around all of this.
Without it, two threads that fork at the same time could each have a lock that the other waits for.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import threading
import weakref
from typing import Protocol

# The order in which a call takes locks: a log is locked before the files it follows, and before its store.
SESSIONS, LOGS, FILES, STORES, CONNECTIONS = range(5)


class Forkable(Protocol):
    """An object that is notified of each fork of this process, in the forking thread: by ascending `fork_order` before
    it, and by descending `fork_order` after it."""

    fork_order: int

    def before_fork(self) -> None:
        """Take the lock. Called in the parent."""

    def after_fork(self) -> None:
        """Release the lock. Called in the parent and in the child."""


class ForkLock:
    """A re-entrant lock that no child finds locked. `fork_order`: when it is taken, among the others."""

    def __init__(self, fork_order: int) -> None:
        self.fork_order = fork_order
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release
        follow_forks(self)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def before_fork(self) -> None:
        """See `Forkable`."""
        self.acquire()

    def after_fork(self) -> None:
        """See `Forkable`."""
        self.release()


_forking = threading.Lock()
_followers: weakref.WeakSet[Forkable] = weakref.WeakSet()
_notified: list[Forkable] = []  # belongs to the thread that has `_forking`
_not_imported: dict[str, None] = {}  # in order


def follow_forks(follower: Forkable) -> None:
    """Notify `follower` of every fork for as long as it lives."""
    _followers.add(follower)


def import_before_fork(*names: str) -> None:
    """Import these modules before the next fork, and the modules of each package among them."""
    # A module that another thread imports during the fork stays locked in the child. No `ForkLock` is around an import.
    _not_imported.update(dict.fromkeys(names))


def _before_fork() -> None:
    if _followers:
        _finish_imports()
    _forking.acquire()
    for follower in sorted(_followers.copy(), key=lambda each: each.fork_order):
        follower.before_fork()
        _notified.append(follower)


def _finish_imports() -> None:
    for name in list(_not_imported):
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(getattr(package, "__path__", ())):
            importlib.import_module(f"{name}.{module.name}")
        _not_imported.pop(name, None)  # another thread may fork, too


def _after_fork() -> None:
    while _notified:
        _notified.pop().after_fork()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
