"""The Redis store, on a real server: what every store does, and what a server makes possible."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from readcache import Omitted, Outcome, Session
from readcache.core.model.errors import StoreError, UsageError
from readcache.core.model.events import Amended, Compacted, Delivered, Failed, MappedSpan
from readcache.log.store import StoreGone, open_store, redis, redis_server
from readcache.log.store.redis import RedisStore
from tests.helpers import colliding
from tests.helpers.files import WATCHDOG, text
from tests.helpers.one_call import one_call_session
from tests.helpers.redis_server import Server
from tests.log.test_store_conformance import StoreConformance, StoreFactory

ROOT = Path(__file__).resolve().parents[2]
FILE = text(of="f") * 8
LENGTHS = itertools.count(80)
PREFIXES = (f"p{n}" for n in itertools.count())


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    running = Server("--appendonly", "no")
    yield running
    running.close()


@pytest.fixture
def own() -> Iterator[Server]:
    """A server to be killed."""
    running = Server()
    yield running
    running.close()


@pytest.fixture
def url(shared: Server) -> str:
    return f"{shared.url}&prefix={next(PREFIXES)}"


@pytest.fixture
def store(url: str) -> Iterator[RedisStore]:
    opened = RedisStore(url)
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "DEADLINE", 60.0)  # the machine may be busy


class TestRedisStore(StoreConformance):
    @pytest.fixture
    def store_factory(self, shared: Server) -> StoreFactory:
        url = f"{shared.url}&prefix={next(PREFIXES)}"
        return lambda: RedisStore(url)


def shows(call_id: str, text: str = "x\n") -> Delivered:
    return Delivered(call_id, text, "cat /r/a", source_map=(MappedSpan(("/r/a",), 0, 1, 1),))


def client(server: Server) -> Any:
    import redis

    return redis.Redis.from_url(server.url)


def stored_bytes(server: Server, url: str) -> bytes:
    """Everything that the server holds under the URL's prefix."""
    out = b""
    with client(server) as asked:
        for key in asked.keys(f"*{url.rpartition('prefix=')[2]}*"):
            if asked.type(key) == b"hash":
                out += b"\n".join(itertools.chain(*asked.hgetall(key).items()))
    return out


def omits(session: Session) -> bool:
    """Another request for a part of the file each time: who asks the same again is served."""
    lines = next(LENGTHS)
    printed = "".join(FILE.splitlines(True)[:lines])
    reply = session.observe(f"head -n {lines} f", printed)
    assert reply.full_text == printed
    return reply.outcome is not Outcome.FULL


# ------------------------------------------------------------ what stands on the server


def test_a_session_is_one_hash_that_ends_when_it_is_not_used(shared: Server, url: str) -> None:
    store = RedisStore(f"{url}&expire=2")
    store.append("s {}", "a", [shows("c1")], 1.0)
    prefix = url.rpartition("prefix=")[2]
    with client(shared) as asked:
        keys = asked.keys(f"{prefix}:*")
        (key,) = (key for key in keys if key != f"{prefix}:sessions".encode())
        assert key == f"{prefix}:{{s:s%20%7B%7D}}".encode()
        assert 86_400 < asked.ttl(key) <= 2 * 86_400
        asked.expire(key, 10)
        store.append("s {}", "a", [shows("c2")], 1.0)
        assert asked.ttl(key) > 86_400


def test_long_texts_are_compressed(shared: Server, url: str, store: RedisStore) -> None:
    before = "".join(f"line {n} of a file\n" for n in range(500))
    store.append("s", "a", [shows("c1", before)], 1.0)
    assert len(stored_bytes(shared, url)) < len(before) / 3
    assert [r.event.text for r in store.records("s")] == [before]  # type: ignore[union-attr]


def test_what_a_harness_took_out_before_anybody_saw_it_is_not_on_the_server(shared: Server, url: str) -> None:
    with Session("/w", session_id="s", store=url) as session:
        session.observe("cat f", FILE + "the secret\n", call_id="c1")
        session.observe("cat g", "it\n", call_id="c2")
        session.settle("c1", FILE)
        session.settle("c2", "")
        assert omits(session)
    stored = stored_bytes(shared, url)
    assert b"secret" not in stored
    with RedisStoreOpened(url) as store:
        assert "secret" not in repr(list(store.records("s")))
        texts = [line for line in stored.split(b"\n") if line.startswith(b"t")]
        assert len(texts) == len({r.event.text for r in store.records("s") if getattr(r.event, "text", "")})  # type: ignore[union-attr]


def test_what_another_call_still_shows_stays(store: RedisStore) -> None:
    store.append("s", "a", [shows("c1"), shows("c2"), shows("c3")], 1.0)
    for call in ("c1", "c2"):
        store.append("s", "a", [Amended(call, "", erases=True)], 2.0)
    found = {r.event.call_id: r.event.text for r in store.records("s") if isinstance(r.event, Delivered)}
    assert found == {"c1": "", "c2": "", "c3": "x\n"}


def test_of_texts_with_one_digest_the_right_one_is_erased(store: RedisStore) -> None:
    store.append("s", "a", [shows("c1", colliding.ONE), shows("c2", colliding.OTHER)], 1.0)
    store.append("s", "a", [Amended("c2", "", erases=True)], 2.0)
    store.append("s", "a", [shows("c3", colliding.OTHER)], 3.0)
    found = [r.event.text for r in store.records("s") if isinstance(r.event, Delivered)]
    assert found == [colliding.ONE, "", colliding.OTHER]


def test_an_erased_event_is_erased_for_those_who_read_within_the_transaction(store: RedisStore) -> None:
    store.append("s", "a", [shows("c1")], 1.0)
    with store.transaction():
        store.append(
            "s", "a", [shows("c2", "y\n"), Amended("c1", "", erases=True), Amended("c2", "", erases=True)], 2.0
        )
        assert not [r for r in store.records("s") if getattr(r.event, "text", "")]
    assert not [r for r in store.records("s") if getattr(r.event, "text", "")]


# ------------------------------------------------------------ several writers


def test_what_was_decided_on_an_old_view_is_not_written(url: str, shared: Server) -> None:
    slow, other = RedisStore(url), RedisStore(url)
    slow.append("s", "a", [shows("c1")], 1.0)
    with pytest.raises(StoreError, match="changed by another process"), slow.transaction():  # noqa: PT012
        assert len(list(slow.records("s", "a"))) == 1
        with client(shared) as asked:
            asked.delete(*asked.keys("*:lock"))  # its time is over
        other.append("s", "a", [Compacted(frozenset())], 2.0)
        slow.append("s", "a", [shows("c2")], 3.0)
    assert [type(r.event) for r in other.records("s")] == [Delivered, Compacted]


def test_what_was_read_before_another_server_took_over_is_not_written(shared: Server, url: str) -> None:
    store = RedisStore(url)
    store.append("s", "a", [shows("c1")], 1.0)
    with pytest.raises(StoreError, match="nothing was written"), store.transaction():  # noqa: PT012
        store.append("s", "a", [shows("c2")], 1.0)
        with client(shared) as asked:
            asked.hset(asked.keys(f"{url.rpartition('prefix=')[2]}:{{*}}")[0], "home", "another")
    assert [type(r.event) for r in store.records("s")] == [Delivered, Failed, Compacted]


def test_a_step_whose_answer_is_lost_is_asked_again_and_done_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import redis

    evalsha, lost = redis.Redis.evalsha, iter([False, True])

    def losing(self: Any, *words: Any) -> Any:
        answer = evalsha(self, *words)
        if next(lost, False):
            raise redis.ConnectionError("cut off")
        return answer

    store = RedisStore(url)
    store.append("s", "a", [shows("c0")], 1.0)
    monkeypatch.setattr(redis.Redis, "evalsha", losing)
    store.append("s", "a", [shows("c1"), shows("c2")], 1.0)
    store.append("s", "a", [shows("c3")], 1.0)
    assert [r.event.call_id for r in store.records("s")] == ["c0", "c1", "c2", "c3"]  # type: ignore[union-attr]


def test_a_writer_waits_for_another_of_its_session_and_for_nobody_else(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis, "LEASE", 60.0)
    monkeypatch.setattr(redis, "WAIT_SECONDS", 60.0)
    one, two = RedisStore(url), RedisStore(url)
    with one.transaction():
        one.append("s", "a", [shows("c1")], 1.0)
        began = time.monotonic()
        two.append("t", "a", [shows("c1")], 1.0)
        assert list(two.records("s")) == []
        assert time.monotonic() - began < 30


@pytest.mark.slow
def test_a_writer_that_was_killed_keeps_the_others_waiting_for_two_seconds(
    shared: Server, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis, "WAIT_SECONDS", 60.0)
    program = """
        import os, sys
        from readcache.log.store.redis import RedisStore
        store = RedisStore(sys.argv[1])
        with store.transaction():
            store.records("s", "a")
            os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program), url], cwd=ROOT, check=False)
    with client(shared) as asked:
        left = [asked.pttl(lock) for lock in asked.keys(f"{url.rpartition('prefix=')[2]}:{{*:lock")]
    assert all(-1 < milliseconds <= 2000 or milliseconds == -2 for milliseconds in left), "-1 is for ever, -2 is over"
    RedisStore(url).append("s", "a", [shows("c1")], 1.0)


def test_a_transaction_writes_one_session(store: RedisStore) -> None:
    with pytest.raises(StoreError, match="one session"), store.transaction():  # noqa: PT012
        store.append("s", "a", [shows("c1")], 1.0)
        store.append("t", "a", [shows("c1")], 1.0)
    assert list(store.sessions()) == []


def test_a_forked_child_writes_by_itself_and_one_forked_amid_a_transaction_is_told_so(store: RedisStore) -> None:
    def in_child(use: str) -> int:
        child = os.fork()
        if child == 0:
            with contextlib.suppress(StoreError):
                store.append("s", "a", [shows(use)], 1.0)
                os._exit(0)
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    store.append("s", "a", [shows("c1")], 1.0)
    assert in_child("c2") == 0
    with store.transaction():
        store.append("s", "a", [shows("c3")], 1.0)
        assert in_child("c4") == 7
    assert [r.event.call_id for r in store.records("s")] == ["c1", "c2", "c3"]  # type: ignore[union-attr]


# ------------------------------------------------------------ a server that loses, hangs and ends


def test_after_a_restart_nothing_counts_as_visible_for_anybody_and_sessions_go_on(own: Server) -> None:
    with Session("/w", session_id="s", store=own.url) as session, session.fork("child") as child:
        for reader in (session, child):
            assert [omits(reader), omits(reader)] == [False, True]
        own.kill()
        assert not omits(session)
        own.start()
        assert [omits(session), omits(session)] == [False, True]
        with Session("/w", session_id="s", agent_id=child.agent_id, store=own.url) as other:
            assert not omits(other)
        causes = [r.event.cause for r in session.events() if isinstance(r.event, Failed)]
        assert "store_failed" in causes


def test_a_compaction_that_a_server_took_and_lost_is_no_reason_to_leave_anything_out() -> None:
    lossy = Server("--appendonly", "no")
    try:
        with Session("/w", session_id="s", store=lossy.url) as before:
            assert not omits(before)
        with Session("/w", session_id="s", store=lossy.url) as before, client(lossy) as asked:
            assert omits(before)
            before.close()
            asked.save()
        with Session("/w", session_id="s", store=lossy.url) as before:
            before.compacted()
        lossy.kill()
        lossy.start()
        with Session("/w", session_id="s", store=lossy.url) as after:
            assert not omits(after)
        with one_call_session(lossy.url) as after:
            assert omits(after)  # it was shown again
    finally:
        lossy.close()


@pytest.mark.slow
def test_a_compaction_that_a_replica_never_heard_of_is_no_reason_to_leave_anything_out() -> None:
    primary = Server(port=True)
    replica = Server("--replicaof", "127.0.0.1", str(primary.port), "--repl-diskless-sync-delay", "0")
    try:
        with client(replica) as asked:
            wait_until(lambda: asked.info("replication")["master_link_status"] == "up")
            with Session("/w", session_id="s", store=primary.url) as before:
                assert [omits(before), omits(before)] == [False, True]
            with client(primary) as first:
                assert first.wait(1, 20_000) == 1
            asked.replicaof("127.0.0.1", "1")  # cut off
            with Session("/w", session_id="s", store=primary.url) as before:
                before.compacted()
            primary.kill()
            asked.replicaof("NO", "ONE")
        with Session("/w", session_id="s", store=replica.url) as after:
            assert [omits(after), omits(after)] == [False, True]
    finally:
        primary.close()
        replica.close()


def wait_until(is_so: Any) -> None:
    until = time.monotonic() + WATCHDOG
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("grows_again", [False, True])
def test_of_a_session_that_the_server_evicted_nothing_counts_as_visible(
    shared: Server, url: str, grows_again: bool
) -> None:
    with Session("/w", session_id="s", store=url) as session:
        assert [omits(session), omits(session)] == [False, True]
        with client(shared) as asked:
            asked.delete(*asked.keys(f"{url.rpartition('prefix=')[2]}:{{*"))
        if grows_again:
            with Session("/w", session_id="s", store=url) as other:
                for n in range(5):
                    other.observe(f"cat {n}", f"{n}\n")
        assert [omits(session), omits(session)] == [False, True]


def test_a_place_in_a_log_that_is_another_one_now_is_refused(shared: Server, url: str, store: RedisStore) -> None:
    last = store.append("s", "a", [shows("c1")], 1.0)
    assert list(store.records("s", "a", after=last)) == []
    with client(shared) as asked:
        asked.delete(*asked.keys(f"{url.rpartition('prefix=')[2]}:{{*"))
    store.append("s", "a", [shows("c1")], 1.0)
    with pytest.raises(StoreGone):
        store.records("s", "a", after=last)


@pytest.mark.parametrize("harm", [b"{", b'{"nosuch": 1}', b'{"call_id": 3}'])
def test_an_event_that_cannot_be_read_takes_what_was_before_it_out_of_view(
    shared: Server, url: str, store: RedisStore, harm: bytes
) -> None:
    store.append("s", "a", [shows("c1"), shows("c2"), shows("c3")], 1.0)
    with client(shared) as asked:
        (key,) = asked.keys(f"{url.rpartition('prefix=')[2]}:{{*")
        row = asked.hget(key, "e2")
        asked.hset(key, "e2", row[: row.index(b"{")] + harm)
    assert [type(r.event) for r in store.records("s", "a")] == [Delivered, Failed, Compacted, Delivered]


@pytest.mark.slow
def test_a_server_that_hangs_costs_its_deadline_once_and_then_nothing_until_it_is_back(
    own: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_server, "DEADLINE", 2.0)
    monkeypatch.setattr(redis_server, "REST", 0.5)
    with Session("/w", session_id="s", store=own.url) as session:
        assert [omits(session), omits(session)] == [False, True]
        own.hang()
        took = list[float]()
        for use in (lambda: omits(session), session.compacted, lambda: omits(session)):
            began = time.monotonic()
            assert use() is not True
            took.append(time.monotonic() - began)
        deadline = redis_server.DEADLINE
        assert deadline / 2 < took[0] < 2 * deadline, "one wait, and not two"
        assert max(took[1:]) < deadline / 2
        own.wake()
        time.sleep(redis_server.REST * took[0])
        assert [omits(session), omits(session)] == [False, True]
        assert any(isinstance(r.event, Compacted) for r in session.events())


def test_a_server_without_memory_is_a_store_error_and_what_was_there_stays(own: Server) -> None:
    with Session("/w", session_id="s", store=own.url) as session, client(own) as asked:
        assert [omits(session), omits(session)] == [False, True]
        asked.config_set("maxmemory", "1")
        assert not omits(session)
        session.compacted()
        asked.config_set("maxmemory", "0")
        assert [omits(session), omits(session)] == [False, True]


def test_a_server_that_was_never_there_costs_nothing_but_the_savings() -> None:
    pytest.importorskip("redis")
    with Session("/w", store="unix:///nosuch/socket") as session:
        assert [omits(session), omits(session)] == [False, False]
        assert session.stats()["store_failed"] == 2


# ------------------------------------------------------------ versions, names


def test_a_session_of_a_newer_version_is_refused_and_left_alone(shared: Server, url: str, store: RedisStore) -> None:
    store.append("s", "a", [shows("c1")], 1.0)
    with client(shared) as asked:
        (key,) = asked.keys(f"{url.rpartition('prefix=')[2]}:{{*")
        asked.hset(key, "v", "7")
        before = asked.hgetall(key)
        for use in (
            lambda: store.records("s"),
            lambda: store.records_about("s", "a", [], []),
            lambda: store.append("s", "a", [shows("c2")], 1.0),
        ):
            with pytest.raises(StoreError, match="schema version 7, this readcache knows 1: upgrade"):
                use()
        assert asked.hgetall(key) == before


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("expire=soon", "days"),
        ("expire=-1", "days"),
        ("cluster=perhaps", "yes nor no"),
        ("prefix=a{b", "brace"),
        ("db=x", "cannot use the store"),
        ("nosuch=1", "cannot use the store"),
    ],
)
def test_a_url_without_sense_is_a_usage_error(query: str, words: str) -> None:
    pytest.importorskip("redis")
    with pytest.raises(UsageError, match=words):
        open_store(f"redis://user:secret@localhost/0?{query}")


def test_no_error_tells_the_password() -> None:
    pytest.importorskip("redis")
    with pytest.raises(StoreError) as caught:
        list(open_store("redis://user:secret@127.0.0.1:1/0").sessions())
    assert "secret" not in str(caught.value)
    assert "redis://127.0.0.1:1/0" in str(caught.value)


def test_without_the_package_the_error_says_what_to_install() -> None:
    program = """
        import sys
        sys.modules["redis"] = None
        from readcache.log.store import open_store
        open_store("redis://localhost/0")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, capture_output=True, text=True)
    assert "UsageError" in done.stderr
    assert "pip install 'readcache[redis]'" in done.stderr


def test_calls_of_a_process_each_are_judged_by_what_the_others_stored(url: str) -> None:
    for expected in (False, True):
        with one_call_session(url) as session:
            reply = session.observe("cat f", FILE)
            assert any(isinstance(part, Omitted) for part in reply.segments) == expected


class RedisStoreOpened(contextlib.closing[RedisStore]):
    def __init__(self, url: str) -> None:
        super().__init__(RedisStore(url))


def test_a_user_with_the_rights_that_the_page_names_can_do_all_of_it(own: Server) -> None:
    page = (ROOT / "docs/stores.md").read_text(encoding="utf-8")
    words = next(line.split() for line in page.splitlines() if line.strip().startswith("ACL SETUSER"))
    with client(own) as asked:
        asked.execute_command(*[">pw" if word == ">PASSWORD" else word for word in words])
    url = own.url.replace("unix://", "unix://readcache:pw@")
    with Session("/w", session_id="s", store=url) as session:
        assert [omits(session), omits(session)] == [False, True]
    with RedisStoreOpened(url) as store:
        assert list(store.records_about("s", "main", ["/w/f"], []))
        assert store.check().startswith("version ")
        assert store.used_bytes() > 0
        store.take_out("s", time.time())
    with pytest.raises(StoreError, match="user and password"):
        list(open_store(own.url.replace("unix://", "unix://readcache:wrong@")).sessions())
