"""Hosts, stores and transcripts of other packages, which name them as entry points.

Looking for them reads the metadata of every installed package, so ask only for a name that this package does not know.
"""

from __future__ import annotations

from typing import Any

from readcache.core.model.errors import UsageError


def plugin_names(group: str) -> list[str]:
    """The names in the entry-point group `readcache.GROUP`, each once."""
    from importlib.metadata import entry_points

    return sorted({found.name for found in entry_points(group=f"readcache.{group}")})


def load_plugin(group: str, name: str) -> Any:
    """What an installed package offers in the group under that name; None for nothing. UsageError, with the package,
    where it cannot be imported."""
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
