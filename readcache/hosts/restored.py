"""Restored sections that a hook adds after a compaction, for hosts that take at most 10,000 bytes of text from a
hook."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from readcache import RestorePlan, Session

# Claude Code shows only a preview of 2 KB of a longer text. Codex removes its middle, and counts four bytes as a token.
MOST = 10_000  # bytes in UTF-8


def answer_compaction(session: Session, without: Collection[str] = ()) -> dict[str, Any] | None:
    """Record a compaction in the session, and return the answer to its `SessionStart`. Return None if there is nothing
    to restore. `without`: as for `restore_plan`."""
    plan = fitting_plan(session, without, MOST)
    session.compacted(restored=plan)
    if not plan.items:
        return None
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": plan.render()}}


def fitting_plan(session: Session, without: Collection[str], most: int) -> RestorePlan:
    """Return the restore plan within the policy's budget and at most `most` bytes (UTF-8, as the host takes it). Return
    an empty plan if the session only advises, or is off."""
    if not session.may_shorten:
        return RestorePlan()
    budget = session.policy.restore
    tokens = min(int(budget.max_tokens), int(most / session.policy.chars_per_token))
    while True:
        plan = session.restore_plan(budget=replace(budget, max_tokens=tokens), without=without)
        size = len(plan.render().encode("utf-8", "replace"))
        if size <= most:
            return plan
        tokens = min(tokens - 1, tokens * most // size)
