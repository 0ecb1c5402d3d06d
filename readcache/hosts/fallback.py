"""The result of an adapter that fails: the host gets what it would have without readcache."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LOG = logging.getLogger("readcache.hosts")


def fallback(ours: Callable[[], T], otherwise: T) -> T:
    """Return the result of `ours`. If it raises an exception, log a warning to the host's log and return
    `otherwise`."""
    try:
        return ours()
    except Exception:
        LOG.warning("readcache failed; the host goes on without it", exc_info=True)
        return otherwise
