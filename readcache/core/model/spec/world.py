"""A model of the texts that each reader's model is sent. It checks whether every marker in them tells the truth.

An observer (a test, a replay, a log) tells a `World` what happened; there is one method for each kind of event. Each
method returns one `Finding` for each marker that the event puts before a model. The promise holds if no finding has a
fault.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from readcache.core.model.spec.lines import VisibleText, first_missing, is_same_line
from readcache.core.model.spec.marker import Finding, Marker, NamedSource
from readcache.core.model.spec.reply import Answer, account_fault, left_out, markers_of

RESULT, COMMAND = "result", "command"  # a call has two texts: its output, and the agent's own text
_SAYS_UNCHANGED = ("[UNCHANGED ", "[FILE_UNCHANGED ")  # words that also make a statement about the file
_SAYS_GONE = "[GONE "
_HIDDEN = "\0"  # replaces a marker when lines are searched
UNSEEN, AT_ONCE = "which the reader cannot see", "which was called at the same time"


@dataclass(slots=True)
class _SentText:
    """A text, and the markers in it."""

    text: str
    markers: tuple[Marker, ...] = ()
    _lines: VisibleText | None = None

    def lines(self) -> VisibleText:
        """Return the lines that a marker elsewhere may name. A marker is not one of them: it only replaces lines."""
        if self._lines is None:
            lines = self.text.split("\n")
            for marker in self.markers:
                if 0 <= marker.line < len(lines):
                    lines[marker.line] = _HIDDEN
            self._lines = VisibleText("\n".join(lines))
        return self._lines


@dataclass(slots=True)
class _SentCall:
    """A call that a model is sent."""

    number: int
    batch: str
    since: int  # number of events before it
    texts: dict[str, _SentText] = field(default_factory=dict)


@dataclass(slots=True)
class _Asked:
    """The last request of a reader, and the lines of its output that the reader has not been shown since."""

    request: str
    output: str
    left_out: frozenset[int]
    times: int = 0


class World:
    """The readers of one session, by name. Each begins with an empty conversation."""

    def __init__(self) -> None:
        self._sent: dict[str, dict[str, _SentCall]] = {}
        self._written: dict[str, int] = {}  # file -> number of events before its last write
        self._asked: dict[str, _Asked] = {}
        self._sections = set[str]()
        self._events = 0

    # ------------------------------------------------------------ texts that a model is sent
    def shown(
        self,
        reader: str,
        call: str,
        text: str,
        *,
        markers: Sequence[Marker] = (),
        kind: str = RESULT,
        said: str = "",
        batch: str = "",
        output: str | None = None,
        request: str = "",
        number: int = 0,
    ) -> list[Finding]:
        """Record "shown": from the next request on, the model is sent `text` as the call's result, and `said`, the text
        that the model itself wrote in the call.

        `batch`: parallel calls share it. `output`: the text that the tool printed. `request`: equal for equal requests;
        empty if retries are not checked. `number`: the number of the call, if its texts are reported one by one.

        Each marker must be true of the texts sent before. The text must equal the output once each marker is replaced
        by its lines. A reader who repeats a request must get the omitted lines.
        """
        sent = self._of(reader, is_retry=True)
        earlier = sent.get(call)
        if earlier is None or not number or earlier.number != number or kind in earlier.texts:
            sent.pop(call, None)  # an ID that is used twice names the newer text
            sent[call] = _SentCall(number, batch, self._events)
        if said:
            sent[call].texts[COMMAND] = _SentText(said)
        findings = [self._prove(sent, call, marker, batch) for marker in markers]
        if output is not None:
            wrong = account_fault(text, markers, output) or self._insistence(reader, request, markers, output)
            findings += [Finding(call, None, wrong)] if wrong else []
        sent[call].texts[kind] = _SentText(text, tuple(markers))
        return findings

    def answered(
        self, reader: str, reply: Answer, output: str, *, said: str = "", batch: str = "", request: str = ""
    ) -> list[Finding]:
        """Record "shown" for a reply of the package."""
        markers, wrong = markers_of(reply)
        wrong = wrong or ("" if output == reply.full_text else "the segments do not add up to the output")
        call, text = reply.call_id, reply.text
        found = self.shown(reader, call, text, markers=markers, output=output, said=said, batch=batch, request=request)
        return [Finding(reply.call_id, None, wrong), *found] if wrong else found

    def restored(self, reader: str, call: str, text: str) -> None:
        """Record "restored": the model is sent a section that a compactor restored. The section has lines and no
        markers. All sections have one name, so a marker that named an older section now names this one."""
        sent = self._of(reader)
        for found in sent.values():
            found.texts = {kind: self._in_section(text, sent, call) for kind, text in found.texts.items()}
        self._sections.add(call)
        self.shown(reader, call, text)

    def _in_section(self, text: _SentText, sent: Collection[str], section: str) -> _SentText:
        def rename(named: NamedSource) -> NamedSource:
            return NamedSource(section) if named.call in self._sections and named.call not in sent else named

        markers = tuple(replace(marker, sources=tuple(map(rename, marker.sources))) for marker in text.markers)
        return _SentText(text.text, markers) if markers != text.markers else text

    # ------------------------------------------------------------ texts that a model is no longer sent

    def clipped(
        self, reader: str, call: str, text: str, *, kind: str = RESULT, markers: Sequence[Marker] | None = None
    ) -> list[Finding]:
        """Record "clipped": the model is sent `text` instead, because a host, a message list, a server or readcache
        truncated or cleared the old text. `markers`: the markers in `text`; None: the markers of the old text that are
        still there.

        The host does this by itself. Other markers may name lines that are gone. Such markers are wrong until the host
        gives readcache its messages or reports a compaction: see `repaired`.
        """
        found = self._of(reader).get(call)
        if found is None or kind not in found.texts:
            return []
        old = found.texts[kind].markers
        left = _found_again(old, text.split("\n")) if markers is None else tuple(markers)
        known = {(marker.words, marker.sources) for marker in old}
        new = [marker for marker in left if (marker.words, marker.sources) not in known]
        findings = [self._prove(self._sent[reader], call, marker, found.batch) for marker in new]
        found.texts[kind] = _SentText(text, left)
        return findings

    def cleared(self, reader: str, calls: Collection[str]) -> None:
        """Record "cleared": these calls are gone."""
        sent = self._of(reader)
        for call in calls:
            sent.pop(call, None)

    def compacted(self, reader: str, kept: Collection[str]) -> None:
        """Record "compacted": all other calls are gone."""
        self.cleared(reader, [call for call in self._of(reader) if call not in kept])

    def rewound(self, reader: str, call: str) -> None:
        """Record "rewound": every call after this one is gone. If this call is unknown, all calls are gone."""
        calls = list(self._of(reader))
        self.cleared(reader, calls[calls.index(call) + 1 :] if call in calls else calls)

    # ------------------------------------------------------------ other readers, and files

    def forked(self, parent: str, child: str, *, inherits: bool) -> None:
        """Record "forked": a sub-agent starts, with a copy of its parent's messages or with nothing."""
        copied = self._of(parent, is_retry=True).items() if inherits else ()
        self._sent[child] = {name: replace(call, texts=dict(call.texts)) for name, call in copied}

    def written(self, files: Iterable[str]) -> None:
        """Record "written": some reader of the session wrote these files. Earlier texts say nothing about their current
        content."""
        self._events += 1
        self._asked.clear()
        self._written.update(dict.fromkeys(files, self._events))

    # ------------------------------------------------------------ the promise

    def repaired(self, reader: str, rewrites: Mapping[str, str], restored: str = "") -> list[Finding]:
        """Record the package's answer to a compaction or to a message list: new texts for some results. Return findings
        for all markers that the model is sent.

        A new text may differ from the old one only in markers. It may replace a marker by the marker's lines, by a note
        that these lines are gone, or by a marker that names the section `restored`. After that, every marker that the
        model is sent must be true.
        """
        sent, findings = self._of(reader), list[Finding]()
        for call, text in rewrites.items():
            old = sent[call].texts[RESULT] if call in sent else _SentText("")
            markers, wrong = _rewritten(old, text.split("\n"), restored)
            findings += [Finding(call, None, wrong)] if wrong else []
            if call in sent:
                sent[call].texts[RESULT] = _SentText(text, markers)
        return findings + self.check_markers(reader)

    def check_markers(self, reader: str) -> list[Finding]:
        """Check whether the markers that the reader's model is sent are true. Return one finding for each."""
        sent = self._of(reader)
        return [
            self._prove(sent, call, replace(marker, file=None, sources=tuple(map(_anywhere, marker.sources))), "")
            for call, found in sent.items()
            for text in found.texts.values()
            for marker in text.markers
            if marker.line >= 0
        ]

    def _of(self, reader: str, *, is_retry: bool = False) -> dict[str, _SentCall]:
        """Return the calls that the reader's model is sent, and count one more event. `is_retry`: True if a request
        that is repeated after this event still comes right after the first request."""
        self._events += 1
        if not is_retry:
            self._asked.pop(reader, None)
        return self._sent.setdefault(reader, {})

    def _prove(self, sent: Mapping[str, _SentCall], call: str, marker: Marker, batch: str) -> Finding:
        """Check the invariant: the texts that this reader's model is sent contain every line that the marker replaces,
        byte for byte, at the sources that the marker names."""
        if not marker.sources:
            return Finding(call, marker, "an omission without a source")
        for named in marker.sources:
            source = sent.get(named.call)
            if source is None:
                return Finding(call, marker, f"an omission names {named.call}, {UNSEEN}")
            if batch and source.batch == batch and named.call != call:
                return Finding(call, marker, f"an omission names {named.call}, {AT_ONCE}")
            if self._written.get(marker.file or "", 0) > source.since and marker.words.startswith(_SAYS_UNCHANGED):
                return Finding(call, marker, f"{marker.file} was written after {named.call}, and may have changed")
        if marker.lines is None:
            return Finding(call, marker, untold="the lines that it stands for are not known")
        if all(named.at >= 0 for named in marker.sources):
            return Finding(call, marker, _misplaced(sent, marker, marker.lines))
        texts = [text for named in marker.sources for text in _texts(sent, named)]
        missing = first_missing(marker.lines, texts, marker.words)
        return Finding(call, marker) if missing is None else _not_there(call, marker, missing)

    def _insistence(self, reader: str, request: str, markers: Sequence[Marker], output: str) -> str:
        """Return the error in the answer to a retry; "" if there is none. Liveness: the same request right after an
        omission gets all omitted lines, and it gets everything if it is repeated once more."""
        last, gone = self._asked.get(reader), frozenset(left_out(markers))
        if not request or last is None or (last.request, last.output) != (request, output) or not last.left_out:
            self._asked[reader] = _Asked(request, output, gone)
            return ""
        again = gone if last.times else gone & last.left_out
        still = gone | last.left_out if gone else gone  # a reader who was shown everything has nothing left to request
        self._asked[reader] = _Asked(request, output, still, last.times + 1)
        return f"line {min(again) + 1} was left out again, and the reader had insisted" if again else ""


def _texts(sent: Mapping[str, _SentCall], named: NamedSource) -> list[VisibleText]:
    return [text.lines() for kind, text in sent[named.call].texts.items() if named.kind in ("", kind)]


def _anywhere(named: NamedSource) -> NamedSource:
    return NamedSource(named.call, named.kind)


def _misplaced(sent: Mapping[str, _SentCall], marker: Marker, lines: Sequence[str]) -> str:
    """Return the error in lines that must be at exactly these positions; "" if there is none."""
    found: list[str] = []
    for named in marker.sources:
        text = sent[named.call].texts.get(named.kind)
        if text is None:
            return f"an omission names the {named.kind} of {named.call}, {UNSEEN}"
        there = text.lines().text.split("\n")[named.at : named.at + named.count]
        if len(there) < named.count:
            return f"{named.count} lines do not stand in {named.call}"
        found += there
    if len(found) != len(lines):
        return f"a marker stands for {len(lines)} lines, and names {len(found)}"
    wrong = next((pair for pair in zip(lines, found, strict=True) if not is_same_line(*pair)), None)
    where = ", ".join(named.call for named in marker.sources)
    return f"{wrong[0][:80]!r} was left out, but at {where} stands {wrong[1][:80]!r}" if wrong else ""


def _not_there(call: str, marker: Marker, missing: int) -> Finding:
    where, line = ", ".join(named.call for named in marker.sources), (marker.lines or ())[missing]
    what = f"line {marker.first + missing} of {marker.file or 'the output'}"
    return Finding(call, marker, f"{what} was left out, but does not stand at {where}: {line[:80]!r}")


def _found_again(markers: Iterable[Marker], lines: Sequence[str]) -> tuple[Marker, ...]:
    """Return the markers that are in these lines. A host may put its own words around them."""
    free, found = dict(enumerate(lines)), list[Marker]()
    for marker in markers:
        at = next((number for number, line in free.items() if marker.words in line), None)
        if at is not None:
            del free[at]
            found.append(replace(marker, line=at))
    return tuple(found)


def _rewritten(old: _SentText, new: Sequence[str], restored: str) -> tuple[tuple[Marker, ...], str]:
    """Return the markers in the new lines of a text, and the error in these lines ("" if there is none)."""
    markers, at, marked = list[Marker](), 0, {marker.line: marker for marker in old.markers}
    for number, line in enumerate(old.text.split("\n")):
        there = new[at] if at < len(new) else ""
        marker = marked.get(number)
        lines = marker.lines if marker is not None else None
        if marker is not None and there == line:
            markers.append(replace(marker, line=at))
        elif lines is not None and tuple(new[at : at + len(lines)]) == lines:
            at += len(lines) - 1
        elif marker is not None and restored and there[:1] == "[" and not there.startswith(_SAYS_GONE):
            markers.append(replace(marker, line=at, words=there, sources=(NamedSource(restored),)))
        elif not (there.startswith(_SAYS_GONE) if marker is not None else there == line):
            return (), f"a line that is not a marker was rewritten: {line[:80]!r}"
        at += 1
    return tuple(markers), "" if at == len(new) else "a rewrite added lines"
