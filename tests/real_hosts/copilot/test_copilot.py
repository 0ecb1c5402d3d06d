"""GitHub Copilot with readcache, in the CLI and in the SDK: the suite, and what is peculiar to it."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from readcache import Outcome, UsageError
from readcache.hosts.copilot_sdk import copilot_hooks
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Delegate, Edit, Read, Step
from readcache.testing.requests import markers
from tests.real_hosts.chat_api import result_chars
from tests.real_hosts.copilot.scripted import CopilotCli, CopilotHost, CopilotSdk, cli_version
from tests.real_hosts.fired import check_fire
from tests.real_hosts.measured import Run, compare

CAT, HEAD = Bash("cat shop.py"), Bash("sed -n '1,40p' shop.py")
CHANGED = "Changed by a hook."


class TestCopilotCli(Conformance):
    """The CLI's own hooks."""

    host = CopilotCli()


class TestCopilotSdk(Conformance):
    """A hook in this process."""

    host = CopilotSdk()


def project(tmp_path: Path) -> Path:
    make_project(tmp_path / "project")
    return tmp_path / "project"


def test_the_model_of_the_sdk_gets_the_result_that_a_hook_changed(tmp_path: Path) -> None:
    """copilot-cli#3361 says that the model gets the original."""

    def change(event: Any, _: object) -> Any:
        return {"modifiedResult": {**event["toolResult"], "textResultForLlm": CHANGED}}

    host = CopilotSdk(more={"on_post_tool_use": change})
    seen = host.converse(project(tmp_path), [(CAT,), (Read("shop.py"),)], on=False)
    assert [result for one in seen for result in one.results] == [CHANGED, CHANGED]


def test_the_model_of_the_cli_gets_the_result_that_a_hook_changed(tmp_path: Path) -> None:
    """The same of a hook of a file, which is a process of its own."""
    root, answer = project(tmp_path), {"modifiedResult": {"resultType": "success", "textResultForLlm": CHANGED}}
    hook = {"type": "command", "bash": f"echo '{json.dumps(answer)}'"}
    (tmp_path / "copilot/hooks").mkdir(parents=True)
    (tmp_path / "copilot/hooks/own.json").write_text(json.dumps({"hooks": {"postToolUse": [hook]}}))
    host = CopilotCli(env={"COPILOT_HOME": str(tmp_path / "copilot")})
    seen = host.converse(root, [(CAT,), (Read("shop.py"),)], on=False)
    assert [result for one in seen for result in one.results] == [CHANGED, CHANGED]


@pytest.mark.parametrize("host", [CopilotCli(), CopilotSdk()], ids=["cli", "sdk"])
def test_a_sub_agents_own_reads_are_shortened(tmp_path: Path, host: CopilotHost) -> None:
    (seen,) = host.converse(project(tmp_path), [(Delegate((CAT, HEAD)),)], on=True)
    assert [bool(markers(one.results[0])) for one in seen.inner] == [False, True]


def test_the_line_with_the_exit_status_stays(tmp_path: Path) -> None:
    failing = Bash("cat shop.py; exit 3")
    seen = CopilotCli().converse(project(tmp_path), [(failing,), (failing,)], on=True)
    assert markers(seen[1].results[0])
    assert seen[1].results[0].rstrip().endswith("completed with exit code 3>")


def test_a_failure_of_ours_passes_the_real_output_through_and_is_noted(tmp_path: Path) -> None:
    host = CopilotCli(store=tmp_path)
    seen = host.converse(project(tmp_path), [(CAT,), (CAT,)], on=True)
    assert "def item_60" in seen[1].results[0]
    assert host.failures


@pytest.mark.parametrize("host", [CopilotCli(words=("--user", "--advise")), CopilotCli(env={"READCACHE": "off"})])
def test_it_can_be_turned_off(tmp_path: Path, host: CopilotCli) -> None:
    seen = host.converse(project(tmp_path), [(CAT,), (CAT,)], on=True)
    assert "def item_60" in seen[1].results[0]
    assert host.failures == ""


def test_hooks_of_a_project_run_where_the_folder_is_trusted(tmp_path: Path) -> None:
    root = project(tmp_path)
    steps: list[Step] = [(CAT,), (CAT,)]
    shown = CopilotCli(words=("--project",)).converse(root, steps, on=True)[1].results[0]
    trusted = CopilotCli(words=("--project",), env={"COPILOT_ALLOW_ALL": "true"})
    assert (root / ".github/hooks/readcache.json").exists()
    assert not markers(shown)
    assert markers(trusted.converse(root, steps, on=True)[1].results[0])


def test_a_hook_of_ones_own_is_called_first(tmp_path: Path) -> None:
    async def redact(event: Any, _: object) -> Any:
        await asyncio.sleep(0)
        text = event["toolResult"]["textResultForLlm"].replace("number", "XXX")
        return {"modifiedResult": {**event["toolResult"], "textResultForLlm": text}}

    host = CopilotSdk(more={"on_post_tool_use": redact})
    seen = host.converse(project(tmp_path), [(CAT,), (CAT,)], on=True)
    assert "XXX 7 of" in seen[0].results[0]
    assert markers(seen[1].results[0])
    assert [reply.outcome for reply in host.replies] == [Outcome.FULL, Outcome.UNCHANGED]


def test_a_hook_of_ours_that_fails_leaves_the_result(tmp_path: Path) -> None:
    host = CopilotSdk(settings={"store": str(tmp_path)})  # a directory is not a store
    seen = host.converse(project(tmp_path), [(CAT,), (CAT,)], on=True)
    assert "def item_60" in seen[1].results[0]


@pytest.mark.parametrize("wrong", [{"policy": "maxx"}, {"store": "reddis://localhost"}, {"on_reply": "print"}])
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        copilot_hooks("/", **wrong)


def test_doctor_proves_with_a_scripted_model_that_its_copy_changed() -> None:
    check_fire("copilot")


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    steps: list[Step] = [
        (CAT,),
        (Read("shop.py"),),
        (HEAD, Bash("ls")),
        (Edit("shop.py", "number 9 of", "number nine of"),),
        (CAT,),
        (Read("shop.py", 20, 60),),
        (Bash("sed -n '100,200p' long.txt"),),
        (Bash("sed -n '150,260p' long.txt"),),
        (Bash("head -50 shop.py"),),
    ]

    def run_steps(root: Path, on: bool) -> Run:
        make_project(root)
        began = time.monotonic()
        model = CopilotCli().run(root, steps, on=on)
        chars = result_chars([body["messages"] for body in model.requests])
        return Run(chars, time.monotonic() - began, 10)

    compare("copilot", {"copilot": cli_version()}, run_steps, tmp_path)
