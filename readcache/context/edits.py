"""Build the EDITS: the agent's changes to files as short diffs, from its calls and from the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff

from readcache.context.links import Links
from readcache.context.tool_calls import ListedCall, failed_and_wrote_nothing, tool_calls
from readcache.core.messages.messages import Message
from readcache.core.messages.tools import replacements
from readcache.core.model.events import Record, Wrote

EDITS = "EDITS, the newest last (- is what stood there, + what came there):"
MOST_LINES = 60  # the newest, of all edits together
MOST_LINES_OF_EDIT = 6
MOST_CHARS_OF_LINE = 120


def edits(old: Sequence[Message], records: Iterable[Record], root: str, earlier: Sequence[str]) -> list[str]:
    """Return the lines of the section with the edits in the messages `old`; [] if there are none. Edits that `earlier`
    summaries list come first. `records` show which commands wrote a file."""
    wrote = {record.event.call_id: record.event for record in records if isinstance(record.event, Wrote)}
    lines = [line for summary in earlier for line in summary.partition(f"\n{EDITS}\n")[2].splitlines()]
    for call in tool_calls(old, root, Links()):
        shown = [] if failed_and_wrote_nothing(call) else list(_edit(call, wrote))
        more = [f"({len(shown) - MOST_LINES_OF_EDIT} more lines)"] if len(shown) > MOST_LINES_OF_EDIT else []
        lines += [line[:MOST_CHARS_OF_LINE] for line in [*shown[:MOST_LINES_OF_EDIT], *more]]
    return ["", EDITS, *lines[-MOST_LINES:]] if lines else []


def _edit(call: ListedCall, wrote: Mapping[str, Wrote]) -> Iterator[str]:
    """Yield the lines of one edit: its file and the changed lines, or the command that changed files."""
    use, changes = call.use, list(replacements(call.call.arguments or {}))
    if use.kind == "write" and changes:
        yield f"{use.path}:"
        for before, after in changes:
            diff = unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
            yield from (line for line in list(diff)[2:] if not line.startswith("@@"))
    elif use.kind == "write" and use.patch:
        yield from (line for line in use.patch.splitlines() if line.startswith(("+", "-", "*** ")))
    elif use.command is not None and call.call.call_id in wrote:
        yield f"`{' '.join(use.command.split())}`"
