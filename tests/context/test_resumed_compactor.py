"""Another process of a compactor gets the same list from the log, or the whole one, and never another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from readcache import Marks, Policy, Session
from readcache.context import Compactor
from readcache.core.model.events import Condensed
from readcache.log.reader import Reader
from readcache.log.store import open_store
from tests.context.test_recorded import head_of, shapes, turn
from tests.helpers.chats import Messages, Step, chat, texts
from tests.helpers.chats import text as lines
from tests.helpers.compactor import Model, commands, six_reads

SECRET = "ghp_" + "a1B2" * 9


def opened(tmp_path: Path, **policy: Any) -> Session:
    return Session("/w", session_id="s", store=tmp_path / "log.db", policy=Policy(**policy))


def grown(shape: str, session: Session, whole: Messages, first: int, count: int = 6) -> Messages:
    for number in range(first, first + count):
        whole = [*whole, *turn(shape, session, number, [(f"cat {number}", lines(of=str(number)))])]
    return whole


@shapes
@pytest.mark.parametrize("marks", [None, Marks(2_000, 0)], ids=["summaries", "cleared"])
def test_the_next_process_gets_the_same_list(shape: str, marks: Marks | None, tmp_path: Path) -> None:
    with opened(tmp_path, clear=marks) as session:
        compactor = Compactor(session, Model(), trigger_tokens=3_000)
        whole = head_of(shape)
        for at in range(3):
            whole = grown(shape, session, whole, at * 6)
            kept = compactor.ready(whole)
        made = compactor.condensations
    with opened(tmp_path, clear=marks) as session:
        model = Model()
        compactor = Compactor(session, model, trigger_tokens=3_000)
        assert compactor.resume(whole) == kept
        assert compactor.report.trouble == ""
        assert compactor.condensations == made
        compactor.ready(whole)
    assert model.asked == []


def test_condensations_of_the_harness_own_store_are_taken() -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=100_000)
    whole = six_reads("openai", session)
    kept = compactor.compact(whole)
    other = Compactor(Session("/w"), Model(), trigger_tokens=100_000)
    assert other.resume(whole, compactor.condensations) == kept
    assert Compactor(Session("/w"), Model(), trigger_tokens=100_000).resume(whole) is whole


def test_the_log_gets_nothing_that_follows_condensations_it_does_not_have(tmp_path: Path) -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=100_000)
    whole = six_reads("openai", session)
    compactor.compact(whole)
    with opened(tmp_path) as other:
        compactor, earlier = Compactor(other, Model(), trigger_tokens=100_000), compactor.condensations
        compactor.resume(whole, earlier)
        longer = [*whole, *commands("openai", other, *[(f"cat {n}", lines(of=n)) for n in "ghij"])[2:]]
        compactor.compact(longer)
        assert len(compactor.condensations) == 2
        assert not any(isinstance(record.event, Condensed) for record in other.events())
        next_one = Compactor(other, None, trigger_tokens=100_000)
        assert (next_one.resume(longer) is longer, next_one.report.trouble) == (True, "")


def test_a_kill_at_every_step_leaves_the_same_list_or_the_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends at the n-th write of its log. Then the log is what the next process finds."""

    def compacted(root: Path, writes: int) -> tuple[Messages, Messages | None]:
        """Return the whole list, and the shortened one if the process lived to return it."""
        root.mkdir()
        with opened(root) as session:
            whole = six_reads("openai", session)
        session = opened(root)
        told, left = Reader.tell, [writes]

        def tell(self: Reader, *given: Any, **more: Any) -> None:
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1
            told(self, *given, **more)

        with monkeypatch.context() as patched:
            patched.setattr(Reader, "tell", tell)
            try:
                return whole, Compactor(session, Model(), trigger_tokens=3_000).ready(whole)
            except KeyboardInterrupt:
                return whole, None

    seen: list[Messages | None] = []
    _, kept = compacted(tmp_path / "lives", 1_000)
    for writes in range(20):
        whole, lived = compacted(tmp_path / str(writes), writes)
        with opened(tmp_path / str(writes)) as session:
            compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
            found = compactor.resume(whole)
            assert found in (whole, kept)
            assert compactor.report.trouble == ""
        seen.append(found)
        if lived is not None:
            break
    assert lived == kept == seen[-1]
    assert seen[0] == whole
    assert len(seen) > 3


def damaged(data: Condensed) -> Condensed:
    return replace(data, data=data.data.replace('"version": 1', '"version": 9'))


def without_section(data: Condensed) -> Condensed:
    return replace(data, data=data.data.replace('"restored": "restored-', '"restored": "lost-'))


def other_summary(data: Condensed) -> Condensed:
    return replace(data, data=data.data.replace('"replaced": "', '"replaced": "0'))


@pytest.mark.parametrize("spoil", [damaged, without_section, other_summary])
def test_what_cannot_be_applied_is_named(
    spoil: Callable[[Condensed], Condensed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as session:
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        whole = six_reads("openai", session)
        compactor.compact(whole)
        (made,) = compactor.condensations
    with opened(tmp_path) as session:
        records = [
            replace(record, event=spoil(record.event)) if isinstance(record.event, Condensed) else record
            for record in session.events()
        ]
        monkeypatch.setattr(session, "events", lambda: records)
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        assert compactor.resume(whole) is whole
        assert compactor.report.trouble.endswith(f"condensation {made.id}")
        assert compactor.condensations == []


def test_a_list_that_differs_is_shown_whole(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        compactor.compact(six_reads("openai", session))
        (made,) = compactor.condensations
    with opened(tmp_path) as session:
        other = commands("openai", Session("/w"), *[(f"cat {n}", lines(of=f"other {n}")) for n in "abcdef"])
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        assert compactor.resume(other) is other
        assert made.id in compactor.report.trouble


def expire(tmp_path: Path) -> None:
    """Do what `readcache` does to a session that was idle for long enough."""
    with closing(open_store(str(tmp_path / "log.db"))) as store:
        store.take_out("s", max(last for *_, last in store.sessions("s")))


def test_a_log_that_expired_is_reported(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        whole = six_reads("openai", session)
        kept = compactor.compact(whole)
        earlier = compactor.condensations
    expire(tmp_path)
    with opened(tmp_path) as session:
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        assert compactor.resume(whole) is whole
        assert "the log expired" in compactor.report.trouble
        assert (compactor.resume(whole, earlier), compactor.report.trouble) == (
            kept,
            "",
        )  # the harness has its own store
    with opened(tmp_path / "new") as session:
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        assert (compactor.resume(whole) is whole, compactor.report.trouble) == (True, "")


def test_a_log_that_expired_under_a_compactor_gives_no_other_list(tmp_path: Path) -> None:
    with opened(tmp_path, clear=Marks(2_000, 0)) as session:
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        whole = grown("openai", session, head_of("openai"), 0)
        compactor.ready(whole)
        expire(tmp_path)
        whole = grown("openai", session, whole, 6)
        compactor.ready(whole)
        later = compactor.condensations[-1]
    with opened(tmp_path) as session:
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        assert compactor.resume(whole) is whole
        assert later.id in compactor.report.trouble


# ------------------------------------------------------------ what is stored


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        (Step("make", lines()), f"TASK: use {SECRET}\nNEXT STEP: none"),
        (Step("cat .env", "PASSWORD=swordfish\n" * 40), "TASK: the password is swordfish\nNEXT STEP: none"),
    ],
    ids=["certain secret", "protected line"],
)
def test_a_summary_with_a_secret_is_not_stored(step: Step, answer: str, tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        compactor = Compactor(session, Model(answer), trigger_tokens=100_000)
        steps = [step, *(Step(f"cat {n}", lines(of=str(n))) for n in range(4))]
        whole = chat("openai", *steps)
        kept = compactor.compact(whole)
        assert answer in "\n".join(texts(kept))
        (made,) = compactor.condensations
    assert not [path.name for path in tmp_path.iterdir() if b"swordfish" in path.read_bytes()]
    assert not [path.name for path in tmp_path.iterdir() if SECRET.encode() in path.read_bytes()]
    with opened(tmp_path) as session:
        compactor = Compactor(session, Model(), trigger_tokens=100_000)
        assert compactor.resume(whole) is whole
        assert made.id in compactor.report.trouble


@shapes
def test_no_other_text_of_the_conversation_is_stored(shape: str, tmp_path: Path) -> None:
    with opened(tmp_path, clear=Marks(2_000, 0)) as session:
        compactor = Compactor(session, Model(), trigger_tokens=1_500)
        whole = head_of(shape)
        for at in range(4):
            whole = grown(shape, session, whole, at * 3, 3)
            compactor.ready(whole)
        stored = [record.event.data for record in session.events() if isinstance(record.event, Condensed)]
    assert len(stored) == len(compactor.condensations) > 1
    assert "says something that no other line says" not in "".join(stored)
    assert max(map(len, stored)) < 6_000


def test_the_ends_of_one_long_line_are_not_stored(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        whole = commands("openai", session, ("curl x", "word " * 20_000), ("ls", "a\n"), ("true", "b\n"), ("id", "c\n"))
        kept = Compactor(session, Model(), trigger_tokens=12_000).ready(whole)
    with opened(tmp_path) as session:
        (stored,) = [record.event.data for record in session.events() if isinstance(record.event, Condensed)]
        assert len(stored) < 1_000
        assert "word" not in stored
        assert Compactor(session, None, trigger_tokens=12_000).resume(whole) == kept != whole
