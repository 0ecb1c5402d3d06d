"""mini-swe-agent: a model class and an environment class, named in its YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from readcache import lazy_names
from readcache.hosts.mini_swe_agent.adapter import HOST

if TYPE_CHECKING:
    from readcache.hosts.mini_swe_agent.wrappers import ReadcacheEnvironment, ReadcacheModel

__all__ = ["HOST", "ReadcacheEnvironment", "ReadcacheModel"]

__getattr__ = lazy_names(
    {"readcache.hosts.mini_swe_agent.wrappers": "ReadcacheEnvironment ReadcacheModel"}, globals()
)  # the host's package may not be there
