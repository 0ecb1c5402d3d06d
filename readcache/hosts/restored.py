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
    plan = _fitting(session, without) if session.may_shorten else RestorePlan()
    session.compacted(restored=plan)
    if not plan.items:
        return None
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": plan.render()}}


def _fitting(session: Session, without: Collection[str]) -> RestorePlan:
    """The plan by the policy's budget, as far as the host takes it."""
    budget = session.policy.restore
    tokens = min(int(budget.max_tokens), MOST // 4)
    while True:
        plan = session.restore_plan(budget=replace(budget, max_tokens=tokens), without=without)
        size = len(plan.render().encode("utf-8", "replace"))
        if size <= MOST:
            return plan
        tokens = min(tokens - 1, tokens * MOST // size)
