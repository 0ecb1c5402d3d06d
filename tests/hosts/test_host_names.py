"""Each way in notes in the log which host it is of, for `readcache gain`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from readcache import Policy, Session, Sessions
from readcache.core.model.events import Delivered
from readcache.hosts.adapter_settings import adapter_settings
from readcache.log.store import open_store
from readcache.serve.mcp.readers import McpReaders
from tests.helpers.files import WATCHDOG

TOP = Path(__file__).resolve().parents[2]
TEXT = "".join(f"line {number} of a file\n" for number in range(60))


def hosts_in(store: Path) -> set[tuple[str, str]]:
    """(host, tool) of all answers."""
    with closing(open_store(store)) as opened:
        contexts = [record for session, agent, *_ in opened.sessions() for record in opened.records(session, agent)]
    events = [record.event for record in contexts]
    return {(e.account.host, e.account.tool) for e in events if isinstance(e, Delivered) and e.account is not None}


def start(directory: Path, *words: str, stdin: object, **environment: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("READCACHE")}
    env |= {"READCACHE_STORE": str(directory / "log.db"), "PYTHONPATH": str(TOP), "XDG_STATE_HOME": str(directory)}
    done = subprocess.run(
        [sys.executable, "-m", "readcache", *words],
        input=json.dumps(stdin).encode() + b"\n",
        env=env | environment,
        cwd=directory,
        capture_output=True,
        timeout=WATCHDOG,
    )
    assert done.returncode == 0, done.stderr


def claude_event(directory: Path) -> Mapping[str, object]:
    (directory / "talk.jsonl").write_text("")
    return {
        "hook_event_name": "PostToolUse",
        "session_id": "s",
        "transcript_path": str(directory / "talk.jsonl"),
        "cwd": str(directory),
        "tool_name": "Bash",
        "tool_use_id": "t1",
        "tool_input": {"command": "cat f"},
        "tool_response": {"stdout": TEXT, "stderr": "", "interrupted": False, "isImage": False},
    }


def test_a_hook_is_of_the_host_that_it_answers(tmp_path: Path) -> None:
    start(tmp_path, "hook", "claude-code", stdin=claude_event(tmp_path), READCACHE_HOST="another")
    assert hosts_in(tmp_path / "log.db") == {("claude-code", "bash")}


@pytest.mark.parametrize(("named", "host"), [({}, "serve"), ({"READCACHE_HOST": "opencode"}, "opencode")])
def test_a_server_is_of_the_host_that_started_it(tmp_path: Path, named: dict[str, str], host: str) -> None:
    params = {"conversation": "c", "command": "cat f", "output": TEXT}
    start(tmp_path, "serve", stdin={"jsonrpc": "2.0", "id": 1, "method": "observe", "params": params}, **named)
    assert hosts_in(tmp_path / "log.db") == {(host, "bash")}


def test_the_mcp_server_is_a_host_of_its_own(tmp_path: Path) -> None:
    readers = McpReaders(str(tmp_path), policy=Policy(), store=str(tmp_path / "log.db"), one_reader=True)
    readers.session_of({}).observe("cat f", TEXT)
    readers.close()
    assert hosts_in(tmp_path / "log.db") == {("mcp", "bash")}


def test_what_a_program_makes_itself_is_python_unless_it_says_otherwise(tmp_path: Path) -> None:
    store = str(tmp_path / "log.db")
    with Session("/w", store=store) as session, session.fork("sub") as child:
        child.observe_read("f", TEXT)
        assert session.host == child.host == "python"
    sessions = Sessions("/w", store=store, host="my-loop")
    sessions.fork("c", "sub").observe_tool("search", TEXT)
    sessions.close_all()
    adapter_settings({"store": store}).new_session("mini-swe-agent").observe("cat f", TEXT)
    assert hosts_in(Path(store)) == {("python", "read"), ("my-loop", "search"), ("mini-swe-agent", "bash")}
