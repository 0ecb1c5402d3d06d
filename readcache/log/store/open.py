"""The store that a path or a URL names. No kind of store is imported before it is named."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module

from readcache.core.model.errors import UsageError
from readcache.log.store.protocol import Store

_SQLITE = "sqlite:///"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_REDIS = ("readcache.log.store.redis", "RedisStore")
# Scheme of a URL -> module, and what makes a store of the URL there. Other packages add theirs as `readcache.stores`.
STORES = {"redis": _REDIS, "rediss": _REDIS, "unix": _REDIS, "redis+unix": _REDIS}


def is_url(spec: str) -> bool:
    """True for a URL, which is not a file: a server's."""
    return not spec.startswith(_SQLITE) and _SCHEME.match(spec) is not None


def without_password(spec: str) -> str:
    """A store's URL as it may be shown: without user and password, and without options."""
    return re.sub(r"//[^/]*@", "//", spec).partition("?")[0] if is_url(spec) else spec


def open_store(spec: str | os.PathLike[str] | None) -> Store:
    """The store that `spec` names: None is memory; a path, or `sqlite:///` and a path, an SQLite file; the URL of a
    server (`redis://`, `rediss://`, `unix://`) that server.

    A path is taken as it is but for a leading `~`: `sqlite:///a.db` is `a.db` in the working directory, and
    `sqlite:////var/a.db` is absolute. UsageError for any other URL, and where a package is missing; StoreError when the
    store cannot be opened.
    """
    if spec is None:
        from readcache.log.store.memory import MemoryStore

        return MemoryStore()
    path = os.fspath(spec)
    if is_url(path):
        return _opener(path)(path)
    path = path.removeprefix(_SQLITE)
    if not path or "\0" in path:
        raise UsageError(f"the store {str(spec)!r} does not name a file; give a path or {_SQLITE}PATH")
    from readcache.log.store.sqlite import SqliteStore

    return SqliteStore(path)


def _opener(url: str) -> Callable[[str], Store]:
    scheme = url.partition("://")[0].lower()
    if scheme in STORES:
        module, name = STORES[scheme]
        try:
            found: Callable[[str], Store] = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"a store at {scheme}:// needs the package {error.name}: pip install 'readcache[redis]'"
            ) from None
        return found
    from readcache.core.model.plugins import load_plugin, plugin_names

    if (opener := load_plugin("stores", scheme)) is None:
        more = "".join(f", {name}://…" for name in plugin_names("stores"))
        kinds = f"a path, {_SQLITE}PATH, redis://HOST:PORT/0{more}"
        raise UsageError(f"unknown kind of store: {without_password(url)!r}; give one of {kinds}")
    loaded: Callable[[str], Store] = opener
    return loaded
