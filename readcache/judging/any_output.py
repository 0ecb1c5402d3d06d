"""`Policy.any_output`: visible runs of lines in whatever a command printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from readcache.judging.cover import Run, can_stand_for, find_runs
from readcache.judging.sources import Sources
from readcache.model import text
from readcache.model.events import Piece
from readcache.model.line_index import LineIndex, stretches
from readcache.model.view import View


def find_anywhere(
    view: View,
    lines: Sequence[str],
    pieces: tuple[Piece, ...],
    taken: Sequence[Run],
    index: LineIndex,
    sources: Sources,
) -> Iterator[Run]:
    """Runs of visible lines among those that `taken` leaves open."""
    is_open = [True] * len(lines)
    for run in taken:
        is_open[run.low : run.high] = [False] * (run.high - run.low)
    for piece in stretches(pieces, len(lines)):
        open_here = is_open[piece.at : piece.at + piece.count]
        if not any(open_here):
            continue
        bodies = text.bodies(lines[piece.at : piece.at + piece.count], piece.sep)
        open_bodies = [body for body, is_free in zip(bodies, open_here, strict=True) if is_free]
        ours = piece if piece.sep is not None else replace(piece, keys=())  # a marker names numbers by their file
        proposed = [
            (reference, view.bodies(reference))
            for reference in index.propose(open_bodies, numbered=piece.sep is not None)
            if sources.allow(reference.delivery) and view.holds(reference.delivery) and can_stand_for(reference, ours)
        ]
        for low, high, reference, at in find_runs(bodies, open_here, proposed):
            yield Run(piece.at + low, piece.at + high, reference, at, ours)
