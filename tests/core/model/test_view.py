"""The view, held against a slow one that is computed anew from the whole log each time."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from hypothesis import given

from readcache import Policy, Reason, Session
from readcache.core.model.events import (
    Amended,
    Compacted,
    Delivered,
    Event,
    Forgot,
    MappedSpan,
    Moment,
    Origin,
    Rewound,
    Wrote,
)
from readcache.core.model.text import split_lines
from readcache.core.model.view import View
from tests.helpers.files import TEXT
from tests.helpers.strategies import CALLS, KEYS, histories


def slow_view(log: list[Event]) -> tuple[list[Delivered], dict[str, int]]:
    """What is visible, oldest first, and at which position each key was last written or seen changed."""
    shown: list[Delivered] = []
    numbers: dict[str, int] = {}
    named: dict[str, int] = {}  # the first call that had an id
    reused: set[str] = set()
    invalid: dict[str, int] = {}
    order: dict[int, int] = {}

    def outdate(pattern: str, position: int) -> None:
        for key in KEYS:
            if key == pattern or key.startswith(pattern.rstrip("/") + "/") or fnmatchcase(key, pattern):
                invalid[key] = position

    for position, event in enumerate(log):
        if isinstance(event, Delivered):
            shown = [old for old in shown if old.call_id != event.call_id]
            for key in event.changed:
                outdate(key, position)
            shown.append(event)
            order[id(event)] = position
            reused |= {event.call_id} if named.setdefault(event.call_id, event.when.call) != event.when.call else set()
            numbers[event.call_id] = event.when.call
        elif isinstance(event, Wrote):
            if event.call_id:
                reused |= {event.call_id} if named.setdefault(event.call_id, event.call) != event.call else set()
                numbers[event.call_id] = event.call
            for key in (*event.keys, *event.possible_writes):
                outdate(key, position)
        elif isinstance(event, Amended):
            for k, old in enumerate(shown):
                if old.call_id == event.call_id:
                    shown[k] = Delivered(old.call_id, event.text, old.label, source_map=event.source_map, when=old.when)
                    order[id(shown[k])] = order[id(old)]
        elif isinstance(event, (Compacted, Forgot)):
            if isinstance(event, Forgot):  # an id that comes again after this is another call's
                named = dict.fromkeys(event.call_ids, 0) | named
            kept = frozenset[str]() if isinstance(event, Forgot) else event.kept - reused
            gone = event.call_ids if isinstance(event, Forgot) else {old.call_id for old in shown} - kept
            numbers = {call_id: number for call_id, number in numbers.items() if call_id not in gone}
            shown = [old for old in shown if old.call_id not in gone]
        elif isinstance(event, Rewound):
            last = -1 if event.call_id in reused else numbers.get(event.call_id, -1)
            for old in shown:
                if old.when.call > last:
                    del numbers[old.call_id]
            shown = [old for old in shown if old.when.call <= last]
    current = {key: invalid.get(key, -1) for key in KEYS}
    kept_order = {old.call_id: order[id(old)] for old in shown}
    return shown, current | {f"@{call}": at for call, at in kept_order.items()}


def lines_of(view: View, key: str) -> dict[int, tuple[str, str]]:
    """Line number -> (call, text) as the view knows it."""
    out = {}
    for start, end, seen in view.key(key).numbered.overlaps(1, 1_000):
        bodies = view.bodies(seen)
        for number in range(start, end + 1):
            out[number] = (seen.delivery.event.call_id, bodies[number - seen.mapped.first])
    return out


def slow_lines(shown: list[Delivered], at: dict[str, int], key: str) -> dict[int, tuple[str, str]]:
    out = {}
    for event in shown:
        for mapped in event.source_map:
            if key in mapped.keys and mapped.first and at[f"@{event.call_id}"] >= at[key]:
                texts = split_lines(event.text)
                for k in range(mapped.count):
                    out[mapped.first + k] = (event.call_id, texts[mapped.at + k])
    return out


@given(histories())
def test_the_view_is_what_the_whole_log_says_at_every_moment(log: list[Event]) -> None:
    view = View()
    for n, event in enumerate(log, 1):
        view.apply(event)
        shown, at = slow_view(log[:n])
        assert [d.event.call_id for d in view.deliveries] == [old.call_id for old in shown]
        assert [d.event.text for d in view.deliveries] == [old.text for old in shown]
        for key in KEYS:
            assert lines_of(view, key) == slow_lines(shown, at, key)


@given(histories())
def test_a_view_folded_anew_is_the_same(log: list[Event]) -> None:
    kept, anew = View(), View()
    for event in log:
        kept.apply(event)
        for key in KEYS:
            kept.covers(key, 1, 9)
            for seen in kept.key(key).visible_spans():
                kept.bodies(seen)  # what is remembered of it must not go stale
    for event in log:
        anew.apply(event)
    for key in KEYS:
        assert lines_of(kept, key) == lines_of(anew, key)
    assert bookkeeping(kept) == bookkeeping(anew)


@given(histories())
def test_what_is_gone_is_found_nowhere(log: list[Event]) -> None:
    view = View()
    for event in log:
        view.apply(event)
    visible = {delivery.event.call_id for delivery in view.deliveries}
    for call in CALLS:
        assert view.is_visible(call) == (call in visible)
    keys = view.known_keys()
    for key in keys:
        assert {seen.delivery.event.call_id for seen in view.key(key).visible_spans()} <= visible


def bookkeeping(view: View) -> object:
    return view.calls.counts, view.calls.number, view.calls.tokens


# ------------------------------------------------------------ single rules


def delivered(call_id: str, first: int, count: int, call: int, key: str = "/w/f") -> Delivered:
    text = "".join(f"{call_id} line {n}\n" for n in range(first, first + count))
    return Delivered(call_id, text, "cat", source_map=(MappedSpan((key,), 0, count, first),), when=Moment(call))


def test_covers_asks_for_every_line() -> None:
    view = View()
    view.apply(delivered("c1", 1, 10, 1))
    view.apply(delivered("c2", 12, 10, 2))
    assert view.covers("/w/f", 1, 10)
    assert view.covers("/w/f", 15, 21)
    assert not view.covers("/w/f", 9, 13)
    assert not view.covers("/w/other", 1, 1)


def test_a_rewind_to_a_call_that_is_not_known_forgets_everything() -> None:
    view = View()
    view.apply(delivered("c1", 1, 10, 1))
    view.apply(Rewound("never heard of"))
    assert not view.deliveries
    assert not view.covers("/w/f", 1, 1)


def test_a_rewind_keeps_the_call_itself() -> None:
    view = View()
    for n in (1, 2, 3):
        view.apply(delivered(f"c{n}", n, 1, n))
    view.apply(Rewound("c2"))
    assert [d.event.call_id for d in view.deliveries] == ["c1", "c2"]


def test_the_texts_of_one_call_are_settled_each_by_itself() -> None:
    view = View()
    view.apply(replace(delivered("c1", 1, 5, 1), origin=Origin.COMMAND))
    view.apply(delivered("c1", 1, 5, 1, "/w/g"))
    view.apply(Amended("c1", "", origin=Origin.COMMAND))
    assert not view.covers("/w/f", 1, 1)
    assert view.covers("/w/g", 1, 5)


def test_a_call_that_is_forgotten_takes_its_texts_with_it_and_no_others() -> None:
    view = View()
    for n in (1, 2, 3):
        view.apply(delivered(f"c{n}", n, 1, n))
    view.apply(Forgot(frozenset({"c2", "never heard of"})))
    assert [d.event.call_id for d in view.deliveries] == ["c1", "c3"]


def test_an_id_that_is_used_twice_names_the_newer_text_only() -> None:
    view = View()
    view.apply(delivered("c1", 1, 5, 1))
    view.apply(delivered("c1", 20, 5, 2))
    assert not view.covers("/w/f", 1, 5)
    assert view.covers("/w/f", 20, 24)


def test_a_write_of_another_context_outdates_what_was_read() -> None:
    parent = Session("/w")
    parent.observe("cat f", TEXT)
    parent.fork("helper").wrote("f")
    assert parent.observe("cat f", TEXT).reason is Reason.WRITTEN


def test_a_write_of_another_context_is_no_call_of_this_one() -> None:
    parent = Session("/w")
    parent.observe("cat f", TEXT)
    parent.fork("helper").wrote("g")
    assert parent.view.calls.number == 1
    assert parent.observe("cat f", TEXT).reason is Reason.COVERED


def test_a_write_to_a_directory_outdates_what_lies_below() -> None:
    view = View()
    view.apply(delivered("c1", 1, 5, 1, "/w/d/f"))
    view.apply(delivered("c2", 1, 5, 2, "/w/dd"))
    view.apply(Wrote("c3", ("/w/d",), "rm -r d", 3))
    assert not view.covers("/w/d/f", 1, 5)
    assert view.covers("/w/dd", 1, 5)


def test_beyond_the_horizon_nothing_is_a_source() -> None:
    session = Session("/w", policy=Policy(horizon_tokens=1_000))
    session.observe("cat f", TEXT)
    session.observe("make", "x" * 2_999)
    assert session.observe("head -n 60 f", TEXT).reason is Reason.COVERED
    session.observe("make", "y" * 3_100)
    assert session.observe("cat f", TEXT).text == TEXT


def test_only_whole_lines_of_a_settled_text_count() -> None:
    session = Session("/w")
    lines = split_lines(TEXT)
    session.observe("cat f", TEXT, call_id="c1")
    session.settle("c1", "\n".join(lines[:20]) + "\n" + lines[20][:10] + "\n[cut]\n" + "\n".join(lines[30:]) + "\n")
    assert session.view.covers("/w/f", 1, 20)
    assert session.view.covers("/w/f", 31, 40)
    assert not session.view.covers("/w/f", 21, 21)
    reply = session.observe("sed -n '16,40p' f", "".join(line + "\n" for line in lines[15:]))
    assert lines[20] in reply.text
    assert lines[16] not in reply.text
