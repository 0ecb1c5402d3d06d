"""Recorded conversations are misread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall
from readcache.transcripts.formats import recordings_in
from readcache.transcripts.records import Damage, HistoryRemoval, RequestSent
from tests.laws.mutants.guarded.patching import each, gives, guarded, instead


def _items(kind: type, change: Callable[[Any], Any]) -> Callable[[Any], Iterator[Any]]:
    """Return a function that changes each item of this kind in recordings. `change` returns None to drop an item."""

    def changed(recording: Any) -> Any:
        items = (change(item) if isinstance(item, kind) else item for item in recording.items)
        return replace(recording, items=tuple(item for item in items if item is not None))

    return each(changed)


def _without_last_call(recording: Any) -> Any:
    last = max(at for at, item in enumerate(recording.items) if isinstance(item, ToolCall))
    return replace(recording, items=(*recording.items[:last], *recording.items[last + 1 :]))


def _went_well(call: ToolCall) -> ToolCall:
    return replace(call, exit_code=0) if isinstance(call.asked, AskedCommand) else call


def _reads_late(call: ToolCall) -> ToolCall:
    asked = call.asked
    return replace(call, asked=replace(asked, start=asked.start + 1)) if isinstance(asked, AskedRead) else call


def _in_root(call: ToolCall) -> ToolCall:
    return replace(call, cwd="/") if isinstance(call.asked, AskedCommand) else call


def _uncached(request: RequestSent) -> RequestSent:
    return replace(request, fresh=request.fresh + request.cache_read, cache_read=0)


TRANSCRIPTS = (
    guarded(
        "the last call of a recording is missing",
        gives(recordings_in, each(_without_last_call)),
        "replay/test_loaders.py::test_a_transcript_is_known_by_its_content_and_its_calls_are_understood",
    ),
    guarded(
        "a sub-agent's calls are the main agent's",
        gives(recordings_in, each(lambda r: replace(r, reader="main"))),
        "replay/test_claude_code_chain.py::test_side_chains_are_readers_of_their_own",
    ),
    guarded(
        "compactions and rewinds are not recorded",
        gives(recordings_in, _items(HistoryRemoval, lambda _: None)),
        "replay/test_claude_code_chain.py::test_who_goes_back_takes_what_came_after_out_of_the_conversation",
    ),
    guarded(
        "a compaction keeps nothing",
        gives(recordings_in, _items(HistoryRemoval, lambda c: replace(c, kept=frozenset()))),
        "replay/test_claude_code_chain.py::test_a_compaction_takes_all_but_what_it_says_it_kept",
        "replay/test_other_hosts.py::test_pi_has_a_tree_too_and_names_the_first_entry_that_a_compaction_kept",
    ),
    guarded(
        "cached tokens are billed as new",
        gives(recordings_in, _items(RequestSent, _uncached)),
        "replay/test_other_hosts.py::test_usage_fields_are_those_of_each_provider",
    ),
    guarded(
        "every command went well",
        gives(recordings_in, _items(ToolCall, _went_well)),
        "replay/test_other_hosts.py::test_codex_tells_the_status_in_front_of_an_output",
        "replay/test_other_hosts.py::test_gemini_tells_the_status_behind_an_output",
    ),
    guarded(
        "every command ran in the root directory",
        gives(recordings_in, _items(ToolCall, _in_root)),
        "replay/test_other_hosts.py::test_codex_tells_the_status_in_front_of_an_output",
    ),
    guarded(
        "calls in parallel are calls one after the other",
        gives(recordings_in, _items(ToolCall, lambda c: replace(c, batch=""))),
        "replay/test_claude_code_chain.py::test_calls_made_at_once_stay_visible_though_the_chain_passes_one_result_alone",
    ),
    guarded(
        "a recorded edit writes no file",
        gives(recordings_in, _items(ToolCall, lambda c: replace(c, writes=()))),
        "replay/test_loaders.py::test_a_transcript_is_known_by_its_content_and_its_calls_are_understood",
    ),
    guarded(
        "an output that the host truncated counts as whole",
        gives(recordings_in, _items(ToolCall, lambda c: replace(c, complete=True))),
        "replay/test_other_hosts.py::test_an_output_that_openhands_cut_is_cut_for_its_transcript_as_for_its_adapter",
    ),
    guarded(
        "results have no times",
        gives(recordings_in, _items(ToolCall, lambda c: replace(c, at=None))),
        "replay/test_loaders.py::test_results_have_the_times_of_the_transcript_in_order",
    ),
    guarded(
        "a conversation is not known by its first call",
        gives(recordings_in, each(lambda r: replace(r, first_call=""))),
        "replay/test_replay_command.py::test_copies_of_a_conversation_count_once_at_their_longest",
    ),
    guarded(
        "a conversation has no beginning in time",
        gives(recordings_in, each(lambda r: replace(r, since=None))),
        "replay/test_replay_command.py::test_times_are_those_of_the_transcript_where_it_has_some",
    ),
    guarded(
        "a conversation names no model",
        gives(recordings_in, each(lambda r: replace(r, model=""))),
        "replay/test_prices.py::test_the_transcripts_name_their_models",
    ),
    guarded(
        "files that the host restored are not seen",
        gives(recordings_in, _items(HistoryRemoval, lambda c: replace(c, restored=()))),
        "replay/test_claude_code_chain.py::test_files_that_the_host_showed_again_are_visible_and_no_calls",
    ),
    guarded(
        "an edit does not tell the lines it replaced",
        gives(recordings_in, _items(ToolCall, lambda c: replace(c, replaced=""))),
        "replay/test_loaders.py::test_an_edit_tells_the_lines_that_the_agent_had_to_know",
    ),
    guarded(
        "what the agent said in a call is not recorded",
        gives(recordings_in, _items(ToolCall, lambda c: replace(c, said=""))),
        "replay/test_replay_command.py::test_every_kind_of_repetition_is_saved",
        "replay/test_other_hosts.py::test_openhands_0_has_actions_and_observations",
    ),
    guarded(
        "a recorded read begins one line late",
        gives(recordings_in, _items(ToolCall, _reads_late)),
        "replay/test_other_hosts.py::test_swe_agents_window_shows_lines_of_the_file_that_it_names",
    ),
    guarded(
        "damaged lines are skipped without a word",
        instead(Damage.add, lambda *_: None),
        "replay/test_loaders.py::test_a_damaged_line_costs_that_line_and_is_counted",
    ),
)
