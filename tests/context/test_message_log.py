"""What the compactor records: the list as it is, which a process that comes after gets."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Reason, Session
from readcache.context import Compactor, How, prune
from readcache.log.store.memory import MemoryStore
from readcache.messages import messages as reading
from readcache.messages.structure import repair
from readcache.model.errors import StoreError
from readcache.model.events import Listed
from tests.helpers.chats import APIS, Messages, Step, chat, is_sendable, result_messages, scripted, text, turn_of, user
from tests.helpers.compactor import Model, TooLong, assert_true_markers, commands, recorded, six_reads

each_api = pytest.mark.parametrize("api", APIS)


def process(store: Any, *, trigger_tokens: int = 1_000_000, model: Model | None = None) -> tuple[Session, Compactor]:
    """The session and the compactor of a process of its own on this store."""
    session = Session("/w", session_id="s", store=store)
    return session, Compactor(session, model or Model(), trigger_tokens=trigger_tokens)


def compactor_of(store: Any) -> Compactor:
    return process(store)[1]


def stored(store: Any) -> Messages:
    """What a process of its own finds on this store."""
    return recorded(process(store)[0])


def listed(session: Session) -> list[int]:
    """The places in the list that were recorded, in order."""
    log = session.reader.log
    records = log.store.records(log.session_id, f"{log.agent_id}/list")
    return [record.event.at for record in records if isinstance(record.event, Listed)]


@each_api
def test_the_very_same_list_comes_back_and_is_recorded(api: str) -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
    messages = scripted(api, "u c1 r1")
    assert compactor.maybe_compact(messages) is messages
    messages += scripted(api, "c2 r2")
    assert compactor.maybe_compact(messages) is messages
    assert recorded(session) == messages
    assert listed(session) == [0, 1, 2, 3, 4]


@each_api
def test_a_compacted_list_is_recorded(api: str) -> None:
    session = Session("/w")
    after = Compactor(session, Model(), trigger_tokens=1_000_000).compact(six_reads(api, session))
    assert recorded(session) == after


def test_of_a_pruned_list_only_what_was_changed_is_recorded() -> None:
    session = Session("/w")
    given = [(f"make {n}", text(1, 400, of=f"m{n}")) for n in range(6)]
    messages = commands("openai", session, *given, ("true", ""), ("true", ""))
    compactor = Compactor(session, Model(), trigger_tokens=30_000)
    after = compactor.maybe_compact(messages)
    assert compactor.report.how is How.PRUNED
    assert recorded(session) == after
    changed = [at for at, (old, new) in enumerate(zip(messages, after, strict=True)) if old != new]
    assert listed(session)[len(messages) :] == changed != []


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


def test_objects_of_the_apis_packages_are_recorded_as_what_they_hold() -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
    messages: list[Any] = [user("go"), Dumped(role="assistant", content=[Dumped(type="text", text="I look.")])]
    for _ in range(2):
        assert compactor.maybe_compact(messages) is messages
    assert recorded(session)[1] == {"role": "assistant", "content": [{"type": "text", "text": "I look."}]}
    assert listed(session) == [0, 1]


def test_what_a_harness_changes_in_place_is_recorded() -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
    messages: list[Any] = scripted("openai", "u c1 r1")
    compactor.maybe_compact(messages)
    messages[2]["content"] = "[cleared]"
    compactor.maybe_compact(messages)
    assert recorded(session) == messages
    assert listed(session) == [0, 1, 2, 2]


def test_what_a_harness_does_to_the_compacted_list_does_not_touch_the_record() -> None:
    session = Session("/w")
    compactor = Compactor(session, Model(), trigger_tokens=1_000_000)
    after: list[Any] = compactor.compact(six_reads("anthropic", session))
    before = copy.deepcopy(after)
    after[0]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    assert recorded(session) == before


# ------------------------------------------------------------ another process


@pytest.mark.parametrize("api", APIS)
def test_another_process_resumes_with_the_same_list(api: str, tmp_path: Path) -> None:
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        after = Compactor(session, Model(), trigger_tokens=1_000_000).compact(six_reads(api, session))
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        resumed = Compactor(session, Model(), trigger_tokens=1_000_000)
        assert resumed.resume() == after
        assert_true_markers(session, after)


@each_api
def test_a_call_whose_result_never_came_is_taken_out_and_no_longer_counts_as_seen(api: str) -> None:
    store = MemoryStore()
    first = Session("/w", session_id="s", store=store)
    whole = chat(api, Step("cat f", first.observe("cat f", text(), call_id="c1").text))
    torn = [*whole, turn_of(api, ("c2", Step("cat g", None)))[0]]
    Compactor(first, Model(), trigger_tokens=1_000_000).maybe_compact(torn)
    first.observe("cat g", text(of="g"), call_id="c2")  # and here the process dies

    session = Session("/w", session_id="s", store=store)
    resumed = Compactor(session, Model(), trigger_tokens=1_000_000).resume()
    assert repair(resumed) is resumed
    assert is_sendable(resumed)
    assert resumed[: len(whole)] == whole
    assert session.observe("cat f", text(), call_id="c3").reason is Reason.COVERED
    assert session.observe("cat g", text(of="g"), call_id="c4").reason is Reason.NOT_SEEN


def test_a_session_that_no_compactor_worked_on_resumes_with_nothing() -> None:
    assert compactor_of(MemoryStore()).resume() == []


def test_a_sub_agent_has_a_list_of_its_own() -> None:
    session = Session("/w")
    Compactor(session, Model(), trigger_tokens=1_000_000).maybe_compact(scripted("openai", "u c1 r1"))
    forked = session.fork("child")
    Compactor(forked, Model(), trigger_tokens=1_000_000).maybe_compact(scripted("openai", "u"))
    assert [len(recorded(reader)) for reader in (session, forked)] == [3, 1]


def test_no_view_and_no_counter_knows_of_the_list() -> None:
    session = Session("/w")
    Compactor(session, Model(), trigger_tokens=1_000_000).maybe_compact(scripted("openai", "u c1 r1"))
    assert session.view.deliveries == type(session.view)().deliveries
    assert not any(session.stats().values())


# ------------------------------------------------------------ failures


class Unreliable(MemoryStore):
    """A store that does not take, or give, what it is asked for while it is told so."""

    is_down = False

    def append(self, *given: Any) -> int:
        if self.is_down:
            raise StoreError("down")
        return super().append(*given)

    def records(self, *given: Any, **more: Any) -> Any:
        if self.is_down:
            raise StoreError("down")
        return super().records(*given, **more)


@pytest.mark.parametrize("down", [{0}, {1}, {2}, {0, 1}, {1, 2}], ids=str)
def test_a_store_that_fails_for_a_while_has_the_whole_list_afterwards(down: set[int]) -> None:
    store = Unreliable()
    compactor = compactor_of(store)
    messages = []
    for n in range(4):
        store.is_down = n in down
        messages += scripted("openai", f"c{n} r{n}")
        assert compactor.maybe_compact(messages) is messages
    assert stored(store) == messages


def test_a_store_that_took_events_twice_gives_each_message_once() -> None:
    store = MemoryStore()
    compactor_of(store).maybe_compact(scripted("openai", "u c1 r1"))
    place = "s", "main/list"
    store.append(*place, [record.event for record in store.records(*place)], 1.0)
    assert stored(store) == scripted("openai", "u c1 r1")


def test_a_message_that_is_no_json_is_kept_in_memory_and_the_failure_is_counted() -> None:
    store = MemoryStore()
    session, compactor = process(store)
    image: Any = {"role": "user", "content": [{"type": "image", "source": {"data": b"\x89PNG"}}]}
    messages: Messages = [user("go"), image, user("on")]
    assert compactor.maybe_compact(messages) is messages
    assert session.stats()["store_failed"] == 1
    resumed = compactor_of(store)
    messages = resumed.resume()
    assert messages == [user("go"), user("on")]
    messages += [user("and on")]
    resumed.maybe_compact(messages)
    assert compactor_of(store).resume() == messages


def deep() -> Any:
    nested: Any = "x"
    for _ in range(100_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    "awkward", [None, 7, "words", {"role": "user", "content": deep()}, {1: 2}], ids=lambda v: str(type(v))
)
def test_a_list_that_cannot_be_recorded_is_given_back_all_the_same(awkward: Any) -> None:
    compactor = Compactor(Session("/w"), Model(), trigger_tokens=1_000_000)
    messages: list[Any] = [user("go"), awkward]
    assert compactor.maybe_compact(messages) is messages
    messages.append(user("on"))
    assert compactor.maybe_compact(messages) is messages


# ------------------------------------------------------------ laws

ACTIONS = st.lists(
    st.sampled_from(["read", "read", "read", "write", "say", "prune", "compact", "maybe", "clear", "rewind", "kill"]),
    max_size=24,
)


@given(st.sampled_from(APIS), ACTIONS, st.sampled_from([600, 4_000, 1_000_000]), st.booleans())
def test_the_list_and_a_new_process_always_agree(api: str, actions: list[str], trigger: int, fails: bool) -> None:
    store = MemoryStore()
    model = Model(TooLong(), RuntimeError("down")) if fails else Model()
    session, compactor = process(store, trigger_tokens=trigger, model=model)
    messages: Messages = compactor.maybe_compact(chat(api))
    for number, action in enumerate(actions):
        if action in ("read", "write"):
            name = "fgh"[number % 3]
            command = f"cat {name}" if action == "read" else f"cat > {name} <<'EOF'\n{text(1, 30, of=name)}EOF\n"
            output = text(1, 30, of=name) if action == "read" else ""
            shown = session.observe(command, output, call_id=f"c{number}").text
            messages = [*messages, *turn_of(api, (f"c{number}", Step(command, shown)))]
        elif action == "say":
            messages = [*messages, user(f"go on {number}")]
        elif action == "prune":
            messages = prune(messages, session)
        elif action == "clear":  # by a harness that tells the session
            cleared = [{**message, "content": "-"} if message["role"] == "tool" else message for message in messages]
            messages = session.mend(cleared)
        elif action == "rewind":
            half = messages[: len(messages) // 2]
            messages = session.mend(half if repair(half) is half else chat(api))
        elif action == "kill":
            session, compactor = process(store, trigger_tokens=trigger, model=model)
            messages = compactor.resume()
        before = messages
        messages = compactor.compact(messages) if action == "compact" else compactor.maybe_compact(messages)
        assert (messages is before) == (compactor.report.how is How.NOTHING)
        assert stored(store) == messages
    assert compactor_of(store).resume() == messages


# ------------------------------------------------------------ cost


def count_readings(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> dict[str, int]:
    """How often each message is normalised meanwhile, by its words."""
    from readcache.context import compaction, message_log, split
    from readcache.sync import texts

    counts: dict[str, int] = {}
    real = reading.normalise_one

    def counted(message: Any) -> reading.Message:
        counts[str(message)] = counts.get(str(message), 0) + 1
        return real(message)

    for module in (reading, message_log, compaction, split, texts):
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
