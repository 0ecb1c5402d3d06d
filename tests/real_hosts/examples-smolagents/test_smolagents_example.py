"""The lines of `docs/hosts/examples.md` in the real agent, with a scripted model over HTTP."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from smolagents import OpenAIModel, Tool, ToolCallingAgent
from smolagents_example import add_readcache

from readcache import Session
from readcache.testing.requests import markers
from tests.real_hosts.chat_api import Json, ScriptedModel, texts_of

SHOP = "".join(f"def item_{n}(count):  # of the shop, with a few words\n" for n in range(60))


class BashTool(Tool):  # type: ignore[misc]  # not typed where this is checked
    name = "bash"
    description = "Runs a command."
    inputs = {"command": {"type": "string", "description": "The command."}}  # noqa: RUF012  as its base class wants it
    output_type = "string"

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def forward(self, command: str) -> str:
        ran = subprocess.run(["bash", "-c", command], cwd=self.root, capture_output=True, text=True, check=False)
        return ran.stdout + ran.stderr


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def agent_in(root: Path, model: ScriptedModel, *, on: bool = True, **settings: Any) -> Any:
    api = OpenAIModel(model_id="fake", api_base=model.url, api_key="none")
    agent = ToolCallingAgent(tools=[BashTool(root)], model=api, verbosity_level=0, **settings)
    if on:
        add_readcache(agent, Session(root))
    return agent


def play(agent: Any, model: ScriptedModel, *batches: tuple[str, ...]) -> list[str]:
    """What the model was sent in its last request, of results alone."""
    for commands in batches:
        model.says(*(model.call("bash", {"command": command}) for command in commands))
    model.says(model.call("final_answer", {"answer": "done"}))
    assert agent.run("Look around.") == "done"
    return observations(model.requests[-1])


def observations(messages: list[Json]) -> list[str]:
    return [text for role, text in texts_of(messages) if role == "user" and "Observation:" in text]


def test_a_second_read_is_a_marker_and_a_changed_file_is_shown(model: ScriptedModel, root: Path) -> None:
    edit = "sed -i 's/item_7(/item_seven(/' shop.py"
    first, again, _, after = play(
        agent_in(root, model), model, ("cat shop.py",), ("sed -n '1,40p' shop.py",), (edit,), ("cat shop.py",)
    )
    assert SHOP.strip() in first
    assert markers(again)
    assert (root / "shop.py").read_text().strip() in after


def test_files_and_answers_are_the_same_and_less_is_sent(root: Path) -> None:
    sent = []
    for on in (False, True):
        (root / "shop.py").write_text(SHOP)
        with ScriptedModel() as model:
            play(
                agent_in(root, model, on=on),
                model,
                ("cat shop.py",),
                ("cat shop.py | head -50",),
                ("sed -i 1d shop.py",),
            )
        assert (root / "shop.py").read_text() == SHOP.partition("\n")[2]
        sent.append(sum(len(text) for request in model.requests for text in observations(request)))
    assert sent[1] < sent[0]


@pytest.mark.parametrize("threads", [1, 4])
def test_calls_made_at_once_do_not_point_at_each_other(model: ScriptedModel, root: Path, threads: int) -> None:
    agent = agent_in(root, model, max_tool_threads=threads)
    both, later = play(
        agent, model, ("cat shop.py", "cat shop.py"), ("sed -n '1,40p' shop.py", "sed -n '9,59p' shop.py")
    )
    assert not markers(both)
    assert len(markers(later)) == 2


def test_nothing_dangles_when_a_step_is_taken_out_of_the_memory(model: ScriptedModel, root: Path) -> None:
    """As smolagents' own step callbacks do it, for images and long observations."""

    def forget(step: Any, agent: Any) -> None:
        if step.step_number == 3:
            agent.memory.steps[1].observations = "(forgotten)"

    agent = agent_in(root, model, step_callbacks=[forget])
    shown = play(agent, model, ("cat shop.py",), ("sed -n '1,40p' shop.py",), ("pwd",), ("sed -n '1,40p' shop.py",))
    assert "(forgotten)" in shown[0]
    assert "above in" not in shown[1]
    assert "item_3(" in shown[3]
