"""The conformance suite with the real claude-agent-sdk, and what is its own."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parent))

import pytest
from claude_agent_sdk import HookMatcher
from sdk_talk import AgentSdk, SdkTalk

from readcache import Outcome, Reply, Sessions
from readcache.hosts.claude_agent_sdk import hooks, sessions_by_settings
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Edit, Read, Step
from readcache.testing.requests import markers
from tests.real_hosts.measured import Run, compare
from tests.real_hosts.messages_api import ScriptedModel, messages_api, result_chars
from tests.real_hosts.user_tools import check_settings

CAT, HEAD, TAIL = Bash("cat shop.py"), Bash("sed -n '1,40p' shop.py"), Bash("tail -n 40 shop.py")


class TestClaudeAgentSdk(Conformance):
    """Hooks in this process."""

    host = AgentSdk()


class TestClaudeAgentSdkWithAllPolicies(Conformance):
    """The same with everything that may be left out."""

    host = AgentSdk(policy="max")


def results(root: Path, hooks: dict[str, list[HookMatcher]], *steps: Step) -> list[str]:
    """What the model was sent of each call."""
    make_project(root)
    model = ScriptedModel(str(root))
    with messages_api(model) as address:
        talk = SdkTalk(root, address, hooks)
        try:
            return [text for step in steps for text in AgentSdk().step(talk, model, step).results]
        finally:
            talk.close()


def test_hooks_of_ones_own_are_called_as_without_us(tmp_path: Path) -> None:
    told = list[str]()

    async def note(event: Any, *_: object) -> Any:
        told.append(event["hook_event_name"])
        return {}

    async def redact(event: Any, *_: object) -> Any:
        if event["tool_input"].get("command") != CAT.command:
            return {}
        changed = {**event["tool_response"], "stdout": event["tool_response"]["stdout"].replace("number", "XXX")}
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": changed}}

    own = {"PostToolUse": [HookMatcher(hooks=[note]), HookMatcher(hooks=[redact])], "Stop": [HookMatcher(hooks=[note])]}
    ours = hooks(Sessions(tmp_path / "p"), own)
    redacted, again, shown = results(tmp_path / "p", ours, (CAT,), (CAT,), (HEAD,))
    assert told.count("PostToolUse") == 3
    assert "Stop" in told
    assert "XXX 7 of" in redacted
    assert "XXX 7 of" in again or markers(again)
    assert "number 7 of" in shown, "no line of it was shown yet"


def test_a_hook_of_ours_that_fails_leaves_the_result(tmp_path: Path) -> None:
    broken = hooks(cast("Sessions", SimpleNamespace()))
    first, second = results(tmp_path / "p", broken, (CAT,), (CAT,))
    assert first.startswith("def item_1(")
    assert second.startswith("def item_1(")


def test_conversations_of_one_program_are_kept_apart(tmp_path: Path) -> None:
    ours = hooks(Sessions(tmp_path))
    first = results(tmp_path / "a", ours, (CAT,), (HEAD,))
    second = results(tmp_path / "b", ours, (CAT,), (HEAD,))
    assert [bool(markers(text)) for text in first + second] == [False, True, False, True]


def test_a_fork_begins_with_what_its_source_was_shown_and_that_goes_on(tmp_path: Path) -> None:
    make_project(tmp_path / "p")
    model, ours = ScriptedModel(str(tmp_path / "p")), hooks(sessions_by_settings(str(tmp_path / "p")))
    with messages_api(model) as address:
        talk = SdkTalk(tmp_path / "p", address, ours)
        AgentSdk().step(talk, model, (CAT,))
        source = talk.session
        talk.again("--fork-session")
        shown = [AgentSdk().step(talk, model, (call,)).results[0] for call in (HEAD, TAIL)]
        assert talk.session != source
        talk.session = source
        talk.again()
        (again,) = AgentSdk().step(talk, model, (HEAD,)).results
        talk.close()
    assert [bool(markers(text)) for text in (*shown, again)] == [True, True, True]


def test_settings_are_checked_and_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(on_reply: Any = None, **given: Any) -> Sessions:
        hooks(sessions := sessions_by_settings(str(tmp_path), **given), on_reply=on_reply)
        return sessions

    check_settings(make, lambda made: (made.policy, made._store), monkeypatch, tmp_path, lacks=["tools"])


def test_counters_and_replies_are_told(tmp_path: Path) -> None:
    heard, sessions = list[Reply](), sessions_by_settings(str(tmp_path / "p"))
    # the call after a marker confirms it
    shown = results(tmp_path / "p", hooks(sessions, on_reply=heard.append), (CAT,), (HEAD,), (Bash("ls"),))
    assert [reply.outcome for reply in heard] == [Outcome.FULL, Outcome.UNCHANGED, Outcome.FULL]
    assert shown[1].startswith(heard[1].text.rstrip("\n"))
    assert sessions.stats()["tokens_saved"] == heard[1].tokens_saved > 0


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
        model = ScriptedModel(str(root))
        with messages_api(model) as address:
            talk = AgentSdk().talk(root, address, on=on)
            began = time.monotonic()
            for step in steps:
                AgentSdk().step(talk, model, step)
            seconds = time.monotonic() - began
            talk.close()
        return Run(sum(map(result_chars, model.requests)), seconds, 10)

    compare("claude-agent-sdk", {"claude-agent-sdk": version("claude-agent-sdk")}, run_steps, tmp_path)
