"""`readcache recall`: print the result of an earlier call, as the agent was shown it.

An agent types this command. Adapters, wrapped tools and `readcache run` answer it if they see exactly this command. The
process itself answers only if its environment or its options name the session. Otherwise it cannot know whose
conversation it is, and prints one line that says what to do.
"""

from __future__ import annotations

import argparse
import os
import re

from readcache import Session
from readcache.core.model.errors import UsageError
from readcache.core.sync.recall import UNANSWERED
from readcache.process.settings import Settings
from readcache.process.state import require_recorded

_LINES = re.compile(r"(\d{1,9})-(\d{0,9})")


def recall_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print the recalled lines. Without a session, print one line and exit with 0: a host may replace the output of a
    command, but not of one that failed. Raise ReadcacheError if the call is not in the session."""
    lines = _LINES.fullmatch(options.lines or "1-")
    if lines is None:
        raise UsageError(f"{options.lines!r} is not a range of lines: give FIRST-LAST or FIRST-")
    if not settings.session:
        print(UNANSWERED, end="")
        return 0
    print(recalled(options.name, int(lines[1]), int(lines[2]) if lines[2] else None, settings), end="")
    return 0


def recalled(name: str, first: int, last: int | None, settings: Settings) -> str:
    """Return the recalled lines of the named session. Raise ReadcacheError if the session or the call is not in the
    store."""
    from readcache.process.buffered import chosen_policy

    spec = settings.store_spec()
    require_recorded(spec)
    policy, root, session_id = chosen_policy(settings), os.getcwd(), settings.session
    with Session(
        root, session_id=session_id, agent_id=settings.agent, store=spec, policy=policy, local=True
    ) as session:
        return session.recall(name, first, last).text
