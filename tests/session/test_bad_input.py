"""Whatever comes in and whatever breaks, the real output and status go through and nothing is raised."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from readcache import Outcome, Policy, Reason, Session
from readcache.core.model.errors import StoreError, UsageError
from readcache.core.restore.plan import RestoreItem, RestorePlan
from readcache.log import reader, telemetry
from readcache.log.store.protocol import MemoryStore
from tests.helpers.files import TEXT, in_time_enough
from tests.helpers.replies import omits

COMMANDS = (
    "cat 'f",
    "cat $(",
    "if then fi",
    "cat <<",
    "))((",
    "",
    " ",
    "\n",
    "cat \0 f",
    "cat \udcff",
    "cat f \\",
    "cat " + "(" * 500,
    "cat f" + " | cat" * 500,
    "`" * 31,
    "cat 🦀 ｆ",
    "a=" * 3_000,
)


# ------------------------------------------------------------ commands and outputs


@pytest.mark.parametrize("command", COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_that_cannot_be_read_is_answered_with_its_output(command: str) -> None:
    session = Session("/w")
    reply = session.observe(command, TEXT, exit_code=2)
    assert (reply.text, reply.exit_code, reply.outcome) == (TEXT, 2, Outcome.FULL)
    assert "internal_error" not in session.stats()


@pytest.mark.parametrize("output", ["\0", "a\0b" * 500, "\udcff" * 500, "\r" * 500, "\x85\u2028" * 300, "\n" * 900])
def test_any_output_goes_through(output: str) -> None:
    session = Session("/w", policy=Policy(any_output=True, delta=True, min_chars=0))
    assert session.observe("cat f", output).text == output
    session.observe("cat f", output)
    assert session.observe("cat f", output).text == output, "the reader insisted"
    assert "internal_error" not in session.stats()


ODD = (7, 3.5, True, b"x", "\ud800", "a\0b", ("t",), ["l"], object())


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("stored", [False, True])
def test_no_id_that_a_harness_makes_up_stops_the_session(tmp_path: Path, odd: Any, stored: bool) -> None:
    store = tmp_path / "db" if stored else None
    with Session("/w", session_id="s", store=store) as session:
        assert session.observe("cat f", TEXT, call_id=odd, batch=odd).text == TEXT
        session.settle(odd, "cut")
        assert session.observe("cat f", TEXT).text == TEXT, "nothing of it was left"
        session.wrote("g", content=TEXT, call_id=odd)
        session.observe_read("h", TEXT, start=True, end=60, call_id=odd)
        session.compacted(keep=[odd])
        session.rewind(odd)
        session.sync([])
        session.restore_plan()
        assert session.observe("cat e", TEXT).text == TEXT
        assert session.observe("cat e", TEXT).outcome is Outcome.UNCHANGED
    with Session("/w", session_id="s", store=store) as session:
        assert session.observe("cat f", TEXT).text == TEXT if store is None else session.events()
        assert not {"store_failed", "internal_error"} & session.stats().keys()


def test_a_rewind_by_a_number_goes_where_the_number_was_given(tmp_path: Path) -> None:
    for store in (None, tmp_path / "db"):
        with Session("/w", session_id="s", store=store) as session:
            session.observe("cat f", TEXT, call_id=1)  # type: ignore[arg-type]
            session.observe("cat g", TEXT.replace("line", "other"), call_id=2)  # type: ignore[arg-type]
            session.rewind(1)  # type: ignore[arg-type]
            assert [d.event.call_id for d in session.view.deliveries] == ["1"]


def test_strange_directories_paths_and_ids_are_only_names() -> None:
    session = Session("/w")
    for name in ("", "\0", "\udcff", "a\nb", "*", "~", "//", "C:\\a"):
        assert session.observe("cat f", TEXT + name, cwd=name, call_id=name).text == TEXT + name
        assert session.observe_read(name, TEXT + name, start=-3, end=-9).exit_code == 0
        session.wrote(name, content=name)
        session.settle(name, name)
    assert "internal_error" not in session.stats()


def test_a_huge_output_goes_through() -> None:
    output = "a line of some length, many times over\n" * (50 * 1024 * 1024 // 39)
    session = Session("/w")
    session.observe("cat f", output)
    reply = session.observe("cat f", output)
    assert reply.text == output
    assert reply.reason is Reason.TOO_LARGE


def test_a_huge_line_goes_through() -> None:
    output = "x" * 10_000_000
    session = Session("/w", policy=Policy(any_output=True))
    session.observe("cat f", output)
    assert session.observe("cat f", output).text == output


def test_output_that_is_not_utf_8_is_decoded_with_replacement() -> None:
    reply = Session("/").run("printf 'a\\377\\376b\\n'")
    assert reply.text == "a\ufffd\ufffdb\n"


def test_endless_output_ends_with_the_timeout() -> None:
    reply = in_time_enough(lambda timeout: Session("/").run("yes", timeout=timeout), lambda reply: bool(reply.text))
    assert (reply.exit_code, reply.reason) == (124, Reason.TIMED_OUT)
    assert reply.text.startswith("y\ny\n")


def test_output_of_a_command_that_timed_out_is_never_a_source_of_lines(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    session = Session(tmp_path)
    session.run("cat f; sleep 5", timeout=0.3)
    assert session.run("cat f").outcome is not Outcome.UNCHANGED


def test_a_death_by_signal_is_reported_as_subprocess_does() -> None:
    reply = Session("/").run("echo before; kill -TERM $$")
    assert (reply.text, reply.exit_code, reply.reason) == ("before\n", -15, Reason.KILLED)


@pytest.mark.parametrize("cwd", ["missing", "file"])
def test_a_directory_that_is_none_is_said_in_one_line(tmp_path: Path, cwd: str) -> None:
    (tmp_path / "file").write_text("")
    reply = Session(tmp_path).run("echo a", cwd=cwd)
    assert (reply.exit_code, reply.reason) == (125, Reason.NOT_RUN)
    assert reply.text.count("\n") == 1
    assert cwd in reply.text


@pytest.mark.parametrize("command", ["echo a\0b", "echo \udcff"])
def test_a_command_that_cannot_be_passed_on_never_raises(command: str) -> None:
    assert Session("/").run(command).text


@pytest.mark.parametrize("path", ["missing", "a\0b", ".", "\udcff"])
def test_a_file_that_cannot_be_read_is_said_in_one_line(tmp_path: Path, path: str) -> None:
    session = Session(tmp_path)
    reply = session.read(path)
    assert (reply.exit_code, reply.reason, reply.text.count("\n")) == (1, Reason.UNREADABLE, 1)


def test_a_fifo_does_not_make_a_read_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert Session(tmp_path).read("pipe").reason is Reason.UNREADABLE


def test_a_tokenizer_that_raises_costs_the_agent_nothing_and_its_tokens_are_counted_by_characters() -> None:
    def fails(_text: str) -> int:
        raise RuntimeError("no vocabulary")

    session = Session("/w", policy=Policy(count_tokens=fails))
    assert session.observe("cat f", TEXT, exit_code=3).text == TEXT
    assert session.observe("cat f", TEXT, exit_code=3).tokens_saved > 0


# ------------------------------------------------------------ stores that fail


def _no_directory(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "store.db"


def _garbage(tmp_path: Path) -> Path:
    (tmp_path / "store.db").write_bytes(b"this is no database, " * 500)
    return tmp_path / "store.db"


@pytest.mark.parametrize("bad", [_no_directory, _garbage, lambda tmp_path: tmp_path])
def test_a_store_that_cannot_be_opened_shows_everything(tmp_path: Path, bad: Callable[[Path], Path]) -> None:
    with Session("/w", store=bad(tmp_path)) as session:
        for _ in range(3):
            reply = session.observe("cat f", TEXT, exit_code=1)
            assert (reply.text, reply.exit_code, reply.reason) == (TEXT, 1, Reason.STORE_FAILED)
        assert session.stats()["store_failed"] >= 3
        assert session.fork("helper", inherit=True).observe("cat f", TEXT).text == TEXT
        session.wrote("f")
        session.settle("c", "")
        session.rewind("c")
        session.compacted()
        assert session.restore_plan().items == ()


def test_a_store_that_becomes_readable_is_used_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "dir" / "store.db"
    (tmp_path / "dir").write_text("in the way")
    with Session("/w", store=path) as session:
        assert session.observe("cat f", TEXT).reason is Reason.STORE_FAILED
        (tmp_path / "dir").unlink()
        assert session.observe("cat f", TEXT).reason is Reason.NOT_SEEN
        assert session.observe("cat f", TEXT).reason is Reason.COVERED
        assert session.stats()["store_failed"] >= 1


def test_a_store_file_that_turns_to_garbage_raises_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Session("/w", store=path, session_id="s") as session:
        session.observe("cat f", TEXT, call_id="c1")
        for name in (path, tmp_path / "store.db-wal"):
            if name.exists():
                name.write_bytes(b"garbage " * 4_000)
        for _ in range(3):  # what it was shown it still knows
            assert session.observe("cat f", TEXT, exit_code=4).exit_code == 4
    with Session("/w", store=path, session_id="s") as session:
        assert session.observe("cat f", TEXT).text == TEXT
        assert session.stats()["store_failed"] >= 1


def test_a_store_file_that_can_no_longer_be_written_shows_everything(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Session("/w", store=path) as session:
        session.observe("cat f", TEXT)
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'full'); END")
        for _ in range(3):
            reply = session.observe("cat f", TEXT, exit_code=4)
            assert (reply.text, reply.exit_code, reply.reason) == (TEXT, 4, Reason.STORE_FAILED)
        session.compacted()
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("DROP TRIGGER full")
        assert session.observe("cat f", TEXT).text == TEXT
        assert session.observe("cat f", TEXT).reason is Reason.COVERED
        assert session.stats()["store_failed"] >= 3


class Flaky(MemoryStore):
    """A store that can be told to fail where a real one can: at the beginning, while writing, at the commit."""

    fails = ""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        if self.fails == "begin":
            raise StoreError("locked")
        with super().transaction():
            yield
            if self.fails == "commit":
                raise StoreError("the disk is full")

    def append(self, *given: object) -> int:
        if self.fails == "append":
            raise StoreError("the disk is full")
        return super().append(*given)  # type: ignore[arg-type]


WHERE = pytest.mark.parametrize("where", ["begin", "append", "commit"])
TELL: dict[str, Callable[[Session], object]] = {
    "compacted": lambda session: session.compacted(),
    "rewind": lambda session: session.rewind("before"),
    "settle": lambda session: session.settle("c1", "[taken out]"),
    "wrote": lambda session: session.wrote("f"),
    "a command that wrote": lambda session: session.observe("sed -i s/a/b/ f", ""),
}


def told(
    where: str,
    tell: Callable[[Session], object],
    policy: Policy = Policy(),  # noqa: B008  frozen
) -> tuple[Session, Flaky]:
    """A session that was told something while its store failed."""
    store = Flaky()
    session = Session("/w", store=store, policy=policy)
    session.observe("pwd", "/w\n", call_id="before")
    session.observe("cat f", TEXT, call_id="c1")
    store.fails = where
    tell(session)
    return session, store


@WHERE
@pytest.mark.parametrize("tell", TELL.values(), ids=TELL)
def test_what_was_told_while_the_store_failed_is_not_forgotten(where: str, tell: Callable[[Session], object]) -> None:
    session, store = told(where, tell)
    assert not omits(session.observe("cat f", TEXT))
    store.fails = ""
    assert not omits(session.observe("cat f", TEXT))
    assert session.stats()["store_failed"] >= 1


@pytest.mark.parametrize("tell", TELL.values(), ids=TELL)
def test_what_was_told_is_not_forgotten_when_the_store_fails_again_at_the_next_commit(
    tell: Callable[[Session], object],
) -> None:
    session, store = told("begin", tell)
    store.fails = "commit"
    assert not omits(session.observe("cat f", TEXT))
    store.fails = ""
    assert not omits(session.observe("cat f", TEXT))


def test_what_was_told_is_not_forgotten_when_the_next_call_fails_inside() -> None:
    broken: list[str] = []

    class Clip:
        def kept(self, text: str) -> tuple[str, ...]:
            return (text[: len(text) // (not broken)],)

    session, store = told("begin", TELL["compacted"], Policy(clip=Clip()))  # type: ignore[arg-type]
    store.fails = ""
    broken.append("now")
    assert session.observe("cat f", TEXT).reason is Reason.INTERNAL_ERROR
    broken.clear()
    assert not omits(session.observe("cat f", TEXT))


@WHERE
def test_listeners_are_told_only_of_what_the_store_took(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Counter[str]()

    def hear(_: str, changed: Mapping[str, int], seconds: float | None) -> None:
        heard.update(changed)
        heard["answers"] += seconds is not None

    session, store = told("", lambda _: None)
    monkeypatch.setattr(telemetry, "LISTENERS", [hear])
    monkeypatch.setattr(reader, "LISTENERS", telemetry.LISTENERS)
    store.fails = where
    assert session.observe("cat f", TEXT).text == TEXT
    assert heard == {"store_failed": 1, "answers": 1}
    store.fails = ""
    assert omits(session.observe("cat f", TEXT))
    assert (heard["calls"], heard["covered"], heard["store_failed"]) == (1, 1, 1)


@WHERE
def test_a_compaction_that_the_store_did_not_take_still_rewrites_the_markers(where: str) -> None:
    store = Flaky()
    session = Session("/w", store=store)
    session.observe("cat f", TEXT, call_id="c1")
    assert omits(session.observe("cat f", TEXT, call_id="c2"))
    store.fails = where
    done = session.compacted(keep=["c2"])
    assert set(done.rewrites) == {"c2"}
    store.fails = ""
    session.observe("pwd", "/w\n")
    markers = [marker for delivery in session.view.of_call("c2") for marker in delivery.event.markers]
    assert [marker.sources for marker in markers] == [()]


@WHERE
def test_a_delivery_that_the_store_did_not_take_is_no_source(where: str) -> None:
    store = Flaky()
    session = Session("/w", store=store)
    store.fails = where
    assert session.observe("cat f", TEXT).reason is Reason.STORE_FAILED
    store.fails = ""
    assert session.observe("cat f", TEXT).text == TEXT
    assert omits(session.observe("cat f", TEXT))


def test_a_token_counter_that_fails_does_not_stop_what_the_harness_tells() -> None:
    def refuse(text: str) -> int:
        raise RuntimeError(text)

    session = Session(root="/w", policy=Policy(count_tokens=refuse))
    session.wrote("f", content="a line\n" * 40, call_id="c1")
    plan = RestorePlan((RestoreItem("/w/f", 1, 1, "a line", 2, "test"),))
    assert session.compacted(restored=plan).restored_id
    assert [type(record.event).__name__ for record in session.events()] == [
        "Wrote",
        "Delivered",
        "Compacted",
        "Delivered",
    ]


def test_one_text_where_several_are_meant_is_refused_with_advice() -> None:
    for bad in ({"never": "submit"}, {"protected": "*.pem"}):
        with pytest.raises(UsageError, match=r"give a tuple, \('"):
            Policy(**bad)  # type: ignore[arg-type]
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c2")
    for tell in (session.compacted, session.restore_plan):
        with pytest.raises(UsageError, match=r"give a list of ids, \['c2'\]"):
            tell(keep="c2")
    assert session.view.is_visible("c2"), "nothing was changed"


def test_ids_of_any_type_are_names(tmp_path: Path) -> None:
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        session.observe("cat f", TEXT, call_id=7)  # type: ignore[arg-type]
        assert omits(session.observe("cat f", TEXT, call_id=8))  # type: ignore[arg-type]
        session.compacted(keep=[7])  # type: ignore[list-item]
        assert [delivery.event.call_id for delivery in session.view.deliveries] == ["7"]
        assert "internal_error" not in session.stats()


def test_a_token_counter_that_gives_fractions_is_rounded_down(tmp_path: Path) -> None:
    policy = Policy(count_tokens=lambda text: len(text) / 3.5)  # type: ignore[arg-type, return-value]
    for _ in range(2):
        with Session("/w", session_id="s", store=tmp_path / "log.db", policy=policy) as session:
            session.observe("cat f", TEXT)
            assert not {"internal_error", "store_failed"} & session.stats().keys()


def test_batches_that_overlap_end_with_the_last_of_them() -> None:
    session = Session("/w")
    first, second = session.batch(), session.batch()
    first.__enter__()
    session.observe("cat f", TEXT)
    second.__enter__()
    first.__exit__(None, None, None)
    assert session.observe("cat f", TEXT).reason is Reason.SAME_BATCH
    second.__exit__(None, None, None)
    assert omits(session.observe("cat f", TEXT))
