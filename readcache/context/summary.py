"""The text that takes the place of the turns that a compaction took out."""

from __future__ import annotations

from collections.abc import Sequence

from readcache.context.clipping import clip
from readcache.messages.messages import Kind, Message

HEADING = "## Summary of the conversation so far"
_FILE_MAP = "FILE MAP, from a log (line numbers as they were when read):"
_NO_SUMMARY = (
    "No summary could be made: {count} messages were left out here without one. What they changed is in the files; look"
    " there, and at the list below, before anything is done again."
)
# Characters of one message of the user, and of an earlier summary, where no model makes a new one.
USER_CHARS = 2_000
EARLIER_CHARS = 10_000


def written_summary(text: str, invented: Sequence[str], files: Sequence[str]) -> str:
    """The summary of a model, with what is known about its numbers and about the files."""
    doubt = f"Numbers in this summary that the conversation did not show: {', '.join(invented)}." if invented else ""
    return _sections([text, doubt], files)


def mechanical_summary(old: Sequence[Message], earlier: Sequence[str], files: Sequence[str]) -> str:
    """What can be said without a model: the earlier summaries, what the user said in the turns `old`, the files."""
    said = [clip(message.text, USER_CHARS) for message in old if message.role == "user" and message.text]
    if not any(part.kind is Kind.CALL for message in old for part in message.parts):
        said = []  # a chat without calls, where tools answer as the user: who said what cannot be told
    asked = "\n\n".join(["The user said meanwhile:", *said]) if said else ""
    before = [clip(body_of(summary), EARLIER_CHARS) for summary in earlier]
    return _sections([*before, _NO_SUMMARY.format(count=len(old)), asked], files)


def body_of(summary: str) -> str:
    """A summary made here, without its heading and its FILE MAP."""
    return summary.removeprefix(HEADING).partition(_FILE_MAP)[0].strip()


def _sections(texts: Sequence[str], files: Sequence[str]) -> str:
    known = "\n".join([_FILE_MAP, *files]) if files else ""
    return "\n\n".join(filter(None, [HEADING, *texts, known])) + "\n"
