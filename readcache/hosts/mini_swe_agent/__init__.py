"""mini-swe-agent: a model class and an environment class, named in its YAML."""

from __future__ import annotations

from readcache.hosts.mini_swe_agent.wrappers import ReadcacheEnvironment, ReadcacheModel

__all__ = ["ReadcacheEnvironment", "ReadcacheModel"]
