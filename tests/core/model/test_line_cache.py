"""Lines at hand: the same lines whatever was asked for before, and a text is split once for all of its pieces."""

from __future__ import annotations

import pytest

from readcache.core.model import text
from readcache.core.model.events import Delivered, MappedSpan
from readcache.core.model.key_view import CACHED_LINES, Delivery, LineCache, VisibleSpan


def delivery(lines: int, *source_map: MappedSpan) -> Delivery:
    return Delivery(
        Delivered("c", "".join(f"{n}\tline {n}\n" for n in range(1, lines + 1)), "x", source_map=source_map)
    )


def test_a_text_with_thousands_of_pieces_is_split_once(monkeypatch: pytest.MonkeyPatch) -> None:
    splits: list[str] = []
    split_lines = text.split_lines

    def counted(of: str) -> list[str]:
        splits.append(of)
        return split_lines(of)

    monkeypatch.setattr(text, "split_lines", counted)
    source_map = [MappedSpan(("/w/f",), at, 1, at + 1, "\t") for at in range(3_000)]
    shown, cache = delivery(3_000, *source_map), LineCache()
    assert [cache.bodies(VisibleSpan(shown, mapped)) for mapped in source_map] == [
        [f"line {n}"] for n in range(1, 3_001)
    ]
    assert len(splits) == 1


def test_what_was_let_go_is_split_again() -> None:
    cache = LineCache()
    raw, numbered = MappedSpan(("/w/f",), 1, 2, 2), MappedSpan(("/w/f",), 1, 2, 2, "\t")
    shown, other = delivery(4, raw, numbered), delivery(CACHED_LINES + 1, raw)
    for _ in range(2):
        assert cache.bodies(VisibleSpan(shown, raw)) == ["2\tline 2", "3\tline 3"]
        assert cache.bodies(VisibleSpan(shown, numbered)) == ["line 2", "line 3"]
        assert cache.bodies(VisibleSpan(other, raw)) == ["2\tline 2", "3\tline 3"]


def test_after_clearing_nothing_is_held() -> None:
    cache, shown = LineCache(), delivery(4)
    whole = VisibleSpan(shown, MappedSpan(("/w/f",), 0, 4, 1))
    first = cache.bodies(whole)
    assert cache.bodies(whole) is first
    cache.clear()
    assert cache.bodies(whole) is not first
