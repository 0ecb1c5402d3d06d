from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.core.model.text import (
    GREP,
    bodies,
    count_lines,
    digest,
    find_separator,
    is_blank,
    split_lines,
    split_number,
)
from tests.helpers import strategies

SEPARATORS = ("\t", "→", ": ", "| ", ". ", ":", "|")  # that agents meet


@given(strategies.texts())
def test_joining_the_lines_gives_the_text_but_for_a_final_newline(text: str) -> None:
    assert "\n".join(split_lines(text)) in (text, text.removesuffix("\n"))


@given(strategies.texts())
def test_counting_lines_is_counting_what_splitting_gives(text: str) -> None:
    assert count_lines(text) == len(split_lines(text))


@pytest.mark.parametrize("end", ["\r", "\f", "\v", "\x1c", "\x85", "\u2028", "\u2029"])
def test_nothing_but_a_newline_ends_a_line(end: str) -> None:
    assert split_lines(f"a{end}b\nc") == [f"a{end}b", "c"]


def test_the_empty_text_has_no_line_and_a_newline_has_one() -> None:
    assert (split_lines(""), split_lines("\n")) == ([], [""])


@pytest.mark.parametrize("sep", SEPARATORS)
@given(number=st.integers(0, 999_999_999), width=st.integers(0, 9), body=st.text("ab :|.→\t-1"))
def test_a_numbered_line_splits_into_its_number_and_its_body(sep: str, number: int, width: int, body: str) -> None:
    assert split_number(f"{number:{width}}{sep}{body}", sep) == (number, body)


@pytest.mark.parametrize("line", ["", "a", "a1\tx", "\tx", "12", "12x", "1234567890\tx"])
def test_other_lines_have_no_number(line: str) -> None:
    assert split_number(line, "\t") is None


def test_grep_marks_matches_and_context_differently() -> None:
    assert [split_number(line, GREP) for line in ("7:a", "8-b", "9.c")] == [(7, "a"), (8, "b"), None]


def test_a_line_without_a_number_stays_whole_among_numbered_ones() -> None:
    assert bodies(["1\ta", "--", "3\tb"], "\t") == ["a", "--", "b"]
    assert bodies(["1\ta"], None) == ["1\ta"]


@pytest.mark.parametrize("sep", SEPARATORS)
def test_the_usual_forms_of_numbers_are_recognised(sep: str) -> None:
    lines = [f"{n:5}{sep}{'' if n == 9 else 'word'}" for n in range(20)]
    assert find_separator([*lines, "a notice"]) == sep


def test_a_text_without_numbers_has_no_separator() -> None:
    assert find_separator(["one", "two", "3: three"]) is None
    assert find_separator([]) is None


@given(strategies.texts(), strategies.texts())
def test_different_texts_have_different_digests(a: str, b: str) -> None:
    assert (digest(a) == digest(b)) == (a == b)


def test_lines_of_braces_and_blanks_count_as_blank() -> None:
    assert [is_blank(line) for line in ("", "  }", "\t});", "    pass", "else")] == [True, True, True, False, False]
