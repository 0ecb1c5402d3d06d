"""Condensations, and the view of a conversation: the cases of the system that had them first, on message lists."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import UsageError
from readcache.context import Change, Condensation, MessageView, cut_points, message_names, next_cut, view_of
from readcache.core.model.text import digest
from tests.helpers.chats import Messages, is_sendable, roles_alternate, said, scripted, user

FIVE: Messages = [said("openai", f"words {n}", "assistant" if n % 2 else "user") for n in range(5)]
NAMES = message_names(FIVE)


def condense(id: str = "c", *forgotten: str, **fields: Any) -> Condensation:
    return Condensation(id=id, why="compacted", forgotten=frozenset(forgotten), **fields)


def words(messages: Any) -> list[str]:
    return [str(message["content"]) for message in messages]


# ------------------------------------------------------------ names


def test_a_message_is_named_by_its_own_id_its_call_or_what_it_says() -> None:
    call = scripted("openai", "u c1 r1")
    names = message_names([{"id": "m1", "role": "user", "content": "a"}, *call[1:], user("a"), user("a")])
    assert names[:3] == ["m1", "call:1", "result:1"]
    assert names[4] == f"{names[3]}#2"
    assert names[3].startswith("text:")


def test_names_that_occur_again_are_told_apart_and_stay_when_messages_follow() -> None:
    messages = scripted("anthropic", "u c1 r1 c1 r1 s")
    names = message_names(messages)
    assert len(set(names)) == len(messages)
    assert message_names(messages[:3]) == names[:3]
    assert names[3] == "call:1#2"


def test_a_mark_for_the_prompt_cache_is_no_other_name() -> None:
    block = {"type": "text", "text": "a"}
    marked = {**block, "cache_control": {"type": "ephemeral"}}
    lists = [[{"role": "user", "content": [each]}] for each in (block, marked)]
    assert message_names(lists[0]) == message_names(lists[1])


# ------------------------------------------------------------ forgetting


def test_preserves_uncondensed() -> None:
    assert view_of(FIVE, []) is FIVE


@pytest.mark.parametrize("index", range(5))
def test_forgets_a_single_message_and_keeps_the_others(index: int) -> None:
    assert view_of(FIVE, [condense("c", NAMES[index])]) == FIVE[:index] + FIVE[index + 1 :]


@pytest.mark.parametrize("names", [[], ["unknown"]], ids=["none", "unknown"])
def test_forgetting_nobody_changes_nothing(names: list[str]) -> None:
    assert view_of(FIVE, [condense("c", *names)]) is FIVE


def test_forgets_all() -> None:
    assert view_of(FIVE, [condense("c", *NAMES)]) == []


def test_an_empty_list_stays_empty_or_has_the_summary() -> None:
    assert view_of([], [condense("c", "x")]) == []
    assert view_of([], [condense("c", summary="s", after="")]) == [user("s")]


def test_condensations_in_sequence() -> None:
    both = [condense("a", NAMES[0]), condense("b", NAMES[2])]
    assert view_of(FIVE, both) == [FIVE[1], *FIVE[3:]]


# ------------------------------------------------------------ summaries


@pytest.mark.parametrize("index", range(6))
def test_inserts_a_summary_at_every_place(index: int) -> None:
    after = NAMES[index - 1] if index else ""
    assert view_of(FIVE, [condense(summary="s", after=after)]) == [*FIVE[:index], user("s"), *FIVE[index:]]


def test_a_summary_may_follow_a_message_that_it_replaces() -> None:
    assert words(view_of(FIVE, [condense("c", *NAMES[1:4], summary="s", after=NAMES[3])])) == [
        "words 0",
        "s",
        "words 4",
    ]


@pytest.mark.parametrize(("forgotten", "left"), [("a", ["s b"]), ("b", ["s a"]), ("ab", [])])
def test_a_later_condensation_forgets_summaries(forgotten: str, left: list[str]) -> None:
    summaries = [condense(n, summary=f"s {n}", after=NAMES[0]) for n in "ab"]
    after = view_of(FIVE, [*summaries, condense("c", *(f"{n}-summary" for n in forgotten))])
    assert words(after) == ["words 0", *left, *words(FIVE[1:])]


def test_two_summaries_after_one_message_the_later_one_stands_first() -> None:
    summaries = [condense(n, summary=f"s {n}", after=NAMES[0]) for n in "abc"]
    assert words(view_of(FIVE, summaries))[:4] == ["words 0", "s c", "s b", "s a"]


def test_a_summary_may_follow_a_summary() -> None:
    both = [condense("a", summary="1", after=NAMES[0]), condense("b", summary="2", after="a-summary")]
    assert words(view_of(FIVE, both))[:3] == ["words 0", "1", "2"]


def test_summaries_only() -> None:
    both = [condense("a", *NAMES, summary="1", after=""), condense("b", summary="2", after="a-summary")]
    assert words(view_of(FIVE, both)) == ["1", "2"]


def test_a_later_condensation_forgets_a_summary_and_messages_together() -> None:
    first = condense("a", NAMES[1], summary="1", after=NAMES[0])
    second = condense("b", "a-summary", *NAMES[2:4], summary="2", after=NAMES[0])
    assert words(view_of(FIVE, [first, second])) == ["words 0", "2", "words 4"]


def test_a_restored_section_follows_the_summary() -> None:
    one = condense(summary="s", after=NAMES[0], restored="restored-1", section="files")
    assert words(view_of(FIVE, [one]))[:3] == ["words 0", "s", "files"]


@pytest.mark.parametrize(
    "fields", [{"summary": "s"}, {"after": ""}, {"restored": "r"}, {"section": "x", "after": "", "summary": "s"}]
)
def test_half_of_a_summary_is_an_error(fields: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="condensation 'c'"):
        condense(**fields)


# ------------------------------------------------------------ lists that differ


def test_an_inserted_message_is_shown() -> None:
    new = [FIVE[0], user("inserted"), *FIVE[1:]]
    assert words(view_of(new, [condense("c", NAMES[1])])) == ["words 0", "inserted", *words(FIVE[2:])]


def test_an_edited_message_is_shown() -> None:
    new = [FIVE[0], said("openai", "edited", "assistant"), *FIVE[2:]]
    assert view_of(new, [condense("c", NAMES[1])]) is new


def splice(text: str, **given: Any) -> Change:
    fields = {"name": NAMES[0], "part": 0, "first": 0, "last": 5, "note": "[PRUNED]", "digest": digest(text)}
    return Change(**{**fields, **given})


def test_a_change_is_a_splice_and_one_that_does_not_fit_is_skipped() -> None:
    fits = Condensation(id="c", why="pruned", changes=(splice("words 0"),))
    assert words(view_of(FIVE, [fits])) == ["[PRUNED] 0", *words(FIVE[1:])]
    for wrong in ({"digest": digest("other")}, {"part": 3}, {"name": "unknown"}, {"key": "x", "digest": ""}):
        skipped = Condensation(id="c", why="pruned", changes=(splice("words 0", **wrong),))
        assert words(view_of(FIVE, [skipped])) == words(FIVE) or wrong.get("key")


def test_an_unknown_version_or_place_or_missing_text_stops_it_and_all_after_it() -> None:
    for bad in (
        Condensation(id="c", version=2, why="compacted", forgotten=frozenset(NAMES)),
        condense("c", NAMES[1], summary="s", after="unknown"),
        condense("c", NAMES[1], summary="s", after=NAMES[0], restored="r"),
    ):
        view = MessageView(FIVE, [condense("a", NAMES[2]), bad, condense("d", NAMES[3])])
        assert [each.id for each in view.waiting] == ["c", "d"]
        assert view.messages == [*FIVE[:2], *FIVE[3:]]


# ------------------------------------------------------------ as data


def test_a_condensation_is_data_and_back() -> None:
    fields: dict[str, Any] = {"summary": "s", "after": "", "restored": "r", "section": "x"}
    one = condense("c", "a", "b", changes=(splice("words 0"),), tokens_saved=7, **fields)
    assert Condensation.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert one.apply(FIVE) == view_of(FIVE, [one])


@pytest.mark.parametrize("wrong", [{"version": 2}, {"version": None}, {"changes": [{"x": 1}]}])
def test_data_of_another_version_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="condensation 'c'"):
        Condensation.from_dict({**condense().to_dict(), **wrong})


# ------------------------------------------------------------ the kept view


@pytest.mark.parametrize("api", ["openai", "anthropic", "converse", "gemini"])
def test_the_kept_view_equals_the_fold_whenever_it_is_told(api: str) -> None:
    messages = scripted(api, "u c1 r1 c2,3 r2 r3 s u t4 r4 c5 r5 s u")
    names = message_names(messages)
    told = {5: condense("a", *names[1:3], summary="1", after=names[0]), 10: condense("b", names[6], "a-summary")}
    view = MessageView()
    for at, message in enumerate(messages):
        view.extend([message])
        if at in told:
            view.condense(told[at])
        assert view.messages == view_of(messages[: at + 1], [told[k] for k in told if k <= at])
    assert is_sendable(view.messages)


def test_a_request_is_fulfilled_by_a_condensation() -> None:
    view = MessageView(FIVE)
    view.requested = True
    assert pickle.loads(pickle.dumps(view)).requested
    view.extend([user("more")])
    assert view.requested
    view.condense(condense("c", NAMES[0]))
    assert not view.requested


def test_a_pickle_has_no_cache_and_the_same_messages() -> None:
    view = MessageView(FIVE, [condense("c", NAMES[1])])
    messages = view.messages
    state = view.__getstate__()
    assert (state["_left"], state["_sent"]) == (None, None)
    assert pickle.loads(pickle.dumps(view)).messages == messages


SCRIPT_WORDS = ["u", "s", "c1", "r1", "c2,3", "r2", "r3", "t4", "r4", "e1"]


@given(st.data())
def test_any_condensations_leave_a_list_that_can_be_sent(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(["openai", "anthropic", "converse", "gemini"]))
    words_ = data.draw(st.lists(st.sampled_from(SCRIPT_WORDS), max_size=14))
    messages = scripted(api, " ".join([*words_, "u"]))  # calls before a user's words do not wait for results
    names = message_names(messages)[:-1]
    told: list[Condensation] = []
    for n in range(data.draw(st.integers(1, 4))):
        known = [*names, *(f"{each.id}-summary" for each in told)]
        forgotten = data.draw(st.sets(st.sampled_from(known))) if known else set()
        after = data.draw(st.sampled_from(["", *known]))
        told.append(condense(f"k{n}", *forgotten, summary="s", after=after))
    out = view_of(messages, told)
    assert is_sendable(out)
    is_known = any(word[0] in "ctre" for word in words_)  # words alone do not show the API's shape
    assert api != "anthropic" or not is_known or roles_alternate(out)
    assert view_of(messages, told) == out


# ------------------------------------------------------------ where to cut


def test_the_next_cut_is_the_first_place_where_a_list_may_be_cut() -> None:
    messages = scripted("openai", "u c1,2 r1 r2 s")
    assert cut_points(messages) == [0, 1, 4, 5]
    assert [next_cut(messages, place) for place in range(6)] == [0, 1, 4, 4, 4, 5]
    with pytest.raises(UsageError, match="cannot be cut at 6"):
        next_cut(messages, 6)
