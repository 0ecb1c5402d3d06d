"""What a command reads and writes is misunderstood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from readcache.core.model.claims import WHOLE_TREE, Authored, Claim, FileLines, Reading, Write, is_blob
from readcache.core.model.policy import is_answer
from readcache.core.shell.read import read_command
from tests.laws.mutants.guarded.patching import gives, guarded, takes


def _of_files(change: Callable[[FileLines], Claim]) -> Callable[[Reading], Reading]:
    def changed(reading: Reading) -> Reading:
        claims = (change(claim) if isinstance(claim, FileLines) else claim for claim in reading.claims)
        return replace(reading, claims=tuple(claims))

    return changed


def _starts_late(claim: FileLines) -> FileLines:
    assert claim.lines is not None
    first, last = claim.lines
    return replace(claim, lines=(first + 1 if first > 1 else first, last))


def _has_no_end(claim: FileLines) -> FileLines:
    return replace(claim, lines=claim.lines and (claim.lines[0], None))


def _of_the_work_tree(claim: FileLines) -> FileLines:
    return replace(claim, keys=tuple(f"/w/{key.rpartition(':')[2]}" if is_blob(key) else key for key in claim.keys))


def _writes(keep: Callable[[Write], bool]) -> Callable[[Reading], Reading]:
    return lambda reading: replace(reading, writes=tuple(filter(keep, reading.writes)))


def _authored(change: Callable[[Authored], Authored]) -> Callable[[Reading], Reading]:
    return lambda reading: replace(reading, authored=tuple(map(change, reading.authored)))


def _write_first(reading: Reading) -> Reading:
    return replace(reading, writes=tuple(replace(write, before=0) for write in reading.writes))


def _in_root(**_: Any) -> dict[str, Any]:
    return {"cwd": "/"}


SHELL = (
    guarded(
        "a range of lines begins one line late",
        gives(read_command, _of_files(_starts_late)),
        "session/test_failures.py::test_a_source_must_hold_the_same_lines_and_the_same_bytes",
    ),
    guarded(
        "a range of lines has no end",
        gives(read_command, _of_files(_has_no_end)),
        "core/shell/test_corpus_commands.py::test_the_reading_of_a_recorded_command",
    ),
    guarded(
        "numbers in front of lines are not foreseen",
        gives(read_command, _of_files(lambda c: replace(c, sep=None))),
        "core/shell/test_readers.py::test_numbers_with_gaps_speak_for_themselves",
    ),
    guarded(
        "grep -n shows lines without gaps",
        gives(read_command, _of_files(lambda c: replace(c, gaps=False))),
        "core/shell/test_readers.py::test_numbers_with_gaps_speak_for_themselves",
    ),
    guarded(
        "a revision's file is the one on disk",
        gives(read_command, _of_files(_of_the_work_tree)),
        "core/shell/test_readers.py::test_a_blob_is_not_the_file",
    ),
    guarded(
        "the files of a command come in another order",
        gives(read_command, lambda r: replace(r, claims=r.claims[::-1])),
        "core/shell/test_claims_against_real_tools.py::test_claims_foresee_the_output_to_the_line",
    ),
    guarded(
        "a relative path begins at the root",
        takes(read_command, _in_root),
        "core/shell/test_readers.py::test_a_file_has_one_name",
    ),
    guarded(
        "an edit is not seen as a write",
        gives(read_command, _writes(lambda w: not w.is_certain)),
        "core/shell/test_writers.py::test_the_files_that_a_command_changes_are_told",
    ),
    guarded(
        "a program's text names no file that it writes",
        gives(read_command, _writes(lambda w: w.is_certain or w.key == WHOLE_TREE)),
        "core/shell/test_ways_to_write.py::test_a_file_that_a_command_may_have_written_is_shown_again",
    ),
    guarded(
        "an edit of unknown files writes none",
        gives(read_command, _writes(lambda w: w.key != WHOLE_TREE)),
        "core/shell/test_ways_to_write.py::test_after_an_edit_in_place_of_unknown_files_every_file_is_shown_again",
    ),
    guarded(
        "a file is read after it was written",
        gives(read_command, _write_first),
        "core/shell/test_writers.py::test_a_write_before_a_read_is_told_from_one_after",
    ),
    guarded(
        "of several files written the last one alone is told",
        gives(read_command, lambda r: replace(r, writes=r.writes[-1:])),
        "core/shell/test_writers.py::test_the_files_that_a_command_changes_are_told",
    ),
    guarded(
        "a text counts as written though its command may not have run",
        gives(read_command, _authored(lambda a: replace(a, executed=True, status_covers=True))),
        "session/test_what_was_content.py::test_a_write_that_may_have_failed_is_never_the_files_content",
    ),
    guarded(
        "a heredoc's text is not known to be in the file",
        gives(read_command, lambda r: replace(r, authored=())),
        "core/shell/test_writers.py::test_a_quoted_heredoc_is_the_content_of_the_file",
    ),
    guarded(
        "appended text begins the file",
        gives(read_command, _authored(lambda a: replace(a, first=1))),
        "core/shell/test_writers.py::test_where_appended_text_begins_is_not_known",
    ),
    guarded(
        "the agent's answer is an output like any other",
        gives(is_answer, lambda _: False),
        "core/judging/test_never.py::test_the_output_of_an_answer_is_never_touched",
    ),
)
