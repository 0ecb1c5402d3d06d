"""`compacted`: a harness in another language tells the session that it compacted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection

from readcache.cli_settings import Settings
from readcache.errors import StoreError, UsageError
from readcache.session import Session


def compacted(settings: Settings, keep: Collection[str]) -> int:
    """Prints {"restored_id", "rewrites"}. StoreError when it was not recorded: what is gone would count as visible."""
    if not settings.session:
        raise UsageError("compacted needs a session: name it with --session or READCACHE_SESSION")
    spec = settings.store_spec()
    with Session(os.getcwd(), session_id=settings.session, agent_id=settings.agent, store=spec) as session:
        if not session.view.calls:
            print(f"readcache: nothing of session {settings.session} was recorded in {spec} yet", file=sys.stderr)
        done = session.compacted(keep=keep)
        unlogged = session._ledger.unlogged()
        if unlogged:
            raise StoreError(
                f"the compaction was not recorded: {unlogged[-1].detail}; tell it again, or go on with a new session"
            )
    print(json.dumps({"restored_id": done.restored_id, "rewrites": done.rewrites}))
    return 0
