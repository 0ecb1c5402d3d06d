"""An adapter misunderstands its host, or answers another reader than the one that asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from readcache import Sessions
from readcache.hosts.claude_code.proof import TranscriptProof
from readcache.hosts.judged_lists import JudgedLists, ListChanges, ListPart, entries
from readcache.hosts.tool_results import ShellDirectory, answer_tool, put_back, tool_kinds
from readcache.transcripts import codex
from readcache.transcripts.claude_code import Transcript
from readcache.transcripts.codex import Rollout
from readcache.transcripts.gemini import chat_messages
from tests.laws.mutants.guarded.patching import after, each, gives, guarded, instead, takes


def _in_a_batch_of_its_own(entry: ListPart) -> ListPart:
    return entry if entry.result is None else entry._replace(result=replace(entry.result, batch=entry.key))


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
        "hosts/test_judged_lists.py::test_a_compaction_that_leaves_no_result_goes_on_in_a_named_conversation_only",
    ),
    guarded(
        "an adapter does not restore what a server compacted away",
        gives(JudgedLists.judged, lambda c: ListChanges(c.texts)),
        "hosts/test_judged_lists.py::test_behind_a_servers_compaction_stands_what_was_read",
    ),
    guarded(
        "an adapter changes nothing",
        gives(JudgedLists.judged, lambda c: ListChanges({}, c.sections)),
        "hosts/test_judged_lists.py::test_a_second_read_is_a_marker_and_the_hosts_list_stays",
    ),
    guarded(
        "calls in parallel point at each other",
        gives(entries, each(_in_a_batch_of_its_own)),
        "hosts/test_judged_lists.py::test_calls_made_at_once_do_not_point_at_each_other",
    ),
    guarded(
        "codex: a result in parts is judged",
        after(Rollout.__init__, _set(has_answer=False)),
        "hosts/test_codex.py::test_a_command_that_was_polled_from_the_background_is_not_touched_and_no_source",
    ),
    guarded(
        "codex: every command went well",
        after(Rollout.__init__, _set(exit_code=0)),
        "hosts/test_codex.py::test_a_second_read_is_answered_with_its_exit_status",
    ),
    guarded(
        "codex: calls in parallel point at each other",
        after(Rollout.__init__, _set(batch="")),
        "hosts/test_codex.py::test_calls_made_at_once_do_not_point_at_each_other",
    ),
    guarded(
        "codex: a compaction is not seen",
        takes(Rollout.__init__, _without_lines('"compacted"')),
        "hosts/test_codex.py::test_what_was_compacted_is_shown_again",
    ),
    guarded(
        "codex: going back is not seen",
        takes(Rollout.__init__, _without_lines('"thread_rolled_back"')),
        "hosts/test_codex.py::test_after_going_back_all_is_shown_again",
    ),
    guarded(
        "gemini: a compression is not seen",
        takes(chat_messages, _without_lines('"$set"')),
        "hosts/test_gemini.py::test_what_a_compression_took_is_shown_again",
    ),
    guarded(
        "claude-code: every omission counts as proven",
        gives(TranscriptProof.of, lambda _: True),
        "hosts/test_claude_code.py::test_what_was_cleared_is_no_source",
        "hosts/test_claude_code.py::test_lines_that_the_transcript_has_not_got_are_not_left_out",
    ),
    guarded(
        "claude-code: results that the server may have cleared count as sent",
        gives(Transcript.may_have_removed, lambda _: False),
        "hosts/test_claude_plugin.py::test_where_results_may_have_been_cleared_everything_is_shown",
    ),
    guarded(
        "a shell that changed its directory is where it was",
        instead(ShellDirectory.follow, lambda *_, **__: None),
        "hosts/test_shell_directory.py::test_a_directory_that_is_there_is_followed",
    ),
    guarded(
        "the kind that the user gives a tool is ignored",
        gives(tool_kinds, lambda _: {}),
        "hosts/test_judged_lists.py::test_a_tool_is_what_the_user_says_it_is",
    ),
    guarded(
        "codex: patches write nothing",
        after(Rollout.__init__, _set(written=[])),
        "hosts/test_codex.py::test_a_patch_is_a_write",
    ),
    guarded(
        "codex: an output that Codex truncated counts as whole",
        gives(codex.is_truncated, lambda _: False),
        "replay/test_other_hosts.py::test_an_output_that_codex_cut_is_cut_for_its_hook_and_for_its_transcript",
    ),
    guarded(
        "a sub-agent's hook answers as the main agent",
        takes(Sessions.get, lambda **_: {"agent": "main"}),
        "hosts/test_codex.py::test_a_sub_agent_is_a_reader_of_its_own",
    ),
    guarded(
        "an answer that a host did not get counts as shown",
        takes(Sessions.end_event, lambda **_: {"was_shown": True}),
        "hosts/test_codex.py::test_what_a_hook_could_not_tell_its_host_is_shown_again",
    ),
    guarded(
        "a tool's error is its result",
        takes(answer_tool, lambda call, **_: {"call": replace(call, is_error=False)}),
        "hosts/test_tool_results.py::test_a_write_that_failed_wrote_nothing",
        "hosts/test_tool_results.py::test_what_a_framework_says_of_a_command_that_failed_is_no_content_of_a_file",
    ),
    guarded(
        "omitted lines stay out of an argument",
        instead(put_back, lambda text, _: text),
        "hosts/test_left_out.py::test_put_back_gives_the_whole_output_again",
    ),
)
