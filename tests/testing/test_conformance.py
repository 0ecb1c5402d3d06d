"""The conformance suite: a host that takes care passes it, and each lack of care is found."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from readcache.testing.conformance import Conformance
from readcache.testing.hosts import Bash, Compact, Seen
from readcache.testing.requests import Requests, markers
from tests.testing.plain_host import PlainHost


class TestPlainHost(Conformance):
    host = PlainHost()


@pytest.mark.slow  # the quick suite has it with the default policy
class TestPlainHostWithEverythingSwitchedOn(Conformance):
    host = PlainHost(policy="max")

    @pytest.mark.slow  # two commands of two seconds, as for the plain host
    def test_a_command_that_ran_out_of_time_is_no_source_for_what_it_did_not_show(self, tmp_path: Path) -> None:
        super().test_a_command_that_ran_out_of_time_is_no_source_for_what_it_did_not_show(tmp_path)


CARE = [
    (("sync",), "nothing_dangles_after_a_compaction"),
    (("sync",), "nothing_dangles_after_a_result_was_cleared"),
    (("sync",), "nothing_dangles_after_going_back"),
    (("sync", "settle"), "what_the_host_cut_away_is_shown_when_it_is_asked_for"),
    (("sync", "sessions of sub-agents"), "a_sub_agent_is_shown_what_its_parent_saw"),
    (("sync", "sessions of sub-agents"), "what_a_sub_agent_saw_is_shown_to_its_parent"),
    (("batches",), "calls_made_at_once_do_not_point_at_each_other"),
    (("frames",), "what_is_visible_is_left_out"),
    (("a name",), "another_process_sends_the_same_bytes"),
]


@pytest.mark.parametrize(("lacks", "test"), CARE, ids=[f"{' and '.join(lacks)}: {test}" for lacks, test in CARE])
def test_a_lack_of_care_is_found(lacks: tuple[str, ...], test: str, tmp_path: Path) -> None:
    suite = Conformance()
    suite.host = PlainHost(*lacks)  # type: ignore[misc]  # for this instance
    with pytest.raises(AssertionError):
        getattr(suite, f"test_{test}")(tmp_path / "lacking")
    suite.host = PlainHost()  # type: ignore[misc]
    getattr(suite, f"test_{test}")(tmp_path / "right")


class NoCompaction(PlainHost):
    can = frozenset((Bash,))


def test_what_a_host_has_not_got_is_skipped(tmp_path: Path) -> None:
    suite = Conformance()
    suite.host = NoCompaction()  # type: ignore[misc]
    with pytest.raises(pytest.skip.Exception, match="Compact"):
        suite.run_steps(tmp_path, (Bash("ls"),), Compact())


MARKER = '[UNCHANGED 7f3a.2: f lines 1-2, above in "cat f"; repeat to see]'


def test_the_check_of_requests_finds_what_is_wrong() -> None:
    real = Seen(("task",), ("one\ntwo\nthree\n",))
    good = Seen(("task", "one\ntwo\n"), (f"{MARKER}\nthree\n",))
    check = Requests()
    check.compare(good, real)
    check.compare(Seen((*good.texts, *good.results), ("x",)), Seen((), ("x",)))
    wrong_number = MARKER.replace("1-2", "1-3")
    for texts, result in (
        (("one\ntwo\n",), f"{wrong_number}\nthree\n"),
        (("task",), f"{MARKER}\nthree\n"),  # its lines are nowhere
        (("one\ntwo\n",), "three\n"),  # nothing stands for them
        (("one\ntwo\n",), f"{MARKER}\nthird\n"),  # another line than the real one
        (("one\ntwo\n",), f"{MARKER}\n"),
        (("one\ntwo\n",), f"{MARKER}\nthree\nfour\n"),
    ):
        with pytest.raises(AssertionError):
            Requests().compare(Seen(texts, (result,)), real)
    with pytest.raises(AssertionError, match="not in view"):
        check.compare(Seen((*good.results, "one\n"), ("y",)), Seen((), ("y",)))


def test_markers_are_told_from_what_looks_like_them() -> None:
    assert markers(f"before {MARKER} behind") == [MARKER]
    assert not markers("[UNCHANGED 0000.3: x lines 1-3, above]\n[UNCHANGED lines 1-3; repeat to see]")


def test_a_text_that_changes_before_the_hosts_first_change_is_found() -> None:
    real = [Seen(("task", "a", "b"), ("b",)), Seen(("task", "a", "cleared", "c"), ("c",))]
    for changed, is_found in ((("task", "a", "cleared", "c"), False), (("task", "other", "cleared", "c"), True)):
        check = Requests()
        check.compare(real[0], real[0])
        with pytest.raises(AssertionError, match="changed before") if is_found else nullcontext():
            check.compare(Seen(changed, ("c",)), real[1])
