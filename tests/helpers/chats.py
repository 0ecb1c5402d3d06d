"""Conversations as harnesses keep them, in the shape of an API: from calls and outputs, or from a short script."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from readcache import Omitted, Reply
from readcache.core.messages.messages import Kind, normalise

Raw = dict[str, Any]
Messages = list[Mapping[str, Any]]
APIS = ("openai", "anthropic", "converse", "gemini")  # the latter two: Bedrock's, and Gemini's `parts`
# For tests that start programs for each API: the quick suite tries the first.
each_api = pytest.mark.parametrize("shape", [APIS[0], *(pytest.param(api, marks=pytest.mark.slow) for api in APIS[1:])])
WORDS_IN_FRONT = "OBSERVATION:\n"  # of the harness, in the shape "blocks"
SHAPES_WITH_IDS = (*APIS, "blocks")
SHAPES = (*SHAPES_WITH_IDS, "gemini without ids", "plain")
LINES = [f"line number {n} says something that no other line says" for n in range(1, 1001)]


def text(first: int = 1, last: int = 40, of: str = "line") -> str:
    """Lines of a file, each unlike all others: up to 1,000, so that there are outputs of which a part is pruned."""
    return "".join(line.replace("line", of, 1) + "\n" for line in LINES[first - 1 : last])


def numbered(first: int, last: int, of: str = "line") -> str:
    """The same as `cat -n` prints them."""
    lines = text(first, last, of).splitlines()
    return "".join(f"{n:6}\t{line}\n" for n, line in enumerate(lines, first))


# ------------------------------------------------------------ one message


def said(api: str, words: str, role: str = "user") -> Raw:
    """Somebody says something."""
    if api.startswith("gemini"):
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": words}]}
    return {"role": role, "content": [{"text": words}] if api == "converse" else words}


def user(words: str) -> Raw:
    return said("openai", words)


def call_message(
    api: str, calls: Iterable[tuple[str, str, Mapping[str, Any]]], words: str | None = None, *, thinks: bool = False
) -> Raw:
    """The model makes calls: (id, tool, arguments) of each."""
    if api == "openai":
        functions = [(call_id, {"name": tool, "arguments": json.dumps(given)}) for call_id, tool, given in calls]
        made = [{"id": call_id, "type": "function", "function": function} for call_id, function in functions]
        thinking = {"reasoning_content": "hm"} if thinks else {}
        return {"role": "assistant", "content": words, "tool_calls": made, **thinking}
    blocks: list[Raw] = []
    if api == "converse":
        blocks += [{"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}] if thinks else []
        blocks += [{"text": words}] if words else []
        made = [{"toolUseId": call_id, "name": tool, "input": given} for call_id, tool, given in calls]
        return {"role": "assistant", "content": [*blocks, *({"toolUse": call} for call in made)]}
    if api.startswith("gemini"):
        blocks += [{"text": "hm", "thought": True}] if thinks else []
        blocks += [{"text": words}] if words else []
        made = [{**_gemini_id(api, call_id), "name": tool, "args": given} for call_id, tool, given in calls]
        return {"role": "model", "parts": [*blocks, *({"functionCall": call} for call in made)]}
    blocks += [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}] if thinks else []
    blocks += [{"type": "text", "text": words}] if words else []
    uses = [{"type": "tool_use", "id": call_id, "name": tool, "input": given} for call_id, tool, given in calls]
    return {"role": "assistant", "content": [*blocks, *uses]}


def result_messages(api: str, results: Iterable[tuple[str, Any, bool]]) -> list[Raw]:
    """The results: (id, content, is it an error) of each. But for OpenAI's API they are blocks of one message."""
    if api == "openai":
        return [{"role": "tool", "tool_call_id": call_id, "content": content} for call_id, content, _ in results]
    if api == "converse":
        made = [
            (call_id, _converse_blocks(content), "error" if failed else "success")
            for call_id, content, failed in results
        ]
        found = [
            {"toolResult": {"toolUseId": call_id, "content": inner, "status": status}}
            for call_id, inner, status in made
        ]
        return [{"role": "user", "content": found}] if found else []
    if api.startswith("gemini"):
        parts = [_gemini_parts(api, *result) for result in results]
        return [{"role": "user", "parts": [part for each in parts for part in each]}] if parts else []
    blocks = [
        {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
        for call_id, content, is_error in results
    ]
    return [{"role": "user", "content": blocks}] if blocks else []


def _converse_blocks(content: Any) -> list[Raw]:
    blocks = [{"text": content}] if isinstance(content, str) else content
    return [{"text": block["text"]} if "text" in block else block for block in blocks]


def _gemini_id(api: str, call_id: str) -> Raw:
    return {"id": call_id} if api == "gemini" else {}


def _gemini_parts(api: str, call_id: str, content: Any, failed: bool) -> list[Raw]:
    """The result, and images behind it."""
    blocks = [{"text": content}] if isinstance(content, str) else content
    texts = "\n".join(block["text"] for block in blocks if "text" in block)
    result = {**_gemini_id(api, call_id), "name": "bash", "response": {"error" if failed else "output": texts}}
    return [{"functionResponse": result}, *(block for block in blocks if "text" not in block)]


# ------------------------------------------------------------ from what was called and what it printed


@dataclass(frozen=True)
class Step:
    """A call and its result. The command of a shell, or the arguments of another tool."""

    given: str | dict[str, Any]
    output: str | None = ""
    tool: str = "bash"
    error: bool = False
    blocks: tuple[dict[str, Any], ...] = field(default=())  # of the result, after the text


def read(path: str, output: str, **given: Any) -> Step:
    return Step({"path": path, **given}, output, tool="read_file")


def write(path: str, content: str, output: str | None = "written", *, error: bool = False) -> Step:
    return Step({"path": path, "content": content}, output, tool="write_file", error=error)


def chat(api: str, *turns: Step | Sequence[Step] | str) -> Messages:
    """A system message, the task, and these turns: a step, several made at once, or what the user says. A step without
    output waits for its result. Calls are c1, c2, …"""
    messages: Messages = [said(api, "fix the bug")]
    if api == "openai":
        messages.insert(0, {"role": "system", "content": "you are an agent"})
    number = 0
    for turn in turns:
        if isinstance(turn, str):
            messages.append(said(api, turn))
            continue
        steps = [turn] if isinstance(turn, Step) else turn
        messages += turn_of(api, *[(f"c{number + k}", step) for k, step in enumerate(steps, 1)])
        number += len(steps)
    return messages


def turn_of(api: str, *named: tuple[str, Step]) -> Messages:
    """The messages of one turn: these steps, made at once, under these call ids."""
    calls = [
        (name, step.tool, {"command": step.given} if isinstance(step.given, str) else step.given)
        for name, step in named
    ]
    results = [(name, _content(step), step.error) for name, step in named if step.output is not None]
    return [call_message(api, calls, "so"), *result_messages(api, results)]


def _given(step: Step) -> dict[str, Any]:
    return {"command": step.given} if isinstance(step.given, str) else step.given


def _content(step: Step) -> Any:
    output = f"Error: {step.output}" if step.error else step.output
    return [{"type": "text", "text": output}, *step.blocks] if step.blocks else output


def results(messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The text of each result, by call id."""
    parts = [part for message in normalise(messages) for part in message.parts]
    return {part.call_id or "": part.text for part in parts if part.kind is Kind.RESULT}


def arguments(messages: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any] | None]:
    """The arguments of each call, by call id."""
    parts = [part for message in normalise(messages) for part in message.parts]
    return {part.call_id or "": part.arguments for part in parts if part.kind is Kind.CALL}


def texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    return [part.text for message in normalise(messages) for part in message.parts]


# ------------------------------------------------------------ in every shape that harnesses keep


def message_list(shape: str, turns: Iterable[tuple[str, str, str]]) -> list[Raw]:
    """The messages of a conversation from (call id, command, output); a turn without a command is what a user says."""
    out = [said(shape, "Please fix the tax")]
    for call_id, command, output in turns:
        out += _turn_in_shape(shape, call_id, command, output) if command else [said(shape, output)]
    return out


def server_compaction(shape: str) -> Raw:
    """The API compacted what stands before this, and drops it."""
    if shape in ("openai", "plain") or shape.startswith("gemini"):
        return {"type": "compaction", "encrypted_content": "…"}
    return {"role": "assistant", "content": [{"type": "compaction", "content": "a summary"}]}


def _turn_in_shape(shape: str, call_id: str, command: str, output: str) -> list[Raw]:
    if shape == "plain":  # as mini-swe-agent does it: no ids
        end = "" if output.endswith("\n") else "\n"
        said = {"role": "assistant", "content": f"THOUGHT: I look.\n\n```bash\n{command}\n```"}
        return [said, user(f"<returncode>0</returncode>\n<output>\n{output}{end}</output>")]
    call = (call_id, "bash", {"command": command})
    if shape in APIS or shape == "gemini without ids":
        words = None if shape == "openai" else "I look."
        return [call_message(shape, [call], words), *result_messages(shape, [(call_id, output, False)])]
    # as SWE-agent and others do it: words of the harness around the output, results as lists of blocks
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    (result,) = result_messages(
        "anthropic", [(call_id, [{"type": "text", "text": WORDS_IN_FRONT + output}, image], False)]
    )
    result["content"].append({"type": "text", "text": "Go on."})
    return [call_message("anthropic", [call], "I look."), result]


# ------------------------------------------------------------ ids that several calls have


def id_of(call: str) -> str:
    """The id that the host has for a call. `call_0#7` is the seventh call, of a model that counts from 0."""
    return call.partition("#")[0]


def as_host_knows_it(reply: Reply, turns: Iterable[str], call: str = "") -> Reply:
    """The reply by its call's own name, and its sources by theirs: an id is that of the newest call."""
    newest = {id_of(known): known for known in turns}
    segments = [
        replace(one, sources=tuple(newest.get(name, name) for name in one.sources)) if isinstance(one, Omitted) else one
        for one in reply.segments
    ]
    return replace(reply, call_id=call or reply.call_id, segments=tuple(segments))


def changed_results(
    before: Sequence[Any], after: Sequence[Any], turns: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """The results that are not as they were, by call. `turns`: those of the list, in order."""
    lists = [[p for m in normalise(each) for p in m.parts if p.kind is Kind.RESULT] for each in (before, after)]
    calls = [call for call, (said, _) in turns.items() if said]
    return {call: new.text for call, old, new in zip(calls, *lists, strict=True) if new.text != old.text}


# ------------------------------------------------------------ from a script


def scripted(api: str, script: str) -> Messages:
    """The messages of a script, one for each of its words.

    `scripted(api, "u t1,2 r1 r2 s")`: the user speaks; the model thinks and makes the calls 1 and 2 at once; their
    results; the model says something. `c1` calls without thinking, `e1` is a result that is an error.
    """
    return [_word(api, word[0], word[1:].split(","), f"{word} at {at}") for at, word in enumerate(script.split())]


def _word(api: str, what: str, ids: list[str], words: str) -> Raw:
    if what in "re":
        return result_messages(api, [(ids[0], words, what == "e")])[0]
    if what in "us":
        return said(api, words, "user" if what == "u" else "assistant")
    return call_message(api, [(call_id, "bash", {"command": "ls"}) for call_id in ids], thinks=what == "t")


# ------------------------------------------------------------ what an API demands


_BLOCKS = (
    ("call", "tool_use", "id"),
    ("result", "tool_result", "tool_use_id"),
    ("call", "toolUse", "toolUseId"),
    ("result", "toolResult", "toolUseId"),
    ("call", "functionCall", "id"),
    ("result", "functionResponse", "id"),
)


def calls_and_results(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """("call" or "result", its id) for each, in order: read from the raw messages, independent of `normalise`."""
    for message in messages:
        for call in message.get("tool_calls", ()):
            yield "call", call["id"]
        if message["role"] == "tool":
            yield "result", message["tool_call_id"]
        blocks = message["parts"] if "parts" in message else message["content"]
        for block in blocks if isinstance(blocks, list) else ():
            for what, name, id_key in _BLOCKS:
                if block.get("type") == name:
                    yield what, block[id_key]
                elif name in block:
                    yield what, block[name][id_key]


def is_sendable(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Has every call exactly one result after it, and every result a call, as both APIs demand?"""
    waiting: list[str] = []
    for kind, call_id in calls_and_results(messages):
        if kind == "call":
            waiting.append(call_id)
        elif call_id in waiting:
            waiting.remove(call_id)
        else:
            return False
    return not waiting


def roles_alternate(messages: Sequence[Mapping[str, Any]]) -> bool:
    roles = [message["role"] for message in messages]
    return all(a != b for a, b in pairwise(roles))
