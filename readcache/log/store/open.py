"""Open the store that a path or a URL names. A kind of store is imported only when it is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import cast

from readcache.core.model.errors import UsageError
from readcache.core.model.plugins import how_to_add, load_plugin, plugin_names
from readcache.log.store.protocol import SQLITE, Store, is_url, without_password

_REDIS_SCHEMES = ("redis", "rediss", "unix", "redis+unix")


def open_store(spec: str | os.PathLike[str] | None) -> Store:
    """Return the store that `spec` names. None names a store in memory. A path, or `sqlite:///` and a path, names an
    SQLite file. The URL of a server (`redis://`, `rediss://`, `unix://`) names that server.

    A leading `~` in a path is expanded; the rest is used unchanged. `sqlite:///a.db` is `a.db` in the working
    directory, and `sqlite:////var/a.db` is absolute. Raise UsageError for any other URL, and if a package is missing.
    Raise StoreError if the store cannot be opened.
    """
    if spec is None:
        from readcache.log.store.protocol import MemoryStore

        return MemoryStore()
    path = os.fspath(spec)
    if is_url(path):
        return _opener(path)(path)
    path = path.removeprefix(SQLITE)
    if not path or "\0" in path:
        raise UsageError(f"the store {str(spec)!r} does not name a file; give a path or {SQLITE}PATH")
    from readcache.log.store.sqlite import SqliteStore

    return SqliteStore(path)


def _opener(url: str) -> Callable[[str], Store]:
    """Return the function that makes a store of the URL. Other packages add their stores as entry points in the
    group `readcache.stores`. Raise UsageError."""
    scheme = url.partition("://")[0].lower()
    if scheme in _REDIS_SCHEMES:
        try:
            return cast("Callable[[str], Store]", import_module("readcache.log.store.redis").RedisStore)
        except ModuleNotFoundError as error:
            raise UsageError(f"a store at {scheme}:// needs the package {error.name}: {how_to_add('redis')}") from None
    if (opener := load_plugin("stores", scheme)) is None:
        more = "".join(f", {name}://…" for name in plugin_names("stores"))
        kinds = f"a path, {SQLITE}PATH, redis://HOST:PORT/0{more}"
        raise UsageError(f"unknown kind of store: {without_password(url)!r}; give one of {kinds}")
    return cast("Callable[[str], Store]", opener)
