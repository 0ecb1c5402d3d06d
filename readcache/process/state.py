"""Find this user's state directory and the stores in it. This module is quick to import, see `ask`."""

from __future__ import annotations

import os

from readcache.core.model.errors import ReadcacheError, UsageError

SOCKET_STORE = "socket-"  # start of the name of a socket's store, see serve/address.py


def state_directory() -> str:
    """Return $XDG_STATE_HOME/readcache, or the default below the home directory. A relative value is ignored, as the
    XDG specification demands. Raise UsageError without a home directory."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    if not os.path.isabs(base):
        raise UsageError("no home directory for the store: give a file with --store or READCACHE_STORE")
    return os.path.join(base, "readcache")


def off_file() -> str:
    """Return the path of the file that exists from `readcache off` until `readcache on`. Raise UsageError without a
    home directory."""
    return os.path.join(state_directory(), "off")


def is_off() -> bool:
    """Return True after `readcache off`. Each call checks this, so that running processes obey it, too."""
    try:
        return os.path.exists(off_file())
    except UsageError:
        return False


def default_store() -> str:
    """Return the store to use if none is named. Raise UsageError if there is no home directory for it."""
    return os.path.join(state_directory(), "readcache.db")


def store_file(spec: str) -> str | None:
    """Return the file that a store's path or `sqlite:///` URL names; None for any other URL."""
    if "://" in spec:
        from readcache.log.store.protocol import is_url

        if is_url(spec):
            return None
    return os.path.abspath(os.path.expanduser(spec.removeprefix("sqlite:///")))


def unnamed_stores() -> list[str]:
    """Return the stores that the user did not name: the default store, which may not exist yet, and the stores of
    sockets. Raise UsageError without a home directory."""
    state = state_directory()
    names = os.listdir(state) if os.path.isdir(state) else []
    sockets = [name for name in names if name.startswith(SOCKET_STORE) and name.endswith(".db")]
    return [default_store(), *(os.path.join(state, name) for name in sockets)]


def is_unnamed(spec: str) -> bool:
    """Return True for a store that the user did not name, even if its path is given in full. Raise UsageError without a
    home directory."""
    return not spec or store_file(spec) in unnamed_stores()


def is_missing(spec: str) -> bool:
    """Return True if a store's file does not exist yet, or is empty. Only a writer may turn an empty file into a store.
    A server never counts as missing, because using it reports more."""
    path = store_file(spec)
    if path is None:
        return False
    is_empty = os.path.isfile(path) and not os.path.getsize(path) and not os.path.exists(f"{path}-wal")
    return is_empty or not os.path.exists(path)


def require_recorded(spec: str) -> None:
    """Raise ReadcacheError if there is no store yet."""
    if is_missing(spec):
        todo = "`readcache init HOST` switches a host on, `readcache doctor` checks it; or use --store"
        raise ReadcacheError(f"no store at {spec}: nothing recorded yet; {todo}")
