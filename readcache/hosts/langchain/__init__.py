"""LangChain 1 and deepagents: one middleware for both."""

from __future__ import annotations

from readcache.hosts.langchain.adapter import ReadcacheMiddleware

__all__ = ["ReadcacheMiddleware"]
