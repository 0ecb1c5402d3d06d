"""A tool call as its host tells it, or a transcript: the one type that adapters, loaders and sessions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Framing = Callable[[str], tuple[str, str, str]]  # text -> (head, body, tail), see `Frame`


@dataclass(frozen=True, slots=True)
class AskedCommand:
    """A shell command. `skipped`: how many lines the tool removed from the start of its output."""

    command: str
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class AskedRead:
    """Lines `start` to `end` (1-based, inclusive; None: to the end) of a file, by a read tool. `numbered`,
    `edges_only`: as for `Session.observe_read`."""

    path: str
    start: int = 1
    end: int | None = None
    numbered: bool | str = True
    edges_only: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A file that the call wrote. `content`: all of it, where the agent gave that; None: a part was edited."""

    path: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What was asked, what came back, where and when. `None` means that the host does not say it."""

    call_id: Any  # a string, the host's name for the call; None: the session makes one up
    name: str  # of the tool, as its host calls it
    arguments: Any  # as the model gave them: an object, or its text
    output: str  # as the tool gave it
    batch: str = ""  # calls that the model made at once share it
    is_error: bool = False  # the tool gave an error text, no content
    complete: bool = True  # False: the tool cut the output or ran out of time
    exit_code: int | None = None
    cwd: Any = None  # the path of the directory where a command began
    lines: tuple[int, int | None] | None = None  # the first and last that were read; None for the end of the file
    frame: Framing | None = None  # what the host puts around the output
    asked: AskedCommand | AskedRead | None = None  # None: of any other tool
    writes: tuple[Written, ...] = ()
    # Of recorded calls.
    is_judged: bool = True  # False: the result is counted and never judged
    tool: str = ""  # its name in tables: "bash", "read", "grep"
    said: str = ""  # what the agent itself wrote in the call: it sees that too
    replaced: str = ""  # the old lines of an edit, which the agent must have known
    at: float | None = None  # when the result came, in seconds since the epoch
