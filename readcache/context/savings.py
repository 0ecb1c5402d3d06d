"""Report what a pruning saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from readcache.core.messages.blocks import Raw
from readcache.core.messages.messages import normalise
from readcache.core.model.errors import UsageError
from readcache.core.model.policy import Policy


@dataclass(frozen=True, slots=True)
class PruneReport:
    """The savings of one pruning: the number of changed messages, and the characters and tokens that were removed."""

    messages: int
    chars: int
    tokens: int


def prune_report(
    before: Sequence[Raw], after: Sequence[Raw], *, count_tokens: Callable[[str], int] | None = None
) -> PruneReport:
    """Return what a pruning saved. `before`, `after`: the list that `prune` was given, and the list that it returned.
    `count_tokens`: None for the policy's own count. Raise UsageError if the lists have different lengths, because
    pruning removes no message."""
    if len(before) != len(after):
        raise UsageError(f"{len(before)} messages became {len(after)}: give the lists before and after one pruning")
    changed = [(old, new) for old, new in zip(normalise(before), normalise(after), strict=True) if old != new]
    old, new = ("".join(part.text for pair in changed for part in pair[side].parts) for side in (0, 1))
    tokens = count_tokens or Policy().tokens
    return PruneReport(len(changed), len(old) - len(new), tokens(old) - tokens(new))
