"""The events of a session's log. Past tense, frozen, nothing computed: time and ids are given by the session.

    Delivered("call_1", "one", "cat f", pieces=(Piece(("/w/f",), at=0, count=1, first=1),))

says that the line "one", line 1 of the file /w/f, was put before the reader. The log is the truth: `view.View` is a
fold over it, and nothing in it is ever edited. Line indexes (`at`, `line`) are 0-based positions in the event's own
text; line numbers of files are 1-based.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from readcache.core.model.reply import Outcome, Reason


@dataclass(frozen=True, slots=True)
class MappedSpan:
    """Lines `at` to `at + count - 1` of a text are lines of the files `keys` (see `claims` for keys)."""

    keys: tuple[str, ...]
    at: int
    count: int
    first: int = 0  # number of the first of them in the file; 0: unknown
    sep: str | None = None  # numbered, with this separator; None: raw
    shift: int = 0  # the number shown minus the number in the file
    eof: bool = False  # the last of them is the file's last line


class Origin(enum.Enum):
    """Where the reader sees a text."""

    RESULT = "result"  # a tool's result
    COMMAND = "command"  # the agent's own call: a heredoc, the content of a write
    RESTORED = "restored"  # a section that the compactor put back


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """Where omitted lines stand: `count` lines of a text of `call_id`, from line `at` on; `digest` names them."""

    call_id: str
    origin: Origin
    at: int
    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class MarkerRecord:
    """A marker in a delivered text: line `line` stands for lines start to end of `path` (None: of the output).

    A line of -1: the harness cut the marker away afterwards. No sources: they are gone, and the marker says so.
    """

    line: int
    path: str | None
    start: int
    end: int
    sources: tuple[str, ...]
    numbered: bool = False  # the lines it stands for have numbers in front
    wording: str = ""  # its text, to know it by wherever a harness shows it
    source_spans: tuple[SourceSpan, ...] = ()  # in order: together all the lines that it stands for
    lines: str = ""  # these lines, where not all of them stand there just as they were printed here


# Begins the id of a call that the session named itself because the harness gave none.
MADE_UP_ID = "rc-"


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in one reader's conversation."""

    call: int = 0  # number of the call, from 1
    tokens: int = 0  # tokens delivered up to and including this
    batch: str = ""  # calls made at once share it
    started: int = -1  # number of the last call that was logged when this one started; -1: the one before it


@dataclass(frozen=True, slots=True)
class Account:
    """How a request was answered. For counters, for the reader who insists, for `explain`."""

    request: str  # equal for equal requests
    outcome: Outcome
    reason: Reason
    output_chars: int  # characters of the real output, as far as the harness shows them
    tokens_saved: int  # net; what would have been saved, when advising
    asked: tuple[str, ...] = ()  # keys that it was believed to read, where none of their lines was credited
    shown_chars: int | None = None  # of a text that the event does not have (see `unconfirmed`); None: it has it
    host: str = ""  # the harness or the way in: "codex", "run"; empty: of a row from before hosts were noted
    tool: str = ""  # "bash", "read", or a tool's own name


@dataclass(frozen=True, slots=True)
class Output:
    """The whole output of which a reply omitted lines: its lines in files, should the host show it instead."""

    digest: str  # of the text without white space at its end
    source_map: tuple[MappedSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivered:
    """`text` was put before the reader under the id `call_id`."""

    call_id: str
    text: str
    label: str  # the command or tool that printed it, as the agent gave it: markers shorten it
    origin: Origin = Origin.RESULT
    source_map: tuple[MappedSpan, ...] = ()
    markers: tuple[MarkerRecord, ...] = ()
    changed: tuple[str, ...] = ()  # keys that this output showed to have changed: older deliveries are invalid
    credited: bool = True  # False: no later marker may point at it (see `reply.UNCREDITED`)
    when: Moment = Moment()
    account: Account | None = None  # None: nobody asked for it
    head: str = ""  # what the host put before the text and behind it: for rewrites, and for places of lines
    tail: str = ""
    unconfirmed: bool = False  # True: it is not known yet which text the reader was shown (see `unconfirmed`)
    output: Output | None = None  # of an unconfirmed reply that omits lines


@dataclass(frozen=True, slots=True)
class Wrote:
    """The agent wrote the files `keys` (see `writes.concerns`): earlier deliveries of them are invalid. So are those of
    the files `possible_writes`, which a command may have written."""

    call_id: str
    keys: tuple[str, ...]
    label: str = ""
    call: int = 0  # number of the call, from 1
    possible_writes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Amended:
    """The harness finally showed `text` as a call's result, or as another text of that call."""

    call_id: str
    text: str
    source_map: tuple[MappedSpan, ...] = ()
    markers: tuple[MarkerRecord, ...] = ()
    origin: Origin = Origin.RESULT
    lost: bool = True  # a line that markers may point at is gone; False: markers alone changed
    erases: bool = False  # what stood there before was never before the reader: stores need not keep it
    head: str = ""  # as in `Delivered`; empty where the host's words are in the text
    tail: str = ""
    confirms: bool = False  # True: an unconfirmed reply was shown as it was answered, and this event has no text
    reason: Reason | None = None  # why all of the output was shown instead of a reply with markers, if known


@dataclass(frozen=True, slots=True)
class Compacted:
    """The harness compacted: calls that are not in `kept` are gone."""

    kept: frozenset[str]


@dataclass(frozen=True, slots=True)
class Forgot:
    """These calls, and nothing else, left the conversation. Unknown ids have no effect."""

    call_ids: frozenset[str]
    doubted: bool = False  # nobody said so: they may have been in it all the same


@dataclass(frozen=True, slots=True)
class Rewound:
    """Everything after this call is gone. If the call is unknown, everything is gone."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The process that answered the calls so far closed its session: their results are in the conversation."""


@dataclass(frozen=True, slots=True)
class Failed:
    """readcache failed, and the real output went through. `cause` is a Reason's value, `detail` says what failed."""

    call_id: str
    cause: str
    detail: str


@dataclass(frozen=True, slots=True)
class Missed:
    """The host had `count` tool results that were not judged, because of `why`. They were shown as they are."""

    count: int
    why: str


Event = Delivered | Wrote | Amended | Compacted | Forgot | Rewound | Closed | Failed | Missed


@dataclass(frozen=True, slots=True)
class Record:
    """An event in the log: its place, whose it is, and when (seconds since the epoch)."""

    seq: int
    agent_id: str
    at: float
    event: Event
