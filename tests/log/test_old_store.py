"""A store that an earlier commit wrote is read, and what it held counts on."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from readcache import Session
from readcache.log.store.codec import KINDS, encode
from readcache.log.store.sqlite import SqliteStore

RELEASED = Path(__file__).parent / "data/store-1351b17.sql"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def released(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(RELEASED.read_text(encoding="utf-8"))
    return path


def test_every_stored_kind_is_read_and_written_again_as_it_is(released: Path) -> None:
    with closing(sqlite3.connect(released)) as db:
        stored = db.execute(
            "SELECT agent, kind, body, text FROM events LEFT JOIN blobs ON name = blob ORDER BY seq"
        ).fetchall()
    assert {kind for _, kind, _, _ in stored} == KINDS.keys() - {"missed", "cleared", "condensed"}  # newer kinds
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
