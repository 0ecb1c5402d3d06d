"""What replaces a pruned text: a note of one line, or the two ends of a long text with a note between them.

A note tells of the past and promises nothing about what else is in view, so that no later pruning or compaction can
make it untrue. It is not a marker: what was pruned no longer counts as seen, and a repeated request is answered anew.

    [PRUNED 7f3a: app.py lines 1-40; the same bytes were shown again later; repeat to see]
"""

from __future__ import annotations

from collections.abc import Sequence

from readcache.core.judging.marker import names_of
from readcache.core.messages.blocks import Raw
from readcache.core.messages.editing import with_arguments, with_result_text, with_texts
from readcache.core.messages.messages import Kind, Message, update_all

# Characters: what mini-swe-agent's template shows of a longer output (5,000 of either end), as CooperBench's does.
MOST_CHARS = 10_000
NOTE_CHARS = 100  # room for the line that says what is gone
MOST_NAMED = 3  # files, and stretches of a file; as many as a marker names sources


def note_line(tag: str, text: str) -> str:
    """The line that says what was pruned, with the session's tag if there is one."""
    return f"[PRUNED {tag}: {text}]" if tag else f"[PRUNED: {text}]"


def is_note(text: str, tag: str = "") -> bool:
    """True for a note and nothing else: of the session with that tag, if one is given."""
    return text.startswith(f"[PRUNED {tag}: " if tag else "[PRUNED") and text.endswith("]") and "\n" not in text


def has_note(text: str) -> bool:
    """True if one of its lines begins like a note. Then its lines cannot be counted."""
    return text.startswith("[PRUNED") or "\n[PRUNED" in text


def spell_file_lines(ranges: Sequence[tuple[str, int, int]]) -> str:
    """`app.py lines 1-40, 90-95 and b.py lines 3-9` for (path, first, last) in order."""
    spans: dict[str, list[str]] = {}
    for path, first, last in ranges:
        spans.setdefault(path, []).append(f"{first}-{last}")
    named = names_of(list(spans))
    names = [f"{named[path]} lines {', '.join(_few(runs))}" for path, runs in spans.items()]
    return " and ".join(_few(names))


def _few(names: list[str]) -> list[str]:
    more = len(names) - MOST_NAMED
    return names if more <= 0 else [*names[:MOST_NAMED], f"{more} more"]


def clip_text(text: str, most: int, tag: str = "") -> str:
    """The text, or its two ends with a note between them: at most `most` characters in all, and at least the note.

    A line is cut only where it alone is longer than an end may be.
    """
    if len(text) <= most:
        return text
    each = max(0, most - NOTE_CHARS) // 2
    head, tail = _head(text, each), _tail(text, each)
    gone = text[len(head) : len(text) - len(tail)]
    lines = gone.count("\n") + (not gone.endswith("\n"))
    what = f"{lines:,} lines ({len(gone):,} characters)" if lines > 1 else f"{len(gone):,} characters"
    between = "" if not head or head.endswith("\n") else "\n"
    return f"{head}{between}{note_line(tag, f'{what} omitted here; ask again to see them')}\n{tail}"


def _head(text: str, most: int) -> str:
    end = text.rfind("\n", 0, most) + 1
    return text[: end or most]


def _tail(text: str, most: int) -> str:
    start = len(text) - most
    end = text.find("\n", max(0, start - 1), len(text) - 1) + 1
    return text[end or start :]


def clip_messages(messages: Sequence[Message], most: int, tag: str = "") -> list[Message]:
    """The messages with no text in them longer than `most` characters: results, what is said, and each argument of a
    call, which stays valid JSON. A message without such a text is the same object."""
    return update_all(messages, [_clip_message(message, most, tag) for message in messages])


def _clip_message(message: Message, most: int, tag: str) -> Raw:
    raw: Raw = message.raw
    for part in message.parts:
        if part.kind is Kind.RESULT and len(part.text) > most:
            raw = with_result_text(raw, part.call_id, clip_text(part.text, most, tag), part.nth)
        elif part.kind is Kind.CALL:
            given = (part.arguments or {}).items()
            short = {key: clip_text(v, most, tag) for key, v in given if isinstance(v, str) and len(v) > most}
            raw = with_arguments(raw, part.call_id, {**dict(given), **short}, part.nth) if short else raw
        elif part.kind is Kind.TEXT and len(part.text) > most:
            raw = with_texts(raw, lambda text: clip_text(text, most, tag))
    return raw
