"""`restore` and `compacted`: a harness in another language asks what to put back, and tells that it compacted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from pathlib import Path

from readcache.cli.settings import Settings
from readcache.errors import StoreError, UsageError
from readcache.policy import Budget
from readcache.restore.plan import RestorePlan
from readcache.session import Session


def restore(settings: Settings, keep: Collection[str], budget: Budget, *, as_json: bool) -> int:
    """Prints the section, or with `as_json` the plan with the section as its "text", for `compacted --restored`. The
    session's files are taken to be on this machine, where `run` was. StoreError when the log cannot be read."""
    with _session("restore", settings) as session:
        plan = session.restore_plan(keep=keep, budget=budget)
        _require_logged(session, "the session's log cannot be read", "see `readcache doctor`")
    if as_json:
        print(json.dumps({**plan.to_dict(), "text": plan.render()}))
    else:
        print(plan.render(), end="")
    return 0


def compacted(settings: Settings, keep: Collection[str], restored: str | None = None) -> int:
    """Prints {"restored_id", "rewrites"}. `restored`: the file with the plan, as `restore --json` prints it, whose
    section is now in the conversation. StoreError when it was not recorded: what is gone would count as visible."""
    with _session("compacted", settings) as session:
        plan = _read_plan(restored) if restored is not None else None
        if not session.view.calls.number:
            where = f"{settings.session} was recorded in {settings.store_spec()}"
            print(f"readcache: nothing of session {where} yet", file=sys.stderr)
        done = session.compacted(keep=keep, restored=plan)
        _require_logged(session, "the compaction was not recorded", "tell it again, or go on with a new session")
    print(json.dumps({"restored_id": done.restored_id, "rewrites": done.rewrites}))
    return 0


def _session(command: str, settings: Settings) -> Session:
    if not settings.session:
        raise UsageError(f"{command} needs a session: name it with --session or READCACHE_SESSION")
    spec = settings.store_spec()
    return Session(os.getcwd(), session_id=settings.session, agent_id=settings.agent, store=spec, local=True)


def _require_logged(session: Session, what: str, todo: str) -> None:
    unlogged = session.reader.unlogged()
    if unlogged:
        raise StoreError(f"{what}: {unlogged[-1].detail}; {todo}")


def _read_plan(file: str) -> RestorePlan:
    """UsageError when it cannot be read or is none."""
    try:
        given = json.loads(sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        what = f"cannot read the plan {file}: {error}"
        raise UsageError(f"{what}; it is what `readcache restore --json` prints") from error
    return RestorePlan.from_dict(given)
