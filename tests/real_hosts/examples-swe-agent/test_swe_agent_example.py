"""The hook of `docs/hosts/examples.md` in SWE-agent's own order of calls, on swe-rex's real shell.

SWE-agent itself is not on PyPI and was not run: its loop is told here in `step` as its `agents.py` has it (the hook is
asked right after `communicate`, then the state is read; the model is asked with the list that the hook was given).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from swe_agent_example import ReadcacheHook, frame
from swerex.deployment.local import LocalDeployment
from swerex.runtime.abstract import BashAction, CreateBashSessionRequest

from readcache.testing.requests import markers

SHOP = "".join(f"def item_{n}(count):  # of the shop, with a few words\n" for n in range(60))
Shell = Callable[[str], str]


@pytest.fixture
def shell() -> Iterator[Shell]:
    """swe-rex's persistent shell, asked as SWE-agent asks it."""
    loop = asyncio.new_event_loop()
    deployment = LocalDeployment()

    async def start() -> None:
        await deployment.start()
        await deployment.runtime.create_session(CreateBashSessionRequest())

    def run(command: str) -> str:
        action = BashAction(command=command, timeout=20, check="silent")
        return str(loop.run_until_complete(deployment.runtime.run_in_session(action)).output)

    loop.run_until_complete(start())
    yield run
    loop.run_until_complete(deployment.stop())
    loop.close()


class Agent:
    """SWE-agent's loop around one step, with the last `keep` results shown as `LastNObservations` does."""

    def __init__(self, shell: Shell, root: Path, hook: ReadcacheHook | None, keep: int = 100) -> None:
        self.shell, self.hook, self.keep = shell, hook, keep
        self.history: list[dict[str, Any]] = [{"role": "system", "content": "You can use a shell."}]
        self.sent: list[dict[str, Any]] = []
        shell(f"cd {root}")

    def step(self, action: str) -> str:
        """What the model is sent of the result."""
        step = SimpleNamespace(action=action, observation=self.shell(action), state={})
        if self.hook:
            self.hook.on_action_executed(step=step)
        step.state = {"working_dir": self.shell("pwd").strip()}
        if self.hook:
            self.hook.on_step_done(step=step, info={})
        self.history.append({"role": "assistant", "content": action, "action": action})
        observed = f"OBSERVATION:\n{step.observation}"
        self.history.append({"role": "user", "content": observed, "message_type": "observation"})
        self.query()
        return str(self.sent[-1]["content"])

    def query(self) -> None:
        results = [at for at, message in enumerate(self.history) if message.get("message_type") == "observation"]
        old = set(results[: -self.keep])
        elided = "Old environment output: (lines omitted)"
        messages = [{**m, "content": elided} if at in old else m for at, m in enumerate(self.history)]
        if self.hook:
            self.hook.on_model_query(messages=messages, agent="main")
        self.sent = messages


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "sub/shop.py").write_text(SHOP.replace("item", "thing"))
    return tmp_path


def test_a_second_read_is_a_marker_that_names_lines_the_file_has(shell: Shell, root: Path) -> None:
    agent = Agent(shell, root, ReadcacheHook(str(root)))
    assert SHOP in agent.step("cat shop.py")
    again = agent.step("cat shop.py")
    (marker,) = markers(again)
    assert "FILE_UNCHANGED" in marker
    assert "lines 1-60" in marker
    assert again == f"OBSERVATION:\n\r\n{marker}\n\r\n\r\n"


def test_what_a_command_changed_is_shown(shell: Shell, root: Path) -> None:
    agent = Agent(shell, root, ReadcacheHook(str(root)))
    agent.step("cat shop.py")
    agent.step("sed -i 's/item_7(/item_seven(/' shop.py")
    assert (root / "shop.py").read_text() in agent.step("cat shop.py")


def test_the_shell_stays_where_it_was_moved_to(shell: Shell, root: Path) -> None:
    agent = Agent(shell, root, ReadcacheHook(str(root)))
    agent.step("cat shop.py")
    agent.step("cd sub")
    assert "thing_1(" in agent.step("cat shop.py")
    assert markers(agent.step("sed -n '1,40p' shop.py"))
    assert markers(agent.step("head -n 40 ../shop.py"))


def test_nothing_dangles_when_old_results_are_left_out(shell: Shell, root: Path) -> None:
    agent = Agent(shell, root, ReadcacheHook(str(root)), keep=2)
    agent.step("cat shop.py")
    assert markers(agent.step("sed -n '1,40p' shop.py"))
    agent.step("pwd")
    named = [marker for message in agent.sent for marker in markers(message["content"])]
    assert not [marker for marker in named if "above in" in marker]
    assert "item_3(" in agent.step("sed -n '1,30p' shop.py")


def test_what_is_meant_for_swe_agent_itself_is_not_touched(shell: Shell, root: Path) -> None:
    agent = Agent(shell, root, ReadcacheHook(str(root)))
    for token in ("<<SWE_AGENT_SUBMISSION||", "###SWE-AGENT-RETRY-WITH-OUTPUT###"):
        for _ in range(3):
            told = agent.step(f"cat shop.py; echo '{token}'")
            assert SHOP in told
            assert token in told


def test_the_frame_is_what_swe_rex_puts_around_an_output(shell: Shell) -> None:
    for command, output in (
        ("printf 'a\\nb\\n'", "a\nb\n"),
        ("printf x", "x"),
        ("printf 'a\\r\\nb\\r\\n'", "a\r\nb\r\n"),
    ):
        head, body, tail = frame(shell(command))
        assert (head, body, tail) == ("\r\n", output, "\r\n\r\n")
    assert frame("") == ("", "", "")
