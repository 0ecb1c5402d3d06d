"""The protocol of the server, without streams: whatever a client sends is answered, and means what `Session` means."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Marks, Mode, Policy, Sessions, __version__
from readcache.serve import fields
from readcache.serve.fields import Schema
from readcache.serve.protocol import METHODS, MOST_READERS, Protocol, parse, to_line
from tests.helpers.files import WATCHDOG

TOP = Path(__file__).resolve().parents[2]
SONG = "".join(f"{number} bottles of beer on the wall\n" for number in range(40))
HALF = "".join(SONG.splitlines(True)[:20])


class Client:
    """Asks a protocol of its own."""

    def __init__(self, *, may_run: bool = True, **options: Any) -> None:
        self.protocol = Protocol(Sessions("/w", most_readers=MOST_READERS, **options), may_run=may_run)

    def send(self, method: str, agent: str = "main", conversation: str = "c", **params: Any) -> dict[str, Any]:
        given = {"conversation": conversation, "agent": agent, **params}
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
        answer: dict[str, Any] = json.loads(to_line(self.protocol.answer(parse(json.dumps(request).encode()))))
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", 1)
        return answer

    def ask(self, method: str, agent: str = "main", conversation: str = "c", **params: Any) -> Any:
        answer = self.send(method, agent, conversation, **params)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, **params: Any) -> str:
        return str(self.send(method, **params)["error"]["message"])

    def cat(self, output: str = SONG, **more: Any) -> str:
        outcome: str = self.ask("observe", command="cat song", output=output, **more)["outcome"]
        return outcome


# ---------------------------------------------------------------- the methods


def test_hello_gives_versions_methods_and_limits() -> None:
    hello = Client(may_run=False).ask("hello")
    assert (hello["readcache"], hello["mode"]) == (__version__, "on")
    assert set(hello["methods"]) == METHODS.keys() - {"run", "read"}


def test_what_is_visible_is_left_out_and_accounted_for() -> None:
    client = Client()
    assert client.cat(call_id="one") == "full"
    reply = client.ask("observe", command="head -n 20 song", output=HALF, call_id="two")
    assert reply["text"].startswith("[UNCHANGED ")
    assert reply["omitted"] == [{"path": "/w/song", "start": 1, "end": 20, "sources": ["one"]}]
    assert (reply["outcome"], reply["reason"], reply["call_id"], reply["exit_code"]) == (
        "unchanged",
        "covered",
        "two",
        0,
    )
    assert client.ask("stats")["covered"] == 1


def test_conversations_and_readers_see_nothing_of_each_other() -> None:
    client = Client()
    assert client.cat() == client.cat(conversation="other") == client.cat(agent="sub") == "full"
    assert client.cat() == "unchanged"


def test_a_write_by_one_reader_is_known_to_another() -> None:
    client = Client()
    client.cat()
    client.ask("wrote", agent="sub", path="song")
    assert client.cat() == "full"


def test_a_forked_reader_begins_with_what_its_parent_saw_when_it_is_to() -> None:
    client = Client()
    client.cat()
    assert client.cat(agent=client.ask("fork", name="empty")["agent"]) == "full"
    assert client.cat(agent=client.ask("fork", name="twin", inherit=True)["agent"]) == "unchanged"
    assert client.ask("fork", name="twin")["agent"] == "twin-2"


def test_a_sub_agent_without_a_name_would_be_taken_for_the_main_one_and_is_refused() -> None:
    client = Client()
    assert client.cat() == "full"
    assert "name is not a text that is not empty" in client.error("fork", name="")


def test_a_read_with_a_frame_names_the_lines_of_the_file() -> None:
    client = Client()
    frame = {"head": 1, "tail": 1}
    client.ask("observe_read", path="song", output=f"<file>\n{SONG}</file>\n", frame=frame)
    reply = client.ask("observe_read", path="song", output=f"<file>\n{HALF}</file>\n", end=20, frame=frame)
    assert re.fullmatch(r"<file>\n\[UNCHANGED [^\n]*song lines 1-20,[^\n]*\n</file>\n", reply["text"])


def test_the_same_result_of_another_tool_is_left_out() -> None:
    client = Client()
    call: dict[str, Any] = {"name": "grep", "arguments": {"pattern": "b"}, "output": SONG}
    assert [client.ask("observe_tool", **call)["outcome"] for _ in range(2)] == ["full", "identical_output"]


def test_calls_of_one_batch_do_not_point_at_each_other() -> None:
    client = Client()
    assert [client.cat(batch="b"), client.cat(batch="b"), client.cat(batch="c")] == ["full", "full", "unchanged"]


def test_a_list_without_the_source_brings_the_lines_back() -> None:
    client = Client()
    client.cat(call_id="one")
    marker = client.ask("observe", command="cat song", output=SONG, call_id="two")["text"]
    messages = [{"role": "tool", "tool_call_id": "two", "content": marker}]
    assert client.ask("sync", messages=messages)["rewrites"] == {"two": SONG}


def test_messages_come_back_mended_or_not_at_all() -> None:
    client = Client()
    client.cat(call_id="one")
    messages = [{"role": "tool", "tool_call_id": "one", "content": SONG}]
    assert client.ask("mend", messages=messages) == {"changed": False}
    marker = client.ask("observe", command="cat song", output=SONG, call_id="two")["text"]
    repaired = client.ask("mend", messages=[{"role": "tool", "tool_call_id": "two", "content": marker}])
    assert repaired == {"changed": True, "messages": [{"role": "tool", "tool_call_id": "two", "content": SONG}]}


def test_a_list_is_cleared_by_the_providers_count_of_it() -> None:
    client, messages = Client(policy=Policy(clear=Marks(50_000, 49_000))), list[dict[str, Any]]()
    for n in range(6):
        text = SONG.replace("beer", f"beer{n}") * 2
        client.ask("observe", command=f"cat song{n}", output=text, call_id=f"c{n}")
        function = {"name": "bash", "arguments": json.dumps({"command": f"cat song{n}"})}
        call = {"id": f"c{n}", "type": "function", "function": function}
        messages += [{"role": "assistant", "content": "", "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": f"c{n}", "content": text}]

    def cleared(**given: Any) -> list[str]:
        answer = client.ask("mend", messages=messages, model="claude-opus-5", **given)
        sent = answer.get("messages", messages)
        return [new["tool_call_id"] for old, new in zip(messages, sent, strict=True) if old != new]

    assert cleared() == []
    assert cleared(prompt_tokens=50_001, answer="a1") == ["c0"], "by 2 characters a token"
    assert cleared(prompt_tokens=50_001, answer="a1") == ["c0"]
    assert cleared(prompt_tokens=50_002, answer="a2") == ["c0", "c1"]


def test_a_plan_is_restored_and_is_a_source_then() -> None:
    client = Client()
    client.cat()
    plan = client.ask("restore_plan", budget={"max_files": 1})
    assert SONG in plan["text"]
    assert client.ask("compacted", restored={k: v for k, v in plan.items() if k != "text"})["restored_id"]
    assert client.cat() == "unchanged"
    client.ask("compacted")
    assert client.cat() == "full"


def test_a_plan_goes_by_the_message_list_too() -> None:
    """By the calls in it that nobody observed: of a sub-agent, a search, a list of things to do."""
    client = Client()
    for name in "abc":
        client.ask("observe", command=f"cat {name}.txt", output=SONG.replace("bottles", name), call_id=name)
    made = [("a", "bash", {"command": "cat a.txt"}), ("t", "Task", {"prompt": "what is in b.txt?"})]
    messages = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": name, "input": given}]}
        for call_id, name, given in made
    ]
    plans = [client.ask("restore_plan"), client.ask("restore_plan", messages=messages)]
    named = [[item["path"][-5:] for item in plan["items"] if "mentioned" in item["why"]] for plan in plans]
    assert named == [[], ["b.txt"]]


def test_what_was_settled_or_rewound_counts_no_more() -> None:
    client = Client()
    client.ask("observe", command="ls", output="song\n", call_id="zero")
    client.cat(call_id="one")
    client.ask("settle", call_id="one", text="cut")
    assert client.cat(call_id="two") == "full"
    client.ask("rewind", call_id="zero")
    assert client.cat() == "full"
    assert "unknown call 'nine'" in client.error("rewind", call_id="nine")


def test_events_come_in_parts() -> None:
    client = Client()
    client.cat(call_id="one")
    client.cat(call_id="two")
    got = client.ask("events")
    assert [(each["seq"], each["event"]["kind"]) for each in got["events"]] == [(1, "Delivered"), (2, "Delivered")]
    assert not got["more"]
    assert [each["event"]["call_id"] for each in client.ask("events", after=1)["events"]] == ["two"]
    client.ask("settle", call_id="two", text="cut")
    (last,) = client.ask("events", after=2)["events"]
    assert last["event"]["kind"].lower() == "settled"
    assert {"pieces", "pointers"} <= last["event"].keys()


def test_markers_are_found_in_a_text() -> None:
    client = Client()
    client.cat()
    marker = client.ask("observe", command="head -n 20 song", output=HALF)["text"].strip()
    assert client.ask("markers_in", text=f"+  {marker}\n")["markers"] == [marker]


def test_a_closed_conversation_begins_anew() -> None:
    client = Client()
    client.cat()
    client.ask("fork", name="x")
    assert client.ask("close") == {}
    assert client.cat() == "full"


def test_commands_and_files_of_this_machine_are_offered_only_where_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "song").write_text(SONG)
    allowed, refused = Client(), Client(may_run=False)
    assert allowed.ask("run", command="cat song", cwd=str(tmp_path))["text"] == SONG
    reply = allowed.ask("read", path=str(tmp_path / "song"))
    assert (reply["outcome"], reply["full_text"]) == ("unchanged", SONG)
    for method in ("run", "read"):
        answer = refused.send(method, command="true")
        assert answer["error"]["code"] == fields.UNKNOWN_METHOD


def test_switched_off_every_answer_is_the_real_text() -> None:
    client = Client(policy=Policy(mode=Mode.OFF))
    assert [client.cat(), client.cat()] == ["full", "full"]
    assert client.ask("hello")["mode"] == "off"


def test_a_store_that_cannot_be_used_costs_the_saving_alone(tmp_path: Path) -> None:
    client = Client(store=tmp_path)
    assert [client.cat(), client.cat()] == ["full", "full"]
    assert client.ask("observe", command="cat song", output=SONG)["reason"] == "store_failed"
    assert client.send("events")["error"]["code"] == fields.NOT_DONE


def test_the_conversation_that_was_not_used_for_longest_is_let_go() -> None:
    client = Client()
    client.cat(conversation="first")
    for number in range(MOST_READERS - 1):
        client.ask("stats", conversation=str(number // 2), agent=f"reader {number % 2}")
    assert client.cat(conversation="first") == "unchanged"
    for number in range(MOST_READERS - 1):
        client.ask("stats", conversation="new", agent=str(number))
    assert client.cat(conversation="first") == "full"


# ---------------------------------------------------------------- what is wrong with a request


def request(method: object = "stats", /, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"conversation": "c", **params}}


WRONG: list[tuple[object, int, str]] = [
    ([], fields.INVALID_REQUEST, "a request is not an object"),
    ([request()], fields.INVALID_REQUEST, "a request is not an object"),
    ({**request(), "id": {}}, fields.INVALID_REQUEST, "id is not a text or a whole number"),
    ({**request(), "jsonrpc": "1.0"}, fields.INVALID_REQUEST, "jsonrpc is not the text 2.0"),
    ({"jsonrpc": "2.0", "id": 1}, fields.INVALID_REQUEST, "a request needs method"),
    ({"jsonrpc": "2.0", "method": 5}, fields.INVALID_REQUEST, "method is not a text"),
    ({**request(), "session": "c"}, fields.INVALID_REQUEST, "no field 'session': give jsonrpc, id, method, params"),
    ({**request(), "params": []}, fields.INVALID_REQUEST, "params is not an object"),
    ({**request(), "params": {}}, fields.INVALID_PARAMS, "stats needs conversation"),
    (request(conversation=""), fields.INVALID_PARAMS, "conversation is not a text that is not empty"),
    (request("obserb"), fields.UNKNOWN_METHOD, "unknown method 'obserb': choose from hello, observe,"),
    (request(x=1), fields.INVALID_PARAMS, "stats has no field 'x': give conversation, agent"),
    (request("rewind", call_id="nine"), fields.NOT_DONE, "unknown call 'nine'"),
]


@pytest.mark.parametrize(("request_", "code", "what"), WRONG, ids=[what for *_, what in WRONG])
def test_what_is_wrong_with_a_request_is_said_in_words(request_: object, code: int, what: str) -> None:
    answer = Client().protocol.answer(request_)
    assert answer is not None
    assert answer["error"]["code"] == code
    assert what in answer["error"]["message"]
    has_id = isinstance(request_, dict) and request_.get("id") == 1
    assert answer["id"] == (1 if has_id else None), "a client waits for the answer to its id"


@pytest.mark.parametrize("name", ["", "a", 0, -1, 2**63, 2**64 - 1])
def test_an_answer_has_the_id_of_its_request(name: object) -> None:
    answer = Client().protocol.answer({**request(), "id": name})
    assert answer is not None
    assert (answer["id"], "result" in answer) == (name, True)


def test_a_bug_is_an_error_that_leaves_the_real_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("oh")

    monkeypatch.setattr(Sessions, "get", fail)
    error = Client().send("observe", command="cat song", output=SONG)["error"]
    assert error["code"] == fields.INTERNAL_ERROR
    assert "AssertionError: oh; the real output stands" in error["message"]


def test_a_notification_is_carried_out_and_not_answered() -> None:
    client = Client()
    for sent in (request("wrote", path="f"), request("wrote"), request("obserb")):
        del sent["id"]
        assert to_line(client.protocol.answer(sent)) == b""
    assert [each["event"]["kind"] for each in client.ask("events")["events"]] == ["Wrote"]


def test_the_form_of_the_first_builds_is_answered() -> None:
    protocol = Protocol(Sessions("/w"))
    for agent, outcome in (("main", "full"), ("main", "unchanged"), ("sub", "full")):
        params = {"command": "cat song", "output": SONG}
        sent = {"id": 1, "method": "observe", "conversation": "c", "agent": agent, "params": params}
        answer = protocol.answer(sent)
        assert answer is not None
        assert (answer["id"], answer["result"]["outcome"]) == (1, outcome)
    assert protocol.answer({"method": "stats", "conversation": "c"}), "it has no id and is not a notification"


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"command": "ls"}, "observe needs output"),
        ({"command": 3, "output": ""}, "command is not a text"),
        ({"command": "ls", "output": "", "exit_code": "0"}, "exit_code is not a whole number"),
        ({"command": "ls", "output": "", "exit_code": True}, "exit_code is not a whole number"),
        ({"command": "ls", "output": "", "complete": 1}, "complete is not true or false"),
        ({"command": "ls", "output": "", "frame": {"top": 1}}, "frame has no field 'top': give head, tail"),
        ({"command": "ls", "output": "", "frame": {"head": -1}}, "head is not a whole number from 0 up"),
    ],
)
def test_what_is_wrong_with_a_field_is_said_in_words(params: dict[str, Any], what: str) -> None:
    assert what in Client().error("observe", **params)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", fields.NO_JSON),
        (b'{"id": NaN}', fields.NO_JSON),
        (b'{"method": "mend", "conversation": "c", "params": {"messages": [{"temperature": 1e999}]}}', fields.NO_JSON),
        (b'{"params": [-1e400]}', fields.NO_JSON),
        (b"\xff\xfe", fields.NO_JSON),
        (b"[" * 100_000, fields.NO_JSON),
        (b"1" * 5000, fields.NO_JSON),
        (b'{"id": 1.5, "method": "stats"}', fields.INVALID_REQUEST),
        (None, fields.INVALID_REQUEST),
    ],
)
def test_a_line_that_is_no_request_is_answered(line: bytes | None, code: int) -> None:
    answer = json.loads(to_line(Client().protocol.answer(parse(line))))
    assert (answer["id"], answer["error"]["code"]) == (None, code)


@pytest.mark.parametrize("numbered", [": ", True])
def test_a_host_may_say_what_it_writes_after_numbers(numbered: bool | str) -> None:
    client = Client()
    lines = [f"value_{n} = compute({n * 7919 % 1000})" for n in range(1, 61)]
    shown = "".join(f"{n}: {line}\n" for n, line in enumerate(lines, 1))
    client.ask("observe_read", path="/w/f", output=shown, numbered=numbered)
    raw = "".join(line + "\n" for line in lines)
    assert client.ask("observe", command="cat f", output=raw, cwd="/w")["outcome"] == "unchanged"


def test_lone_surrogates_and_nuls_go_through() -> None:
    client = Client()
    for text in ("\ud800 \udfff\n" * 90, "\0" * 900):
        assert client.ask("observe", command=f"echo {text[:2]}", output=text, cwd="/w/\0")["text"] == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
texts = st.sampled_from(["", "cat song", "/w/song", "one", "two", SONG, HALF, "\0", "\ud800"]) | st.text(max_size=9)
objects = st.dictionaries(
    st.sampled_from(["head", "tail", "role", "content", "tool_call_id", "id"]), texts | json_values
)


def valid(schema: Schema) -> st.SearchStrategy[Any]:
    """Values that a schema allows."""
    if "anyOf" in schema:
        return st.one_of(*map(valid, schema["anyOf"]))
    kind: str = schema["type"]
    if "properties" in schema:
        return st.fixed_dictionaries({}, optional={name: valid(each) for name, each in schema["properties"].items()})
    if kind == "object":
        return st.dictionaries(texts, texts, max_size=2) if "additionalProperties" in schema else objects
    if kind == "array":
        return st.lists(valid(schema["items"]), max_size=3)
    if kind == "integer":
        return st.integers(schema.get("minimum", -2), 50) | st.integers(0, 2**53)
    if kind == "string":
        return texts.filter(bool) if "minLength" in schema else texts
    return {"boolean": st.booleans(), "number": st.floats(0.1, 2)}[kind]


@st.composite
def requests(draw: st.DrawFn) -> object:
    """Requests that are right, or nearly so, and any other value now and then."""
    if not draw(st.integers(0, 9)):
        return draw(json_values)
    method = draw(st.sampled_from([*METHODS]))
    schema = METHODS[method].params
    properties = {**schema["properties"], "conversation": {}, "agent": {}}
    asked = [name for name in properties if properties[name] and (name in schema["required"] or draw(st.booleans()))]
    params = {name: draw(valid(properties[name])) for name in asked}
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    params["conversation"] = draw(st.sampled_from("cd"))
    if not draw(st.integers(0, 9)):
        spoilt = draw(st.sampled_from([params, request]))
        spoilt[draw(st.sampled_from([*spoilt, "more"]))] = draw(json_values)
    return request


@given(st.lists(requests(), max_size=6))
def test_whatever_is_sent_is_answered(sent: list[object]) -> None:
    protocol = Protocol(Sessions("/w"), may_run=True)
    for each in sent:
        if line := to_line(protocol.answer(parse(json.dumps(each).encode()))):
            answer = json.loads(line)
            assert set(answer) in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
            assert answer.get("error", {}).get("code") != fields.INTERNAL_ERROR, answer
    answer = protocol.answer(request("observe", conversation="probe", command="cat song", output=SONG))
    assert answer is not None
    assert answer["result"]["text"] == SONG


def test_a_compaction_that_is_to_keep_any_number_of_turns_is_answered_at_once() -> None:
    """A loop over the turns that are asked for took 24 GB."""
    turns = [{"role": role, "content": "a text"} for role in ("user", "assistant") * 3]
    for method in ("compaction_request", "compact"):
        Client().ask(method, messages=turns, keep_turns=2**53)


@given(st.binary(max_size=60))
def test_whatever_bytes_a_line_has_it_is_answered(line: bytes) -> None:
    assert set(json.loads(to_line(Protocol(Sessions("/w")).answer(parse(line))))) == {"jsonrpc", "id", "error"}


# ---------------------------------------------------------------- the document


def document() -> str:
    return (TOP / "docs/protocol.md").read_text(encoding="utf-8")


def test_the_client_of_the_document_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    (code,) = re.findall(r"^```python\n(.*?)^```$", document(), re.MULTILINE | re.DOTALL)
    program = tmp_path / "client.py"
    program.write_text(code + "client.server.stdin.close()\nassert client.server.wait(600) == 0\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=WATCHDOG, check=True)
    assert done.stdout.split() == re.findall(r"# -> (\w+)$", code, re.MULTILINE)
