"""The schema of the SQLite file, and how a file of an older version is brought up to it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from readcache.model.reply import UNCREDITED

APPLICATION_ID = 0x72646361  # tells this program's files from others' SQLite files

_VERSION_1: tuple[str, ...] = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    "CREATE TABLE blobs (name TEXT PRIMARY KEY, text TEXT NOT NULL)",
    """CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, agent TEXT NOT NULL, at REAL NOT NULL,
        kind TEXT NOT NULL, call_id TEXT NOT NULL, body TEXT NOT NULL, blob TEXT REFERENCES blobs (name))""",
    "CREATE INDEX events_of_session ON events (session)",
    "CREATE INDEX events_of_context ON events (session, agent)",
    "CREATE INDEX events_of_call ON events (session, call_id)",
    "CREATE INDEX events_not_shown ON events (session) WHERE kind NOT IN ('delivered', 'settled')",
    """CREATE TABLE contexts (
        session TEXT NOT NULL, agent TEXT NOT NULL, events INTEGER NOT NULL, at REAL NOT NULL,
        newest_call TEXT, floor INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, agent)) WITHOUT ROWID""",
    """CREATE TABLE found_by (
        session TEXT NOT NULL, agent TEXT NOT NULL, what TEXT NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL,
        call_id TEXT NOT NULL, PRIMARY KEY (session, agent, what, name, seq)) WITHOUT ROWID""",
)


def _to_version_2(db: sqlite3.Connection) -> None:
    """In version 1 the body of a delivery was flat, and renderings of a file (`cat -A`) had keys like `path\\0name`."""
    rows = db.execute("SELECT seq, kind, body FROM events WHERE kind IN ('delivered', 'settled')").fetchall()
    for seq, kind, body in rows:
        plain = json.loads(body if isinstance(body, str) else body.decode("utf-8", "surrogatepass"))
        plain["pieces"] = [piece for piece in plain.get("pieces", []) if "\0" not in "".join(piece["keys"])]
        text = json.dumps(_nested(plain) if kind == "delivered" else plain, separators=(",", ":"))
        db.execute("UPDATE events SET body = ? WHERE seq = ?", (text, seq))


def _nested(body: dict[str, Any]) -> dict[str, Any]:
    """`{"call": 3, "request": "…", "reason": "covered"}` as `{"when": {"call": 3}, "account": {…}}`."""
    request = body.pop("request", "")
    account = {"request": request, "outcome": body.pop("outcome", "full"), "reason": body.pop("reason", "not_seen")}
    account |= {name: body.pop(name, 0) for name in ("output_chars", "tokens_saved")}
    moment = {"call": body.pop("call", 0), "tokens": body.pop("tokens_so_far", 0), "batch": body.pop("batch", "")}
    credited = account["reason"] not in {reason.value for reason in UNCREDITED}
    return {
        **body,
        "when": moment,
        **({"account": account} if request else {}),
        **({} if credited else {"credited": False}),
    }


# Number n brings a file from schema version n to n + 1. Never edit one that was released: add the next.
MIGRATIONS: tuple[tuple[str | Callable[[sqlite3.Connection], None], ...], ...] = (
    _VERSION_1,
    (
        _to_version_2,
        "DROP INDEX events_not_shown",
        "CREATE INDEX events_not_shown ON events (session, agent) WHERE kind NOT IN ('delivered', 'settled')",
        "CREATE INDEX events_of_writes ON events (session) WHERE kind = 'wrote'",
    ),
    ("CREATE INDEX events_of_blob ON events (blob) WHERE blob IS NOT NULL",),
)
