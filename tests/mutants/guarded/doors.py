"""Transcripts are misread, and an adapter or a server answers for another reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from readcache.hosts.claude_code.proof import TranscriptProof
from readcache.hosts.hooks import HookSessions
from readcache.hosts.judged_lists import JudgedLists, ListChanges, ListPart, entries
from readcache.hosts.left_out import put_back
from readcache.hosts.shell_directory import ShellDirectory
from readcache.hosts.tool_results import answer_tool, tool_kinds
from readcache.serve.fields import checked
from readcache.serve.logs import HeldLogs
from readcache.serve.mcp.files import allowed_path
from readcache.serve.mcp.readers import READER, McpReaders
from readcache.serve.protocol import Protocol, parse
from readcache.transcripts import codex
from readcache.transcripts.claude_code import Transcript
from readcache.transcripts.codex import Rollout
from readcache.transcripts.formats import recordings_in
from readcache.transcripts.gemini import chat_messages
from readcache.transcripts.records import AskedCommand, AskedRead, Damage, HistoryCut, RecordedCall, RequestSent
from tests.mutants.guarded.patching import after, each, gives, guarded, instead, takes


def _items(kind: type, change: Callable[[Any], Any]) -> Callable[[Any], Iterator[Any]]:
    """Each item of this kind in each recording is another one; None: it is missing."""

    def changed(recording: Any) -> Any:
        items = (change(item) if isinstance(item, kind) else item for item in recording.items)
        return replace(recording, items=tuple(item for item in items if item is not None))

    return each(changed)


def _without_last_call(recording: Any) -> Any:
    last = max(at for at, item in enumerate(recording.items) if isinstance(item, RecordedCall))
    return replace(recording, items=(*recording.items[:last], *recording.items[last + 1 :]))


def _went_well(call: RecordedCall) -> RecordedCall:
    return replace(call, asked=replace(call.asked, exit_code=0)) if isinstance(call.asked, AskedCommand) else call


def _reads_late(call: RecordedCall) -> RecordedCall:
    asked = call.asked
    return replace(call, asked=replace(asked, start=asked.start + 1)) if isinstance(asked, AskedRead) else call


def _in_root(call: RecordedCall) -> RecordedCall:
    return replace(call, asked=replace(call.asked, cwd="/")) if isinstance(call.asked, AskedCommand) else call


def _uncached(request: RequestSent) -> RequestSent:
    return replace(request, fresh=request.fresh + request.cache_read, cache_read=0)


def _in_a_batch_of_its_own(entry: ListPart) -> ListPart:
    return entry if entry.result is None else entry._replace(result=replace(entry.result, batch=entry.key))


def _without(name: str) -> Callable[..., dict[str, Any]]:
    return lambda request, **_: {"request": {key: value for key, value in request.items() if key != name}}


def _of_one_conversation(request: Any, **_: Any) -> dict[str, Any]:
    return {"request": {**request, "conversation": "one"}}


def _unchanged(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "result": {"changed": False}} if "changed" in answer["result"] else answer


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
        gives(recordings_in, _items(HistoryCut, lambda _: None)),
        "replay/test_claude_code_chain.py::test_who_goes_back_takes_what_came_after_out_of_the_conversation",
    ),
    guarded(
        "a compaction keeps nothing",
        gives(recordings_in, _items(HistoryCut, lambda c: replace(c, kept=frozenset()))),
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
        gives(recordings_in, _items(RecordedCall, _went_well)),
        "replay/test_other_hosts.py::test_codex_tells_the_status_in_front_of_an_output",
        "replay/test_other_hosts.py::test_gemini_tells_the_status_behind_an_output",
    ),
    guarded(
        "every command ran in the root directory",
        gives(recordings_in, _items(RecordedCall, _in_root)),
        "replay/test_other_hosts.py::test_codex_tells_the_status_in_front_of_an_output",
    ),
    guarded(
        "calls in parallel are calls one after the other",
        gives(recordings_in, _items(RecordedCall, lambda c: replace(c, batch=""))),
        "replay/test_claude_code_chain.py::test_calls_made_at_once_stay_visible_though_the_chain_passes_one_result_alone",
    ),
    guarded(
        "a recorded edit writes no file",
        gives(recordings_in, _items(RecordedCall, lambda c: replace(c, writes=()))),
        "replay/test_loaders.py::test_a_transcript_is_known_by_its_content_and_its_calls_are_understood",
    ),
    guarded(
        "an output that the host cut is whole",
        gives(recordings_in, _items(RecordedCall, lambda c: replace(c, complete=True))),
        "replay/test_other_hosts.py::test_an_output_that_openhands_cut_is_cut_for_its_transcript_as_for_its_adapter",
    ),
    guarded(
        "results have no times",
        gives(recordings_in, _items(RecordedCall, lambda c: replace(c, at=None))),
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
        gives(recordings_in, _items(HistoryCut, lambda c: replace(c, restored=()))),
        "replay/test_claude_code_chain.py::test_files_that_the_host_showed_again_are_visible_and_no_calls",
    ),
    guarded(
        "an edit does not tell the lines it replaced",
        gives(recordings_in, _items(RecordedCall, lambda c: replace(c, replaced=""))),
        "replay/test_loaders.py::test_an_edit_tells_the_lines_that_the_agent_had_to_know",
    ),
    guarded(
        "what the agent said in a call is not recorded",
        gives(recordings_in, _items(RecordedCall, lambda c: replace(c, said=""))),
        "replay/test_replay_command.py::test_every_kind_of_repetition_is_saved",
        "replay/test_other_hosts.py::test_openhands_0_has_actions_and_observations",
    ),
    guarded(
        "a recorded read begins one line late",
        gives(recordings_in, _items(RecordedCall, _reads_late)),
        "replay/test_other_hosts.py::test_swe_agents_window_shows_lines_of_the_file_that_it_names",
    ),
    guarded(
        "damaged lines are skipped without a word",
        instead(Damage.add, lambda *_: None),
        "replay/test_loaders.py::test_a_damaged_line_costs_that_line_and_is_counted",
    ),
)


def _without_lines(word: str) -> Callable[..., dict[str, Any]]:
    return lambda lines, **_: {"lines": [line for line in lines if word not in line]}


def _set(**values: Any) -> Callable[[Any], None]:
    def change(made: Any) -> None:
        for name, value in values.items():
            setattr(made, name, value)

    return change


ADAPTERS = (
    guarded(
        "two conversations of an adapter are one",
        takes(JudgedLists.judged, lambda **_: {"name": "one"}),
        "hosts_core/test_judged_lists.py::test_a_compaction_that_leaves_no_result_goes_on_in_a_named_conversation_only",
    ),
    guarded(
        "an adapter does not restore what a server compacted away",
        gives(JudgedLists.judged, lambda c: ListChanges(c.texts)),
        "hosts_core/test_judged_lists.py::test_behind_a_servers_compaction_stands_what_was_read",
    ),
    guarded(
        "an adapter changes nothing",
        gives(JudgedLists.judged, lambda c: ListChanges({}, c.sections)),
        "hosts_core/test_judged_lists.py::test_a_second_read_is_a_marker_and_the_hosts_list_stays",
    ),
    guarded(
        "calls in parallel point at each other",
        gives(entries, each(_in_a_batch_of_its_own)),
        "hosts_core/test_judged_lists.py::test_calls_made_at_once_do_not_point_at_each_other",
    ),
    guarded(
        "codex: a result in parts is judged",
        after(Rollout.__init__, _set(has_answer=False)),
        "hosts_core/test_codex.py::test_a_command_that_was_polled_from_the_background_is_not_touched_and_no_source",
    ),
    guarded(
        "codex: every command went well",
        after(Rollout.__init__, _set(exit_code=0)),
        "hosts_core/test_codex.py::test_a_second_read_is_answered_with_its_exit_status",
    ),
    guarded(
        "codex: calls in parallel point at each other",
        after(Rollout.__init__, _set(batch="")),
        "hosts_core/test_codex.py::test_calls_made_at_once_do_not_point_at_each_other",
    ),
    guarded(
        "codex: a compaction is not seen",
        takes(Rollout.__init__, _without_lines('"compacted"')),
        "hosts_core/test_codex.py::test_what_was_compacted_is_shown_again",
    ),
    guarded(
        "codex: going back is not seen",
        takes(Rollout.__init__, _without_lines('"thread_rolled_back"')),
        "hosts_core/test_codex.py::test_after_going_back_all_is_shown_again",
    ),
    guarded(
        "gemini: a compression is not seen",
        takes(chat_messages, _without_lines('"$set"')),
        "hosts_core/test_gemini.py::test_what_a_compression_took_is_shown_again",
    ),
    guarded(
        "claude-code: every omission counts as proven",
        gives(TranscriptProof.of, lambda _: True),
        "hosts_core/test_claude_code.py::test_what_was_cleared_is_no_source",
        "hosts_core/test_claude_code.py::test_lines_that_the_transcript_has_not_got_are_not_left_out",
    ),
    guarded(
        "claude-code: a server that clears results proves no less",
        gives(Transcript.may_cut, lambda _: False),
        "hosts_core/test_claude_plugin.py::test_where_results_may_have_been_cleared_everything_is_shown",
    ),
    guarded(
        "a shell that changed its directory is where it was",
        instead(ShellDirectory.ran, lambda *_, **__: None),
        "hosts_core/test_shell_directory.py::test_a_directory_that_is_there_is_followed",
    ),
    guarded(
        "the user's word on a tool is not heard",
        gives(tool_kinds, lambda _: {}),
        "hosts_core/test_judged_lists.py::test_a_tool_is_what_the_user_says_it_is",
    ),
    guarded(
        "codex: patches write nothing",
        after(Rollout.__init__, _set(written=[])),
        "hosts_core/test_codex.py::test_a_patch_is_a_write",
    ),
    guarded(
        "codex: an output that was cut is whole",
        gives(codex.is_cut, lambda _: False),
        "replay/test_other_hosts.py::test_an_output_that_codex_cut_is_cut_for_its_hook_and_for_its_transcript",
    ),
    guarded(
        "a sub-agent's hook answers as the main agent",
        takes(HookSessions.get, lambda **_: {"agent": "main"}),
        "hosts_core/test_codex.py::test_a_sub_agent_is_a_reader_of_its_own",
    ),
    guarded(
        "an answer that a host did not get counts as shown",
        takes(HookSessions.end, lambda **_: {"was_shown": True}),
        "hosts_core/test_codex.py::test_what_a_hook_could_not_tell_its_host_is_shown_again",
    ),
    guarded(
        "a tool's error is its result",
        takes(answer_tool, lambda result, **_: {"result": replace(result, is_error=False)}),
        "hosts_core/test_tool_results.py::test_a_write_that_failed_wrote_nothing",
        "hosts_core/test_tool_results.py::test_what_a_framework_says_of_a_command_that_failed_is_no_content_of_a_file",
    ),
    guarded(
        "omitted lines stay out of an argument",
        instead(put_back, lambda text, _: text),
        "hosts_core/test_left_out.py::test_put_back_gives_the_whole_output_again",
    ),
)
SERVER = (
    guarded(
        "a server answers a sub-agent from the main agent's log",
        takes(Protocol.answer, _without("agent")),
        "hosts_core/test_protocol.py::test_conversations_and_readers_see_nothing_of_each_other",
    ),
    guarded(
        "a server answers from another conversation",
        takes(Protocol.answer, _of_one_conversation),
        "hosts_core/test_protocol.py::test_conversations_and_readers_see_nothing_of_each_other",
    ),
    guarded(
        "an answer does not name its request",
        gives(Protocol.answer, lambda answer: {**answer, "id": None}),
        "hosts_core/test_protocol.py::test_hello_gives_versions_methods_and_limits",
    ),
    guarded(
        "a server runs commands though nobody allowed it",
        takes(Protocol.__init__, lambda **_: {"may_run": True}),
        "hosts_core/test_protocol.py::test_commands_and_files_of_this_machine_are_offered_only_where_that_is_allowed",
    ),
    guarded(
        "what went wrong is a bug, whatever it is",
        gives(Protocol.answer, lambda a: {**a, "error": {**a["error"], "code": "bug"}}),
        "hosts_core/test_protocol.py::test_a_line_that_is_no_request_is_answered",
    ),
    guarded(
        "a server does not tell what it omitted",
        gives(Protocol.answer, lambda a: {**a, "result": {**a["result"], "omitted": []}}),
        "hosts_core/test_protocol.py::test_what_is_visible_is_left_out_and_accounted_for",
    ),
    guarded(
        "a server does not send a list that it changed",
        gives(Protocol.answer, _unchanged),
        "hosts_core/test_protocol.py::test_messages_come_back_mended_or_not_at_all",
    ),
    guarded(
        "a server takes what is not JSON",
        instead(parse, lambda line: json.loads(line)),
        "hosts_core/test_protocol.py::test_a_line_that_is_no_request_is_answered",
    ),
    guarded(
        "a server ignores fields that it does not know",
        instead(checked, lambda _, given, fields, __: {name: given[name] for name in given if name in fields}),
        "hosts_core/test_protocol.py::test_what_is_wrong_with_a_field_is_said_in_words",
    ),
    guarded(
        "all readers of an MCP server are one",
        takes(McpReaders.session_of, lambda **_: {"meta": {READER: "one"}}),
        "hosts_core/test_mcp_tools.py::test_each_reader_that_a_client_names_is_answered_by_what_it_was_shown_itself",
    ),
    guarded(
        "a sub-agent's call is judged by the main agent's log",
        takes(HeldLogs.use, lambda **_: {"agent": "main"}),
        "serve/test_held_logs.py::test_what_others_log_is_seen_at_once",
        "serve/test_held_logs.py::test_no_more_are_held_than_there_is_room_for",
    ),
    guarded(
        "an MCP client reads files outside of its directories",
        takes(allowed_path, lambda **_: {"roots": ["/"]}),
        "hosts_core/test_mcp_tools.py::test_paths_are_of_the_directory_or_of_the_first_root",
    ),
)
