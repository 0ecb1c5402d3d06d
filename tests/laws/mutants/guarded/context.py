"""Message lists are pruned, cleared and compacted in another way than is promised."""

from __future__ import annotations

from dataclasses import replace

from readcache.context import clearing, compaction, formed, notes, split, summary
from readcache.context.file_map import edits, file_map
from readcache.context.formed import repaired_each, sendable
from readcache.context.pruner import prune, prune_messages, repair_list
from readcache.context.summary import known_lines, summary_in
from readcache.context.superseded import KeptResults, LaterReads, first_that_pays
from readcache.context.tool_calls import failed_and_wrote_nothing, overwritten
from tests.laws.mutants.guarded.patching import gives, guarded, instead, takes

CONTEXT = (
    guarded(
        "the session is not told of a new list",
        instead(repair_list, lambda _, messages: list(messages)),
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
        gives(KeptResults.contains, lambda _: True),
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
        gives(formed.is_overflow, lambda _: False),
        "context/test_compactor.py::test_providers_say_overflow_in_their_ways",
    ),
    guarded(
        "the usage of an answer is not read",
        gives(formed.prompt_tokens, lambda _: None),
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
        instead(repaired_each, lambda messages, **_: list(messages)),
        "context/test_never_stuck.py::test_the_results_of_a_batch_under_way_may_still_come",
    ),
    guarded(
        "the end of a long text is cut off",
        instead(notes.clip_text, lambda text, most, *_: text[:most]),
        "context/test_prune.py::test_a_long_result_keeps_its_head_and_tail",
    ),
)
