"""What an adapter returns when it fails: what the host would have without us."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LOG = logging.getLogger("readcache.hosts")


def fallback(ours: Callable[[], T], otherwise: T) -> T:
    """The result of `ours`, or `otherwise` if it raises; a warning then goes to the host's log."""
    try:
        return ours()
    except Exception:
        LOG.warning("readcache failed; the host goes on without it", exc_info=True)
        return otherwise
