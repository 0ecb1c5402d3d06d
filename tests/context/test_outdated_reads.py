"""Reads of a file that was read again after it changed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy, Session
from readcache.context import Compactor, prune
from readcache.context.superseded import first_that_pays
from readcache.core.model.policy import Prices
from tests.helpers.chats import APIS, Step, chat, read, results, text
from tests.helpers.compactor import Model, assert_true_markers, commands, edits, reads

NOW = Step("ls", "f\n")  # the turn that is under way
EDIT = Step({"path": "/f", "old_string": "a", "new_string": "b"}, "edited", tool="edit_file")
OUTDATED = ["outdated_reads"]

each_shape = pytest.mark.parametrize("shape", APIS)


def changed(given: str, *numbers: int) -> str:
    """The text with these of its lines (from 1) edited."""
    lines = given.splitlines(True)
    for number in numbers:
        lines[number - 1] = lines[number - 1].replace("says", "said")
    return "".join(lines)


def pruned(messages: list[Any], **options: Any) -> dict[str, str]:
    """The notes that took the place of results."""
    before, after = results(messages), results(prune(messages, **{"strategies": OUTDATED, **options}))
    assert before.keys() == after.keys()
    return {call_id: after[call_id] for call_id in before if before[call_id] != after[call_id]}


@each_shape
def test_a_read_goes_when_the_file_was_read_again_after_an_edit(shape: str) -> None:
    messages = chat(shape, read("/f", text()), EDIT, read("/f", changed(text(), 7)), NOW)
    note = "[PRUNED: f lines 1-40 as they were before the file changed; the whole file was read again later]"
    assert pruned(messages) == {"c1": note}
    assert prune(prune(messages)) == prune(messages)


@each_shape
def test_of_several_states_the_newest_stays(shape: str) -> None:
    states = [read("/f", changed(text(), *range(1, n))) for n in range(2, 5)]
    assert pruned(chat(shape, *states, NOW)).keys() == {"c1", "c2"}


OLD = text(11, 30)
LATER = {
    "the same range": (11, 30, changed(OLD, 7), True),
    "a wider one": (5, 35, changed(text(5, 35), 13), True),
    "a narrower one": (11, 29, changed(text(11, 29), 7), False),
    "from the top": (1, 35, changed(text(1, 35), 13), True),
    "from the top, too short": (1, 29, changed(text(1, 29), 13), False),
    "the same range, moved by an insertion": (11, 30, text(6, 25), False),
    "the same bytes": (11, 30, OLD, False),
}


@pytest.mark.parametrize(("first", "last", "shown", "goes"), LATER.values(), ids=LATER)
def test_lines_go_when_they_were_all_read_again(first: int, last: int, shown: str, goes: bool) -> None:
    messages = chat("openai", Step("sed -n '11,30p' /f", OLD), EDIT, Step(f"sed -n '{first},{last}p' /f", shown), NOW)
    note = "[PRUNED: f lines 11-30 as they were before the file changed; these lines were read again later]"
    assert pruned(messages) == ({"c1": note} if goes else {})


def test_several_later_reads_cover_together() -> None:
    new = changed(text(), 7)
    lines = new.splitlines(True)
    halves = [Step("sed -n '1,25p' /f", "".join(lines[:25])), Step("sed -n '21,40p' /f", "".join(lines[20:]))]
    assert pruned(chat("openai", read("/f", text()), *halves, NOW)).keys() == {"c1"}


def test_the_last_turns_errors_short_and_protected_reads_stay() -> None:
    again = read("/f", changed(text(), 7))
    assert not pruned(chat("openai", read("/f", text()), again, NOW), protect_last_turns=3)
    assert not pruned(chat("openai", read("/f", text()), again, NOW), protected=["/f"])
    assert not pruned(chat("openai", read("/f", text(), error=True), again, NOW))
    assert not pruned(chat("openai", read("/f", text(1, 2)), read("/f", changed(text(1, 2), 1)), NOW))


def test_a_read_that_is_itself_cut_or_of_another_file_shows_nothing_again() -> None:
    long, new = text(1, 400), changed(text(1, 400), 7)
    assert "c1" not in pruned(chat("openai", read("/f", text()), read("/g", changed(text(), 7)), NOW))
    messages = chat("openai", read("/f", long), EDIT, read("/f", new), NOW)
    after = pruned(messages, strategies=["outdated_reads", "oversized_outputs"])
    assert all("omitted here" in note for note in after.values())


def test_what_stands_in_for_a_pruned_copy_stays() -> None:
    """c1 has the bytes of c2 and went for it; c2, outdated or not, is now the only place of another file's lines."""
    copy = chat("openai", Step("cat /g", text()), Step("cat /f", text()), Step("cat /f", changed(text(), 7)), NOW)
    assert pruned(copy).keys() == {"c2"}
    assert pruned(copy, strategies=["outdated_reads", "duplicate_outputs"]).keys() == {"c1"}


# ------------------------------------------------------------ what it costs


def test_a_prompt_cache_is_not_broken_for_little() -> None:
    old, new = read("/f", text()), read("/f", changed(text(), 7))
    much = [Step(f"make {n}", text(of=f"made {n}")) for n in range(10)]
    assert not pruned(chat("openai", old, EDIT, new, *much, NOW))
    cheap = Session("/", policy=Policy(prices=Prices(turns=400)))
    assert pruned(chat("openai", old, EDIT, new, *much, NOW), session=cheap).keys() == {"c1"}
    repeated = Step("make", text(of="made"))
    every = {"strategies": ["outdated_reads", "duplicate_outputs"]}
    before = chat("openai", repeated, old, EDIT, new, *much, repeated, NOW)
    assert pruned(before, **every).keys() == {"c1", "c2"}, "the cache is broken before it anyway"
    after = chat("openai", old, EDIT, new, *much, repeated, repeated, NOW)
    assert "c1" not in pruned(after, **every)


def test_a_compaction_spares_no_cache() -> None:
    session = Session("/w", policy=Policy(prices=Prices(turns=1)))
    steps = [("cat f", text()), ("sed -i 7s/says/said/ f", ""), ("cat f", changed(text(), 7)), ("ls", "f\n")]
    messages = commands("openai", session, *steps)
    assert prune(messages, session) is messages
    after = Compactor(session, Model(), trigger_tokens=1_450).maybe_compact(messages)
    assert results(after)["c1"].startswith("[PRUNED ")


@given(st.lists(st.integers(0, 50), max_size=8), st.data())
def test_the_first_message_that_pays_is_stable(extra: list[int], data: st.DataObject) -> None:
    """What was not worth it is not worth it after the rest is gone."""
    saved = {at: data.draw(st.integers(1, 50)) for at in range(len(extra)) if data.draw(st.booleans())}
    sizes = [n + saved.get(at, 0) for at, n in enumerate(extra)]
    changed = data.draw(st.integers(0, len(sizes)))
    first = first_that_pays(sizes, saved, changed, Prices())
    assert first <= changed
    left = {at: n for at, n in saved.items() if at < first}
    again = [n - (saved[at] if at in saved and at not in left else 0) for at, n in enumerate(sizes)]
    assert first_that_pays(again, left, len(again), Prices()) == len(again)


# ------------------------------------------------------------ with a session


@each_shape
def test_a_session_knows_it_and_answers_the_next_read_in_full(shape: str) -> None:
    session = Session("/w")
    new = changed(text(), 7)
    messages = commands(
        shape, session, ("cat f", text()), ("sed -i 7s/says/said/ f", ""), ("cat f", new), ("ls", "f\n")
    )
    after = prune(messages, session)
    assert results(after)["c1"].startswith(f"[PRUNED {session.tag}: f lines 1-40 as they were before the file changed")
    assert_true_markers(session, after)
    assert session.observe("cat f", new, call_id="c5").text.startswith("[FILE_UNCHANGED")


def test_what_a_marker_points_at_stays() -> None:
    session = Session("/w", policy=Policy(delta=True))
    old, new = text(), changed(text(), 7)
    messages = commands(
        "openai", session, ("cat f", old), ("sed -i 7s/says/said/ f", ""), ("cat f", new), ("ls", "f\n")
    )
    assert session.markers_in(results(messages)["c3"])
    assert prune(messages, session) is messages


@given(st.sampled_from(APIS), st.lists(reads | edits, min_size=2, max_size=8), st.booleans())
def test_the_newest_state_of_every_line_stays(shape: str, asked: list[tuple[str, str]], delta: bool) -> None:
    """After each edit the files say something else."""
    session = Session("/w", policy=Policy(delta=delta))
    newest: dict[tuple[str, int], str] = {}
    steps: list[tuple[str, str]] = []
    for n, (command, output) in enumerate(asked):
        lines = [f"{line} {n // 3}\n" for line in output.splitlines()]
        steps.append((command, "".join(lines)))
        for line in lines:
            words = line.split()
            newest[words[0], int(words[2])] = line.rstrip("\n")
    messages = commands(shape, session, *steps, ("ls", "f\n"))
    after = prune(messages, session, strategies=OUTDATED)
    assert_true_markers(session, after)
    everything = {line for shown in results(after).values() for line in shown.split("\n")}
    assert set(newest.values()) <= everything or session.markers_in("\n".join(everything))
