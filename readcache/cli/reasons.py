"""Each `Reason` in words, for `explain` and `stats`. The one place where they are spelled."""

from __future__ import annotations

from readcache.reply import Reason

WHY: dict[Reason, str] = {
    Reason.COVERED: "every line of it is visible elsewhere, with the same bytes",
    Reason.OVERLAP: "some of its lines are visible elsewhere, with the same bytes",
    Reason.UNCHANGED_LINES: "the file changed, and the lines left out are those that did not",
    Reason.IDENTICAL: "one earlier result holds the very same output",
    Reason.REPEATED_LINES: "runs of its lines are visible elsewhere, with the same bytes",
    Reason.NOT_SEEN: "nothing of it is visible, so all of it was shown",
    Reason.CHANGED: "the file is no longer as the reader was shown it, so all of it was shown",
    Reason.WRITTEN: "the agent wrote the file since it was shown, so all of it was shown",
    Reason.INSISTED: "the same request came again right after an omission, so all of it was shown",
    Reason.FRESH: "it was asked for afresh (`fresh=True`)",
    Reason.TOO_SHORT: "it is shorter than Policy.min_chars",
    Reason.NO_GAIN: "markers would have cost too much for what they save",
    Reason.SAME_BATCH: "it is visible only in a result of the same batch of calls, which may not be delivered yet",
    Reason.UNNUMBERED: "it is visible, but without the line numbers that were asked for",
    Reason.NO_PARTIAL: "a part of it is new, and Policy.partial is off",
    Reason.NEVER: "a harness reads this command's output as an answer (Policy.never)",
    Reason.PROTECTED: "the file is protected (Policy.protected)",
    Reason.MODE_OFF: "readcache is switched off",
    Reason.ADVISED: "it would have been cut, but readcache only advises",
    Reason.BINARY: "it has NUL characters and is not text",
    Reason.TOO_LARGE: "it is too large to be compared",
    Reason.TIMED_OUT: "the command ran out of time, so its output may end anywhere",
    Reason.KILLED: "a signal ended the command, so its output may end anywhere",
    Reason.NOT_RUN: "bash could not be started",
    Reason.UNREADABLE: "the file could not be read",
    Reason.UNSTABLE: "the file was being written while it was read",
    Reason.STORE_FAILED: "the store failed, so all of it was shown; see `readcache doctor`",
    Reason.INTERNAL_ERROR: "readcache itself failed, so all of it was shown; see `readcache log`",
}


def words_for(name: str) -> str:
    """The sentence for a reason's value; "" for what is none."""
    return next((text for reason, text in WHY.items() if reason.value == name), "")
