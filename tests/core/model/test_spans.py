from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from readcache.core.model.spans import Span, SpanMap, Spans, merge_spans, subtract

SPAN = st.tuples(st.integers(1, 40), st.integers(1, 40))
RAW = st.lists(SPAN, max_size=8)


def union(a: Spans, b: Spans) -> Spans:
    return merge_spans((*a, *b))


def intersect(a: Spans, b: Spans) -> Spans:
    return subtract(a, subtract(a, b))


SETS = RAW.map(merge_spans)


def lines(spans: list[Span] | Spans) -> set[int]:
    """The meaning of spans: a plain set of line numbers."""
    return {n for start, end in spans for n in range(start, end + 1)}


@given(RAW)
def test_normalising_keeps_the_lines(spans: list[Span]) -> None:
    assert lines(merge_spans(spans)) == lines(spans)


@given(RAW)
def test_a_normal_form_is_sorted_and_its_spans_lie_apart(spans: list[Span]) -> None:
    out = merge_spans(spans)
    assert all(start <= end for start, end in out)
    assert all(b[0] > a[1] + 1 for a, b in pairwise(out))


@given(SETS)
def test_normalising_twice_changes_nothing(a: Spans) -> None:
    assert merge_spans(a) == a


@given(RAW, RAW)
def test_equal_lines_have_one_normal_form(a: list[Span], b: list[Span]) -> None:
    assert (merge_spans(a) == merge_spans(b)) == (lines(a) == lines(b))


@given(SETS, SETS)
def test_a_union_has_the_lines_of_either(a: Spans, b: Spans) -> None:
    assert lines(union(a, b)) == lines(a) | lines(b)


@given(SETS, SETS)
def test_an_intersection_has_the_lines_of_both(a: Spans, b: Spans) -> None:
    assert lines(intersect(a, b)) == lines(a) & lines(b)


@given(SETS, SETS)
def test_a_difference_has_the_lines_of_the_first_alone(a: Spans, b: Spans) -> None:
    assert lines(subtract(a, b)) == lines(a) - lines(b)


@given(SETS)
def test_nothing_is_the_identity_of_union_and_of_difference(a: Spans) -> None:
    assert union(a, ()) == a == subtract(a, ())


@given(SETS)
def test_nothing_absorbs_intersection(a: Spans) -> None:
    assert intersect(a, ()) == () == subtract(a, a)


@given(SETS)
def test_union_and_intersection_are_idempotent(a: Spans) -> None:
    assert union(a, a) == a == intersect(a, a)


@given(SETS, SETS)
def test_union_commutes(a: Spans, b: Spans) -> None:
    assert union(a, b) == union(b, a)


@given(SETS, SETS)
def test_intersection_commutes(a: Spans, b: Spans) -> None:
    assert intersect(a, b) == intersect(b, a)


@given(SETS, SETS, SETS)
def test_union_associates(a: Spans, b: Spans, c: Spans) -> None:
    assert union(union(a, b), c) == union(a, union(b, c))


@given(SETS, SETS, SETS)
def test_intersection_associates(a: Spans, b: Spans, c: Spans) -> None:
    assert intersect(intersect(a, b), c) == intersect(a, intersect(b, c))


@given(SETS, SETS, SETS)
def test_intersection_distributes_over_union(a: Spans, b: Spans, c: Spans) -> None:
    assert intersect(a, union(b, c)) == union(intersect(a, b), intersect(a, c))


@given(SETS, SETS, SETS)
def test_taking_away_a_union_is_taking_away_both(a: Spans, b: Spans, c: Spans) -> None:
    assert subtract(a, union(b, c)) == intersect(subtract(a, b), subtract(a, c))


@given(SETS, SETS, SETS)
def test_taking_away_an_intersection_leaves_what_either_leaves(a: Spans, b: Spans, c: Spans) -> None:
    assert subtract(a, intersect(b, c)) == union(subtract(a, b), subtract(a, c))


@given(SETS, SETS)
def test_a_set_is_what_it_shares_and_what_it_does_not(a: Spans, b: Spans) -> None:
    assert union(intersect(a, b), subtract(a, b)) == a


# ------------------------------------------------------------ SpanMap against a dict

ASSIGNMENTS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(0, 5)), max_size=20)


@given(ASSIGNMENTS, st.integers(1, 32), st.integers(1, 32))
def test_a_span_map_says_what_a_dict_says(steps: list[tuple[int, int, int]], low: int, high: int) -> None:
    spans: SpanMap[int] = SpanMap()
    plain: dict[int, int] = {}
    for start, end, value in steps:
        spans.assign(start, end, value)
        plain.update(dict.fromkeys(range(start, end + 1), value))
    found = {n: value for start, end, value in spans.overlaps(low, high) for n in range(start, end + 1)}
    assert found == {n: value for n, value in plain.items() if low <= n <= high}


@given(ASSIGNMENTS)
def test_the_stretches_of_a_span_map_are_in_order_and_disjoint(steps: list[tuple[int, int, int]]) -> None:
    spans: SpanMap[int] = SpanMap()
    for start, end, value in steps:
        spans.assign(start, end, value)
    found = spans.overlaps(1, 99)
    assert all(a[1] < b[0] for a, b in pairwise(found))
