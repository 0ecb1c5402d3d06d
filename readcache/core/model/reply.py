"""The answer of a session to one call: its text, and the account of every omitted line."""

from __future__ import annotations

import enum
import types
from dataclasses import dataclass, replace


class Outcome(enum.Enum):
    """The kind of an answer."""

    FULL = "full"
    UNCHANGED = "unchanged"  # only markers: all of it is visible already
    PARTIAL = "partial"  # some lines shown, some omitted
    IDENTICAL_OUTPUT = "identical_output"  # one earlier result contains all of it


class Reason(enum.Enum):
    """The cause of a reply: why lines were omitted, or why not. `Session.stats()` counts each.

    `Reason.COVERED.value` is "covered", the name in logs and counters. `Reason.COVERED.why` is the cause as a sentence.
    """

    why: str

    def __new__(cls, value: str, why: str = "") -> Reason:
        """Return a member made from its value and its sentence."""
        member = object.__new__(cls)
        member._value_, member.why = value, why
        return member

    # Without this, a type checker assumes that the value is the pair.
    @types.DynamicClassAttribute
    def value(self) -> str:
        """The name in logs and counters."""
        return str(self._value_)

    # something was omitted
    COVERED = "covered", "every line of it is visible already, byte for byte"
    OVERLAP = "overlap", "some of its lines are visible already, byte for byte"
    UNCHANGED_LINES = "unchanged_lines", "the file changed, but the omitted lines did not"
    IDENTICAL = "identical", "an earlier result contains identical output"
    REPEATED_LINES = "repeated_lines", "runs of its lines are visible already, byte for byte"
    # nothing was omitted, as the rules demand
    NOT_SEEN = "not_seen", "nothing of it was visible yet, so all of it was shown"
    CHANGED = "changed", "the file is no longer as the reader was shown it, so all of it was shown"
    OTHER_VIEW = "other_view", "another tool showed other text of these lines, so all of it was shown"
    WRITTEN = "written", "the agent wrote the file since it was shown, so all of it was shown"
    INSISTED = "insisted", "the same request came again right after an omission, so all of it was shown"
    FRESH = "fresh", "every byte was asked for (`fresh=True`)"
    RECALLED = "recalled", "it is the text of an earlier call, shown again by `readcache recall`"
    TOO_SHORT = "too_short", "it is shorter than Policy.min_chars"
    NO_GAIN = "no_gain", "markers would have cost too much for what they save"
    NOT_WORTH = "not_worth", "it would have saved less than the share of one more turn that Policy.min_worth asks for"
    SAME_BATCH = "same_batch", "it is visible only in a result of the same batch, which may not be delivered yet"
    UNNUMBERED = "unnumbered", "it is visible, but without the line numbers that were asked for"
    HOLDS_A_MARKER = "holds_a_marker", "it contains one of this session's markers, which can never be a source"
    NO_PARTIAL = "no_partial", "a part of it is new, and the rest may not be left out alone"
    NOT_PROVEN = "not_proven", "the host could not prove that its source is still visible, so all of it was shown"
    NOT_SENT = "not_sent", "the host showed the whole output instead of the answer with markers"
    UNCONFIRMED = (
        "unconfirmed",
        "nobody has confirmed that the answer with markers was shown: it counts as full",
    )
    # nothing was omitted, because a setting or readcache's mode forbids it
    NEVER = "never", "a harness reads this command's output as an answer (Policy.never)"
    ALWAYS = "always", "the file has instructions, which are shown whole each time (Policy.always)"
    POLLED = "polled", "it is a log, or the output of a task, which agents read again to see what is new"
    PROTECTED = "protected", "it is about a protected file, or shows a secret (Policy.protected)"
    MODE_OFF = "mode_off", "readcache is switched off"
    ADVISED = "advised", "it would have been cut, but readcache only advises"
    # nothing was omitted, because this text cannot be judged
    BINARY = "binary", "it has NUL characters and is not text"
    NOT_TEXT = "not_text", "it is not UTF-8 text, so it cannot be compared"
    TOO_LARGE = "too_large", "it is too large to be compared"
    TIMED_OUT = "timed_out", "the command ran out of time, so its output may end anywhere"
    KILLED = "killed", "a signal ended the command, so its output may end anywhere"
    NOT_RUN = "not_run", "bash could not be started"
    UNREADABLE = "unreadable", "the file could not be read"
    UNSTABLE = "unstable", "the file was being written while it was read"
    # nothing was omitted, because readcache or its store failed
    STORE_FAILED = "store_failed", "the store failed, so all of it was shown; see `readcache doctor`"
    INTERNAL_ERROR = "internal_error", "readcache itself failed, so all of it was shown; see `readcache log`"


# Reasons of answers that are passed on but never become sources. Either a harness does not take such an answer as text
# to read, or the answer may end anywhere, or nothing is known about it.
UNCREDITED = frozenset(
    {
        Reason.RECALLED,
        Reason.NEVER,
        Reason.PROTECTED,
        Reason.MODE_OFF,
        Reason.BINARY,
        Reason.NOT_TEXT,
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
    """Output passed on verbatim."""

    text: str


@dataclass(frozen=True, slots=True)
class Omitted:
    """A run of `end - start + 1` whole output lines that a reply omits.

    Line numbers belong to the file `path`, or to this output if `path` is None; 1-based inclusive. `sources` are the
    IDs of the calls or restored sections that contain each of the lines verbatim.
    """

    path: str | None
    start: int
    end: int
    sources: tuple[str, ...]


Segment = Shown | Omitted


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one call. `str(reply)` is the text for the model."""

    text: str
    """The text for the model: the output, with a marker instead of each omission."""
    exit_code: int
    """The command's exit status. 124: the command timed out, as with `timeout`. 125: bash could not be started.
    Negative: the number of the signal that ended the command, as with `subprocess`. For a read: 0, or 1 if the file
    cannot be read."""
    outcome: Outcome
    """The kind of answer. `FULL`: all of the output. `PARTIAL`: some lines omitted. `UNCHANGED`: only markers.
    `IDENTICAL_OUTPUT`: one marker, because one earlier result contains all of the output."""
    reason: Reason
    """The cause, one member for each; `reason.why` is a sentence."""
    segments: tuple[Segment, ...]
    """The account of every line, in order: `Shown(text)`, or `Omitted(path, start, end, sources)`."""
    call_id: str
    """The harness's ID of the call, or an ID that the session made up if the harness gave none."""
    tokens_saved: int
    """Tokens of the omitted lines minus the tokens of the markers, by `Policy.count_tokens`. 0 if nothing was
    omitted."""
    full_text: str
    """The whole real output."""

    def __str__(self) -> str:
        return self.text

    @property
    def is_output(self) -> bool:
        """True if the text is what the tool printed: no line is omitted, and no earlier result is recalled."""
        return self.outcome is Outcome.FULL and self.reason is not Reason.RECALLED

    def omissions(self) -> list[tuple[Omitted, str, list[str]]]:
        """Return the omissions in order: for each, the omission, its marker, and the omitted lines of `full_text`."""
        found: list[tuple[Omitted, str, list[str]]] = []
        shown = at = 0  # positions in the text, and in the full text
        for segment in self.segments:
            if isinstance(segment, Omitted):
                count = segment.end - segment.start + 1
                marker = self.text[shown:].partition("\n")[0]
                lines = self.full_text[at:].split("\n", count)[:count]
                found.append((segment, marker, lines))
                shown, at = shown + len(marker) + 1, at + sum(map(len, lines)) + count
            else:
                shown, at = shown + len(segment.text), at + len(segment.text)
        return found


def without_omissions(reply: Reply, reason: Reason) -> Reply:
    """Return the reply with its full text shown, for this reason."""
    text, shown = reply.full_text, (Shown(reply.full_text),)
    return replace(reply, text=text, segments=shown, outcome=Outcome.FULL, reason=reason, tokens_saved=0)
