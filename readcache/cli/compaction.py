"""`compacted`: a harness in another language tells the session that it compacted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection

from readcache.cli.settings import Settings
from readcache.errors import StoreError, UsageError
from readcache.restore.plan import RestorePlan
from readcache.session import Session


def compacted(settings: Settings, keep: Collection[str], restored: str | None = None) -> int:
    """Prints {"restored_id", "rewrites"}. `restored`: the file with the plan, as `restore --json` prints it, whose
    section is now in the conversation. StoreError when it was not recorded: what is gone would count as visible."""
    if not settings.session:
        raise UsageError("compacted needs a session: name it with --session or READCACHE_SESSION")
    plan = _read_plan(restored) if restored is not None else None
    spec = settings.store_spec()
    with Session(os.getcwd(), session_id=settings.session, agent_id=settings.agent, store=spec) as session:
        if not session.view.calls:
            print(f"readcache: nothing of session {settings.session} was recorded in {spec} yet", file=sys.stderr)
        done = session.compacted(keep=keep, restored=plan)
        unlogged = session._ledger.unlogged()
        if unlogged:
            raise StoreError(
                f"the compaction was not recorded: {unlogged[-1].detail}; tell it again, or go on with a new session"
            )
    print(json.dumps({"restored_id": done.restored_id, "rewrites": done.rewrites}))
    return 0


def _read_plan(file: str) -> RestorePlan:
    """UsageError when it cannot be read or is none."""
    try:
        if file == "-":
            given = json.load(sys.stdin)
        else:
            with open(file, encoding="utf-8") as stream:
                given = json.load(stream)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read the plan {file}: {error}; it is what `readcache restore --json` prints"
        ) from error
    return RestorePlan.from_dict(given)
