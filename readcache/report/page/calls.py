"""The timeline as HTML: a line for each step, which unfolds to its texts.

Each marker in a text has links to its sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from readcache.core.model.events import (
    Account,
    Amended,
    Compacted,
    Delivered,
    Failed,
    Forgot,
    MappedSpan,
    Missed,
    Origin,
    Removal,
    Rewound,
    Wrote,
)
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.spans import Spans, merge_spans
from readcache.core.model.text import split_lines
from readcache.report.page.html import attributes, brief, escaped, marked_up, number, plural
from readcache.report.page.overview import link
from readcache.report.page.timelines import Band, Gap, PageText, Step, Timeline

_TITLES = {
    Origin.RESULT: "What the agent was shown",
    Origin.COMMAND: "What the agent wrote itself",
    Origin.RESTORED: "What was put back into the conversation",
}
LABEL_CHARS = 200  # the most of a command in its line; the whole command is below
TAIL_CHARS = 24  # the last of these, which a narrow line shows too: they often name a file
_UNKNOWN = "a call that is not known"
_OURS = {Reason.STORE_FAILED, Reason.INTERNAL_ERROR}
_NO_RESULT = {Origin.COMMAND: "authored", Origin.RESTORED: "restored", Origin.RESULT: "inherited"}


def text_block(text: PageText) -> Iterator[str]:
    """Yield the block of a text, with all elements that links on the page lead to."""
    event = text.event
    title = _TITLES[event.origin] if isinstance(event, Delivered) else "What stands there now"
    yield f'<section class="text" id="{text.name}"><h4>{title}</h4>'
    if source_map := _lines_of_files(event.source_map):
        yield f'<p class="pieces">{source_map}</p>'
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


def _lines_of_files(source_map: Sequence[MappedSpan]) -> str:
    by_key: dict[str, list[tuple[int, int]]] = {}
    for mapped in source_map:
        if mapped.first:
            by_key.setdefault(mapped.keys[0], []).append((mapped.first, mapped.first + mapped.count - 1))
    return " ".join(
        f'<span title="{escaped(key)}">{escaped(key.rpartition("/")[2])} {_spell(merge_spans(spans))}</span>'
        for key, spans in by_key.items()
    )


def _spell(spans: Spans) -> str:
    return ", ".join(f"{start}–{end}" if start != end else f"{start}" for start, end in spans)


def _segments(text: PageText) -> Iterator[str]:
    """Yield the markers, and the lines between two markers as one block."""
    lines, at = split_lines(text.event.text), 0
    for gap in sorted(text.gaps, key=lambda gap: gap.marker.line):
        line = gap.marker.line
        if at < line:
            yield from _lines(text, lines[at:line], at)
        if at <= line < len(lines):
            yield from _gap(gap, lines[line])
            at = line + 1
    if at < len(lines):
        yield from _lines(text, lines[at:], at)


def _lines(text: PageText, lines: Sequence[str], at: int, same: str = "") -> Iterator[str]:
    """Yield a block of lines, with a band under the lines that a marker names. `at`: the index of the first line in the
    whole text. `same`: the ID of the text whose lines the script copies here."""
    end = at + len(lines)
    yield f'<pre tabindex="0"{attributes(data_at=at, data_same=same or None)}><code>'
    for band in text.bands.values():
        if same or at <= band.at < end:
            yield f'<i class="band" id="{band.name}" style="--at:{band.at - at};--n:{band.count}"></i>'
    yield marked_up("\n".join(lines))
    yield "</code></pre>"


def _gap(gap: Gap, wording: str) -> Iterator[str]:
    marker, bands = gap.marker, gap.bands
    yield f'<div class="gap"><p class="marker">{marked_up(wording)}</p>'
    if not gap.sources:
        yield "<p>What it stood for has left the conversation.</p></div>"
        return
    yield f"<p>{_sources(gap)}</p>"
    if marker.lines:
        yield f"<details><summary>{_what(gap)}</summary>"
        yield f'<pre tabindex="0"><code>{marked_up(marker.lines)}</code></pre></details>'
    elif bands:
        spans = " ".join(f"{band.text.name}:{band.at}:{band.count}" for band in bands)
        yield f'<details class="fill" data-from="{spans}"><summary>{_what(gap)}</summary>'
        yield "<p>Follow the link above: without a script this page cannot show them here.</p></details>"
    yield "</div>"


def _what(gap: Gap) -> str:
    return f"the {plural(gap.marker.end - gap.marker.start + 1, 'line')} left out"


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


def time_line(timeline: Timeline, began: float) -> Iterator[str]:
    """Yield all lines of a reader. `began`: seconds since the epoch; 0 if no times are known."""
    yield '<ol class="calls" role="list">\n'
    for step in timeline.steps:
        kinds, word = _kinds(step), _word(step)
        yield f"<li{attributes(id=step.name, class_=' '.join(kinds), data_in_view=brief(step.tokens_in_view))}>"
        yield f"<details><summary>{_line(step, word, began)}</summary>"
        yield '<div class="body">'
        yield from _body(step)
        yield "</div></details></li>\n"
    yield "</ol>\n"


def _line(step: Step, word: str, began: float) -> str:
    label = _short(_label(step))
    head, tail = (label[:-TAIL_CHARS], label[-TAIL_CHARS:]) if len(label) > 2 * TAIL_CHARS else (label, "")
    at, left = step.record.at, step.left_out
    return (
        f'<span class="n">{step.at + 1}</span>'
        + (f'<span class="at">{_elapsed(at - began)}</span>' if began else "")
        + f'<code class="what"><span>{escaped(head)}</span>{escaped(tail)}</code>'
        + f'<span class="why">{escaped(word)}</span>'
        + f'<span class="in">{brief(step.shown) if step.result or _is_restored(step) else ""}</span>'
        + f'<span class="out">{"−" + brief(left) if left > 0 else "+" + brief(-left) if left else ""}</span>'
    )


def _short(label: str) -> str:
    label = " ".join(label.split())
    return label if len(label) <= LABEL_CHARS else label[: LABEL_CHARS - 1] + "…"


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _kinds(step: Step) -> list[str]:
    """Return the classes of the line. The filter uses them too."""
    first, account = step.events[0], _account(step)
    kinds = []
    if account is not None:
        kinds.append("full" if account.outcome is Outcome.FULL else "left")
        if account.reason is Reason.INSISTED or step.asks_again:
            kinds.append("again")
        if account.reason in _OURS:
            kinds.append("failed")
    if step.asked_again is not None:
        kinds.append("bounced")
    if any(isinstance(event, Wrote) and event.keys for event in step.events):
        kinds.append("wrote")
    if isinstance(first, Failed):
        kinds.append("failed")
    if isinstance(first, Removal | Amended) or _is_restored(step):
        kinds.append("host")
    if isinstance(first, (Compacted, Rewound)):
        kinds.append("cut")
    return kinds


def _account(step: Step) -> Account | None:
    return None if step.result is None else step.result.account


def _is_restored(step: Step) -> bool:
    return any(isinstance(event, Delivered) and event.origin is Origin.RESTORED for event in step.events)


def _word(step: Step) -> str:
    """Return what happened, in a word or two: the reason of an answer, or the name of another event."""
    account = _account(step)
    if account is not None:
        word = account.reason.value.replace("_", " ")
        return f"{word}, asked for again" if step.asked_again is not None else word
    for event in step.events:
        if isinstance(event, Wrote):
            return "wrote" if event.keys else "may have written"
    first = step.events[0]
    return _NO_RESULT[first.origin] if isinstance(first, Delivered) else _told(step)[0]


def _label(step: Step) -> str:
    for event in step.events:
        if isinstance(event, Delivered) and (event.account is not None or event is step.events[-1]):
            return event.label
    first = step.events[0]
    if isinstance(first, Wrote):
        return first.label or ", ".join(first.keys or first.possible_writes)
    return _told(step)[1]


def _told(step: Step) -> tuple[str, str, str]:
    """Return the word, the label and the HTML of a failure or of an event of the host; empty texts for a call."""
    first, left = step.events[0], f"{plural(step.gone, 'call')} left the conversation"
    if isinstance(first, Amended):
        number, call = (f"#{step.of.at + 1}", link(step.of)) if step.of is not None else (_UNKNOWN, _UNKNOWN)
        text = f"The harness cut, redacted or rewrote the text of {call}. From here on this stands in its place."
        return "settled", f"what the harness finally shows of {number}", text
    if isinstance(first, Compacted):
        kept = f"{plural(len(first.kept), 'call')} stayed. Nothing that left is a source any more."
        return "compacted", left, f"The harness compacted: {left}, {kept}"
    if isinstance(first, Rewound):
        call = f"<code>{escaped(first.call_id)}</code>"
        return "rewound", left, f"The conversation was taken back to {call}: {plural(step.gone, 'call')} left it."
    if isinstance(first, Failed):
        text = f"Something of readcache failed ({escaped(first.cause)}), and the real output went through: "
        return "failed", first.detail, text + escaped(first.detail)
    if isinstance(first, Missed):
        results = plural(first.count, "result")
        text = f"The host had {results} that readcache did not judge: {escaped(first.why)}. "
        return "missed", f"{results} not judged: {first.why}", text + "The agent was shown them as they are."
    return ("forgot", left, f"{left}.") if isinstance(first, Forgot) else ("", "", "")


def _body(step: Step) -> Iterator[str]:
    account = _account(step)
    if account is not None:
        yield from _answer(step, account)
    if told := _told(step)[2]:
        yield f"<p>{told}</p>"
    label = next((event.label for event in step.events if isinstance(event, (Delivered, Wrote)) and event.label), "")
    if label != _short(label) and all(text.event.text != label for text in step.texts):
        yield f'<pre class="command" tabindex="0"><code>{escaped(label)}</code></pre>'
    for event in step.events:
        if isinstance(event, Wrote):
            yield from _writes(event, step)
    for text in step.texts:
        yield from text_block(text)
    yield f'<p class="facts">{_facts(step, account)}</p>'


def _answer(step: Step, account: Account) -> Iterator[str]:
    reason = account.reason
    yield f'<p class="reason"><b>{reason.value.replace("_", " ")}</b>: {escaped(reason.why)}.</p>'
    if step.asked_again is not None:
        yield f'<p class="note">The agent asked for it again in {link(step.asked_again)}, '
        yield "so what this omitted is not counted as saved.</p>"
    if step.asks_again:
        yield f'<p class="note">It asks again for what {" ".join(map(link, step.asks_again))} omitted.</p>'


def _facts(step: Step, account: Account | None) -> str:
    call_id = getattr(step.events[0], "call_id", "")
    facts = [f"id <code>{escaped(call_id)}</code>"] if call_id else []
    if account is not None:
        facts.append(f"printed {plural(account.output_chars, 'character')}, {number(step.shown)} shown")
        if account.outcome is not Outcome.FULL:
            facts.append(f"about {plural(account.tokens_saved, 'token')} saved net")
        elif account.tokens_saved:
            facts.append(f"about {plural(account.tokens_saved, 'token')} would have been saved")
    facts.append(f"about {plural(step.tokens_in_view, 'token')} of tool results in view after it")
    if step.pointed_from:
        facts.append(f"markers point here from {' '.join(map(link, step.pointed_from))}")
    return " · ".join(facts)


def _writes(event: Wrote, step: Step) -> Iterator[str]:
    whose = "" if event.call_id else f" by reader {escaped(step.record.agent_id)}"
    for keys, verb in ((event.keys, "Written"), (event.possible_writes, "May have been written")):
        if keys:
            names = ", ".join(f"<code>{escaped(key)}</code>" for key in keys)
            yield f"<p>{verb}{whose}: {names}. Older lines of it are stale from here on.</p>"
