"""Hosts, stores and transcripts of other packages, which name them as entry points.

A look-up reads the metadata of every installed package, so look up only names that this package does not know.
"""

from __future__ import annotations

from typing import Any

from readcache.core.model.errors import UsageError


def plugin_names(group: str) -> list[str]:
    """Return the names in the entry-point group `readcache.GROUP`, each once, sorted."""
    from importlib.metadata import entry_points

    return sorted({found.name for found in entry_points(group=f"readcache.{group}")})


def load_plugin(group: str, name: str) -> Any:
    """Return the object that an installed package offers in the group under that name; None if there is none. Raise
    UsageError, with the package's name, if it cannot be imported."""
    from importlib.metadata import entry_points

    for found in entry_points(group=f"readcache.{group}", name=name):
        try:
            return found.load()
        except Exception as error:
            package = found.dist.name if found.dist else found.value
            raise UsageError(
                f"{name!r} of readcache.{group} cannot be loaded from the package {package}: "
                f"{type(error).__name__}: {error}; repair or uninstall that package"
            ) from error
    return None
