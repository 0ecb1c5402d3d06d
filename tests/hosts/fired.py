"""`doctor --fire` with a real host."""

from __future__ import annotations

from readcache.cli.firing import fire
from readcache.cli.hosts import where_here
from readcache.hosts import find_host


def check_fire(name: str) -> None:
    """The model's copy has our marker, and has none where our program is gone."""
    host = find_host(name)
    where = where_here(host, is_user=True)
    assert fire(host, where)
    assert not fire(host, where._replace(program=("/nowhere/readcache",), client=""))
