"""A session of 300 calls, made up from a seed, that is compacted ten times and more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from readcache import Budget, Policy, Session
from readcache.context import Compactor, How
from readcache.core.messages.structure import repair
from tests.helpers.chats import APIS, Step, chat, is_sendable, roles_alternate, text, texts, turn_of
from tests.helpers.compactor import SUMMARY, Model, TooLong, assert_true_markers

CALLS = 300


def worked(rng: random.Random) -> Iterator[tuple[str, str]]:
    """What an agent runs, and what that prints: files of 300 lines, each line with the number of its last edit."""
    edits = {f"src/f{n}.py": [0] * 300 for n in range(12)}
    for number in range(CALLS):
        path = rng.choice(list(edits)[: 3 + number // 30])
        kind = rng.choice(["cat", "range", "range", "edit", "tests", "list"])
        lines = text(1, 300, of=path).splitlines()
        shown = [f"{line} {edit}\n" for line, edit in zip(lines, edits[path], strict=True)]
        first = rng.randrange(1, 250)
        if kind == "cat":
            yield f"cat {path}", "".join(shown)
        elif kind == "range":
            yield f"sed -n '{first},{first + 50}p' {path}", "".join(shown[first - 1 : first + 50])
        elif kind == "edit":
            edits[path][first] = number
            yield f"sed -i {first}s/x/{number}/ {path}", ""
        else:
            yield f"make {kind}", text(1, rng.randrange(5, 200), of=f"{kind}{rng.randrange(40)}")


@pytest.mark.slow
@pytest.mark.parametrize("shape", APIS)
@pytest.mark.parametrize("policy", [Policy(), Policy(delta=True, any_output=True)], ids=["default", "max"])
def test_a_long_session_stays_well_formed_through_ten_compactions(shape: str, policy: Policy) -> None:
    session = Session("/w", policy=policy)
    model = Model(SUMMARY, SUMMARY, TooLong(), SUMMARY, "", *[SUMMARY] * 100)
    compactor = Compactor(session, model, trigger_tokens=20_000, budget=Budget(max_tokens=0.2))
    messages: list[Any] = chat(shape)
    task, hows = texts(messages)[-1], []
    for number, (command, output) in enumerate(worked(random.Random(7))):
        reply = session.observe(command, output, call_id=f"c{number}")
        messages = [*messages, *turn_of(shape, (f"c{number}", Step(command, reply.text)))]
        is_forced = number % 70 == 69
        shorter = compactor.compact(messages) if is_forced else compactor.ready(messages)
        if compactor.report.how is not How.NOTHING:
            hows.append(compactor.report.how)
            assert_true_markers(session, shorter)
        messages = shorter
        assert is_sendable(messages)
        assert repair(messages) is messages
        assert shape != "anthropic" or roles_alternate(messages)
        assert any(task in said for said in texts(messages[:2]))
        assert compactor.report.tokens_after < 20_000
    assert len(hows) >= 10
    assert hows.count(How.SUMMARISED) >= 5
