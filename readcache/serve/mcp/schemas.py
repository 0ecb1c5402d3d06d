"""The tools of `readcache mcp` as a client lists them: what each is for, what it takes and gives, what it may do."""

from __future__ import annotations

from typing import Any

INSTRUCTIONS = (
    "Read, run and edit. Lines you can still see are not sent again: a marker says where they are. Repeat the request, "
    "or read with fresh=true, to get every byte. After your conversation was summarised or cut, call `compacted` first."
)

_PATH = {"type": "string", "description": "Absolute, or relative to the project."}
_KEEP = {"type": "array", "items": {"type": "string"}, "description": "Ids of the calls that are kept."}
_SOME_TEXT, _TOKENS = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}
_REPLY = {
    "text": {"type": "string", "description": "The text to show; the same as the text content."},
    "outcome": {"enum": ["full", "unchanged", "partial", "identical_output"]},
    "reason": {"type": "string", "description": "Why lines were omitted, or why not."},
    "call_id": {"type": "string", "description": "This call's id, for `keep`."},
    "tokens_saved": {"type": "integer"},
    "exit_code": {"type": "integer", "description": "124: timed out. Negative: killed by that signal."},
}


def _object(properties: dict[str, Any], required: tuple[str, ...] = (), *, closed: bool = True) -> dict[str, Any]:
    more = {"required": list(required), "additionalProperties": not closed}
    return {"type": "object", "properties": properties, **more}


def _tool(name: str, title: str, text: str, takes: dict[str, Any], gives: dict[str, Any] | None, hints: str) -> Any:
    """`hints`: those of its annotations that are true, apart by blanks."""
    known = ("readOnly", "destructive", "idempotent", "openWorld")
    annotations = {"title": title, **{f"{hint}Hint": hint in hints.split() for hint in known}}
    tool = {"name": name, "title": title, "description": text, "inputSchema": takes, "annotations": annotations}
    return tool if gives is None else {**tool, "outputSchema": gives}


TOOLS: list[dict[str, Any]] = [
    _tool(
        "read",
        "Read a file",
        "Reads a text file, or a range of its lines. Lines you were already shown, byte for byte, may be omitted: a "
        "marker says where they are. Repeat the request, or set fresh=true, to get every byte.",
        _object(
            {
                "path": _PATH,
                "start": {"type": "integer", "minimum": 1, "default": 1, "description": "The first line, from 1."},
                "end": {"type": "integer", "minimum": 0, "description": "The last line, inclusive (default: the end)."},
                "numbered": {"type": "boolean", "default": False, "description": "Print line numbers, as cat -n."},
                "fresh": {"type": "boolean", "default": False, "description": "Every byte, even if already shown."},
            },
            ("path",),
        ),
        _object({key: value for key, value in _REPLY.items() if key != "exit_code"} | {"path": _PATH}, closed=False),
        "readOnly idempotent",
    ),
    _tool(
        "run",
        "Run a command",
        "Runs a command with bash: no terminal, empty stdin, stdout and stderr interleaved. Each command gets a new "
        "shell. Lines you were already shown may be omitted, as with `read`. Cancelling the call kills the command and "
        "its children.",
        _object(
            {
                "command": _SOME_TEXT,
                "cwd": {"type": "string", "description": "Working directory (default: the project)."},
                "timeout": {"type": "number", "exclusiveMinimum": 0, "default": 120, "description": "Seconds."},
            },
            ("command",),
        ),
        _object(_REPLY, closed=False),
        "destructive openWorld",
    ),
    _tool(
        "write",
        "Write a file",
        "Writes a whole text file, replacing what was there. Creates missing directories.",
        _object({"path": _PATH, "content": {"type": "string"}}, ("path", "content")),
        _object({"path": _PATH, "bytes": {"type": "integer"}, "created": {"type": "boolean"}}, closed=False),
        "destructive idempotent",
    ),
    _tool(
        "edit",
        "Edit a file",
        "Replaces `old` with `new`. `old` must occur exactly once; include enough context to make it unique.",
        _object({"path": _PATH, "old": _SOME_TEXT, "new": {"type": "string"}}, ("path", "old", "new")),
        _object({"path": _PATH, "line": {"type": "integer", "description": "The line it began on."}}, closed=False),
        "destructive",
    ),
    _tool(
        "restore_plan",
        "Plan what to put back",
        "For the host, before it compacts a conversation: the files and lines to put back verbatim. Insert the text; "
        "then pass the structured result to `compacted`.",
        _object({"keep": _KEEP, "max_files": _TOKENS, "max_tokens": _TOKENS, "max_tokens_per_file": _TOKENS}),
        _object({}, closed=False),
        "readOnly idempotent",
    ),
    _tool(
        "compacted",
        "Earlier results are gone",
        "Call this when earlier results have left the conversation because it was summarised, cut or cleared. Their "
        "lines are then sent again when asked for.",
        _object({"keep": _KEEP, "restored": {"type": "object", "description": "The plan that was put back."}}),
        _object({"restored_id": {"type": "string"}, "rewrites": {"type": "object"}}, closed=False),
        "idempotent",
    ),
    _tool(
        "stats",
        "What it saved",
        "Counters of this reader: calls, characters, tokens saved, and a count for each reason.",
        _object({}),
        _object({}, closed=False),
        "readOnly idempotent",
    ),
]  # fmt: skip
FORMER_HOOK = _tool("hook", "Nothing", "Changes nothing.", _object({}, closed=False), None, "")
