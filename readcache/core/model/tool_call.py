"""A tool call as its host or a transcript describes it: the one type that adapters, loaders and sessions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Framing = Callable[[str], tuple[str, str, str]]  # text -> (head, body, tail), see `Frame`


@dataclass(frozen=True, slots=True)
class AskedCommand:
    """A shell command. `skipped`: the number of lines that the tool removed from the start of its output."""

    command: str
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class AskedRead:
    """A read of the lines `start` to `end` (1-based, inclusive; None: to the end) of a file by a read tool. `numbered`,
    `edges_only`: as for `Session.observe_read`."""

    path: str
    start: int = 1
    end: int | None = None
    numbered: bool | str = True
    edges_only: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A file that the call wrote. `content`: the whole file, if the agent gave it; None: a part was edited."""

    path: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call with its result. `None` means that the host does not say it."""

    call_id: Any  # a string, the host's ID of the call; None: the session makes one up
    name: str  # the host's name of the tool
    arguments: Any  # as the model gave them: an object, or its text
    output: str  # as the tool returned it
    batch: str = ""  # parallel calls share it
    is_error: bool = False  # the tool returned an error text instead of content
    complete: bool = True  # False: the tool truncated the output or timed out
    exit_code: int | None = None
    cwd: Any = None  # the path of the directory where a command began
    lines: tuple[int, int | None] | None = None  # the first and the last line read; None for the end of the file
    frame: Framing | None = None  # removes the host's frame around the output
    asked: AskedCommand | AskedRead | None = None  # None: a call of any other tool
    writes: tuple[Written, ...] = ()
    # Only recorded calls have the fields below.
    is_judged: bool = True  # False: the result is counted and never judged
    tool: str = ""  # its name in tables: "bash", "read", "grep"
    said: str = ""  # the text that the agent wrote in the call, which the agent can see too
    replaced: str = ""  # the old lines of an edit, which the agent must have known
    at: float | None = None  # time of the result, in seconds since the epoch
