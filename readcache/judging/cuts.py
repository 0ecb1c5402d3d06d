"""The words of a marker: which lines were omitted and where they stand, and nothing that is not known.

Of lines 5 to 30 of a file, shown by one `cat` and not known to have changed since:

    [UNCHANGED 7f3a.12: app.py lines 5-30, above in "cat src/app.py"; repeat to see]
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readcache.judging import marker
from readcache.judging.cover import Run, is_outdated
from readcache.judging.judge import Judgement
from readcache.judging.omissions import (
    MOST_FILES,
    MOST_SPANS,
    Omission,
    count_chars,
    is_bare,
    named_lines,
    number_here,
    number_there,
    place_shown,
    place_there,
    spans_of,
)
from readcache.judging.stands import lines_there, stand_of_all, stands_of
from readcache.model.call import Call
from readcache.model.claims import is_blob
from readcache.model.events import Origin, Stand
from readcache.model.key_view import Delivery, Reference
from readcache.model.reply import Omitted
from readcache.model.spans import Span, merge_spans
from readcache.model.text import DIFF, GREP, path_in
from readcache.model.view import View

_CHANGED = ", changed since"
_MAYBE_CHANGED = ", maybe changed since"  # the agent wrote it, or may have: what came of it is not known


@dataclass(frozen=True, slots=True)
class Cut:
    """Output lines low to high - 1 give way to `text`."""

    low: int
    high: int
    text: str
    omitted: Omitted
    stands: tuple[Stand, ...]
    numbered: bool = False
    lines: str = ""  # see `Pointer`


def make_cuts(view: View, call: Call, judgement: Judgement, tag: str, most: int) -> Iterator[Cut]:
    """A cut for each of the `most` longest omissions that a marker can describe, the longest first. `tag`: the
    session's."""
    name = f"{tag}.{judgement.number}"
    if judgement.whole is not None:
        yield _identical(view, call, judgement, judgement.whole, name)
        return
    longest = heapq.nlargest(most, judgement.omissions, lambda o: count_chars(judgement.lines, o.low, o.high))
    for omission in longest:
        if cut := _cut(view, call, judgement, omission, name):
            yield cut


def end_of(call: Call) -> str:
    """The end of a marker: how to get the bytes. Repeating a command that may do more than read does it twice.
    That a command failed is news, whatever of its output was seen."""
    if call.reading.only_reads:
        return f"exit {call.exit_code}; {marker.ASK_AGAIN}" if call.exit_code else marker.ASK_AGAIN
    return "it ran" if call.exit_code is None else f"it ran, exit {call.exit_code}"


def source_of(
    view: View,
    delivery: Delivery,
    lines: tuple[Span, ...] = (),
    there: str = "",
    *,
    of_output: bool = False,
    same_file: bool = False,
    form: str = "",
) -> marker.Source:
    """A visible text as a marker names it. `of_output`: `lines` are this output's. `same_file`: it shows lines of the
    file that the marker names. `form`: how it shows them, where that is not as here."""
    event = delivery.event
    is_earlier = event.origin is not Origin.RESTORED and view.calls.newest_of(event.label) > delivery.call
    path = marker.split_tool(event.label)[1]
    file = name_files(view, [path])[path] if path else ""
    return marker.Source(event.label, event.origin, lines, of_output, there, is_earlier, same_file, form, file)


def _identical(view: View, call: Call, judgement: Judgement, whole: Delivery, name: str) -> Cut:
    count = len(judgement.lines)
    stale = any(view.was_written_since(key, whole) for key in call.reading.keys)
    word = marker.UNCHANGED if whole.event.label == call.label and not stale else marker.LEFT_OUT
    what = f"this output, {count} line{'s' if count > 1 else ''}"
    note = _MAYBE_CHANGED if stale else ""
    text = marker.write_marker(name, word, what, [source_of(view, whole)], note, end_of(call))
    stand = stand_of_all(whole.event, judgement.lines)
    return Cut(0, count, text, Omitted(None, 1, count, (whole.event.call_id,)), (stand,))


def _cut(view: View, call: Call, judgement: Judgement, omission: Omission, name: str) -> Cut | None:
    """None if the lines had a prefix that the source does not show and the marker cannot state."""
    runs = omission.runs
    piece = runs[0].piece
    sources = tuple(dict.fromkeys(run.reference.event.call_id for run in runs))
    if all(run.piece is piece for run in runs) and len(piece.keys) == 1 and piece.first > 0:
        start = piece.first + omission.low - piece.at
        omitted = Omitted(piece.keys[0], start, start + omission.high - omission.low - 1, sources)
    else:
        omitted = Omitted(None, omission.low + 1, omission.high, sources)
    names = _names(view, runs)
    what, names_numbers, in_file = _what(runs, omitted, names)
    selected = _selected(view, runs, judgement.lines)
    if selected is None or (not names_numbers and any(map(is_bare, runs))):
        return None
    word = _word(view, call, judgement, omission)
    named = _name_sources(view, runs, names, in_file=in_file, of_output=names_numbers and not in_file)
    text = marker.write_marker(name, word, what + selected, named, _note(view, judgement, runs), end_of(call))
    numbered = any(run.piece.sep is not None for run in runs)
    stands, lines = stands_of(view, runs, judgement.lines[omission.low : omission.high])
    return Cut(omission.low, omission.high, text, omitted, stands, numbered, lines)


# ---------------------------------------------------------------- the word


def _word(view: View, call: Call, judgement: Judgement, omission: Omission) -> str:
    if not all(_is_in_place(run) for run in omission.runs) or is_outdated(view, omission.runs, judgement.changed):
        return marker.LEFT_OUT
    everything = (omission.low, omission.high) == (0, len(judgement.lines))
    is_file = everything and call.reading.whole_file and all(run.piece.eof or run.piece.sep for run in omission.runs)
    return marker.FILE_UNCHANGED if is_file and _has_same_bytes(call, omission.runs) else marker.UNCHANGED


def _is_in_place(run: Run) -> bool:
    """True if the lines stand at the source as lines of the same file, with the same numbers."""
    ours, theirs = run.piece, run.reference.piece
    if len(ours.keys) != 1 or ours.keys != theirs.keys or not ours.first or not theirs.first or is_blob(ours.keys[0]):
        return False
    same_line = theirs.first + run.at == ours.first + run.low - ours.at
    return same_line and not is_bare(run) and (ours.sep is None or ours.shift == theirs.shift)


def _has_same_bytes(call: Call, runs: Sequence[Run]) -> bool:
    """True if the source has the same text before the lines and after the last one."""
    last = runs[-1].reference
    same_end = ends_in_newline(last) == call.output.endswith("\n")
    return same_end and all(run.piece.sep == run.reference.piece.sep for run in runs)


def ends_in_newline(reference: Reference) -> bool:
    """Does its last line?"""
    text, piece = reference.event.text, reference.piece
    return text.endswith("\n") or piece.at + piece.count <= text.count("\n")


def _note(view: View, judgement: Judgement, runs: Sequence[Run]) -> str:
    of_file = (run for run in runs if run.reference.piece.keys)
    if any(key in judgement.changed for run in of_file for key in run.piece.keys):
        return _CHANGED
    return _MAYBE_CHANGED if is_outdated(view, runs, judgement.changed) else ""


# ---------------------------------------------------------------- what and where


def _names(view: View, runs: Sequence[Run]) -> dict[str, str]:
    paths = [key for run in runs for key in (*run.piece.keys, *run.reference.piece.keys)]
    return name_files(view, list(dict.fromkeys(paths)))


def name_files(view: View, paths: Sequence[str]) -> dict[str, str]:
    """Name each path so that it differs from every other file in view."""
    return marker.names_of(paths, (key for path in paths for key in view.namesakes(path)))


def _what(runs: Sequence[Run], omitted: Omitted, names: dict[str, str]) -> tuple[str, bool, bool]:
    """In words: the files' lines where all are known, else this output's. Whether they name the files' lines, and those
    of one file alone."""
    named = named_lines(runs)
    if named is not None:
        what = " and ".join(f"{names[path]} {marker.spell_lines(found)}" for path, found in named.items())
        return what, True, len(named) == 1
    paths = list(dict.fromkeys(key for run in runs for key in run.piece.keys))
    what = "output " + marker.spell_lines([(omitted.start, omitted.end)])
    of_paths = f" ({', '.join(names[path] for path in paths)})" if 0 < len(paths) <= MOST_FILES else ""
    return what + of_paths, False, False


def _selected(view: View, runs: Sequence[Run], lines: Sequence[str]) -> str | None:
    """In words: which lines `grep -n` selected, and did not print for context, where the source does not show it by the
    same mark behind the number. None: too many to say."""
    searched = [run for run in runs if run.piece.sep == GREP and not _is_same_search(view, run, lines)]
    if not searched:
        return ""
    found = [_ours(run)[0] + n for run in searched for n in range(run.high - run.low) if _is_hit(lines[run.low + n])]
    spans = merge_spans((number, number) for number in found)
    if len(spans) > MOST_SPANS:
        return None
    return f" (selected: {marker.spell_spans(spans) if spans else 'none'})"


def _is_same_search(view: View, run: Run, lines: Sequence[str]) -> bool:
    return run.reference.piece.sep == GREP and list(lines_there(view, run)) == list(lines[run.low : run.high])


def _is_hit(line: str) -> bool:
    """True for a line of `grep -n` that the pattern selected: `12:x`, not `12-x`."""
    return line.lstrip("0123456789").startswith(":")


def _ours(run: Run) -> Span:
    """The numbers of its lines in the file."""
    start = run.piece.first + run.low - run.piece.at
    return start, start + run.high - run.low - 1


def _name_sources(
    view: View, runs: Sequence[Run], names: dict[str, str], *, in_file: bool, of_output: bool
) -> list[marker.Source]:
    by_text: dict[tuple[str, Origin, str], list[Run]] = {}
    for run in runs:
        event = run.reference.event
        by_text.setdefault((event.call_id, event.origin, _form(run)), []).append(run)
    out: list[marker.Source] = []
    for (_, _, form), theirs in by_text.items():
        spans = (_ours(run) if in_file else (run.low + 1, run.high) for run in theirs)
        lines = merge_spans(spans) if len(by_text) > 1 else ()
        same = in_file and all(run.piece.keys == run.reference.piece.keys for run in theirs)
        delivery, there = theirs[0].reference.delivery, _there(theirs, names)
        out.append(source_of(view, delivery, lines, there, of_output=of_output, same_file=same, form=form))
    return out


def _form(run: Run) -> str:
    """Says how the source shows the lines, if their prefix there differs from the one here."""
    if (run.reference.piece.sep or "").startswith(DIFF):
        return "within a diff"
    return "without numbers" if is_bare(run) else ""


def _there(runs: Sequence[Run], names: dict[str, str]) -> str:
    """What the lines are at the source, in the order in which they stand here, where that is not plain: lines of
    another file, or with other numbers, or not in one piece."""
    told = marker.split_tool(runs[0].reference.event.label)[1]
    by_file: dict[str, list[Run]] = {}
    for run in runs:
        by_file.setdefault(_file_there(run, names, told), []).append(run)
    moved = any(number_there(run) not in (0, number_here(run)) or _other_files(run) for run in runs)
    if all(map(number_there, runs)):
        return " and ".join(map(_numbers_there, by_file, by_file.values())) if moved or any(by_file) else ""
    file = next(iter(by_file)) if len(by_file) == 1 else ""
    if len(spans_of((place_there(run), run) for run in runs)) == 1:
        return file
    places = marker.spell_lines(spans_of((place_shown(run), run) for run in runs))
    return f"{file} {places} {marker.PLACES}".lstrip()


def _numbers_there(file: str, runs: Sequence[Run]) -> str:
    return f"{file} {marker.spell_lines(spans_of((number_there(run), run) for run in runs))}".lstrip()


def _file_there(run: Run, names: dict[str, str], told: str) -> str:
    """The source's file, unless the marker has named it already, or names it as the file `told` of a tool."""
    other = next((names[key] for key in _other_files(run) if run.piece.keys and key != told), "")
    return other or marker.name_path(_path_there(run))


def _other_files(run: Run) -> list[str]:
    """Files at the source that the marker still has to name: it has not named them, or only among several. The heading
    of a restored section names no file."""
    ours, theirs = run.piece.keys, run.reference.piece.keys
    is_restored = run.reference.event.origin is Origin.RESTORED
    return [key for key in theirs if key not in ours or (is_restored and len(ours) > 1)]


def _path_there(run: Run) -> str:
    """The path that the source shows with the lines, if it differs from the file that the marker names."""
    path = path_in(run.reference.piece.sep).removeprefix("./")
    is_same = all(f"/{key}".endswith(f"/{path.lstrip('/')}") for key in run.piece.keys)
    return "" if is_same else path
