"""OpenAI Agents SDK: a filter for the model's input."""

from __future__ import annotations

from readcache.hosts.openai_agents.adapter import ReadcacheFilter

__all__ = ["ReadcacheFilter"]
