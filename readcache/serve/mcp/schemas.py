"""The tools of `readcache mcp` as a client lists them: the purpose, the arguments and the effects of each."""

from __future__ import annotations

from typing import Any

from readcache.serve.fields import Schema, record
from readcache.serve.protocol import BUDGET, METHODS

MOST_LINES = 2_000  # of one read, unless the model asks for more; Claude Code's read tool has the same limit
INSTRUCTIONS = (
    "Read and run. Lines you can still see are not sent again: a marker says where they are. Repeat the request, "
    "or read with fresh=true, to get every byte. After your conversation was summarised or cut, call `compacted` first."
)

_KEEP = {"description": "Ids of the calls that are kept."}


def _tool(name: str, title: str, text: str, hints: str, /, **takes: Schema) -> dict[str, Any]:
    """Return a tool. `hints`: its true annotations, separated by blanks. `takes`: the parameters that a model may give
    to the method of this name, with changes of their schemas."""
    known = ("readOnly", "destructive", "idempotent", "openWorld")
    annotations = {"title": title, **{f"{hint}Hint": hint in hints.split() for hint in known}}
    method = METHODS[name].params
    known_schemas = BUDGET["properties"] | method["properties"]
    properties = {each: known_schemas[each] | more for each, more in takes.items()}
    schema = record(properties, *(each for each in method["required"] if each in takes))
    return {"name": name, "title": title, "description": text, "inputSchema": schema, "annotations": annotations}


TOOLS: list[dict[str, Any]] = [
    _tool(
        "read",
        "Read a file",
        "Reads a text file, or a range of its lines. Lines you were already shown, byte for byte, may be omitted: a "
        "marker says where they are. Repeat the request, or set fresh=true, to get every byte.",
        "readOnly idempotent",
        path={"description": "Absolute, or relative to the project."},
        start={"minimum": 1, "default": 1, "description": "The first line, from 1."},
        end={"description": "The last line, inclusive (default: the end)."},
        numbered={"default": False, "description": "Print line numbers, as cat -n."},
        fresh={"default": False, "description": "Every byte, even if already shown."},
        max_lines={"minimum": 1, "default": MOST_LINES, "description": "Show at most this many lines."},
    ),
    _tool(
        "run",
        "Run a command",
        "Runs a command with bash: no terminal, empty stdin, stdout and stderr interleaved. Each command gets a new "
        "shell. Lines you were already shown may be omitted, as with `read`. Cancelling the call kills the command and "
        "its children.",
        "destructive openWorld",
        command={"minLength": 1, "description": "The command."},
        cwd={"description": "Working directory (default: the project)."},
        timeout={"default": 120, "description": "Seconds."},
    ),
    _tool(
        "recall",
        "See an earlier result",
        "Shows the result of an earlier call as you were shown it, without running anything.",
        "readOnly idempotent",
        name={"description": "The name in a marker or a note, such as 7f3a91.12."},
        first={"minimum": 1, "default": 1, "description": "The first line, from 1."},
        last={"description": "The last line, inclusive (default: the end)."},
    ),
    _tool(
        "restore_plan",
        "Plan what to put back",
        "For the host, before it compacts a conversation: the files and lines to put back verbatim. Insert the text; "
        "then pass the structured result to `compacted`.",
        "readOnly idempotent",
        keep=_KEEP,
        max_files={},
        max_tokens={},
        max_tokens_per_file={},
    ),
    _tool(
        "compacted",
        "Earlier results are gone",
        "Call this when earlier results have left the conversation because it was summarised, cut or cleared. Their "
        "lines are then sent again when asked for.",
        "idempotent",
        keep=_KEEP,
        restored={"description": "The plan that was put back."},
    ),
    _tool(
        "stats",
        "What it saved",
        "Counters of this reader: calls, characters, tokens saved, and a count for each reason.",
        "readOnly idempotent",
    ),
]
