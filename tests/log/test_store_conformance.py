"""What every store does. To run it on another store, subclass `StoreConformance` and give it a `store_factory`."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.core.model.claims import WHOLE_TREE
from readcache.core.model.errors import StoreError
from readcache.core.model.events import (
    Account,
    Amended,
    Compacted,
    Delivered,
    Event,
    Failed,
    Forgot,
    MappedSpan,
    MarkerRecord,
    Moment,
    Origin,
    Record,
    Rewound,
    Wrote,
)
from readcache.core.model.key_view import VisibleSpan
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.text import digest
from readcache.core.model.view import View
from readcache.log.store import IN_USE_SECONDS, Store
from readcache.log.store.protocol import MemoryStore
from readcache.log.store.sqlite import SqliteStore
from tests.helpers import colliding, strategies

StoreFactory = Callable[[], Store]
FRESH = (f"session {n}" for n in itertools.count())  # examples share a store, never a session


def shows(call_id: str, path: str = "/r/a", text: str = "x\n") -> Delivered:
    return Delivered(call_id, text, f"cat {path}", source_map=(MappedSpan((path,), 0, 1, 1),))


def calls(records: Any) -> list[str]:
    return [record.event.call_id for record in records]


class StoreConformance:
    def looks_up(self, store: Store) -> bool:
        """False where `records_about` gives all records."""
        return not isinstance(store, MemoryStore)

    @pytest.fixture
    def store_factory(self) -> StoreFactory:
        """Opens a store with nothing in it."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, store_factory: StoreFactory) -> Iterator[Store]:
        opened = store_factory()
        yield opened
        opened.close()

    # ------------------------------------------------------------ appending and reading

    @given(written=st.lists(strategies.events(), max_size=5), agent=strategies.texts(), session=strategies.texts())
    def test_what_was_appended_is_read_back_in_order(
        self, store: Store, written: list[Event], agent: str, session: str
    ) -> None:
        session = next(FRESH) + session
        written = [replace(event, erases=False) if isinstance(event, Amended) else event for event in written]
        last = store.append(session, agent, written, at=1_700_000_000.25)
        records = list(store.records(session, agent))
        assert [record.event for record in records] == written
        assert [(record.agent_id, record.at) for record in records] == [(agent, 1_700_000_000.25)] * len(written)
        assert last == (records[-1].seq if records else 0)

    def test_seqs_grow_across_the_contexts_of_a_session(self, store: Store) -> None:
        store.append("t", "a", [shows("c")], 1.0)
        seqs = [store.append("s", agent, [shows("c")], 1.0) for agent in ("a", "b", "a")]
        assert seqs == sorted(set(seqs))
        assert seqs[0] > 0

    def test_reading_after_a_seq_gives_only_what_is_newer(self, store: Store) -> None:
        first = store.append("s", "a", [shows("c1"), shows("c2")], 1.0)
        store.append("s", "a", [shows("c3")], 2.0)
        assert calls(store.records("s", "a", after=first)) == ["c3"]
        assert calls(store.records("s", after=first)) == ["c3"]
        last = store.append("s", "a", [shows("c4")], 2.0)
        assert calls(store.records("s", "a", after=last)) == []

    def test_a_session_that_is_not_there_has_no_records(self, store: Store) -> None:
        assert list(store.records("s")) == []
        assert list(store.records("s", "a")) == []
        assert list(store.records_about("s", "a", ["/r/a"], [])) == []
        assert list(store.sessions()) == []

    def test_appending_nothing_leaves_no_trace(self, store: Store) -> None:
        assert store.append("s", "a", [], 1.0) == 0
        assert list(store.sessions()) == []

    def test_equal_texts_of_different_calls_are_both_read_back(self, store: Store) -> None:
        store.append("s", "a", [shows("c1", text="same\n"), shows("c2", text="same\n")], 1.0)
        assert [record.event.text for record in store.records("s", "a")] == ["same\n", "same\n"]  # type: ignore[union-attr]

    def test_different_texts_of_one_digest_are_both_read_back(self, store: Store) -> None:
        texts = [colliding.ONE, colliding.OTHER, colliding.ONE, colliding.OTHER]
        store.append("s", "a", [shows(f"c{n}", text=text) for n, text in enumerate(texts)], 1.0)
        assert [record.event.text for record in store.records("s", "a")] == texts  # type: ignore[union-attr]
        found = store.records_about("s", "a", [], [digest(colliding.ONE)])
        assert [record.event.text for record in found] == texts  # type: ignore[union-attr]

    # ------------------------------------------------------------ contexts

    def test_a_context_sees_nothing_of_another_but_its_writes(self, store: Store) -> None:
        theirs: list[Event] = [
            shows("d1"),
            Wrote("w1", ("/r/a",)),
            Compacted(frozenset()),
            Rewound("d1"),
            Failed("f", "x", "y"),
        ]
        store.append("s", "child", theirs, 1.0)
        store.append("s", "main", [shows("c1")], 2.0)
        store.append("s", "child", [Wrote("w2", ("/r/b",))], 3.0)
        assert calls(store.records("s", "main")) == ["w1", "c1", "w2"]
        assert [record.agent_id for record in store.records("s", "main")] == ["child", "main", "child"]
        assert calls(store.records_about("s", "main", [], [])) == ["w1", "c1", "w2"]

    def test_a_context_without_events_sees_the_writes_of_the_others(self, store: Store) -> None:
        store.append("s", "main", [shows("c1"), Wrote("w1", ("/r/a",))], 1.0)
        assert calls(store.records("s", "new")) == ["w1"]
        store.append("s", "main", [Wrote("w2", ("/r/a",))], 1.0)
        assert calls(store.records("s", "new")) == ["w1", "w2"]

    def test_without_a_context_every_record_of_the_session_is_read(self, store: Store) -> None:
        store.append("s", "a", [shows("c1")], 1.0)
        store.append("s", "b", [shows("c2"), Wrote("w", ("/r/a",))], 1.0)
        store.append("t", "a", [shows("c3")], 1.0)
        assert calls(store.records("s")) == ["c1", "c2", "w"]

    def test_sessions_are_apart(self, store: Store) -> None:
        store.append("s", "a", [shows("c1"), Wrote("w", ("/r/a",))], 1.0)
        assert list(store.records("t", "a")) == []
        assert list(store.records_about("t", "a", ["/r/a"], [])) == []

    def test_sessions_lists_each_context_with_its_size_and_last_time(self, store: Store) -> None:
        store.append("s", "a", [shows("c1"), shows("c2")], 1.0)
        store.append("s", "b", [Wrote("w", ("/r/a",))], 2.0)
        store.append("t", "a", [shows("c3")], 3.0)
        store.append("s", "a", [shows("c4")], 4.0)
        list(store.records("s", "only looked at"))
        assert sorted(store.sessions()) == [("s", "a", 3, 4.0), ("s", "b", 1, 2.0), ("t", "a", 1, 3.0)]
        assert sorted(store.sessions("s")) == [("s", "a", 3, 4.0), ("s", "b", 1, 2.0)]
        assert list(store.sessions("nosuch")) == []

    # ------------------------------------------------------------ looking up

    def finds(self, store: Store, expected: list[str], *keys: str, digests: tuple[str, ...] = ()) -> None:
        """Demands that a look-up finds just these calls, or these among others where the store looks nothing up."""
        store.append("s", "a", [Delivered("newest", "", "true")], 9.0)
        found = [call_id for call_id in calls(store.records_about("s", "a", keys, digests)) if call_id != "newest"]
        assert [call_id for call_id in found if self.looks_up(store) or call_id in expected] == expected

    def test_a_look_up_finds_the_deliveries_of_a_path(self, store: Store) -> None:
        store.append("s", "a", [shows("c1", "/r/a"), shows("c2", "/r/b"), shows("c3", "/r/a")], 1.0)
        self.finds(store, ["c1", "c3"], "/r/a")
        self.finds(store, ["c1", "c2", "c3"], "/r/a", "/r/b")

    def test_a_look_up_finds_the_deliveries_of_a_text(self, store: Store) -> None:
        store.append("s", "a", [shows("c1", text="x\n"), shows("c2", text="y\n")], 1.0)
        self.finds(store, ["c2"], digests=(digest("y\n"),))

    def test_a_look_up_finds_what_showed_the_path_or_a_directory_of_it_to_have_changed(self, store: Store) -> None:
        changes = [
            Delivered(f"c{n}", f"{n}", "x", changed=(key,)) for n, key in enumerate(("/r/a", "/r", WHOLE_TREE, "/q"))
        ]
        store.append("s", "a", changes, 1.0)
        self.finds(store, ["c0", "c1", "c2"], "/r/a")

    def test_a_look_up_finds_the_markers_that_stood_for_what_is_looked_up(self, store: Store) -> None:
        into_path = Delivered("c2", "[1]", "cat", markers=(MarkerRecord(0, "/r/a", 1, 2, ("c1",)),))
        to_whole = Delivered("c4", "[2]", "ls", markers=(MarkerRecord(0, None, 1, 2, ("c3",)),))
        store.append("s", "a", [shows("c1"), into_path, shows("c3", "/r/b", "ls\n"), to_whole], 1.0)
        self.finds(store, ["c1", "c2"], "/r/a")
        self.finds(store, ["c3", "c4"], digests=(digest("ls\n"),))

    def test_a_look_up_finds_what_was_settled_for_the_deliveries_it_finds(self, store: Store) -> None:
        store.append("s", "a", [shows("c1"), shows("c2", "/r/b"), Amended("c1", "cut"), Amended("c2", "cut too")], 1.0)
        self.finds(store, ["c1", "c1"], "/r/a")
        self.finds(store, ["c2", "c2"], digests=(digest("cut too"),))

    def test_a_look_up_finds_every_event_that_is_not_a_delivery(self, store: Store) -> None:
        others: list[Event] = [Wrote("w", ("/r/z",)), Failed("f", "x", "y"), Rewound("r"), Compacted(frozenset({"c1"}))]
        store.append("s", "a", [shows("c1"), *others], 1.0)
        found = [record.event for record in store.records_about("s", "a", ["/r/q"], [])]
        assert found[-4:] == others

    def test_a_look_up_finds_the_newest_delivery_even_when_it_is_gone(self, store: Store) -> None:
        store.append("s", "a", [shows("c1"), shows("c2"), Compacted(frozenset())], 1.0)
        found = [record.event for record in store.records_about("s", "a", [], [])]
        assert found[-2:] == [shows("c2"), Compacted(frozenset())]
        assert len(found) == 2 or not self.looks_up(store)

    @given(log=st.data())
    def test_a_view_of_what_was_looked_up_agrees_with_the_view_of_everything(self, store: Store, log: Any) -> None:
        session = next(FRESH)
        for agent, event in log.draw(logs()):
            store.append(session, agent, [event], 1.0)
        complete = fold(store.records(session, "main"))
        for path in PATHS:
            self.agree(store, session, complete, [path], [])
        for text in TEXTS:
            self.agree(store, session, complete, [], [digest(text)])
        self.agree(store, session, complete, PATHS, [digest(text) for text in TEXTS])

    def test_a_file_that_a_cut_left_no_line_of_is_as_unknown_as_one_that_was_never_shown(self, store: Store) -> None:
        gone: list[Event] = [shows("c1", "/r/a"), Amended("c1", "cut\n", ()), Compacted(frozenset())]
        for event in (*gone, Wrote("w", ("/r/a",), "edit", 2), shows("c2", "/r/a")):
            store.append("s", "main", [event], 1.0)
        self.agree(store, "s", fold(store.records("s", "main")), ["/r/a"], [])

    def test_a_call_id_that_was_used_before_everything_was_removed_does_not_say_which_call_is_meant(
        self, store: Store
    ) -> None:
        for used in (shows("c1", text="one\n"), Wrote("c1", ("/r/a",), "edit", 1)):
            session, again = next(FRESH), replace(shows("c1"), when=Moment(3, 30))
            last = replace(shows("c2", "/r/b"), when=Moment(2, 20))
            for event in (used, last, Compacted(frozenset()), again, Rewound("c1")):
                store.append(session, "main", [event], 1.0)
            self.agree(store, session, fold(store.records(session, "main")), ["/r/a"], [])
            store.append(session, "main", [again, Compacted(frozenset({"c1"}))], 1.0)
            self.agree(store, session, fold(store.records(session, "main")), ["/r/a"], [])

    def test_a_call_that_others_came_between_was_not_judged_again(self, store: Store) -> None:
        judged = replace(shows("c1", text="one\n"), account=ACCOUNTS[0])
        for number, event in enumerate((judged, shows("c2", "/r/b"), judged), 1):
            store.append("s", "main", [replace(event, when=Moment(number, 10 * number))], 1.0)
        store.append("s", "main", [Rewound("c1")], 1.0)
        self.agree(store, "s", fold(store.records("s", "main")), ["/r/a"], [])

    def agree(self, store: Store, session: str, complete: View, keys: list[str], digests: list[str]) -> None:
        records = list(store.records_about(session, "main", keys, digests))
        everything = list(store.records(session, "main"))
        assert [record.seq for record in records] == sorted({record.seq for record in records})
        assert all(record in everything for record in records)
        part = fold(records)
        assert (part.calls.number, part.calls.tokens) == (complete.calls.number, complete.calls.tokens)
        assert [known(part, key) for key in keys] == [known(complete, key) for key in keys]
        for name in digests:
            found = part.identical(name)
            if found is None:
                assert complete.identical(name) is None
            else:
                assert found.event in [delivery.event for delivery in complete.of_call(found.event.call_id)]

    # ------------------------------------------------------------ taking out

    def test_of_a_session_that_was_taken_out_each_reader_has_that_nothing_is_visible(self, store: Store) -> None:
        store.append("s", "main", [shows("c1"), Wrote("w1", ("/r/a",))], 1.0)
        last = store.append("s", "child", [shows("d1")], 2.0)
        store.append("t", "main", [shows("c1"), shows("c2", text="y\n")], 3.0)
        store.take_out("s", at=4.0)
        left = list(store.records("s"))
        assert {(record.agent_id, record.at, record.event) for record in left} == {
            ("main", 4.0, Compacted(frozenset())),
            ("child", 4.0, Compacted(frozenset())),
        }
        assert min(record.seq for record in left) > last
        assert list(store.sessions()) == [("s", "child", 1, 4.0), ("s", "main", 1, 4.0), ("t", "main", 2, 3.0)]
        assert [record.event.text for record in store.records("t")] == ["x\n", "y\n"]  # type: ignore[union-attr]
        assert calls(store.records_about("t", "main", ["/r/a"], [])) == ["c1", "c2"]
        assert [record.event for record in store.records_about("s", "main", ["/r/a"], [])] == [Compacted(frozenset())]

    def test_a_session_that_was_taken_out_goes_on_with_nothing(self, store: Store) -> None:
        store.append("s", "main", [shows("c1"), Wrote("w1", ("/r/a",))], 1.0)
        store.take_out("s", at=2.0)
        store.append("s", "main", [shows("c1")], 3.0)
        assert [type(record.event) for record in store.records("s", "main")] == [Compacted, Delivered]
        assert [type(record.event) for record in store.records_about("s", "main", ["/r/a"], [])] == [
            Compacted,
            Delivered,
        ]

    def test_what_stands_for_a_session_is_kept_while_a_process_may_hold_it(self, store: Store) -> None:
        store.append("s", "main", [shows("c1")], 1.0)
        store.take_out("s", at=2.0)
        store.take_out("s", at=3.0)
        assert list(store.sessions()) == [("s", "main", 1, 3.0)]
        store.take_out("s", at=3.0 + IN_USE_SECONDS)
        assert list(store.sessions()) == []
        assert list(store.records("s")) == []

    def test_a_text_that_another_session_shows_stays(self, store: Store) -> None:
        for session in ("s", "t"):
            store.append(session, "main", [shows("c1", text="the same\n")], 1.0)
        store.take_out("s", at=2.0)
        assert [record.event.text for record in store.records("t")] == ["the same\n"]  # type: ignore[union-attr]

    def test_taking_out_what_is_not_there_leaves_no_trace(self, store: Store) -> None:
        store.take_out("s", at=1.0)
        assert list(store.sessions()) == []

    # ------------------------------------------------------------ transactions

    def test_a_transaction_left_by_an_exception_leaves_nothing(self, store: Store) -> None:
        store.append("s", "a", [shows("c1")], 1.0)
        with contextlib.suppress(KeyError), store.transaction():
            store.append("s", "a", [shows("c2"), Compacted(frozenset())], 2.0)
            store.append("s", "new", [Wrote("w", ("/r/a",))], 2.0)
            assert len(list(store.records("s"))) == 4
            raise KeyError
        assert calls(store.records("s")) == ["c1"]
        assert calls(store.records_about("s", "a", ["/r/a"], [])) == ["c1"]
        assert list(store.sessions()) == [("s", "a", 1, 1.0)]

    def test_a_failed_inner_transaction_leaves_nothing_and_may_take_the_outer_one_with_it(self, store: Store) -> None:
        lost = False
        try:
            with store.transaction():
                store.append("s", "a", [shows("c1")], 1.0)
                with contextlib.suppress(KeyError), store.transaction():
                    store.append("s", "a", [shows("c2")], 1.0)
                    raise KeyError
        except StoreError:
            lost = True
        assert calls(store.records("s")) == ([] if lost else ["c1"])
        store.append("s", "a", [shows("c3")], 1.0)
        assert calls(store.records("s"))[-1] == "c3"

    def test_a_transaction_within_another_is_a_part_of_it(self, store: Store) -> None:
        with store.transaction():
            store.append("s", "a", [shows("c1")], 1.0)
            with store.transaction():
                store.append("s", "a", [shows("c2")], 1.0)
            assert calls(store.records("s")) == ["c1", "c2"]
        assert calls(store.records("s")) == ["c1", "c2"]

    def test_a_failed_outer_transaction_takes_the_inner_ones_with_it(self, store: Store) -> None:
        with contextlib.suppress(KeyError), store.transaction():
            with store.transaction():
                store.append("s", "a", [shows("c1")], 1.0)
            raise KeyError
        assert list(store.records("s")) == []
        store.append("s", "a", [shows("c2")], 1.0)
        assert calls(store.records("s")) == ["c2"]

    def test_threads_judge_one_after_the_other(self, store: Store) -> None:
        def work() -> None:
            for _ in range(25):
                with store.transaction():
                    seen = len(list(store.records("s", "a")))
                    store.append("s", "a", [shows(str(seen))], 1.0)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert calls(store.records("s", "a")) == [str(n) for n in range(100)]

    # ------------------------------------------------------------ closing

    def test_closing_twice_is_allowed(self, store: Store) -> None:
        store.close()
        store.close()

    @pytest.mark.parametrize(
        "use",
        [
            lambda store: store.append("s", "a", [], 1.0),
            lambda store: list(store.records("s")),
            lambda store: list(store.records_about("s", "a", [], [])),
            lambda store: list(store.sessions()),
            lambda store: store.take_out("s", 1.0),
            lambda store: store.transaction().__enter__(),
        ],
    )
    def test_a_closed_store_says_so(self, store: Store, use: Callable[[Store], Any]) -> None:
        store.close()
        with pytest.raises(StoreError, match="closed"):
            use(store)


class TestStores(StoreConformance):
    @pytest.fixture(params=["memory", "sqlite"])
    def store_factory(self, request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
        return MemoryStore if request.param == "memory" else lambda: SqliteStore(tmp_path / "store.db")


# What the agreement test plays with: few names, so that they meet.

PATHS = ["/r/a", "/r/d/b", "/r/d/c"]
TEXTS = ["one\n" * 40, "two\n" * 40]
ACCOUNTS = [Account(request, Outcome.FULL, Reason.NOT_SEEN, 160, 0) for request in ("cat a", "cat b")]
CALL_IDS = st.sampled_from(["c1", "c2", "c3", "c4", "c5"])


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[str, Event]]:
    """A session's events with their contexts: calls are counted, what is settled is a part of what was delivered."""
    out: list[tuple[str, Event]] = []
    numbers: dict[str, int] = {}
    shown: dict[tuple[str, str], list[MappedSpan]] = {}
    for kind in draw(st.lists(st.sampled_from("dddddwsgckrrf"), max_size=14)):
        agent = draw(st.sampled_from(["main", "main", "main", "child"]))
        call_id = draw(CALL_IDS)
        if kind in "dw":
            numbers[agent] = numbers.get(agent, 0) + 1
        made = draw(event(kind, call_id, numbers.get(agent, 0), shown.get((agent, call_id), [])))
        if isinstance(made, Delivered):
            shown[agent, call_id] = list(made.source_map)
        out.append((agent, made))
    return out


def event(kind: str, call_id: str, call: int, shown: list[MappedSpan]) -> st.SearchStrategy[Event]:
    keys = st.lists(st.sampled_from(PATHS), min_size=1, max_size=2).map(tuple)
    source_map = st.lists(
        st.builds(MappedSpan, keys, st.just(0), st.integers(1, 9), st.integers(0, 9)), max_size=2
    ).map(tuple)
    changed = st.lists(st.sampled_from([*PATHS, "/r/d"]), max_size=1).map(tuple)
    texts, kept = st.sampled_from(TEXTS), st.frozensets(CALL_IDS, max_size=3)
    origins = st.sampled_from([Origin.RESULT, Origin.RESULT, Origin.COMMAND])
    made: dict[str, st.SearchStrategy[Event]] = {
        "d": st.builds(
            Delivered,
            call_id=st.just(call_id),
            text=texts,
            label=st.just("cat"),
            origin=origins,
            source_map=source_map,
            changed=changed,
            when=st.just(Moment(call, call * 10)),
            account=st.sampled_from([None, *ACCOUNTS]),
        ),
        "w": st.builds(Wrote, st.just(call_id), keys, st.just("edit"), st.just(call)),
        "s": st.builds(
            Amended, st.just(call_id), texts, st.sampled_from([(), tuple(shown[:1]), tuple(shown)]), origin=origins
        ),
        "g": st.builds(Forgot, kept),
        "c": st.just(Compacted(frozenset())),
        "k": st.builds(Compacted, kept),
        "r": st.just(Rewound(call_id)),
        "f": st.just(Failed(call_id, "internal_error", "")),
    }
    return made[kind]


def fold(records: Any) -> View:
    view = View()
    record: Record
    for record in records:
        if record.agent_id == "main":
            view.apply(record.event)
        elif isinstance(record.event, Wrote):
            view.apply(Wrote("", record.event.keys, record.event.label))
    return view


def known(view: View, key: str) -> Any:
    """All that a view knows of a key, as plain data. What made spans stale is asked only where there are some."""

    def plain(visible: VisibleSpan) -> tuple[Delivered, MappedSpan]:
        return visible.delivery.event, visible.mapped

    state = view.key(key)
    spans = [(start, end, plain(visible)) for start, end, visible in state.numbered.overlaps(1, 10**9)]
    loose, stale = [plain(r) for r in state.loose], [plain(r) for r in state.stale]
    return spans, loose, stale, state.invalid if stale else None
