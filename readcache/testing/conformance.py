"""A suite of an adapter's duties.

Derive a test class from `Conformance`, and give it your host with a scripted model.

    class TestMyHost(Conformance):
        host = MyHost()

`MyHost.converse` lets a model that follows a script talk to your host, with readcache on or off. It returns the
requests that the model was sent. Each conversation runs twice. The run without readcache shows what every call really
prints. In the run with readcache, each omitted line must be elsewhere in the same request, and each marker must stay
true as long as it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pytest

from readcache import Marks
from readcache.core.restore.plan import HEADING
from readcache.testing.hosts import (
    FORMS,
    Bash,
    Clear,
    Compact,
    Delegate,
    Edit,
    HostUnderTest,
    Read,
    Rewind,
    Seen,
    Step,
    Worker,
    cells,
    together,
)
from readcache.testing.requests import NOTE, Requests, check_figures, markers

# The answer that SWE-bench's harnesses wait for; as the first line of an output it would end the conversation.
SUBMIT = "cat shop.py && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

LENGTHS = {"shop.py": 60, "long.txt": 6_000, "crlf.txt": 40, "like.txt": 30}  # lines of the files of `make_project`
_CAT, _HEAD, _TAIL = Bash("cat shop.py"), Bash("sed -n '1,40p' shop.py"), Bash("sed -n '21,60p' shop.py")


def make_project(root: Path) -> None:
    """Write the files that the scripts read: a small one, one longer than any host shows, one with odd line ends, and
    one whose text looks like markers."""
    root.mkdir(parents=True)
    shop = [f"def item_{n}(count: int) -> float:  # number {n} of the shop" for n in range(1, 61)]
    (root / "shop.py").write_text("\n".join(shop) + "\n")
    (root / "long.txt").write_text(
        "".join(f"{n:05} a line of a long file, and some words to fill it\n" for n in range(6_000))
    )
    (root / "crlf.txt").write_bytes(b"".join(b"line %d of a file from elsewhere\r\n" % n for n in range(40)))
    (root / "like.txt").write_text("".join(f"[UNCHANGED 0000.{n}: x lines 1-{n}, above]\n" for n in range(30)))


class Conformance:
    """The suite. `host`: your host. Every test is a script. A test is skipped if it needs a call or an event that the
    host does not have."""

    host: ClassVar[HostUnderTest]

    def run_steps(
        self, tmp_path: Path, *steps: Step, unchecked: Sequence[int] = (), files: Mapping[str, str] | None = None
    ) -> list[Seen]:
        """Run the conversation without and with readcache, compare the two, and return the requests with readcache.

        `unchecked`: indexes of steps whose results are not compared, because the host itself truncates them. `files`:
        texts of additional files in the project, by name. Raise AssertionError if the comparison fails.
        """
        return self._run_twice(tmp_path, steps, unchecked, files)[0]

    def _run_twice(
        self,
        tmp_path: Path,
        steps: Sequence[Step],
        unchecked: Sequence[int] = (),
        files: Mapping[str, str] | None = None,
    ) -> tuple[list[Seen], list[Seen]]:
        """Do the same as `run_steps`, and return the requests with readcache and the requests without it."""
        self._need(*steps)
        without, seen = (
            self._converse(tmp_path / side, steps, files or {}, on=side == "with") for side in ("without", "with")
        )
        check = Requests(self._normal, LENGTHS)
        for at, (ours, real) in enumerate(zip(seen, without, strict=True)):
            check.compare(ours, None if at in unchecked else real)
        assert files_of(tmp_path / "with") == files_of(tmp_path / "without"), "the files differ in the end"
        return seen, without

    def _converse(self, root: Path, steps: Sequence[Step], files: Mapping[str, str], *, on: bool) -> list[Seen]:
        make_project(root)
        for name, text in files.items():
            (root / name).write_text(text)
        seen = self.host.converse(root, steps, on=on)
        assert len(seen) == len(steps), "converse gives one `Seen` for each step"
        if not on:
            assert not [text for one in seen for text in one.results if markers(text)], "it was not off"
        return seen

    def _need(self, *steps: Step) -> None:
        kinds = {type(call) for step in steps for call in (step if isinstance(step, tuple) else (step,))}
        if missing := kinds - self.host.can:
            pytest.skip(f"the host has no {', '.join(sorted(kind.__name__ for kind in missing))}")

    def _normal(self, text: str) -> str:
        normal = getattr(self.host, "normal", None)
        return text if normal is None else str(normal(text))

    # ------------------------------------------------------------ omissions

    @pytest.mark.parametrize("between", [(), (Worker(1),)], ids=["", "in-another-process"])
    @pytest.mark.parametrize("form", FORMS)
    def test_each_way_of_reading_again_is_shortened(
        self,
        form: str,
        between: tuple[Step, ...],
        tmp_path: Path,
        tmp_path_factory: pytest.TempPathFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self._need(*between)
        if between and hasattr(self.host, "store"):  # another process does not know this one's memory
            monkeypatch.setattr(self.host, "store", tmp_path_factory.getbasetemp() / "store.db")
        shown = cells(form, self.host.can)
        first, again = together([cell.first for cell in shown]), together([cell.again for cell in shown])
        files = {f"{cell.name}.py": cell.text for cell in shown}
        seen = self.run_steps(tmp_path, *first, *between, *again, files=files)
        results = [result for one in seen[-len(again) :] for result in one.results]
        missed = {cell.name for cell, result in zip(shown, results, strict=True) if not cell.is_shortened(result)}
        said = f"{len(shown) - len(missed)} of {len(shown)} were shortened, but not {sorted(missed)}"
        assert missed == set(getattr(self.host, "cannot_shorten", {}).get(form, ())), said

    def test_no_figure_counts_more_than_the_model_was_sent(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._set("store", tmp_path / "store.db", monkeypatch)
        steps: tuple[Step, ...] = (
            (_CAT,),
            (_CAT,),
            (Bash("ls"),),
            (_HEAD, _TAIL),
            (Bash("ls -r"),),  # not -a: a host may keep its settings in the project
            (Bash("tail -n 45 shop.py"),),
        )
        check_figures(tmp_path / "store.db", *self._run_twice(tmp_path, steps))

    def _set(self, name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
        if not hasattr(self.host, name):
            pytest.skip(f"the host has no `{name}` to be set")
        monkeypatch.setattr(self.host, name, value)

    def test_what_is_visible_is_left_out(self, tmp_path: Path) -> None:
        seen = self.run_steps(tmp_path, (_CAT,), (_CAT,))
        assert markers(seen[1].results[0]), "the second `cat` of a file was not answered by a marker"

    def test_who_insists_gets_the_bytes(self, tmp_path: Path) -> None:
        seen = self.run_steps(tmp_path, (_CAT,), (_CAT,), (_CAT,))
        assert not markers(seen[2].results[0])

    def test_overlaps_of_commands_are_accounted_for(self, tmp_path: Path) -> None:
        self.run_steps(
            tmp_path, (_HEAD,), (_TAIL,), (_CAT,), (Bash("nl -ba shop.py"),), (Bash("cat -n shop.py | head -30"),)
        )

    def test_overlaps_of_reads_are_accounted_for(self, tmp_path: Path) -> None:
        reads = (Read("shop.py", 11, 40),), (Read("shop.py", 21, 60),), (Read("shop.py"),), (Read("shop.py", 1, 30),)
        self.run_steps(tmp_path, *reads)

    def test_commands_and_reads_are_sources_for_each_other(self, tmp_path: Path) -> None:
        self.run_steps(tmp_path, (_HEAD,), (Read("shop.py"),), (_TAIL,), (Read("shop.py", 5, 25),))

    def test_odd_files_are_passed_on(self, tmp_path: Path) -> None:
        odd = [(Bash(f"cat {name}"),) for name in ("crlf.txt", "crlf.txt", "like.txt", "like.txt", "/dev/null")]
        self.run_steps(tmp_path, *odd)

    def test_calls_made_at_once_do_not_point_at_each_other(self, tmp_path: Path) -> None:
        seen = self.run_steps(tmp_path, (_CAT, _CAT, Bash("head -50 shop.py")), (_TAIL,))
        assert not [text for text in seen[0].results if markers(text)]

    def test_an_answer_to_the_harness_is_not_touched(self, tmp_path: Path) -> None:
        self._need((_CAT,))
        seen = self.run_steps(tmp_path, (_CAT,), (Bash(SUBMIT),), (Bash("echo done"),))
        assert not markers(seen[1].results[0])

    # ------------------------------------------------------------ the prompt cache

    def test_older_markers_keep_their_bytes(self, tmp_path: Path) -> None:
        self._keep_bytes(self.run_steps(tmp_path, (_CAT,), (_CAT,), (_HEAD,), (Bash("ls"),), (_TAIL,), (Bash("ls"),)))

    def test_another_process_sends_the_same_bytes(self, tmp_path: Path) -> None:
        first: list[Step] = [(_CAT,), (_CAT,), (_HEAD,)]
        self._keep_bytes(
            self.run_steps(tmp_path, *first, Worker(1), (_TAIL,), Worker(0), (_CAT,), Worker(1), Worker(2))
        )

    def _keep_bytes(self, seen: Sequence[Seen]) -> None:
        """Check that each marker of a request is in all later requests, and that there is at least one."""
        kept: list[str] = []
        for one in seen:
            sent = "\n".join((*one.texts, *one.results))
            assert all(marker in sent for marker in kept), "an older marker was rewritten"
            kept = markers(sent)
        assert kept, "nothing was left out"

    # ------------------------------------------------------------ writes and failures

    def test_what_a_command_changed_is_shown(self, tmp_path: Path) -> None:
        self.run_steps(tmp_path, (_CAT,), (Bash("sed -i 's/number 7 /number seven /' shop.py"),), (_CAT,), (_HEAD,))

    def test_what_an_edit_tool_changed_is_shown(self, tmp_path: Path) -> None:
        edit = Edit("shop.py", "number 7 of", "number seven of")
        self.run_steps(tmp_path, (Read("shop.py"),), (edit,), (_CAT,), (Read("shop.py", 1, 20),))

    def test_an_edit_after_a_marker_goes_through(self, tmp_path: Path) -> None:
        edit = Edit("shop.py", "number 9 of", "number nine of")
        self.run_steps(tmp_path, (Read("shop.py"),), (Read("shop.py"),), (edit,), (_CAT,))
        assert "number nine of" in (tmp_path / "with/shop.py").read_text()

    def test_failures_are_no_sources(self, tmp_path: Path) -> None:
        missing, failing = Bash("cat no-such-file"), Bash("cat shop.py; exit 3")
        self.run_steps(tmp_path, (missing,), (missing,), (failing,), (failing,), (_TAIL,))

    def test_a_read_that_failed_is_no_source(self, tmp_path: Path) -> None:
        self.run_steps(tmp_path, (Read("no-such-file"),), (Bash("cp shop.py no-such-file"),), (Read("no-such-file"),))

    def test_a_command_that_ran_out_of_time_is_no_source_for_what_it_did_not_show(self, tmp_path: Path) -> None:
        late = Bash("cat shop.py; sleep 30; cat crlf.txt", timeout=2)
        self.run_steps(tmp_path, (late,), (_CAT,), (Bash("cat crlf.txt"),), unchecked=[0])

    def test_what_the_host_cut_away_is_shown_when_it_is_asked_for(self, tmp_path: Path) -> None:
        ranges = [(Bash(f"sed -n '{first},{first + 25}p' long.txt"),) for first in (3000, 100, 5950, 1400)]
        self.run_steps(tmp_path, (Bash("cat long.txt"),), *ranges, unchecked=[0])

    def test_what_the_host_cut_away_of_a_read_is_shown_when_it_is_asked_for(self, tmp_path: Path) -> None:
        ranges = [(Read("long.txt", first, first + 25),) for first in (3000, 100, 5950, 1400)]
        self.run_steps(tmp_path, (Read("long.txt"),), *ranges, unchecked=[0])

    # ------------------------------------------------------------ removals from the conversation

    def test_nothing_dangles_after_a_compaction(self, tmp_path: Path) -> None:
        once = Bash("echo $((40 + 2))01010")
        seen = self.run_steps(
            tmp_path, (once,), (_CAT,), (_HEAD,), (Bash("ls"),), Compact(), (_TAIL,), (_CAT,), (_CAT,)
        )
        results = [text for text in seen[4].texts if HEADING not in text]  # a short result may be restored
        assert not [text for text in results if "4201010" in text], "`Compact` removed nothing"

    def test_nothing_dangles_after_a_result_was_cleared(self, tmp_path: Path) -> None:
        self.run_steps(tmp_path, (_CAT,), (_HEAD,), Clear(), (Bash("ls"),), (_TAIL,), (_CAT,))

    def test_nothing_dangles_after_going_back(self, tmp_path: Path) -> None:
        self.run_steps(tmp_path, (Bash("ls"),), (_CAT,), (_HEAD,), Rewind(2), (_TAIL,), (_CAT,))

    @pytest.mark.parametrize("marks", [Marks(0, 0), Marks(16_000, 12_000)], ids=["all", "much"])
    def test_what_was_cleared_stays_so_and_nothing_points_at_it(
        self, tmp_path: Path, marks: Marks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._set("clear", marks, monkeypatch)
        long = [(Bash(f"sed -n '{first},{first + 99}p' long.txt"),) for first in range(1, 1500, 100)]
        seen = self.run_steps(tmp_path, (_CAT,), (_HEAD,), *long, (_CAT,), (_TAIL,))
        noted = [{note for text in one.texts for note in NOTE.findall(text)} for one in seen]
        assert all(few <= more for few, more in pairwise(noted)), "a note was removed"
        assert len(noted[-1]) > 2, "nothing was cleared"
        assert not markers(seen[-2].results[0]), "a cleared result still counted as visible"

    # ------------------------------------------------------------ other readers, and failures of readcache

    def test_a_sub_agent_is_shown_what_its_parent_saw(self, tmp_path: Path) -> None:
        seen = self.run_steps(tmp_path, (_CAT,), (Delegate((_CAT, _HEAD, _CAT)),), (_TAIL,))
        assert seen[1].inner, "a `Delegate` gives what the sub-agent's model was sent"
        assert not markers(seen[1].inner[0].results[0])

    def test_what_a_sub_agent_saw_is_shown_to_its_parent(self, tmp_path: Path) -> None:
        seen = self.run_steps(tmp_path, (Delegate((_CAT,)),), (_CAT,))
        assert not markers(seen[1].results[0])

    def test_a_sub_agents_write_is_known_to_its_parent(self, tmp_path: Path) -> None:
        write = Bash("sed -i 's/number 7 /number seven /' shop.py")
        self.run_steps(tmp_path, (_CAT,), (Delegate((write,)),), (_CAT,))

    def test_a_store_that_cannot_be_used_costs_the_agent_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._set("store", tmp_path, monkeypatch)  # a directory is not a store
        seen = self.run_steps(tmp_path, (_CAT,), (_CAT,))
        assert not [text for one in seen for text in one.results if markers(text)]


def files_of(root: Path) -> dict[str, bytes]:
    """Return the files of a project and their final content, without names that start with a dot or an underscore."""
    paths = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
    return {str(p): (root / p).read_bytes() for p in paths if not any(part[0] in "._" for part in p.parts)}
