"""The prompt cache is never broken by us: before the harness's first change of a list, `mend` changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readcache import Policy, Session
from readcache.core.model.policy import PRESETS
from tests.helpers.chats import SHAPES, Raw, message_list, text

OUTPUTS = [text(1, 40), text(10, 30), text(1, 60), text(20, 50), text(1, 40, of="other"), f"ok\n{text(5, 35)}"]
READ = st.tuples(st.just("read"), st.integers(0, len(OUTPUTS) - 1))
CLEARED = st.tuples(st.just("clear"), st.lists(st.integers(0, 20), min_size=1, max_size=3))
FORGOTTEN = st.tuples(st.just("drop"), st.integers(0, 20))
STEPS = st.lists(st.one_of(READ, READ, READ, CLEARED, FORGOTTEN), max_size=14)


def alike(one: Sequence[object], other: Sequence[object]) -> int:
    """How many messages are the same, from the first on."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@pytest.mark.parametrize("keeps_ours", [True, False], ids=["keeps what we gave it", "keeps its own list"])
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=40)
@given(steps=STEPS, preset=st.sampled_from(PRESETS))
def test_mend_changes_nothing_before_the_first_change_of_the_harness(
    shape: str, keeps_ours: bool, steps: list[tuple[str, int | list[int]]], preset: str
) -> None:
    session = Session("/w", policy=Policy.named(preset))
    turns: list[tuple[str, str, str]] = []
    sent: list[Raw] = []  # as the model was sent it last
    before: list[Raw] = []  # as the harness had it then
    for number, (kind, which) in enumerate(steps):
        if kind == "read":
            assert isinstance(which, int)
            shown = session.observe(f"cat f{which % 2}", OUTPUTS[which], call_id=f"c{number}").text
            turns.append((f"c{number}", f"cat f{which % 2}", shown))
        elif kind == "clear" and turns:
            assert isinstance(which, list)
            for index in which:
                call_id, command, _ = turns[index % len(turns)]
                turns[index % len(turns)] = (call_id, command, "[cleared]")
        elif kind == "drop" and turns:
            assert isinstance(which, int)
            del turns[which % len(turns)]
        ours = message_list(shape, turns)
        repaired = session.mend(ours)
        assert alike(sent, repaired) >= min(alike(before, ours), len(sent))
        sent, before = repaired, ours
        if keeps_ours and shape in ("openai", "plain"):
            turns = [(*turn[:2], _result(message)) for turn, message in zip(turns, repaired[2::2], strict=True)]
            before = message_list(shape, turns)
    assert not session.stats().get("cache_writes")


def _result(message: Raw) -> str:
    return str(message["content"]).removeprefix("<returncode>0</returncode>\n<output>\n").removesuffix("</output>")
