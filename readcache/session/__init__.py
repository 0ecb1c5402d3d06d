"""One reader's conversation, and the sessions of many."""

from __future__ import annotations

from readcache.log.forks import import_before_fork
from readcache.session.session import Session
from readcache.session.sessions import Sessions

__all__ = ["Session", "Sessions"]

# All modules that a call imports when it first needs them. asyncio is not among them, because it registers fork
# handlers, and must not do so during a fork. Nor is the client of a store's server: a log is locked during its import,
# so no fork happens then.
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
