"""Lines found by what they say, against the plainest possible search."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy, Session
from readcache.core.judging.cover import Coverage, Match
from readcache.core.judging.line_index import LineIndex
from readcache.core.judging.search import Sources, find_visible
from readcache.core.model.call import other_call
from readcache.core.model.events import Delivered, MappedSpan, Moment, Wrote
from readcache.core.model.tool_call import ToolCall
from readcache.core.model.view import View
from tests.helpers.files import TEXT, text

F, G = "/w/f", "/w/g"
MAX = Policy.named("max")
LINES = st.lists(st.sampled_from(["alpha line", "beta line", "gamma line", "}", ""]), min_size=1, max_size=12)
KEYS = st.sampled_from([(), (F,), (G,), (F, G)])


def shown(lines: list[str], call: int, keys: tuple[str, ...] = ()) -> Delivered:
    source_map = (MappedSpan(keys, 0, len(lines)),) if keys else ()
    return Delivered(
        f"c{call}", "".join(line + "\n" for line in lines), "show", source_map=source_map, when=Moment(call)
    )


def found(view: View, lines: list[str], keys: tuple[str, ...], policy: Policy, coverage: Coverage) -> list[Match]:
    sources = Sources(view, other_call(ToolCall("c99", "show", None, ""), "c99", "/"), policy)
    source_map = (MappedSpan(keys, 0, len(lines)),) if keys else ()
    return find_visible(view, lines, source_map, coverage, LineIndex(view.deliveries), sources, policy)


def lines_of(matches: list[Match]) -> set[int]:
    return {n for match in matches for n in range(match.low, match.high)}


@given(st.lists(st.tuples(LINES, KEYS), max_size=4), LINES, KEYS, st.sampled_from([Policy(), Policy(delta=True), MAX]))
def test_every_run_stands_at_its_source(
    before: list[tuple[list[str], tuple[str, ...]]], lines: list[str], keys: tuple[str, ...], policy: Policy
) -> None:
    view = View()
    for call, (theirs, their_keys) in enumerate(before, 1):
        view.apply(shown(theirs, call, their_keys))
    matches = found(view, lines, keys, policy, Coverage())
    assert len(lines_of(matches)) == sum(match.high - match.low for match in matches), "runs are disjoint"
    for match in matches:
        theirs, _ = before[int(match.visible.event.call_id[1:]) - 1]
        assert theirs[match.at : match.at + match.high - match.low] == lines[match.low : match.high]
    if not keys and not policy.any_output:
        assert not matches


@given(st.lists(LINES, min_size=1, max_size=4), LINES)
def test_each_line_that_says_something_and_is_visible_is_found(before: list[list[str]], lines: list[str]) -> None:
    view = View()
    for call, theirs in enumerate(before, 1):
        view.apply(shown(theirs, call))
    newest = {line: theirs for theirs in before for line in theirs}
    visible = {line for line, theirs in newest.items() if len(line) > 3 and theirs.count(line) <= 8}
    few = {line for line in lines if lines.count(line) <= 8}
    expected = {n for n, line in enumerate(lines) if line in visible & few}
    assert expected <= lines_of(found(view, lines, (), MAX, Coverage()))


def test_what_a_file_says_that_was_written_since_is_found_with_delta_alone() -> None:
    lines = [f"line number {n}" for n in range(12)]
    view = View()
    view.apply(shown(lines, 1, (F,)))
    view.apply(shown(lines, 2, (G,)))
    view.apply(Wrote("c3", (F,), "sed -i", 3))
    assert found(view, lines, (F,), Policy(), Coverage()) == [], "nor in what is another's: both are from before"
    assert lines_of(found(view, lines, (G,), Policy(), Coverage())) == set(range(12))
    assert lines_of(found(view, lines, (F,), Policy(delta=True), Coverage())) == set(range(12))


def test_what_disagrees_with_its_visible_lines_is_looked_for_with_delta_alone() -> None:
    lines = [f"line number {n}" for n in range(12)]
    view = View()
    view.apply(shown(lines, 1, (G,)))
    assert found(view, lines, (F,), Policy(), Coverage(changed={F})) == []
    assert len(found(view, lines, (F,), Policy(delta=True), Coverage(changed={F}))) == 1


def test_a_line_that_fills_an_output_many_times_is_no_place_to_begin() -> None:
    view = View()
    view.apply(shown(["return None"], 1))
    assert found(view, ["return None"] * 8, (), MAX, Coverage())
    assert not found(view, ["return None"] * 9, (), MAX, Coverage())


def test_the_index_knows_the_newest_place_of_each_of_many_lines() -> None:
    index, view = LineIndex(), View()
    for call in range(1, 61):
        view.apply(shown([f"line {n} of text {call % 50}" for n in range(100)], call))
        index.add(view.of_call(f"c{call}")[0])
    for call in range(11, 61):
        (visible,) = index.propose([f"line {n} of text {call % 50}" for n in range(0, 100, 7)])
        assert visible.event.call_id == f"c{call}"
    assert index.propose(["a line that stands nowhere"]) == []


# ------------------------------------------------------------ in a session, by default


def test_a_read_is_covered_by_a_copy_that_was_shown() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="f")
    reply = session.observe("cat old/g", "a first line\n" + TEXT)
    assert 'g lines 2-61, same as above in "cat f" as f lines 1-60;' in reply.text


def test_a_read_is_covered_by_the_diff_that_the_agent_looked_at_after_its_edit() -> None:
    session = Session("/w")
    session.observe("sed -n '1,30p' f", text(1, 30))
    session.wrote("f")
    body = "".join(("+" if n == 10 else " ") + line for n, line in enumerate(text(5, 25).splitlines(True), 5))
    session.observe("git diff f", f"--- a/f\n+++ b/f\n@@ -5,20 +5,21 @@\n{body}", call_id="diff")
    reply = session.observe("sed -n '5,25p' f", text(5, 25))
    assert reply.text.startswith("[LEFT_OUT ")
    assert 'in "git diff f"' in reply.text


def test_by_default_the_output_of_what_is_no_read_is_shown() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT)
    assert session.observe("make test", "running\n" + TEXT).text == "running\n" + TEXT


@pytest.mark.parametrize("few", [125, pytest.param(500, marks=pytest.mark.slow)])
def test_thousands_of_pieces_and_hunks_take_linear_time(few: int) -> None:
    took = {few: 9e9, 4 * few: 9e9}
    for count in [few, 4 * few] * 3:
        lines = [f"line {n} of the log says {n * 7919 % 10007} and more" for n in range(3 * count)]
        session = Session("/w", policy=MAX)
        session.observe("cat other.log", "".join(f"{line}\n" for n, line in enumerate(lines) if n % 3))
        hits = "".join(f"{n}:{lines[n]}\n{n + 1}-{lines[n + 1]}\n--\n" for n in range(1, 3 * count - 3, 3))
        hunks = "".join(
            f"@@ -{n},2 +{n},2 @@\n {lines[n]}\n-gone {n}\n+{lines[n + 1]}\n" for n in range(1, 3 * count - 3, 3)
        )
        began = time.process_time()
        session.observe("grep -n -A1 says big.log", hits)
        session.observe("git diff", hunks)
        session.observe("git diff HEAD~", f"a first line\n{hunks}")
        took[count] = min(took[count], time.process_time() - began)
    assert took[4 * few] < 10 * took[few], "four times as many lines"


@pytest.mark.parametrize("policy", [Policy(), Policy(delta=True)])
def test_a_write_counts_for_lines_whose_file_was_forgotten(policy: Policy) -> None:
    """A text of no file has the lines; the read that tied them to one is gone when that is written."""
    lines = [f"line number {n} of a file that says something" for n in range(20)]
    text = "".join(f"{line}\n" for line in lines)
    session = Session("/r", policy=policy)
    session.observe("make list", text, call_id="c1")
    session.observe("cat f", text, call_id="c2")
    session.rewind("c1")
    session.wrote("f", call_id="c3")
    shown = session.observe("cat f", text, call_id="c4")
    assert (shown.text == text) is not policy.delta
