"""Write a summary: the text that replaces old turns, with known facts about its numbers, edits and files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from readcache.context.edits import EDITS
from readcache.context.file_map import FILE_MAP, KEY_SYMBOLS
from readcache.context.notes import clip_text
from readcache.core.messages.messages import Kind, Message
from readcache.core.restore import plan as restore

HEADING = "## Summary of the conversation so far"
RESTORED_HEADING = f"## {restore.HEADING}"
# A line that starts like one of these is indented by a space: text of a model or a user must not look like the log's.
_OURS = re.compile(
    "^(?=" + "|".join(map(re.escape, (HEADING, RESTORED_HEADING, EDITS, FILE_MAP, KEY_SYMBOLS))) + ")", re.M
)
_INVENTED = "Numbers in this summary that do not occur in the conversation: "
_FROM_EARLIER = "Line numbers taken over from an earlier summary, which edits may have moved since: "
_LINE_NUMBERS = re.compile(r"(?:\blines?\s+|:|\bL)(\d{2,})(?:\s*[-\u2013]\s*(\d{2,}))?", re.I)
_NO_SUMMARY = (
    "No summary could be made: {count} messages were removed here without one. Their changes are in the files; check"
    " those, and the list below, before you repeat any work."
)
# Characters of a user's message, and of an earlier summary, if no model writes a new summary.
USER_CHARS = 2_000
EARLIER_CHARS = 10_000


def written_summary(text: str, transcript: str, earlier: Sequence[str], known: Sequence[str]) -> str:
    """Return a model's summary, followed by the known facts about its numbers, the edits and the files."""
    return _sections([_OURS.sub(" ", text), *doubts(text, transcript, earlier, known)], known)


def doubts(summary: str, transcript: str, earlier: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return warnings about doubtful numbers in a summary.

    - Numbers of two or more digits that do not occur in the conversation. Models invent them although the prompt
      forbids it. Numbers that an earlier summary invented stay in doubt.
    - Line numbers that only an earlier summary contains.
    """
    before = Counter(re.findall(r"\d+", "\n".join(map(body_of, earlier))))
    shown = Counter(re.findall(r"\d+", transcript)) - before
    now = shown.keys() | re.findall(r"\d+", "\n".join(known))
    lines = [line for text in earlier for line in text.splitlines() if line.startswith(_INVENTED)]
    doubted = set(re.findall(r"\d+", "\n".join(lines)))
    left = [number for number in dict.fromkeys(re.findall(r"\d{2,}", summary)) if number not in now]
    invented = [number for number in left if number not in before or number in doubted]
    of_lines = {number for pair in _LINE_NUMBERS.findall(summary) for number in pair}
    moved = [number for number in left if number in of_lines and number not in invented]
    found = ((_INVENTED, invented), (_FROM_EARLIER, moved))
    return [f"{what}{', '.join(numbers)}." for what, numbers in found if numbers]


def mechanical_summary(old: Sequence[Message], earlier: Sequence[str], known: Sequence[str]) -> str:
    """Return a summary without a model: earlier summaries, the user's messages in the turns `old`, and the files."""
    said = [clip_text(message.text, USER_CHARS) for message in old if message.role == "user" and message.text]
    if not any(part.kind is Kind.CALL for message in old for part in message.parts):
        said = []  # a chat without calls: tools answer as the user, so the speakers look alike
    asked = "\n\n".join(["The user has also said:", *said]) if said else ""
    before = [clip_text(body_of(summary), EARLIER_CHARS) for summary in earlier]
    return _sections([*before, _NO_SUMMARY.format(count=len(old)), _OURS.sub(" ", asked)], known)


def body_of(summary: str) -> str:
    """Return a summary made by readcache, without its heading and without the facts from the log."""
    return summary.removeprefix(HEADING).partition(f"\n{FILE_MAP}\n")[0].strip()


def _sections(texts: Sequence[str], known: Sequence[str]) -> str:
    from_log = "\n".join([FILE_MAP, *known]) if known else ""
    return "\n\n".join(filter(None, [HEADING, *texts, from_log])) + "\n"
