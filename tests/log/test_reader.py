"""One reader in one store: what it is shown outside of any transaction, and when that counts."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from readcache import Session
from readcache.core.model.call import Call, command_call
from readcache.core.model.events import Compacted, Rewound
from readcache.core.model.policy import Head, Policy, Rules
from readcache.core.model.reply import Outcome, Reason, Reply
from readcache.core.model.text import session_tag
from readcache.core.shell.read import read_command
from readcache.log.log import LATELY, Log
from readcache.log.reader import Confirm, Reader
from readcache.log.store import open_store
from readcache.log.store.sqlite import SqliteStore
from tests.helpers.files import TEXT
from tests.helpers.one_call import answer as answer_one


class Killed(BaseException):
    """The process ended while it was printing."""


def be_killed(_: Reply) -> None:
    raise Killed


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def cat(call_id: str, command: str = "cat f", output: str = TEXT) -> Call:
    return command_call(call_id, command, "/w", output, read_command(command, "/w"))


def in_a_process(path: Path, use: Callable[[Reader], Reply | None]) -> Reply | None:
    """What one process does that judges one call."""
    log = Log(lambda: open_store(path), "s", "main", time.time)
    try:
        return use(Reader(log, Rules(Policy(), session_tag("s")), one_call=True))
    finally:
        log.close()


def answer(path: Path, call: Call, show: Callable[[Reply], float | None] = lambda _: None) -> Reply:
    reply = in_a_process(path, lambda reader: answer_one(reader, call, show))
    assert reply is not None
    return reply


def test_what_was_shown_by_one_process_is_left_out_by_the_next(path: Path) -> None:
    assert answer(path, cat("c1")).reason is Reason.NOT_SEEN
    reply = answer(path, cat("c2"))
    assert (reply.outcome, reply.segments[0].sources) == (Outcome.UNCHANGED, ("c1",))  # type: ignore[union-attr]


def test_while_a_reply_is_printed_others_write_the_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readcache.log.store.sqlite_file.BUSY_SECONDS", 60.0)

    def write(_: Reply) -> None:
        with closing(SqliteStore(path)) as store:
            before = time.monotonic()
            store.append("other", "main", [Rewound("x")], 1.0)
            waited.append(time.monotonic() - before)

    waited: list[float] = []
    assert answer(path, cat("c1"), write).reason is Reason.NOT_SEEN
    assert waited[0] < 30  # half of what one waits for a lock


def logged_before(path: Path, call: Call) -> int:
    """Answer the call. Return how many events the store had when the reply was printed."""
    counts: list[int] = []

    def show(_: Reply) -> None:
        with closing(SqliteStore(path)) as store:
            counts.append(len(store.records("s")))

    answer(path, call, show)
    return counts[0]


def test_a_reply_that_omits_nothing_is_printed_before_the_store_has_it(path: Path) -> None:
    assert logged_before(path, cat("c1")) == 0
    assert logged_before(path, cat("c2")) == 2, "a marker that the log does not know could never be mended"
    assert logged_before(path, cat("c3", "cat g", TEXT.upper())) == 3, "one event, and two for the marker"
    assert logged_before(path, cat("c4", "sed -i s/a/b/ f; cat f")) == 6, "a write is known before its outcome is seen"
    assert answer(path, cat("c5", "cat g", TEXT.upper())).outcome is Outcome.UNCHANGED


def test_a_reply_in_full_comes_after_what_was_shown_meanwhile(path: Path) -> None:
    def read_another(_: Reply) -> None:
        answer(path, cat("c2", "cat g", TEXT.upper()))

    answer(path, cat("c1"), read_another)
    with closing(SqliteStore(path)) as store:
        events = [record.event for record in store.records("s")]
    assert [(event.call_id, event.when.call) for event in events] == [("c2", 1), ("c1", 2)]  # type: ignore[union-attr]
    assert events[1].when.tokens > events[0].when.tokens > 0  # type: ignore[union-attr]
    assert answer(path, cat("c3")).outcome is Outcome.UNCHANGED
    assert answer(path, cat("c4", "cat g", TEXT.upper())).outcome is Outcome.UNCHANGED


def test_what_was_printed_before_it_was_logged_is_not_in_doubt_when_a_session_goes_on(path: Path) -> None:
    answer(path, cat("c1"))
    with Session("/w", session_id="s", store=path) as session:
        assert session.observe("cat f", TEXT).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda reader: reader.note_writes(cat("c2", "sed -i s/a/b/ f", "")),
        lambda reader: reader.tell("", lambda _: [Compacted(frozenset())]),
        lambda reader: reader.tell("", lambda _: [Rewound("c0")]),
        lambda reader: answer_one(reader, cat("c1", "cat g", TEXT.upper())),
    ],
    ids=["a write", "a compaction", "a rewind", "the same id"],
)
def test_a_reply_is_no_source_if_something_came_while_it_was_printed_that_may_change_it(
    path: Path, meanwhile: Callable[[Reader], Reply | None]
) -> None:
    def show(_: Reply) -> None:
        in_a_process(path, meanwhile)

    answer(path, cat("c1"), show)
    assert answer(path, cat("c3")).text == TEXT


def test_a_reply_is_a_source_though_the_log_was_begun_about_another_file_meanwhile(path: Path) -> None:
    def show(_: Reply) -> None:
        answer_one(reader, cat("c2", "cat g", TEXT.upper()))

    log = Log(lambda: open_store(path), "s", "main", time.time)
    reader = Reader(log, Rules(Policy(), session_tag("s")), one_call=True)
    answer_one(reader, cat("c1"), show)
    assert answer_one(reader, cat("c3")).outcome is Outcome.UNCHANGED
    log.close()


@pytest.mark.parametrize("compacts", [False, True])
def test_a_log_that_is_folded_meanwhile_makes_a_reply_no_source_only_if_it_has_a_new_compaction(
    path: Path, compacts: bool
) -> None:
    def compact(reader: Reader) -> None:
        reader.tell("", lambda _: [Compacted(frozenset())])

    def show(_: Reply) -> None:
        if compacts:
            in_a_process(path, compact)
        with closing(SqliteStore(path)) as store:
            log.fold(store)

    in_a_process(path, compact)
    log = Log(lambda: open_store(path), "s", "main", time.time)
    reader = Reader(log, Rules(Policy(), session_tag("s")))
    answer_one(reader, cat("c1"), show)
    assert (answer_one(reader, cat("c2")).text == TEXT) == compacts
    log.close()


def test_a_reply_that_is_logged_when_it_was_shown_is_counted_as_one_that_is_sure_to_be(path: Path) -> None:
    calls = [cat("c1"), cat("c2", "cat g", "a\0b\n" * 500), cat("c3", "cat h", TEXT * 9), cat("c4", "ls", "h\n")]
    clipped = Policy(clip=Head(1000))
    counted = []
    for session, confirm in (("s", Confirm.ALL), ("t", Confirm.NONE)):
        for policy in (Policy(), clipped):
            log = Log(lambda: open_store(path), session, str(policy.clip), time.time)
            reader = Reader(log, Rules(policy, session_tag("s")))
            for call in calls:
                reader.judge(call, confirm=confirm).commit()
            counted.append((reader.view.calls.tokens, reader.view.calls.counts))
            log.close()
    assert counted[:2] == counted[2:]
    assert counted[0][0] > 1000


def test_what_is_still_being_printed_is_nobodys_source(path: Path) -> None:
    parallel: list[Reply] = []

    def read_it_too(_: Reply) -> None:
        parallel.append(answer(path, cat("c2")))

    answer(path, cat("c1"), read_it_too)
    assert parallel[0].text == TEXT
    assert answer(path, cat("c3")).outcome is Outcome.UNCHANGED


def test_what_was_still_being_printed_when_a_call_began_is_not_its_source(path: Path) -> None:
    began = 0.0

    def begin(_: Reply) -> None:
        nonlocal began
        began = time.time()
        time.sleep(0.01)

    answer(path, cat("c1"), begin)
    for one_call in (True, False):
        log = Log(lambda: open_store(path), "s", "main", time.time)
        reader = Reader(log, Rules(Policy(), session_tag("s")), one_call=one_call)
        reply = answer_one(reader, cat(f"c2 {one_call}"), began=began)
        log.close()
        assert (reply.text, reply.reason) == (TEXT, Reason.SAME_BATCH)
    assert answer(path, cat("c3")).outcome is Outcome.UNCHANGED


def test_a_call_that_wrote_and_read_is_not_the_source_of_one_that_began_before_it(path: Path) -> None:
    began = time.time()
    in_a_process(path, lambda reader: answer_one(reader, cat("c1", "date > log; cat f")))
    for one_call in (True, False):
        log = Log(lambda: open_store(path), "s", "main", time.time)
        reader = Reader(log, Rules(Policy(), session_tag("s")), one_call=one_call)
        reply = answer_one(reader, cat(f"c2 {one_call}"), began=began)
        log.close()
        assert (reply.text, reply.reason) == (TEXT, Reason.SAME_BATCH)
    assert answer(path, cat("c3")).outcome is Outcome.UNCHANGED


def test_a_log_that_is_held_tells_what_could_be_seen_when_a_call_began(path: Path) -> None:
    now = 0.0
    log = Log(lambda: open_store(path), "s", "main", lambda: now)
    reader = Reader(log, Rules(Policy(), session_tag("s")))

    for number in range(1, 3 * LATELY):
        now = float(number)
        answer_one(reader, cat(f"c{number}"), lambda _: None)
    assert [log.calls_at(now - age) for age in (0, 1, 5)] == [number, number - 1, number - 5]
    assert log.calls_at(now - LATELY) == 0, "it is not remembered: nothing may be a source"
    log.close()


def test_after_a_clock_was_set_back_nothing_could_be_seen_sooner_than_what_came_before_it() -> None:
    now = 0.0
    log = Log(lambda: open_store(None), "s", "main", lambda: now)
    reader = Reader(log, Rules(Policy(), session_tag("s")))
    for number, at in enumerate((10.0, 20.0, 5.0, 6.0, 30.0), 1):
        now = at
        answer_one(reader, cat(f"c{number}"))
    assert [log.calls_at(moment) for moment in (4.0, 7.0, 15.0, 20.0, 30.0)] == [0, 0, 1, 4, 5]
    log.close()


def test_a_reply_counts_from_the_moment_on_at_which_it_was_printed(path: Path) -> None:
    log = Log(lambda: open_store(path), "s", "main", time.time)
    reader = Reader(log, Rules(Policy(), session_tag("s")))
    printed = 0.0

    def show(_: Reply) -> float:
        nonlocal printed
        printed = time.time()
        time.sleep(0.01)  # until somebody is told
        return printed

    answer_one(reader, cat("c1"), show)
    assert answer_one(reader, cat("c2"), began=printed + 0.001).reason is Reason.COVERED
    answer_one(reader, cat("c3", "cat g", TEXT.upper()), show)
    assert answer_one(reader, cat("c4", "cat g", TEXT.upper()), began=printed - 0.001).reason is Reason.SAME_BATCH
    log.close()


def test_what_was_not_printed_to_its_end_is_never_a_source(path: Path) -> None:
    with pytest.raises(Killed):
        answer(path, cat("c1"), be_killed)
    assert answer(path, cat("c2")).text == TEXT


def test_a_marker_that_was_not_printed_is_no_reason_to_show_the_lines_nor_a_source(path: Path) -> None:
    answer(path, cat("c1"))
    with pytest.raises(Killed):
        answer(path, cat("c2"), be_killed)
    sources = [part.sources for part in answer(path, cat("c3")).segments if not hasattr(part, "text")]
    assert sources in ([], [("c1",)])


def test_a_write_counts_even_if_the_output_after_it_was_not_printed(path: Path) -> None:
    answer(path, cat("c1"))
    with pytest.raises(Killed):
        answer(path, cat("c2", "sed -i s/a/b/ f; cat f", TEXT.replace("number 7 ", "NUMBER 7 ")), be_killed)
    assert answer(path, cat("c3")).reason is Reason.WRITTEN


def test_what_a_command_showed_after_its_own_write_is_of_the_file_as_it_is(path: Path) -> None:
    answer(path, cat("c1", "sed -i s/a/b/ f; cat f"))
    assert answer(path, cat("c2")).reason is Reason.COVERED


def test_what_a_command_showed_before_its_own_write_is_of_the_file_as_it_was(path: Path) -> None:
    answer(path, cat("c1", "cat f; sed -i s/a/b/ f"))
    assert answer(path, cat("c2")).reason is Reason.WRITTEN


def test_what_others_wrote_while_it_was_printed_makes_it_no_source(path: Path) -> None:
    def write(_: Reply) -> None:
        in_a_process(path, lambda reader: reader.note_writes(cat("c2", "sed -i s/a/b/ f", "")))

    answer(path, cat("c1"), write)
    assert answer(path, cat("c3")).text == TEXT


def test_a_compaction_that_came_while_it_was_printed_takes_it_away(path: Path) -> None:
    def compact(_: Reply) -> None:
        in_a_process(path, lambda reader: reader.tell("", lambda _: [Compacted(frozenset())]))

    answer(path, cat("c1"), compact)
    assert answer(path, cat("c2")).text == TEXT


def test_an_id_that_is_used_twice_at_once_names_no_text_of_the_other_call(path: Path) -> None:
    other = TEXT.replace("line", "file")

    def use_it_too(_: Reply) -> None:
        answer(path, cat("c1", "cat g", other))

    answer(path, cat("c1"), use_it_too)
    with closing(SqliteStore(path)) as store:
        log = Log(lambda: store, "s", "main", time.time)
        texts = [d.event.text for d in Reader(log, Rules(Policy(), "")).view.of_call("c1")]
    assert TEXT not in texts


def test_the_log_tells_each_call_once_with_what_it_showed(path: Path) -> None:
    answer(path, cat("c1"))
    answer(path, cat("c2"))
    log = Log(lambda: open_store(path), "s", "main", time.time)
    events = [record.event for record in log.records()]
    log.close()
    assert events[0].text == TEXT  # type: ignore[union-attr]
    assert [len(event.markers) for event in events] == [0, 1]  # type: ignore[union-attr]


def test_counters_are_those_of_a_session(path: Path) -> None:
    for name in ("c1", "c2", "c3"):
        answer(path, cat(name))
    one = Log(lambda: open_store(path), "s", "main", time.time)
    other = Log(lambda: open_store(None), "s", "main", time.time)
    session = Reader(other, Rules(Policy(), session_tag("s")))
    for name in ("c1", "c2", "c3"):
        answer_one(session, cat(name))
    counts = Reader(one, Rules(Policy(), session_tag("s"))).view.calls.counts
    one.close()
    assert counts == session.view.calls.counts
