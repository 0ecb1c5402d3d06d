"""The client: a small C program, built with the package, that asks the server without a start of Python."""

from __future__ import annotations

import os

from readcache import __version__
from readcache.core.model.errors import ReadcacheError

_VERSION = f"READCACHE_ALONE={__version__}\0".encode()  # stands in the client of this version, and in no other


def shim_sources() -> str:
    """shims/ of a checkout; in an installed package it lies inside."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "_shims")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(package), "shims")


def find_client() -> str:
    """The path of the client of this version; "" where none was built."""
    path = os.path.join(shim_sources(), "bin", "readcache")
    try:
        with open(path, "rb") as file:
            is_ours = _VERSION in file.read()
    except OSError:
        return ""
    return path if is_ours and os.access(path, os.X_OK) else ""


def client_state() -> str:
    """What `doctor` says of it. ReadcacheError for the client of another version, as a checkout may have it."""
    path = os.path.join(shim_sources(), "bin", "readcache")
    if find_client():
        return path
    if os.path.exists(path):
        raise ReadcacheError(f"{path} is not the client of readcache {__version__}: reinstall the package")
    return (
        "none was built, so that a hook takes some 25 ms in place of 3, and a read through a shim 100 in place of 3: "
        "on Linux install a C compiler, then this package again"
    )
