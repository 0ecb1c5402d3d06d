"""OpenHands for real: tools, condenser, persistence, with a scripted model over HTTP."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from openhands.sdk import Agent
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.context.condenser.base import CondenserBase
from openhands.sdk.context.view import View
from openhands.sdk.event import ObservationEvent
from openhands.sdk.event.condenser import Condensation

from readcache import Reply, Session
from readcache.hosts.openhands import ReadcacheCondenser
from readcache.testing.requests import markers
from tests.real_hosts.chat_api import Json, ScriptedModel, result_chars
from tests.real_hosts.measured import Run, compare
from tests.real_hosts.openhands.openhands_host import SUMMARY, _merged, ask, conversation_in, is_lost, llm_of
from tests.real_hosts.user_tools import check_settings
from tests.real_hosts.window import MARKS, MODEL, ChatProvider

SHOP = "".join(f"def item_{n}(count):  # of the shop, with a few words\n" for n in range(60))
Call = tuple[str, Json]
CAT: Call = ("terminal", {"command": "cat shop.py"})


def several(root: Path, model: ScriptedModel) -> Iterator[Any]:
    """New conversations, for what needs a terminal."""
    for _ in range(4):
        conversation = conversation_in(root, model, on=True)
        yield conversation
        conversation.close()


GIVEN: list[str] = []


class NotingCondenser(CondenserBase):  # type: ignore[misc]  # not typed where this is checked
    """Notes the results that it is given."""

    def condense(self, view: View, agent_llm: Any = None) -> View:  # noqa: ARG002  its base class's
        GIVEN.extend(event.observation.text for event in view.events if isinstance(event, ObservationEvent))
        return view


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(summary=SUMMARY) as scripted:
        yield scripted


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path / "repo")


def project(root: Path) -> Path:
    root.mkdir()
    (root / "shop.py").write_text(SHOP)
    return root


def play(conversation: Any, model: ScriptedModel, *batches: tuple[Call, ...]) -> list[str]:
    """The results in the last request."""
    ask(conversation, model, *([model.call(name, given) for name, given in calls] for calls in batches))
    return _merged(model.requests[-1])


def view(root: Path, *lines: int) -> Call:
    """The editor's, which shows the same each time; the terminal of a busy machine loses itself now and then."""
    return "file_editor", {"command": "view", "path": str(root / "shop.py"), **({"view_range": lines} if lines else {})}


def script(root: Path) -> list[tuple[Call, ...]]:
    path = str(root / "shop.py")
    edit = {"command": "str_replace", "path": path, "old_str": "item_7(", "new_str": "item_seven("}
    return [
        (CAT,),
        (view(root), ("terminal", {"command": "sed -n '1,40p' shop.py"})),
        (view(root, 20, 50), ("terminal", {"command": "tail -n 30 shop.py"})),
        (("file_editor", edit),),
        (view(root),),
        (view(root, 10, 60), CAT),
        (("terminal", {"command": "cd /; head -n 45 " + path}),),
        (("file_editor", {"command": "undo_edit", "path": path}),),
        (view(root, 20, 50),),
        (view(root, 10, 60),),
    ]


def test_the_files_are_the_same_and_what_it_saves_is_measured(tmp_path: Path) -> None:
    def run_steps(directory: Path, on: bool) -> Run:
        root = project(directory)
        with ScriptedModel(summary=SUMMARY) as model:
            conversation = conversation_in(root, model, on=on)
            batches, began = script(root), time.monotonic()
            play(conversation, model, *batches)
            seconds = time.monotonic() - began
            conversation.close()
        assert (root / "shop.py").read_text() == SHOP
        assert bool([text for text in _merged(model.requests[-1]) if markers(text)]) == on
        return Run(result_chars(model.requests), seconds, sum(map(len, batches)))

    compare(
        "openhands", {name: version(name) for name in ("openhands-sdk", "openhands-tools")}, run_steps, tmp_path, most=1
    )


def test_the_conversation_keeps_every_real_output(model: ScriptedModel, root: Path) -> None:
    conversation = conversation_in(root, model, on=True)
    shown = play(conversation, model, (view(root),), (view(root, 1, 40),), (view(root),))
    assert [bool(markers(text)) for text in shown] == [False, True, True]
    kept = [event.observation.text for event in conversation.state.events if isinstance(event, ObservationEvent)]
    assert not markers("".join(kept))
    assert "item_59(" in kept[2]
    conversation.close()


def test_off_is_off(model: ScriptedModel, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = conversation_in(root, model, on=True, mode="off")
    assert not markers("".join(play(conversation, model, (view(root),), (view(root),))))
    conversation.close()
    monkeypatch.setenv("READCACHE", "off")
    conversation = conversation_in(root, model, on=True)
    assert not markers("".join(play(conversation, model, (view(root),), (view(root),))))
    conversation.close()


def test_a_failure_of_ours_costs_the_agent_nothing(
    model: ScriptedModel, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug of ours")

    for name in ("answer", "mend", "restored_section"):
        monkeypatch.setattr(Session, name, fail)
        conversation = conversation_in(root, model, on=True)
        shown = play(conversation, model, (view(root),), (view(root),))
        conversation.condense()
        assert "item_59(" in shown[0], name
        assert "item_59(" in shown[1] or name == "restored_section"
        conversation.close()


def test_calls_of_one_answer_do_not_point_at_each_other(model: ScriptedModel, root: Path) -> None:
    conversation = conversation_in(root, model, on=True)
    shown = play(conversation, model, (view(root), view(root)), (view(root, 1, 40),))
    assert [bool(markers(text)) for text in shown] == [False, False, True]
    conversation.close()


def condensed(model: ScriptedModel, root: Path, **ours: Any) -> tuple[Any, list[Json]]:
    """A conversation after a condensation, and what the model was sent then."""
    conversation = conversation_in(root, model, on=True, **ours)
    play(conversation, model, (view(root),), (view(root, 1, 40),), (("terminal", {"command": "pwd"}),))
    conversation.condense()
    play(conversation, model)
    return conversation, model.requests[-1]


def test_a_condensation_puts_back_what_files_were_like_and_later_reads_point_at_that(
    model: ScriptedModel, root: Path
) -> None:
    conversation, sent = condensed(model, root)
    (summary,) = [text for text in map(str, (message["content"] for message in sent)) if SUMMARY in text]
    assert "item_59(" in summary
    assert "\\x1b" not in summary
    again = play(conversation, model, (CAT,))[-1]
    assert is_lost(again) or '"Files restored after compaction"' in str(markers(again)), again
    conversation.close()


def test_a_resumed_conversation_points_at_the_section_of_an_earlier_process(
    model: ScriptedModel, root: Path, tmp_path: Path
) -> None:
    kept = {"persistence_dir": str(tmp_path / "kept"), "store": str(tmp_path / "log.db")}
    conversation, sent = condensed(model, root, **kept)
    name, ours = conversation.id, conversation.agent.condenser
    conversation.close()
    ours._sessions.close_all()
    again = conversation_in(root, model, on=True, conversation_id=name, **kept)
    shown = play(again, model, (view(root, 1, 40),))[-1]
    assert str(sent[-1]["content"]) in str(model.requests[-1]), "what was sent before is sent again"
    assert '"Files restored after compaction"' in str(markers(shown)), shown
    again.close()


def test_nothing_is_put_back_where_that_is_not_wanted(model: ScriptedModel, root: Path) -> None:
    conversation, sent = condensed(model, root, restore=False)
    assert SUMMARY in str(sent)
    assert "Files restored" not in str(sent)
    conversation.close()


def test_what_is_put_back_leaves_room_below_the_limit_of_the_inner_condenser(model: ScriptedModel, root: Path) -> None:
    """Else each condensation would be followed by the next."""
    inner = LLMSummarizingCondenser(llm=llm_of(model, "condenser"), max_size=200, keep_first=1, max_tokens=1_200)
    ours = ReadcacheCondenser(inner=inner, root=str(root))
    (root / "long.py").write_text(SHOP * 20)
    conversation = conversation_in(root, model, on=True)
    play(conversation, model, (("terminal", {"command": "head -n 600 long.py"}),))
    view = conversation.state.view
    ours.condense(view)
    forgotten = {event.id for event in view.events[1:]}
    done = Condensation(forgotten_event_ids=forgotten, summary="S", summary_offset=1, llm_response_id="r")
    restored = ours._after(view, view, done)
    assert isinstance(restored, Condensation)
    assert len(restored.summary or "") < 4 * 1_200 // 4 + 400
    conversation.close()


def test_whoever_sums_up_is_given_the_real_outputs(model: ScriptedModel, root: Path) -> None:
    conversation = conversation_in(root, model, on=True)
    play(conversation, model, (view(root),), (view(root),))
    GIVEN.clear()
    ours = ReadcacheCondenser(inner=NotingCondenser(), root=str(root))
    shown = ours.condense(conversation.state.view)
    later = asyncio.run(ours.acondense(conversation.state.view))
    assert not markers("".join(GIVEN))
    for told in (shown, later):
        assert isinstance(told, View)
        texts = [e.observation.text for e in told.events if isinstance(e, ObservationEvent)]
        assert [bool(markers(text)) for text in texts] == [False, True]
    conversation.close()


def test_one_agent_in_two_conversations_mixes_nothing_up(model: ScriptedModel, root: Path) -> None:
    from openhands.sdk.conversation.impl.local_conversation import LocalConversation

    first = conversation_in(root, model, on=True)
    agent: Agent = first.agent
    second = LocalConversation(agent, workspace=str(root), visualizer=None, stuck_detection=False)
    assert not markers("".join(play(first, model, (view(root),))))
    assert not markers("".join(play(second, model, (view(root),))))
    assert markers(play(first, model, (view(root, 1, 40),))[-1])
    first.close()
    second.close()


def test_a_fork_and_its_source_go_on_by_themselves(model: ScriptedModel, root: Path) -> None:
    source = conversation_in(root, model, on=True)
    play(source, model, (view(root),))
    fork = source.fork()
    assert markers(play(fork, model, (view(root, 1, 40),))[-1])
    assert markers(play(source, model, (view(root),))[-1])
    fork.close()
    source.close()


def test_a_conversation_is_taken_up_again(model: ScriptedModel, root: Path, tmp_path: Path) -> None:
    kept = {"persistence_dir": str(tmp_path / "kept")}
    conversation = conversation_in(root, model, on=True, **kept)
    play(conversation, model, (view(root),), (view(root, 1, 40),))
    name = conversation.id
    conversation.delete_on_close = False
    conversation.close()
    again = conversation_in(root, model, on=True, conversation_id=name, **kept)
    shown = play(again, model, (view(root),))
    assert [bool(markers(text)) for text in shown] == [False, True, True]
    again.close()


def test_secrets_are_masked_in_what_is_compared_and_kept(model: ScriptedModel, root: Path) -> None:
    (root / "env").write_text("".join(f"KEY_{n}=very-secret-{n} and some more words\n" for n in range(30)))
    read = ("terminal", {"command": "cat env # $TOKEN"})
    for conversation in several(root, model):
        conversation.update_secrets({"TOKEN": "very-secret-3 and"})
        first, again = play(conversation, model, (read,), (read,))
        if is_lost(first, again):
            continue
        assert "very-secret-3 and" not in first
        assert "very-secret-4 and" in first
        assert markers(again)
        return
    raise AssertionError("the terminal lost itself each time")


def test_commands_that_were_not_run_changed_and_showed_nothing(model: ScriptedModel, root: Path) -> None:
    late = ("terminal", {"command": "cat shop.py; sleep 6", "timeout": 1})
    remove, stop = ("terminal", {"command": "rm shop.py"}), ("terminal", {"command": "C-c", "is_input": True})
    for conversation in several(root, model):
        shown = play(conversation, model, (late,), (remove,), (stop,), (CAT,), (CAT,))
        if is_lost(shown[0], *shown[3:]):
            continue
        assert SHOP.rstrip() in shown[0]
        assert "NOT executed" in shown[1]
        assert SHOP.splitlines()[30] in shown[3] or markers(shown[3])
        assert (root / "shop.py").read_text() == SHOP
        return
    raise AssertionError("the terminal lost itself each time")


def test_with_tmux_markers_name_no_lines_of_files(model: ScriptedModel, root: Path) -> None:
    """It takes the empty lines away at both ends."""
    (root / "shop.py").write_text("\n\n" + SHOP)
    conversation = conversation_in(root, model, on=True, terminal="tmux")
    shown = play(conversation, model, (CAT,), (CAT,), (CAT,))
    found = markers("".join(shown))
    assert not [marker for marker in found if "shop.py line" in marker or "FILE_UNCHANGED" in marker]
    conversation.close()


def test_results_are_cleared_before_a_window_is_full(root: Path) -> None:
    model = ChatProvider(root, "terminal")
    with model:
        conversation = conversation_in(root, model, on=True, clear=MARKS, model_name=MODEL, inner=NotingCondenser())
        try:
            conversation.send_message("Go on.")
            conversation.run()
        finally:
            conversation.close()
    model.provider.check()


def test_counters_and_replies_are_told(model: ScriptedModel, root: Path) -> None:
    heard = list[Reply]()
    conversation = conversation_in(root, model, on=True, on_reply=heard.append)
    play(conversation, model, (view(root),), (view(root, 1, 40),))
    stats = conversation.agent.condenser.stats()
    assert stats["calls"] == len(heard) == 2
    assert stats["tokens_saved"] == sum(reply.tokens_saved for reply in heard) > 0
    assert "on_reply" not in conversation.agent.condenser.model_dump()
    conversation.close()


def test_a_setting_that_it_has_not_is_an_error_at_once() -> None:
    with pytest.raises(ValueError, match="polcy"):
        ReadcacheCondenser(polcy="max")


def test_settings_are_checked_and_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = lambda ours: (ours._settings.policy, ours._settings.store)  # noqa: E731
    check_settings(ReadcacheCondenser, kept, monkeypatch, tmp_path, lacks=["tools"], error=ValueError)


def test_a_conversation_that_is_taken_up_again_is_sent_as_before(
    model: ScriptedModel, root: Path, tmp_path: Path
) -> None:
    kept = {"persistence_dir": str(tmp_path / "kept")}
    conversation = conversation_in(root, model, on=True, **kept)
    before = play(conversation, model, (view(root),), (view(root, 1, 40),), (view(root),))
    name = conversation.id
    conversation.delete_on_close = False
    conversation.close()
    again = conversation_in(root, model, on=True, conversation_id=name, **kept)
    assert play(again, model) == before
    assert markers("".join(before))
    again.close()


def test_no_result_is_judged_in_the_thread_of_the_event_loop(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = set[int]()

    def begun(_: Any, given: View, _llm: Any) -> tuple[View, None]:
        threads.add(threading.get_ident())
        return given, None

    monkeypatch.setattr(ReadcacheCondenser, "_begun", begun)
    asyncio.run(ReadcacheCondenser(root=str(root)).acondense(View(events=[])))
    assert threads
    assert threading.get_ident() not in threads
