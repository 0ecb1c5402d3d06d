"""The contest of rivals.py: by which rules they leave lines out, and what the judge says of them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from contestants import Answer, Way, bash_and_read, exact_key, readcache, trimmed_lines, unfold
from rivals import MEASURED, Corpus, run
from visible import Conversation, Finding, read_lines

from readcache import Policy

BODY = [f"    line {number} of a function that does nothing but be long\n" for number in range(1, 31)]
TEXT = "".join(BODY)


def call(command: str, output: str) -> dict[str, Any]:
    return {"tool": "bash", "input": {"command": command}, "output": output, "cwd": "/w"}


def told(way: Way, *calls: dict[str, Any]) -> dict[str, float]:
    corpus = Corpus([])
    run(corpus, [list(calls)], {"default": way})
    return corpus.rows()["default"]


def found(lines: str, *shown: str, hidden: set[int] | None = None) -> Finding:
    conversation = Conversation()
    for text in shown:
        conversation.add(read_lines(text))
    return conversation.find(read_lines(lines)[:-1], hidden or set())


# ---------------------------------------------------------------- the judge


def test_lines_that_stand_one_after_another_stand_in_one_piece() -> None:
    assert found("b\nc\n", "a\nb\nc\nd\n") == Finding(0, 0, 2)
    assert found("b\nd\n", "a\nb\nc\nd\n") == Finding(0, 0, None)
    assert found("b\nc\n", "a\nb\n", "c\nd\n") == Finding(0, 0, None)


def test_a_line_of_another_indentation_was_never_shown() -> None:
    assert found("    return 1\n", "        return 1\n") == Finding(len("    return 1\n"), 0, None)


def test_a_line_that_was_left_out_is_not_shown() -> None:
    assert found("b\n", "a\nb\n", hidden={2}).never == 2


@pytest.mark.parametrize("front", ["     7\t", "7→", "7: ", "00007| ", "7:", "7-", "src/a.py:7:", "src/a.py-7-"])
def test_what_stands_in_front_of_a_line_is_looked_through_and_said(front: str) -> None:
    line = "    total = 1\n"
    assert found(front + line, line) == Finding(0, len(front + line), 1)
    assert found(line, front + line) == Finding(0, len(line), 1)


def test_an_added_line_of_a_diff_shows_the_line_and_is_not_shown_by_it() -> None:
    diff = "@@ -1,2 +1,2 @@\n context\n+new\n"
    assert found("new\n", diff) == Finding(0, 4, 3)
    conversation = Conversation()
    conversation.add(read_lines("context\nnew\n"))
    lines = read_lines(diff)
    assert conversation.find(lines[1:2], set()) == Finding(0, len(" context\n"), 1)
    assert conversation.find(lines[2:3], set()).never == len("+new\n")


# ---------------------------------------------------------------- the contestants


def test_an_exact_key_saves_the_very_same_request_alone() -> None:
    way = exact_key(bash_and_read)
    assert told(way, call("cat f", TEXT), call("cat f", TEXT))["cuts"] == 1
    assert told(way, call("cat f", TEXT), call("cat ./f", TEXT))["cuts"] == 0


def test_a_compaction_is_the_end_of_what_anybody_knows() -> None:
    calls = call("cat f", TEXT), {"tool": "_compact", "input": {}, "output": ""}, call("cat f", TEXT)
    for way in (exact_key, trimmed_lines):
        assert told(way(bash_and_read), *calls)["cuts"] == 0
    assert told(readcache(Policy.named("max"), bash_and_read), *calls)["cuts"] == 0


def test_a_ledger_of_trimmed_lines_leaves_out_what_was_never_shown() -> None:
    moved = "".join("    " + line for line in BODY)
    row = told(trimmed_lines(bash_and_read), call("cat f", TEXT), call("cat g", moved))
    assert (row["cuts"], row["never shown"]) == (1, 1)


def test_a_ledger_of_trimmed_lines_takes_a_set_of_lines_for_a_run() -> None:
    row = told(trimmed_lines(bash_and_read), call("cat f", TEXT), call("sort f", "".join(reversed(BODY))))
    assert (row["cuts"], row["never shown"], row["apart"], row["untold"]) == (1, 0, 1, 1)


def test_a_ledger_of_trimmed_lines_shows_failures_again() -> None:
    failed = TEXT + "TypeError: it is not a number\n" + TEXT
    assert told(trimmed_lines(bash_and_read), call("make", failed), call("make", failed))["cuts"] == 2


def test_a_ledger_of_trimmed_lines_has_its_floors() -> None:
    way = trimmed_lines(bash_and_read)
    short, whole = "".join(BODY[:4]), "".join(BODY[:16])  # 220 and 896 bytes
    assert told(way, call("cat f", TEXT), call("head f", short))["cuts"] == 0
    assert told(way, call("cat f", TEXT), call("head f", whole))["cuts"] == 0
    assert told(way, call("cat f", TEXT), call("head f", whole + "new\n"))["cuts"] == 1
    payload = json.dumps(BODY, indent=1)
    assert told(way, call("curl x", payload), call("curl x", payload))["cuts"] == 0


def test_the_lines_behind_a_pointer_of_a_fold_are_counted_out() -> None:
    marker = "[↑2L same as msg 4 +3L: 'b']"
    answer = unfold("a\nb\nc\nd\n", f"a\n{marker}\nd\n")
    assert [(replacement.lines, replacement.marker) for replacement in answer.replacements] == [(range(1, 3), marker)]
    assert unfold("a\nb\n", "[↑3L same as msg 2: 'a']").replacements[0].lines == range(2)  # with the end of the text
    assert unfold(marker, marker) == Answer(len(marker))


def test_ours_leaves_out_nothing_that_was_never_shown_and_says_where_each_part_stands() -> None:
    parts = ["".join(BODY[:15]), "".join(BODY[15:])]
    first, second, third = (
        call("head -15 f", parts[0]), call("tail -n +16 f", parts[1]), call("cat f", TEXT)
    )  # fmt: skip
    row = told(readcache(Policy(), bash_and_read), first, second, third)
    assert (row["cuts"], row["never shown"], row["apart"], row["untold"]) == (1, 0, 1, 0)


def test_an_edit_that_failed_wrote_nothing() -> None:
    edit = {"tool": "edit", "input": {"path": "/w/f"}, "cwd": "/w"}
    way = readcache(Policy(), bash_and_read)
    for output, replacements in (("The file /w/f does not exist", 1), ("The file /w/f has been updated", 0)):
        row = told(way, call("cat f", TEXT), {**edit, "output": output}, call("head -25 f", "".join(BODY[:25])))
        assert row["cuts"] == replacements


def test_without_data_and_wheel_made_up_sessions_are_run_and_the_missing_row_is_named() -> None:
    script = Path(__file__).with_name("rivals.py")
    done = subprocess.run([sys.executable, script, "--short", "--check"], capture_output=True, text=True, check=True)
    assert "headroom: left out" in done.stdout
    assert [name for name in ("exact key", "trimmed lines", "max") if f"\n{name} " not in done.stdout] == []


# ---------------------------------------------------------------- what was measured


def test_the_figures_tell_of_which_recordings_they_are_and_of_no_machine() -> None:
    text = MEASURED.read_text(encoding="utf-8")
    *parts, whole = json.loads(text)["corpora"]
    assert "/" not in text
    for fact in ("sessions", "calls", "characters"):
        assert whole[fact] == sum(part[fact] for part in parts) > 0
    assert whole["sha256"] == [digest for part in parts for digest in part["sha256"]]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in whole["sha256"])


def test_in_the_figures_ours_left_out_nothing_that_was_never_shown() -> None:
    for corpus in json.loads(MEASURED.read_text(encoding="utf-8"))["corpora"]:
        ours = {name: corpus["contestants"][name] for name in ("default", "delta", "max")}
        assert [name for name, row in ours.items() if row["never shown"]] == []
