"""A summary: the text that takes the place of old turns, with the FILE MAP, which lists the files read and written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from readcache.context.notes import clip_text
from readcache.messages.messages import Kind, Message
from readcache.model.claims import glob_stem
from readcache.model.events import Delivered, Origin, Record, Wrote
from readcache.model.spans import Span, merge_spans

HEADING = "## Summary of the conversation so far"
_FILE_MAP = "FILE MAP, from a log (line numbers as of when they were read):"
_NO_SUMMARY = (
    "No summary could be made: {count} messages were removed here without one. Their changes are in the files; check"
    " those, and the list below, before you repeat any work."
)
# Characters of a user's message, and of an earlier summary, if no model writes a new one.
USER_CHARS = 2_000
EARLIER_CHARS = 10_000
# Newest first; the rest is counted. In 99 of 100 recorded sessions no more files were touched, in nine of ten 25.
MOST_FILES = 60
MOST_SPANS = 8  # ranges named of one file; 99 of 100 have no more than six


def written_summary(text: str, invented: Sequence[str], files: Sequence[str]) -> str:
    """The summary of a model, with what is known about its numbers and about the files."""
    doubt = f"Numbers in this summary that do not occur in the conversation: {', '.join(invented)}." if invented else ""
    return _sections([text, doubt], files)


def mechanical_summary(old: Sequence[Message], earlier: Sequence[str], files: Sequence[str]) -> str:
    """What can be said without a model: the earlier summaries, what the user said in the turns `old`, the files."""
    said = [clip_text(message.text, USER_CHARS) for message in old if message.role == "user" and message.text]
    if not any(part.kind is Kind.CALL for message in old for part in message.parts):
        said = []  # a chat without calls, where tools answer as the user: the speakers cannot be told apart
    asked = "\n\n".join(["The user has also said:", *said]) if said else ""
    before = [clip_text(body_of(summary), EARLIER_CHARS) for summary in earlier]
    return _sections([*before, _NO_SUMMARY.format(count=len(old)), asked], files)


def body_of(summary: str) -> str:
    """A summary made here, without its heading and its FILE MAP."""
    return summary.removeprefix(HEADING).partition(_FILE_MAP)[0].strip()


def _sections(texts: Sequence[str], files: Sequence[str]) -> str:
    known = "\n".join([_FILE_MAP, *files]) if files else ""
    return "\n\n".join(filter(None, [HEADING, *texts, known])) + "\n"


def file_map(records: Iterable[Record], agent_id: str, root: str) -> list[str]:
    """The FILE MAP: one line for each file, those touched last first, such as `src/app.py: read lines 1-120; written`.

    It comes from the log, so that no model has to remember it, and none can invent it. Paths below `root` are relative
    to it. Empty when no file was touched.
    """
    read: dict[str, list[Span]] = {}
    written: set[str] = set()
    newest: dict[str, int] = {}
    for record in records:
        event = record.event
        if isinstance(event, Delivered) and event.origin is Origin.RESULT and record.agent_id == agent_id:
            for piece in event.pieces:
                if len(piece.keys) == 1 and piece.first:
                    path = piece.keys[0]
                    read.setdefault(path, []).append((piece.first, piece.first + piece.count - 1))
                    newest[path] = record.seq
        elif isinstance(event, Wrote):
            for path in event.keys:
                if glob_stem(path) is None:
                    written.add(path)
                    newest[path] = record.seq
    paths = sorted(newest, key=lambda path: -newest[path])
    lines = [_file_line(path, read.get(path, []), path in written, root) for path in paths[:MOST_FILES]]
    if len(paths) > MOST_FILES:
        lines.append(f"and {len(paths) - MOST_FILES} files touched earlier")
    return lines


def _file_line(path: str, read: list[Span], is_written: bool, root: str) -> str:
    facts = []
    if read:
        spans = merge_spans(read)
        runs = ", ".join(str(start) if start == end else f"{start}-{end}" for start, end in spans[:MOST_SPANS])
        more = f" and {len(spans) - MOST_SPANS} more ranges" if len(spans) > MOST_SPANS else ""
        facts.append(f"read lines {runs}{more}")
    if is_written:
        facts.append("written")
    name = "".join(c if c.isprintable() else "?" for c in path.removeprefix(root.rstrip("/") + "/"))
    return f"{name}: {'; '.join(facts)}"
