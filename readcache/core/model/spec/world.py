"""What each reader's model is sent, and whether every marker in it tells the truth.

A `World` is told what happened, one method for each kind of event, by whoever watched: a test, a replay, a log. It
answers with one `Finding` for each marker that the event puts before a model. The promise holds if no finding has a
fault.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from readcache.core.model.spec.lines import VisibleText, first_missing, is_same_line
from readcache.core.model.spec.marker import Finding, Marker, NamedSource
from readcache.core.model.spec.reply import Answer, account_fault, left_out, markers_of

RESULT, COMMAND = "result", "command"  # a call has two texts: what it printed, and what the agent said in it
_SAYS_UNCHANGED = ("[UNCHANGED ", "[FILE_UNCHANGED ")  # words that also speak of the file
_SAYS_GONE = "[GONE "
_HIDDEN = "\0"  # in the place of a marker, where lines are looked for
UNSEEN, AT_ONCE = "which the reader cannot see", "which was called at the same time"


@dataclass(slots=True)
class _SentText:
    """A text, and the markers in it."""

    text: str
    markers: tuple[Marker, ...] = ()
    _lines: VisibleText | None = None

    def lines(self) -> VisibleText:
        """Its lines, where others may point. A marker is none of them: it only stands for lines."""
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
    since: int  # events before it
    texts: dict[str, _SentText] = field(default_factory=dict)


@dataclass(slots=True)
class _Asked:
    """What a reader asked for last, and which lines of the output it has not got since."""

    request: str
    output: str
    left_out: frozenset[int]
    times: int = 0


class World:
    """The readers of one session, by name. Each starts with nothing."""

    def __init__(self) -> None:
        self._sent: dict[str, dict[str, _SentCall]] = {}
        self._written: dict[str, int] = {}  # file -> events before it was written last
        self._asked: dict[str, _Asked] = {}
        self._sections = set[str]()
        self._events = 0

    # ------------------------------------------------------------ what a model is sent

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
        """Shown: from the next request on the model is sent `text` as the call's result, and `said`, which it wrote
        itself. `batch`: calls made at once share it. `output`: what the tool printed. `request`: equal for equal ones;
        empty where insisting is not looked at. `number`: of the call, where its texts are told one by one.

        Each marker must be true of what was sent before. The text, each marker replaced with its lines, must be the
        output. Who asked for the same again must be given what was left out.
        """
        sent = self._of(reader, is_retry=True)
        earlier = sent.get(call)
        if earlier is None or not number or earlier.number != number or kind in earlier.texts:
            sent.pop(call, None)  # an id that is used twice names the newer text
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
        """Shown, as a reply of the package tells it."""
        markers, wrong = markers_of(reply)
        wrong = wrong or ("" if output == reply.full_text else "the segments do not add up to the output")
        call, text = reply.call_id, reply.text
        found = self.shown(reader, call, text, markers=markers, output=output, said=said, batch=batch, request=request)
        return [Finding(reply.call_id, None, wrong), *found] if wrong else found

    def restored(self, reader: str, call: str, text: str) -> None:
        """Restored: a section that a compactor put back. It has lines and no markers. All sections have one name: what
        named an older one now names this one."""
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

    # ------------------------------------------------------------ what a model is no longer sent

    def clipped(
        self, reader: str, call: str, text: str, *, kind: str = RESULT, markers: Sequence[Marker] | None = None
    ) -> list[Finding]:
        """Clipped: the model is sent `text` instead, because a host, a list, a server or we clipped or cleared it.
        `markers`: those in it; None: those of the old text that are still there.

        The host does this alone. Markers elsewhere that named what is gone are wrong until the host gives us its
        messages or says that it compacts: see `repaired`.
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
        """Cleared: these calls are gone."""
        sent = self._of(reader)
        for call in calls:
            sent.pop(call, None)

    def compacted(self, reader: str, kept: Collection[str]) -> None:
        """Compacted: all other calls are gone."""
        self.cleared(reader, [call for call in self._of(reader) if call not in kept])

    def rewound(self, reader: str, call: str) -> None:
        """Rewound: every call after this one is gone; all of them if it is unknown."""
        calls = list(self._of(reader))
        self.cleared(reader, calls[calls.index(call) + 1 :] if call in calls else calls)

    # ------------------------------------------------------------ other readers, and files

    def forked(self, parent: str, child: str, *, inherits: bool) -> None:
        """Forked: a sub-agent starts, with a copy of its parent's messages or with nothing."""
        copied = self._of(parent, is_retry=True).items() if inherits else ()
        self._sent[child] = {name: replace(call, texts=dict(call.texts)) for name, call in copied}

    def written(self, files: Iterable[str]) -> None:
        """Written: some reader of the session wrote these files. Texts from before tell nothing of them."""
        self._events += 1
        self._asked.clear()
        self._written.update(dict.fromkeys(files, self._events))

    # ------------------------------------------------------------ what must hold

    def repaired(self, reader: str, rewrites: Mapping[str, str], restored: str = "") -> list[Finding]:
        """The package's answer to a compaction or to a message list: new texts for some results. They may differ from
        the old ones in markers alone: one gives way to its lines, to a note that these are gone, or to a marker that
        names the section `restored`. Then every marker that the model is sent must be true."""
        sent, findings = self._of(reader), list[Finding]()
        for call, text in rewrites.items():
            old = sent[call].texts[RESULT] if call in sent else _SentText("")
            markers, wrong = _rewritten(old, text.split("\n"), restored)
            findings += [Finding(call, None, wrong)] if wrong else []
            if call in sent:
                sent[call].texts[RESULT] = _SentText(text, markers)
        return findings + self.check_markers(reader)

    def check_markers(self, reader: str) -> list[Finding]:
        """Whether the markers that the reader's model is sent are true."""
        sent = self._of(reader)
        return [
            self._prove(sent, call, replace(marker, file=None, sources=tuple(map(_anywhere, marker.sources))), "")
            for call, found in sent.items()
            for text in found.texts.values()
            for marker in text.markers
            if marker.line >= 0
        ]

    def _of(self, reader: str, *, is_retry: bool = False) -> dict[str, _SentCall]:
        """What the reader's model is sent, before one more event. `is_retry`: a request that is repeated after that
        event still comes right after the first one."""
        self._events += 1
        if not is_retry:
            self._asked.pop(reader, None)
        return self._sent.setdefault(reader, {})

    def _prove(self, sent: Mapping[str, _SentCall], call: str, marker: Marker, batch: str) -> Finding:
        """The invariant: every line that the marker stands for stands, byte for byte, at the places that it names, in
        what this reader's model is sent."""
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
        """What is wrong with the answer to a reader who insists. Liveness: the same request right after an omission is
        given all that was left out, and everything when it comes once more."""
        last, gone = self._asked.get(reader), frozenset(left_out(markers))
        if not request or last is None or (last.request, last.output) != (request, output) or not last.left_out:
            self._asked[reader] = _Asked(request, output, gone)
            return ""
        again = gone if last.times else gone & last.left_out
        still = gone | last.left_out if gone else gone  # a reader who was given everything has nothing to insist on
        self._asked[reader] = _Asked(request, output, still, last.times + 1)
        return f"line {min(again) + 1} was left out again, and the reader had insisted" if again else ""


def _texts(sent: Mapping[str, _SentCall], named: NamedSource) -> list[VisibleText]:
    return [text.lines() for kind, text in sent[named.call].texts.items() if named.kind in ("", kind)]


def _anywhere(named: NamedSource) -> NamedSource:
    return NamedSource(named.call, named.kind)


def _misplaced(sent: Mapping[str, _SentCall], marker: Marker, lines: Sequence[str]) -> str:
    """What is wrong with lines that should stand in exactly these places."""
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
    """The markers that are in these lines, whatever words a host puts around them."""
    free, found = dict(enumerate(lines)), list[Marker]()
    for marker in markers:
        at = next((number for number, line in free.items() if marker.words in line), None)
        if at is not None:
            del free[at]
            found.append(replace(marker, line=at))
    return tuple(found)


def _rewritten(old: _SentText, new: Sequence[str], restored: str) -> tuple[tuple[Marker, ...], str]:
    """The markers in the new lines of a text, and what is wrong with these."""
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
