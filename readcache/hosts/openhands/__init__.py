"""OpenHands SDK: a condenser around the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from readcache import lazy_names

if TYPE_CHECKING:
    from readcache.hosts.openhands.adapter import ReadcacheCondenser

__all__ = ["ReadcacheCondenser"]

__getattr__ = lazy_names(
    {"readcache.hosts.openhands.adapter": "ReadcacheCondenser"}, globals()
)  # the host's package may not be installed
