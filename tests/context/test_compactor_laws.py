"""Whatever an agent does and however its summariser fails: lists stay well formed, and no marker dangles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy, Session
from readcache.context import Compactor
from tests.helpers.chats import Step, chat, is_sendable, results, roles_alternate, text, turn_of
from tests.helpers.compactor import SUMMARY, Model, TooLong, assert_true_markers

FILES = {name: text(1, 60, of=name) for name in "fgh"}


def part_of(name: str, first: int, last: int) -> tuple[str, str]:
    lines = FILES[name].splitlines(True)[first - 1 : last]
    return f"sed -n '{first},{last}p' {name}", "".join(lines)


reads = st.builds(part_of, st.sampled_from("fgh"), st.sampled_from([1, 11, 21]), st.sampled_from([30, 45, 60]))
writes = st.builds(lambda name: (f"cat > {name} <<'EOF'\n{FILES[name]}EOF\n", ""), st.sampled_from("fgh"))
edits = st.builds(lambda name: (f"sed -i s/x/y/ {name}", ""), st.sampled_from("fgh"))
others = st.sampled_from([("make", text(1, 300)), ("make", text(1, 20)), ("true", "")])
turns = st.lists(st.lists(reads | reads | writes | edits | others, min_size=1, max_size=3), max_size=10)
answers = st.lists(st.sampled_from([SUMMARY, "", "<think>hm", TooLong(), RuntimeError("down")]), min_size=1, max_size=6)


def turn(shape: str, session: Session, number: int, asked: list[tuple[str, str]]) -> list[Mapping[str, Any]]:
    if shape == "no ids":
        command, output = asked[0]
        shown = session.observe(command, output).text
        return [
            {"role": "assistant", "content": f"so\n\n```bash\n{command}\n```"},
            {"role": "user", "content": f"<output>\n{shown}\n</output>"},
        ]
    steps = []
    with session.batch():
        for at, (command, output) in enumerate(asked):
            call_id = f"c{number}-{at}"
            steps.append((call_id, Step(command, session.observe(command, output, call_id=call_id).text)))
    return turn_of(shape, *steps)


@given(
    st.sampled_from(["openai", "anthropic", "no ids"]),
    turns,
    answers,
    st.integers(0, 3),
    st.sampled_from([400, 1_500, 4_000]),
    st.booleans(),
)
def test_at_every_step_the_list_is_well_formed_and_its_markers_are_true(
    shape: str, asked: list[list[tuple[str, str]]], said: list[Any], keep_turns: int, trigger: int, force: bool
) -> None:
    session = Session("/w", policy=Policy(delta=True))
    compactor = Compactor(session, Model(*said), trigger_tokens=trigger, keep_turns=keep_turns)
    head = chat("anthropic" if shape == "anthropic" else "openai")
    messages = head
    for number, each in enumerate(asked):
        new = turn(shape, session, number, each)
        messages = [*messages, *new]
        after = compactor.compact(messages) if force and number % 3 == 2 else compactor.maybe_compact(messages)
        assert is_sendable(list(after))
        assert shape != "anthropic" or roles_alternate(after)
        assert shape == "anthropic" or after[: len(head)] == head
        assert_true_markers(session, after)
        if keep_turns:
            assert results(after).keys() >= results(new).keys()
        assert (after is messages) == (compactor.report.how.name == "NOTHING")
        messages = after
