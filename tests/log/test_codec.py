from __future__ import annotations

import dataclasses
import json
import typing

import pytest
from hypothesis import given

from readcache.core.model.claims import WHOLE_TREE
from readcache.core.model.errors import StoreError
from readcache.core.model.events import (
    Account,
    Amended,
    Compacted,
    Delivered,
    Event,
    MappedSpan,
    MarkerRecord,
    Rewound,
    Wrote,
)
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.text import digest
from readcache.core.model.unconfirmed import confirmed, mark_unconfirmed
from readcache.log.store.codec import KINDS, decode, encode, names, wanted
from tests.helpers import strategies


@given(strategies.events())
def test_every_event_survives_being_written_as_json(event: Event) -> None:
    kind, body, text = encode(event)
    through_json = json.loads(json.dumps(body, ensure_ascii=False))
    assert decode(kind, through_json, text) == event


def test_stores_know_fields_by_the_names_of_the_first_release() -> None:
    marker = MarkerRecord(0, None, 1, 2, ("c0",), wording="[LEFT_OUT]")
    shown = encode(Delivered("c1", "text", "ls", source_map=(MappedSpan(("/f",), 0, 1),), markers=(marker,)))[1]
    assert shown["pieces"] == [{"keys": ["/f"], "at": 0, "count": 1}]
    stored = {"line": 0, "path": None, "start": 1, "end": 2, "sources": ["c0"], "marker": "[LEFT_OUT]"}
    assert shown["pointers"] == [stored]
    assert encode(Wrote("c1", ("/f",), possible_writes=("/g",)))[1] == {
        "call_id": "c1",
        "keys": ["/f"],
        "perhaps": ["/g"],
    }


def test_every_kind_of_event_has_a_name() -> None:
    names = "cleared closed compacted condensed delivered failed forgot missed rewound settled wrote"
    assert sorted(KINDS) == names.split()
    assert set(KINDS.values()) == set(typing.get_args(Event))


def test_the_text_is_kept_out_of_the_body() -> None:
    kind, body, text = encode(Delivered("c1", "long text\n", "cat a"))
    assert (kind, body, text) == ("delivered", {"call_id": "c1", "label": "cat a"}, "long text\n")


def test_an_event_without_text_has_none() -> None:
    assert encode(Rewound("c1")) == ("rewound", {"call_id": "c1"}, None)


def test_an_empty_text_is_a_text() -> None:
    assert encode(Amended("c1", ""))[2] == ""
    assert decode("settled", {"call_id": "c1"}, "") == Amended("c1", "")


def test_a_body_is_the_same_whatever_the_order_of_a_set() -> None:
    assert encode(Compacted(frozenset({"b", "a"})))[1] == {"kept": ["a", "b"]}


@pytest.mark.parametrize(
    ("kind", "body", "text", "says"),
    [
        ("teleported", {}, None, "unknown event 'teleported'"),
        ("rewound", {"call_id": "c", "by": "whom"}, None, "unknown field 'by' of a Rewound"),
        ("settled", {"call_id": "c", "pieces": [{"keys": [], "at": 0, "count": 1, "x": 1}]}, "", "unknown field 'x'"),
        ("delivered", {"call_id": "c", "label": "", "origin": "nowhere"}, "t", "'nowhere' is not a valid Origin"),
        ("delivered", {"call_id": "c", "label": "", "credited": 7}, "t", "bool expected, int found"),
        ("compacted", {"kept": "abc"}, None, "list expected, str found"),
    ],
)
def test_what_only_a_newer_version_writes_is_refused_with_advice(
    kind: str, body: object, text: str | None, says: str
) -> None:
    with pytest.raises(StoreError, match="newer readcache: upgrade") as caught:
        decode(kind, body, text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [("rewound", {}, None), ("rewound", ["c"], None), ("rewound", {"call_id": "c"}, "text"), ("settled", {}, None)],
)
def test_what_no_version_writes_is_called_damaged(kind: str, body: object, text: str | None) -> None:
    with pytest.raises(StoreError, match="damaged"):
        decode(kind, body, text)


def found(event: Event, keys: tuple[str, ...] = (), digests: tuple[str, ...] = ()) -> bool:
    return not wanted(keys, digests).isdisjoint(names(event))


def shows(*keys: str) -> Delivered:
    return Delivered("c", "x\n", "cat", source_map=(MappedSpan(keys, 0, 1),))


def test_a_delivery_is_found_by_each_path_that_it_shows() -> None:
    assert found(shows("/r/a"), ("/r/a",))
    assert found(shows("/r/b", "/r/a"), ("/r/a",))
    assert not found(shows("/r/a"), ("/r/ab",))


def test_a_delivery_is_found_by_its_text() -> None:
    assert found(shows("/r/a"), digests=(digest("x\n"),))
    assert not found(shows("/r/a"), digests=(digest("y\n"),))


def test_a_delivery_is_found_by_the_path_it_points_into() -> None:
    assert found(Delivered("c", "marker", "cat", markers=(MarkerRecord(0, "/r/a", 1, 9, ("b",)),)), ("/r/a",))


@pytest.mark.parametrize("changed", ["/r/d/a", "/r/d", "/r", "/", WHOLE_TREE])
def test_a_delivery_is_found_by_what_it_showed_to_have_changed_and_what_is_below(changed: str) -> None:
    event = dataclasses.replace(shows("/r/other"), changed=(changed,))
    assert found(event, ("/r/d/a",))
    assert found(event, ("/q",)) == (changed in ("/", WHOLE_TREE))


def test_only_what_shows_something_or_moves_the_conversation_has_names() -> None:
    assert list(names(Wrote("c", ("/r/a",)))) == []
    assert list(names(Compacted(frozenset()))) == []
    assert found(Rewound("c"))


def test_a_reply_that_nobody_confirmed_keeps_its_text_and_what_the_whole_output_was() -> None:
    account = Account("r", Outcome.UNCHANGED, Reason.COVERED, 900, 200)
    event = Delivered("c1", "[marker]\n", "cat f", markers=(MarkerRecord(0, "/f", 1, 9, ("c0",)),), account=account)
    waiting = mark_unconfirmed(event, "one\ntwo\n", (MappedSpan(("/f",), 0, 2, 1),))
    kind, body, text = encode(waiting)
    assert (body["unconfirmed"], body["output"]["pieces"], text) == (
        True,
        [{"keys": ["/f"], "at": 0, "count": 2, "first": 1}],
        "[marker]\n",
    )
    assert decode(kind, json.loads(json.dumps(body)), text) == waiting
    assert encode(confirmed("c1")) == ("settled", {"call_id": "c1", "lost": False, "confirms": True}, "")


def test_a_row_of_an_earlier_version_is_confirmed() -> None:
    event = decode("delivered", {"call_id": "c1", "label": "cat f"}, "text\n")
    assert isinstance(event, Delivered)
    assert not event.unconfirmed
    amended = decode("settled", {"call_id": "c1"}, "text\n")
    assert isinstance(amended, Amended)
    assert (amended.confirms, amended.reason) == (False, None)
