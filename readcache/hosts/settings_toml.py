"""TOML settings."""

from __future__ import annotations

from readcache.hosts.edit import Format
from readcache.hosts.settings_json import cut_json, put_json, read_json

TOML = Format(read_json, put_json, cut_json)
