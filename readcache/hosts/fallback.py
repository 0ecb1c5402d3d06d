"""What an adapter gives its host when it fails itself: what the host would have had without us."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_LOG = logging.getLogger("readcache.hosts")


def fallback(ours: Callable[[], T], otherwise: T) -> T:
    """What `ours` gives, or `otherwise` where it raises; then the log of the host's program says so."""
    try:
        return ours()
    except Exception:
        _LOG.warning("readcache failed; the host goes on without it", exc_info=True)
        return otherwise
