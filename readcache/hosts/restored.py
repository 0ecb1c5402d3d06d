"""What a hook puts back after a compaction, in a host that takes up to 10,000 characters of text from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from readcache import RestorePlan, Session

# Of a longer text Claude Code shows a preview of 2 KB. Codex cuts out the middle, and counts four bytes as a token.
MOST = 10_000  # bytes in UTF-8


def answer_compaction(session: Session, without: Collection[str] = ()) -> dict[str, Any] | None:
    """The answer to `SessionStart` after a compaction, which has been told to the session. `without`: as for
    `restore_plan`."""
    plan = fitting_plan(session, without, MOST)
    session.compacted(restored=plan)
    if not plan.items:
        return None
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": plan.render()}}


def fitting_plan(session: Session, without: Collection[str], most: int) -> RestorePlan:
    """The plan by the policy's budget, of at most so many bytes, as the host takes it. Empty for a session that only
    advises."""
    if not session.may_shorten:
        return RestorePlan()
    budget = session.policy.restore
    tokens = min(int(budget.max_tokens), most // 4)
    while True:
        plan = session.restore_plan(budget=replace(budget, max_tokens=tokens), without=without)
        size = len(plan.render().encode("utf-8", "replace"))
        if size <= most:
            return plan
        tokens = min(tokens - 1, tokens * most // size)
