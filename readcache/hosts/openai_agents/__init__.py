"""OpenAI Agents SDK: a filter of the model's input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from readcache import lazy_names

if TYPE_CHECKING:
    from readcache.hosts.openai_agents.adapter import ReadcacheFilter

__all__ = ["ReadcacheFilter"]

__getattr__ = lazy_names(
    {"readcache.hosts.openai_agents.adapter": "ReadcacheFilter"}, globals()
)  # the host's package may not be there
