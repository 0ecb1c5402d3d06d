"""A session as a process has it that judges one call and ends, as `readcache run` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from readcache import Reply, Session
from readcache.core.model.call import Call
from readcache.log.reader import Reader


def answer(
    reader: Reader, call: Call, show: Callable[[Reply], float | None] = lambda _: None, *, began: float | None = None
) -> Reply:
    """Judge a call, print the reply, and commit it. `show` prints, and may return when that was."""
    pending = reader.judge(call, began=began)
    pending.commit(show(pending.reply))
    return pending.reply


@contextmanager
def one_call_session(store: Path | str | None, session_id: str = "s", root: str = "/w") -> Iterator[Session]:
    with Session(root, session_id=session_id, store=store) as session:
        session.reader = Reader(session.reader.log, session.reader.rules, one_call=True, resumes=True)
        yield session
