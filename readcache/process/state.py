"""Where this user's state lives, and the server of a store. Quick to import: see `ask`."""

from __future__ import annotations

import os

from readcache.core.model.errors import ReadcacheError, UsageError

SOCKET_STORE = "socket-"  # begins the name of a socket's store, see serve/address.py


def state_directory() -> str:
    """$XDG_STATE_HOME/readcache; a relative value is ignored, as the XDG specification wants. UsageError."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/state")
    if not os.path.isabs(base):
        raise UsageError("no home directory for the store: give a file with --store or READCACHE_STORE")
    return os.path.join(base, "readcache")


def off_file() -> str:
    """The file that is there from `readcache off` until `readcache on`. UsageError without a home directory."""
    return os.path.join(state_directory(), "off")


def is_off() -> bool:
    """True after `readcache off`. Looked at for each call, so that processes that run already heed it too."""
    try:
        return os.path.exists(off_file())
    except UsageError:
        return False


def default_store() -> str:
    """The store where none is named. UsageError when there is no home directory to put it into."""
    return os.path.join(state_directory(), "readcache.db")


def store_file(spec: str) -> str | None:
    """The file that a store's path or `sqlite:///` URL names; None for any other URL."""
    if "://" in spec:
        from readcache.log.store.open import is_url

        if is_url(spec):
            return None
    return os.path.abspath(os.path.expanduser(spec.removeprefix("sqlite:///")))


def unnamed_stores() -> list[str]:
    """The stores that the user did not name: the default one, which may not exist yet, and those of sockets.
    UsageError."""
    state = state_directory()
    names = os.listdir(state) if os.path.isdir(state) else []
    sockets = [name for name in names if name.startswith(SOCKET_STORE) and name.endswith(".db")]
    return [default_store(), *(os.path.join(state, name) for name in sockets)]


def is_unnamed(spec: str) -> bool:
    """True for a store that the user did not name, even if its path is written out. UsageError."""
    return not spec or store_file(spec) in unnamed_stores()


def is_missing(spec: str) -> bool:
    """Return True if a store's file is not there yet, or is an empty file, which only a writer may turn into a store.
    A server counts as there: using it says more."""
    path = store_file(spec)
    if path is None:
        return False
    is_empty = os.path.isfile(path) and not os.path.getsize(path) and not os.path.exists(f"{path}-wal")
    return is_empty or not os.path.exists(path)


def require_recorded(spec: str) -> None:
    """ReadcacheError where there is no store yet."""
    if is_missing(spec):
        todo = "`readcache init HOST` switches a host on, `readcache doctor` checks it; or use --store"
        raise ReadcacheError(f"no store at {spec}: nothing recorded yet; {todo}")
