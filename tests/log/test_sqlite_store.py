from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Omitted, Outcome, Reason, Session
from readcache.core.model.errors import StoreError, UsageError
from readcache.core.model.events import Compacted, Delivered, Failed, MappedSpan, Rewound
from readcache.log.store import open_store, sqlite_file
from readcache.log.store.protocol import MemoryStore
from readcache.log.store.sqlite import SqliteStore
from readcache.log.store.sqlite_file import VERSION
from tests.helpers import colliding, strategies
from tests.helpers.files import TEXT, WATCHDOG, text

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(path)
    yield opened
    opened.close()


def shows(call_id: str, path: str = "/r/a", text: str = "x\n") -> Delivered:
    return Delivered(call_id, text, f"cat {path}", source_map=(MappedSpan((path,), 0, 1, 1),))


def call_ids(store: SqliteStore) -> list[str]:
    return [record.event.call_id for record in store.records("s")]  # type: ignore[union-attr]


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


# ------------------------------------------------------------ the file


def test_the_file_and_its_directory_are_for_their_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        SqliteStore(tmp_path / "state" / "store.db").append("s", "a", [shows("c")], 1.0)
    finally:
        os.umask(old)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [tmp_path / "state", *(tmp_path / "state").iterdir()]}
    assert modes.pop("state") == 0o700
    assert set(modes.values()) == {0o600}
    assert "store.db" in modes


def test_a_file_of_ours_that_others_may_read_is_taken_from_them(path: Path) -> None:
    with closing(SqliteStore(path)) as first:
        first.append("s", "a", [shows("c1")], 1.0)
        files = list(path.parent.iterdir())
        assert len(files) > 1
        for file in files:
            file.chmod(0o666)
        with closing(SqliteStore(path)) as again:
            assert call_ids(again) == ["c1"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become two users")
@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal", None])
def test_a_file_that_another_user_can_write_is_refused(tmp_path: Path, ending: str | None) -> None:
    """None: the directory is theirs."""
    for directory in (tmp_path, *list(tmp_path.parents)[:-2]):
        directory.chmod(directory.stat().st_mode | 0o011)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    planted = shared if ending is None else shared / f"store.db{ending}"
    if ending is not None:
        planted.write_bytes(b"")
        planted.chmod(0o666)
    os.chown(planted, 4321, 4321)
    program = """
        import os, sys
        import readcache.log.store.sqlite as sqlite
        os.setuid(1234)
        try:
            sqlite.SqliteStore(sys.argv[1])
        except sqlite.StoreError as error:
            print(error)
    """
    out, _ = start(program, shared / "store.db").communicate()
    assert f"{planted} belongs to another user (4321): use another store" in out


def bytes_on_disk(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


@pytest.mark.parametrize("size", [1, 12, 400, 20_000])
def test_what_a_harness_took_out_before_anybody_saw_it_is_not_on_the_disk(path: Path, size: int) -> None:
    with Session("/w", session_id="s", store=path) as session:
        for number in range(30):
            session.observe(f"cat f{number}", f"harmless {number}\n" * 3 * number, call_id=f"f{number}")
            session.observe(f"cat e{number}", f"KEY={number} hunter2\n" * size, call_id=f"e{number}")
        assert b"hunter2" in bytes_on_disk(path)
        for number in range(30):
            session.settle(f"e{number}", "[REDACTED]")
        assert b"hunter2" not in bytes_on_disk(path)
    assert b"hunter2" not in bytes_on_disk(path)
    with Session("/w", session_id="s", store=path) as session:
        assert session.view.of_call("e3")[0].event.text == "[REDACTED]"
        assert session.stats()["shown_chars"] > 400
        assert session.observe("cat f29", "harmless 29\n" * 3 * 29).outcome is Outcome.UNCHANGED


def test_what_another_call_still_shows_stays(path: Path) -> None:
    with Session("/w", session_id="s", store=path) as session:
        session.observe("cat f", TEXT, call_id="c1")
        session.fork("other").observe("cat f", TEXT, call_id="c2")
        session.settle("c1", "")
        session.settle("c1", "")
    with Session("/w", session_id="s", agent_id="other", store=path) as session:
        assert session.observe("cat f", TEXT).outcome is Outcome.UNCHANGED


def test_the_lines_that_were_left_are_a_source_for_the_next_process(path: Path) -> None:
    lines = TEXT.splitlines(keepends=True)
    with Session("/w", session_id="s", store=path) as session:
        session.observe("cat f", TEXT, call_id="c1")
        session.settle("c1", "".join(lines[:40]) + "[cut]\n")
        live = session.view.covers("/w/f", 1, 40), session.view.covers("/w/f", 1, 41)
    with Session("/w", session_id="s", store=path) as session:
        assert live == (True, False)
        assert (session.view.covers("/w/f", 1, 40), session.view.covers("/w/f", 1, 41)) == live
        assert session.observe("head -40 f", "".join(lines[:40])).outcome is Outcome.UNCHANGED
        assert session.observe("sed -n 41,60p f", "".join(lines[40:])).text == "".join(lines[40:])


def test_what_can_never_be_a_source_takes_no_room(path: Path) -> None:
    with Session("/w", session_id="s", store=path) as session:
        for number in range(3):
            large, binary = "".join(f"{number} {n}\n" for n in range(1_200_000)), f"\0{number}" * 500_000
            assert session.observe("cat large", large).reason is Reason.TOO_LARGE
            assert session.observe("cat binary", binary).reason is Reason.BINARY
            shown = session.stats()["shown_chars"]
    assert shown > 3 * 8_000_000
    assert len(bytes_on_disk(path)) < 500_000


def test_what_was_written_is_there_for_the_next_process(path: Path) -> None:
    first = SqliteStore(path)
    seq = first.append("s", "a", [shows("c1")], 1.0)
    first.close()
    again = SqliteStore(path)
    assert call_ids(again) == ["c1"]
    assert again.append("s", "a", [shows("c2")], 2.0) > seq
    again.close()


def test_equal_texts_are_stored_once(path: Path, store: SqliteStore) -> None:
    store.append("s", "a", [shows(f"c{n}", text="long text\n" * 500) for n in range(100)], 1.0)
    store.close()
    assert path.stat().st_size < 150_000


def test_of_texts_with_one_digest_each_is_stored_once(path: Path, store: SqliteStore) -> None:
    texts = [colliding.ONE, colliding.OTHER] * 3
    store.append("s", "a", [shows(f"c{n}", text=text) for n, text in enumerate(texts)], 1.0)
    with closing(sqlite3.connect(path)) as db:
        assert sorted(text for (text,) in db.execute("SELECT text FROM blobs")) == sorted(texts[:2])


def test_a_file_that_goes_back_and_forth_between_texts_of_one_digest_is_no_source_for_the_other(path: Path) -> None:
    for number, version in enumerate((colliding.ONE, colliding.OTHER, colliding.ONE)):
        with Session("/w", session_id="s", store=path) as session:
            reply = session.observe("cat settings.conf", version, call_id=f"c{number}")
            sources = {source for part in reply.segments if isinstance(part, Omitted) for source in part.sources}
    assert sources <= {"c0"}  # c1 showed the other text


@given(text=strategies.texts(), name=strategies.texts())
def test_a_look_up_by_any_name_works(store: SqliteStore, text: str, name: str) -> None:
    store.append(name, name, [shows(name, name, text), shows("other", "/elsewhere"), shows("newest", "/")], 1.0)
    found = [record.event for record in store.records_about(name, name, [name], [])]
    assert shows(name, name, text) in found


# ------------------------------------------------------------ what is wrong is said


def refused(path: Path | str, *words: str) -> None:
    with pytest.raises(StoreError) as caught:
        SqliteStore(path)
    assert all(word in str(caught.value) for word in (str(path), *words)), str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "is not a file")


def test_a_place_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file" / "store.db", "cannot open")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_place_that_cannot_be_written_is_refused() -> None:
    refused("/proc/self/store.db", "cannot open", "name another file")


def test_a_dangling_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "store.db")
    refused(tmp_path / "link", "No such file")


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_text("dear diary, " * 1000)
    refused(path, "not a database", "move it away")
    assert path.read_text() == "dear diary, " * 1000


def test_the_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE diary (day)")
    before = path.read_bytes()
    refused(path, "another program")
    assert path.read_bytes() == before


def test_a_store_that_another_process_makes_meanwhile_is_no_other_programs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")  # as far as another process has come; then it makes the tables
    plain_connect = sqlite3.connect
    made: list[bool] = []

    def another_is_first(statement: str) -> None:
        if "sqlite_master" in statement and not made:
            made.append(True)
            SqliteStore(path).close()

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = plain_connect(*arguments, **options)
        if not made:
            db.set_trace_callback(another_is_first)
        return db

    monkeypatch.setattr(sqlite3, "connect", connect)
    store = SqliteStore(path)
    assert made
    store.append("s", "a", [shows("1")], 1.0)
    assert call_ids(store) == ["1"]
    store.close()


@pytest.mark.parametrize(("version", "todo"), [(VERSION + 1, "upgrade"), (VERSION - 1, "move it away")])
def test_a_file_of_another_version_is_refused(path: Path, store: SqliteStore, version: int, todo: str) -> None:
    store.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"PRAGMA user_version = {version}")
    refused(path, f"schema version {version}", todo)


def damage(path: Path, start: int) -> None:
    """Writes over all pages of the file from `start` on."""
    with path.open("r+b") as file:
        for at in range(start, path.stat().st_size, 4096):
            file.seek(at)
            file.write(b"\xff" * 4000)


def set_aside(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.damaged-*[0-9]"))


def test_a_damaged_file_is_set_aside_and_the_next_to_open_the_store_makes_a_new_one(
    path: Path, store: SqliteStore
) -> None:
    store.append("s", "a", [shows(f"c{n}", text=f"{n}\n" * 900) for n in range(50)], 1.0)
    store.close()
    damage(path, 4096 * 2)
    before = path.read_bytes()
    again = SqliteStore(path)
    with pytest.raises(StoreError, match=r"malformed.*set aside as .*shown again"):
        again.records("s", "a")
    with pytest.raises(StoreError):
        again.append("s", "a", [shows("c")], 1.0)
    again.close()
    (aside,) = set_aside(path)
    assert aside.read_bytes() == before
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    with closing(SqliteStore(path)) as new:
        assert new.sessions() == []


@pytest.mark.parametrize("start", [0, 4096, 8192], ids=["header", "tables", "rest"])
def test_a_session_goes_on_when_its_store_is_damaged_and_nothing_of_before_counts(tmp_path: Path, start: int) -> None:
    path = tmp_path / "readcache.db"
    files = {f"f{n}": text(of=f"f{n}") for n in range(40)}
    with Session("/w", session_id="s", store=path) as first:
        for name, content in files.items():
            first.observe(f"cat {name}", content)
    with Session("/w", session_id="s", store=path) as session, Session("/w", session_id="s", store=path) as other:
        assert session.observe("cat f0", files["f0"]).outcome is Outcome.UNCHANGED
        for reader in (session, other):
            reader.observe("cat f39", files["f39"])
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        damage(path, start)
        for name in ("f1", "f2", "f3"):
            for reader in (session, other):
                reader.observe(f"cat {name}", files[name])
        assert set_aside(path)
        with Session("/w", session_id="s", store=path) as third:  # told to the new store, which both read now
            third.compacted()
        for name in ("f0", "f3", "f39"):
            for reader in (session, other):
                assert reader.observe(f"cat {name}", files[name], call_id=f"{id(reader)} {name}").text == files[name]
                reader.compacted()
    with Session("/w", session_id="s", store=path) as later:
        assert any("damaged" in record.event.detail for record in later.events() if isinstance(record.event, Failed))


def test_a_damaged_schema_that_is_not_even_text_is_set_aside(path: Path, store: SqliteStore) -> None:
    store.append("s", "a", [shows("c")], 1.0)
    store.close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE events", b"CREATE TA\x84LE events"))
    with Session("/w", session_id="s", store=path) as session:
        assert session.observe("cat f", TEXT).text == TEXT
        assert set_aside(path)
        assert session.observe("cat f", TEXT).outcome is Outcome.UNCHANGED


def test_a_damaged_file_that_may_be_somebody_elses_is_left_alone(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)
    refused(path, "not a database")
    assert path.read_bytes().endswith(b"\xff" * 8000)
    assert not set_aside(path)


HARM = {  # done to the second of three calls
    "of a newer version": ("UPDATE events SET kind = 'teleported' WHERE call_id = 'c2'", "teleported"),
    "with a newer field": ("UPDATE events SET body = replace(body, 'label', 'l') WHERE call_id = 'c2'", "'l'"),
    "that is no JSON": ("UPDATE events SET body = '{' WHERE call_id = 'c2'", "damaged"),
    "without its text": ("DELETE FROM blobs WHERE text LIKE 'second%'", "is missing"),
}


@pytest.mark.parametrize("harm", HARM)
def test_an_event_that_cannot_be_read_takes_what_was_before_it_out_of_view_and_no_more(path: Path, harm: str) -> None:
    sql, says = HARM[harm]
    with Session("/w", session_id="s", store=path) as session:
        for number, name in enumerate(("first", "second", "third"), 1):
            session.observe(f"cat {name}", text(of=name), call_id=f"c{number}")
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(sql).rowcount == 1
    with Session("/w", session_id="s", store=path) as session:
        (failed,) = [record.event for record in session.events() if isinstance(record.event, Failed)]
        assert says in failed.detail
        assert session.stats()["store_failed"] == 1
        for name in ("first", "second"):
            assert session.observe(f"cat {name}", text(of=name)).text == text(of=name)
        for name in ("third", "first"):
            assert session.observe(f"cat {name}", text(of=name)).outcome is Outcome.UNCHANGED


def test_a_store_that_was_taken_away_meanwhile_is_made_anew_and_nothing_of_it_counts(path: Path) -> None:
    with Session("/w", session_id="s", store=path) as session:
        child = session.fork("child")
        for reader in (session, child):
            reader.observe("cat f", TEXT)
        for file in list(path.parent.iterdir()):
            file.unlink()
        with Session("/w", session_id="s", store=path) as other:
            other.compacted()
        assert [child.observe("cat f", TEXT).text for _ in range(3)] == [TEXT] * 3  # it was handed the old one
        assert session.observe("cat f", TEXT).text == TEXT  # of an empty one
        assert session.observe("cat f", TEXT).outcome is Outcome.UNCHANGED
        with Session("/w", session_id="s", store=path) as other:
            other.compacted()
        assert session.observe("cat f", TEXT).text == TEXT


def test_an_event_with_a_value_of_a_wrong_type_is_refused_or_survived(path: Path) -> None:
    odd: list[Any] = [Compacted(frozenset({1, "a"})), Rewound(7), Failed("c", "x", b"y"), shows(None)]  # type: ignore[arg-type]
    for event in odd:
        with Session("/w", session_id="s", store=path) as session:
            session.observe("cat f", TEXT)
            session.reader.tell("", lambda _, event=event: [event])  # type: ignore[misc]
            later = [session.observe("cat g", text(of="other")).outcome for _ in range(4)]
            assert Outcome.UNCHANGED in later
            if not isinstance(event, Failed | Delivered):
                assert session.observe("cat f", TEXT).text == TEXT
        with Session("/w", session_id="s", store=path) as session:
            assert session.stats()["calls"] > 0


def test_a_full_disk_is_a_store_error_and_what_was_there_stays(path: Path) -> None:
    program = """
        import resource, sys
        from readcache.core.model.errors import StoreError
        from readcache.core.model.events import Delivered
        from readcache.log.store.sqlite import SqliteStore
        store = SqliteStore(sys.argv[1])
        store.append("s", "a", [Delivered("kept", "text", "cat")], 1.0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        for n in range(3):
            try:
                with store.transaction():
                    store.append("s", "a", [Delivered("lost", "x" * 3_000_000, "cat")], 1.0)
                    store.append("s", "a", [Delivered("lost too", "", "cat")], 1.0)
            except StoreError as error:
                print(error)
        print([record.event.call_id for record in store.records("s", "a")])
    """
    process = start(program, path)
    out, err = process.communicate(timeout=WATCHDOG)
    assert err == ""
    *errors, kept = out.splitlines()
    assert len(errors) == 3
    assert all(f"cannot write to the store {path}" in line for line in errors)
    assert kept == "['kept']"


def test_a_store_that_stays_locked_is_a_store_error(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readcache.log.store.sqlite_file.BUSY_SECONDS", 0.05)
    other = SqliteStore(path)
    with store.transaction(), pytest.raises(StoreError, match="another process has kept it locked"):
        other.append("s", "a", [shows("c")], 1.0)
    other.append("s", "a", [shows("c")], 1.0)
    other.close()


@pytest.mark.slow
def test_a_lock_that_stays_is_waited_for_once(path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readcache.log.store.sqlite_file.BUSY_SECONDS", 0.5)
    other = SqliteStore(path)
    with store.transaction():
        for _ in range(3):
            with pytest.raises(StoreError):
                other.append("s", "a", [shows("c")], 1.0)
            assert sqlite_file.patience(str(path)) == sqlite_file.BRIEFLY
    monkeypatch.setattr("readcache.log.store.sqlite_file.BUSY_SECONDS", WATCHDOG)
    other.append("s", "a", [shows("c")], 1.0)
    assert sqlite_file.patience(str(path)) == WATCHDOG
    is_occupied = threading.Event()
    holder = threading.Thread(target=lambda: occupy(path, is_occupied, 0.5))
    holder.start()
    assert is_occupied.wait(WATCHDOG)
    other.append("s", "a", [shows("c")], 1.0)  # it has come through, and waits again
    holder.join()
    other.close()


@pytest.mark.slow
def test_a_store_that_cannot_be_opened_is_waited_for_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readcache.log.store.sqlite_file.BUSY_SECONDS", 0.5)
    SqliteStore(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert sqlite_file.patience(str(path)) == 0.5
        session = Session(path.parent, store=path)
        assert sqlite_file.patience(str(path)) == sqlite_file.BRIEFLY
        assert session.run("echo text").reason is Reason.STORE_FAILED
        assert session.fork("helper").observe("cat f", "text\n").text == "text\n"
        assert sqlite_file.patience(str(path)) == sqlite_file.BRIEFLY
    assert session.observe("cat f", "text\n").reason is not Reason.STORE_FAILED
    assert sqlite_file.patience(str(path)) == 0.5
    session.close()


def occupy(path: Path, is_occupied: threading.Event, seconds: float) -> None:
    with closing(SqliteStore(path)) as store, store.transaction():
        is_occupied.set()
        time.sleep(seconds)


# ------------------------------------------------------------ processes


def test_a_writer_killed_at_any_moment_leaves_a_prefix_of_its_events(
    path: Path, record_property: Callable[[str, object], None]
) -> None:
    program = """
        import sys
        from readcache.core.model.events import Delivered
        from readcache.log.store.sqlite import SqliteStore
        store = SqliteStore(sys.argv[1])
        for n in range(1_000_000):
            store.append("s", "a", [Delivered(f"{n}", f"{n}\\n" * 999, "cat"), Delivered(f"{n} too", "", "cat")], 1.0)
            print(n, flush=True)
    """
    moments, events = (1, 20, 100), 0
    for kill_after in moments:
        process = start(program, path.with_name(f"{kill_after}.db"))
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= kill_after:
                break
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[0].split()
        left = SqliteStore(path.with_name(f"{kill_after}.db"))
        found = call_ids(left)
        assert found == [name for n in range(len(found) // 2) for name in (f"{n}", f"{n} too")]
        assert len(found) // 2 > max(map(int, [str(kill_after), *said]))  # the last number may be cut short
        left.append("s", "a", [shows("after")], 1.0)
        assert call_ids(left)[-1] == "after"
        left.close()
        events += len(found)
    record_property("kills", len(moments))
    record_property("processes", len(moments))
    record_property("events", events)


def test_many_processes_judge_one_after_the_other(path: Path, record_property: Callable[[str, object], None]) -> None:
    """Two servers on one database locked each other out."""
    program = """
        import sys
        from readcache.core.model.events import Delivered
        from readcache.log.store import sqlite_file
        from readcache.log.store.sqlite import SqliteStore
        sqlite_file.BUSY_SECONDS = 100  # on a machine that is busy with other things
        sys.stdin.read()  # all at once
        store = SqliteStore(sys.argv[1])
        seen = last = 0
        for _ in range(50):
            with store.transaction():
                for record in store.records("s", "a", after=last):
                    assert record.seq > last
                    seen, last = seen + 1, record.seq
                store.append("s", "a", [Delivered(str(seen), f"{seen}", "cat")], 1.0)
    """
    reader, writer = os.pipe()
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    crowd = [subprocess.Popen(command, stdin=reader, stderr=subprocess.PIPE, text=True, env=env) for _ in range(8)]
    os.close(reader)
    os.close(writer)
    assert [process.communicate(timeout=WATCHDOG)[1] for process in crowd] == [""] * 8
    store = SqliteStore(path)
    records = store.records("s", "a")
    assert call_ids(store) == [str(n) for n in range(400)]
    assert [record.seq for record in records] == list(range(1, 401))
    store.close()
    record_property("processes", len(crowd))
    record_property("events", len(records))


def in_child(work: object) -> int:
    """Runs `work` in a forked child; 0 when it went well."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()  # type: ignore[operator]
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_child_writes_through_a_connection_of_its_own(store: SqliteStore) -> None:
    store.append("s", "a", [shows("before")], 1.0)
    assert in_child(lambda: store.append("s", "a", [shows("child")], 1.0)) == 0
    store.append("s", "a", [shows("parent")], 1.0)
    assert call_ids(store) == ["before", "child", "parent"]


def test_nothing_that_a_child_writes_is_lost_when_its_parent_closes(path: Path, store: SqliteStore) -> None:
    store.append("s", "a", [shows("before")], 1.0)
    closed, tell = os.pipe()

    pid = os.fork()
    if pid == 0:
        try:
            store.append("s", "a", [shows("child 1")], 1.0)
            os.write(tell, b"1")
            os.close(tell)
            while not path.with_name("closed").exists():
                pass
            store.append("s", "a", [shows("child 2")], 1.0)
        finally:
            os._exit(0)
    os.read(closed, 1)
    store.append("s", "a", [shows("parent")], 1.0)
    store.close()
    path.with_name("closed").touch()
    os.waitpid(pid, 0)
    os.close(closed)
    os.close(tell)
    again = SqliteStore(path)
    assert call_ids(again) == ["before", "child 1", "parent", "child 2"]
    again.close()


def test_a_child_forked_while_its_parent_writes_is_told_so_and_harms_nothing(store: SqliteStore) -> None:
    def use() -> None:
        with pytest.raises(StoreError, match="forked"):
            store.append("s", "a", [shows("child")], 1.0)

    with store.transaction():
        store.append("s", "a", [shows("c1")], 1.0)
        assert in_child(use) == 0
        store.append("s", "a", [shows("c2")], 1.0)
    assert call_ids(store) == ["c1", "c2"]


def test_a_fork_waits_for_the_other_threads_to_finish_writing(store: SqliteStore) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            store.append("s", "a", [shows("thread")], 1.0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert [in_child(lambda: store.append("s", "a", [shows("child")], 1.0)) for _ in range(5)] == [0] * 5
    finally:
        stop.set()
        thread.join()
    assert call_ids(store).count("child") == 5


# ------------------------------------------------------------ projections


def projections(path: Path) -> list[list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as db, db:
        return [sorted(db.execute(f"SELECT * FROM {table}"), key=repr) for table in ("contexts", "found_by")]


@given(log=st.lists(strategies.events(), max_size=8))
def test_the_projections_can_be_made_again_from_the_events(log: list[Delivered]) -> None:
    with (
        TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder, "log.db"))) as store,
        closing(SqliteStore(Path(folder, "copy.db"))) as other,
    ):
        store.append("s", "a", log, 1.0)
        store.append("s", "b", [shows("c1"), shows("c2"), Compacted(frozenset({"c2"})), Rewound("c2")], 1.0)
        for record in store.records("s"):
            other.append("s", record.agent_id, [record.event], record.at)
        assert found(other) == found(store)
        assert [context[:2] for context in other.sessions()] == [context[:2] for context in store.sessions()]


def found(store: SqliteStore) -> list[str]:
    records = store.records_about("s", "a", ["/r/a"], [])
    return [record.event.call_id for record in records if isinstance(record.event, Delivered)]


def test_a_look_up_leaves_out_what_a_compaction_took_away(store: SqliteStore) -> None:
    store.append("s", "a", [shows(f"c{n}") for n in range(100)], 1.0)
    store.append("s", "a", [Compacted(frozenset({"c7"})), shows("new")], 2.0)
    assert found(store) == ["c7", "new"]
    store.append("s", "a", [Compacted(frozenset()), shows("newer")], 3.0)
    assert found(store) == ["newer"]
    store.append("s", "b", [Compacted(frozenset())], 4.0)
    assert found(store) == ["newer"]


def test_a_look_up_leaves_out_what_a_rewind_took_away(store: SqliteStore) -> None:
    store.append("s", "a", [shows(f"c{n}") for n in range(100)], 1.0)
    store.append("s", "a", [Rewound("c7"), shows("new")], 2.0)
    assert found(store) == [*(f"c{n}" for n in range(8)), "new"]
    store.append("s", "a", [Rewound("never heard of"), shows("newer")], 3.0)
    assert found(store) == ["c7", "newer"]  # c7 was rewound to: the fold needs its place


# ------------------------------------------------------------ naming a store


def test_no_name_is_a_store_in_memory() -> None:
    assert isinstance(open_store(None), MemoryStore)


@pytest.mark.parametrize("prefix", ["", "sqlite:///"])
def test_a_path_or_its_url_names_a_file(path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_store(f"{prefix}{path}")
    opened.append("s", "a", [shows("c")], 1.0)
    opened.close()
    monkeypatch.chdir(path.parent)
    same = open_store(f"{prefix}{path.name}")
    assert list(same.sessions()) == [("s", "a", 1, 1.0)]
    same.close()
    open_store(path).close()


def test_a_home_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_store("~/x/store.db").close()
    assert (tmp_path / "x" / "store.db").exists()


@pytest.mark.parametrize("spec", ["mysql://host/db", "sqlite://host", "file:///x.db", "", "sqlite:///", "a\0b"])
def test_a_store_that_is_not_known_is_a_usage_error_that_names_the_known_ones(spec: str) -> None:
    with pytest.raises(UsageError, match="sqlite:///PATH"):
        open_store(spec)


def test_importing_the_stores_does_not_import_sqlite3() -> None:
    process = start("import readcache.log.store, readcache.log.store.protocol, sys; print('sqlite3' in sys.modules)")
    assert process.communicate()[0] == "False\n"
