"""Locks that a fork cannot leave locked.

A child has only the thread that forked. A lock that another thread held would stay locked in it for ever, and what that
thread was changing would stay half done. So before a fork every such lock is taken, in the order in which calls take
them, and afterwards it is released in the parent and in the child. One lock of the process is taken around all of
this: two threads that fork at the same time would otherwise each hold what the other waits for.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
import threading
import weakref
from typing import Protocol

# The order in which a call takes locks: a log is locked before the files it follows, and before its store.
SESSIONS, LOGS, FILES, STORES, CONNECTIONS = range(5)

_ROOMS = ("model", "shell", "judging", "messages", "sync", "restore", "log")  # a call's way


class Forkable(Protocol):
    """Told of each fork of this process, in the thread that forks."""

    fork_order: int

    def before_fork(self) -> None:
        """Takes the lock. Called in the parent."""

    def after_fork(self) -> None:
        """Releases it. Called in the parent and in the child."""


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
_told: list[Forkable] = []  # belongs to the thread that has `_forking`


def follow_forks(follower: Forkable) -> None:
    """Tells `follower` of every fork for as long as it lives."""
    _followers.add(follower)


def _before_fork() -> None:
    if _followers:
        _finish_imports()
    _forking.acquire()
    for follower in sorted(_followers.copy(), key=lambda each: each.fork_order):
        follower.before_fork()
        _told.append(follower)


@functools.lru_cache(maxsize=1)
def _finish_imports() -> None:
    """Imports whatever a call imports at its first need. A module that another thread is importing at the fork stays
    locked in the child for ever, and no lock of ours is around an import."""
    for room in _ROOMS:
        package = importlib.import_module(f"readcache.{room}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"readcache.{room}.{module.name}")
    importlib.import_module("bashlex.parser")


def _after_fork() -> None:
    while _told:
        _told.pop().after_fork()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
