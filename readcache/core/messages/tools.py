"""The meaning of a tool call in any known harness, derived from the tool's name and its arguments.

Hosts, recordings and pruning all use this module. A wrong guess can lose a saving but never hide a change, because
omitted lines are compared byte for byte. A call that is not understood is "other", and none of its lines are claimed
for a file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# The argument names of known harnesses (Claude Code, Cline, opencode, OpenHands, SWE-agent, Cursor, the reference MCP
# server for files).
COMMANDS = ("command", "cmd", "script")
PATHS = ("file_path", "filePath", "path", "filename", "file", "filepath", "target_file", "absolute_path")
DIRECTORIES = ("cwd", "workdir", "working_dir", "working_directory", "directory")
_SHELLS = ("bash", "sh", "zsh")
_CONTENTS = ("content", "file_text", "contents")
_OLD_TEXTS = ("old_string", "old_str", "oldString", "oldText", "old_text")  # arguments of an edit
_NEW_TEXTS = ("new_string", "new_str", "newString", "newText", "new_text")
_PATCH_TEXTS = ("patchText", "patch_text", "patch", "input", "diff")
_SPANS = (("start", "end"), ("start_line", "end_line"), ("first_line", "last_line"), ("line_start", "line_end"))
_SAYS_NOTHING = frozenset((*PATHS, "view_range", "encoding", "description", "explanation", "reason"))

_READS = frozenset(
    "read read_file read_text_file file_read view view_file open open_file cat cat_file get_file".split()  # noqa: SIM905  shorter
)
_WRITES_WHOLE = frozenset("write write_file write_to_file file_write create create_file save save_file".split())  # noqa: SIM905
_EDITS = frozenset(
    "edit edit_file file_edit multi_edit multiedit update_file append_file patch_file insert str_replace "  # noqa: SIM905
    "str_replace_in_file replace replace_in_file search_replace undo_edit delete delete_file".split()
)
_PATCHES = frozenset(("apply_patch", "patch"))
# Tools whose results cannot be sources, or whose results the host parses.
_IGNORED = frozenset(
    "todowrite todo_write update_plan report_intent ask_user question think finish submit exit_plan_mode".split()  # noqa: SIM905
)
_TO_DO = frozenset(
    "todo_write todowrite todo_read todoread update_plan write_todos manage_todo_list "  # noqa: SIM905
    "task_create task_update task_list task_get".split()
)
_POLLS = frozenset("write_stdin wait bash_output task_output".split())  # noqa: SIM905
_EDITOR_VERBS = frozenset(("view", "create", "str_replace", "insert", "undo_edit"))  # Anthropic's editor: one tool
# A number before a line, in the form of any known tool. More than nine digits are text, and may be too long for `int`.
LINE_NUMBER = r"^[ \t]*(\d{1,9})(?:\t|→|: ?| ?\| ?|\. )"
_NUMBERED = re.compile(
    rf"{LINE_NUMBER}|^[ \t]*(?:L(?=\d+:)|\[(?=\d+\]))(\d{{1,9}})", re.MULTILINE
)  # `L12: x`, `[12] x`
_DIRECTORY = "<type>directory</type>"  # opencode's listing


class ToolUse(NamedTuple):
    """A call. `kind`: "bash", "read", "write", "ignore" or "other". `content`: the whole new content of the file.
    `patch`: the text of a patch, which names its files itself."""

    kind: str
    command: str | None = None
    path: str | None = None
    content: str | None = None
    patch: str | None = None


class LinesRead(NamedTuple):
    """The lines of a read, from 1; `last` is None for the end of the file. `numbered`: True if the lines have their
    numbers before them."""

    first: int
    last: int | None
    numbered: bool


def tool_use(name: str, arguments: Mapping[str, Any]) -> ToolUse:
    """Return the use that the call makes of its tool. The names of MCP tools may begin with the name of their
    server."""
    word = _word(name)
    command, path = _command(arguments), first_text(arguments, PATHS)
    if path is not None and command in _EDITOR_VERBS:
        word = command
    elif command is not None:
        return ToolUse("bash", command) if path is None else ToolUse("other", path=path)
    if word in _PATCHES:
        return ToolUse("write", path=path, patch=first_text(arguments, _PATCH_TEXTS) or "")
    if path is None:
        return ToolUse("ignore" if word in _IGNORED else "other")
    if word in _WRITES_WHOLE or word in _EDITS:
        appends = arguments.get("append") or arguments.get("mode") in ("a", "append")
        content = first_text(arguments, _CONTENTS) if word in _WRITES_WHOLE and not appends else None
        return ToolUse("write", path=path, content=content)
    return ToolUse("read" if word in _READS else "other", path=path)


def is_poll(name: str, arguments: object) -> bool:
    """Return True if the call only waits for a running command, and types nothing into it."""
    return _word(name) in _POLLS and not (isinstance(arguments, Mapping) and arguments.get("chars"))


def is_to_do(name: str) -> bool:
    """Return True for a tool that only reads or changes the agent's list of tasks."""
    return _word(name) in _TO_DO


def _word(name: str) -> str:
    """Return the tool's name in words, without the name of its server."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.split(r"__|[.:/]", name)[-1]).lower()


def lines_read(arguments: Mapping[str, Any], output: str) -> LinesRead | None:
    """Return the lines that a read shows; None if they are not certain. An `offset` counts from 0 or from 1: the
    numbers before the lines decide which."""
    if _DIRECTORY in output[:1000]:
        return None
    asked = _lines_asked(arguments) or _lines_from(arguments, output)
    if asked is None:
        return None
    top = "\n".join(output.split("\n", 5)[:5])
    numbered = asked[0] in _numbers(top)
    if not numbered and arguments.get("command") == "view":  # an editor's view of a directory has no numbers
        return None
    return LinesRead(*asked, numbered)


def first_text(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of these arguments that is a text; None if there is none."""
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


def replacements(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (old text, new text) for each change of an edit tool's call; "" if a change names no new text.

    A tool that makes several changes in one call has them in a list `edits`.
    """
    several = arguments.get("edits")
    for change in [arguments, *(several if isinstance(several, list) else ())]:
        old = first_text(change, _OLD_TEXTS) if isinstance(change, Mapping) else None
        if old is not None:
            yield old, first_text(change, _NEW_TEXTS) or ""


def _command(arguments: Mapping[str, Any]) -> str | None:
    """Return the command, given as a text or as the words of a program."""
    given = next((arguments[name] for name in COMMANDS if isinstance(arguments.get(name), str | list)), None)
    if not isinstance(given, list):
        return given
    words = list(map(str, given))
    is_shells = len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "-lc")
    return words[2] if is_shells else shlex.join(words) or None


def _lines_asked(arguments: Mapping[str, Any]) -> tuple[int, int | None] | None:
    given = {name: value for name, value in arguments.items() if value not in (None, False, "")}
    span = given.get("view_range")
    spans = [(given.pop(low, None), given.pop(high, None)) for low, high in _SPANS]
    found = next((pair for pair in spans if pair != (None, None)), (None, None))
    if span is not None:
        found = (span[0], None if span[1] == -1 else span[1]) if isinstance(span, list) and len(span) == 2 else ("", "")
    verb = {"command"} if given.get("command") == "view" else set()
    if given.keys() - _SAYS_NOTHING - verb or not all(value is None or type(value) is int for value in found):
        return None
    return found[0] or 1, found[1]


def _lines_from(arguments: Mapping[str, Any], output: str) -> tuple[int, int] | None:
    rest = {name: value for name, value in arguments.items() if name not in ("offset", "limit")}
    offset = arguments.get("offset") or 0
    numbers = _numbers(output)
    if _lines_asked(rest) != (1, None) or not numbers or numbers[0] not in (offset, offset + 1):
        return None
    return (numbers[0], numbers[-1]) if numbers[-1] - numbers[0] + 1 == len(numbers) else None


def _numbers(text: str) -> list[int]:
    """Return the numbers before the lines."""
    return [int(found[found.lastindex or 0]) for found in _NUMBERED.finditer(text)]
