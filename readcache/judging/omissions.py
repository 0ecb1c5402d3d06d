"""Runs of visible lines put together to what one marker can stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from readcache.judging import marker
from readcache.judging.cover import Run


@dataclass(frozen=True, slots=True)
class Omission:
    """Output lines low to high - 1 that may be left out, and the runs that say where they stand."""

    low: int
    high: int
    runs: tuple[Run, ...]


def make_omissions(runs: Sequence[Run], lines: Sequence[str]) -> tuple[Omission, ...]:
    """Adjacent runs become one omission, as long as its marker can name all their sources."""
    groups: list[list[Run]] = []
    for run in sorted(runs, key=lambda r: r.low):
        if groups and groups[-1][-1].high == run.low and _count_sources([*groups[-1], run]) <= marker.MOST_SOURCES:
            groups[-1].append(run)
        else:
            groups.append([run])
    for group in groups:
        for end in (0, -1):
            while len(group) > 1 and _costs_more(group, group[end], lines):
                del group[end]
    return tuple(Omission(group[0].low, group[-1].high, tuple(group)) for group in groups)


def _costs_more(group: list[Run], run: Run, lines: Sequence[str]) -> bool:
    """True if naming the run's source takes more characters than the run has."""
    alone = _count_sources(group) > _count_sources([other for other in group if other is not run])
    return alone and sum(map(len, lines[run.low : run.high])) + run.high - run.low < marker.SOURCE_CHARS


def _count_sources(runs: Sequence[Run]) -> int:
    return len({(run.reference.event.call_id, run.reference.event.origin) for run in runs})
