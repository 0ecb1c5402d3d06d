"""Message lists through `readcache serve`: pruned, and compacted in two steps by a client that has the model."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from readcache.serve.fields import INVALID_PARAMS, NOT_DONE
from tests.helpers.chats import Messages, Step, chat, each_api, is_sendable, results, roles_alternate, text, texts
from tests.helpers.files import WATCHDOG
from tests.helpers.forks import start

TOP = Path(__file__).resolve().parents[2]
SERVE = [sys.executable, "-m", "readcache", "serve"]


class Client:
    """One server, one conversation."""

    def __init__(self) -> None:
        self.process = start(["serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, method: str, **params: Any) -> Any:
        assert self.process.stdin
        assert self.process.stdout
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"conversation": "c", **params}}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, **params: Any) -> Any:
        return self.send(method, **params)["result"]

    def cat(self, name: str, call_id: str | None = None) -> Any:
        return self.ask("observe", command=f"cat {name}", output=text(of=name), call_id=call_id, cwd="/w")

    def talk(self, shape: str) -> Messages:
        """The conversation of an agent that read six files, one after the other."""
        return chat(
            shape, *[Step(f"cat {name}", self.cat(name, f"c{n}")["text"]) for n, name in enumerate("abcdef", 1)]
        )


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _forked: None) -> Any:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    client = Client()
    yield client
    client.process.communicate(timeout=WATCHDOG)
    assert client.process.returncode == 0


@each_api
def test_a_client_with_a_model_compacts_in_two_steps(shape: str, client: Client) -> None:
    messages = client.talk(shape)
    (request,) = client.ask("compaction_request", messages=messages)["request"]
    assert request["role"] == "user"
    assert text(of="a") in request["content"]
    assert text(of="e") not in request["content"]  # it stays
    done = client.ask("compact", messages=messages, summary="<summary>NEXT STEP: read g</summary>")
    assert (done["changed"], done["how"], done["trouble"]) == (True, "summarised", "")
    assert done["tokens_after"] < done["tokens_before"]
    shorter = done["messages"]
    assert any("NEXT STEP: read g" in each for each in texts(shorter))
    assert list(results(shorter).items()) == list(results(messages).items())[-2:]
    assert is_sendable(shorter)
    assert shape == "openai" or roles_alternate(shorter)


@each_api
def test_only_what_is_in_the_new_list_is_left_out(shape: str, client: Client) -> None:
    shorter = client.ask("compact", messages=client.talk(shape), budget={"max_files": 2})["messages"]
    whole = "\n".join(texts(shorter))
    there = [name for name in "abcdef" if text(of=name) in whole]
    assert 2 < len(there) < 6
    assert [name for name in "abcdef" if client.cat(name)["outcome"] == "unchanged"] == there


@each_api
def test_pruning_gives_the_list_back_only_if_it_changed(shape: str, client: Client) -> None:
    long = client.ask("observe", command="cat g", output=text(1, 1000), call_id="c1", cwd="/w")["text"]
    messages = chat(shape, Step("cat g", long), Step("ls", "g"))
    done = client.ask("prune", messages=messages)
    assert done["changed"]
    assert len(results(done["messages"])["c1"]) < len(long)
    assert client.ask("prune", messages=done["messages"]) == {"changed": False}
    assert client.ask("prune", messages=messages, protect_last_turns=2) == {"changed": False}
    assert client.ask("prune", messages=messages, strategies=["errored_inputs"]) == {"changed": False}


def test_a_request_that_was_too_long_is_followed_by_a_shorter_one(client: Client) -> None:
    messages = client.talk("openai")
    sizes = [
        len(client.ask("compaction_request", messages=messages, attempt=attempt)["request"][0]["content"])
        for attempt in (0, 1, 2, 9)
    ]
    assert sizes[0] > sizes[1] > sizes[2] == sizes[3]


def test_a_summary_is_not_taken_for_turns_that_it_does_not_cover(client: Client) -> None:
    """The first try gains nothing, because what stays is nearly all there is: the next one drops a turn more."""
    long = text(1, 400)
    messages = chat("openai", Step("echo a", "a"), Step("cat g", long), Step("cat h", text(1, 400, of="h")))
    done = client.ask("compact", messages=messages, summary="SUMMARY of echo a and nothing else")
    assert done["how"] == "mechanical"
    assert "SUMMARY of echo a" not in json.dumps(done["messages"])


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("prune", {}, "prune needs messages"),
        ("compaction_request", {"messages": [], "attempt": -1}, "attempt is not a whole number from 0 up"),
        ("compact", {"messages": [3]}, "messages is not a list of objects"),
        ("view", {"messages": [], "condensations": [{}]}, "a condensation needs id"),
        ("view", {"messages": [], "condensations": [{"id": "1", "summary": 3}]}, "summary is not a text"),
        ("compact", {"messages": [], "summary": []}, "summary is not a text"),
        ("compact", {"messages": [], "budget": {"tokens": 1}}, "budget has no field 'tokens'"),
    ],
)
def test_a_wrong_field_is_named(method: str, params: dict[str, Any], said: str, client: Client) -> None:
    error = client.send(method, **params)["error"]
    assert error["code"] == INVALID_PARAMS
    assert said in error["message"]


def test_a_strategy_that_is_unknown_is_named(client: Client) -> None:
    error = client.send("prune", messages=[], strategies=["most"])["error"]
    assert error["code"] == NOT_DONE
    assert "unknown pruning strategy 'most'" in error["message"]


@pytest.fixture
def other(client: Client) -> Any:  # noqa: ARG001  it sets the store
    """Another process with the same store."""
    other = Client()
    yield other
    other.process.communicate(timeout=WATCHDOG)


@each_api
def test_two_processes_get_the_same_list_of_the_whole_one(shape: str, client: Client, other: Client) -> None:
    whole = client.talk(shape)
    first = {"messages": whole, "condensations": []}
    assert client.ask("compaction_request", **first)["request"]
    done = client.ask("compact", **first, summary="TASK: read\nNEXT STEP: read g")
    (made,) = done["condensations"]
    seen = other.ask("view", messages=whole)
    assert (seen["messages"], seen["condensations"], seen["trouble"]) == (done["messages"], [made], "")

    more = [Step(f"cat {name}", other.cat(name, f"d{n}")["text"]) for n, name in enumerate("ghij")]
    longer = [*whole, *chat(shape, *more)[-2 * len(more) :]]
    second = {"messages": longer, "condensations": [made]}
    (request,) = other.ask("compaction_request", **second)["request"]
    assert "NEXT STEP: read g" in request["content"]
    assert text(of="b") not in request["content"]  # nothing is summarised twice
    later = other.ask("compact", **second, summary="TASK: read\nNEXT STEP: read k")
    both = [made, *later["condensations"]]
    assert len(both) == 2
    for process in (client, other):
        for given in ({}, {"condensations": both}):
            seen = process.ask("view", messages=longer, **given)
            assert (seen["messages"], seen["condensations"], seen["trouble"]) == (later["messages"], both, "")
    assert is_sendable(later["messages"])


def test_a_condensation_that_cannot_be_applied_is_named(client: Client) -> None:
    whole = client.talk("openai")
    (made,) = client.ask("compact", messages=whole, condensations=[])["condensations"]
    seen = client.ask("view", messages=whole, condensations=[made | {"version": 9}])
    assert (seen["changed"], seen["condensations"]) == (False, [])
    assert made["id"] in seen["trouble"]


def test_the_log_never_gives_another_list_than_the_one_returned(client: Client, other: Client) -> None:
    """The harness has its own store, and the log does not know its condensation."""
    whole = client.talk("openai")
    own = {"id": "mine", "version": 1, "why": "compacted", "forgotten": ["call:c1", "result:c1"]}
    done = client.ask("compact", messages=whole, condensations=[own], summary="TASK: read\nNEXT STEP: read g")
    assert len(done["condensations"]) == 1
    assert other.ask("view", messages=whole) == {"changed": False, "condensations": [], "trouble": ""}
    both = [own, *done["condensations"]]
    assert other.ask("view", messages=whole, condensations=both)["messages"] == done["messages"]


# ------------------------------------------------------------ the client for Node


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@each_api
def test_a_host_in_javascript_compacts_as_the_document_says(shape: str, client: Client, tmp_path: Path) -> None:
    (function,) = re.findall(r"^```javascript\n(.*?)^```$", (TOP / "docs/protocol.md").read_text(), re.M | re.S)
    program = f"""
const server = new ReadcacheServer({json.dumps(SERVE)}, {{ deadline: {WATCHDOG}_000 }})
const asked = []
const askModel = async (request) => {{
  if (asked.push(request[0].content.length) === 1) throw new Error("maximum context length")
  return "NEXT STEP: read g"
}}
const reader = {{ conversation: "c" }}
const messages = {json.dumps(client.talk(shape))}
const shorter = await compact(server, reader, messages, askModel)
const again = await server.ask("observe", reader, {{ command: "cat f", output: {json.dumps(text(of="f"))}, cwd: "/w" }})
server.end()
console.log(JSON.stringify({{ asked, shorter, outcome: again.outcome }}))
"""
    script = tmp_path / "host.mjs"
    script.write_text((TOP / "readcache/serve/client.js").read_text() + function + program)
    done = subprocess.run(["node", script], capture_output=True, text=True, timeout=WATCHDOG, check=True)
    found = json.loads(done.stdout)
    assert len(found["asked"]) == 2
    assert found["asked"][0] > found["asked"][1]
    assert any("NEXT STEP: read g" in each for each in texts(found["shorter"]))
    assert is_sendable(found["shorter"])
    assert found["outcome"] == "unchanged"
