"""Message lists are misread, or changed in another way than was meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from readcache.context import api, clearing, compaction, notes, split, summary
from readcache.context.duplicates import KeptResults
from readcache.context.edits import edits
from readcache.context.file_map import file_map
from readcache.context.formed import sendable, well_formed
from readcache.context.outdated import LaterReads, first_that_pays
from readcache.context.prompt import known_lines, summary_in
from readcache.context.pruner import mend_list, prune, prune_messages
from readcache.context.tool_calls import failed_and_wrote_nothing, overwritten
from readcache.messages import editing, messages, structure, turns
from readcache.messages.messages import Kind, Message, Part
from readcache.messages.tools import lines_read, tool_use
from readcache.messages.transcript import serialize_transcript
from tests.mutants.guarded.patching import gives, guarded, instead, takes


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
        "hosts_core/test_judged_lists.py::test_what_an_error_says_is_no_content",
    ),
    guarded(
        "the arguments of a call are read as JSON",
        gives(messages.normalise_one, _parts(_as_json)),
        "context/test_messages.py::test_calls_have_their_arguments_decoded_so_that_a_heredoc_stands_verbatim",
    ),
    guarded(
        "what the provider clears counts as sent",
        instead(editing.without_cleared, lambda messages, *_, **__: messages),
        "sync/test_sync.py::test_a_result_that_the_provider_cleared_is_not_in_view",
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
        "messages/test_tools.py::test_an_edit_is_told_by_all",
    ),
    guarded(
        "a read shows lines from the next one on",
        gives(lines_read, lambda lines: lines._replace(first=lines.first + 1)),
        "hosts_core/test_tool_results.py::test_the_lines_that_were_asked_for_are_understood",
    ),
    guarded(
        "a list may be cut anywhere",
        instead(structure.cut_points, lambda messages: list(range(len(messages) + 1))),
        "context/test_compactor.py::test_a_thinking_loop_is_never_cut",
    ),
    guarded(
        "a broken list is not repaired",
        instead(structure.repair, lambda messages: messages),
        "context/test_ready_and_ask.py::test_a_call_without_its_result_is_taken_out",
    ),
    guarded(
        "one turn fewer is kept",
        takes(turns.last_turns, lambda count, **_: {"count": count - 1}),
        "context/test_prune.py::test_the_last_turns_are_untouched",
    ),
    guarded(
        "a transcript does not tell errors",
        gives(serialize_transcript, lambda text: text.replace("[tool_output error]", "[tool_output]")),
        "context/test_transcript.py::test_an_error_says_that_it_is_one",
    ),
)
CONTEXT = (
    guarded(
        "the session is not told of a new list",
        instead(mend_list, lambda _, messages: list(messages)),
        "context/test_prune_with_a_session.py::test_what_was_pruned_is_shown_again_when_it_is_asked_for",
        "context/test_clearing.py::test_what_was_cleared_is_shown_in_full_when_it_is_asked_for",
    ),
    guarded(
        "a result is pruned though a marker names it",
        takes(prune_messages, lambda rules, **_: {"rules": replace(rules, pinned=frozenset())}),
        "context/test_prune_with_a_session.py::test_a_result_that_a_marker_names_is_not_pruned_as_a_duplicate_or_as_too_long",
    ),
    guarded(
        "roles do not alternate in what is sent",
        instead(sendable, lambda messages, _=(): list(messages)),
        "context/test_compactor.py::test_roles_alternate_where_anthropic_needs_it",
    ),
    guarded(
        "the prompt cache is broken for little",
        gives(first_that_pays, lambda _: 0),
        "context/test_outdated_reads.py::test_a_prompt_cache_is_not_broken_for_little",
    ),
    guarded(
        "the summary has the model's reasoning in it",
        instead(summary_in, lambda response: response),
        "context/test_transcript.py::test_the_summary_is_taken_without_the_reasoning",
    ),
    guarded(
        "the last turn is pruned",
        takes(prune, lambda **_: {"protect_last_turns": 0}),
        "context/test_prune.py::test_the_last_turns_are_untouched",
    ),
    guarded(
        "a result is dropped though nothing holds its bytes",
        gives(KeptResults.holds, lambda _: True),
        "context/test_prune.py::test_reads_of_other_parts_of_one_file_all_stay",
    ),
    guarded(
        "a read is outdated though nothing shows its lines",
        gives(LaterReads.outdate, lambda _: True),
        "context/test_outdated_reads.py::test_a_read_that_is_itself_cut_or_of_another_file_shows_nothing_again",
    ),
    guarded(
        "an edit overwrites the whole file",
        instead(overwritten, lambda call: frozenset(filter(None, [call.use.path]))),
        "context/test_prune.py::test_an_edit_supersedes_nothing",
    ),
    guarded(
        "a failed command is believed to have written nothing",
        gives(failed_and_wrote_nothing, lambda _: True),
        "context/test_prune.py::test_a_failed_command_that_may_have_written_a_file_keeps_its_text",
    ),
    guarded(
        "results are cleared further than asked for",
        takes(clearing.clear, lambda **_: {"down_to": 0}),
        "context/test_clearing.py::test_the_oldest_results_go_down_to_the_second_mark",
    ),
    guarded(
        "results are cleared before they have to be",
        takes(clearing.clear, lambda down_to, **_: {"above": down_to}),
        "context/test_clearing.py::test_up_to_the_first_mark_nothing_is_cleared",
    ),
    guarded(
        "a compaction keeps no turn",
        takes(split.split_turns, lambda **_: {"keep_turns": 0}),
        "context/test_compactor.py::test_the_last_turns_stay_and_the_rest_is_summarised",
    ),
    guarded(
        "an overflow is an error like any other",
        gives(api.is_overflow, lambda _: False),
        "context/test_compactor.py::test_providers_say_overflow_in_their_ways",
    ),
    guarded(
        "the usage of an answer is not read",
        gives(api.prompt_tokens, lambda _: None),
        "context/test_ready_and_ask.py::test_the_usage_of_every_api_is_understood",
        "context/test_ready_and_ask.py::test_tokens_that_only_the_api_counts_count_at_the_next_request",
    ),
    guarded(
        "half of the tokens are counted",
        gives(compaction.count_tokens, lambda count: count // 2),
        "context/test_compactor.py::test_one_compaction_gets_below_the_trigger_where_that_can_be_had",
    ),
    guarded(
        "invented numbers of a summary are not doubted",
        gives(summary.doubts, lambda _: []),
        "context/test_compactor.py::test_numbers_that_nobody_showed_are_named",
    ),
    guarded(
        "a summary says nothing of the files",
        gives(known_lines, lambda _: []),
        "context/test_compactor.py::test_the_file_map_stands_below_the_summary",
    ),
    guarded(
        "the file map does not tell what was written",
        gives(file_map, lambda lines: [line.replace("; written", "") for line in lines]),
        "context/test_transcript.py::test_the_file_map_is_of_this_context_and_knows_every_writer",
    ),
    guarded(
        "edits are not told",
        gives(edits, lambda _: []),
        "context/test_known_to_the_log.py::test_edits_are_short_diffs_and_outlive_a_second_compaction",
    ),
    guarded(
        "a torn list is sent to the API",
        instead(well_formed, lambda messages: messages),
        "context/test_never_stuck.py::test_the_results_of_a_batch_under_way_may_still_come",
    ),
    guarded(
        "the end of a long text is cut off",
        instead(notes.clip_text, lambda text, most, _="": text[:most]),
        "context/test_prune.py::test_a_long_result_keeps_its_head_and_tail",
    ),
)
