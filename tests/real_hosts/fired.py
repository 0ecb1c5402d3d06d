"""`doctor --fire` with a real host."""

from __future__ import annotations

from typing import Any

from readcache.cli.firing import fire
from readcache.cli.hosts import install_target_here
from readcache.hosts import find_host


def check_fire(name: str, **known: Any) -> None:
    """The model's copy has our marker, and has none where our program is gone. `known`: of the `InstallTarget`."""
    host = find_host(name)
    target = install_target_here(host, is_user=True)._replace(**known)
    assert fire(host, target)
    assert not fire(host, target._replace(program=("/nowhere/readcache",), client=""))
