"""Where this user's state lives, and the server of a store. Quick to import: see `ask`."""

from __future__ import annotations

import os

from readcache.errors import UsageError


def state_directory() -> str:
    """$XDG_STATE_HOME/readcache; a relative value is ignored, as the XDG specification wants. UsageError."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    if not os.path.isabs(base):
        raise UsageError("no home directory is known to keep the store in; name a file with --store or READCACHE_STORE")
    return os.path.join(base, "readcache")


def default_store() -> str:
    """The store where none is named. UsageError when there is no home directory to put it into."""
    return os.path.join(state_directory(), "readcache.db")


def store_file(spec: str) -> str:
    """The file that a store's path or `sqlite:///` URL names. UsageError for any other URL."""
    path = spec.removeprefix("sqlite:///")
    if "://" in path:
        raise UsageError(f"unknown kind of store: {spec!r}; give a path or sqlite:///PATH")
    return os.path.abspath(os.path.expanduser(path))


def server_place(store: str) -> tuple[str, str]:
    """(where the server of a store listens, the store's file). `store`: as it was named, "" for the default one.
    UsageError."""
    from readcache.hosts.serve.place import socket_path

    file = store_file(store or default_store())
    return socket_path(state_directory(), file), file
