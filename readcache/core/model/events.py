"""The events of a session's log, in the past tense and frozen. The session passes in times and IDs.

    Delivered("call_1", "one", "cat f", source_map=(MappedSpan(("/w/f",), at=0, count=1, first=1),))

says that the reader was shown the line "one", which is line 1 of the file /w/f. `view.View` is a fold over the log.
Indexes of lines (`at`, `line`) count from 0 in the event's own text; line numbers of files count from 1.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from readcache.core.model.reply import Outcome, Reason


@dataclass(frozen=True, slots=True)
class MappedSpan:
    """Lines `at` to `at + count - 1` of a text, which are lines of the files `keys` (see `claims` for keys)."""

    keys: tuple[str, ...]
    at: int
    count: int
    first: int = 0  # the first line's number in the file; 0: unknown
    sep: str | None = None  # the separator after printed line numbers; None: raw lines
    shift: int = 0  # the number shown minus the number in the file
    eof: bool = False  # the last line is the file's last line


class Origin(enum.Enum):
    """How a text came into the conversation."""

    RESULT = "result"  # a tool's result
    COMMAND = "command"  # the agent's own call: a heredoc, the content of a write
    RESTORED = "restored"  # a section that the compactor restored


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """The lines of one source: `count` lines of a text of `call_id`, from index `at`. `digest` names them."""

    call_id: str
    origin: Origin
    at: int
    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class MarkerRecord:
    """A marker in a delivered text. Its line, `line`, replaces lines start to end of `path` (None: of the output)."""

    line: int  # -1: the harness removed the marker later
    path: str | None
    start: int
    end: int
    sources: tuple[str, ...]  # empty if the marker says that its lines are gone
    numbered: bool = False  # the omitted lines have numbers before them
    wording: str = ""  # its text, which identifies the marker wherever a harness shows it
    source_spans: tuple[SourceSpan, ...] = ()  # in order; together all the omitted lines
    lines: str = ""  # the omitted lines, if any of them was printed differently at its source


@dataclass(frozen=True, slots=True)
class Moment:
    """A position in one reader's conversation."""

    call: int = 0  # number of the call, from 1
    tokens: int = 0  # tokens delivered up to and including this call
    batch: str = ""  # parallel calls share it
    started: int = -1  # number of the last call that was logged when this one started; -1: the one before it


@dataclass(frozen=True, slots=True)
class Account:
    """How a request was answered. Counters, retries and `explain` use it."""

    request: str  # equal for equal requests
    outcome: Outcome
    reason: Reason
    output_chars: int  # characters of the real output that the harness shows
    tokens_saved: int  # net; in advise mode, the tokens that an omission would have saved
    asked: tuple[str, ...] = ()  # keys that the call probably read, if none of their lines was credited
    shown_chars: int | None = None  # set if the event has no text (see `unconfirmed`); None: the event has its text
    host: str = ""  # the harness or the entry point: "codex", "run"; empty in rows that are older than this field
    tool: str = ""  # "bash", "read", or a tool's own name
    model: str = ""  # the name of the model that asked; empty: one of the host's usual models


@dataclass(frozen=True, slots=True)
class Output:
    """The whole output if a reply omitted lines of it: its lines in files, needed if the host shows it instead."""

    digest: str  # of the output without white space at its end
    source_map: tuple[MappedSpan, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivered:
    """`text` was shown to the reader under the ID `call_id`."""

    call_id: str
    text: str
    label: str  # the command or tool that printed it, as the agent gave it: markers shorten it
    origin: Origin = Origin.RESULT
    source_map: tuple[MappedSpan, ...] = ()
    markers: tuple[MarkerRecord, ...] = ()
    changed: tuple[str, ...] = ()  # keys whose files changed, as this output shows: older deliveries are stale
    credited: bool = True  # False: it is never the source of a later marker (see `reply.UNCREDITED`)
    when: Moment = Moment()
    account: Account | None = None  # None: nobody requested the text
    head: str = ""  # the host's text before `text`; rewrites and positions of lines need it
    tail: str = ""  # the host's text after `text`
    unconfirmed: bool = False  # True: nobody has said yet which text the reader was shown (see `unconfirmed`)
    output: Output | None = None  # of an unconfirmed reply that omits lines
    rendering: str = ""  # how it shows lines of files: see `Call.rendering`; empty if that is not known


@dataclass(frozen=True, slots=True)
class Wrote:
    """The agent wrote the files `keys` (see `claims.concerns`). Earlier deliveries of all these files are stale."""

    call_id: str
    keys: tuple[str, ...]
    label: str = ""
    call: int = 0  # number of the call, from 1
    possible_writes: tuple[str, ...] = ()  # files that a command may have written


@dataclass(frozen=True, slots=True)
class Amended:
    """The harness finally showed `text` as a call's result, or as the call's text of kind `origin`."""

    call_id: str
    text: str
    source_map: tuple[MappedSpan, ...] = ()
    markers: tuple[MarkerRecord, ...] = ()
    origin: Origin = Origin.RESULT
    lost: bool = True  # a line that markers may name is gone; False: only markers changed
    erases: bool = False  # the reader never saw the old text, so stores need not keep it
    head: str = ""  # as in `Delivered`; empty if the host's words are in the text
    tail: str = ""
    confirms: bool = False  # True: an unconfirmed reply was shown as it was answered, and this event has no text
    reason: Reason | None = None  # why the whole output was shown instead of a reply with markers, if known


@dataclass(frozen=True, slots=True)
class Cleared:
    """A note replaced a text of the message list, to make room."""

    call_id: str  # the list's ID of the result; empty if the list has none
    replaced: str  # the digest of the text as the host had it, with the host's words around a result
    note: str  # the whole new text


NOT_STORED = "not stored"  # `version` of a condensation that lacks a text, so that no list accepts it


@dataclass(frozen=True, slots=True)
class Condensed:
    """A compactor made a condensation: its `data` in JSON. It follows the first `number` earlier ones."""

    number: int
    data: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """The harness compacted: calls that are not in `kept` left the conversation."""

    kept: frozenset[str]


@dataclass(frozen=True, slots=True)
class Forgot:
    """Only these calls left the conversation. Unknown IDs have no effect."""

    call_ids: frozenset[str]
    doubted: bool = False  # True: nobody reported this, so the calls may still be in the conversation
    erased: bool = False  # True: the store no longer has their texts


@dataclass(frozen=True, slots=True)
class Rewound:
    """Everything after this call left the conversation. If the call is unknown, everything left it."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The process that answered the calls closed its session. The results so far are in the conversation."""


@dataclass(frozen=True, slots=True)
class Failed:
    """readcache failed, and the real output was shown. `cause` is a Reason's value; `detail` says what failed."""

    call_id: str
    cause: str
    detail: str


@dataclass(frozen=True, slots=True)
class Missed:
    """The host had `count` tool results that were not judged, for the reason `why`. They were shown unchanged."""

    count: int
    why: str


Removal = Compacted | Forgot | Rewound  # events that remove calls from the conversation
Event = Delivered | Wrote | Amended | Cleared | Condensed | Removal | Closed | Failed | Missed


@dataclass(frozen=True, slots=True)
class Record:
    """An event in the log: its position, its reader, and its time (seconds since the epoch)."""

    seq: int
    agent_id: str
    at: float
    event: Event
