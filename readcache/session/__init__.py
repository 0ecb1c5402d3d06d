"""One reader's conversation, and the sessions of many."""

from __future__ import annotations

from readcache.session.session import Session
from readcache.session.sessions import Sessions

__all__ = ["Session", "Sessions"]
