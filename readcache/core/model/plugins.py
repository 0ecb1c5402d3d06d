"""What depends on the installation: plugins of other packages, and how this package was installed.

Other packages name their hosts, stores and transcripts as entry points. A look-up reads the metadata of every
installed package, so look up only names that this package does not know.
"""

from __future__ import annotations

import sys
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


def how_to_add(extra: str, prefix: str = sys.prefix) -> str:
    """Return the command that adds an extra of the package, for the tool that installed the package. `prefix`: the
    directory of its environment, which uv and pipx name in their own way."""
    if "/uv/tools/" in prefix:
        return f"uv tool install '.[{extra}]' (in a checkout)"
    if "/pipx/venvs/" in prefix:
        return f"pipx inject readcache 'readcache[{extra}]'"
    return f"{_pip(prefix)} install 'readcache[{extra}]'"


def how_to_uninstall(prefix: str = sys.prefix) -> str:
    """Return the command that removes the package, for the tool that installed it. See `how_to_add`."""
    if "/uv/tools/" in prefix:
        return "uv tool uninstall readcache"
    return "pipx uninstall readcache" if "/pipx/venvs/" in prefix else f"{_pip(prefix)} uninstall readcache"


def _pip(prefix: str) -> str:
    import shlex

    return "pip" if prefix == sys.base_prefix else shlex.quote(f"{prefix}/bin/pip")
