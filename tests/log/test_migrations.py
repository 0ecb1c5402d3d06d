"""A store of an older version is brought up to this one, and what it held counts on."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from readcache import Reason, Session
from readcache.log.store.codec import KINDS, encode
from readcache.log.store.migrations import MIGRATIONS
from readcache.log.store.sqlite import SqliteStore
from readcache.model.events import Account, Delivered, Moment, Piece
from readcache.model.reply import Outcome
from readcache.model.text import digest
from tests.helpers.files import text

TEXT = text()
RELEASED = Path(__file__).parent / "data/store-a82a1aa.sql"


def version_1(path: Path, *bodies: dict[str, object]) -> None:
    """A file as version 1 wrote it: the bodies of deliveries were flat."""
    with closing(sqlite3.connect(path)) as db, db:
        for statement in MIGRATIONS[0]:
            assert isinstance(statement, str)
            db.execute(statement)
        db.execute("PRAGMA user_version = 1")
        name = f"{digest(TEXT)}-{len(TEXT):x}"
        db.execute("INSERT INTO blobs VALUES (?, ?)", (name, TEXT))
        for body in bodies:
            row = ("s", "main", 1.0, "delivered", body["call_id"], json.dumps(body), name)
            sql = "INSERT INTO events (session, agent, at, kind, call_id, body, blob) VALUES (?, ?, ?, ?, ?, ?, ?)"
            db.execute(sql, row)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


SHOWN: dict[str, object] = {
    "call_id": "c1",
    "label": "cat f",
    "request": "r",
    "pieces": [{"keys": ["/w/f"], "at": 0, "count": 60, "first": 1, "eof": True}],
    "output_chars": len(TEXT),
    "call": 1,
    "tokens_so_far": 9,
    "batch": "b",
}


def test_a_delivery_of_version_1_is_read_as_it_was(path: Path) -> None:
    version_1(path, SHOWN)
    with closing(SqliteStore(path)) as store:
        (record,) = store.records("s", "main")
    assert record.event == Delivered(
        "c1",
        TEXT,
        "cat f",
        pieces=(Piece(("/w/f",), 0, 60, 1, eof=True),),
        when=Moment(1, 9, "b"),
        account=Account("r", Outcome.FULL, Reason.NOT_SEEN, len(TEXT), 0),
    )


def test_what_was_never_credited_is_not_credited_now(path: Path) -> None:
    version_1(path, {"call_id": "c1", "label": "submit", "request": "r", "reason": "never", "call": 1})
    with closing(SqliteStore(path)) as store:
        (record,) = store.records("s", "main")
    assert isinstance(record.event, Delivered)
    assert not record.event.credited


def test_a_session_of_version_1_goes_on(path: Path) -> None:
    version_1(path, SHOWN)
    with Session("/w", session_id="s", store=path) as session:
        assert session.view.covers("/w/f", 1, 60)
        assert session.observe("cat f", TEXT).text == TEXT, "nobody knows whether it was delivered before"
        assert session.observe("sed -n '1,60p' f", TEXT).reason is Reason.COVERED


def test_the_version_is_this_ones_afterwards(path: Path) -> None:
    version_1(path, SHOWN)
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_renderings_of_a_file_are_lines_of_nothing_any_more(path: Path) -> None:
    rendering = {"keys": ["/w/f\0cat -A"], "at": 0, "count": 60, "first": 1}
    version_1(path, {**SHOWN, "pieces": [rendering]})
    with Session("/w", session_id="s", store=path) as session:
        assert session.view.known_keys() == []
        assert session.view.is_visible("c1")


# ------------------------------------------------------------ a store of the version before event kinds had names


@pytest.fixture
def released(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(RELEASED.read_text(encoding="utf-8"))
    return path


def test_every_stored_kind_is_read_and_written_again_as_it_is(released: Path) -> None:
    with closing(sqlite3.connect(released)) as db:
        stored = db.execute(
            "SELECT agent, kind, body, text FROM events LEFT JOIN blobs ON name = blob"
            " WHERE agent != 'main:history' ORDER BY seq"  # a compactor's list, which is kept in another form now
        ).fetchall()
    assert {kind for _, kind, _, _ in stored} == KINDS.keys() - {"listed"}
    with closing(SqliteStore(released)) as store:
        records = {record.seq: record for agent, *_ in stored for record in store.records("s", agent)}
    for (_, kind, body, text_of), (_, record) in zip(stored, sorted(records.items()), strict=True):
        assert encode(record.event) == (kind, json.loads(body), text_of)


def test_a_session_goes_on_in_it(released: Path) -> None:
    with Session("/w", session_id="s", store=released) as session:
        assert session.view.covers("/w/f", 1, 20)
        assert not session.view.covers("/w/h", 1, 4)
        (delivery,) = session.view.of_call("c1")
        again = session.observe("tail -n +1 f", delivery.event.text, call_id="c8")
        assert [omitted.sources for omitted, _, _ in again.omissions()] == [("c1",)]
