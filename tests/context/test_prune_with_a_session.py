"""What is pruned is no longer visible, and no marker points at it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy, Reason, Session
from readcache.context import prune
from readcache.context.pruner import ALL_STRATEGIES
from tests.helpers.chats import APIS, Step, arguments, chat, is_sendable, results, text
from tests.helpers.compactor import assert_true_markers, commands

each_shape = pytest.mark.parametrize("shape", APIS)
NOW = ("ls", "f\n")
WRITE = ("cat > f <<'EOF'\n" + text(of="row") + "EOF\n", "")


@each_shape
def test_what_was_pruned_is_shown_again_when_it_is_asked_for(shape: str) -> None:
    session = Session("/w")
    messages = commands(shape, session, ("make", text(1, 400)), NOW)
    after = prune(messages, session)
    assert results(after)["c1"] != results(messages)["c1"]
    assert_true_markers(session, after)
    assert session.observe("make", text(1, 400), call_id="c3").reason is Reason.NOT_SEEN


@each_shape
def test_a_result_that_a_marker_names_is_not_pruned_as_a_duplicate_or_as_too_long(shape: str) -> None:
    session = Session("/w")
    given = [("cat f", text(1, 400)), ("cat f", text(1, 400)), ("cat f", text(1, 400)), NOW]
    messages = commands(shape, session, *given)
    assert results(messages)["c2"].startswith("[FILE_UNCHANGED")
    assert results(messages)["c3"] == text(1, 400)  # the agent insisted
    after = prune(messages, session)
    assert results(after)["c1"] == text(1, 400)
    assert_true_markers(session, after)


@each_shape
def test_a_marker_at_a_superseded_read_says_that_it_is_gone(shape: str) -> None:
    session = Session("/w")
    messages = commands(shape, session, ("cat f", text()), ("cat f", text()), WRITE, NOW)
    assert results(messages)["c2"].startswith("[FILE_UNCHANGED")
    after = prune(messages, session, strategies=["superseded_reads"])
    assert results(after)["c1"].startswith(f"[PRUNED {session.tag}: f lines 1-40 as they were before")
    assert results(after)["c2"].startswith(f"[GONE {session.tag}.2: ")
    assert_true_markers(session, after)
    assert prune(after, session) is after


@each_shape
def test_a_session_knows_where_a_command_ran(shape: str) -> None:
    session = Session("/w")
    steps = [
        Step("cat f", session.observe("cat f", text(), cwd="/w/a", call_id="c1").text),
        Step(WRITE[0], session.observe(*WRITE, cwd="/w/b", call_id="c2").text),
        Step("ls", session.observe("ls", "f\n", call_id="c3").text),
    ]
    messages = chat(shape, *steps)
    assert prune(messages, session) is messages
    assert prune(messages) is not messages


def test_a_result_that_the_session_knows_by_another_text_is_not_guessed_at() -> None:
    session = Session("/w")
    shown = session.observe("cat f", text(), cwd="/w/a", call_id="c1").text
    steps = [Step("cat f", f"<output>\n{shown}</output>"), Step(WRITE[0], session.observe(*WRITE, call_id="c2").text)]
    messages = chat("openai", *steps, Step(*NOW))
    assert prune(messages, session) is messages


@each_shape
def test_a_write_that_failed_supersedes_nothing(shape: str) -> None:
    session = Session("/w")
    messages = commands(shape, session, ("cat f", text()), (WRITE[0], "bash: f: Permission denied\n"), NOW)
    assert prune(messages, session) is messages


@each_shape
def test_what_the_agent_wrote_itself_stays_visible(shape: str) -> None:
    session = Session("/w")
    messages = commands(shape, session, ("cat f", text()), WRITE, NOW)
    after = prune(messages, session)
    assert arguments(after) == arguments(messages)
    assert session.view.covers("/w/f", 1, 40)
    assert session.observe("cat f", text(of="row"), call_id="c4").text.startswith("[FILE_UNCHANGED")


# ------------------------------------------------------------ laws

LONG = {name: text(1, 60, of=name) for name in "fgh"}


def observed(name: str, first: int, last: int) -> tuple[str, str]:
    lines = LONG[name].splitlines(True)[first - 1 : last]
    return f"sed -n '{first},{last}p' {name}", "".join(lines)


reads = st.builds(observed, st.sampled_from("fgh"), st.sampled_from([1, 11, 21]), st.sampled_from([30, 45, 60]))
writes = st.builds(lambda name: (f"cat > {name} <<'EOF'\n{LONG[name]}EOF\n", ""), st.sampled_from("fgh"))
others = st.sampled_from([("make", text(1, 300)), ("make", text(1, 20)), ("cat img", "\0\1"), NOW])
strategies = st.sets(st.sampled_from(ALL_STRATEGIES))


@given(
    st.sampled_from(APIS),
    st.lists(reads | writes | others, max_size=14),
    strategies,
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
def test_pruning_twice_is_pruning_once(
    shape: str,
    given_: list[tuple[str, str]],
    chosen: set[str],
    protect: int,
    with_session: bool,
    delta: bool,
) -> None:
    session = Session("/w", policy=Policy(delta=delta))
    messages = commands(shape, session, *given_)
    told = session if with_session else None
    after = prune(messages, told, strategies=chosen, protect_last_turns=protect)
    assert len(after) == len(messages)
    assert is_sendable(list(after))
    assert results(after).keys() == results(messages).keys()
    assert prune(after, told, strategies=chosen, protect_last_turns=protect) is after
    if with_session:
        assert_true_markers(session, after)
    untouched = results(messages)
    for call_id in [f"c{len(given_) - k}" for k in range(protect)]:
        if call_id in untouched and not untouched[call_id].startswith("["):
            assert results(after)[call_id] == untouched[call_id]


@given(st.lists(reads, min_size=2, max_size=8))
def test_every_line_that_duplicates_took_still_stands_somewhere(given_: list[tuple[str, str]]) -> None:
    messages = chat("openai", *[Step(command, output) for command, output in given_])
    after = prune(messages, strategies=["duplicate_outputs"])
    left = {line for shown in results(after).values() for line in shown.splitlines()}
    assert {line for _, output in given_ for line in output.splitlines()} <= left


def test_what_is_left_of_a_long_output_says_how_to_recall_it_and_stays_the_same() -> None:
    session = Session("/w")
    output = "".join(f"test {n} passed with these words\n" for n in range(2000))
    messages = commands("openai", session, ("make test", output), ("ls", "f\n"), ("true", ""))
    pruned = prune(messages, session)
    name = f"{session.tag}.1"
    assert f'omitted here; to see them, run "readcache recall {name}"]\n' in results(pruned)["c1"]
    assert len(results(pruned)["c1"]) <= 10_000
    assert prune(messages, session) == pruned
    assert session.recall(name, 900, 999).text == "".join(output.splitlines(keepends=True)[899:999])
