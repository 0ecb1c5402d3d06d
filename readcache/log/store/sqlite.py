"""The durable store: one SQLite file (WAL) that many threads and processes append to.

The tables `events` and `blobs` are the truth. `contexts` and `found_by` are projections, updated in the same
transaction. With them, the cost of a look-up depends on how much the reader can still see, not on the length of the
session. A kill at any moment loses at most the transaction that was being written.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Event, Record
from readcache.log.forks import STORES, follow_forks
from readcache.log.store import sqlite_file, sqlite_rows
from readcache.log.store.protocol import Store, StoreGone
from readcache.log.store.sqlite_rows import bind, to_records, unbind

_USED_BYTES = (
    "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
)


class SqliteStore(Store):
    """A `Store` in the file `path`. It creates the file if needed, readable by its owner only.

    Raise StoreError if the file cannot be opened: no permission, a directory, a damaged file, or a newer version.
    """

    fork_order = STORES

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._lock = threading.RLock()
        self._depth = 0
        self._closed = False
        self._file: tuple[int, int] | None = None  # identifies the file that was opened
        self._patience = -1.0  # seconds that the connection waits for a lock
        self._is_readonly = False  # the connection cannot write
        self._erased = False  # the journal may contain texts that were removed from the file
        self._pid = os.getpid()
        self._db: sqlite3.Connection | None = None
        follow_forks(self)
        with self._open():
            pass

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """See `Store.transaction`. Wait up to five seconds for other writers, then raise StoreError; see
        `sqlite_file.patience`."""
        with self._open() as db:
            pid = os.getpid()
            with self._explained("write to"):
                if self._depth:
                    self._require_transaction(db)
                else:
                    self._begin(db)
            self._depth += 1
            done = False
            try:
                yield
                done = True
            except StoreError as error:
                self._is_readonly |= "readonly" in str(error)
                raise
            finally:
                if os.getpid() == pid:  # a child forked within must not end its parent's transaction
                    self._depth -= 1
                    self._end(db, done)
                    if self._is_readonly and not self._depth:  # it stays so, even if the file can be written again
                        self._is_readonly = False
                        self._disconnect()
            if self._erased and not self._depth:
                self._empty_journal(db)

    def append(self, session_id: str, agent_id: str, events: Sequence[Event], at: float) -> int:
        """See `Store.append`."""
        seq = 0
        with self.transaction(), self._open() as db, self._explained("write to"):
            for event in events:
                try:
                    seq = sqlite_rows.insert(db, session_id, agent_id, event, at)
                except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as error:
                    raise StoreError(f"a {type(event).__name__} cannot be stored: {error}") from error
                self._erased |= isinstance(event, Amended) and event.erases
        return seq

    def records(self, session_id: str, agent_id: str | None = None, *, after: int = 0) -> list[Record]:
        """See `Store.records`."""
        with self._reading() as db:
            rows = sqlite_rows.select_records(db, session_id, agent_id, after)
        return to_records(rows)

    def records_about(
        self, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
    ) -> list[Record]:
        """See `Store.records_about`."""
        with self._reading() as db:
            rows = sqlite_rows.select_about(db, session_id, agent_id, keys, digests)
        return to_records(rows)

    def sessions(self, session_id: str | None = None) -> list[tuple[str, str, int, float]]:
        """See `Store.sessions`."""
        where, words = ("", ()) if session_id is None else ("WHERE session = ?", (bind(session_id),))
        sql = f"SELECT session, agent, events, at FROM contexts {where} ORDER BY session, agent"
        with self._reading() as db:
            rows = db.execute(sql, words).fetchall()
        return [(unbind(session), unbind(agent), events, at) for session, agent, events, at in rows]

    def drop(self, session_id: str) -> None:
        """See `Store.drop`. The file keeps its size for later events; see `give_back_room`."""
        with self._open() as db, self._explained("write to"):
            sqlite_rows.delete_session(db, session_id)
            self._erased = True

    def rewrite(self, session_id: str, changes: Sequence[tuple[Record, Event]]) -> None:
        """See `Store.rewrite`."""
        with self.transaction(), self._open() as db, self._explained("write to"):
            for record, event in changes:
                sqlite_rows.rewrite(db, session_id, record, event)
            self._erased = True

    def used_bytes(self) -> int:
        """Return the number of bytes of the file that are in use. Raise StoreError."""
        with self._reading() as db:
            return int(db.execute(_USED_BYTES).fetchone()[0])

    def give_back_room(self) -> None:
        """Rewrite the whole file without its unused bytes. Raise StoreError, also while others use the file."""
        with self._open() as db, self._explained("write to"):
            db.execute("VACUUM")

    def close(self) -> None:
        """See `Store.close`."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def __del__(self) -> None:
        """Close the connection of a store that was never closed: Python 3.13 warns if the collector does it."""
        db = getattr(self, "_db", None)
        if db is not None and self._pid == os.getpid():
            with suppress(Exception):
                db.close()

    def before_fork(self) -> None:
        """Close the connection, so that a child does not inherit it, unless this thread itself is writing."""
        # SQLite keeps a process's file locks in its memory, so a child would believe that it has its parent's locks.
        self._lock.acquire()
        if not self._depth:
            self._disconnect()

    def after_fork(self) -> None:
        """Release the lock. In the child, a store that was being written cannot be used."""
        if not self._depth:
            self._pid = os.getpid()
        elif self._pid != os.getpid() and self._db is not None:
            _inherited.append(self._db)
        self._lock.release()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, for this thread only. Raise StoreError if the store was closed, or was being written
        when this process was forked."""
        if self._pid != os.getpid():
            raise StoreError(f"the store {self.path} was being written when this process was forked; open it again")
        with self._lock:
            if self._closed:
                raise StoreError(f"the store {self.path} was closed; open it again")
            if self._db is None:
                with self._explained("open"):
                    self._db, self._patience = sqlite_file.connect(self.path), -1.0
                    self._file = self._file or sqlite_file.identity(self.path)
            self._wait_for(self._db, sqlite_file.patience(self.path))
            yield self._db

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, such that several reads see one state."""
        with self._open() as db, self._explained("read"):
            if self._depth:
                self._require_transaction(db)
                yield db
                return
            with db:
                db.execute("BEGIN")
                yield db

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error, UnicodeDecodeError) as error:
            if sqlite_file.is_damage(error):
                self._give_up(error)
            if sqlite_file.is_lock(error):
                sqlite_file.note_lock(self.path, stays=True)
            raise StoreError(sqlite_file.explain_error(error, doing, self.path)) from error

    def is_there(self) -> bool:
        """Return False if the open file was removed or replaced."""
        return self._file is None or sqlite_file.identity(self.path) == self._file

    def _give_up(self, error: Exception) -> None:
        """Rename the damaged file, and raise StoreGone. Raise it also if another process has renamed the file. Return
        if the file cannot be renamed, or may belong to another program."""
        with suppress(OSError):
            found = sqlite_file.identity(self.path)
            aside = sqlite_file.set_aside(self.path) if found and found == (self._file or found) else "another name"
            if aside is not None:
                raise StoreGone(
                    f"the store {self.path} is damaged ({error}): it was set aside as {aside}, and a new one will be "
                    "made; what was shown before is shown again"
                ) from error

    def _begin(self, db: sqlite3.Connection) -> None:
        if not self.is_there():  # without this check, this process and the others would write two different files
            raise StoreGone(f"the store {self.path} was taken away while it was open; a new one will be made")
        db.execute("BEGIN IMMEDIATE")
        sqlite_file.note_lock(self.path, stays=False)

    def _wait_for(self, db: sqlite3.Connection, seconds: float) -> None:
        if seconds != self._patience:
            db.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
            self._patience = seconds

    def _empty_journal(self, db: sqlite3.Connection) -> None:
        """Empty the journal. If other processes are reading, the next transaction tries again. The last process that
        closes the file removes the journal."""
        with suppress(sqlite3.Error):
            self._wait_for(db, sqlite_file.BRIEFLY)
            self._erased = bool(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])

    def _require_transaction(self, db: sqlite3.Connection) -> None:
        if not db.in_transaction:  # SQLite may roll back by itself, for instance when the disk is full
            raise StoreError(f"the transaction on the store {self.path} was lost, so nothing was written; try again")

    def _end(self, db: sqlite3.Connection, done: bool) -> None:
        """End one level of the transaction: commit the outermost one if it is `done`, and roll back a failed one. If an
        inner transaction failed, the outer one finds at its end that it was lost, and raises StoreError."""
        with self._explained("write to"):
            try:
                if done:
                    self._require_transaction(db)
                    if not self._depth:
                        db.execute("COMMIT")
            finally:
                if db.in_transaction and not (done and self._depth):
                    db.execute("ROLLBACK")

    def _disconnect(self) -> None:
        if self._db is not None:
            db, self._db = self._db, None
            with self._explained("close"):
                db.close()


# Connections of the parent that a child must not even close: closing them would affect the locks and the shared index.
_inherited: list[sqlite3.Connection] = []
