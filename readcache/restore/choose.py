"""Plans what to put back after a compaction: which files lost lines, what each is worth, where the lines are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from readcache.model.events import Event
from readcache.model.policy import CHARS_PER_TOKEN, Budget
from readcache.model.spans import Span, merge_spans
from readcache.model.view import View
from readcache.restore.evidence import FileEvidence, Input, gather
from readcache.restore.fit import Counting, FileText, Place, fit, not_shown
from readcache.restore.plan import Bytes, RestorePlan
from readcache.restore.rank import Stretch, reasons_for, score, stretches_of
from readcache.restore.refuse import why_not_text

# Where few files are allowed: about the tokens that a file gives over the calls since it was touched. With five files
# 1, 1.5 and 2 foresaw 48, 51 and 50 % of the characters that were read again in the recordings, without it 41.
SIZE_MATTERS = 1.5


@dataclass(frozen=True, slots=True)
class _File:
    """A file that something can be gained from; `staying`: numbered lines that the reader will still see."""

    path: str
    stretches: tuple[Stretch, ...]
    staying: frozenset[tuple[int, str]]
    worth: float  # by the token
    tokens: float  # that it has to give
    shown: int  # calls ago: of files of one worth the one shown last comes first


def plan_restore(
    view: View,
    kept: Collection[str],
    budget: Budget,
    log: Iterable[Event],
    *,
    inputs: Iterable[Input] = (),
    count_tokens: Counting,
    refuses: Callable[[Sequence[str]], Mapping[str, str]],
    current: Callable[[str], Sequence[str] | str] | None,
) -> RestorePlan:
    """What to put back when only the calls in `kept` stay.

    `log`: every event of this context, and what others wrote. `inputs`: what the agent said in the calls of its message
    list, for tools that the session was not told of. `refuses(paths)` says which paths may not be restored, and why.
    `current(path)` gives a file's lines as they are on disk, or says in words why they may not be restored; None: there
    is no disk, and the lines are those seen last.
    """
    left_out: dict[str, str] = {}
    files: list[_File] = []
    evidence = gather(log, inputs)
    refused = refuses([e.key for e in evidence])
    for e in evidence:
        if e.key in refused:
            left_out[e.key] = refused[e.key]
        elif e.removed and current is None:
            left_out[e.key] = "deleted or moved"
        elif not e.current and not e.outdated:
            left_out[e.key] = "the numbers of its lines are not known"
        else:
            file = _file(e, view, kept)
            left_out[e.key] = "budget: files" if file.stretches else "still visible"
            files += [file] if file.stretches else []
    opened: list[tuple[Place, ...]] = []
    for file in _best_first(files, budget):
        if len(opened) == budget.max_files:
            break
        found = _seen_places(view, file) if current is None else _disk_places(view, file, current(file.path))
        if isinstance(found, str):
            left_out[file.path] = found
        else:
            opened.append(found)
    ranked = [place for places in opened for place in places]
    items = fit(ranked, budget, count_tokens)
    for places in opened:
        del left_out[places[0].text.path]
        left_out.update(not_shown(places, items))
    return RestorePlan(items, tuple(sorted(left_out.items())))


def _file(evidence: FileEvidence, view: View, kept: Collection[str]) -> _File:
    staying: set[tuple[int, str]] = set()
    for reference in view.key(evidence.key).references():
        if reference.piece.first and reference.event.call_id in kept:
            staying.update(enumerate(view.bodies(reference), reference.piece.first))
    wanted = merge_spans(span for call_id in kept for span in _marked(view, call_id, evidence.key))
    lost: list[Stretch] = []
    chars = 0
    for stretch in stretches_of(evidence, wanted):
        gained = sum(len(text) + 1 for line, text in _seen(view, stretch).items() if (line, text) not in staying)
        lost += [replace(stretch, why=reasons_for(evidence, stretch))] if gained else []
        chars += gained
    tokens = chars / CHARS_PER_TOKEN  # files are weighed before anything is counted
    worth = score(evidence, tokens, is_marked=bool(wanted))
    return _File(evidence.key, tuple(lost), frozenset(staying), worth, tokens, evidence.shown or evidence.calls)


def _best_first(files: Sequence[_File], budget: Budget) -> list[_File]:
    """The files that are worth most by the token; by the file, where few files are allowed, so that there would be
    tokens left."""
    by_token = sorted(files, key=lambda file: (-file.worth, file.shown, file.path))
    taken = sum(min(file.tokens, budget.max_tokens_per_file) for file in by_token[: budget.max_files])
    if len(files) <= budget.max_files or taken >= budget.max_tokens:
        return by_token
    most = budget.max_tokens_per_file
    return sorted(files, key=lambda file: (-file.worth * min(file.tokens, most) ** SIZE_MATTERS, file.shown, file.path))


def _marked(view: View, call_id: str, key: str) -> Iterable[Span]:
    """Lines for which a marker stands in the result of a call."""
    pointers = (pointer for delivery in view.of_call(call_id) for pointer in delivery.event.pointers)
    return ((pointer.start, pointer.end) for pointer in pointers if pointer.path == key)


def _seen(view: View, stretch: Stretch) -> dict[int, str]:
    first = stretch.reference.piece.first
    lines = view.bodies(stretch.reference)[stretch.start - first : stretch.end - first + 1]
    return dict(enumerate(lines, stretch.start))


def _seen_places(view: View, file: _File) -> tuple[Place, ...] | str:
    """Where there is no disk. Outdated showings are not combined: they may be of different states of the file."""
    states: dict[object, dict[int, str]] = {}
    for stretch in file.stretches:
        lines = states.setdefault(stretch.reference if stretch.outdated else None, {})
        lines.update({n: text for n, text in _seen(view, stretch).items() if (n, text) not in file.staying})
    known = sorted((n, text) for lines in states.values() for n, text in lines.items())
    why_not = why_not_text(file.path, "\n".join(text for _, text in known))
    if why_not is not None:
        return why_not
    texts = {
        state: FileText(file.path, lines, Bytes.SEEN if state is None else Bytes.OUTDATED)
        for state, lines in states.items()
    }
    return tuple(
        _place(texts[stretch.reference if stretch.outdated else None], stretch, stretch.start)
        for stretch in file.stretches
    )


def _disk_places(view: View, file: _File, disk: Sequence[str] | str) -> tuple[Place, ...] | str:
    if isinstance(disk, str):
        return disk
    lines = {n: text for n, text in enumerate(disk, 1) if (n, text) not in file.staying}
    text = FileText(file.path, lines, Bytes.CURRENT)
    places = (_place(text, stretch, _starts_now(_seen(view, stretch), disk)) for stretch in file.stretches)
    return tuple(place for place in places if place.numbers) or "still visible"


def _place(text: FileText, stretch: Stretch, start: int) -> Place:
    numbers = range(start, start + stretch.end - stretch.start + 1)
    return Place(text, stretch, tuple(n for n in numbers if n in text.lines))


def _starts_now(seen: Mapping[int, str], disk: Sequence[str]) -> int:
    """The number that the first of the lines has now: edits above it may have moved them. Its longest line that is
    still there tells, where it stands nearest to its old place."""
    start = min(seen)
    if all(disk[n - 1 : n] == [text] for n, text in seen.items()):
        return start
    for line in sorted(seen, key=lambda n: -len(seen[n])):
        now = [n for n, text in enumerate(disk, 1) if text == seen[line]]
        if now:
            return max(1, start + min((n - line for n in now), key=abs))
    return start
