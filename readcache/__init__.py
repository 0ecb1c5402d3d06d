"""A tool-layer read cache for coding agents.

    from readcache import Session
    session = Session(root="/repo")
    print(session.run("cat src/app.py").text)

Bytes are left out of a reply only if the reader was shown those very bytes, can still see them, and is told where.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, which takes a start of Python longer than all that a hook does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from readcache.core.model.errors import ReadcacheError, StoreError, UsageError
    from readcache.core.model.frame import Frame
    from readcache.core.model.policy import Budget, Head, HeadTail, Insist, Marks, Mode, Policy
    from readcache.core.model.reply import Omitted, Outcome, Reason, Reply, Shown
    from readcache.core.model.view import View
    from readcache.core.restore.plan import Compaction, RestoreItem, RestorePlan
    from readcache.session import Session, Sessions
    from readcache.session.disk.changes import Change, notice

__all__ = [
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
    "notice",
]
__version__ = "0.1.0"


def lazy_names(homes: dict[str, str], package: dict[str, Any]) -> Callable[[str], Any]:
    """A `__getattr__` for the package with these globals, whose public names are imported when they are first used (PEP
    562): the command line starts without most of them. `homes`: module -> its names, apart by blanks."""
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
        "readcache.core.model.frame": "Frame",
        "readcache.core.model.view": "View",
        "readcache.core.model.policy": "Budget Head HeadTail Insist Marks Mode Policy",
        "readcache.core.model.reply": "Omitted Outcome Reason Reply Shown",
        "readcache.core.restore.plan": "Compaction RestoreItem RestorePlan",
        "readcache.session": "Session Sessions",
    },
    globals(),
)
