"""Conversations from what was called and answered, in the shape of an API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from readcache.context import Kind, normalise

SHAPES = ("openai", "anthropic")
LINES = [f"line number {n} says something that no other line says" for n in range(1, 1001)]


def text(first: int = 1, last: int = 40, of: str = "line") -> str:
    """Lines of a file, each unlike all others."""
    return "".join(line.replace("line", of, 1) + "\n" for line in LINES[first - 1 : last])


def numbered(first: int, last: int, of: str = "line") -> str:
    """The same as `cat -n` prints them."""
    lines = text(first, last, of).splitlines()
    return "".join(f"{n:6}\t{line}\n" for n, line in enumerate(lines, first))


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


def chat(shape: str, *turns: Step | Sequence[Step] | str) -> list[Mapping[str, Any]]:
    """A system message, the task, and these turns: a step, several made at once, or what the user says. A step without
    output waits for its result. Calls are c1, c2, …"""
    messages: list[Mapping[str, Any]] = [{"role": "user", "content": "fix the bug"}]
    if shape == "openai":
        messages.insert(0, {"role": "system", "content": "you are an agent"})
    number = 0
    for turn in turns:
        if isinstance(turn, str):
            messages.append({"role": "user", "content": turn})
            continue
        steps = [turn] if isinstance(turn, Step) else turn
        messages += turn_of(shape, *[(f"c{number + k}", step) for k, step in enumerate(steps, 1)])
        number += len(steps)
    return messages


def turn_of(shape: str, *named: tuple[str, Step]) -> list[Mapping[str, Any]]:
    """The messages of one turn: these steps, made at once, under these call ids."""
    return (_openai if shape == "openai" else _anthropic)(list(named))


def _given(step: Step) -> dict[str, Any]:
    return {"command": step.given} if isinstance(step.given, str) else step.given


def _openai(steps: list[tuple[str, Step]]) -> list[Mapping[str, Any]]:
    calls = [
        {"id": id, "type": "function", "function": {"name": step.tool, "arguments": json.dumps(_given(step))}}
        for id, step in steps
    ]
    results = [_openai_result(id, step) for id, step in steps if step.output is not None]
    return [{"role": "assistant", "content": "so", "tool_calls": calls}, *results]


def _openai_result(id: str, step: Step) -> Mapping[str, Any]:
    output = f"Error: {step.output}" if step.error else step.output
    content = [{"type": "text", "text": output}, *step.blocks] if step.blocks else output
    return {"role": "tool", "tool_call_id": id, "content": content}


def _anthropic(steps: list[tuple[str, Step]]) -> list[Mapping[str, Any]]:
    calls = [{"type": "tool_use", "id": id, "name": step.tool, "input": _given(step)} for id, step in steps]
    results = [_anthropic_result(id, step) for id, step in steps if step.output is not None]
    answer = {"role": "assistant", "content": [{"type": "text", "text": "so"}, *calls]}
    return [answer, {"role": "user", "content": results}] if results else [answer]


def _anthropic_result(id: str, step: Step) -> dict[str, Any]:
    output = f"Error: {step.output}" if step.error else step.output
    content = [{"type": "text", "text": output}, *step.blocks] if step.blocks else output
    return {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": step.error}


def results(messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The text of each result, by call id."""
    parts = [part for message in normalise(messages) for part in message.parts]
    return {part.call_id or "": part.text for part in parts if part.kind is Kind.RESULT}


def arguments(messages: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any] | None]:
    """The arguments of each call, by call id."""
    parts = [part for message in normalise(messages) for part in message.parts]
    return {part.call_id or "": part.arguments for part in parts if part.kind is Kind.CALL}
