"""What was killed, crowded, damaged and taken away, as the tests themselves counted it.

    python -m tests.docs.faults; python -m tests.docs.generate --write

runs the tests that are named here and keeps what they told with `record_property`. Each of them fails where a byte of
an output was lost or changed, a stored event was lost, or an omission was not proven.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

from tests.docs.tables import TOP, table
from tests.laws.worlds.__main__ import MEASURED as FOUND

MEASURED = TOP / "tests/benchmarks/measured-faults.json"
COUNTS = ("kills", "processes", "calls", "events", "omissions")
Tests = tuple[str, ...]
CROWDS: dict[str, Tests] = {
    "a session killed at each statement that it gives to SQLite, read on by another process": (
        "tests/log/test_kills.py::test_that_holds_for_a_kill_at_each_statement",
    ),
    "a writer of SQLite killed as it writes": (
        "tests/log/test_sqlite_store.py::test_a_writer_killed_at_any_moment_leaves_a_prefix_of_its_events",
    ),
    "parallel processes on one SQLite file: on one session, on sessions of their own, as sub-agents": (
        "tests/session/test_crowds.py::test_processes_at_once_lose_nothing_and_name_nothing_that_is_not_there",
        "tests/log/test_sqlite_store.py::test_many_processes_judge_one_after_the_other",
    ),
    "parallel threads in one process": (
        "tests/session/test_crowds.py::test_threads_at_once_lose_nothing_and_name_nothing_that_is_not_there",
    ),
    "parallel processes on one Redis server": (
        "tests/log/test_redis_crowds.py::test_processes_at_once_lose_nothing_and_name_nothing_that_is_not_there",
    ),
    "a Redis server killed under load, which comes back with all, some or nothing of what it had": (
        "tests/log/test_redis_crowds.py"
        "::test_a_server_that_is_killed_again_and_again_under_load_costs_savings_and_no_byte",
    ),
    "parallel clients of one `readcache serve`": (
        "tests/serve/test_many_clients.py::test_nothing_is_lost_and_nothing_wrong",
    ),
    "the same while the server is killed every second": (
        "tests/serve/test_many_clients.py::test_with_a_server_that_is_killed_every_second_nothing_is_wrong",
    ),
}
_SQLITE, _REDIS = "tests/log/test_sqlite_store.py::test_", "tests/log/test_redis_store.py::test_"
_ENDS, _RUN = "tests/session/test_ends.py::test_", "tests/cli/test_cli_run_signals.py::test_"
OTHERS: dict[str, Tests] = {
    "a full disk, under the store or under what a command prints": (
        f"{_SQLITE}a_full_disk_is_a_store_error_and_what_was_there_stays",
        f"{_RUN}a_full_disk_under_stdout_is_said_and_nothing_counts_as_seen",
    ),
    "a damaged store: its pages, an event, a value": (
        f"{_SQLITE}a_damaged_file_is_set_aside_and_the_next_to_open_the_store_makes_a_new_one",
        f"{_SQLITE}a_session_goes_on_when_its_store_is_damaged_and_nothing_of_before_counts",
        f"{_SQLITE}a_damaged_file_that_may_be_somebody_elses_is_left_alone",
        f"{_SQLITE}an_event_that_cannot_be_read_takes_what_was_before_it_out_of_view_and_no_more",
        f"{_SQLITE}a_list_with_an_event_that_cannot_be_read_is_not_read_at_all",
        f"{_SQLITE}an_event_with_a_value_of_a_wrong_type_is_refused_or_survived",
        f"{_REDIS}an_event_that_cannot_be_read_takes_what_was_before_it_out_of_view",
    ),
    "a store or its directory that is removed or cannot be written": (
        f"{_SQLITE}a_store_that_was_taken_away_meanwhile_is_made_anew_and_nothing_of_it_counts",
        f"{_SQLITE}a_place_that_cannot_be_written_is_refused",
        f"{_ENDS}without_its_state_directory_a_session_shows_everything_and_comes_back_with_it",
    ),
    "a lock that another process keeps": (
        f"{_SQLITE}a_store_that_stays_locked_is_a_store_error",
        f"{_SQLITE}a_lock_that_stays_is_waited_for_once",
        f"{_REDIS}a_writer_that_was_killed_keeps_the_others_waiting_for_two_seconds",
    ),
    "a fork, also during a transaction": (
        f"{_SQLITE}a_forked_child_writes_through_a_connection_of_its_own",
        f"{_SQLITE}nothing_that_a_child_writes_is_lost_when_its_parent_closes",
        f"{_SQLITE}a_child_forked_while_its_parent_writes_is_told_so_and_harms_nothing",
        f"{_SQLITE}a_fork_waits_for_the_other_threads_to_finish_writing",
        f"{_REDIS}a_forked_child_writes_by_itself_and_one_forked_amid_a_transaction_is_told_so",
    ),
    "a process that ends with a session open, or while a command runs": (
        f"{_ENDS}however_a_process_ends_its_output_is_whole_and_the_session_can_go_on",
        f"{_ENDS}an_interrupt_while_a_command_runs_reaches_the_program_and_kills_the_command",
        f"{_ENDS}of_a_program_that_is_killed_while_a_command_runs_nothing_counts_as_shown",
    ),
    "a signal to `readcache run`, to its command or to both, a reader that leaves early": (
        f"{_RUN}a_command_that_dies_of_a_signal_gives_us_its_status",
        f"{_RUN}a_signal_to_us_reaches_the_command",
        f"{_RUN}an_interrupt_of_the_whole_group_ends_command_and_us",
        f"{_RUN}an_interrupt_after_the_commands_end_costs_none_of_its_output",
        f"{_RUN}a_reader_that_leaves_early_ends_us_as_it_ends_cat_and_nothing_counts_as_seen",
        f"{_RUN}a_reader_that_leaves_early_does_not_stop_the_rest_of_a_long_command",
        f"{_RUN}a_kill_at_any_moment_leaves_no_reply_that_counts_but_was_not_shown",
    ),
    "a clock that is set back or on": (f"{_ENDS}a_clock_that_is_set_back_or_on_changes_no_answer",),
    "a Redis server that was restarted, hangs, evicts, has no memory, or loses an answer or its last writes": (
        f"{_REDIS}after_a_restart_nothing_counts_as_visible_for_anybody_and_sessions_go_on",
        f"{_REDIS}a_compaction_that_a_server_took_and_lost_is_no_reason_to_leave_anything_out",
        f"{_REDIS}a_compaction_that_a_replica_never_heard_of_is_no_reason_to_leave_anything_out",
        f"{_REDIS}of_a_session_that_the_server_evicted_nothing_counts_as_visible",
        f"{_REDIS}a_step_whose_answer_is_lost_is_asked_again_and_done_once",
        f"{_REDIS}a_server_that_hangs_costs_its_deadline_once_and_then_nothing_until_it_is_back",
        f"{_REDIS}a_server_without_memory_is_a_store_error_and_what_was_there_stays",
        f"{_REDIS}a_list_across_a_restart_has_a_hole_and_is_none",
    ),
}
Counts = dict[str, int]


def run(report: Path) -> None:
    """Runs the tests that are named. CalledProcessError where one failed, or is not there."""
    # one after the other: beside each other, processes of crowds wait longer for a lock than they are to
    names = [name for tests in (*CROWDS.values(), *OTHERS.values()) for name in tests]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-n", "0", f"--junitxml={report}", *names]
    subprocess.run(command, cwd=TOP, check=True)


def counted(report: Path) -> dict[str, Counts]:
    """Test -> what it told, and how often it passed (`runs`). ValueError for one that did not run."""
    found: dict[str, Counter[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{str(case.get('classname')).replace('.', '/')}.py::{str(case.get('name')).partition('[')[0]}"
        if case.find("skipped") is None:
            told = {str(one.get("name")): int(str(one.get("value"))) for one in case.iter("property")}
            found.setdefault(name, Counter()).update({"runs": 1, **told})
    named = [name for tests in (*CROWDS.values(), *OTHERS.values()) for name in tests]
    if missing := set(named) - found.keys():
        raise ValueError(f"did not run: {', '.join(sorted(missing))}")
    return {name: dict(found[name]) for name in named}


def _sum(measured: dict[str, Counts], tests: Tests) -> Counter[str]:
    total: Counter[str] = Counter()
    for name in tests:
        total.update(measured[name])
    return total


def faults() -> str:
    """The two tables."""
    measured: dict[str, Counts] = json.loads(MEASURED.read_text(encoding="utf-8"))
    every = {**CROWDS, "together": tuple(name for tests in CROWDS.values() for name in tests)}
    crowds = ((what, _sum(measured, tests)) for what, tests in every.items())
    rows = [(what, *(f"{found[count]:,}" if found[count] else "" for count in COUNTS)) for what, found in crowds]
    others = [(what, f"{_sum(measured, tests)['runs']}") for what, tests in OTHERS.items()]
    return f"{table(('what', *COUNTS), rows)}\n{table(('fault', 'ways'), others)}"


def worlds() -> str:
    """Return a table: how many planted faults random worlds find, by the number of worlds that it took."""
    needed = json.loads(FOUND.read_text(encoding="utf-8")).values()
    ranges = ((1, 10), (11, 100), (101, 1_000), (1_001, 10_000))
    rows = ((f"{low:,} to {high:,}", str(sum(low <= count <= high for count in needed))) for low, high in ranges)
    return table(("worlds tried until it was found", "planted faults"), rows)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        run(Path(directory) / "report.xml")
        figures = counted(Path(directory) / "report.xml")
    MEASURED.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
