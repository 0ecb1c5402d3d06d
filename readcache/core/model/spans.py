"""Spans of line numbers, and a map from line numbers to values.

A span is (start, end), 1-based, both inclusive, start <= end. A span set is a sorted tuple of spans with at least one
line between them. Everything here is a function of its arguments, except `SpanMap`, which only its owner changes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Generic, TypeVar

Span = tuple[int, int]
Spans = tuple[Span, ...]
V = TypeVar("V")


def merge_spans(spans: Iterable[Span]) -> Spans:
    """Return the span set with the same lines: sorted and merged, without empty spans."""
    out: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] <= span[1]):
        if out and start <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return tuple(out)


def subtract(a: Spans, b: Spans) -> Spans:
    """Return the lines of span set `a` that are not in span set `b`."""
    out: list[Span] = []
    for start, end in a:
        at = start
        for other, last in b:
            if last < at or other > end:
                continue
            if other > at:
                out.append((at, other - 1))
            at = last + 1
        if at <= end:
            out.append((at, end))
    return merge_spans(out)


class SpanMap(Generic[V]):
    """A map from line numbers to values. The last assignment wins. A look-up costs a bisection and the spans that it
    finds."""

    __slots__ = ("_spans",)

    def __init__(self) -> None:
        self._spans: list[tuple[int, int, V]] = []  # (start, end, value), in order, disjoint

    def assign(self, start: int, end: int, value: V) -> None:
        """Assign `value` to the lines from start to end, instead of their earlier values."""
        if start > end:
            return
        low, high = self._index_range(start, end)
        new = [(start, end, value)]
        if low < high:
            first, _, before = self._spans[low]
            _, last, after = self._spans[high - 1]
            if first < start:
                new.insert(0, (first, start - 1, before))
            if last > end:
                new.append((end + 1, last, after))
        self._spans[low:high] = new

    def overlaps(self, start: int, end: int) -> list[tuple[int, int, V]]:
        """Return (start, end, value) for each span that shares lines with start to end, in order, limited to these
        lines."""
        low, high = self._index_range(start, end)
        return [(max(start, first), min(end, last), value) for first, last, value in self._spans[low:high]]

    def _index_range(self, start: int, end: int) -> tuple[int, int]:
        """Return (low, high): the spans at indexes low to high - 1 share lines with start to end."""
        low = bisect_left(self._spans, start, key=_end)
        return low, bisect_right(self._spans, end, low, key=_start)


_start: Callable[[tuple[int, int, object]], int] = itemgetter(0)
_end: Callable[[tuple[int, int, object]], int] = itemgetter(1)
