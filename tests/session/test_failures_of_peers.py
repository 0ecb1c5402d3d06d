"""Failures of tools like this one: what must not count as shown, under each preset."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Omitted, Outcome, Policy, Reason, Session
from readcache.core.model.policy import PRESETS
from tests.helpers.files import LINES, TEXT, text, with_numbers
from tests.helpers.replies import omits, sources


def under(preset: str) -> Session:
    """A session under a preset, whatever an omission is worth."""
    return Session("/w", policy=replace(Policy.named(preset), min_worth=0))


@pytest.fixture(params=PRESETS)
def session(request: pytest.FixtureRequest) -> Session:
    """A session under each preset."""
    return under(request.param)


# ------------------------------------------------------------ N1: lines that are nearly the same

NEARLY: dict[str, Callable[[str], str]] = {
    "indented": lambda line: f"    {line}",
    "indented by one": lambda line: f" {line}",
    "indented by a tab": lambda line: f"\t{line}",
    "blanks behind": lambda line: f"{line}  ",
    "carriage return": lambda line: f"{line}\r",
    "capitals": str.upper,
    "blanks doubled": lambda line: line.replace(" ", "  "),
    "another blank": lambda line: line.replace(" ", "\u00a0"),
}


@pytest.mark.parametrize("how", NEARLY)
@pytest.mark.parametrize("command", ["cat f", "cat g", "cat -n f", "./show f"])
def test_lines_that_differ_in_blanks_or_case_alone_are_shown(session: Session, how: str, command: str) -> None:
    """A fold compared trimmed lines, so that a block with another indentation was "already shown"."""
    for before in ("cat f", "cat -n f", "./show"):
        session.observe(before, with_numbers() if "-n" in before else TEXT)
    lines = [NEARLY[how](line) for line in TEXT.splitlines()]
    form = "{:6}\t{}\n" if "-n" in command else "{1}\n"
    output = "".join(form.format(number, line) for number, line in enumerate(lines, 1))
    assert session.observe(command, output).text == output


# ------------------------------------------------------------ N2: lines that do not stand in one piece


WHAT = re.compile(r"(?:output lines? (?P<lines>[\d-]+)|this output, (?P<count>\d+) lines?), (?:same as )?above")
SOURCE = re.compile(r'((?:[\d-]+, )*[\d-]+)? ?in (?:an earlier )?"([^"]*)"(?: as lines? ([\d, -]+) of that output)?')


def numbers(spans: str) -> list[list[int]]:
    """The numbers of each of `5-9, 12`."""
    ends = [list(map(int, span.split("-"))) for span in spans.strip(", ").split(", ")]
    return [list(range(span[0], span[-1] + 1)) for span in ends]


def reads_as_it_is(session: Session, command: str, output: str, shown: dict[str, str]) -> bool:
    """Observes it. True if whoever follows the markers, each stretch as one piece, gets the lines of the output."""
    reply = session.observe(command, output)
    shown[command] = reply.text
    lines, followed = output.splitlines(), 0
    for marker in session.markers_in(reply.text):
        what = WHAT.search(marker)
        assert what is not None
        for spans, source, there in SOURCE.findall(marker[what.end() :]):
            here = numbers(spans or what["lines"] or f"1-{what['count']}")
            followed += sum(map(len, here))
            ours = [[lines[n - 1] for n in span] for span in here]
            theirs = shown[source].splitlines()
            if not there and not all("\n".join(["", *each, ""]) in "\n".join(["", *theirs, ""]) for each in ours):
                return False
            if there and list(chain(*ours)) != [theirs[n - 1] for n in chain(*numbers(there))]:
                return False
    return followed == sum(s.end - s.start + 1 for s in reply.segments if isinstance(s, Omitted))


@pytest.mark.parametrize("lines", [LINES[:60:2], LINES[59::-1], sorted(LINES[:60], key=lambda line: line[::-1])])
def test_lines_that_stand_here_and_there_are_shown_or_named_a_few_at_a_time(session: Session, lines: list[str]) -> None:
    shown: dict[str, str] = {}
    output = "".join(f"{line}\n" for line in lines)
    assert reads_as_it_is(session, "./list", TEXT, shown)
    assert reads_as_it_is(session, "./list --again", output, shown)
    assert all(len(marker) <= 130 for marker in session.markers_in(shown["./list --again"]))


def test_a_line_that_disappeared_is_not_passed_over(session: Session) -> None:
    session.observe("./list", TEXT)
    reply = session.observe("./list --again", text(1, 29) + text(31, 60))
    if session.policy.any_output:
        assert 'output lines 1-59, same as above in "./list" as lines 1-29, 31-60 of that output' in reply.text
    else:
        assert not omits(reply)


BLOCK = st.tuples(st.sampled_from("abc"), st.integers(1, 40), st.integers(3, 20))


@given(st.lists(st.lists(BLOCK, min_size=1, max_size=6), min_size=2, max_size=4))
def test_each_stretch_that_a_marker_names_stands_in_one_piece_at_its_source(
    outputs: list[list[tuple[str, int, int]]],
) -> None:
    """A set of lines was folded that stood nowhere in one piece."""
    for preset in PRESETS:
        session, shown = under(preset), dict[str, str]()
        for number, blocks in enumerate(outputs):
            output = "".join(text(first, first + count - 1, of=f"{name} line") for name, first, count in blocks)
            assert reads_as_it_is(session, f"./show {number}", output, shown)


@pytest.mark.parametrize("preset", ["delta", "max"])
def test_parts_of_a_file_that_changed_places_are_named_in_their_order(preset: str) -> None:
    session = under(preset)
    session.observe("cat f", TEXT)
    session.wrote("f")
    reply = session.observe("cat f", text(41, 60) + text(1, 40))
    assert 'f lines 1-60, same as above in "cat f" as lines 41-60, 1-40;' in reply.text


# ------------------------------------------------------------ N3: what a diff changes

HEAD = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n"


def hunk(first: int, *, old: str = "", new: str = "", around: int = 3) -> str:
    """A hunk that takes lines `old` away behind line `first` + `around` of the file, and puts lines `new` there."""
    minus, plus = (["-" + line for line in old.splitlines()], ["+" + line for line in new.splitlines()])
    before, behind = ([" " + LINES[first + n - 1] for n in range(at, at + around)] for at in (0, around))
    header = f"@@ -{first},{2 * around + len(minus)} +{first},{2 * around + len(plus)} @@ def g"
    return "\n".join([header, *before, *minus, *plus, *behind]) + "\n"


NEW, OLD = text(1, 20, of="new"), text(1, 20, of="old")


def marks(diff: str) -> list[str]:
    return [line for line in diff.splitlines() if line.startswith(("+", "-", "@@"))]


@pytest.mark.parametrize("seen_by", ["a read", "a listing", "an edit", "a heredoc", "another diff"])
def test_what_a_diff_changes_is_shown_wherever_its_lines_were_seen(session: Session, seen_by: str) -> None:
    """A diff's `+` and `-` lines were folded as their text was visible, and the change was gone."""
    session.observe("cat f", text(1, 60) + NEW + OLD)
    changed = "".join(f"{line}\n" for line in hunk(10, old=OLD, new=NEW).splitlines()[1:])
    if seen_by == "a read":
        session.observe("cat notes.txt", changed)
    elif seen_by == "a listing":
        session.observe("./show", changed)
    elif seen_by == "an edit":
        session.wrote("notes.txt", content=changed)
    elif seen_by == "a heredoc":
        session.observe(f"cat > notes.txt <<'EOF'\n{changed}EOF", "")
    else:
        session.observe("git diff", HEAD.format("f") + hunk(40, old=OLD, new=NEW))
    diff = HEAD.format("f") + hunk(10, old=OLD, new=NEW) + hunk(80, old=text(90, 99), new=text(100, 109))
    reply = session.observe("git diff HEAD", diff)
    assert set(marks(diff)) <= set(reply.text.splitlines())


def test_of_a_change_that_was_seen_a_part_is_not_left_out(session: Session) -> None:
    session.observe("git diff", HEAD.format("f") + hunk(10, old=OLD, new=NEW))
    longer = HEAD.format("f") + hunk(10, old=OLD, new=NEW + "one line more\n")
    assert marks(session.observe("git diff", longer).text) == marks(longer)


def test_the_whole_diff_again_is_named(session: Session) -> None:
    diff = HEAD.format("f") + hunk(10, old=OLD, new=NEW) + hunk(80, new=text(90, 99))
    session.observe("git diff", diff, call_id="first")
    reply = session.observe("git diff", diff)
    assert (reply.outcome, reply.reason, sources(reply)) == (Outcome.IDENTICAL_OUTPUT, Reason.IDENTICAL, {"first"})
    assert f'this output, {diff.count(chr(10))} lines, above in "git diff"' in reply.text


def test_a_whole_change_that_was_seen_in_one_piece_may_be_left_out_of_a_longer_diff() -> None:
    session = under("max")
    one, other = (HEAD.format(name) + hunk(10, old=OLD, new=NEW + name) for name in "fg")
    session.observe("git diff f", one, call_id="first")
    reply = session.observe("git diff", one + other)
    assert sources(reply) == {"first"}
    assert 'above in "git diff f"' in reply.text
    assert reply.text.endswith(other)


# ------------------------------------------------------------ N4: the host numbers the lines itself


@pytest.mark.parametrize("seen", [[(1, 20)], [(41, 60)], [(21, 40)], [(1, 9), (30, 49)], [(1, 20), (41, 60)]])
def test_a_host_that_numbers_the_lines_itself_is_given_no_hole_among_them(
    session: Session, seen: list[tuple[int, int]]
) -> None:
    """The host numbers lines after the hook, and a hole among them misnumbered the rest."""
    for first, last in seen:
        session.observe_read("f", text(first, last), start=first, end=last, edges_only=True)
    reply = session.observe_read("f", TEXT, edges_only=True)
    left_out = [(s.start, s.end) for s in reply.segments if isinstance(s, Omitted)]
    assert left_out == [lines for lines in seen if 1 in lines or 60 in lines]
    shown = [line for line in reply.text.splitlines() if not session.markers_in(line)]
    at = LINES.index(shown[0])
    assert shown == LINES[at : at + len(shown)], "those that are shown follow one another, so that one count is right"


# ------------------------------------------------------------ N5: a failure is the news

LOG = text(1, 30, of="test") + "FAILED tests/test_shop.py::test_tax - AssertionError: 7 != 8\n1 failed, 29 passed\n"


def test_that_the_same_failure_came_again_is_said_with_its_exit_status(session: Session) -> None:
    """A failure that was repeated was folded, though that it came again was the news."""
    session.observe("pytest -q", LOG, exit_code=1)
    reply = session.observe("pytest -q", LOG, exit_code=1)
    assert (reply.outcome, reply.exit_code) == (Outcome.IDENTICAL_OUTPUT, 1)
    assert "; ran now, exit 1]" in reply.text


@pytest.mark.parametrize(("first", "again", "said"), [(0, 2, "exit 2"), (1, 0, "exit 0"), (1, None, "ran now]")])
def test_the_exit_status_is_that_of_this_call(session: Session, first: int, again: int | None, said: str) -> None:
    session.observe("./check", LOG, exit_code=first)
    (marker,) = session.markers_in(session.observe("./check", LOG, exit_code=again).text)
    assert said in marker


def test_where_a_traceback_was_seen_in_another_log_the_exit_status_is_said_too() -> None:
    session = under("max")
    session.observe("pytest -q tests/test_shop.py", "one file\n" + LOG, exit_code=1)
    reply = session.observe("pytest -q", "all files\n" + LOG + "and 200 more passed\n", exit_code=1)
    assert reply.outcome is Outcome.PARTIAL
    assert "; ran now, exit 1]" in reply.text


def test_a_read_that_failed_in_part_says_so_again(session: Session) -> None:
    output = TEXT + "cat: missing: No such file or directory\n"
    session.observe("cat f missing", output, exit_code=1)
    reply = session.observe("cat f missing", output, exit_code=1)
    assert omits(reply)
    assert "exit 1; repeat this call to see]" in reply.text


def test_a_failure_that_is_new_is_shown_though_all_around_it_was_seen(session: Session) -> None:
    session.observe("pytest -q", text(1, 30, of="test"), exit_code=0)
    assert "FAILED tests/test_shop.py::test_tax - AssertionError: 7 != 8\n" in session.observe("pytest -q", LOG).text
