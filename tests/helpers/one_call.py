"""A session as a process has it that judges one call and ends, as `readcache run` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from readcache import Session
from readcache.log.reader import Reader


@contextmanager
def one_call_session(store: Path | str | None, session_id: str = "s", root: str = "/w") -> Iterator[Session]:
    with Session(root, session_id=session_id, store=store) as session:
        session.reader = Reader(session.reader.log, session.reader.rules, one_call=True, resumes=True)
        yield session
