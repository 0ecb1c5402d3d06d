"""The events of a session's log. Past tense, frozen, nothing computed: time and ids are given by the session.

The log is the truth. `view.View` is a fold over it; nothing in it is ever edited. Line indexes (`at`, `line`) are
0-based positions in the event's own text; line numbers of files are 1-based.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, TypeVar

from readcache.model.history_events import HistoryEvent
from readcache.reply import Outcome, Reason


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines `at` to `at + count - 1` of a text are lines of the files `keys` (see `claims` for keys)."""

    keys: tuple[str, ...]
    at: int
    count: int
    first: int = 0  # number of the first of them in the file; 0: unknown
    sep: str | None = None  # numbered, with this separator; None: raw
    shift: int = 0  # the number shown minus the number in the file
    eof: bool = False  # the last of them is the file's last line


@dataclass(frozen=True, slots=True)
class Pointer:
    """A marker in a delivered text: line `line` stands for lines start to end of `path` (None: of the output).

    A line of -1: the harness cut the marker away afterwards. No sources: they are gone, and the marker says so.
    """

    line: int
    path: str | None
    start: int
    end: int
    sources: tuple[str, ...]
    numbered: bool = False  # the lines it stands for have numbers in front
    marker: str = ""  # its text, to know it by wherever a harness shows it


# Begins the id of a call that the session named itself because the harness gave none.
MADE_UP_ID = "rc-"


class Origin(enum.Enum):
    """Where the reader sees a text."""

    RESULT = "result"  # a tool's result
    COMMAND = "command"  # the agent's own call: a heredoc, the content of a write
    RESTORED = "restored"  # a section that the compactor put back


T = TypeVar("T")


class _Compact:
    """Holds a text as UTF-8 where it is not ASCII: with one emoji in it, a `str` takes four bytes for each character,
    and a session remembers every text."""

    def __init__(self, slot: Any) -> None:
        self._slot = slot

    def __get__(self, event: object, owner: type) -> Any:
        if event is None:
            return self
        held = self._slot.__get__(event, owner)
        return held if isinstance(held, str) else held.decode("utf-8", "surrogatepass")

    def __set__(self, event: object, text: str) -> None:
        self._slot.__set__(event, text if text.isascii() else text.encode("utf-8", "surrogatepass"))


def _compact_text(cls: type[T]) -> type[T]:
    setattr(cls, "text", _Compact(vars(cls)["text"]))  # noqa: B010  to a type checker `text` stays a str
    return cls


@_compact_text
@dataclass(frozen=True, slots=True)
class Delivered:
    """`text` was put before the reader under the id `call_id`."""

    call_id: str
    text: str
    label: str  # the command or tool that printed it, as the agent gave it: markers shorten it
    origin: Origin = Origin.RESULT
    request: str = ""  # equal for equal requests; "" for what was not asked for
    pieces: tuple[Piece, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    outcome: Outcome = Outcome.FULL
    reason: Reason = Reason.NOT_SEEN
    changed: tuple[str, ...] = ()  # keys that this output showed to have changed: older deliveries are invalid
    output_chars: int = 0  # characters of the real output
    tokens_saved: int = 0  # net; what would have been saved, when advising
    call: int = 0  # the how-manieth call of this context it was, from 1
    tokens_so_far: int = 0  # tokens delivered in this context up to and including this
    batch: str = ""  # calls made at once share it


@dataclass(frozen=True, slots=True)
class Wrote:
    """The agent wrote the files `keys` (WHOLE_TREE: any file): earlier deliveries of them are invalid."""

    call_id: str
    keys: tuple[str, ...]
    label: str = ""
    call: int = 0


@_compact_text
@dataclass(frozen=True, slots=True)
class Settled:
    """What the harness finally showed of a call's result, or of another text of it: `text`, and which of its lines are
    file lines."""

    call_id: str
    text: str
    pieces: tuple[Piece, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    origin: Origin = Origin.RESULT


@dataclass(frozen=True, slots=True)
class Compacted:
    """The harness compacted: calls that are not in `kept` are gone."""

    kept: frozenset[str]


@dataclass(frozen=True, slots=True)
class Forgot:
    """These calls, and nothing else, are gone from the conversation. Ids that are not known: nothing happens."""

    call_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rewound:
    """Everything after this call is gone. A call that is not known: everything is gone."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Failed:
    """Something of ours failed and the real output went through: `cause` is a Reason's value, `detail` says what."""

    call_id: str
    cause: str
    detail: str


Event = Delivered | Wrote | Settled | Compacted | Forgot | Rewound | Failed | HistoryEvent  # the last: no view has any


@dataclass(frozen=True, slots=True)
class Record:
    """An event in the log: its place, whose context it belongs to, and when (seconds since the epoch)."""

    seq: int
    agent_id: str
    at: float
    event: Event
