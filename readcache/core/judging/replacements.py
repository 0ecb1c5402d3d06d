"""The words of a marker: the omitted lines and their source, and no fact that is not known.

For lines 5 to 30 of a file, which one `cat` showed and which are not known to have changed since:

    [UNCHANGED 7f3a.12: app.py lines 5-30, above in "cat src/app.py"; repeat this call to see]

If the file may have been written since, the marker says that these lines are the same, and nothing of the file. If
another line is known to have changed, it says so of other lines:

    [LEFT_OUT 7f3a.12: app.py lines 5-30, same as above in "cat src/app.py" (other lines changed); repeat this call …]
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from readcache.core.judging import marker
from readcache.core.judging.cover import Match, is_outdated
from readcache.core.judging.judge import Judgement
from readcache.core.judging.omissions import (
    MOST_FILES,
    MOST_SPANS,
    LinesThere,
    Omission,
    count_chars,
    describe,
    file_span,
    heading_of,
    is_bare,
    named_lines,
    number_there,
    spans_of,
)
from readcache.core.model.call import Call, split_tool
from readcache.core.model.claims import is_blob
from readcache.core.model.events import Delivered, MappedSpan, MarkerRecord, Origin, SourceSpan
from readcache.core.model.key_view import Delivery, VisibleSpan
from readcache.core.model.spans import Spans, merge_spans, subtract
from readcache.core.model.text import GREP, bodies, count_lines, digest, digest_lines, path_in
from readcache.core.model.view import View

_OTHERS_CHANGED = " (other lines changed)"


@dataclass(frozen=True, slots=True)
class Replacement:
    """Output lines low to high - 1, and the marker that replaces them."""

    low: int
    high: int
    marker: MarkerRecord  # its `line` is not known yet

    @property
    def text(self) -> str:
        """The marker's text, without a newline."""
        return self.marker.wording


def make_replacements(view: View, call: Call, judgement: Judgement, tag: str, most: int) -> Iterator[Replacement]:
    """Yield a replacement for each of the `most` longest omissions that a marker can describe, the longest first.

    `tag`: the session's tag.
    """
    name = f"{tag}.{judgement.number}"
    if judgement.identical is not None:
        yield _identical(view, call, judgement, judgement.identical, name)
        return
    longest = heapq.nlargest(most, judgement.omissions, lambda o: count_chars(judgement.lines, o.low, o.high))
    for omission in longest:
        if replacement := _replacement(view, call, judgement, omission, name):
            yield replacement


def end_of(call: Call) -> str:
    """Return the end of a marker, which says how to get the bytes.

    A command that may do more than read would do it twice if it were repeated. Its marker says that it ran now, and its
    exit status. A marker always reports that a command failed, even if all its output was seen before.
    """
    if call.reading.only_reads:
        return f"exit {call.exit_code}; {marker.ASK_AGAIN}" if call.exit_code else marker.ASK_AGAIN
    return "ran now" if call.exit_code is None else f"ran now, exit {call.exit_code}"


def _source(view: View, delivery: Delivery) -> marker.Source:
    """Return a visible text in the form in which a marker names it."""
    event = delivery.event
    is_earlier = event.origin is not Origin.RESTORED and view.calls.newest_of(event.label) > delivery.call
    path = split_tool(event.label)[1]
    file = name_files(view, [path])[path] if path else ""
    return marker.Source(event.label, event.origin, is_earlier=is_earlier, file=file)


def _identical(view: View, call: Call, judgement: Judgement, identical: Delivery, name: str) -> Replacement:
    count = len(judgement.lines)
    stale = any(view.was_written_since(key, identical) for key in call.reading.keys)
    word = marker.UNCHANGED if identical.event.label == call.label and not stale else marker.LEFT_OUT
    what = f"this output, {count} line{'s' if count > 1 else ''}"
    text = marker.write_marker(name, word, what, [_source(view, identical)], "", end_of(call))
    span = SourceSpan(identical.event.call_id, identical.event.origin, 0, count, digest_lines(judgement.lines))
    return Replacement(
        0, count, MarkerRecord(0, None, 1, count, (identical.event.call_id,), wording=text, source_spans=(span,))
    )


def _replacement(view: View, call: Call, judgement: Judgement, omission: Omission, name: str) -> Replacement | None:
    """Return the replacement for an omission. Return None if no marker can describe the lines."""
    matches = omission.matches
    described = describe(matches)
    matching = _matching(view, matches, judgement.lines)
    if described is None or matching is None:
        return None
    paths = dict.fromkeys(key for match in matches for key in (*match.mapped.keys, *match.visible.mapped.keys))
    names = name_files(view, list(paths))
    files = named_lines(matches)
    what = _what(files, omission, names) + matching
    is_old = is_outdated(view, matches, judgement.changed)
    note = _OTHERS_CHANGED if is_old and _have_others_changed(view, call, judgement, matches) else ""
    word = _word(call, judgement, omission, is_old=is_old)
    text = marker.write_marker(name, word, what, list(_sources(view, described, files, names)), note, end_of(call))
    mapped, path, start = matches[0].mapped, None, omission.low + 1
    if all(match.mapped is mapped for match in matches) and len(mapped.keys) == 1 and mapped.first > 0:
        path, start = mapped.keys[0], mapped.first + omission.low - mapped.at
    end = start + omission.high - omission.low - 1
    sources = tuple(dict.fromkeys(match.visible.event.call_id for match in matches))
    numbered = any(match.mapped.sep is not None for match in matches)
    source_spans = _source_spans(view, matches, judgement.lines[omission.low : omission.high])
    return Replacement(
        omission.low, omission.high, MarkerRecord(0, path, start, end, sources, numbered, text, *source_spans)
    )


# ---------------------------------------------------------------- the word


def _word(call: Call, judgement: Judgement, omission: Omission, *, is_old: bool) -> str:
    """Return the first word of the marker. `is_old`: the file has changed, or may have, since a source."""
    if is_old or not all(map(_is_at_same_lines, omission.matches)):
        return marker.LEFT_OUT
    everything = (omission.low, omission.high) == (0, len(judgement.lines))
    is_file = (
        everything
        and call.reading.is_whole_file
        and all(match.mapped.eof or match.mapped.sep for match in omission.matches)
    )
    return marker.FILE_UNCHANGED if is_file and _has_same_bytes(call, omission.matches) else marker.UNCHANGED


def _is_at_same_lines(match: Match) -> bool:
    """Return True if the lines are lines of the same file at the source, with the same numbers."""
    ours, theirs = match.mapped, match.visible.mapped
    if len(ours.keys) != 1 or ours.keys != theirs.keys or not ours.first or not theirs.first or is_blob(ours.keys[0]):
        return False
    same_line = theirs.first + match.at == ours.first + match.low - ours.at
    return same_line and not is_bare(match) and (ours.sep is None or ours.shift == theirs.shift)


def _has_same_bytes(call: Call, matches: Sequence[Match]) -> bool:
    """Return True if the source has the same text before each line and after the last one."""
    text, last = matches[-1].visible.event.text, matches[-1].visible.mapped
    ends_in_newline = text.endswith("\n") or last.at + last.count <= text.count("\n")
    same_end = ends_in_newline == call.output.endswith("\n")
    return same_end and all(match.mapped.sep == match.visible.mapped.sep for match in matches)


def _have_others_changed(view: View, call: Call, judgement: Judgement, matches: Sequence[Match]) -> bool:
    """Return True if this output proves that other lines of the file changed after a source of these matches.

    Only text in the same rendering proves it.
    """
    if not all(match.mapped.first and match.mapped.keys == match.visible.mapped.keys for match in matches):
        return False  # "other lines" would not name their file
    omitted = merge_spans(map(file_span, matches))
    sources = dict.fromkeys((match.visible.delivery, match.mapped.keys) for match in matches)
    return any(
        subtract(((number, number),), omitted)
        for delivery, keys in sources
        if delivery.is_rendered_as(call.rendering)
        for number in _changed_lines(view, judgement, delivery, keys)
    )


def _changed_lines(view: View, judgement: Judgement, source: Delivery, keys: tuple[str, ...]) -> Iterator[int]:
    """Yield the number of each line of the file that has another text in this output than at the source.

    A line does not count if one text is only shorter or indented in another way: a tool may have truncated it.
    """
    for ours, theirs in itertools.product(judgement.source_map, source.event.source_map):
        low = max(ours.first, theirs.first)
        count = min(ours.first + ours.count, theirs.first + theirs.count) - low
        if not (ours.keys == theirs.keys == keys and ours.first and theirs.first and count > 0):
            continue
        here = bodies(judgement.lines[ours.at : ours.at + ours.count], ours.sep)[low - ours.first :][:count]
        there = view.bodies(VisibleSpan(source, theirs))[low - theirs.first :][:count]
        for number, line, other in zip(itertools.count(low), here, there):
            if line != other and not _is_part(line.strip(), other.strip()):
                yield number


def _is_part(line: str, other: str) -> bool:
    return line.startswith(other) or other.startswith(line)


# ---------------------------------------------------------------- what and where


def name_files(view: View, paths: Sequence[str]) -> dict[str, str]:
    """Return a name for each path that differs from the name of every other file in view."""
    return marker.names_of(paths, (key for path in paths for key in view.namesakes(path)))


def _what(files: dict[str, Spans] | None, omission: Omission, names: dict[str, str]) -> str:
    """Return in words which lines are omitted: lines of files if they are known, otherwise lines of this output."""
    if files is not None:
        return " and ".join(f"{names[path]} {marker.spell_lines(found)}" for path, found in files.items())
    paths = dict.fromkeys(match.mapped.keys[0] for match in omission.matches if match.mapped.first)
    is_known = len(paths) <= MOST_FILES and all(match.mapped.first for match in omission.matches)
    of_paths = f" ({', '.join(names[path] for path in paths)})" if is_known else ""
    return f"output {marker.spell_lines([(omission.low + 1, omission.high)])}{of_paths}"


def _matching(view: View, matches: Sequence[Match], lines: Sequence[str]) -> str | None:
    """Return in words which lines match the search of `grep -n`, as opposed to context lines.

    Return "" if all of them match, or if the source shows the same with the mark after each number. Return None if
    there are too many to name.
    """
    searched = [match for match in matches if match.mapped.sep == GREP and not _is_same_search(view, match, lines)]
    if not searched:
        return ""
    is_hit = {
        file_span(match)[0] + n: _is_hit(lines[match.low + n])
        for match in searched
        for n in range(match.high - match.low)
    }
    if all(is_hit.values()):
        return ""
    spans = merge_spans((number, number) for number, found in is_hit.items() if found)
    if len(spans) > MOST_SPANS:
        return None
    return f" (only {marker.spell_spans(spans)} match)" if spans else " (none of them match)"


def _is_same_search(view: View, match: Match, lines: Sequence[str]) -> bool:
    return match.visible.mapped.sep == GREP and list(_lines_there(view, match)) == list(lines[match.low : match.high])


def _is_hit(line: str) -> bool:
    """Return True for a line of `grep -n` that matches the search: `12:x`, not `12-x`."""
    return line.lstrip("0123456789").startswith(":")


def _sources(
    view: View, described: Sequence[LinesThere], files: dict[str, Spans] | None, names: dict[str, str]
) -> Iterator[marker.Source]:
    in_file = files is not None and len(files) == 1
    of_output = files is not None and not in_file
    for there in described:
        spans = (file_span(match) if in_file else (match.low + 1, match.high) for match in there.matches)
        lines = merge_spans(spans) if len(described) > 1 else ()
        same = in_file and all(match.mapped.keys == match.visible.mapped.keys for match in there.matches)
        words = _there(there, names, is_named=files is not None)
        source = _source(view, there.matches[0].visible.delivery)
        heading = "" if all(map(number_there, there.matches)) else heading_of(there.matches[0])
        is_whole = same and _is_whole(there.matches[0].visible.event, there.matches[0].mapped.keys)
        source = replace(source, there=words, same_file=same, is_whole=is_whole, form=there.form, heading=heading)
        yield replace(source, lines=lines, of_output=of_output)


def _is_whole(event: Delivered, keys: tuple[str, ...]) -> bool:
    """Return True if the text is all lines of the file and nothing else. Numbers do not prove it, because a tool may
    have a limit of lines."""
    spans = [mapped for mapped in event.source_map if mapped.keys == keys]
    is_complete = sum(mapped.count for mapped in spans) == count_lines(event.text)
    return is_complete and spans[0].first == 1 and spans[-1].eof


def _there(there: LinesThere, names: dict[str, str], *, is_named: bool) -> str:
    """Return in words which lines they are at the source, in the order of this output.

    Return "" if no words are necessary: the lines are consecutive lines of the same file, with the same numbers.
    `is_named`: the marker has named the lines of files already, so equal numbers need no words.
    """
    named_file = split_tool(there.matches[0].visible.event.label)[1]
    files = [_file_there(match, names, named_file) for match in there.matches]
    if not all(map(number_there, there.matches)):
        file = files[0] if len(set(files)) == 1 else ""
        return f"{file} {marker.spell_lines(there.spans)} {marker.OF_OUTPUT}".lstrip() if there.spans else file
    if not there.spans and (is_named or not (any(files) or any(map(_other_file, there.matches)))):
        return " and ".join(dict.fromkeys(filter(None, files)))
    if len(set(files)) > 1:  # then no file goes without saying
        known = (names.get("".join(match.visible.mapped.keys), "") for match in there.matches)
        files = [file or own for file, own in zip(files, known, strict=True)]
    runs = itertools.groupby(zip(files, there.matches, strict=True), key=itemgetter(0))
    return " and ".join(_numbers_there(file, [match for _, match in run]) for file, run in runs)


def _numbers_there(file: str, matches: Sequence[Match]) -> str:
    return f"{file} {marker.spell_lines(spans_of((number_there(match), match) for match in matches))}".lstrip()


def _file_there(match: Match, names: dict[str, str], named_file: str) -> str:
    """Return the source's file.

    Return "" if the marker has named it already, or names it as the file `named_file` of a tool.
    """
    key, is_restored = _other_file(match), match.visible.event.origin is Origin.RESTORED
    is_missing = bool(key) and key != named_file and (bool(match.mapped.keys) or is_restored)
    return names[key] if is_missing else marker.name_path(_path_there(match))


def _other_file(match: Match) -> str:
    """Return the file at the source if it is known, and if it is not the file that the marker has named already."""
    ours, theirs = match.mapped, match.visible.mapped
    is_named = ours.first > 0 and ours.keys == theirs.keys
    return theirs.keys[0] if theirs.first and len(theirs.keys) == 1 and not is_named else ""


def _path_there(match: Match) -> str:
    """Return the path that the source shows with the lines, or "" if it is the file that the marker names."""
    path = path_in(match.visible.mapped.sep).removeprefix("./")
    is_same = all(f"/{key}".endswith(f"/{path.lstrip('/')}") for key in match.mapped.keys)
    return "" if is_same else path


# ---------------------------------------------------------------- for the log


def _source_spans(view: View, matches: Sequence[Match], left_out: Sequence[str]) -> tuple[tuple[SourceSpan, ...], str]:
    """Return the source spans of an omission. They identify its lines in a truncated text.

    Also return the lines themselves if the sources show them with other numbers, or with numbers that this output does
    not have. Otherwise return "" for them.
    """
    there = [_lines_there(view, match) for match in matches]
    source_spans = tuple(_source_span(match, lines) for match, lines in zip(matches, there, strict=True))
    is_same = (there[0] if len(there) == 1 else list(itertools.chain.from_iterable(there))) == left_out
    return source_spans, "" if is_same else "\n".join(left_out)


def _lines_there(view: View, match: Match) -> Sequence[str]:
    """Return the lines of a match as its source shows them, numbers included."""
    mapped = MappedSpan((), match.visible.mapped.at + match.at, match.high - match.low)
    return view.bodies(VisibleSpan(match.visible.delivery, mapped))


def _source_span(match: Match, lines: Sequence[str]) -> SourceSpan:
    event = match.visible.event
    is_all = len(lines) == count_lines(event.text) and event.text.endswith("\n")
    named = digest(event.text) if is_all else digest_lines(lines)
    return SourceSpan(event.call_id, event.origin, match.visible.mapped.at + match.at, len(lines), named)
