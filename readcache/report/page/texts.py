"""A text that an agent was shown, as HTML: its lines, and in the place of each marker the way to its source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from readcache.model.events import Delivered, Origin, Piece
from readcache.model.spans import Spans, merge_spans
from readcache.model.text import split_lines
from readcache.report.page.glance import link
from readcache.report.page.lanes import Band, Gap, PageText
from readcache.report.page.markup import attributes, escaped, marked_up, plural

_TITLES = {
    Origin.RESULT: "What the agent was shown",
    Origin.COMMAND: "What the agent wrote itself",
    Origin.RESTORED: "What was put back into the conversation",
}


def text_block(text: PageText) -> Iterator[str]:
    """The block, with all that other places of the page link to."""
    event = text.event
    title = _TITLES[event.origin] if isinstance(event, Delivered) else "What stands there now"
    yield f'<section class="text" id="{text.name}"><h4>{title}</h4>'
    if pieces := _lines_of_files(event.pieces):
        yield f'<p class="pieces">{pieces}</p>'
    if text.erased:
        yield '<p class="note">It never reached the agent: the harness replaced it first.</p>'
    elif isinstance(event, Delivered) and event.account is not None and event.account.shown_chars and not event.text:
        yield '<p class="note">The log does not keep this text: it can never be the source of anything.</p>'
    elif not event.text:
        yield '<p class="note">Nothing.</p>'
    elif text.same is not None and not text.same.erased:
        yield f'<p class="note">The very text of {link(text.same.step)}.</p>'
        yield from _lines(text, [], 0, same=text.same.name)
    else:
        yield from _segments(text)
    yield "</section>"


def _lines_of_files(pieces: Sequence[Piece]) -> str:
    by_key: dict[str, list[tuple[int, int]]] = {}
    for piece in pieces:
        if piece.first:
            by_key.setdefault(piece.keys[0], []).append((piece.first, piece.first + piece.count - 1))
    return " ".join(
        f'<span title="{escaped(key)}">{escaped(key.rpartition("/")[2])} {_spell(merge_spans(spans))}</span>'
        for key, spans in by_key.items()
    )


def _spell(spans: Spans) -> str:
    return ", ".join(f"{start}–{end}" if start != end else f"{start}" for start, end in spans)


def _segments(text: PageText) -> Iterator[str]:
    """The stretches between markers, each a block of its own, and the markers."""
    lines, at = split_lines(text.event.text), 0
    for gap in sorted(text.gaps, key=lambda gap: gap.pointer.line):
        line = gap.pointer.line
        if at < line:
            yield from _lines(text, lines[at:line], at)
        if at <= line < len(lines):
            yield from _gap(gap, lines[line])
            at = line + 1
    if at < len(lines):
        yield from _lines(text, lines[at:], at)


def _lines(text: PageText, lines: Sequence[str], at: int, same: str = "") -> Iterator[str]:
    """`at`: the place of the first of them in the whole text. Bands lie behind the lines that markers point at."""
    end = at + len(lines)
    yield f'<pre tabindex="0"{attributes(data_at=at, data_same=same or None)}><code>'
    for band in text.bands.values():
        if same or at <= band.at < end:
            yield f'<i class="band" id="{band.name}" style="--at:{band.at - at};--n:{band.count}"></i>'
    yield marked_up("\n".join(lines))
    yield "</code></pre>"


def _gap(gap: Gap, wording: str) -> Iterator[str]:
    pointer, bands = gap.pointer, gap.bands
    yield f'<div class="gap"><p class="marker">{marked_up(wording)}</p>'
    if not gap.sources:
        yield "<p>What it stood for has left the conversation.</p></div>"
        return
    yield f"<p>{_sources(gap)}</p>"
    if pointer.lines:
        yield f"<details><summary>{_what(gap)}</summary>"
        yield f'<pre tabindex="0"><code>{marked_up(pointer.lines)}</code></pre></details>'
    elif bands:
        places = " ".join(f"{band.text.name}:{band.at}:{band.count}" for band in bands)
        yield f'<details class="fill" data-from="{places}"><summary>{_what(gap)}</summary>'
        yield "<p>Follow the link above: without a script this page cannot show them here.</p></details>"
    yield "</div>"


def _what(gap: Gap) -> str:
    return f"the {plural(gap.pointer.end - gap.pointer.start + 1, 'line')} left out"


def _sources(gap: Gap) -> str:
    links = []
    for source in gap.sources:
        if isinstance(source, Band) and source.text.erased:
            links.append(link(source.text.step))
        elif isinstance(source, Band):
            first, last, step = source.at + 1, source.at + source.count, source.text.step
            words = f"lines {first}–{last} of #{step.at + 1}" if first != last else f"line {first} of #{step.at + 1}"
            links.append(f'<a class="jump" href="#{source.name}">{words}</a>')
        else:
            links.append(link(source))
    return "Source: " + ", ".join(dict.fromkeys(links))
