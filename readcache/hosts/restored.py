"""What stands behind compactions in hosts that keep nothing of ours: it is put in again at each request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from readcache import Budget, Session
from readcache.model.events import Delivered, Origin, Piece


class _LoggedPlan:
    """A section as it was put back, in place of the plan that it was made by."""

    def __init__(self, event: Delivered) -> None:
        self.heading, self.items, self._event = event.label, (event,), event

    def render(self) -> str:
        """See `RestorePlan.render`."""
        return self._event.text

    def pieces(self) -> tuple[Piece, ...]:
        """See `RestorePlan.pieces`."""
        return self._event.pieces


class RestoredSections:
    """By the text that a compaction left, the section behind it: made once, and the same from then on, also in another
    process on the same store. `budget`: None for no section."""

    def __init__(self, session: Session, budget: Budget | None) -> None:
        self._session, self._budget = session, budget
        self._sections: dict[str, str] = {}

    def behind(self, left: str, keep: Sequence[str], before: Sequence[Mapping[str, Any]]) -> str:
        """The section behind what a compaction `left`, "" for none. `keep`: the calls whose results are still there;
        `before`: the messages before the compaction."""
        if self._budget is not None and left not in self._sections:
            name = hashlib.sha256(left.encode("utf-8", "surrogatepass")).hexdigest()[:4]
            plan = self._logged(name) or self._planned(name, keep, before, self._budget)
            self._sections[left] = plan.render()
            if not any(delivery.event.label == plan.heading for delivery in self._session.view.deliveries):
                self._session.compacted(keep=keep, restored=plan if plan.items else None)
        return self._sections.get(left, "")

    def _planned(self, name: str, keep: Sequence[str], before: Sequence[Mapping[str, Any]], budget: Budget) -> Any:
        plan = self._session.restore_plan(keep=keep, budget=budget, messages=before)
        return replace(plan, heading=f"{plan.heading} {name}")

    def _logged(self, name: str) -> Any:
        """The plan of the section with that name, as it was put back by another process; None if there is none."""
        for record in self._session.events():
            event: Any = record.event
            if isinstance(event, Delivered) and event.origin is Origin.RESTORED and event.label.endswith(f" {name}"):
                return _LoggedPlan(event)
        return None
