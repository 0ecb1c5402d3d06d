"""What a session answers: text, and the account of every line that was left out."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Outcome(enum.Enum):
    """What kind of answer it is."""

    FULL = "full"
    UNCHANGED = "unchanged"  # nothing but markers: the reader has all of it
    PARTIAL = "partial"  # some lines shown, some left out
    IDENTICAL_OUTPUT = "identical_output"  # one earlier result holds all of it


class Reason(enum.Enum):
    """Why a reply was or was not cut: one member for each cause, counted in `Session.stats()`.

    The value is what logs and `stats` show.
    """

    # something was left out
    COVERED = "covered"  # every line of the read is visible
    OVERLAP = "overlap"  # some lines of the read are visible
    UNCHANGED_LINES = "unchanged_lines"  # Policy.delta: the file changed, these lines did not
    IDENTICAL = "identical"  # the whole output stands at one place
    REPEATED_LINES = "repeated_lines"  # Policy.any_output: runs of lines that are visible
    # nothing was left out, and that is the rule
    NOT_SEEN = "not_seen"  # nothing of it is visible
    CHANGED = "changed"  # the file differs from what the reader was shown
    WRITTEN = "written"  # the agent wrote the file since
    INSISTED = "insisted"  # the same request right after an omission
    FRESH = "fresh"  # asked for with `fresh=True`
    TOO_SHORT = "too_short"  # shorter than Policy.min_chars
    NO_GAIN = "no_gain"  # the markers would cost too much for what they save
    SAME_BATCH = "same_batch"  # visible only in a result of the same batch of calls
    UNNUMBERED = "unnumbered"  # visible, but without the line numbers that were asked for
    HOLDS_A_MARKER = "holds_a_marker"  # one of this session's markers stands in it, and a marker is never a source
    NO_PARTIAL = "no_partial"  # Policy.partial is off and a part is new
    # nothing was left out, by order
    NEVER = "never"  # Policy.never: a harness parses this output
    PROTECTED = "protected"  # Policy.protected
    MODE_OFF = "mode_off"
    ADVISED = "advised"  # Mode.ADVISE: would have been cut
    # nothing was left out, because this is not text to be judged
    BINARY = "binary"  # NUL bytes
    TOO_LARGE = "too_large"
    TIMED_OUT = "timed_out"
    KILLED = "killed"  # by a signal: what was printed may end anywhere
    NOT_RUN = "not_run"  # bash could not be started: missing cwd, NUL in the command
    UNREADABLE = "unreadable"  # a read that failed
    UNSTABLE = "unstable"  # the file was being written while it was read
    # nothing was left out, because of us
    STORE_FAILED = "store_failed"
    INTERNAL_ERROR = "internal_error"


# Answers that are passed on but never credited: a harness takes them for something else than text to read, they may end
# anywhere, or nothing is known about them.
UNCREDITED = frozenset(
    {
        Reason.NEVER,
        Reason.PROTECTED,
        Reason.MODE_OFF,
        Reason.BINARY,
        Reason.TOO_LARGE,
        Reason.TIMED_OUT,
        Reason.KILLED,
        Reason.NOT_RUN,
        Reason.UNREADABLE,
        Reason.UNSTABLE,
        Reason.STORE_FAILED,
        Reason.INTERNAL_ERROR,
    }
)


@dataclass(frozen=True, slots=True)
class Shown:
    """Output that is passed on verbatim."""

    text: str


@dataclass(frozen=True, slots=True)
class Omitted:
    """Whole output lines left out: `end - start + 1` of them.

    Line numbers are of the file `path`, or of this output when `path` is None; 1-based inclusive. `sources` are the
    call ids (or ids of restored sections) where each of the lines stands verbatim.
    """

    path: str | None
    start: int
    end: int
    sources: tuple[str, ...]


Segment = Shown | Omitted


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one call. `str(reply)` is what the model is to see."""

    text: str
    exit_code: int
    outcome: Outcome
    reason: Reason
    segments: tuple[Segment, ...]
    call_id: str
    tokens_saved: int  # net of the markers' own tokens
    full_text: str  # the real output, all of it

    def __str__(self) -> str:
        return self.text
