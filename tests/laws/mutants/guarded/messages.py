"""Message lists are misread, or changed in another way than was meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from readcache.context.summary import serialize_transcript
from readcache.core.messages import editing, messages, structure
from readcache.core.messages.messages import Kind, Message, Part
from readcache.core.messages.tools import lines_read, tool_use
from tests.laws.mutants.guarded.patching import gives, guarded, instead, takes


def _parts(change: Callable[[Part], Part]) -> Callable[[Message], Message]:
    return lambda message: replace(message, parts=tuple(map(change, message.parts)))


def _of(kind: Kind, **changes: Any) -> Callable[[Message], Message]:
    return _parts(lambda part: replace(part, **changes) if part.kind is kind else part)


def _as_json(part: Part) -> Part:
    return replace(part, text=json.dumps(part.arguments)) if part.arguments is not None else part


def _no_write(use: Any) -> Any:
    return use._replace(kind="other") if use.kind == "write" else use


MESSAGES = (
    guarded(
        "the parts of a message come in another order",
        gives(messages.normalise_one, lambda m: replace(m, parts=m.parts[::-1])),
        "context/test_messages.py::test_blocks_of_an_assistant",
    ),
    guarded(
        "a list's messages come in another order",
        gives(messages.normalise, lambda m: m[::-1]),
        "context/test_transcript.py::test_a_result_is_tool_output",
    ),
    guarded(
        "a result does not name its call",
        gives(messages.normalise_one, _of(Kind.RESULT, call_id=None)),
        "context/test_messages.py::test_a_result_names_its_call",
    ),
    guarded(
        "a result that is an error looks like any other",
        gives(messages.normalise_one, _of(Kind.RESULT, is_error=False)),
        "context/test_transcript.py::test_an_error_says_that_it_is_one",
        "hosts/test_judged_lists.py::test_what_an_error_says_is_no_content",
    ),
    guarded(
        "the arguments of a call are read as JSON",
        gives(messages.normalise_one, _parts(_as_json)),
        "context/test_messages.py::test_calls_have_their_arguments_decoded_so_that_a_heredoc_stands_verbatim",
    ),
    guarded(
        "what the provider clears counts as sent",
        instead(editing.without_cleared, lambda messages, *_, **__: messages),
        "core/sync/test_sync.py::test_a_result_that_the_provider_cleared_is_not_in_view",
    ),
    guarded(
        "results without ids take each other's text",
        takes(editing.with_result_text, lambda **_: {"nth": 0}),
        "context/test_editing.py::test_gemini_may_leave_ids_out_and_calls_made_at_once_are_known_by_their_order",
    ),
    guarded(
        "a new text of a result replaces its images",
        instead(editing.with_content_text, lambda _, text, **__: text),
        "context/test_editing.py::test_a_result_gets_its_new_text_in_its_own_shape",
    ),
    guarded(
        "images stay where they should be a text",
        instead(editing.without_images, lambda message, _: message),
        "context/test_editing.py::test_images_give_way_to_a_text_wherever_they_are",
    ),
    guarded(
        "new arguments of a call are not written",
        instead(editing.with_arguments, lambda message, *_, **__: message),
        "context/test_editing.py::test_a_call_gets_its_new_arguments_in_its_own_shape",
    ),
    guarded(
        "a later change of a message reaches what was kept of it",
        instead(messages.plain, lambda value: value),
        "context/test_compactor_list.py::test_what_a_harness_changes_in_place_is_read_anew",
    ),
    guarded(
        "a new message has the same shape for every API",
        instead(editing.user_message, lambda text, _: messages.normalise_one({"role": "user", "content": text})),
        "context/test_compactor.py::test_what_a_compaction_adds_has_the_shape_of_the_other_messages",
    ),
    guarded(
        "results come in another order than their calls",
        gives(structure.answered, lambda pairs: iter(list(pairs)[::-1])),
        "context/test_prune.py::test_of_equal_results_the_newest_stays",
    ),
    guarded(
        "a tool that writes is any tool",
        gives(tool_use, _no_write),
        "core/messages/test_tools.py::test_an_edit_is_told_by_all",
    ),
    guarded(
        "a read shows lines from the next one on",
        gives(lines_read, lambda lines: lines._replace(first=lines.first + 1)),
        "hosts/test_tool_results.py::test_the_lines_that_were_asked_for_are_understood",
    ),
    guarded(
        "a list may be cut anywhere",
        instead(structure.cut_points, lambda messages: list(range(len(messages) + 1))),
        "context/test_compactor.py::test_a_thinking_loop_is_never_cut",
    ),
    guarded(
        "a broken list is not repaired",
        instead(structure.repair_each, lambda messages: [message.raw for message in messages]),
        "context/test_ready_and_ask.py::test_a_call_without_its_result_is_taken_out",
    ),
    guarded(
        "one turn fewer is kept",
        takes(structure.last_turns, lambda count, **_: {"count": count - 1}),
        "context/test_prune.py::test_the_last_turns_are_untouched",
    ),
    guarded(
        "a transcript does not tell errors",
        gives(serialize_transcript, lambda text: text.replace("[tool_output error]", "[tool_output]")),
        "context/test_transcript.py::test_an_error_says_that_it_is_one",
    ),
)
