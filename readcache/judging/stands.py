"""What the log keeps of where omitted lines stand, so that they are known again in a text that was cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from readcache.judging.cover import Run
from readcache.model.events import Delivered, Piece, Stand
from readcache.model.key_view import Reference
from readcache.model.text import count_lines, digest, digest_lines
from readcache.model.view import View


def stands_of(view: View, runs: Sequence[Run], left_out: Sequence[str]) -> tuple[tuple[Stand, ...], str]:
    """The stands of an omission; and the lines themselves if the sources show them with different numbers, or with
    numbers that this output does not have."""
    there = [lines_there(view, run) for run in runs]
    stands = tuple(_stand(run, lines) for run, lines in zip(runs, there, strict=True))
    is_same = (there[0] if len(there) == 1 else list(chain.from_iterable(there))) == left_out
    return stands, "" if is_same else "\n".join(left_out)


def stand_of_all(event: Delivered, lines: Sequence[str]) -> Stand:
    """The stand of all lines of a text."""
    return Stand(event.call_id, event.origin, 0, len(lines), digest_lines(lines))


def lines_there(view: View, run: Run) -> Sequence[str]:
    """The lines of a run as they stand at its source, numbers included."""
    piece = Piece((), run.reference.piece.at + run.at, run.high - run.low)
    return view.bodies(Reference(run.reference.delivery, piece))


def _stand(run: Run, lines: Sequence[str]) -> Stand:
    event = run.reference.event
    is_all = len(lines) == count_lines(event.text) and event.text.endswith("\n")
    named = digest(event.text) if is_all else digest_lines(lines)
    return Stand(event.call_id, event.origin, run.reference.piece.at + run.at, len(lines), named)
