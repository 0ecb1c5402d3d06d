"""Write and read events as rows, and keep the projections that look-ups use.

A string is bound as TEXT. If it contains lone surrogates, which SQLite's UTF-8 cannot represent, it is bound as a BLOB
of its bytes.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Compacted, Delivered, Event, Forgot, Record, Rewound
from readcache.core.model.text import digest
from readcache.core.model.unconfirmed import without_text
from readcache.log.store.codec import CHANGED, REWOUND, SOURCE, TEXT, decode, encode, names, unreadable, wanted
from readcache.log.store.protocol import replaced

Bound = str | bytes
Row = tuple[Any, ...]

_NOT_SHOWN = "kind NOT IN ('delivered', 'settled')"  # the same words as in the index events_not_shown
_OUTLASTS = f"what IN ('{CHANGED}', '{REWOUND}')"
SELECT = "SELECT seq, agent, at, kind, body, text, blob FROM events LEFT JOIN blobs ON blobs.name = events.blob"
_OF_CONTEXT = (
    f"{SELECT} WHERE session = :session AND agent = :agent AND seq > :after UNION ALL "
    f"{SELECT} WHERE session = :session AND agent <> :agent AND seq > :after AND kind = 'wrote' "
    "ORDER BY seq"
)
_OF_SESSION = f"{SELECT} WHERE session = :session AND seq > :after ORDER BY seq"
_GENERAL = (
    f"{SELECT} WHERE session = :session AND agent = :agent AND seq >= :floor AND {_NOT_SHOWN} UNION ALL "
    f"{SELECT} WHERE session = :session AND agent <> :agent AND seq >= :floor AND kind = 'wrote'"
)
_OF_CALL = f"{SELECT} WHERE session = ? AND call_id = ? AND agent = ? AND seq >= ? AND NOT ({_NOT_SHOWN})"
# The last use of a call ID below the floor: an ID that was used for two calls does not say which one is meant.
_LAST_USE = (
    f"{SELECT} WHERE session = ? AND call_id = ? AND agent = ? AND seq < ? AND kind IN ('delivered', 'wrote') "
    "ORDER BY seq DESC LIMIT 1"
)
_FORGETTABLE = f"SELECT * FROM found_by WHERE session = :session AND agent = :agent AND NOT ({_OUTLASTS})"
_LAST_OF_CALL = (
    "SELECT max(seq) FROM events WHERE session = :session AND call_id = :call AND kind <> 'rewound' "
    "AND (agent = :agent OR kind = 'wrote')"
)
# The floor rises to the newest delivery, which has the counters. The compaction after it says that it is gone.
_RAISE_FLOOR = (
    "UPDATE contexts SET floor = coalesce((SELECT seq FROM events WHERE session = :session AND agent = :agent "
    "AND kind = 'delivered' ORDER BY seq DESC LIMIT 1), floor) WHERE session = :session AND agent = :agent"
)
_DELETE_UNUSED_TEXT = "DELETE FROM blobs WHERE name = :name AND NOT EXISTS (SELECT 1 FROM events WHERE blob = :name)"


def bind(text: str) -> Bound:
    """Return `text` as a value to store or to look up by."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def unbind(value: Bound) -> str:
    """Return the string that `bind` was given."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")


def to_records(rows: Iterable[Row]) -> list[Record]:
    """Return the records of rows that `SELECT` returned. For a row that makes no sense, see `unreadable`."""
    records: list[Record] = []
    for seq, agent, at, kind, body, text, blob in rows:
        try:
            if blob is not None and text is None:
                raise StoreError("its text is missing; the store is damaged")
            event = decode(kind, json.loads(unbind(body)), None if text is None else unbind(text))
            records.append(Record(seq, unbind(agent), at, event))
        except (StoreError, ValueError, TypeError, AttributeError) as error:
            records += unreadable(seq, unbind(agent), at, error)
    return records


def insert(db: sqlite3.Connection, session_id: str, agent_id: str, event: Event, at: float) -> int:
    """Write one event and its projections. Return its seq."""
    session, agent = bind(session_id), bind(agent_id)
    if isinstance(event, Amended) and event.erases:
        _erase(db, session, agent, event)
    kind, body, blob = _contents(db, event)
    row = (session, agent, at, kind, bind(_call_of(event)), body, blob)
    sql = "INSERT INTO events (session, agent, at, kind, call_id, body, blob) VALUES (?, ?, ?, ?, ?, ?, ?)"
    seq = db.execute(sql, row).lastrowid or 0
    _project(db, session, agent, seq, event, at)
    return seq


def _contents(db: sqlite3.Connection, event: Event) -> tuple[str, Bound, str | None]:
    """Store an event's text, and return the event's kind, its body, and the name of the text."""
    kind, body, text = encode(event)
    name = None if text is None else _store_text(db, f"{digest(text)}-{len(text):x}", bind(text))
    return kind, bind(json.dumps(body, ensure_ascii=False, separators=(",", ":"))), name


def _erase(db: sqlite3.Connection, session: Bound, agent: Bound, event: Amended) -> None:
    """Erase from earlier events the texts that `event` replaces, and the rows that nothing else needs."""
    for record in to_records(db.execute(_OF_CALL, (session, bind(event.call_id), agent, 0)).fetchall()):
        old = replaced(record.event, event)
        if old is not None:
            rewrite(db, unbind(session), record, without_text(old))


def rewrite(db: sqlite3.Connection, session_id: str, record: Record, event: Event) -> None:
    """Replace a record's event with another event, and delete the old text if nothing else needs it."""
    old = db.execute("SELECT blob FROM events WHERE seq = ?", (record.seq,)).fetchone()[0]
    _, body, blob = _contents(db, event)
    db.execute("UPDATE events SET body = ?, blob = ? WHERE seq = ?", (body, blob, record.seq))
    if text := getattr(record.event, "text", ""):
        _delete(db, [(bind(session_id), bind(record.agent_id), TEXT, digest(text), record.seq)])
    db.execute(_DELETE_UNUSED_TEXT, {"name": old})


def _store_text(db: sqlite3.Connection, name: str, text: Bound) -> str:
    """Write a text unless it is stored already. Return its name."""
    # Two texts may share a digest, and an attacker can make such texts. So the bytes are compared, and the second text
    # gets another name.
    for number in itertools.count(1):
        free = name if number == 1 else f"{name}-{number}"
        if db.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (free, text)).rowcount:
            return free
        if db.execute("SELECT text = ? FROM blobs WHERE name = ?", (text, free)).fetchone()[0]:
            return free
    raise AssertionError


def _project(db: sqlite3.Connection, session: Bound, agent: Bound, seq: int, event: Event, at: float) -> None:
    """Update the projections with one event. All earlier events must be projected already."""
    call = bind(_call_of(event))
    db.execute(
        "INSERT INTO contexts (session, agent, events, at, newest_call) VALUES (?, ?, 1, ?, ?) "
        "ON CONFLICT (session, agent) DO UPDATE SET "
        "events = events + 1, at = excluded.at, newest_call = coalesce(excluded.newest_call, newest_call)",
        (session, agent, at, call if isinstance(event, Delivered) else None),
    )
    rows = [(session, agent, what, bind(name), seq, call) for what, name in names(event)]
    db.executemany("INSERT INTO found_by VALUES (?, ?, ?, ?, ?, ?)", rows)
    if isinstance(event, Compacted | Forgot | Rewound):
        _forget(db, session, agent, event)


def _call_of(event: Event) -> str:
    return getattr(event, "call_id", "")


def _forget(db: sqlite3.Connection, session: Bound, agent: Bound, event: Compacted | Forgot | Rewound) -> None:
    """Delete the names of the calls that the newest event removes from the view."""
    where = {"session": session, "agent": agent}
    if isinstance(event, Compacted) and not event.kept:
        db.execute("DELETE FROM found_by WHERE session = :session AND agent = :agent", where)
        db.execute(_RAISE_FLOOR, where)
        return
    rows = db.execute(_FORGETTABLE, where).fetchall()
    if isinstance(event, Rewound):  # delete calls whose events are all newer than the last event of that call
        last = db.execute(_LAST_OF_CALL, {**where, "call": bind(event.call_id)}).fetchone()[0] or 0
        older = {row[5] for row in rows if row[4] <= last}
        _delete(db, [row for row in rows if row[5] not in older])
    elif isinstance(event, Compacted):
        _delete(db, [row for row in rows if unbind(row[5]) not in event.kept])
    else:
        _delete(db, [row for row in rows if unbind(row[5]) in event.call_ids])


def _delete(db: sqlite3.Connection, rows: list[Row]) -> None:
    sql = "DELETE FROM found_by WHERE session = ? AND agent = ? AND what = ? AND name = ? AND seq = ?"
    db.executemany(sql, [row[:5] for row in rows])


def delete_session(db: sqlite3.Connection, session_id: str) -> None:
    """Delete a session's rows, and the texts that nothing else needs."""
    session = bind(session_id)
    texts = db.execute("SELECT DISTINCT blob FROM events WHERE session = ? AND blob IS NOT NULL", (session,)).fetchall()
    for table in ("events", "found_by", "contexts"):
        db.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    db.executemany(_DELETE_UNUSED_TEXT, ({"name": name} for (name,) in texts))


def select_records(db: sqlite3.Connection, session_id: str, agent_id: str | None, after: int) -> list[Row]:
    """Return the rows of `Store.records`."""
    sql = _OF_SESSION if agent_id is None else _OF_CONTEXT
    return db.execute(sql, {"session": bind(session_id), "agent": bind(agent_id or ""), "after": after}).fetchall()


def select_about(
    db: sqlite3.Connection, session_id: str, agent_id: str, keys: Iterable[str], digests: Iterable[str]
) -> list[Row]:
    """Return the rows of `Store.records_about`."""
    context = (bind(session_id), bind(agent_id))
    sql = "SELECT floor, newest_call FROM contexts WHERE session = ? AND agent = ?"
    floor, newest_call = db.execute(sql, context).fetchone() or (0, None)
    calls = _calls(db, context, wanted(keys, digests))
    calls |= _calls(db, context, {(SOURCE, unbind(call)) for call in calls})
    if newest_call is not None:
        calls.add(newest_call)
    rows: list[Row] = db.execute(_GENERAL, {"session": context[0], "agent": context[1], "floor": floor}).fetchall()
    for call in calls:
        of_call = (context[0], call, context[1], floor)
        rows += [*db.execute(_LAST_USE, of_call), *db.execute(_OF_CALL, of_call)]
    return sorted(rows, key=lambda row: row[0])


def _calls(db: sqlite3.Connection, context: tuple[Bound, Bound], named: set[tuple[str, str]]) -> set[Bound]:
    sql = "SELECT call_id FROM found_by WHERE session = ? AND agent = ? AND what = ? AND name = ?"
    return {row[0] for what, name in named for row in db.execute(sql, (*context, what, bind(name)))}
