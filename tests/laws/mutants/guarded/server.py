"""A server answers from another log, allows too much, or leaves out a part of its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from readcache.serve.fields import INTERNAL_ERROR, checked
from readcache.serve.logs import OpenLogs
from readcache.serve.mcp.files import allowed_path
from readcache.serve.mcp.readers import READER, McpReaders
from readcache.serve.protocol import Protocol, parse
from tests.laws.mutants.guarded.patching import gives, guarded, instead, takes


def _without(name: str) -> Callable[..., dict[str, Any]]:
    def without(request: Any, **_: Any) -> dict[str, Any]:
        params = {key: value for key, value in request["params"].items() if key != name}
        return {"request": {**request, "params": params}}

    return without


def _of_one_conversation(request: Any, **_: Any) -> dict[str, Any]:
    return {"request": {**request, "params": {**request["params"], "conversation": "one"}}}


def _unchanged(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "result": {"changed": False}} if "changed" in answer["result"] else answer


SERVER = (
    guarded(
        "a server answers a sub-agent from the main agent's log",
        takes(Protocol.answer, _without("agent")),
        "hosts/test_protocol.py::test_conversations_and_readers_see_nothing_of_each_other",
    ),
    guarded(
        "a server answers from another conversation",
        takes(Protocol.answer, _of_one_conversation),
        "hosts/test_protocol.py::test_conversations_and_readers_see_nothing_of_each_other",
    ),
    guarded(
        "an answer does not name its request",
        gives(Protocol.answer, lambda answer: {**answer, "id": None}),
        "hosts/test_protocol.py::test_hello_gives_versions_methods_and_limits",
    ),
    guarded(
        "a server runs commands though nobody allowed it",
        takes(Protocol.__init__, lambda **_: {"may_run": True}),
        "hosts/test_protocol.py::test_commands_and_files_of_this_machine_are_offered_only_where_that_is_allowed",
    ),
    guarded(
        "what went wrong is a bug, whatever it is",
        gives(Protocol.answer, lambda a: {**a, "error": {**a["error"], "code": INTERNAL_ERROR}}),
        "hosts/test_protocol.py::test_a_line_that_is_no_request_is_answered",
    ),
    guarded(
        "a server does not tell what it omitted",
        gives(Protocol.answer, lambda a: {**a, "result": {**a["result"], "omitted": []}}),
        "hosts/test_protocol.py::test_what_is_visible_is_left_out_and_accounted_for",
    ),
    guarded(
        "a server does not send a list that it changed",
        gives(Protocol.answer, _unchanged),
        "hosts/test_protocol.py::test_messages_come_back_mended_or_not_at_all",
    ),
    guarded(
        "a server takes what is not JSON",
        instead(parse, lambda line: json.loads(line)),
        "hosts/test_protocol.py::test_a_line_that_is_no_request_is_answered",
    ),
    guarded(
        "a server ignores fields that it does not know",
        instead(
            checked, lambda _, given, schema, *__: {name: given[name] for name in given if name in schema["properties"]}
        ),
        "hosts/test_protocol.py::test_what_is_wrong_with_a_field_is_said_in_words",
    ),
    guarded(
        "all readers of an MCP server are one",
        takes(McpReaders.session_of, lambda **_: {"meta": {READER: "one"}}),
        "hosts/test_mcp_tools.py::test_each_reader_that_a_client_names_is_answered_by_what_it_was_shown_itself",
    ),
    guarded(
        "a sub-agent's call is judged by the main agent's log",
        takes(OpenLogs.use, lambda **_: {"agent": "main"}),
        "serve/test_held_logs.py::test_each_reader_is_answered_from_its_own_log",
    ),
    guarded(
        "a conversation's call is judged by another one's log",
        takes(OpenLogs.use, lambda **_: {"session": "s"}),
        "serve/test_held_logs.py::test_each_reader_is_answered_from_its_own_log",
    ),
    guarded(
        "an MCP client reads files outside of its directories",
        takes(allowed_path, lambda **_: {"roots": ["/"]}),
        "hosts/test_mcp_tools.py::test_paths_are_of_the_directory_or_of_the_first_root",
    ),
)
