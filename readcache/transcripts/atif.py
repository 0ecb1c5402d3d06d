"""ATIF: one JSON document for each trajectory, which Harbor writes for the agents that it runs.

Based on the format's RFC, versions 1.0 to 1.7: harborframework.com/docs/trajectory-format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from readcache.transcripts.records import Content, Form, Recording, RequestSent, Turns
from readcache.transcripts.values import block_text, count_in, list_in, object_in


def is_atif(row: Mapping[str, Any]) -> bool:
    """Return True for a trajectory."""
    return str(row.get("schema_version")).startswith("ATIF-") and isinstance(row.get("steps"), list)


def load_atif(content: Content) -> Iterator[Recording]:
    """Yield a recording of each trajectory, and one for each sub-agent's trajectory inside it."""
    for _, row in content.objects():
        yield _recording(row, content.path, "main")
        for number, inner in enumerate(map(object_in, list_in(row.get("subagent_trajectories")))):
            yield _recording(inner, content.path, str(inner.get("trajectory_id") or f"sub-agent {number}"))


FORM = Form("atif", is_atif, load_atif)


def _recording(row: Mapping[str, Any], path: str, reader: str) -> Recording:
    agent, turns = object_in(row.get("agent")), Turns()
    cwd = str(next(iter(list_in(object_in(agent.get("extra")).get("cwds"))), "/"))
    for step in map(object_in, list_in(row.get("steps"))):
        turns.at(step.get("timestamp"))
        turns.by(step.get("model_name"))
        chars = len(block_text(step.get("message")) or "")
        if step.get("source") == "agent":
            turns.answer(chars + len(str(step.get("reasoning_content") or "")))
            turns.pay(_usage(step.get("metrics")))
        else:
            turns.type(chars)
        for call in map(object_in, list_in(step.get("tool_calls"))):
            given, name = object_in(call.get("arguments")), str(call.get("function_name"))
            turns.tool(str(call.get("tool_call_id")), name, given, cwd)
        for result in map(object_in, list_in(object_in(step.get("observation")).get("results"))):
            waiting = turns.waiting
            alone = waiting[0] if len(waiting) == 1 else ""  # a result need not name its call
            call_id, output = str(result.get("source_call_id") or alone), block_text(result.get("content")) or ""
            turns.result(call_id, output, exit_code=None)
    turns.by(agent.get("model_name"))
    name = str(row.get("session_id") or row.get("trajectory_id") or path)
    return turns.recording(name, "atif", agent=str(agent.get("name") or "atif"), reader=reader)


def _usage(metrics: object) -> RequestSent:
    """Return the billed tokens of a request."""
    # `prompt_tokens` includes the tokens that were read from a cache or written to one.
    read, written = count_in(metrics, "cached_tokens"), count_in(metrics, "extra", "cache_creation_input_tokens")
    fresh = max(0, count_in(metrics, "prompt_tokens") - read - written)
    return RequestSent(fresh, written, cache_read=read, output=count_in(metrics, "completion_tokens"))
