"""A tool-layer read cache for coding agents.

    from readcache import Session
    session = Session(root="/repo")
    print(session.run("cat src/app.py").text)

A reply omits a line only if the reader was shown exactly those bytes, can still see them, and is told where they are.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in `typing`, but importing that takes longer than everything that a hook does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from readcache.core.model.call import Frame
    from readcache.core.model.errors import ReadcacheError, StoreError, UsageError
    from readcache.core.model.policy import (
        SUBMIT_COMMANDS,
        Budget,
        Head,
        HeadTail,
        Insist,
        Marks,
        Mode,
        Policy,
    )
    from readcache.core.model.reply import Omitted, Outcome, Reason, Reply, Shown
    from readcache.core.model.tokens import count_by_chars
    from readcache.core.model.view import View
    from readcache.core.restore.plan import Compaction, RestoreItem, RestorePlan
    from readcache.session import Session, Sessions
    from readcache.session.disk.changes import Change, notice

__all__ = [
    "SUBMIT_COMMANDS",
    "Budget",
    "Change",
    "Compaction",
    "Frame",
    "Head",
    "HeadTail",
    "Insist",
    "Marks",
    "Mode",
    "Omitted",
    "Outcome",
    "Policy",
    "ReadcacheError",
    "Reason",
    "Reply",
    "RestoreItem",
    "RestorePlan",
    "Session",
    "Sessions",
    "Shown",
    "StoreError",
    "UsageError",
    "View",
    "count_by_chars",
    "notice",
]
__version__ = "0.1.0"


def lazy_names(homes: dict[str, str], package: dict[str, Any]) -> Callable[[str], Any]:
    """Return a `__getattr__` for the package with these globals (PEP 562). It imports each public name on first use, so
    that the command line starts without most of them. `homes`: module -> its names, separated by blanks."""
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        import importlib

        value = package[name] = getattr(importlib.import_module(home_of[name]), name)
        return value

    return get


__getattr__ = lazy_names(
    {
        "readcache.session.disk.changes": "Change notice",
        "readcache.core.model.errors": "ReadcacheError StoreError UsageError",
        "readcache.core.model.call": "Frame",
        "readcache.core.model.view": "View",
        "readcache.core.model.policy": "SUBMIT_COMMANDS Budget Head HeadTail Insist Marks Mode Policy",
        "readcache.core.model.tokens": "count_by_chars",
        "readcache.core.model.reply": "Omitted Outcome Reason Reply Shown",
        "readcache.core.restore.plan": "Compaction RestoreItem RestorePlan",
        "readcache.session": "Session Sessions",
    },
    globals(),
)


class _Moved:
    """Finds the modules that moved below `core` by their former names, too. Scripts import these for one more
    version."""

    names = frozenset(("model", "messages", "shell", "judging", "sync", "restore"))

    def find_spec(self, name: str, *_where: object) -> Any:
        """Return a spec if a module of this former name exists; None otherwise."""
        package, _, rest = name.partition(".")
        if package != __name__ or rest.partition(".")[0] not in self.names:
            return None
        from importlib import util

        is_there = util.find_spec(f"{__name__}.core.{rest}")
        return is_there and util.spec_from_loader(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        """Return None, so that the import system creates the module. `exec_module` replaces it."""

    def exec_module(self, made: Any) -> None:
        """Replace the created module with the moved one, so that each class exists once."""
        from importlib import import_module

        new = made.__name__.replace(__name__, f"{__name__}.core", 1)
        sys.modules[made.__name__] = import_module(new)


sys.meta_path.insert(0, _Moved())  # before the finder of files: the former package has the new one's path
