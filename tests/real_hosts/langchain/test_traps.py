"""What breaks in LangChain without care: each of these was met with the real packages."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HostExecutionPolicy,
    HumanInTheLoopMiddleware,
    ModelRequest,
    ModelRetryMiddleware,
    ShellToolMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt

from readcache import Budget, Mode, Policy, Reply, Session
from readcache.core.model.policy import PRESETS
from readcache.core.model.tool_call import ToolCall
from readcache.hosts.langchain import ReadcacheMiddleware
from readcache.testing.conformance import make_project
from readcache.testing.hosts import Bash, Compact
from readcache.testing.requests import markers
from tests.real_hosts.langchain.agents import Clearing, LangChainHost, Script, ask, results, says, text_of, thread
from tests.real_hosts.user_tools import check_settings
from tests.real_hosts.window import MARKS, MODEL, Provider

# LangChain's shell leaves its pipes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
CAT = ("bash", {"command": "cat shop.py"})
HEAD = ("bash", {"command": "head -40 shop.py"})
TAIL = ("bash", {"command": "tail -40 shop.py"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_project(tmp_path / "project")
    return tmp_path / "project"


def agent_of(root: Path, model: Script, *middleware: Any, saver: Any = None, tools: Any = None) -> Any:
    tools = LangChainHost().tools(root) if tools is None else tools
    return create_agent(model, tools, middleware=list(middleware), checkpointer=saver)


class Counting(Script):
    """A model whose provider counts its requests."""

    provider: Any = None
    model: str = MODEL

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Any:
        calls = [call["id"] for message in messages for call in getattr(message, "tool_calls", ())]
        answered = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
        command = self.provider.command([*map(text_of, messages)], calls, answered)
        answer = says(("bash", {"command": command})) if command else AIMessage("done")
        size = self.provider.sizes[-1]
        answer.usage_metadata = {"input_tokens": size, "output_tokens": 9, "total_tokens": size + 9}
        self.answers = [answer]
        return super()._generate(messages)


def test_results_are_cleared_before_a_window_is_full(root: Path) -> None:
    model = Counting(provider=Provider(root))
    ask(agent_of(root, model, ReadcacheMiddleware(str(root), clear=MARKS)), {"recursion_limit": 200})
    model.provider.check()


# ------------------------------------------------------------ who reads


def test_threads_that_share_a_middleware_are_shown_everything_of_their_own(root: Path) -> None:
    model = Script()
    agent = agent_of(root, model, ReadcacheMiddleware(str(root)), saver=InMemorySaver())
    for name in ("one", "two"):
        model.answers = [says(CAT)]
        ask(agent, thread(name))
        assert not markers(results(model.requests[-1])[0])
    model.answers = [says(CAT)]
    ask(agent, thread("one"))
    assert markers(results(model.requests[-1])[1])


def test_conversations_without_a_thread_are_told_apart(root: Path) -> None:
    model = Script(answers=[says(CAT), says(CAT)])
    agent = agent_of(root, model, ReadcacheMiddleware(str(root)))
    ask(agent)
    assert [bool(markers(text)) for text in results(model.requests[-1])] == [False, True]
    model.answers = [says(CAT)]
    ask(agent)
    assert not markers(results(model.requests[-1])[0])


def test_a_conversation_that_is_handed_in_again_goes_on(root: Path) -> None:
    model = Script(answers=[says(CAT)])
    agent = agent_of(root, model, ReadcacheMiddleware(str(root)))
    said = agent.invoke({"messages": [("user", "go on")]})["messages"]
    model.answers = [says(HEAD)]
    agent.invoke({"messages": [*said, HumanMessage("more")]})
    assert markers(results(model.requests[-1])[1])


def test_an_agent_that_is_a_node_of_a_larger_graph_is_sound_in_each_of_its_runs(root: Path) -> None:
    model = Script(answers=[says(CAT), says(HEAD)])
    graph = StateGraph(MessagesState)
    graph.add_node("coder", agent_of(root, model, ReadcacheMiddleware(str(root))))
    graph.add_edge(START, "coder")
    whole = graph.compile(checkpointer=InMemorySaver())
    ask(whole, thread())
    assert [bool(markers(text)) for text in results(model.requests[-1])] == [False, True]
    model.answers = [says(HEAD)]
    ask(whole, thread())
    check_true(model.requests[-1])


def check_true(request: list[BaseMessage]) -> None:
    """Every line of shop.py that a result of this request may leave out is in another one."""
    shown = "\n".join(results(request))
    if markers(shown):
        assert all(f"# number {n} of the shop" in shown for n in range(1, 41))
    assert "GONE" not in shown


def test_threads_at_once_are_kept_apart(root: Path) -> None:
    ours = ReadcacheMiddleware(str(root))

    def talk(number: int) -> list[bool]:
        model = Script(answers=[says(CAT), says(HEAD, TAIL)])
        ask(agent_of(root, model, ours, saver=InMemorySaver()), thread(f"thread {number}"))
        return [bool(markers(text)) for text in results(model.requests[-1])]

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(talk, range(12))) == [[False, True, True]] * 12


def test_of_many_threads_the_oldest_is_forgotten_and_loses_no_line(root: Path) -> None:
    saver, ours, model = InMemorySaver(), ReadcacheMiddleware(str(root)), Script(answers=[says(CAT), says(HEAD)])
    agent = agent_of(root, model, ours, saver=saver)
    ask(agent, thread())
    for number in range(260):
        ask(agent, thread(f"other {number}"))
    ask(agent, thread())
    assert not markers("".join(results(model.requests[-1])))
    assert results(model.requests[-1])[1] == "".join((root / "shop.py").read_text().splitlines(True)[:40])


@pytest.mark.parametrize("state", [{"messages": [HumanMessage("hi")]}, {}, []])
def test_a_call_that_a_program_made_is_not_touched(root: Path, state: Any) -> None:
    ours = ReadcacheMiddleware(str(root))
    given = ToolMessage((root / "shop.py").read_text(), tool_call_id="own")
    call = {"name": "bash", "args": {"command": "cat shop.py"}, "id": "own", "type": "tool_call"}
    asked = ToolCallRequest(tool_call=call, tool=None, state=state, runtime=None)
    for _ in range(2):
        assert ours.wrap_tool_call(asked, lambda _: given) is given


# ------------------------------------------------------------ what leaves the request


def test_a_fresh_result_whose_source_is_cleared_before_the_next_request_is_shown_in_full(root: Path) -> None:
    class AsSoonAsThereIsASecond(Clearing):
        def apply(self, messages: list[Any], *, count_tokens: Any) -> None:
            self.cleared = int(len(results(messages)) > 1)
            super().apply(messages, count_tokens=count_tokens)

    model = Script(answers=[says(CAT), says(HEAD)])
    clearing = ContextEditingMiddleware(edits=[AsSoonAsThereIsASecond()])
    agent = agent_of(root, model, clearing, ReadcacheMiddleware(str(root)), saver=InMemorySaver())
    ask(agent, thread())
    assert results(model.requests[-1])[0] == "[cleared]"
    assert results(model.requests[-1])[1] == "".join((root / "shop.py").read_text().splitlines(True)[:40])
    ask(agent, thread())  # the state still has the marker
    assert "GONE" not in results(model.requests[-1])[1]
    assert not markers(results(model.requests[-1])[1])


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "with retries"])
def test_of_a_middleware_behind_ours_that_clears_results_is_warned_and_no_marker_is_sent(
    root: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    clearing, model = Clearing(), Script(answers=[says(CAT), says(HEAD)])
    behind = [ContextEditingMiddleware(edits=[clearing]), *([ModelRetryMiddleware()] if way == "with retries" else [])]
    agent = agent_of(root, model, ReadcacheMiddleware(str(root)), *behind, saver=InMemorySaver())
    ask(agent, thread())
    assert markers(results(model.requests[-1])[1]), "nothing is cleared yet"
    assert not caplog.messages
    clearing.cleared, model.answers = 1, [says(TAIL), says(CAT)]
    turn, before = {"messages": [("user", "go on")]}, len(model.requests)
    if way == "ainvoke":
        asyncio.run(agent.ainvoke(turn, thread()))
    elif way == "stream":
        list(agent.stream(turn, thread(), stream_mode="messages"))
    else:
        agent.invoke(turn, thread())
    assert len(model.requests) == before + 3
    text = (root / "shop.py").read_text()
    head, tail = "".join(text.splitlines(True)[:40]), "".join(text.splitlines(True)[-40:])
    assert results(model.requests[before]) == ["[cleared]", head]
    assert results(model.requests[-1]) == ["[cleared]", head, tail, text]
    assert [message for message in caplog.messages if "list ReadcacheMiddleware last" in message] == caplog.messages
    assert len(caplog.messages) == 1


def test_a_middleware_behind_ours_that_takes_no_line_changes_nothing(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Reminds(AgentMiddleware):  # type: ignore[misc]  # no types here
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            Script().invoke("which tools are needed?")  # a model of its own
            return handler(request.override(messages=[*request.messages, HumanMessage("mind the tests")]))

    model = Script(answers=[says(CAT), says(HEAD), says(TAIL)])
    ask(agent_of(root, model, ReadcacheMiddleware(str(root)), Reminds()))
    assert [bool(markers(text)) for text in results(model.requests[-1])] == [False, True, True]
    assert not caplog.messages


def test_arguments_that_are_cleared_are_no_source_though_a_copy_of_them_stays(root: Path) -> None:
    body = "".join(f"line {n} of a new file, with some words\n" for n in range(40))
    wrote, read = (
        says(("bash", {"command": f"cat > new.txt <<'EOF'\n{body}EOF"})),
        says(("bash", {"command": "cat new.txt"})),
    )
    for answer in (wrote, read):  # as Anthropic's models say it
        call = answer.tool_calls[0]
        answer.content = [{"type": "tool_use", "id": call["id"], "name": call["name"], "input": dict(call["args"])}]

    class OneEdit:
        is_due = False

        def apply(self, messages: list[Any], *, count_tokens: Any) -> None:
            if self.is_due:
                ClearToolUsesEdit(trigger=-1, keep=1, clear_tool_inputs=True).apply(messages, count_tokens=count_tokens)

    edit, model = OneEdit(), Script(answers=[wrote, read])
    clearing = ContextEditingMiddleware(edits=[edit])
    agent = agent_of(root, model, clearing, ReadcacheMiddleware(str(root)), saver=InMemorySaver())
    ask(agent, thread())
    assert markers(results(model.requests[-1])[1]), "it wrote the text itself"
    edit.is_due = True
    ask(agent, thread())
    assert not [marker for marker in markers(results(model.requests[-1])[1]) if "GONE" not in marker]


def test_what_a_summary_took_is_put_behind_it_and_pointed_at(root: Path) -> None:
    is_due = {"now": False}
    summary = SummarizationMiddleware(
        Script(answers=[AIMessage("what came before")]),
        trigger=("tokens", 1000),
        keep=("messages", 1),
        token_counter=lambda _: 10_000 if is_due["now"] else 0,
    )
    model = Script(answers=[says(CAT)])
    ours = ReadcacheMiddleware(str(root), restore=Budget())
    agent = agent_of(root, model, summary, ours, saver=InMemorySaver())
    ask(agent, thread())
    is_due["now"] = True
    ask(agent, thread())
    is_due["now"] = False
    first = str(model.requests[-1][0].text)
    assert first.startswith("Here is a summary")
    assert "def item_60(count: int)" in first
    model.answers = [says(HEAD)]
    ask(agent, thread())
    assert str(model.requests[-1][0].text) == first, "the beginning of a prompt stays what it is"
    assert "Files restored after compaction" in markers(results(model.requests[-1])[0])[0]
    kept = agent.get_state(thread()).values["messages"][0].text
    assert "def item_60" not in kept, "the state is as the host made it"


@tool  # type: ignore[untyped-decorator]  # no types here
def plan(steps: str) -> str:
    """Says what is to be done next."""
    return f"noted: {len(steps)} characters"


def test_what_calls_said_that_nobody_observed_tells_which_file_comes_back_first(root: Path) -> None:
    """Also the call that was made last, right before the summary took its place."""
    (root / "old.py").write_text((root / "shop.py").read_text().replace("shop", "pawn"))
    summary = SummarizationMiddleware(
        Script(answers=[AIMessage("what came before")]),
        trigger=("tokens", 1000),
        keep=("messages", 1),
        token_counter=lambda messages: 10_000 * ("noted:" in str(messages) and "pawn" in str(messages)),
    )
    steps = {"steps": "1. see what shop.py does with a count of nothing"}
    commands = [says(("bash", {"command": command})) for command in ("cat old.py", "echo done")]
    model = Script(answers=[says(CAT), *commands, says(("plan", steps))])
    ours = ReadcacheMiddleware(str(root), restore=Budget(), tools={"plan": "ignore"})
    agent = agent_of(root, model, summary, ours, saver=InMemorySaver(), tools=[*LangChainHost().tools(root), plan])
    ask(agent, thread())
    first = str(model.requests[-1][0].text)
    assert first.startswith("Here is a summary")
    assert 0 < first.index("/shop.py lines") < first.index("/old.py lines")


def test_another_process_on_the_same_store_puts_the_same_behind_a_summary(root: Path, tmp_path: Path) -> None:
    is_due, saver, store = {"now": False}, InMemorySaver(), str(tmp_path / "s.db")
    firsts = []
    for answers, due in (([says(CAT)], False), ([], True), ([says(HEAD)], False)):
        summary = SummarizationMiddleware(
            Script(answers=[AIMessage("what came before")]),
            trigger=("tokens", 1000),
            keep=("messages", 1),
            token_counter=lambda _: 10_000 if is_due["now"] else 0,
        )
        model, ours = Script(answers=answers), ReadcacheMiddleware(str(root), store=store)
        is_due["now"] = due
        ask(agent_of(root, model, summary, ours, saver=saver), thread())
        ours.close()
        firsts.append(str(model.requests[-1][0].text))
    assert "def item_60(count: int)" in firsts[1]
    assert firsts[2] == firsts[1]
    assert "Files restored after compaction" in markers(results(model.requests[-1])[-1])[0]


@pytest.mark.parametrize("restore", [False, None])
def test_nothing_is_put_behind_a_summary_where_that_is_not_wanted(root: Path, restore: Any) -> None:
    suite = LangChainHost(restore=restore)
    seen = suite.converse(root, ((Bash("cat shop.py"),), Compact(), (Bash("head -40 shop.py"),)), on=True)
    assert not any("Files restored" in text for one in seen for text in one.texts)


# ------------------------------------------------------------ what the state keeps


def test_a_checkpoint_that_another_process_goes_on_from_loses_no_line(root: Path) -> None:
    saver, model = InMemorySaver(), Script(answers=[says(CAT), says(HEAD)])
    ask(agent_of(root, model, ReadcacheMiddleware(str(root)), saver=saver), thread())
    assert markers(results(model.requests[-1])[1])
    later = Script()
    clearing = Clearing()
    clearing.cleared = 1
    ours = ReadcacheMiddleware(str(root))  # a process that knows nothing of the first one's
    ask(agent_of(root, later, ContextEditingMiddleware(edits=[clearing]), ours, saver=saver), thread())
    assert results(later.requests[-1])[1] == "".join((root / "shop.py").read_text().splitlines(True)[:40])


def test_with_a_durable_store_another_process_goes_on_with_what_was_left_out(root: Path, tmp_path: Path) -> None:
    saver, model, store = InMemorySaver(), Script(answers=[says(CAT), says(HEAD)]), str(tmp_path / "s.db")
    ask(agent_of(root, model, ReadcacheMiddleware(str(root), store=store), saver=saver), thread())
    later = Script(answers=[says(("bash", {"command": "tail -40 shop.py"}))])
    ours = ReadcacheMiddleware(str(root), store=store)
    ask(agent_of(root, later, ours, saver=saver), thread())
    assert results(later.requests[0])[1] == results(model.requests[-1])[1], "the prompt begins as it was"
    assert [bool(markers(text)) for text in results(later.requests[-1])] == [False, True, True]
    ours.close()


def test_after_going_back_in_time_what_came_later_is_no_source(root: Path) -> None:
    model = Script()
    agent = agent_of(root, model, ReadcacheMiddleware(str(root)), saver=InMemorySaver())
    ask(agent, thread())
    early = agent.get_state(thread()).config
    model.answers = [says(CAT)]
    ask(agent, thread())
    model.answers = [says(HEAD)]
    ask(agent, early)
    assert not markers(results(model.requests[-1])[0])


def test_switched_off_in_the_middle_no_marker_is_left(root: Path) -> None:
    saver, model = InMemorySaver(), Script(answers=[says(CAT), says(HEAD)])
    ask(agent_of(root, model, ReadcacheMiddleware(str(root)), saver=saver), thread())
    off = ReadcacheMiddleware(str(root), policy=Policy(mode=Mode.OFF))
    ask(agent_of(root, model, off, saver=saver), thread())
    assert results(model.requests[-1])[1] == "".join((root / "shop.py").read_text().splitlines(True)[:40])


@pytest.mark.parametrize("way", ["argument", "environment"])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_chosen_by_an_argument_or_in_the_environment(
    root: Path, way: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READCACHE_POLICY", preset if way == "environment" else "max")
    ours = ReadcacheMiddleware(str(root), policy=Policy.named(preset) if way == "argument" else None)
    model = Script(answers=[says(CAT), says(("bash", {"command": "sed -i '30s/$/ # new/' shop.py"})), says(CAT)])
    ask(agent_of(root, model, ours))
    shown = results(model.requests[-1])[-1]
    assert ("# new" in shown, bool(markers(shown))) == (True, preset != "default")


def test_switched_off_in_the_environment_nothing_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READCACHE", "off")
    model = Script(answers=[says(CAT), says(HEAD)])
    ask(agent_of(root, model, ReadcacheMiddleware(str(root))))
    assert not any(map(markers, results(model.requests[-1])))


def test_a_redaction_of_the_state_is_not_undone(root: Path) -> None:
    saver, model = InMemorySaver(), Script(answers=[says(CAT), says(CAT)])
    agent = agent_of(root, model, ReadcacheMiddleware(str(root)), saver=saver)
    ask(agent, thread())
    messages = agent.get_state(thread()).values["messages"]
    first = next(message for message in messages if isinstance(message, ToolMessage))
    secret = "# number 7 of the shop"
    agent.update_state(thread(), {"messages": [first.model_copy(update={"content": first.text.replace(secret, "#")})]})
    off = ReadcacheMiddleware(str(root), policy=Policy(mode=Mode.OFF))
    for ours in (ReadcacheMiddleware(str(root)), off):
        other = Script()
        ask(agent_of(root, other, ours, saver=saver), thread())
        assert secret not in results(other.requests[-1])[0]


def test_settings_are_checked_and_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = lambda ours: (ours._settings.policy, ours._settings.store)  # noqa: E731
    check_settings(partial(ReadcacheMiddleware, str(tmp_path)), kept, monkeypatch, tmp_path)


def test_counters_and_replies_are_told(root: Path) -> None:
    heard = list[Reply]()
    ours, model = ReadcacheMiddleware(str(root), on_reply=heard.append), Script()
    agent = agent_of(root, model, ours, saver=InMemorySaver())
    for name in ("one", "two"):
        model.answers = [says(CAT), says(HEAD)]
        ask(agent, thread(name))
    stats = ours.stats()
    assert stats["calls"] == len(heard) == 4
    assert stats["tokens_saved"] == sum(reply.tokens_saved for reply in heard) > 0
    ours.close()
    assert ours.stats() == stats, "those of conversations that ended count"


def test_a_function_for_replies_that_fails_costs_the_agent_nothing(root: Path) -> None:
    def fails(_: Reply) -> None:
        raise RuntimeError("of the user's")

    model = Script(answers=[says(CAT), says(HEAD)])
    ask(agent_of(root, model, ReadcacheMiddleware(str(root), on_reply=fails)))
    assert [bool(markers(text)) for text in results(model.requests[-1])] == [False, True]


# ------------------------------------------------------------ what is left alone


def test_blocks_and_artifacts_stay_what_they_are(root: Path) -> None:
    image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}

    def read_file(path: str) -> tuple[list[Any], dict[str, int]]:
        """Reads a file."""
        return [{"type": "text", "text": (root / path).read_text()}, image], {"kept": 1}

    call = ("read_file", {"path": "shop.py"})
    model = Script(answers=[says(call), says(call)])
    ours = ReadcacheMiddleware(str(root))
    ask(agent_of(root, model, ours, tools=[tool(read_file, response_format="content_and_artifact")]))
    first, second = [message for message in model.requests[-1] if isinstance(message, ToolMessage)]
    assert markers(str(second.text))
    assert isinstance(second.content, list)
    assert second.content[1] == first.content[1]
    assert second.artifact == {"kept": 1}


def test_commands_to_the_graph_and_answers_to_the_user_are_not_touched(root: Path) -> None:
    text = (root / "shop.py").read_text()

    def last_word() -> str:
        """What the user is given."""
        return text

    model = Script(answers=[says(CAT), says(("as_command", {})), says(("last_word", {}))])
    made = [answer.tool_calls[0]["id"] for answer in model.answers]

    def as_command() -> Command[Any]:
        """Changes the state."""
        return Command(update={"messages": [ToolMessage(text, tool_call_id=made[1])]})

    tools = [LangChainHost().tools(root)[0], tool(as_command), tool(last_word, return_direct=True)]
    said = agent_of(root, model, ReadcacheMiddleware(str(root)), tools=tools).invoke({"messages": [("user", "go")]})
    assert results(said["messages"]) == [text, text, text]


def test_what_a_person_refuses_or_delays_is_judged_once_it_is_there(root: Path) -> None:
    saver, model = InMemorySaver(), Script(answers=[says(CAT), says(CAT, HEAD), says(CAT)])
    person = HumanInTheLoopMiddleware(interrupt_on={"bash": True})
    agent = agent_of(root, model, person, ReadcacheMiddleware(str(root)), saver=saver)
    ask(agent, thread())
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread())
    agent.invoke(Command(resume={"decisions": [{"type": "reject"}, {"type": "approve"}]}), thread())
    shown = results(model.requests[-1])
    assert [bool(markers(text)) for text in shown[:3]].count(True) == 1
    check_true(model.requests[-1])


def test_a_tool_that_stops_for_a_person_is_judged_when_it_went_on(root: Path) -> None:
    def bash(command: str) -> str:
        """Asks before it runs."""
        interrupt(f"may I run {command}?")
        return (root / "shop.py").read_text()

    saver, model = InMemorySaver(), Script(answers=[says(CAT), says(CAT)])
    agent = agent_of(root, model, ReadcacheMiddleware(str(root)), saver=saver, tools=[tool(bash)])
    ask(agent, thread())
    agent.invoke(Command(resume=True), thread())
    assert not markers(results(model.requests[-1])[0])
    agent.invoke(Command(resume=True), thread())
    assert [bool(markers(text)) for text in results(model.requests[-1])] == [False, True]


def test_a_call_that_the_host_tries_again_is_sound(root: Path) -> None:
    tries = []

    def bash(command: str) -> str:
        """Fails now and then."""
        tries.append(command)
        if len(tries) % 2:
            raise OSError("not yet")
        return (root / "shop.py").read_text()

    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    model = Script(answers=[says(CAT), says(CAT)])
    ask(agent_of(root, model, retry, ReadcacheMiddleware(str(root)), tools=[tool(bash)]))
    assert [bool(markers(text)) for text in results(model.requests[-1])] == [False, True]


# ------------------------------------------------------------ shells and tools


@pytest.mark.skipif(version("langgraph") < "1.2", reason="langgraph 1.1 cannot keep the shell in a checkpoint")
def test_a_shell_that_stays_is_followed_into_other_directories(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub/shop.py").write_text((root / "shop.py").read_text())
    shell = ShellToolMiddleware(root, execution_policy=HostExecutionPolicy(command_timeout=5, max_output_lines=99))
    model = Script()
    ours = ReadcacheMiddleware(str(root))
    agent = agent_of(root, model, shell, ours, saver=InMemorySaver(), tools=[])
    commands = [
        "cat shop.py",
        "cd sub && cat ../long.txt",
        "sed -i 's/number 7 /number seven /' shop.py",
        "cat shop.py",
        "cat ../shop.py",
    ]
    model.answers = [says(("shell", {"command": command})) for command in commands]
    ask(agent, thread())
    shown = results(model.requests[-1])
    assert "number seven" in shown[3]
    assert markers(shown[4]), "the first file was not written"
    assert "sub" not in markers(shown[4])[0]
    model.answers = [says(("shell", {"command": "cat shop.py"}))]
    ask(agent, thread())
    last = results(model.requests[-1])[5]
    assert last.startswith("[FILE_UNCHANGED"), "a new run of the agent begins in the root again"


def test_the_text_of_an_error_is_not_said_to_be_a_file(root: Path) -> None:
    def read_file(path: str) -> str:
        """Reads a file."""
        raise ToolException("".join(f"reason {n} why {path} cannot be read\n" for n in range(40)))

    reads = tool(read_file)
    reads.handle_tool_error = True
    model = Script(answers=[says(("read_file", {"path": "shop.py"})) for _ in range(2)])
    ask(agent_of(root, model, ReadcacheMiddleware(str(root)), tools=[reads]))
    assert not [text for text in results(model.requests[-1]) if markers(text)]


def test_a_user_says_what_a_tool_is(root: Path) -> None:
    def lookup(where: str) -> str:
        """Reads a file."""
        return f"-- {where} --\n" + (root / where).read_text()

    def untouched(where: str) -> str:
        """Reads a file."""
        return (root / where).read_text()

    def judge(session: Session, result: ToolCall) -> Reply | None:
        frame = lambda text: (text[: text.index("\n") + 1], text[text.index("\n") + 1 :], "")  # noqa: E731
        return session.observe_read(
            result.arguments["where"], result.output, frame=frame, call_id=result.call_id, batch=result.batch
        )

    calls = [("lookup", {"where": "shop.py"}), ("lookup", {"where": "shop.py"}), ("untouched", {"where": "shop.py"})]
    model = Script(answers=[says(call) for call in calls])
    ours = ReadcacheMiddleware(str(root), tools={"lookup": judge, "untouched": "ignore"})
    ask(agent_of(root, model, ours, tools=[tool(lookup), tool(untouched)]))
    shown = results(model.requests[-1])
    assert shown[1].startswith("-- shop.py --\n[FILE_UNCHANGED")
    assert not markers(shown[2])


# ------------------------------------------------------------ failures of ours, and awaiting


def test_a_failure_of_ours_passes_the_real_output_through(root: Path) -> None:
    def fails(_session: Session, _result: ToolCall) -> Reply | None:
        raise RuntimeError("of ours")

    model = Script(answers=[says(CAT), says(CAT)])
    ask(agent_of(root, model, ReadcacheMiddleware(str(root), tools={"bash": fails})))
    assert results(model.requests[-1]) == [(root / "shop.py").read_text()] * 2


def test_where_markers_cannot_be_checked_the_lines_are_put_back(root: Path) -> None:
    saver, model = InMemorySaver(), Script(answers=[says(CAT), says(HEAD)])
    ours = ReadcacheMiddleware(str(root))
    agent = agent_of(root, model, ours, saver=saver)
    ask(agent, thread())
    messages = agent.get_state(thread()).values["messages"]
    nobody = ModelRequest(model=model, messages=messages, runtime=None)  # no conversation can be told from it
    sent = ours.wrap_model_call(nobody, lambda request: request)
    assert results(sent.messages)[1] == "".join((root / "shop.py").read_text().splitlines(True)[:40])


def test_awaited_agents_are_served_alike(root: Path) -> None:
    model = Script(answers=[says(CAT), says(HEAD, TAIL), says(TAIL)])
    agent = agent_of(root, model, ReadcacheMiddleware(str(root)), saver=InMemorySaver())
    asyncio.run(agent.ainvoke({"messages": [("user", "go on")]}, thread()))
    assert [bool(markers(text)) for text in results(model.requests[-1])] == [False, True, True, False]


def test_awaited_agents_are_served_outside_the_thread_of_their_event_loop(root: Path) -> None:
    threads = set[int]()
    ours = ReadcacheMiddleware(str(root), on_reply=lambda _: threads.add(threading.get_ident()))
    mend = ours._repaired

    def repaired(request: Any) -> Any:
        threads.add(threading.get_ident())
        return mend(request)

    ours._repaired = repaired  # type: ignore[method-assign]
    model = Script(answers=[says(CAT), says(HEAD)])
    asyncio.run(agent_of(root, model, ours).ainvoke({"messages": [("user", "go on")]}))
    assert threads
    assert threading.get_ident() not in threads
