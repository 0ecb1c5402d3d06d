"""Kilo, a fork of opencode that takes the same plugin."""

from __future__ import annotations

from readcache.hosts.opencode.adapter import host_like_opencode

HOST = host_like_opencode("kilo")
