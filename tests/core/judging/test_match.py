"""Claims laid over outputs: what `match` says must fit the output, and where it can know it must know."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.core.judging.match import OutputFacts, map_output
from readcache.core.model.claims import Anything, Claim, FileLines, Literal
from readcache.core.model.events import Delivered, MappedSpan, Moment
from readcache.core.model.text import split_number
from readcache.core.model.view import View

F, G = "/w/f", "/w/g"
LINES = [f"line {n}" for n in range(1, 31)]
OTHER = [f"row {n}" for n in range(1, 11)]


def matched(source_map: Sequence[MappedSpan]) -> list[tuple[str, int, int, int]]:
    """(file, index of the first output line, how many, number of the first)."""
    return [
        (mapped.keys[0] if len(mapped.keys) == 1 else "?", mapped.at, mapped.count, mapped.first)
        for mapped in source_map
    ]


def numbered(first: int, last: int) -> list[str]:
    return [f"{n:6}\tline {n}" for n in range(first, last + 1)]


def knowing(*files: tuple[str, list[str]]) -> View:
    """A view in which whole files were shown."""
    view = View()
    for call, (key, lines) in enumerate(files, 1):
        text = "".join(line + "\n" for line in lines)
        mapped = MappedSpan((key,), 0, len(lines), 1, eof=True)
        view.apply(Delivered(f"c{call}", text, "cat", source_map=(mapped,), when=Moment(call)))
    return view


def test_a_whole_file_is_all_of_the_output() -> None:
    assert matched(map_output([FileLines((F,))], LINES, View())) == [(F, 0, 30, 1)]


def test_a_range_begins_at_its_number() -> None:
    assert matched(map_output([FileLines((F,), (11, 20))], LINES[10:20], View())) == [(F, 0, 10, 11)]


def test_an_output_shorter_than_the_range_ends_with_the_file() -> None:
    (mapped,) = map_output([FileLines((F,), (21, 90))], LINES[20:], View())
    assert (mapped.first, mapped.count, mapped.eof) == (21, 10, True)


def test_more_lines_than_asked_for_have_no_certain_place() -> None:
    source_map = map_output([FileLines((F,), (1, 3))], LINES[:5], View())
    assert all(mapped.first == 0 for mapped in source_map)


def test_numbers_in_the_output_decide() -> None:
    output = ["a header", *numbered(5, 9), "", *numbered(20, 22)]
    source_map = map_output([FileLines((F,), None, "\t")], output, View())
    assert matched(source_map) == [(F, 1, 5, 5), (F, 7, 3, 20)]


def test_numbers_outside_the_range_are_not_the_files() -> None:
    assert map_output([FileLines((F,), (1, 10), "\t")], numbered(50, 60), View()) == ()


def test_a_banner_is_a_border() -> None:
    claims: list[Claim] = [FileLines((F,)), Literal("---\n"), FileLines((G,))]
    assert matched(map_output(claims, [*LINES, "---", *OTHER], View())) == [(F, 0, 30, 1), (G, 31, 10, 1)]


def test_a_missing_banner_does_not_hide_what_stands_there_but_its_numbers_are_open() -> None:
    claims: list[Claim] = [Literal("=== f ===\n"), FileLines((F,))]
    assert matched(map_output(claims, LINES, View())) == [(F, 0, 30, 0)]


def test_full_ranges_that_add_up_to_the_output_are_borders() -> None:
    claims: list[Claim] = [FileLines((F,), (1, 5)), Literal("\n"), FileLines((G,), (2, 4))]
    output = [*LINES[:5], "", *OTHER[1:4]]
    assert matched(map_output(claims, output, View())) == [(F, 0, 5, 1), (G, 6, 3, 2)]


def test_one_file_of_unknown_length_has_what_the_others_leave() -> None:
    claims = [FileLines((F,), (1, 5)), FileLines((G,))]
    view = knowing((F, LINES))
    assert matched(map_output(claims, [*LINES[:5], *OTHER], view)) == [(F, 0, 5, 1), (G, 5, 10, 1)]


def test_known_lengths_tell_two_whole_files_apart() -> None:
    view = knowing((F, LINES), (G, OTHER))
    assert matched(map_output([FileLines((F,)), FileLines((G,))], [*LINES, *OTHER], view)) == [
        (F, 0, 30, 1),
        (G, 30, 10, 1),
    ]


@pytest.mark.parametrize("second", [FileLines((G,)), FileLines((G,), (1, 99)), FileLines((G,), None)])
def test_where_the_lengths_do_not_fit_the_border_is_open(second: FileLines) -> None:
    view = knowing((F, LINES), (G, OTHER))
    (mapped,) = map_output([FileLines((F,), (1, 5)), second], [*LINES[:5], *OTHER, "more"], view)
    assert (set(mapped.keys), mapped.first, mapped.count) == ({F, G}, 0, 16)


def test_two_unknown_files_in_a_row_are_lines_of_either() -> None:
    (mapped,) = map_output([FileLines((F,)), FileLines((G,))], [*LINES, *OTHER], View())
    assert (set(mapped.keys), mapped.first, mapped.count) == ({F, G}, 0, 40)


def test_an_output_that_nobody_can_foresee_is_nobodys() -> None:
    assert map_output([Anything()], LINES, View()) == ()
    assert map_output([], LINES, View()) == ()


CLAIMS = st.one_of(
    st.builds(
        FileLines,
        st.sampled_from([(F,), (G,), (F, G)]),
        st.sampled_from([None, (1, None), (1, 4), (6, 9), (25, None)]),
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
    source_map = map_output(claims, output, knowing((F, LINES), (G, OTHER)) if knows else View())
    at = 0
    for mapped in source_map:
        assert at <= mapped.at
        assert mapped.count > 0
        assert mapped.keys
        at = mapped.at + mapped.count
    assert at <= len(output)


@given(st.lists(CLAIMS, max_size=5), OUTPUTS)
def test_numbered_pieces_say_the_numbers_that_stand_there(claims: list[Claim], output: list[str]) -> None:
    for mapped in map_output(claims, output, View()):
        if mapped.sep is not None and mapped.first:
            for k in range(mapped.count):
                line = output[mapped.at + k]
                found = [split_number(line, sep) for sep in (mapped.sep[:1], mapped.sep[-1:])]
                assert mapped.first + mapped.shift + k in [pair[0] for pair in found if pair]


@pytest.mark.parametrize("size", [20_000])
def test_a_long_output_of_many_parts_takes_no_time(size: int) -> None:
    claims: list[Claim] = []
    for n in range(20):
        claims += [Literal(f"=== {n} ===\n"), FileLines((f"/w/{n}",))]
    output = [f"=== {k // (size // 20)} ===" if k % (size // 20) == 0 else f"line {k}" for k in range(size)]
    assert len(map_output(claims, output, View())) == 20


# ---------------------------------------------------------------- what is certain


def numbers(source_map: Sequence[MappedSpan], key: str) -> dict[int, int]:
    """Output line -> the number that it is believed to have in the file."""
    return {p.at + k: p.first + k for p in source_map if p.keys == (key,) and p.first for k in range(p.count)}


def test_a_range_that_ends_past_the_files_end_moves_no_line_into_the_wrong_file() -> None:
    source_map = map_output([FileLines((G,), (1, 33)), FileLines((F,))], [*OTHER, *LINES], View())
    assert numbers(source_map, F) == numbers(source_map, G) == {}
    assert {key for mapped in source_map for key in mapped.keys} == {F, G}


def test_a_blank_line_between_two_files_is_no_border() -> None:
    claims: list[Claim] = [FileLines((G,), (1, 33)), Literal("\n"), FileLines((F,))]
    source_map = map_output(claims, [*OTHER, "", *LINES[:22], "", *LINES[22:]], View())
    assert numbers(source_map, F) == numbers(source_map, G) == {}


def test_lines_that_were_shown_before_bear_a_border_out() -> None:
    claims = [FileLines((G,), (1, 10)), FileLines((F,))]
    assert numbers(map_output(claims, [*OTHER, *LINES], knowing((G, OTHER))), F) == {10 + k: k + 1 for k in range(30)}
    assert numbers(map_output(claims, [*OTHER, *LINES], knowing((F, LINES))), G) == {k: k + 1 for k in range(10)}


def test_a_file_that_may_have_grown_says_nothing_about_where_the_next_begins() -> None:
    grown = [*OTHER, "row 11"]
    source_map = map_output([FileLines((G,)), FileLines((F,))], [*grown, *LINES], knowing((G, OTHER)))
    assert numbers(source_map, F) == {}
    assert not any(mapped.eof for mapped in source_map)


def test_the_beginning_of_a_file_of_unknown_length_says_nothing_about_where_the_next_begins() -> None:
    view = View()
    shown = MappedSpan((G,), 0, 8, 1)  # no more of the file was shown
    view.apply(Delivered("c1", "\n".join(OTHER[:8]) + "\n", "sed", source_map=(shown,), when=Moment(1)))
    source_map = map_output([FileLines((G,)), FileLines((F,), (1, 5))], [*OTHER, *LINES[:3]], view)
    assert numbers(source_map, F) == {}


def test_a_length_that_is_known_but_not_borne_out_is_no_border() -> None:
    changed = ["new first row", *OTHER[1:9]]
    source_map = map_output([FileLines((G,)), FileLines((F,))], [*changed, *LINES], knowing((G, OTHER)))
    assert numbers(source_map, F) == numbers(source_map, G) == {}


def test_a_file_that_has_the_banner_as_a_line_makes_the_border_uncertain() -> None:
    claims: list[Claim] = [FileLines((F,)), Literal("---\n"), FileLines((G,))]
    output = ["---", "title: x", "---", *LINES, "---", *OTHER]
    source_map = map_output(claims, output, View())
    assert numbers(source_map, F) == numbers(source_map, G) == {}


def test_one_banner_for_each_file_is_certain() -> None:
    claims: list[Claim] = [FileLines((F,)), Literal("---\n"), FileLines((G,)), Literal("---\n"), FileLines((F,))]
    source_map = map_output(claims, [*LINES[:4], "---", *OTHER, "---", *LINES[:4]], View())
    assert matched(source_map) == [(F, 0, 4, 1), (G, 5, 10, 1), (F, 16, 4, 1)]


def test_a_file_without_a_final_newline_has_its_last_line_in_the_banners() -> None:
    claims: list[Claim] = [FileLines((F,)), Literal("---\n"), FileLines((G,))]
    source_map = map_output(claims, [*LINES[:29], LINES[29] + "---", *OTHER], View())
    assert matched(source_map) == [(F, 0, 29, 1), (G, 30, 10, 1)]
    assert [mapped.eof for mapped in source_map] == [False, True]


def test_what_follows_a_numbered_file_may_begin_in_its_last_line() -> None:
    source_map = map_output([FileLines((F,), sep="\t"), FileLines((G,))], [*numbered(1, 9), *OTHER], View())
    assert (numbers(source_map, F)[0], numbers(source_map, G)) == (1, {})


@pytest.mark.parametrize(
    "line",
    [
        "cat: f: No such file or directory",
        "cat: f: Permission denied",
        "head: cannot open 'f' for reading: No such file or directory",
        "sed: can't read f: No such file or directory",
        "sed: couldn't edit f: not a regular file",
        "tail: error reading 'f': Is a directory",
        "rg: f: No such file or directory (os error 2)",
        "fatal: path 'f' does not exist in 'HEAD'",
        "bash: line 1: f: Permission denied",
        "/bin/sh: 1: cat: not found",
        "Error response from daemon: container 3f2a is not running",
        "ssh: connect to host box port 22: Connection refused",
        "OCI runtime exec failed: exec failed: no such container",
    ],
)
@pytest.mark.parametrize("around", [([], []), (LINES[:9], []), ([], LINES[:9]), (LINES[:4], LINES[4:9])])
def test_a_complaint_is_never_content(line: str, around: tuple[list[str], list[str]]) -> None:
    before, after = around
    output = [*before, line, *after]
    for claims in ([FileLines((F,))], [FileLines((F,)), FileLines((G,))]):
        if len(claims) == 2 or not (before and after):  # alone, a file may well hold such a line in its midst
            source_map = map_output(claims, output, View())
            assert all(not mapped.first for mapped in source_map)
            assert not any(mapped.at <= len(before) < mapped.at + mapped.count for mapped in source_map)


def test_raw_lines_of_a_command_that_failed_have_no_numbers() -> None:
    failed = OutputFacts(failed=True)
    assert numbers(map_output([FileLines((F,))], ["the daemon is not running"], View(), failed), F) == {}
    assert numbers(map_output([FileLines((F,), sep="\t")], numbered(1, 9), View(), failed), F)[7] == 8
    after_a_landmark = map_output([Literal("== f\n"), FileLines((F,))], ["== f", *LINES], View(), failed)
    assert numbers(after_a_landmark, F)[1] == 1
    assert numbers(map_output([FileLines((F,))], LINES, knowing((F, LINES[:9])), failed), F)[29] == 30
    assert numbers(map_output([FileLines((F,))], ["other", *LINES], knowing((F, LINES[:9])), failed), F) == {}


def test_a_command_that_wrote_and_failed_may_have_complained_anywhere() -> None:
    claims: list[Claim] = [Literal("== f\n"), FileLines((F,)), Literal("done\n")]
    output = ["== f", *LINES, "nothing to be done about g", "done"]
    assert numbers(map_output(claims, output, View(), OutputFacts(failed=True, wrote=True)), F) == {}
    assert numbers(map_output(claims, output, View(), OutputFacts(wrote=True)), F)[1] == 1


NOTICES = [
    "... [160456 characters truncated] ...",
    "[... 120 lines omitted ...]",
    "... output truncated ...",
    "...output truncated...",
    "[truncated]",
    "<truncated 300 lines>",
    "<response clipped>",
    "... (truncated)",
    "    … +20 lines (ctrl + t to view transcript)",
    "1347 characters elided",
    "[... Observation truncated due to length ...]",
]


@pytest.mark.parametrize("notice", NOTICES)
def test_behind_a_notice_that_something_was_cut_no_raw_line_has_a_number(notice: str) -> None:
    output = [*LINES[:10], "half a li", notice, "ne", *OTHER]
    for claims in ([FileLines((F,))], [FileLines((F,), (1, 400))]):
        source_map = map_output(claims, output, View())
        assert numbers(source_map, F) == {k: k + 1 for k in range(10)}
        assert not any(mapped.eof for mapped in source_map)
    two = map_output([FileLines((F,)), Literal("---\n"), FileLines((G,))], [*output, "---", *OTHER], View())
    assert numbers(two, F) == numbers(two, G) == {}


@pytest.mark.parametrize(
    "line",
    [
        "12 li…558 tokens truncated…ne 9",
        "line 9 ab... [99 characters truncated] ...cd",
        "li<response clipped><NOTE>x",
        "li... output truncated ...ne",
    ],
)
def test_a_notice_within_a_line_counts_as_one(line: str) -> None:
    assert numbers(map_output([FileLines((F,))], [*LINES[:10], line, *OTHER], View()), F) == {
        k: k + 1 for k in range(9)
    }


def test_lines_cut_in_two_beside_a_notice_have_no_numbers_even_where_some_are_shown() -> None:
    output = [
        *numbered(1, 9),
        "    10\thalf a",
        "... [160456 characters truncated] ...",
        "30\tline 2930",
        *numbered(40, 44),
    ]
    shown = numbers(map_output([FileLines((F,), sep="\t")], output, View()), F)
    assert sorted(shown.values()) == [*range(1, 10), *range(40, 45)]


def test_a_file_that_speaks_of_truncation_is_shown_with_fewer_numbers_and_no_line_lost() -> None:
    output = [*LINES[:10], "[truncated]", *LINES[11:]]
    source_map = map_output([FileLines((F,))], output, View())
    assert sum(mapped.count for mapped in source_map) == len(output) - 1
    whole_range = map_output([FileLines((F,), (1, 30))], output, View())
    assert matched(whole_range) == [(F, 0, 30, 1)]  # as many lines as were asked for: nothing is missing


def test_no_line_of_an_incomplete_output_has_a_number() -> None:
    incomplete = OutputFacts(complete=False)
    raw = [(FileLines((F,)), LINES), (FileLines((F,), (1, 30)), LINES)]
    for claim, output in [*raw, (FileLines((F,), sep="\t"), numbered(1, 9))]:
        source_map = map_output([claim], output, View(), incomplete)
        assert [(mapped.first, mapped.sep) for mapped in source_map] == [(0, None)]


@pytest.mark.parametrize("banner", ["---\n", ""])
def test_a_thousand_reads_in_one_command_are_laid_out_in_a_moment(banner: str) -> None:
    claims: list[Claim] = []
    for n in range(3000):
        claims += [FileLines((f"/w/{n}",)), Literal(banner or f"--{n}\n")]
    output = [line for n in range(3000) for line in (f"line {n}", banner.strip() or f"--{n}")]
    assert len(map_output(claims, output, View())) == 3000


PACKAGE = ["{", '  "name": "a",', '  "version": "1"', "}"]
RETURNED = ['{"stdout": "line 1\\nline 2\\n", "exit_code": 0}']


@pytest.mark.parametrize(
    ("key", "lines", "facts", "is_mapped"),
    [
        ("/w/package.json", PACKAGE, OutputFacts(), True),
        ("/w/.babelrc", PACKAGE, OutputFacts(), True),
        ("/w/package.json", RETURNED, OutputFacts(), False),
        ("/w/package.json", RETURNED, OutputFacts(uncut=True), True),
        ("/w/package.json", RETURNED, OutputFacts(exact=True), True),
        ("/w/a.py", RETURNED, OutputFacts(), False),
        ("/w/a.py", ['{"lines": ["a", "b"]}'], OutputFacts(), False),
        ("/w/a.js", ["{ const a = 1; }"], OutputFacts(), True),
    ],
)
def test_json_in_which_a_tool_returns_text_is_no_line_of_a_file(
    key: str, lines: list[str], facts: OutputFacts, is_mapped: bool
) -> None:
    assert bool(map_output([FileLines((key,))], lines, View(), facts)) is is_mapped
