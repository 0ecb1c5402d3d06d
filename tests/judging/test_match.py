"""Claims laid over outputs: what `match` says must fit the output, and where it can know it must know."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.judging.match import match
from readcache.model.claims import Anything, Claim, FileLines, Literal
from readcache.model.events import Delivered, Moment, Piece
from readcache.model.text import split_number
from readcache.model.view import View

F, G = "/w/f", "/w/g"
LINES = [f"line {n}" for n in range(1, 31)]
OTHER = [f"row {n}" for n in range(1, 11)]


def places(pieces: Sequence[Piece]) -> list[tuple[str, int, int, int]]:
    """(file, index of the first output line, how many, number of the first)."""
    return [(piece.keys[0] if len(piece.keys) == 1 else "?", piece.at, piece.count, piece.first) for piece in pieces]


def numbered(first: int, last: int) -> list[str]:
    return [f"{n:6}\tline {n}" for n in range(first, last + 1)]


def knowing(*files: tuple[str, list[str]]) -> View:
    """A view in which whole files were shown."""
    view = View()
    for call, (key, lines) in enumerate(files, 1):
        text = "".join(line + "\n" for line in lines)
        piece = Piece((key,), 0, len(lines), 1, eof=True)
        view.apply(Delivered(f"c{call}", text, "cat", pieces=(piece,), when=Moment(call)))
    return view


def test_a_whole_file_is_all_of_the_output() -> None:
    assert places(match([FileLines((F,))], LINES, View())) == [(F, 0, 30, 1)]


def test_a_range_begins_at_its_number() -> None:
    assert places(match([FileLines((F,), ((11, 20),))], LINES[10:20], View())) == [(F, 0, 10, 11)]


def test_several_ranges_follow_one_another() -> None:
    claim = FileLines((F,), ((1, 3), (8, 9)))
    assert places(match([claim], [*LINES[:3], *LINES[7:9]], View())) == [(F, 0, 3, 1), (F, 3, 2, 8)]


def test_an_output_shorter_than_the_range_ends_with_the_file() -> None:
    (piece,) = match([FileLines((F,), ((21, 90),))], LINES[20:], View())
    assert (piece.first, piece.count, piece.eof) == (21, 10, True)


def test_more_lines_than_asked_for_have_no_certain_place() -> None:
    pieces = match([FileLines((F,), ((1, 3),))], LINES[:5], View())
    assert all(piece.first == 0 for piece in pieces)


def test_numbers_in_the_output_decide() -> None:
    output = ["a header", *numbered(5, 9), "", *numbered(20, 22)]
    pieces = match([FileLines((F,), None, "\t")], output, View())
    assert places(pieces) == [(F, 1, 5, 5), (F, 7, 3, 20)]


def test_numbers_outside_the_range_are_not_the_files() -> None:
    assert match([FileLines((F,), ((1, 10),), "\t")], numbered(50, 60), View()) == ()


def test_a_banner_is_a_border() -> None:
    claims: list[Claim] = [FileLines((F,)), Literal("---\n"), FileLines((G,))]
    assert places(match(claims, [*LINES, "---", *OTHER], View())) == [(F, 0, 30, 1), (G, 31, 10, 1)]


def test_a_missing_banner_does_not_hide_what_stands_there() -> None:
    claims: list[Claim] = [Literal("=== f ===\n"), FileLines((F,))]
    assert places(match(claims, LINES, View())) == [(F, 0, 30, 1)]


def test_full_ranges_that_add_up_to_the_output_are_borders() -> None:
    claims: list[Claim] = [FileLines((F,), ((1, 5),)), Literal("\n"), FileLines((G,), ((2, 4), (7, 7)))]
    output = [*LINES[:5], "", *OTHER[1:4], OTHER[6]]
    assert places(match(claims, output, View())) == [(F, 0, 5, 1), (G, 6, 3, 2), (G, 9, 1, 7)]


def test_one_file_of_unknown_length_has_what_the_others_leave() -> None:
    claims = [FileLines((F,), ((1, 5),)), FileLines((G,))]
    view = knowing((F, LINES))
    assert places(match(claims, [*LINES[:5], *OTHER], view)) == [(F, 0, 5, 1), (G, 5, 10, 1)]


def test_known_lengths_tell_two_whole_files_apart() -> None:
    view = knowing((F, LINES), (G, OTHER))
    assert places(match([FileLines((F,)), FileLines((G,))], [*LINES, *OTHER], view)) == [(F, 0, 30, 1), (G, 30, 10, 1)]


@pytest.mark.parametrize("second", [FileLines((G,)), FileLines((G,), ((1, 99),)), FileLines((G,), None)])
def test_where_the_lengths_do_not_fit_the_border_is_open(second: FileLines) -> None:
    view = knowing((F, LINES), (G, OTHER))
    (piece,) = match([FileLines((F,), ((1, 5),)), second], [*LINES[:5], *OTHER, "more"], view)
    assert (set(piece.keys), piece.first, piece.count) == ({F, G}, 0, 16)


def test_two_unknown_files_in_a_row_are_lines_of_either() -> None:
    (piece,) = match([FileLines((F,)), FileLines((G,))], [*LINES, *OTHER], View())
    assert (set(piece.keys), piece.first, piece.count) == ({F, G}, 0, 40)


def test_an_output_that_nobody_can_foresee_is_nobodys() -> None:
    assert match([Anything()], LINES, View()) == ()
    assert match([], LINES, View()) == ()


def test_a_glob_stands_for_the_files_seen_before() -> None:
    view = knowing(("/w/a.py", OTHER), ("/w/b.txt", OTHER))
    (piece,) = match([FileLines(("/w/*.py",))], OTHER, view)
    assert "/w/a.py" in piece.keys
    assert "/w/b.txt" not in piece.keys


CLAIMS = st.one_of(
    st.builds(
        FileLines,
        st.sampled_from([(F,), (G,), (F, G), ("/w/*",)]),
        st.sampled_from([None, ((1, None),), ((1, 4),), ((2, 3), (6, 9)), ((25, None),)]),
        st.sampled_from([None, None, "\t", ":"]),
        st.sampled_from([0, 0, 3]),
        st.booleans(),
    ),
    st.sampled_from([Literal("---\n"), Literal("\n"), Literal("line 3\n"), Literal("")]),
    st.just(Anything()),
)
OUTPUTS = st.lists(st.sampled_from([*LINES[:9], *OTHER[:4], *numbered(1, 6), "---", "", "7:x", "8-y"]), max_size=14)


@given(st.lists(CLAIMS, max_size=5), OUTPUTS, st.booleans())
def test_pieces_lie_within_the_output_in_order_and_apart(claims: list[Claim], output: list[str], knows: bool) -> None:
    pieces = match(claims, output, knowing((F, LINES), (G, OTHER)) if knows else View())
    at = 0
    for piece in pieces:
        assert at <= piece.at
        assert piece.count > 0
        assert piece.keys
        at = piece.at + piece.count
    assert at <= len(output)


@given(st.lists(CLAIMS, max_size=5), OUTPUTS)
def test_numbered_pieces_say_the_numbers_that_stand_there(claims: list[Claim], output: list[str]) -> None:
    for piece in match(claims, output, View()):
        if piece.sep is not None and piece.first:
            for k in range(piece.count):
                line = output[piece.at + k]
                found = [split_number(line, sep) for sep in (piece.sep[:1], piece.sep[-1:])]
                assert piece.first + piece.shift + k in [pair[0] for pair in found if pair]


@pytest.mark.parametrize("size", [20_000])
def test_a_long_output_of_many_parts_takes_no_time(size: int) -> None:
    claims: list[Claim] = []
    for n in range(20):
        claims += [Literal(f"=== {n} ===\n"), FileLines((f"/w/{n}",))]
    output = [f"=== {k // (size // 20)} ===" if k % (size // 20) == 0 else f"line {k}" for k in range(size)]
    assert len(match(claims, output, View())) == 20
