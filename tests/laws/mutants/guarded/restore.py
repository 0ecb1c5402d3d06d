"""After a compaction other lines are restored than should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from readcache.core.model.text import printable
from readcache.core.restore.choose import plan_restore, reasons_for_file, score
from readcache.core.restore.evidence import is_removed
from readcache.core.restore.fit import why_not_name, why_not_output, why_not_text
from readcache.core.restore.located import Located, locate_lines
from readcache.core.restore.plan import Bytes, RestoreItem, RestorePlan
from tests.laws.mutants.guarded.patching import gives, guarded, instead, takes


def _always(**changes: Any) -> Callable[..., dict[str, Any]]:
    return lambda **_: changes


def _roomy(budget: Any, **_: Any) -> dict[str, Any]:
    return {"budget": replace(budget, max_tokens=10**6, max_tokens_per_file=10**6, max_files=10**6)}


def _by_path(plan: RestorePlan) -> RestorePlan:
    return replace(plan, items=tuple(sorted(plan.items, key=lambda item: (item.path or "", item.start or 0))))


def _credited(item: RestoreItem) -> RestoreItem:
    return replace(item, bytes=Bytes.SEEN if item.bytes is Bytes.OUTDATED else item.bytes)


RESTORE = (
    guarded(
        "a file that must not be restored is",
        takes(plan_restore, _always(refuses=lambda _: {})),
        "core/restore/test_plan.py::test_what_git_ignores_is_left_out_but_for_what_is_tracked",
    ),
    guarded(
        "a file's name forbids no restoring",
        gives(why_not_name, lambda _: None),
        "core/restore/test_plan.py::test_files_are_left_out_by_name",
    ),
    guarded(
        "a file with a secret in it is restored",
        gives(why_not_text, lambda _: None),
        "core/restore/test_plan.py::test_files_are_left_out_by_what_they_hold",
    ),
    guarded(
        "an output with a secret in it is restored",
        gives(why_not_output, lambda _: None),
        "core/restore/test_rank.py::test_a_result_that_may_hold_a_secret_does_not_come_back",
    ),
    guarded(
        "the budget of a restore plan is ignored",
        takes(plan_restore, _roomy),
        "core/restore/test_restore_and_compact.py::test_a_budget_is_kept",
        "core/restore/test_budget.py::test_the_limit_of_a_file_is_not_that_of_them_all",
    ),
    guarded(
        "lines that are still visible are restored",
        takes(plan_restore, _always(kept=())),
        "core/restore/test_plan.py::test_lines_that_stay_visible_are_not_restored",
    ),
    guarded(
        "what the host restores is restored twice",
        takes(plan_restore, _always(without=())),
        "session/test_restored_section.py::test_files_that_the_host_puts_back_are_left_to_it",
    ),
    guarded(
        "lines are restored as they were, not as they are",
        takes(plan_restore, _always(current=None)),
        "core/restore/test_plan.py::test_where_there_is_a_disk_the_bytes_are_those_on_it",
    ),
    guarded(
        "lines of files with unknown borders come back as they were",
        gives(locate_lines, lambda _: Located()),
        "core/restore/test_as_on_disk.py::test_lines_of_several_files_come_back_as_they_are_on_disk",
    ),
    guarded(
        "files that only a message named count as unnamed",
        takes(plan_restore, _always(inputs=())),
        "core/restore/test_rank.py::test_calls_of_the_message_list_that_nobody_told_of_name_files_too",
    ),
    guarded(
        "the least likely files are restored first",
        gives(score, lambda worth: -worth),
        "core/restore/test_rank.py::test_without_other_evidence_what_was_shown_last_comes_first",
    ),
    guarded(
        "a plan does not begin with its best file",
        gives(plan_restore, _by_path),
        "core/restore/test_restore_and_compact.py::test_the_files_read_last_come_first",
    ),
    guarded(
        "a plan does not tell what it left out",
        gives(plan_restore, lambda p: replace(p, left_out=())),
        "core/restore/test_restore_and_compact.py::test_nothing_is_dropped_in_silence",
    ),
    guarded(
        "outdated lines are a source for markers",
        gives(plan_restore, lambda p: replace(p, items=tuple(map(_credited, p.items)))),
        "core/restore/test_plan.py::test_lines_from_before_a_write_say_so_and_are_found_by_their_text_alone",
    ),
    guarded(
        "restored lines are believed to stand a line lower",
        gives(
            RestorePlan.source_map, lambda source_map: tuple(replace(mapped, at=mapped.at + 1) for mapped in source_map)
        ),
        "core/restore/test_restore_and_compact.py::test_a_restored_section_is_a_source_for_raw_lines_and_for_numbers_that_the_marker_names",
    ),
    guarded(
        "a file that a command deleted is restored",
        gives(is_removed, lambda _: False),
        "core/restore/test_plan.py::test_without_a_disk_a_file_is_taken_for_gone_after_a_command_that_removes_it",
    ),
    guarded(
        "a file's name breaks its line in the restored section",
        instead(printable, lambda name: name),
        "session/test_threats.py::test_no_name_of_a_file_shifts_the_lines_of_a_restored_section",
    ),
    guarded(
        "a plan does not say why a file is in it",
        gives(reasons_for_file, lambda _: ""),
        "core/restore/test_rank.py::test_a_plan_says_why_each_file_was_open",
    ),
)
