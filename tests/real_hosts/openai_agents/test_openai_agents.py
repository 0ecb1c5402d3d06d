"""What breaks with the OpenAI Agents SDK, each with the real one and its own scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    RunConfig,
    Runner,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellResult,
    ShellTool,
    SQLiteSession,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
    handoff,
)
from agents.extensions import ToolOutputTrimmer, handoff_filters
from agents.run import ModelInputData
from agents.run_config import SandboxRunConfig
from agents.sandbox import SandboxAgent
from agents.sandbox.types import ExecResult
from agents.testing import ScriptedModel, assistant_message, function_call, scripted_sandbox_session
from openai.types.responses import ResponseCompactionItem, ResponseFunctionShellToolCall

from readcache import Mode, Policy
from readcache.core.model.policy import PRESETS
from readcache.hosts.openai_agents import ReadcacheFilter
from readcache.testing.requests import markers
from tests.real_hosts.examples_page import switched_on
from tests.real_hosts.openai_agents.agents_host import make_tools, texts_of
from tests.real_hosts.window import MARKS, MODEL, Provider

LINES = [f"def item_{n}(count: int) -> float:  # number {n} of the shop" for n in range(1, 61)]
TEXT = "\n".join(LINES) + "\n"
DONE = [assistant_message("done")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with shop.py in it."""
    (tmp_path / "shop.py").write_text(TEXT)
    return tmp_path


def bash(command: str, call_id: str) -> Any:
    """A call of the shell tool."""
    return function_call("bash", {"command": command}, call_id=call_id)


def config(root: Path, **given: Any) -> Any:
    """A run's configuration with readcache in it."""
    return RunConfig(call_model_input_filter=ReadcacheFilter(str(root), **given), tracing_disabled=True)


def results(model: Any, request: int = -1) -> dict[str, Any]:
    """By call id, the results in one request."""
    items = model.calls[request].input
    return {item["call_id"]: item["output"] for item in items if item.get("type") == "function_call_output"}


async def run(root: Path, steps: Sequence[Any], run_config: Any, **given: Any) -> tuple[Any, Any]:
    """(the model, the run's result) of one run with these messages of the model."""
    model = ScriptedModel([*steps, DONE])
    agent = Agent(name="coder", model=model, tools=make_tools(root))
    return model, await Runner.run(agent, "the task", run_config=run_config, **given)


def test_the_second_read_is_a_marker_and_the_run_keeps_what_the_tool_gave(root: Path) -> None:
    steps = [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")], [bash("cat shop.py", "c")]]
    model, result = asyncio.run(run(root, steps, config(root)))
    shown = results(model)
    assert shown["a"] == f"{TEXT}\nExit code: 0"
    assert shown["b"].startswith("[FILE_UNCHANGED")
    assert shown["b"].endswith("\n\nExit code: 0")
    assert shown["c"] == shown["a"]
    assert [item["output"] for item in result.to_input_list() if "output" in item] == [shown["a"]] * 3
    assert [results(model, n).get("b") for n in (2, 3)] == [shown["b"]] * 2, "a prompt's beginning stays the same"


def test_streamed_runs_are_served_too(root: Path) -> None:
    async def stream() -> Any:
        model = ScriptedModel([[bash("cat shop.py", "a")], [bash("cat shop.py", "b")], DONE])
        agent = Agent(name="coder", model=model, tools=make_tools(root))
        streamed = Runner.run_streamed(agent, "the task", run_config=config(root))
        async for _ in streamed.stream_events():
            pass
        return model

    assert markers(results(asyncio.run(stream()))["b"])


def test_calls_of_one_message_do_not_point_at_each_other(root: Path) -> None:
    steps = [[bash("cat shop.py", "a"), bash("cat shop.py", "b")], [bash("head -50 shop.py", "c")]]
    shown = results(asyncio.run(run(root, steps, config(root)))[0])
    assert not markers(shown["a"] + shown["b"])
    assert markers(shown["c"])


def test_a_source_that_the_users_own_filter_trims_is_put_back(root: Path) -> None:
    def trimmed(data: Any) -> Any:
        """The first result, as a harness's own filter cuts it once there are three."""
        items = list(data.model_data.input)
        outputs = [n for n, item in enumerate(items) if item.get("type") == "function_call_output"]
        if len(outputs) > 2:
            items[outputs[0]] = {**items[outputs[0]], "output": "[trimmed]"}
        return ModelInputData(input=items, instructions=data.model_data.instructions)

    async def later(data: Any) -> Any:
        return trimmed(data)

    for first in (trimmed, later):
        steps = [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")], [bash("echo x", "c")]]
        model, _ = asyncio.run(run(root, steps, config(root, first=first)))
        assert markers(results(model, 2)["b"])
        after = results(model, 3)
        assert after["a"] == "[trimmed]"
        assert all(found.startswith("[GONE") for found in markers(after["b"]))


def test_a_fresh_result_whose_source_is_trimmed_at_once_is_shown_in_full(root: Path) -> None:
    run_config = config(root, first=ToolOutputTrimmer(recent_turns=1, max_output_chars=400, preview_chars=50))

    async def two_turns() -> Any:
        model = ScriptedModel([[bash("cat shop.py", "a")], DONE, [bash("cat shop.py", "b")], DONE])
        agent = Agent(name="coder", model=model, tools=make_tools(root))
        first = await Runner.run(agent, "one", run_config=run_config)
        await Runner.run(agent, [*first.to_input_list(), {"role": "user", "content": "two"}], run_config=run_config)
        return model

    model = asyncio.run(two_turns())
    assert "[Trimmed" in results(model)["a"]
    assert results(model)["b"] == f"{TEXT}\nExit code: 0"


def test_a_conversation_goes_on_in_the_next_run_and_in_a_session_of_the_sdk(root: Path) -> None:
    run_config, memory = config(root), SQLiteSession("one")

    async def two_runs() -> Any:
        await run(root, [[bash("cat shop.py", "a")]], run_config, session=memory)
        return (await run(root, [[bash("cat shop.py", "b")]], run_config, session=memory))[0]

    assert markers(results(asyncio.run(two_runs()))["b"])


def test_runs_at_once_on_one_configuration_are_apart(root: Path) -> None:
    """Also where a model's ids are the same in both."""
    (root / "other.py").write_text(TEXT.replace("item", "thing"))
    run_config = config(root)

    async def both() -> list[Any]:
        one = [[bash("cat shop.py", "1")], [bash("sleep 0.1", "2")], [bash("cat other.py", "3")]]
        two = [[bash("cat other.py", "1")], [bash("sleep 0.1", "2")], [bash("cat shop.py", "3")]]
        return [model for model, _ in await asyncio.gather(*(run(root, steps, run_config) for steps in (one, two)))]

    for model in asyncio.run(both()):
        assert not markers(results(model)["3"])


def test_histories_that_part_are_apart(root: Path) -> None:
    """Two runs go on from one list: what one of them is shown then, the other one never saw."""
    (root / "other.py").write_text(TEXT.replace("item", "thing"))
    run_config = config(root)

    async def fork() -> list[Any]:
        _, result = await run(root, [[bash("cat shop.py", "a")]], run_config)
        models = []
        for name in ("b", "c"):
            steps = [[bash("cat other.py", name)], [bash("cat shop.py", f"{name}2")]]
            model = ScriptedModel([*steps, DONE])
            agent = Agent(name="coder", model=model, tools=make_tools(root))
            await Runner.run(agent, result.to_input_list(), run_config=run_config)
            models.append(model)
        return models

    for model, name in zip(asyncio.run(fork()), "bc", strict=True):
        assert not markers(results(model)[name])
        assert markers(results(model)[f"{name}2"])


@pytest.mark.parametrize("keeps", [True, False])
def test_after_a_handoff_the_list_says_what_the_next_agent_sees(root: Path, keeps: bool) -> None:
    run_config = config(root)
    model = ScriptedModel(
        [
            [bash("cat shop.py", "a")],
            [function_call("transfer_to_second", {}, call_id="h")],
            [bash("cat shop.py", "b")],
            DONE,
        ]
    )
    second = Agent(name="second", model=model, tools=make_tools(root))
    over = handoff(second, input_filter=None if keeps else handoff_filters.remove_all_tools)
    agent = Agent(name="first", model=model, tools=make_tools(root), handoffs=[over])
    asyncio.run(Runner.run(agent, "the task", run_config=run_config))
    assert bool(markers(results(model)["b"])) is keeps


@pytest.mark.parametrize("kept", [{"conversation_id": "conv"}, {"auto_previous_response_id": True}])
def test_where_the_server_keeps_the_history_nothing_is_left_out(root: Path, kept: dict[str, Any]) -> None:
    steps = [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")], [bash("head -50 shop.py", "c")]]
    model, _ = asyncio.run(run(root, steps, config(root), **kept))
    assert list(results(model)) == ["c"], "the server has the others"
    assert not markers("".join(text for n in range(1, 4) for text in results(model, n).values()))
    model, _ = asyncio.run(run(root, [[bash("cat shop.py", "a"), bash("cat shop.py", "b")]], config(root), **kept))
    assert list(results(model).values()) == [f"{TEXT}\nExit code: 0"] * 2


def test_where_the_server_may_drop_items_nothing_is_left_out(root: Path) -> None:
    for truncation in ("disabled", "auto"):
        model = ScriptedModel([[bash("cat shop.py", "a")], [bash("cat shop.py", "b")], DONE])
        settings = ModelSettings(truncation=truncation)
        agent = Agent(name="coder", model=model, tools=make_tools(root), model_settings=settings)
        asyncio.run(Runner.run(agent, "the task", run_config=config(root)))
        assert bool(markers(results(model)["b"])) is (truncation == "disabled")


def test_what_stands_before_a_compaction_is_no_source(root: Path) -> None:
    compaction = ResponseCompactionItem(id="cmp_1", encrypted_content="x", type="compaction")
    steps = [[bash("cat shop.py", "a")], [compaction, bash("cat shop.py", "b")], [bash("cat shop.py", "c")]]
    model, _ = asyncio.run(run(root, steps, config(root, restore=False)))
    shown = results(model)
    assert shown["b"] == f"{TEXT}\nExit code: 0"
    assert markers(shown["c"])


def shell_call(command: str, call_id: str) -> Any:
    """A call of the SDK's own shell tool."""
    action: Any = {"commands": [command], "timeout_ms": None, "max_output_length": None}
    return ResponseFunctionShellToolCall(
        id=call_id, call_id=call_id, action=action, status="completed", type="shell_call", environment=None
    )


@pytest.mark.parametrize("is_text", [True, False])
def test_the_sdks_shell_tool_is_served_and_its_markers_are_mended(root: Path, is_text: bool) -> None:
    def execute(request: Any) -> Any:
        if is_text:
            return TEXT
        ended = ShellCallOutcome(type="exit", exit_code=0)
        return ShellResult(
            output=[ShellCommandOutput(stdout=TEXT, outcome=ended, command=request.data.action.commands[0])]
        )

    def first(data: Any) -> Any:
        items = [
            item
            for item in data.model_data.input
            if not (len(data.model_data.input) > 6 and item.get("call_id") == "a")
        ]
        return ModelInputData(input=items, instructions=None)

    steps = [[shell_call("cat shop.py", "a")], [shell_call("cat shop.py", "b")], [shell_call("echo x", "c")], DONE]
    model = ScriptedModel(steps)
    agent = Agent(name="coder", model=model, tools=[ShellTool(executor=execute)])
    asyncio.run(Runner.run(agent, "the task", run_config=config(root, first=first)))

    def shown(request: int) -> dict[str, Any]:
        items = model.calls[request].input
        return {item["call_id"]: item["output"][0] for item in items if item.get("type") == "shell_call_output"}

    assert shown(1)["a"]["stdout"] == TEXT
    assert markers(shown(2)["b"]["stdout"])
    assert "a" not in shown(3)
    assert all(found.startswith("[GONE") for found in markers(shown(3)["b"]["stdout"]))


def test_of_a_result_with_an_image_the_text_is_judged_and_the_image_stays(root: Path) -> None:
    image = ToolOutputImage(image_url="data:image/png;base64,eA==")

    def read_both(path: str) -> list[Any]:
        """Reads a text and a picture."""
        return [ToolOutputText(text=(root / path).read_text()), image]

    steps = [[function_call("read_both", {"path": "shop.py"}, call_id=name)] for name in "ab"]
    model = ScriptedModel([*steps, DONE])
    asyncio.run(
        Runner.run(Agent(name="coder", model=model, tools=[function_tool(read_both)]), "look", run_config=config(root))
    )
    (text, picture), (marker, same) = results(model)["a"], results(model)["b"]
    assert text == {"type": "input_text", "text": TEXT}
    assert marker["type"] == "input_text"
    assert markers(marker["text"])
    assert same == picture


def test_a_sandboxs_frame_is_passed_on_and_is_no_content(root: Path) -> None:
    parts = [TEXT, TEXT, "".join(f"{line}\n" for line in LINES[9:50])]
    done = [{"method": "exec", "result": ExecResult(stdout=part.encode(), stderr=b"", exit_code=0)} for part in parts]
    commands = ["cat shop.py", "cat shop.py", "sed -n 10,50p shop.py"]
    steps = [[function_call("exec_command", {"cmd": text}, call_id=f"c{n}")] for n, text in enumerate(commands)]
    model = ScriptedModel([*steps, DONE])
    run_config = config(root)
    run_config.sandbox = SandboxRunConfig(session=scripted_sandbox_session(done))
    asyncio.run(Runner.run(SandboxAgent(name="coder", model=model), "the task", run_config=run_config))
    shown = results(model)
    assert shown["c0"].startswith("Chunk ID: ")
    assert shown["c0"].endswith(f"Process exited with code 0\nOutput:\n{TEXT}")
    head, _, marker = shown["c1"].partition("Output:\n")
    assert head.startswith("Chunk ID: ")
    assert marker.startswith("[FILE_UNCHANGED")
    assert "shop.py lines 1-60," in marker


def test_what_a_failing_tool_says_is_no_content(root: Path) -> None:
    def read(call_id: str) -> Any:
        return function_call("read_file", {"path": "new.py"}, call_id=call_id)

    steps = [[read("a")], [bash("cp shop.py new.py", "b")], [read("c")], [read("d")]]
    shown = results(asyncio.run(run(root, steps, config(root)))[0])
    assert shown["a"].startswith("An error occurred")
    assert not markers(shown["c"])
    assert markers(shown["d"])


def test_an_edit_that_failed_wrote_nothing(root: Path) -> None:
    edit = function_call("edit_file", {"path": "shop.py"}, call_id="b")
    shown = results(
        asyncio.run(run(root, [[bash("cat shop.py", "a")], [edit], [bash("cat shop.py", "c")]], config(root)))[0]
    )
    assert shown["b"].startswith("An error occurred")
    assert markers(shown["c"])


def test_what_the_users_own_filter_made_of_a_marker_stays(root: Path) -> None:
    def first(data: Any) -> Any:
        items = [{**item, "output": "[cut]"} if "output" in item else item for item in data.model_data.input[:-1]]
        return ModelInputData(input=[*items, data.model_data.input[-1]], instructions=None)

    def truncate_once_there_are_three(data: Any) -> Any:
        outputs = [item for item in data.model_data.input if "output" in item]
        return first(data) if len(outputs) > 2 else data.model_data

    steps = [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")], [bash("echo x", "c")]]
    model, _ = asyncio.run(run(root, steps, config(root, first=truncate_once_there_are_three)))
    assert markers(results(model, 2)["b"])
    assert results(model) == {"a": "[cut]", "b": "[cut]", "c": "x\n\nExit code: 0"}


def test_a_failure_of_ours_passes_every_result_on(root: Path) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a bug")

    steps = [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")]]
    model, result = asyncio.run(run(root, steps, config(root, tools={"bash": broken})))
    assert list(results(model).values()) == [f"{TEXT}\nExit code: 0"] * 2
    assert result.final_output == "done"


@pytest.mark.parametrize("off", ["policy", "environment", "ignored tool"])
def test_it_can_be_turned_off(root: Path, off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"policy": Policy(mode=Mode.OFF)} if off == "policy" else {}
    if off == "environment":
        monkeypatch.setenv("READCACHE", "off")
    elif off == "ignored tool":
        given = {"tools": {"bash": "ignore"}}
    steps = [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")]]
    model, _ = asyncio.run(run(root, steps, config(root, **given)))
    assert list(results(model).values()) == [f"{TEXT}\nExit code: 0"] * 2


@pytest.mark.parametrize("way", ["argument", "environment"])
@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_chosen_by_an_argument_or_in_the_environment(
    root: Path, way: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READCACHE_POLICY", preset if way == "environment" else "max")
    given = {"policy": Policy.named(preset)} if way == "argument" else {}
    edit = "sed -i 's/number 7 /number seven /' shop.py"
    steps = [[bash("cat shop.py", "a")], [bash(edit, "b")], [bash("cat shop.py", "c")]]
    shown = results(asyncio.run(run(root, steps, config(root, **given)))[0])["c"]
    assert ("number seven" in shown, bool(markers(shown))) == (True, preset != "default")


def test_results_are_cleared_before_a_window_is_full(root: Path) -> None:
    """A filter sees no answer and so no usage. It knows the model's name."""
    provider = Provider(root)
    model = ScriptedModel([*([bash(provider.read(n), f"c{n}")] for n in range(46)), DONE])
    model.model_name = MODEL
    agent = Agent(name="coder", model=model, tools=make_tools(root))
    asyncio.run(Runner.run(agent, "go on", run_config=config(root, clear=MARKS), max_turns=60))
    for request in model.calls:
        kinds = [(item.get("type"), item.get("call_id")) for item in request.input]
        calls, answered = (
            [name for kind, name in kinds if kind == wanted] for wanted in ("function_call", "function_call_output")
        )
        if not provider.is_done:
            provider.command(texts_of(request.input), calls, answered)
    provider.check(is_exact=False)


def test_the_lines_of_the_page_switch_it_on(root: Path) -> None:
    given = switched_on("readcache.hosts.openai_agents", root).config
    given.tracing_disabled = True
    model, _ = asyncio.run(run(root, [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")]], given))
    assert markers(results(model)["b"])
