"""How the compactor reads the harness's list: each message once, and none is changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from readcache import Session
from readcache.context import Compactor, How
from readcache.core.messages import messages as reading
from tests.helpers.chats import APIS, Step, chat, result_messages, scripted, text, user
from tests.helpers.compactor import Model, commands, six_reads

each_api = pytest.mark.parametrize("api", APIS)


@each_api
def test_the_very_same_list_comes_back_below_the_trigger(api: str) -> None:
    compactor = Compactor(Session("/w"), Model(), trigger_tokens=1_000_000)
    messages = scripted(api, "u c1 r1")
    for _ in range(2):
        assert compactor.maybe_compact(messages) is messages


@each_api
def test_messages_that_stay_are_the_harness_own_objects(api: str) -> None:
    session = Session("/w")
    messages = six_reads(api, session)
    after = Compactor(session, Model(), trigger_tokens=1_000_000).compact(messages)
    assert all(a is b for a, b in zip(after[-4:], messages[-4:], strict=True))


class Dumped:
    """A message as an API's own package has it."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return dict(self.given)


def test_objects_of_the_apis_packages_stay_as_they_are() -> None:
    compactor = Compactor(Session("/w"), Model(), trigger_tokens=1_000_000)
    messages: list[Any] = [user("go"), Dumped(role="assistant", content=[Dumped(type="text", text="I look.")])]
    for _ in range(2):
        assert compactor.maybe_compact(messages) is messages


def test_what_a_harness_changes_in_place_is_read_anew() -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
    messages: list[Any] = six_reads("openai", session)
    compactor.maybe_compact(messages)
    before = compactor.report.tokens_before
    messages[-1]["content"] = "[cleared]"
    compactor.maybe_compact(messages)
    assert compactor.report.tokens_before < before


def test_the_store_is_not_given_the_list(tmp_path: Path) -> None:
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        messages = commands("openai", session, ("cat .env", "PASSWORD=swordfish\n" * 40), ("make", text()))
        Compactor(session, Model(), trigger_tokens=1_000_000).ready(messages)
    assert not [path.name for path in tmp_path.iterdir() if b"swordfish" in path.read_bytes()]


def deep() -> Any:
    nested: Any = "x"
    for _ in range(100_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    "awkward", [None, 7, "words", {"role": "user", "content": deep()}, {1: 2}], ids=lambda v: str(type(v))
)
def test_a_list_that_cannot_be_read_is_given_back_all_the_same(awkward: Any) -> None:
    compactor = Compactor(Session("/w"), Model(), trigger_tokens=1_000_000)
    messages: list[Any] = [user("go"), awkward]
    assert compactor.maybe_compact(messages) is messages
    messages.append(user("on"))
    assert compactor.maybe_compact(messages) is messages


# ------------------------------------------------------------ cost


def count_readings(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> dict[str, int]:
    """How often each message is normalised meanwhile, by its words."""
    from readcache.context import compaction, condensation, recording
    from readcache.core.sync import texts

    counts: dict[str, int] = {}
    real = reading.normalise_one

    def counted(message: Any) -> reading.Message:
        counts[str(message)] = counts.get(str(message), 0) + 1
        return real(message)

    for module in (reading, condensation, compaction, recording, texts):
        monkeypatch.setattr(module, "normalise_one", counted)
    action()
    monkeypatch.undo()
    return counts


def test_a_compaction_reads_what_goes_once_and_what_stays_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session("/w")
    steps = [
        Step(f"cat {n}", session.observe(f"cat {n}", text(of=f"f{n}"), call_id=f"c{n}").text) for n in range(1, 51)
    ]
    messages = chat("openai", *steps)
    compactor = Compactor(session, Model(), trigger_tokens=20_000)
    counts = count_readings(monkeypatch, lambda: compactor.maybe_compact(messages))
    assert compactor.report.how is How.SUMMARISED
    goes, stays = messages[2:-4], [*messages[:2], *messages[-4:]]
    assert {counts[str(message)] for message in goes} == {1}
    assert max(counts[str(message)] for message in stays) <= 3, "for the compactor, for what stays, for the new list"
    assert sum(counts.values()) < 1.3 * len(messages)


def test_a_step_reads_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    compactor = Compactor(Session("/w"), Model(), trigger_tokens=1_000_000)
    messages = scripted("openai", "u " + " ".join(f"c{n} r{n}" for n in range(100)))
    compactor.maybe_compact(messages)
    messages += result_messages("openai", [("c100", "new", False)])
    counts = count_readings(monkeypatch, lambda: compactor.maybe_compact(messages))
    assert sum(counts.values()) == 1
