"""Which separator stands after the numbers of lines: the bytes decide, and a wrong one never makes an omission."""

from __future__ import annotations

import itertools

import pytest

from readcache import Omitted, Policy, Reply, Session
from readcache.core.model.text import NUMBER, bodies, find_numbering
from tests.helpers.replies import omits, sources

FORMS = {
    "12<tab>x": "{n}\t",
    "12→x": "{n:6d}→",
    "12: x": "{n}: ",
    "12:x": "{n}:",
    "00012| x": "{n:05d}| ",
    "12|x": "{n:3d}|",
    "12 | x": "{n:4d} | ",
    "12. x": "{n}. ",
    "12) x": "{n}) ",
    "L12: x": "L{n}: ",
    "line 12: x": "line {n}: ",
    "[12] x": "[{n}] ",
    "[  12] x": "[{n:4d}] ",
}
TEXTS = {
    "blank lines": [f"    value_{n} = compute({n * 7919 % 1000})" if n % 7 else "" for n in range(1, 61)],
    "no blank lines": [f"value_{n} = compute({n * 7919 % 1000})" for n in range(1, 61)],
    "all indented": [f"    value_{n} = compute({n * 7919 % 1000})" for n in range(1, 61)],
}
PAIRS = [(form, text) for form in FORMS for text in TEXTS if (form, text) != ("12|x", "blank lines")]


def raw(lines: list[str], first: int = 1, last: int = 60) -> str:
    return "".join(line + "\n" for line in lines[first - 1 : last])


def numbered(lines: list[str], form: str, first: int = 1, last: int = 60) -> str:
    return "".join(FORMS[form].format(n=n) + lines[n - 1] + "\n" for n in range(first, last + 1))


def named(reply: Reply) -> set[int]:
    """The lines of the file that markers name."""
    gaps = [segment for segment in reply.segments if isinstance(segment, Omitted)]
    return {n for gap in gaps if gap.path for n in range(gap.start, gap.end + 1)}


def read(session: Session, lines: list[str], form: str, call_id: str, first: int = 1, last: int = 60) -> Reply:
    output = numbered(lines, form, first, last)
    return session.observe_read("f", output, start=first, end=last, numbered=True, call_id=call_id)


@pytest.mark.parametrize(("form", "text"), PAIRS)
def test_a_raw_read_of_what_a_tool_numbered_is_omitted(session: Session, form: str, text: str) -> None:
    lines = TEXTS[text]
    read(session, lines, form, "tool")
    reply = session.observe("sed -n 20,50p f", raw(lines, 20, 50))
    assert (sources(reply), named(reply)) == ({"tool"}, set(range(20, 51)))
    assert "f lines 20-50" in reply.text


@pytest.mark.parametrize("first", ["cat f", "cat -n f", "grep -n '' f"])
@pytest.mark.parametrize(("form", "text"), PAIRS)
def test_numbered_lines_that_a_command_showed_are_omitted(session: Session, form: str, text: str, first: str) -> None:
    lines = TEXTS[text]
    as_shown = {"cat f": "", "cat -n f": "{:6d}\t", "grep -n '' f": "{}:"}[first]
    session.observe(first, "".join(f"{as_shown.format(n)}{line}\n" for n, line in enumerate(lines, 1)), call_id="shell")
    reply = read(session, lines, form, "tool", 20, 50)
    assert (sources(reply), named(reply)) == ({"shell"}, set(range(20, 51)))
    assert "f lines 20-50" in reply.text


@pytest.mark.parametrize("form", FORMS)
def test_lines_that_changed_are_shown_whatever_the_form(session: Session, form: str) -> None:
    old = TEXTS["no blank lines"]
    new = [line if n != 30 else "something else stands here" for n, line in enumerate(old, 1)]
    read(session, old, form, "tool")
    assert new[29] in session.observe("cat f", raw(new)).text
    other = Session("/w")
    other.observe("cat f", raw(old))
    assert new[29] in read(other, new, form, "tool").text


def test_a_separator_is_not_known_by_one_line(session: Session) -> None:
    lines = TEXTS["no blank lines"]
    session.observe("cat f", raw(lines))
    others = [*lines[:10], *(f"other_{n} = compute({n})" for n in range(11, 61))]
    assert not omits(read(session, others[9:], "12: x", "tool", 1, 40))


@pytest.mark.parametrize("blanks", [0, 1, 2])
def test_lines_of_a_copy_with_one_blank_more_are_no_source(blanks: int) -> None:
    """`12:  x` is " x" or "  x": where the file itself was never seen, neither "x" nor " x" of a copy will do."""
    session = Session("/w", policy=Policy.named("max"))
    lines = TEXTS["no blank lines"]
    copy = [" " * blanks + line for line in lines]
    session.observe("cat copy", raw(copy))
    says: tuple[bool | str, ...] = (True, ": ", ":")
    for form, numbers in itertools.product(("12: x", "12:x"), says):
        output = numbered([f" {line}" for line in lines], form)
        reply = session.observe_read("f", output, numbered=numbers)
        assert not omits(reply) or blanks == 1 or "copy" not in reply.text


def test_what_the_host_says_of_its_numbers_counts_where_lines_do_not_tell() -> None:
    lines = TEXTS["no blank lines"]
    hosts: tuple[tuple[bool | str, bool], ...] = ((True, False), (": ", True), (":", True), ("| ", False))
    for says, known in (*hosts, (f"[{NUMBER}] ", False)):
        session = Session("/w")
        session.observe_read("f", numbered(lines, "12: x"), numbered=says)
        assert session.view.covers("/w/f", 1, 60) is known


@pytest.mark.parametrize("says", [":", "|", "no such form", f"[{NUMBER}]"])
def test_lines_in_view_count_more_than_what_the_host_says(session: Session, says: str) -> None:
    lines = TEXTS["no blank lines"]
    session.observe("cat f", raw(lines), call_id="shell")
    reply = session.observe_read("f", numbered(lines, "12: x"), numbered=says)
    assert (sources(reply), named(reply)) == ({"shell"}, set(range(1, 61)))


@pytest.mark.parametrize("says", [True, ":", ": "])
def test_a_wrong_separator_does_not_make_a_file_look_changed(session: Session, says: bool | str) -> None:
    lines = TEXTS["all indented"]
    read_again = [session.observe_read("f", numbered(lines, form), numbered=says) for form in ("12: x", "12: x")]
    assert omits(read_again[1])
    session.observe("cat f", raw(lines), call_id="shell")
    reply = session.observe("sed -n 20,50p f", raw(lines, 20, 50))
    assert omits(reply)
    assert "changed" not in reply.text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", TEXTS)
def test_the_separator_of_each_form_is_possible(form: str, text: str) -> None:
    shown = numbered(TEXTS[text], form).splitlines()
    numbering = find_numbering(shown)
    assert numbering is not None
    assert TEXTS[text] in [bodies(shown, sep) for sep in numbering.possible]


@pytest.mark.parametrize("line", ["", "x", "12", "12 apples", "fn 12(x)", "0.5 and more", "[12", "line 12"])
def test_lines_with_a_number_somewhere_are_not_surely_numbered(line: str) -> None:
    numbering = find_numbering([line] * 9)
    assert numbering is None or len(numbering.likely) != 1
