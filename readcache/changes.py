"""What others changed, for a harness: `notice` makes one line of `Session.changes()` for the model."""

from __future__ import annotations

from readcache.disk.changes import Change, notice

__all__ = ["Change", "notice"]
