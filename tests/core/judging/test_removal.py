"""Removals from a log: everything that today's rules would not store, and the texts of named calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy
from readcache.core.judging import protect, removal
from readcache.core.judging.removal import FORGOTTEN, removals
from readcache.core.model import secrets
from readcache.core.model.events import Amended, Delivered, Event, MappedSpan, MarkerRecord, Origin, Record, Wrote
from readcache.core.model.text import digest
from tests.helpers import strategies

POLICY = Policy()
TOKEN = "ghp_" + "a1B2c3D4e5" * 4


def left(events: list[Event], named: frozenset[str] = frozenset(), policy: Policy = POLICY) -> list[Event]:
    """Return the events after a removal."""
    records = [Record(seq, "main", 1.0, event) for seq, event in enumerate(events, 1)]
    new = {record.seq: event for record, event in removals(records, policy, named)}
    return [new.get(record.seq, record.event) for record in records]


def shown(call_id: str, text: str, label: str, key: str = "/w/a", **more: object) -> Delivered:
    return Delivered(call_id, text, label, source_map=(MappedSpan((key,), 0, 1, 1),), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "label", "key"),
    [
        (f"token {TOKEN}\n", "cat a", "/w/a"),  # a certain secret
        ("a line\n", "cat deploy", "/w/.env"),  # a protected file, by its lines
        ("a line\n", "cat .env", "/w/a"),  # by its name in the command
        ("a line\n", "env", "/w/a"),  # a command that prints secrets
        ("x abc12345x\n", "API_KEY=abc12345x make", "/w/a"),  # a secret that the command was given
        ("==> .env <==\na line\n", "head *", "/w/a"),  # a heading that names a protected file
    ],
)
def test_what_todays_rules_would_not_store_goes(text: str, label: str, key: str) -> None:
    (event,) = left([shown("c1", text, label, key)])
    assert isinstance(event, Delivered)
    assert (event.text, event.source_map) == ("", ())
    assert "abc12345x" not in event.label
    assert left([shown("c1", text, label, key)], policy=Policy(protected=())) == [shown("c1", text, label, key)]


def test_what_they_would_store_stays() -> None:
    events: list[Event] = [
        shown("c1", "a line\n", "cat a"),
        Wrote("c2", ("/w/b",), "touch b", 2),
        Amended("c1", "a\n"),
        Delivered("c3", "File: .env\n", "read /w/README", rendering="bash"),  # only lines of this file
    ]
    assert left(events) == events


def test_a_newly_protected_file_goes_and_the_call_that_wrote_it_loses_its_command() -> None:
    policy = POLICY.protecting("notes/*")
    events: list[Event] = [
        Wrote("c1", ("/w/notes/n",), "echo x > $N", 1),
        Delivered("c1", "x\n", "echo x > $N", Origin.COMMAND, (MappedSpan(("/w/notes/n",), 0, 1, 1),)),
    ]
    wrote, text = left(events, policy=policy)
    assert (wrote, text) == (Wrote("c1", ("/w/notes/n",), protect.HIDDEN, 1), left(events, policy=policy)[1])
    assert isinstance(text, Delivered)
    assert (text.text, text.label) == ("", protect.HIDDEN)


def test_a_text_that_quotes_a_given_secret_goes_too() -> None:
    wording = '[UNCHANGED 1.2: a line 1, above in "API_KEY=abc12345x make"]'
    quoting = shown("c2", f"{wording}\n", "make", markers=(MarkerRecord(0, "/w/a", 1, 1, ("c1",), wording=wording),))
    one, two = left([shown("c1", "a line\n", "API_KEY=abc12345x make"), quoting])
    assert isinstance(one, Delivered)
    assert one.label == "API_KEY=… make"
    assert isinstance(two, Delivered)
    assert (two.text, two.markers) == ("", ())


def test_a_copy_of_removed_lines_in_a_marker_goes_and_the_marker_stays() -> None:
    record = MarkerRecord(1, "/w/a", 1, 1, ("c1",), wording="[UNCHANGED …]", lines="the line")
    copy = shown("c2", "head\n[UNCHANGED …]\n", "cat -n a", markers=(record,))
    one, two = left([shown("c1", "the line\n", "cat a"), copy], frozenset({"c1"}))
    assert isinstance(two, Delivered)
    assert two.text == "[UNCHANGED …]\n"  # its lines may leave the conversation later: then it must be found
    assert [(marker.line, marker.lines) for marker in two.markers] == [(0, "")]
    assert isinstance(one, Delivered)
    assert (one.text, one.label, two.label) == ("", FORGOTTEN, "cat -n a")


@given(events=st.lists(strategies.events(), max_size=6))
def test_a_second_removal_finds_nothing(events: list[Event]) -> None:
    named = frozenset(event.call_id for event in events[:1] if isinstance(event, (Delivered, Amended)))
    once = left(events, named)
    assert left(once, named) == once
    for event in once:
        if isinstance(event, (Delivered, Amended)) and event.call_id in named:
            there = [marker.wording for marker in event.markers if marker.line >= 0]  # a host may have removed others
            assert event.text == "".join(f"{wording}\n" for wording in there)


def test_rules_that_learn_more_have_a_new_version() -> None:
    """If this fails: raise `removal.RULES`, so that stores are searched again, and write both values here."""
    known = (secrets.SECRET_NAMES, secrets._FORMS, sorted(secrets._GIVEN), protect._PROGRAMS, protect._BARE)
    patterns = (protect._UNNAMED, protect._ASSIGNED, protect._NAMES, protect._ECHOED)
    found = digest(repr((known, [each.pattern for each in patterns])))
    assert (removal.RULES, found) == (1, "a65fffabf34f34f6d0037909cefb9d1d")
