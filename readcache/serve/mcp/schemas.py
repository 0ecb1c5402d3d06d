"""The tools of `readcache mcp` as a client lists them: the purpose, the arguments and the effects of each."""

from __future__ import annotations

from typing import Any

INSTRUCTIONS = (
    "Read and run. Lines you can still see are not sent again: a marker says where they are. Repeat the request, "
    "or read with fresh=true, to get every byte. After your conversation was summarised or cut, call `compacted` first."
)

_PATH = {"type": "string", "description": "Absolute, or relative to the project."}
_KEEP = {"type": "array", "items": {"type": "string"}, "description": "Ids of the calls that are kept."}
_SOME_TEXT, _TOKENS = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}


def _tool(
    name: str, title: str, text: str, takes: dict[str, Any], required: tuple[str, ...] = (), *, hints: str
) -> dict[str, Any]:
    """Return a tool for the list. `hints`: names of the annotations that are true, separated by blanks."""
    known = ("readOnly", "destructive", "idempotent", "openWorld")
    annotations = {"title": title, **{f"{hint}Hint": hint in hints.split() for hint in known}}
    schema = {"type": "object", "properties": takes, "required": list(required), "additionalProperties": False}
    return {"name": name, "title": title, "description": text, "inputSchema": schema, "annotations": annotations}


TOOLS: list[dict[str, Any]] = [
    _tool(
        "read",
        "Read a file",
        "Reads a text file, or a range of its lines. Lines you were already shown, byte for byte, may be omitted: a "
        "marker says where they are. Repeat the request, or set fresh=true, to get every byte.",
        {
            "path": _PATH,
            "start": {"type": "integer", "minimum": 1, "default": 1, "description": "The first line, from 1."},
            "end": {"type": "integer", "minimum": 0, "description": "The last line, inclusive (default: the end)."},
            "numbered": {"type": "boolean", "default": False, "description": "Print line numbers, as cat -n."},
            "fresh": {"type": "boolean", "default": False, "description": "Every byte, even if already shown."},
        },
        ("path",),
        hints="readOnly idempotent",
    ),
    _tool(
        "run",
        "Run a command",
        "Runs a command with bash: no terminal, empty stdin, stdout and stderr interleaved. Each command gets a new "
        "shell. Lines you were already shown may be omitted, as with `read`. Cancelling the call kills the command and "
        "its children.",
        {
            "command": _SOME_TEXT,
            "cwd": {"type": "string", "description": "Working directory (default: the project)."},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "default": 120, "description": "Seconds."},
        },
        ("command",),
        hints="destructive openWorld",
    ),
    _tool(
        "restore_plan",
        "Plan what to put back",
        "For the host, before it compacts a conversation: the files and lines to put back verbatim. Insert the text; "
        "then pass the structured result to `compacted`.",
        {"keep": _KEEP, "max_files": _TOKENS, "max_tokens": _TOKENS, "max_tokens_per_file": _TOKENS},
        hints="readOnly idempotent",
    ),
    _tool(
        "compacted",
        "Earlier results are gone",
        "Call this when earlier results have left the conversation because it was summarised, cut or cleared. Their "
        "lines are then sent again when asked for.",
        {"keep": _KEEP, "restored": {"type": "object", "description": "The plan that was put back."}},
        hints="idempotent",
    ),
    _tool(
        "stats",
        "What it saved",
        "Counters of this reader: calls, characters, tokens saved, and a count for each reason.",
        {},
        hints="readOnly idempotent",
    ),
]
