"""The schema of the SQLite file."""

from __future__ import annotations

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
