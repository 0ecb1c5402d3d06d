"""Open the SQLite file: create it and its schema, check who owns it, and explain its errors to a user."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time

from readcache.core.model.errors import StoreError
from readcache.log.forks import CONNECTIONS, ForkLock

APPLICATION_ID = 0x72646361  # distinguishes readcache's files from the SQLite files of other programs
VERSION = 3  # the version of the first release. A change makes it 4, and migrates files of version 3

SCHEMA = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    "CREATE TABLE blobs (name TEXT PRIMARY KEY, text TEXT NOT NULL)",
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, agent TEXT NOT NULL, at REAL NOT NULL,
        kind TEXT NOT NULL, call_id TEXT NOT NULL, body TEXT NOT NULL, blob TEXT REFERENCES blobs (name))""",
    "CREATE INDEX events_of_session ON events (session)",
    "CREATE INDEX events_of_context ON events (session, agent)",
    "CREATE INDEX events_of_call ON events (session, call_id)",
    "CREATE INDEX events_not_shown ON events (session, agent) WHERE kind NOT IN ('delivered', 'settled')",
    "CREATE INDEX events_of_writes ON events (session) WHERE kind = 'wrote'",
    "CREATE INDEX events_of_blob ON events (blob) WHERE blob IS NOT NULL",
    """CREATE TABLE contexts (
        session TEXT NOT NULL, agent TEXT NOT NULL, events INTEGER NOT NULL, at REAL NOT NULL,
        newest_call TEXT, floor INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, agent)) WITHOUT ROWID""",
    """CREATE TABLE found_by (
        session TEXT NOT NULL, agent TEXT NOT NULL, what TEXT NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL,
        call_id TEXT NOT NULL, PRIMARY KEY (session, agent, what, name, seq)) WITHOUT ROWID""",
    f"PRAGMA user_version = {VERSION}",
)


BUSY_SECONDS = 5.0
BRIEFLY = 0.1  # seconds to wait for other writers after one wait failed
_waited_in_vain: set[str] = set()  # paths of stores that have not been written since
_connecting = ForkLock(CONNECTIONS)

STORE_NAME = "readcache.db"  # the name of the default store: a file of that name belongs to readcache
_SMALLEST_PAGE = 512  # bytes; this number and the next one are from the file format
_APPLICATION_ID_AT = 68  # https://www.sqlite.org/fileformat.html
_CORRUPT = ("malformed", "not a database")  # SQLITE_CORRUPT, SQLITE_NOTADB; Python has their codes only since 3.11

_WHAT_TO_DO = (
    ("locked", "another process has kept it locked; try again, or end that process"),
    ("full", "free some disk space"),
    ("not a database", "it is not a readcache store: move it away or name another file"),
    ("malformed", "it is damaged: move it away, and a new one will be made"),
)


def explain_error(error: Exception, doing: str, path: str) -> str:
    """Return a sentence about the failure, with the path and advice."""
    text, otherwise = str(error), "check the path, its rights and its disk, or name another file"
    todo = next((advice for fragment, advice in _WHAT_TO_DO if fragment in text), otherwise)
    if isinstance(error, OSError):
        text = error.strerror or text
    return f"cannot {doing} the store {path}: {text}; {todo}"


def connect(path: str) -> sqlite3.Connection:
    """Return a connection to the file. Create the file and its schema if needed. Raise OSError, sqlite3.Error or
    StoreError."""
    with _connecting:
        _create(path)
        db = sqlite3.connect(path, timeout=BRIEFLY, isolation_level=None, check_same_thread=False)
        try:
            _set_up(db, path)
        except BaseException:
            db.close()
            raise
        return db


def patience(path: str) -> float:
    """Return how many seconds to wait for a store's lock: BUSY_SECONDS, or BRIEFLY after such a wait failed in this
    process. A successful write ends that."""
    # A call opens, reads and writes the store, and must not wait for 5 seconds at each step.
    return BRIEFLY if path in _waited_in_vain else BUSY_SECONDS


def note_lock(path: str, *, stays: bool) -> None:
    """Note that a wait for the store failed (`stays`), or that the store was written."""
    (_waited_in_vain.add if stays else _waited_in_vain.discard)(path)


def is_lock(error: Exception) -> bool:
    """Return True for an SQLite error that means that another process has kept the file locked."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def identity(path: str) -> tuple[int, int] | None:
    """Return (device, inode), which identify a file independently of its name. Return None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def is_damage(error: Exception) -> bool:
    """Return True for an SQLite error that means that the file is damaged, or is not a database."""
    if isinstance(error, UnicodeDecodeError):  # raised for the error's own text, which quotes the damaged schema
        return error.object.startswith(b"malformed")
    if type(error) is sqlite3.DatabaseError and not str(error):  # Python 3.10 drops a text that it cannot decode
        return True
    return isinstance(error, sqlite3.DatabaseError) and any(words in str(error) for words in _CORRUPT)


def set_aside(path: str) -> str | None:
    """Rename a damaged store, with its journal, and return the new name. The next process that opens the store creates
    a new one. Return None for a file that may belong to another program, and do not change it. Raise OSError."""
    with _connecting:
        if not _is_ours(path):
            return None
        _close_to_others(path)
        aside = f"{path}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
        for end in ("-wal", "-shm", ""):  # the file last: SQLite would replay an old journal beside a new file
            with contextlib.suppress(FileNotFoundError):
                os.rename(path + end, aside + end)
        return aside


def _is_ours(path: str) -> bool:
    """Return True if the file is a readcache store, by its name or by its application ID. Reading drops this process's
    locks on the file, so the file must not be in use any more."""
    if os.path.basename(path) == STORE_NAME:
        return True
    with open(path, "rb") as file:
        header = file.read(_APPLICATION_ID_AT + 4)
    return header[_APPLICATION_ID_AT:] == APPLICATION_ID.to_bytes(4, "big")


def _create(path: str) -> None:
    """Create the file, for its owner only. Raise StoreError if it or its directory belongs to another user, or if it is
    not a regular file. Raise sqlite3.DatabaseError for a file that is too short."""
    # A file that exists is not changed, because it may not be a store. It is not opened either, because closing it
    # would drop this process's SQLite locks.
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    for name in (os.path.dirname(path), f"{path}-wal", f"{path}-shm", f"{path}-journal"):
        _refuse_foreign_owner(name)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        _refuse_foreign_owner(path)
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise StoreError(f"cannot open the store {path}: it is not a file; give another one") from None
        if 0 < found.st_size < _SMALLEST_PAGE:  # SQLite takes a file of one byte for an empty file, and overwrites it
            raise sqlite3.DatabaseError("file is not a database") from None


def _close_to_others(path: str) -> None:
    """Remove other users' permissions from a store and its journals, if this user owns the store."""
    found = os.stat(path)
    if found.st_mode & 0o077 and hasattr(os, "geteuid") and found.st_uid == os.geteuid():
        for name in (path, f"{path}-wal", f"{path}-shm"):
            with contextlib.suppress(OSError):
                os.chmod(name, 0o600)


def _refuse_foreign_owner(name: str) -> None:
    """Raise StoreError for a file, journal or directory of another user except root. Root may use any file."""
    # Another user could write text into the file that was never shown. SQLite plays a journal back, and the owner of
    # the directory can replace the store. In a container, the files of the user who started it have another user ID.
    with contextlib.suppress(FileNotFoundError):
        owner = os.stat(name).st_uid
        if hasattr(os, "geteuid") and os.geteuid() not in (0, owner) and owner != 0:
            raise StoreError(f"the store's file {name} belongs to another user ({owner}): use another store")


def _refuse_foreign(db: sqlite3.Connection, path: str) -> None:
    with db:
        db.execute("BEGIN")  # one view of the file: another process may be creating the store
        version, application = _pragma(db, "user_version"), _pragma(db, "application_id")
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if version not in (0, VERSION) and application == APPLICATION_ID:
        todo = "upgrade readcache, or name another file" if version > VERSION else "move it away, or name another file"
        raise StoreError(f"the store {path} has schema version {version}, this readcache knows {VERSION}: {todo}")
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreError(f"{path} is another program's database: give another file for the store")


def _set_up(db: sqlite3.Connection, path: str) -> None:
    """Check the file, close it to other users, set its options and create its schema."""
    # SQLite does not wait by itself while other processes change the journal of a new file, or while the last process
    # that closes the file cleans up.
    deadline = time.monotonic() + patience(path)
    while True:
        try:
            _refuse_foreign(db, path)
            _close_to_others(path)  # not earlier: until here it may be any file that the user named by mistake
            db.execute("PRAGMA journal_mode = WAL").fetchone()
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = ON")  # deleted data is overwritten
            _create_schema(db)
            return
        except sqlite3.OperationalError as error:
            if not is_lock(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _create_schema(db: sqlite3.Connection) -> None:
    if _pragma(db, "user_version") == VERSION:
        return
    with db:
        db.execute("BEGIN IMMEDIATE")
        if _pragma(db, "user_version") != VERSION:  # asked again: another process may have been first
            for statement in SCHEMA:
                db.execute(statement)


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
