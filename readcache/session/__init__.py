"""One reader's conversation, and the sessions of many."""

from __future__ import annotations

from readcache.log.forks import import_before_fork
from readcache.session.session import Session
from readcache.session.sessions import Sessions

__all__ = ["Session", "Sessions"]

# Whatever a call imports when it first needs it, except asyncio, whose own handlers must not be registered amid a fork.
# A server's client is imported by a log that is locked.
import_before_fork(
    "readcache.core.model",
    "readcache.core.shell",
    "readcache.core.judging",
    "readcache.core.messages",
    "readcache.core.sync",
    "readcache.core.restore",
    "readcache.log",
    "readcache.log.store.sqlite",
    "readcache.session.disk.bash",
    "readcache.session.disk.restorable",
    "bashlex.parser",
)
