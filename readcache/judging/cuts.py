"""The words of a marker: which lines were omitted and where they stand, and nothing that is not known.

Of lines 5 to 30 of a file, shown by one `cat` and not known to have changed since:

    [UNCHANGED 7f3a.12: app.py lines 5-30, above in "cat src/app.py"; repeat to see]
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from readcache.judging import marker
from readcache.judging.cover import Run, is_outdated
from readcache.judging.judge import Judgement
from readcache.judging.omissions import (
    MOST_FILES,
    MOST_SPANS,
    LinesThere,
    Omission,
    count_chars,
    describe,
    file_span,
    is_bare,
    named_lines,
    number_there,
    spans_of,
)
from readcache.model.call import Call
from readcache.model.claims import is_blob
from readcache.model.events import Origin, Piece, Pointer, Stand
from readcache.model.key_view import Delivery, Reference
from readcache.model.spans import Spans, merge_spans
from readcache.model.text import GREP, count_lines, digest, digest_lines, path_in
from readcache.model.view import View

_CHANGED = ", changed since"
_MAYBE_CHANGED = ", maybe changed since"  # the agent wrote it, or may have: what came of it is not known


@dataclass(frozen=True, slots=True)
class Cut:
    """Output lines low to high - 1, and the marker that replaces them."""

    low: int
    high: int
    pointer: Pointer  # its `line` is not known yet

    @property
    def text(self) -> str:
        """The marker's text, without a newline."""
        return self.pointer.wording


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


def _source(view: View, delivery: Delivery) -> marker.Source:
    """Return a visible text as a marker names it."""
    event = delivery.event
    is_earlier = event.origin is not Origin.RESTORED and view.calls.newest_of(event.label) > delivery.call
    path = marker.split_tool(event.label)[1]
    file = name_files(view, [path])[path] if path else ""
    return marker.Source(event.label, event.origin, is_earlier=is_earlier, file=file)


def _identical(view: View, call: Call, judgement: Judgement, whole: Delivery, name: str) -> Cut:
    count = len(judgement.lines)
    stale = any(view.was_written_since(key, whole) for key in call.reading.keys)
    word = marker.UNCHANGED if whole.event.label == call.label and not stale else marker.LEFT_OUT
    what = f"this output, {count} line{'s' if count > 1 else ''}"
    note = _MAYBE_CHANGED if stale else ""
    text = marker.write_marker(name, word, what, [_source(view, whole)], note, end_of(call))
    stand = Stand(whole.event.call_id, whole.event.origin, 0, count, digest_lines(judgement.lines))
    return Cut(0, count, Pointer(0, None, 1, count, (whole.event.call_id,), wording=text, stands=(stand,)))


def _cut(view: View, call: Call, judgement: Judgement, omission: Omission, name: str) -> Cut | None:
    """Return None if no marker can describe the lines."""
    runs = omission.runs
    described = describe(runs)
    selected = _selected(view, runs, judgement.lines)
    if described is None or selected is None:
        return None
    paths = dict.fromkeys(key for run in runs for key in (*run.piece.keys, *run.reference.piece.keys))
    names = name_files(view, list(paths))
    files = named_lines(runs)
    what = _what(files, omission, names) + selected
    note = _note(view, judgement, runs)
    word = _word(call, judgement, omission, note)
    text = marker.write_marker(name, word, what, list(_sources(view, described, files, names)), note, end_of(call))
    piece, path, start = runs[0].piece, None, omission.low + 1
    if all(run.piece is piece for run in runs) and len(piece.keys) == 1 and piece.first > 0:
        path, start = piece.keys[0], piece.first + omission.low - piece.at
    end = start + omission.high - omission.low - 1
    sources = tuple(dict.fromkeys(run.reference.event.call_id for run in runs))
    numbered = any(run.piece.sep is not None for run in runs)
    stands = _stands_of(view, runs, judgement.lines[omission.low : omission.high])
    return Cut(omission.low, omission.high, Pointer(0, path, start, end, sources, numbered, text, *stands))


# ---------------------------------------------------------------- the word


def _word(call: Call, judgement: Judgement, omission: Omission, note: str) -> str:
    if note or not all(map(_is_in_place, omission.runs)):
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


def name_files(view: View, paths: Sequence[str]) -> dict[str, str]:
    """Name each path so that it differs from every other file in view."""
    return marker.names_of(paths, (key for path in paths for key in view.namesakes(path)))


def _what(files: dict[str, Spans] | None, omission: Omission, names: dict[str, str]) -> str:
    """Return in words which lines are omitted: lines of files if they are known, otherwise lines of this output."""
    if files is not None:
        return " and ".join(f"{names[path]} {marker.spell_lines(found)}" for path, found in files.items())
    paths = list(dict.fromkeys(key for run in omission.runs for key in run.piece.keys))
    of_paths = f" ({', '.join(names[path] for path in paths)})" if 0 < len(paths) <= MOST_FILES else ""
    return f"output {marker.spell_lines([(omission.low + 1, omission.high)])}{of_paths}"


def _selected(view: View, runs: Sequence[Run], lines: Sequence[str]) -> str | None:
    """In words: which lines `grep -n` selected, and did not print for context, where the source does not show it by the
    same mark behind the number. None: too many to say."""
    searched = [run for run in runs if run.piece.sep == GREP and not _is_same_search(view, run, lines)]
    if not searched:
        return ""
    found = [
        file_span(run)[0] + n for run in searched for n in range(run.high - run.low) if _is_hit(lines[run.low + n])
    ]
    spans = merge_spans((number, number) for number in found)
    if len(spans) > MOST_SPANS:
        return None
    return f" (selected: {marker.spell_spans(spans) if spans else 'none'})"


def _is_same_search(view: View, run: Run, lines: Sequence[str]) -> bool:
    return run.reference.piece.sep == GREP and list(_lines_there(view, run)) == list(lines[run.low : run.high])


def _is_hit(line: str) -> bool:
    """True for a line of `grep -n` that the pattern selected: `12:x`, not `12-x`."""
    return line.lstrip("0123456789").startswith(":")


def _sources(
    view: View, described: Sequence[LinesThere], files: dict[str, Spans] | None, names: dict[str, str]
) -> Iterator[marker.Source]:
    in_file = files is not None and len(files) == 1
    of_output = files is not None and not in_file
    for there in described:
        spans = (file_span(run) if in_file else (run.low + 1, run.high) for run in there.runs)
        lines = merge_spans(spans) if len(described) > 1 else ()
        same = in_file and all(run.piece.keys == run.reference.piece.keys for run in there.runs)
        source, words = _source(view, there.runs[0].reference.delivery), _there(there, names)
        yield replace(source, lines=lines, of_output=of_output, there=words, same_file=same, form=there.form)


def _there(there: LinesThere, names: dict[str, str]) -> str:
    """Return in words which lines they are at the source, in the order of this output. Return "" if that is plain:
    lines of the same file, with the same numbers, in one piece."""
    told = marker.split_tool(there.runs[0].reference.event.label)[1]
    by_file: dict[str, list[Run]] = {}
    for run in there.runs:
        by_file.setdefault(_file_there(run, names, told), []).append(run)
    if all(map(number_there, there.runs)):
        is_plain = not there.spans and not any(by_file) and not any(map(_other_files, there.runs))
        return "" if is_plain else " and ".join(map(_numbers_there, by_file, by_file.values()))
    file = next(iter(by_file)) if len(by_file) == 1 else ""
    return f"{file} {marker.spell_lines(there.spans)} {marker.PLACES}".lstrip() if there.spans else file


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


# ---------------------------------------------------------------- for the log


def _stands_of(view: View, runs: Sequence[Run], left_out: Sequence[str]) -> tuple[tuple[Stand, ...], str]:
    """Return the stands of an omission. Its lines are recognised by them in a text that was cut. Also return the lines
    themselves if the sources show them with other numbers, or with numbers that this output does not have."""
    there = [_lines_there(view, run) for run in runs]
    stands = tuple(_stand(run, lines) for run, lines in zip(runs, there, strict=True))
    is_same = (there[0] if len(there) == 1 else list(chain.from_iterable(there))) == left_out
    return stands, "" if is_same else "\n".join(left_out)


def _lines_there(view: View, run: Run) -> Sequence[str]:
    """Return the lines of a run as its source shows them, numbers included."""
    piece = Piece((), run.reference.piece.at + run.at, run.high - run.low)
    return view.bodies(Reference(run.reference.delivery, piece))


def _stand(run: Run, lines: Sequence[str]) -> Stand:
    event = run.reference.event
    is_all = len(lines) == count_lines(event.text) and event.text.endswith("\n")
    named = digest(event.text) if is_all else digest_lines(lines)
    return Stand(event.call_id, event.origin, run.reference.piece.at + run.at, len(lines), named)
