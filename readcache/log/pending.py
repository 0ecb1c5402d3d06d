"""A reply that was judged and is not known to have been shown yet.

pending = reader.judge(call)
print(pending.reply.text)      # no lock is held, and nothing of the reply counts as seen
pending.commit()               # now it does; without it, nothing ever will
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from readcache.model.reply import Reply


@dataclass(frozen=True, slots=True)
class Pending:
    """The reply to one call, and what logs that it was shown. `is_judged`: False if readcache failed, so that the reply
    is the real output."""

    reply: Reply
    is_judged: bool = False
    _commit: Callable[[float | None], None] = lambda _: None

    def commit(self, at: float | None = None) -> None:
        """Log that the reply was shown. Do it at most once. `at`: when that was, by the log's clock; None for now."""
        self._commit(at)
