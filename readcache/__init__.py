"""A tool-layer read cache for coding agents.

    from readcache import Session
    session = Session(root="/repo")
    print(session.run("cat src/app.py").text)

Bytes are left out of a reply only if the reader was shown those very bytes, can still see them, and is told where.
"""

from __future__ import annotations

from readcache.policy import Budget, Head, HeadTail, Insist, Mode, Policy
from readcache.reply import Omitted, Outcome, Reason, Reply, Shown
from readcache.session import Session

__all__ = [
    "Budget",
    "Head",
    "HeadTail",
    "Insist",
    "Mode",
    "Omitted",
    "Outcome",
    "Policy",
    "Reason",
    "Reply",
    "Session",
    "Shown",
]
__version__ = "0.1.0"
