"""Replace a pruned text: with a one-line note, or with the two ends of a long text and a note between them.

A note reports the past and promises nothing about other visible texts. So no later pruning or compaction can make it
untrue. It is not a marker: pruned text no longer counts as seen, and a repeated request is answered from scratch.

    [PRUNED 7f3a: app.py lines 1-40; shown again later, byte for byte; repeat this call to see]
"""

from __future__ import annotations

from collections.abc import Sequence

from readcache.core.judging.marker import RECALL, names_of
from readcache.core.messages.blocks import Raw
from readcache.core.messages.editing import with_arguments, with_result_text, with_texts
from readcache.core.messages.messages import Kind, Message, update_all
from readcache.core.model.text import SESSION_DIGITS

# Characters. The templates of mini-swe-agent and CooperBench show as many of a longer output: 5,000 of either end.
MOST_CHARS = 10_000
NOTE_CHARS = 100  # room for the note between the two ends
RECALLED_TURNS = 10  # in which a recalled result is neither pruned nor cleared; the agent has just asked for it
MOST_NAMED = 3  # files, and ranges of a file; a marker names as many sources


def note_line(tag: str, text: str) -> str:
    """Return the note with this text, and with the session's tag if there is one."""
    return f"[PRUNED {tag}: {text}]" if tag else f"[PRUNED: {text}]"


def recall_note(recall: str, text: str) -> str:
    """Return the note with this text for a result that the command `recall` shows again."""
    return note_line(recall.removeprefix(RECALL), f'{text}; to see it as it was, run "{recall}"')


def is_note(text: str, tag: str = "") -> bool:
    """Return True if the text is a note and nothing else. If a tag is given, the note must be from that session."""
    return (
        text.startswith(f"[PRUNED {tag[:SESSION_DIGITS]}" if tag else "[PRUNED")
        and text.endswith("]")
        and "\n" not in text
    )


def has_note(text: str) -> bool:
    """Return True if one of the lines starts like a note. The lines of such a text cannot be counted."""
    return text.startswith("[PRUNED") or "\n[PRUNED" in text


def spell_file_lines(ranges: Sequence[tuple[str, int, int]]) -> str:
    """Return `app.py lines 1-40, 90-95 and b.py lines 3-9` for (path, first, last) in order. Lines are 1-based and
    inclusive. At most `MOST_NAMED` files, and ranges of each, are named."""
    spans: dict[str, list[str]] = {}
    for path, first, last in ranges:
        spans.setdefault(path, []).append(f"{first}-{last}")
    named = names_of(list(spans))
    names = [f"{named[path]} lines {', '.join(_few(runs))}" for path, runs in spans.items()]
    return " and ".join(_few(names))


def _few(names: list[str]) -> list[str]:
    more = len(names) - MOST_NAMED
    return names if more <= 0 else [*names[:MOST_NAMED], f"{more} more"]


def clip_text(text: str, most: int, tag: str = "", recall: str = "") -> str:
    """Return the text, or its two ends with a note between them. `recall`: the command that shows all of it, if any.

    The result has at most `most` characters, or only the note if that is longer. A line is split only if it is longer
    than an end may be.
    """
    if len(text) <= most:
        return text
    each = max(0, most - NOTE_CHARS - len(recall)) // 2
    head, tail = _head(text, each), _tail(text, each)
    gone = text[len(head) : len(text) - len(tail)]
    lines = gone.count("\n") + (not gone.endswith("\n"))
    what = f"{lines:,} lines ({len(gone):,} characters)" if lines > 1 else f"{len(gone):,} characters"
    end = f'to see them, run "{recall}"' if recall else "ask again to see them"
    between = "" if not head or head.endswith("\n") else "\n"
    return f"{head}{between}{note_line(tag, f'{what} omitted here; {end}')}\n{tail}"


def _head(text: str, most: int) -> str:
    end = text.rfind("\n", 0, most) + 1
    return text[: end or most]


def _tail(text: str, most: int) -> str:
    start = len(text) - most
    end = text.find("\n", max(0, start - 1), len(text) - 1) + 1
    return text[end or start :]


def clip_messages(messages: Sequence[Message], most: int, tag: str = "") -> list[Message]:
    """Return the messages with each text shortened to `most` characters: results, plain texts and arguments of calls.
    Arguments stay valid JSON. A message without a longer text is the same object."""
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
