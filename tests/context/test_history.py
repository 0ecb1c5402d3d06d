from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.context import History
from readcache.log.store.codec import decode
from readcache.messages.structure import cut_points, repair
from readcache.model.errors import StoreError
from readcache.model.history_events import CondensationRequested, Condensed, HistoryEvent, Item, Replaced
from tests.helpers.chats import APIS, scripted, user
from tests.helpers.histories import condensed, history_of, itemised, items, restart, through_json

REQUEST = CondensationRequested()
shapes = st.sampled_from(APIS)


def ids(*events: HistoryEvent) -> str:
    """The ids in view after these events, which a restart does not change."""
    history = history_of(events)
    restarted = restart(history)
    assert (restarted.view, restarted.requested, restarted.events) == (history.view, history.requested, history.events)
    return " ".join(item.id for item in history.view)


# ------------------------------------------------------------ items and forgetting


def test_without_condensations_all_items_are_in_view_in_order() -> None:
    assert ids() == ""
    assert ids(*items("a", "b", "c")) == "a b c"


@pytest.mark.parametrize("shape", APIS)
def test_messages_of_every_kind_are_given_back_as_they_came(shape: str) -> None:
    messages = scripted(shape, "u t1,2 r1 e2 s")
    history = history_of(Item(f"m{n}", message) for n, message in enumerate(messages))
    assert history.messages() == messages
    assert restart(history).messages() == messages


def test_forgotten_items_leave_the_view_and_stay_in_the_log() -> None:
    history = history_of([*items("a", "b", "c"), condensed("k", "a c")])
    assert history.messages() == [user("b")]
    assert history.events[:3] == tuple(items("a", "b", "c"))


@pytest.mark.parametrize("name", "abcd")
def test_each_single_item_can_be_forgotten_and_all_others_stay(name: str) -> None:
    assert ids(*items(*"abcd"), condensed("k", name)) == " ".join("abcd".replace(name, ""))


def test_forgetting_is_by_sets_so_that_what_lies_between_stays() -> None:
    assert ids(*items(*"abcde"), condensed("k", "a e c")) == "b d"


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ([*items("a", "b"), condensed("k", "a b")], ""),
        ([condensed("k", "a")], ""),
        ([*items("a"), condensed("k")], "a"),
        ([*items("a"), condensed("k", "x y-summary")], "a"),
        ([*items("a", "b"), condensed("k", "a"), *items("c"), condensed("l", "b")], "c"),
        ([*items("a", "b"), condensed("k", "a"), condensed("l", "a b"), *items("c")], "c"),
    ],
    ids=["all", "on_an_empty_view", "none", "unknown_ids", "in_sequence", "what_is_forgotten_already"],
)
def test_forgetting(events: list[HistoryEvent], left: str) -> None:
    assert ids(*events) == left


def test_what_is_replaced_keeps_its_place_and_its_id() -> None:
    history = history_of([*items("a", "b", "c"), Replaced("b", user("B")), Replaced("x", user("X"))])
    assert history.messages() == [user("a"), user("B"), user("c")]
    history.append(condensed("k", "b"))
    history.append(Replaced("b", user("again")))
    assert history.messages() == [user("a"), user("c")]


# ------------------------------------------------------------ summaries


@pytest.mark.parametrize(
    ("offset", "view"),
    [(0, "k-summary b d"), (1, "b k-summary d"), (2, "b d k-summary"), (3, "b d k-summary"), (99, "b d k-summary")],
)
def test_a_summary_is_inserted_at_its_offset_among_what_is_left(offset: int, view: str) -> None:
    assert ids(*items(*"abcd"), condensed("k", "a c", "so far", offset)) == view


def test_a_summary_is_a_user_message() -> None:
    assert history_of([condensed("k", summary="so far", offset=0)]).messages() == [user("so far")]


def test_an_empty_summary_is_a_summary() -> None:
    assert ids(condensed("k", summary="", offset=0)) == "k-summary"


S1, S2, S3 = (condensed(name, summary=name, offset=at) for at, name in enumerate(("k", "l", "m")))
MANY = {
    "two_at_different_offsets": ([*items("a", "b"), condensed("k", "", "k", 0), condensed("l", "", "l", 2)], "K a L b"),
    "three_in_sequence": ([*items("a"), S1, *items("b"), S2, *items("c"), S3], "K L M a b c"),
    "the_first_forgotten": ([*items("a"), S1, S2, S3, condensed("n", "k-summary")], "L M a"),
    "the_middle_one_forgotten": ([*items("a"), S1, S2, S3, condensed("n", "l-summary")], "K M a"),
    "the_latest_forgotten": ([*items("a"), S1, S2, S3, condensed("n", "m-summary")], "K L a"),
    "several_forgotten": ([*items("a"), S1, S2, S3, condensed("n", "k-summary m-summary")], "L a"),
    "all_forgotten": ([*items("a"), S1, S2, S3, condensed("n", "k-summary l-summary m-summary")], "a"),
    "places_shift_when_one_before_goes": (
        [*items("a"), S1, *items("b"), condensed("l", "", "l", 2), *items("c"), condensed("n", "k-summary")],
        "a L b c",
    ),
    "each_forgets_the_one_before": (
        [*items("a"), S1, *items("b"), condensed("l", "k-summary", "l", 0), condensed("m", "l-summary", "m", 0)],
        "M a b",
    ),
    "each_rolls_up_what_is_older": (
        [*items("a", "b"), condensed("k", "a", "k", 0), *items("c"), condensed("l", "k-summary b", "l", 0)],
        "L c",
    ),
    "items_and_a_summary_forgotten_together": (
        [*items("a", "b"), condensed("k", "", "k", 1), *items("c", "d"), condensed("l", "a c k-summary", "l", 0)],
        "L b d",
    ),
    "the_offset_counts_what_is_left": ([*items(*"abcd"), condensed("k", "a b", "k", 2), *items("e")], "c d K e"),
    "the_offset_is_a_place_in_the_view": ([*items(*"abc"), condensed("k", "a b", "k", 1), *items("d")], "c K d"),
    "at_one_offset_the_later_stands_before": (
        [*items("a"), condensed("k", "", "k", 1), condensed("l", "", "l", 1), *items("b")],
        "a L K b",
    ),
    "three_times_one_offset": (
        [*items("a", "b"), *(condensed(name, "", name, 1) for name in "klm")],
        "a M L K b",
    ),
    "items_and_summaries_interleaved": (
        [*items("a"), S1, *items("b", "c"), condensed("l", "b", "l", 2), *items("d"), condensed("m", "a", "m", 3)],
        "K L c M d",
    ),
    "nothing_but_summaries": ([*items("a", "b"), condensed("k", "a b", "k", 0), condensed("l", "", "l", 1)], "K L"),
    "one_without_summary_between": ([*items("a", "b"), S1, condensed("l", "a"), condensed("m", "", "m", 2)], "K b M"),
    "a_summary_that_is_not_there_forgotten": ([*items("a"), S1, condensed("l", "m-summary")], "K a"),
    "a_summary_replaced": ([*items("a"), S1, Replaced("k-summary", user("better"))], "K a"),
}


@pytest.mark.parametrize(("events", "view"), MANY.values(), ids=MANY)
def test_several_summaries(events: list[HistoryEvent], view: str) -> None:
    """A capital stands for the summary of the condensation of that name."""
    assert ids(*events) == " ".join(f"{name.lower()}-summary" if name.isupper() else name for name in view.split())


def test_a_summary_has_its_id_from_its_condensation_alone() -> None:
    event = condensed("k", summary="so far", offset=0)
    for before in ([], items("a", "b")):
        assert history_of([*before, event]).view[0] == Item(event.summary_id, user("so far"))
    assert event.summary_id == "k-summary"


# ------------------------------------------------------------ requests

REQUESTS = {
    "none": ([], False),
    "items_alone": (items("a"), False),
    "no_condensation": ([*items("a"), REQUEST], True),
    "asked_twice": ([REQUEST, REQUEST], True),
    "answered": ([REQUEST, condensed("k")], False),
    "answered_twice": ([REQUEST, condensed("k"), condensed("l")], False),
    "asked_after_the_answer": ([condensed("k"), REQUEST], True),
    "asked_answered_asked": ([REQUEST, condensed("k"), REQUEST], True),
    "only_a_condensation": ([condensed("k")], False),
    "items_answer_nothing": ([REQUEST, *items("a"), Replaced("a", user("A"))], True),
}


@pytest.mark.parametrize(("events", "requested"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_stands_until_a_condensation(events: list[HistoryEvent], requested: bool) -> None:
    history = history_of(events)
    assert history.requested is requested
    assert {item.id for item in history.view} <= {"a"}, "neither requests nor condensations are in view"


# ------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("summary", "offset", "said"), [("so far", None, "offset"), (None, 0, "summary"), ("so far", -1, "-1")]
)
def test_half_a_summary_or_a_negative_offset_is_no_condensation(
    summary: str | None, offset: int | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Condensed("k", frozenset("a"), summary, offset)


REUSES = [
    items("a")[0],
    items("gone")[0],
    condensed("k", summary="again", offset=0),
    Item("k-summary", user("as good as one")),
]


@pytest.mark.parametrize("event", REUSES, ids=lambda event: type(event).__name__)
def test_an_id_is_given_once_and_a_refusal_changes_nothing(event: HistoryEvent) -> None:
    history = history_of([*items("a", "gone"), condensed("k", "gone", "so far", 0), REQUEST])
    before = (history.view, history.requested, history.events)
    with pytest.raises(ValueError, match="already has an item"):
        history.append(event)
    assert (history.view, history.requested, history.events) == before
    assert history.view is before[0]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("item", {"id": "a"}),
        ("item", {"id": "a", "message": []}),
        ("item", {"id": "a", "message": {}, "more": 1}),
        ("condensed", {"id": "k", "forgotten": "abc"}),
        ("condensed", {"id": "k", "summary": "s"}),
        ("condensed", {"id": "k", "summary": "s", "offset": -1}),
        ("condensed", {"id": "k", "summary": "s", "offset": "1"}),
    ],
    ids=repr,
)
def test_a_store_that_holds_no_such_event_is_called_damaged_or_newer(kind: str, body: Any) -> None:
    with pytest.raises(StoreError, match=r"damaged|newer readcache"):
        decode(kind, body, None)


# ------------------------------------------------------------ the fold: incremental, replayed, restarted

NAMES = st.sampled_from("abcdef")
SUMMARY_NAMES = st.sampled_from("klmn")
OFFSETS = st.integers(0, 7)
ANY_ID = NAMES | SUMMARY_NAMES.map("{}-summary".format)
FORGOTTEN = st.frozensets(ANY_ID, max_size=4)
EVENTS: st.SearchStrategy[HistoryEvent] = st.one_of(
    st.builds(Item, NAMES, NAMES.map(user)),
    st.builds(Replaced, ANY_ID, NAMES.map(user)),
    st.builds(Condensed, SUMMARY_NAMES, FORGOTTEN, st.sampled_from(["so far", "", "é\n😀"]), OFFSETS),
    st.builds(Condensed, SUMMARY_NAMES, FORGOTTEN),
    st.just(REQUEST),
)


def plainly(log: list[HistoryEvent]) -> tuple[list[tuple[str, Any]], bool]:
    """The view and the flag as the definition says them: a list, and all of the log each time."""
    view: list[tuple[str, Any]] = []
    for event in log:
        if isinstance(event, Item):
            view.append((event.id, event.message))
        elif isinstance(event, Replaced):
            view = [(name, event.message if name == event.id else message) for name, message in view]
        elif isinstance(event, Condensed):
            view = [entry for entry in view if entry[0] not in event.forgotten]
            if event.summary is not None:
                assert event.offset is not None
                view.insert(event.offset, (f"{event.id}-summary", user(event.summary)))
    asked = [isinstance(event, CondensationRequested) for event in log]
    answered = [isinstance(event, Condensed) for event in log]
    return view, any(was and not any(answered[at:]) for at, was in enumerate(asked))


@given(st.lists(EVENTS, max_size=25))
def test_folding_one_by_one_is_replaying_all_is_restarting(events: list[HistoryEvent]) -> None:
    history = History()
    log: list[HistoryEvent] = []
    for event in events:
        before = (history.view, history.requested)
        try:
            history.append(event)
        except ValueError:
            assert (history.view, history.requested) == before
            continue
        log.append(event)
        assert ([(item.id, item.message) for item in history.view], history.requested) == plainly(log)
    for other in (history_of(log), restart(history)):
        assert (other.view, other.requested, other.events) == (history.view, history.requested, tuple(log))


@given(EVENTS)
def test_an_event_is_the_same_after_json(event: HistoryEvent) -> None:
    assert through_json(event) == event


def test_the_view_is_the_same_object_until_something_changes_it() -> None:
    history = history_of(items("a", "b"))
    view = history.view
    for event in (REQUEST, condensed("k"), condensed("l", "unknown"), Replaced("unknown", user("x"))):
        history.append(event)
        assert history.view is view
    for changing in (*items("c"), Replaced("a", user("A")), condensed("m", "b"), condensed("n", "", "so far", 0)):
        before = history.view
        history.append(changing)
        assert history.view is not before
        assert history.view is history.view
    assert view == (Item("a", user("a")), Item("b", user("b"))), "whoever holds an older view keeps it"


def test_what_is_done_to_the_list_of_messages_does_not_touch_the_history() -> None:
    history = history_of(items("a", "b"))
    history.messages().clear()
    assert history.messages() == [user("a"), user("b")]


def test_a_log_that_cannot_be_replayed_leaves_the_history_that_is_there() -> None:
    history = history_of(items("a"))
    with pytest.raises(ValueError, match="already has an item"):
        history = history_of([*history.events, *items("a")])
    assert history.messages() == [user("a")]


def shortest(action: Callable[[], None]) -> float:
    """Seconds, the best of five."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def test_an_append_costs_the_same_in_a_history_a_thousand_times_as_long() -> None:
    """One that copied the view would be some thousand times slower."""

    def appending(length: int) -> Callable[[], None]:
        history = history_of(Item(f"{n}", user("x")) for n in range(length))
        count = iter(range(10**9))

        def append() -> None:
            for n in (next(count) for _ in range(200)):
                history.append(Item(f"new {n}", user("y")))
                history.append(Replaced(f"new {n}", user("z")))
                history.append(Condensed(f"k {n}", frozenset([f"new {n}"])))

        return append

    assert shortest(appending(20_000)) < 20 * shortest(appending(20))


# ------------------------------------------------------------ condensation and the structure of messages


@pytest.mark.parametrize("shape", APIS)
@pytest.mark.parametrize(
    ("script", "forgotten", "left"),
    [
        ("u c1,2 r1 r2", "2", "u - - -"),
        ("u c1,2,3 r1 r2 r3", "2 3", "u - - - -"),
        ("u c1,2 r1 r2 u c3,4 r3 r4", "2", "u - - - u c3,4 r3 r4"),
        ("u c1 r1", "2", "u - -"),
        ("u c1,2 r1 r2 u", "1", "u - - - u"),
        ("u c1,2 r1 r2 u", "1 2 3", "u - - - u"),
        ("u c1,2 r1 r2 u", "", "u c1,2 r1 r2 u"),
        ("u t1 r1 c2 r2 u", "1 2", "u - - c2 r2 u"),
        ("u t1 r1 c2 r2 u", "2", "u - - - - u"),
    ],
    ids=[
        "a_result_of_a_batch",
        "several_results_of_a_batch",
        "a_result_beside_another_batch",
        "the_result_of_a_single_call",
        "the_calls_of_a_batch",
        "a_whole_batch",
        "nothing",
        "a_head_of_a_thinking_loop_that_nothing_shows",
        "a_result_in_a_thinking_loop",
    ],
)
def test_a_condensation_that_tears_a_unit_is_mended(shape: str, script: str, forgotten: str, left: str) -> None:
    """A condensation forgets what it names and no more; what that breaks `repair` takes out."""
    messages = scripted(shape, script)
    history = itemised(messages)
    history.append(condensed("k", " ".join(f"m{n}" for n in forgotten.split())))
    kept = [message for message, word in zip(messages, left.split(), strict=True) if word != "-"]
    assert repair(history.messages()) == kept


@given(shapes, st.integers(0, 9), st.integers(0, 9))
def test_condensing_between_cut_points_keeps_the_view_well_formed(shape: str, first: int, last: int) -> None:
    messages = scripted(shape, "u c1,2 r2 r1 u t3 r3 c4 r4 s u c5 r5")
    points = cut_points(messages)
    start, end = sorted((points[first % len(points)], points[last % len(points)]))
    history = itemised(messages)
    history.append(condensed("k", " ".join(f"m{n}" for n in range(start, end)), "so far", start))
    assert repair(history.messages()) == history.messages()
    assert history.view[start] == Item("k-summary", user("so far"))
