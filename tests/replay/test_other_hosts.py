"""What each format says beyond calls and results: cuts, calls made at once, statuses, usage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from readcache import Frame
from readcache.core.model.tool_call import AskedCommand, AskedRead
from readcache.transcripts.codex import is_truncated
from readcache.transcripts.files import Found, read_content, units_of
from readcache.transcripts.formats import recordings_in
from readcache.transcripts.records import Recording, RequestSent
from tests.replay.loaded import calls, load, load_document, load_rows, removals, replay, requests
from tests.replay.sessions import lines

Row = dict[str, Any]


def codex(*items: tuple[str, Row]) -> list[Row]:
    start = [("session_meta", {"id": "s", "cwd": "/w"})]
    return [{"timestamp": "2026-11-01T00:00:00Z", "type": kind, "payload": one} for kind, one in [*start, *items]]


def codex_call(name: str, output: str, command: str = "cat a") -> list[tuple[str, Row]]:
    arguments = json.dumps({"cmd": command, "workdir": "sub"})
    asked = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": name}
    return [
        ("response_item", asked),
        ("response_item", {"type": "function_call_output", "call_id": name, "output": output}),
    ]


def test_codex_tells_the_status_in_front_of_an_output(tmp_path: Path) -> None:
    head = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\n"
    running = "Chunk ID: 2\nWall time: 9.0 seconds\nProcess running with session ID 5\nOutput:\n"
    rows = codex(*codex_call("one", f"{head}a\n"), *codex_call("two", f"{running}a\n"))
    one, two = calls(load_rows(tmp_path, rows)[0])
    assert (one.asked, one.cwd, one.frame, one.exit_code) == (AskedCommand("cat a"), "/w/sub", Frame(4), 3)
    assert (one.complete, two.complete) == (True, False)


def test_codex_printed_the_command_before_its_status_and_it_may_have_several_lines(tmp_path: Path) -> None:
    """Codex 0.116 did so. The status was lost, and the frame's lines were taken for lines of the output."""
    command = "cat >a <<'E'\nOutput:\nWall time: long\nE\ncat a"
    status = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 3"
    head = f'Command: /bin/bash -lc "{command}"\n{status}\nOutput:\n'
    (one,) = calls(load_rows(tmp_path, codex(*codex_call("one", f"{head}a\n", command)))[0])
    assert (one.frame, one.exit_code, one.complete) == (Frame(head.count("\n")), 3, True)


def test_codex_notes_usage_behind_each_answer_and_again_when_a_limit_was_looked_at(tmp_path: Path) -> None:
    last = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9}
    counted = {"type": "token_count", "info": {"total_token_usage": {"total_tokens": 109}, "last_token_usage": last}}
    one, two = codex_call("one", "a\n"), codex_call("two", "b\n")
    rows = codex(one[0], ("event_msg", counted), ("event_msg", counted), one[1], *two)
    (request,) = requests(load_rows(tmp_path, rows)[0])
    assert (request.fresh, request.cache_read, request.output) == (40, 60, 9)


def test_codex_says_what_a_compaction_left(tmp_path: Path) -> None:
    kept = {"type": "function_call_output", "call_id": "two", "output": "b\n"}
    rows = codex(*codex_call("one", "a\n"), *codex_call("two", "b\n"), ("compacted", {"replacement_history": [kept]}))
    (removal,) = removals(load_rows(tmp_path, rows)[0])
    assert removal.kept == {"two"}
    history = [{**kept, "call_id": "one"}, {"type": "compaction"}, kept]
    rows = codex(*codex_call("one", "a\n"), *codex_call("two", "b\n"), ("compacted", {"replacement_history": history}))
    (removal,) = removals(load_rows(tmp_path, rows)[0])
    assert removal.kept == {"two"}
    (removal,) = removals(
        load_rows(tmp_path, codex(*codex_call("one", "a\n"), ("response_item", {"type": "compaction"})))[0]
    )
    assert removal.kept == frozenset()


def pi(name: str, parent: str | None, message: Row | None = None, **more: Any) -> Row:
    kind = {"type": "message", "message": message} if message else {}
    return {"id": name, "parentId": parent, "timestamp": "2026-11-01T00:00:00Z", **kind, **more}


def pi_call(name: str, parent: str | None) -> list[Row]:
    block = {"type": "toolCall", "id": name, "name": "read", "arguments": {"path": "a", "offset": 3, "limit": 2}}
    text = [{"type": "text", "text": "x\ny\n\n[7 more lines in file. Use offset=5 to continue.]"}]
    return [
        pi(f"a{name}", parent, {"role": "assistant", "content": [block]}),
        pi(f"r{name}", f"a{name}", {"role": "toolResult", "toolCallId": name, "content": text}),
    ]


def test_pi_has_a_tree_too_and_names_the_first_entry_that_a_compaction_kept(tmp_path: Path) -> None:
    start = {"type": "session", "id": "s", "cwd": "/w", "version": 3}
    compaction = pi("k", "r2", type="compaction", firstKeptEntryId="a2")
    rows = [start, *pi_call("1", None), *pi_call("2", "r1"), compaction, *pi_call("3", "k"), *pi_call("4", "k")]
    (found,) = load_rows(tmp_path, rows)
    assert [(set(removal.kept), removal.compacts) for removal in removals(found)] == [({"2"}, True), ({"2"}, False)]
    assert calls(found)[0].asked == AskedRead("/w/a", 3, 4, numbered=False)
    assert calls(found)[0].frame == Frame(0, 2)


def test_a_request_that_shrinks_without_a_cut_shows_that_something_left_unseen(tmp_path: Path) -> None:
    """An extension of pi that prunes leaves no trace but the usage: what it took away was left out by reference."""
    rows: list[Row] = [{"type": "session", "id": "s", "cwd": "/w", "version": 3}]
    parent: str | None = None
    for number, tokens in enumerate((9_000, 10_000, 6_000)):
        call, result = pi_call(str(number), parent)
        call["message"]["usage"] = {"input": tokens, "output": 9}
        rows += [call, result]
        parent = result["id"]
    (found,) = load_rows(tmp_path, rows)
    assert [(removal.kept, removal.compacts) for removal in removals(found)] == [(frozenset(), False)]
    assert isinstance(found.items[found.items.index(removals(found)[0]) + 1], RequestSent)


def test_opencode_notes_when_a_result_was_pruned(tmp_path: Path) -> None:
    def message(at: int, name: str, pruned: int | None = None) -> Row:
        state = {"status": "completed", "input": {"command": "cat a"}, "output": "a\n", "time": {"compacted": pruned}}
        tool = {"type": "tool", "tool": "bash", "callID": name, "state": state}
        tokens = {"input": 5, "output": 2, "reasoning": 1, "cache": {"read": 7, "write": 0}}
        parts = [{"type": "step-start"}, tool, {"type": "step-finish", "tokens": tokens}]
        return {"info": {"role": "assistant", "time": {"created": at}}, "parts": parts}

    ms = 1_777_000_000_000
    messages = [message(ms, "one", ms + 50), message(ms + 10, "two"), message(ms + 60, "three")]
    info = {"id": "s", "directory": "/w", "time": {"created": ms}}
    (found,) = load_document(tmp_path, {"info": info, "messages": messages})
    assert [set(removal.kept) for removal in removals(found)] == [{"two"}]
    assert requests(found)[0] == RequestSent(fresh=5, cache_read=7, output=3, answer=len("cat a"))
    assert found.since == ms / 1000


OUTPUTS = [lines(1, 60), lines(10, 50)]
COMMANDS = ["cat app.py", "sed -n '10,50p' app.py"]
OPENAI = [
    message
    for number, (command, output) in enumerate(zip(COMMANDS, OUTPUTS, strict=True))
    for message in (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": f"c{number}", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
            ],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": output},
    )
]
ANTHROPIC = [
    message
    for number, (command, output) in enumerate(zip(COMMANDS, OUTPUTS, strict=True))
    for message in (
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": command}}],
            "usage": {"input_tokens": 1, "cache_read_input_tokens": 90, "output_tokens": 4},
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": output}]},
    )
]
RESPONSES = [
    item
    for number, (command, output) in enumerate(zip(COMMANDS, OUTPUTS, strict=True))
    for item in (
        {
            "type": "function_call",
            "call_id": f"c{number}",
            "name": "shell",
            "arguments": json.dumps({"command": command}),
        },
        {"type": "function_call_output", "call_id": f"c{number}", "output": output},
    )
]
TEXT = [
    message
    for command, output in zip(COMMANDS, OUTPUTS, strict=True)
    for message in (
        {"role": "assistant", "content": f"THOUGHT: look\n\n```bash\n{command}\n```"},
        {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{output}</output>"},
    )
]
LISTS: dict[str, list[Any]] = {"OpenAI": OPENAI, "Anthropic": ANTHROPIC, "Responses": RESPONSES, "text": TEXT}


@pytest.mark.parametrize("shape", LISTS)
@pytest.mark.parametrize("layout", ["list", "document", "a message a line", "a conversation a line"])
def test_message_lists_of_every_api_are_understood_however_they_are_laid_out(
    shape: str, layout: str, tmp_path: Path
) -> None:
    messages = LISTS[shape]
    made = {
        "list": lambda: load_document(tmp_path, messages),
        "document": lambda: load_document(tmp_path, {"model": "x", "messages": messages}),
        "a message a line": lambda: load_rows(tmp_path, messages),
        "a conversation a line": lambda: load_rows(tmp_path, [{"messages": messages}]),
    }
    (found,) = made[layout]()
    assert [call.tool for call in calls(found)] == ["bash", "bash"]
    assert replay(found).policies["default"].counts["saved"] > 1000


PATCH = "*** Begin Patch\n*** Update File: /a.py\n*** End Patch\n"
CUSTOM = [
    {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": PATCH},
    {"type": "custom_tool_call_output", "call_id": "c", "output": "Done"},
]
OLDEST = [
    {"role": "assistant", "content": None, "function_call": {"name": "bash", "arguments": '{"command": "cat /a"}'}},
    {"role": "function", "name": "bash", "content": "a\n"},
]


@pytest.mark.parametrize("layout", [load_document, load_rows])
@pytest.mark.parametrize(("messages", "kind"), [(CUSTOM, "edit"), (OLDEST, "bash")])
def test_every_call_that_adapters_see_in_messages_is_recorded(
    messages: list[Any], kind: str, layout: Any, tmp_path: Path
) -> None:
    (found,) = layout(tmp_path, messages)
    assert [call.tool for call in calls(found)] == [kind]


def test_a_text_in_blocks_counts_once(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": [{"type": "text", "text": "12345"}], "usage": {"input_tokens": 9}}
    (found,) = load_document(tmp_path, [said])
    (request,) = (item for item in found.items if isinstance(item, RequestSent))
    assert request.answer == 5


@pytest.mark.parametrize("kind", ["tool_output", "output", None])
def test_a_result_in_parts_of_any_type_that_have_a_text_is_read(kind: str | None, tmp_path: Path) -> None:
    """410 calls had 0 characters of output, and the verdict was that nothing would have been saved."""
    part = {"text": lines(1, 90)} if kind is None else {"type": kind, "text": lines(1, 90)}
    for messages, key in ((OPENAI, "content"), (ANTHROPIC, "content")):
        rows = json.loads(json.dumps(messages))
        for row in rows[1::2]:
            result = row if messages is OPENAI else row["content"][0]
            result[key] = [part]
        (found,) = load_document(tmp_path, rows)
        assert [call.output for call in calls(found)] == [lines(1, 90)] * 2


def test_a_result_with_an_image_in_it_is_not_judged(tmp_path: Path) -> None:
    messages = json.loads(json.dumps(ANTHROPIC))
    for result in messages[1::2]:
        block = result["content"][0]
        block["content"] = [{"type": "text", "text": block["content"]}, {"type": "image", "source": {}}]
    (found,) = load_document(tmp_path, messages)
    assert [call.output for call in calls(found)] == ["", ""]


@pytest.mark.parametrize("layout", ["list", "a message a line"])
@pytest.mark.parametrize("shape", ["Anthropic", "Responses"])
def test_what_stands_before_a_server_side_compaction_is_cut(shape: str, layout: str, tmp_path: Path) -> None:
    messages, at = LISTS[shape], len(LISTS[shape]) // 2
    block = {"type": "compaction", "content": "a summary"}
    compaction = [block] if shape == "Responses" else [{"role": "assistant", "content": [block]}]
    for before in (at, 0):
        rows = [*messages[:before], *compaction, *messages[before:]]
        (found,) = load_document(tmp_path, rows) if layout == "list" else load_rows(tmp_path, rows)
        assert [(removal.kept, removal.compacts) for removal in removals(found)] == [(frozenset(), True)]
        assert len(calls(found)) == 2
        assert bool(replay(found).policies["default"].counts["saved"]) is (before == 0)


def test_usage_fields_are_those_of_each_provider(tmp_path: Path) -> None:
    (found,) = load_document(tmp_path, ANTHROPIC)
    assert [request.prompt for request in requests(found)] == [91, 91]
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}}
    (found,) = load_document(tmp_path, [{**message, "usage": usage} for message in OPENAI])
    assert [(one.fresh, one.cache_read, one.output) for one in requests(found)] == [(36, 64, 5)] * 2


def event(number: int, **fields: Any) -> Row:
    return {"id": number, "timestamp": "2026-11-01T00:00:00", "source": "agent", **fields}


def openhands_0() -> list[Row]:
    done = {"metadata": {"exit_code": 0, "working_dir": "/w"}}
    return [
        event(1, action="run", args={"command": "cd /w && cat app.py", "thought": "look"}),
        event(2, observation="run", content=lines(1, 60), cause=1, extras=done),
        event(3, action="run", args={"command": "sed -n '10,50p' app.py"}),
        event(4, observation="run", content=lines(10, 50), cause=3, extras=done),
        event(5, action="edit", args={"path": "/w/app.py", "command": "str_replace", "new_str": "x"}),
        event(6, observation="edit", content="The file was edited.", cause=5, extras={}),
        event(7, action="condensation", args={"forgotten_event_ids": [1, 2]}),
    ]


def load_files(directory: Path, events: list[Row]) -> list[Recording]:
    directory.mkdir()
    for one in events:
        (directory / f"{one['id'] + 7}.json").write_text(json.dumps(one))  # 8 to 14: in the order of numbers
    (directory / "notes.txt").write_text("no event")
    return load(directory)


@pytest.mark.parametrize("layout", ["a list", "an event a line", "an evaluation's output", "pairs", "a file each"])
def test_openhands_0_has_actions_and_observations(layout: str, tmp_path: Path) -> None:
    events = openhands_0()
    pairs = [events[at : at + 2] for at in (0, 2, 4)] + [[events[6]]]
    made = {
        "a list": lambda: load_document(tmp_path, events),
        "an event a line": lambda: load_rows(tmp_path, events),
        "an evaluation's output": lambda: load_rows(tmp_path, [{"instance_id": "i", "history": events}]),
        "pairs": lambda: load_rows(tmp_path, [{"instance_id": "i", "history": pairs}]),
        "a file each": lambda: load_files(tmp_path / "events", events),
    }
    (found,) = made[layout]()
    first, second, third = calls(found)
    assert isinstance(second.asked, AskedCommand)
    assert second.cwd == "/w"
    assert [write.path for write in third.writes] == ["/w/app.py"]
    assert [set(removal.kept) for removal in removals(found)] == [{second.call_id, third.call_id}]
    assert first.said == "cd /w && cat app.py"
    totals = replay(found)
    assert totals.policies["default"].counts["saved"] > 1000
    assert totals.policies["default"].counts["wrong"] == 0


def test_an_output_that_openhands_cut_is_cut_for_its_transcript_as_for_its_adapter(tmp_path: Path) -> None:
    events = openhands_0()
    events[1]["content"] += "<response clipped><NOTE>Due to the max output limit</NOTE>"
    (found,) = load_document(tmp_path, events)
    assert [call.complete for call in calls(found)[:2]] == [False, True]


def test_copilot_tells_which_tools_and_which_compactions_failed(tmp_path: Path) -> None:
    asked = {"toolCallId": "one", "name": "edit", "arguments": {"path": "/w/a", "old_str": "x", "new_str": "y"}}
    done = {"toolCallId": "one", "success": False, "result": {"content": "no match"}}
    rows = [
        {"type": "session.start", "data": {"sessionId": "s", "context": {"cwd": "/w"}}, "timestamp": "2026-11-01"},
        {"type": "assistant.message", "data": {"content": "", "toolRequests": [asked]}},
        {"type": "tool.execution_complete", "data": done},
        {"type": "session.compaction_complete", "data": {"success": False}},
        {"type": "session.compaction_complete", "data": {"success": True}},
        {"type": "session.snapshot_rewind", "data": {}},
    ]
    (found,) = load_rows(tmp_path, rows)
    (call,) = calls(found)
    assert call.writes == ()
    assert [removal.compacts for removal in removals(found)] == [True, False]


def test_swe_agents_window_shows_lines_of_the_file_that_it_names(tmp_path: Path) -> None:
    shown = "[File: /w/app.py (200 lines total)]\n(9 more lines above)\n" + "".join(
        f"{number}:{line}\n" for number, line in enumerate(lines(10, 50).splitlines(), 10)
    )
    steps = [
        {"action": "open app.py 10", "observation": shown, "state": '{"working_dir": "/w"}'},
        {"action": "str_replace_editor view /w/b.py --view_range 3 9", "observation": "     3\tx\n", "state": "{}"},
        {"action": "cat app.py", "observation": lines(1, 60), "state": '{"working_dir": "/w"}'},
    ]
    (found,) = load_document(tmp_path, {"trajectory": steps, "history": [], "info": {}})
    window, view, command = calls(found)
    assert window.asked == AskedRead("/w/app.py", 10)
    assert view.asked == AskedRead("/w/b.py", 3, 9)
    assert isinstance(command.asked, AskedCommand)
    assert command.cwd == "/w"
    assert replay(found).policies["default"].counts["saved"] > 1000


@pytest.mark.parametrize(
    "output",
    ["Warning: truncated output (12 lines)\na\n", "Total output lines: 900\n\na\n", "a\nb…120 tokens truncated…c\n"],
)
def test_an_output_that_codex_cut_is_cut_for_its_hook_and_for_its_transcript(output: str, tmp_path: Path) -> None:
    (found,) = load_rows(tmp_path, codex(*codex_call("one", output)))
    assert [call.complete for call in calls(found)] == [False]
    assert is_truncated(output)
    assert not is_truncated("it said: Warning: truncated output (\n")


def atif_step(number: int, output: str, **more: Any) -> Row:
    call = {"tool_call_id": f"c{number}", "function_name": "Bash", "arguments": {"command": COMMANDS[number]}}
    metrics = {"prompt_tokens": 100, "cached_tokens": 60, "completion_tokens": 9}
    results = [{"source_call_id": f"c{number}", "content": output}]
    step = {"step_id": number + 2, "source": "agent", "message": "", "tool_calls": [call], "metrics": metrics}
    return {**step, "timestamp": f"2026-11-01T00:0{number}:00Z", "observation": {"results": results}, **more}


def atif(*steps: Row, **more: Any) -> Row:
    agent = {"name": "claude-code", "version": "2", "model_name": "claude-opus-4-7", "extra": {"cwds": ["/w"]}}
    user = {"step_id": 1, "source": "user", "message": "Mend it."}
    return {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": [user, *steps], **more}


def test_atif_has_steps_with_calls_results_and_tokens(tmp_path: Path) -> None:
    (found,) = load_document(tmp_path, atif(*(atif_step(n, output) for n, output in enumerate(OUTPUTS))))
    assert (found.form, found.agent, found.model) == ("atif", "claude-code", "claude-opus-4-7")
    assert [call.asked for call in calls(found)] == [AskedCommand(one) for one in COMMANDS]
    assert {(call.cwd, call.exit_code) for call in calls(found)} == {("/w", None)}
    assert [call.output for call in calls(found)] == OUTPUTS
    assert requests(found)[0] == RequestSent(40, cache_read=60, output=9, added=8, answer=len(COMMANDS[0]))
    assert replay(found).policies["default"].counts["saved"] > 1000


def test_atif_may_hold_the_trajectories_of_sub_agents_and_results_in_parts_that_name_no_call(tmp_path: Path) -> None:
    parts = {"results": [{"content": [{"type": "text", "text": "a\nb\n"}]}]}
    inner = atif(atif_step(0, OUTPUTS[0]), trajectory_id="t2")
    row = atif(atif_step(0, "", observation=parts), subagent_trajectories=[inner])
    main, sub = load_document(tmp_path, row)
    assert calls(main)[0].output == "a\nb\n"
    assert (main.reader, sub.reader) == ("main", "t2")


def gemini(*rows: Row) -> list[Row]:
    return [{"sessionId": "s", "projectHash": "p", "kind": "main"}, *rows]


def gemini_call(name: str, output: str, **more: Any) -> Row:
    answer = {"functionResponse": {"id": name, "name": "run_shell_command", "response": {"output": output}}}
    call = {"id": name, "name": "run_shell_command", "args": {"command": "cat a"}, "result": [answer]}
    return {"id": f"m{name}", "type": "gemini", "content": "", "toolCalls": [{**call, "status": "success", **more}]}


def test_gemini_tells_the_status_behind_an_output(tmp_path: Path) -> None:
    shown = "<untrusted_context>\nOutput: a\nb\nExit Code: 3\nProcess Group PGID: 9\n</untrusted_context>"
    gone = {"error": "Command was cancelled."}
    failed = [{"functionResponse": {"id": "two", "response": gone}}]
    rows = gemini(gemini_call("one", shown), gemini_call("two", "", result=failed, status="cancelled"))
    one, two = calls(load_rows(tmp_path, rows)[0])
    assert (one.asked, one.cwd, one.frame, one.exit_code) == (AskedCommand("cat a"), "/", Frame(2, 3), 3)
    assert one.output == shown.replace("Output: ", "Output:\n")
    assert (two.output, two.is_error, two.complete) == ("Command was cancelled.", True, False)


def test_gemini_writes_the_history_again_when_it_was_compressed(tmp_path: Path) -> None:
    kept = gemini_call("two", "b\n")
    summary = {"id": "x", "type": "user", "content": [{"text": "<state_snapshot>So far.</state_snapshot>"}]}
    first, third = gemini_call("one", "a\n"), gemini_call("three", "c\n")
    (found,) = load_rows(tmp_path, gemini(first, kept, {"$set": {"messages": [summary, kept]}}, third))
    assert [(set(removal.kept), removal.compacts) for removal in removals(found)] == [({"two"}, True)]
    assert [call.call_id for call in calls(found)] == ["one", "two", "three"]
    resumed: list[Row] = [
        {"$set": {"messages": []}},
        {"$set": {"messages": [summary]}},
        {"$set": {"messages": [first, kept]}},
    ]
    (found,) = load_rows(tmp_path, gemini(first, kept, *resumed, third))
    assert not removals(found)


def test_gemini_kept_a_chat_in_one_document_before(tmp_path: Path) -> None:
    document = {"sessionId": "s", "projectHash": "p", "messages": [gemini_call("one", "a\n")]}
    (found,) = load_document(tmp_path, document)
    assert [call.call_id for call in calls(found)] == ["one"]
    assert not removals(found)


def test_gemini_streams_its_events_as_lines(tmp_path: Path) -> None:
    """They were read as a message list without calls, and 138 lines of a sound file were called damaged."""
    at = {"timestamp": "2026-11-01T00:00:00Z"}
    rows = [
        {"type": "init", "session_id": "s", "model": "gemini-2.5-pro", **at},
        {"type": "message", "role": "user", "content": "Look.", **at},
        {"type": "message", "role": "assistant", "content": "I will.", "delta": True, **at},
        {"type": "tool_use", "tool_name": "read_file", "tool_id": "one", "parameters": {"file_path": "a"}, **at},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "two", "parameters": {"command": "ls"}, **at},
        {"type": "tool_result", "tool_id": "two", "status": "success", "output": "a\nb", **at},
        {"type": "tool_result", "tool_id": "one", "status": "error", "output": "no such file", **at},
        {"type": "error", "severity": "warning", "message": "slow", **at},
        {"type": "result", "status": "success", "stats": {"total_tokens": 9, "input_tokens": 8, "output_tokens": 1}},
    ]
    for written in (rows, rows[1:]):
        (found,) = load_rows(tmp_path, written)
        assert found.form == "gemini"
        assert [(call.call_id, call.output, call.is_error) for call in calls(found)] == [
            ("two", "a\nb", False),
            ("one", "no such file", True),
        ]
        assert len({call.batch for call in calls(found)}) == 1
        assert requests(found) == [], "it has only a total, which is no request"
    (found,) = load_rows(tmp_path, rows)
    assert (found.name, found.model) == ("s", "gemini-2.5-pro")
    (unit,) = units_of(Found(str(tmp_path / "rows.jsonl"), True, 1))
    content = read_content(unit)
    assert list(recordings_in(content))
    assert content.damage.lines == 0


@pytest.mark.parametrize("form", ["codex", "messages"])
def test_a_result_that_comes_before_its_call_is_kept_for_it(form: str, tmp_path: Path) -> None:
    """It was lost without a word."""
    if form == "codex":
        one, two = codex_call("one", "a\n"), codex_call("two", "b\n", "cat b")
        rows = codex(one[0], two[1], two[0], one[1])
    else:
        rows = [
            {"role": "assistant", "tool_calls": [openai_call("one")]},
            {"role": "tool", "tool_call_id": "two", "content": "b\n"},
            {"role": "assistant", "tool_calls": [openai_call("two")]},
            {"role": "tool", "tool_call_id": "one", "content": "a\n"},
        ]
    (found,) = load_rows(tmp_path, rows)
    assert {call.call_id: call.output for call in calls(found)} == {"one": "a\n", "two": "b\n"}
    assert len({call.batch for call in calls(found)}) == 1


def openai_call(name: str) -> Row:
    return {"id": name, "type": "function", "function": {"name": "bash", "arguments": '{"command": "cat x"}'}}
