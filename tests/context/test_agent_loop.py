"""The compactor in an agent's loop: how often it acts, and what an agent meets whose API finds the list too long."""

from __future__ import annotations

from itertools import pairwise

import pytest

from readcache import Budget, Policy, Session
from readcache.context import Compactor, How
from readcache.context.compaction import MESSAGE_TOKENS
from readcache.context.compactor import ENOUGH
from readcache.core.messages.structure import repair
from tests.helpers.chats import APIS, Messages, Step, chat, is_sendable, results, text, texts, turn_of
from tests.helpers.compactor import Model, TooLong, assert_true_markers, six_reads

each_shape = pytest.mark.parametrize("shape", APIS)


# ------------------------------------------------------------ how often


def foretold(steps: int, most: int, keep_turns: int) -> list[int]:
    """How long the list is after each step of two messages, when it is compacted at `most` of them: then the two of the
    head are left, the summary, and the last turns, as far as they leave room for others."""
    keep_turns = min(keep_turns, (int(ENOUGH * most) - 2) // 2)
    lengths, length = [], 2
    for _ in range(steps):
        length += 2
        if length >= most:
            length = 2 + 1 + 2 * keep_turns
        lengths.append(length)
    return lengths


@pytest.mark.parametrize("keep_turns", [0, 1, 2, 5])
@pytest.mark.parametrize("most", [14, 15, 30, 200])
def test_it_compacts_when_the_list_is_full_and_never_twice_in_a_row(most: int, keep_turns: int) -> None:
    session, model = Session("/w", policy=Policy(count_tokens=lambda _: 0)), Model()
    trigger = MESSAGE_TOKENS * most  # the messages alone count
    compactor = Compactor(
        session, model, trigger_tokens=trigger, keep_turns=keep_turns, budget=Budget(max_files=0), strategies=()
    )
    messages, lengths = chat("openai"), []
    for n in range(100):
        messages = [*messages, *turn_of("openai", (f"c{n}", Step(f"echo {n}", f"{n}\n")))]
        messages = compactor.maybe_compact(messages)
        lengths.append(len(messages))
    assert lengths == foretold(100, most, keep_turns)
    shrank = [after < before for before, after in zip([2, *lengths], lengths, strict=False)]
    assert len(model.asked) == sum(shrank)
    assert not any(twice == (True, True) for twice in pairwise(shrank)), "and never at two steps in a row"


# ------------------------------------------------------------ lists with little in them


@each_shape
@pytest.mark.parametrize("turns", [0, 1])
def test_a_compaction_without_old_turns_changes_nothing(shape: str, turns: int) -> None:
    model = Model()
    compactor = Compactor(Session("/w"), model, trigger_tokens=1)
    for messages in ([], chat(shape, *[Step("ls", "f\n")] * turns)):
        assert compactor.maybe_compact(messages) is messages
        assert compactor.compact(messages) is messages
        assert compactor.report.how is How.NOTHING
    assert model.asked == []


def test_a_list_without_instructions_or_task_is_compacted_too() -> None:
    session, model = Session("/w"), Model()
    turns = six_reads("openai", session)[2:]
    after = Compactor(session, model, trigger_tokens=1).compact(turns)
    assert set(results(after)) == {"c5", "c6"}
    assert is_sendable(list(after))


@each_shape
def test_all_that_the_user_said_since_is_in_the_request(shape: str) -> None:
    model, work = Model(), Step("ls", text())
    messages = chat(shape, work, "mind the tests", work, "and the docs", work, work)
    after = Compactor(Session("/w"), model, trigger_tokens=1).compact(messages)
    assert "mind the tests" in model.asked[0]
    assert "and the docs" in model.asked[0]
    assert texts(after)[: len(texts(chat(shape)))] == texts(chat(shape))


@each_shape
def test_what_somebody_else_tore_apart_can_be_repaired_and_then_compacted(shape: str) -> None:
    session = Session("/w")
    whole, head = six_reads(shape, session), len(chat(shape))
    torn = [*whole[:head], *whole[head + 1 : head + 4], *whole[head + 5 :]]  # two results whose calls are gone
    after = Compactor(session, Model(), trigger_tokens=1).compact(repair(torn))
    assert set(results(after)) == {"c5", "c6"}
    assert is_sendable(list(after))
    assert_true_markers(session, after)


# ------------------------------------------------------------ an API with a limit


class Api:
    """Answers with one more command, as long as the list is not too long for it."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.sent: list[int] = []

    def __call__(self, messages: Messages) -> str:
        if len(messages) > self.most:
            raise TooLong
        self.sent.append(len(messages))
        return f"cat file{len(self.sent)}"


def step(shape: str, session: Session, call_id: str, command: str) -> Messages:
    shown = session.observe(command, text(of=command.replace(" ", ".")), call_id=call_id).text
    return turn_of(shape, (call_id, Step(command, shown)))


@each_shape
def test_after_too_long_an_agent_compacts_and_goes_on_with_the_shorter_list(shape: str) -> None:
    session, api = Session("/w"), Api(most=12)
    compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
    messages = chat(shape)
    said = len(messages)
    for n in range(12):
        assert compactor.maybe_compact(messages) is messages
        try:
            command = api(messages)
        except TooLong:
            messages = compactor.compact(messages)
            command = api(messages)
        new = step(shape, session, f"c{n}", command)
        messages, said = [*messages, *new], said + len(new)
        assert is_sendable(messages)
        assert_true_markers(session, messages)
    compactor.maybe_compact(messages)
    shorter = [n for n, (before, after) in enumerate(zip(api.sent, api.sent[1:], strict=False)) if after < before]
    assert len(shorter) == 2, "every other request is longer than the one before"
    assert len(api.sent) == 12
    assert len(messages) < said


@each_shape
def test_compacting_again_and_again_ends_with_nothing_to_gain(shape: str) -> None:
    session, model = Session("/w"), Model()
    compactor = Compactor(session, model, trigger_tokens=1_000_000)
    messages, tried = six_reads(shape, session), 0
    while (after := compactor.compact(messages)) is not messages:
        messages, tried = after, tried + 1
    assert 0 < tried < 6
    assert compactor.report.how is How.NOTHING
    assert len(model.asked) <= tried
