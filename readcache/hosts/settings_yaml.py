"""YAML settings."""

from __future__ import annotations

from readcache.hosts.edit import Format
from readcache.hosts.settings_json import cut_json, put_json, read_json

YAML = Format(read_json, put_json, cut_json)
