"""`restore`: a harness in another language asks what to put back when it compacts."""

from __future__ import annotations

import json
import os
from collections.abc import Collection

from readcache.cli.settings import Settings
from readcache.errors import StoreError, UsageError
from readcache.policy import Budget
from readcache.session import Session


def restore(settings: Settings, keep: Collection[str], budget: Budget, *, as_json: bool) -> int:
    """Prints the section, or with `as_json` the plan with the section as its "text", for `compacted --restored`. The
    session's files are taken to be on this machine, where `run` was. StoreError when the log cannot be read."""
    if not settings.session:
        raise UsageError("restore needs a session: name it with --session or READCACHE_SESSION")
    spec = settings.store_spec()
    with Session(os.getcwd(), session_id=settings.session, agent_id=settings.agent, store=spec) as session:
        plan = session._plan(keep, budget, on_disk=True)
        unlogged = session._ledger.unlogged()
    if unlogged:
        raise StoreError(f"the session's log cannot be read: {unlogged[-1].detail}; see `readcache doctor`")
    if as_json:
        print(json.dumps({**plan.to_dict(), "text": plan.render()}))
    else:
        print(plan.render(), end="")
    return 0
