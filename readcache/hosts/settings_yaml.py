"""YAML settings."""

from __future__ import annotations

from readcache.hosts.settings_json import cut_json, put_json, read_json
from readcache.hosts.text_edit import Format

YAML = Format(read_json, put_json, cut_json)
