"""LangChain 1 and deepagents: one middleware for both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from readcache import lazy_names

if TYPE_CHECKING:
    from readcache.hosts.langchain.adapter import ReadcacheMiddleware

__all__ = ["ReadcacheMiddleware"]

__getattr__ = lazy_names(
    {"readcache.hosts.langchain.adapter": "ReadcacheMiddleware"}, globals()
)  # the host's package may not be there
