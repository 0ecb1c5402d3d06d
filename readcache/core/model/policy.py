"""The settings of a session: `Policy`, and `Budget` for a restore plan. Plain frozen values."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from readcache.core.model.errors import UsageError, did_you_mean
from readcache.core.model.limits import MOST_COUNT, whole_number
from readcache.core.model.secrets import SECRET_NAMES
from readcache.core.model.tokens import UNKNOWN, CountByChars, chars_per_token, count_by_chars, usual_model


class Insist(enum.Enum):
    """The answer to a retry: a request that is repeated right after an omission."""

    SERVE = "serve"  # every omitted byte
    STUB = "stub"  # a marker again, if it would still be true


class Mode(enum.Enum):
    """The extent to which a session acts."""

    ON = "on"
    ADVISE = "advise"  # never omit; record and report what would have been omitted
    OFF = "off"  # pass everything through, record nothing


@dataclass(frozen=True, slots=True)
class Head:
    """A harness that shows the first `chars` characters of a longer output."""

    chars: int

    def kept(self, text: str) -> tuple[str, ...]:
        """Return the parts of `text` that the harness shows, in order."""
        return (text[: self.chars],)


@dataclass(frozen=True, slots=True)
class HeadTail:
    """A harness that shows the first `head` and last `tail` characters of a longer output; mini-swe-agent: 5,000."""

    head: int
    tail: int

    def kept(self, text: str) -> tuple[str, ...]:
        """Return the parts of `text` that the harness shows, in order."""
        if len(text) <= self.head + self.tail:
            return (text,)
        return (text[: self.head], text[len(text) - self.tail :])


# Commands whose output a harness takes as the agent's answer, from the harnesses' sources: mini-swe-agent v1 and v2,
# SWE-agent's `submit` and its v1 marker.
SUBMIT_COMMANDS = (
    r"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    r"MINI_SWE_AGENT_FINAL_OUTPUT",
    r"SWE_AGENT_SUBMISSION",
    r"^[^\S\n]*submit\b(?!\s*=)",
)

PRESETS = ("default", "delta", "max")

# Files of instructions. Agents follow instructions less well if they see a marker (NousResearch/hermes-agent#44819).
INSTRUCTIONS = (
    "SKILL.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "GEMINI.md",
    ".cursorrules",
    "copilot-instructions.md",
)

# More than two markers: the median marker has 120 characters. Chosen by replay, see tests/benchmarks/README.md.
MIN_CHARS = 300


# A share of one more turn. Chosen by replay, see tests/benchmarks/README.md.
MIN_WORTH = 0.125

# Tokens, and the largest shares of a smaller window. Chosen by replay, see tests/benchmarks/README.md.
CLEAR_ABOVE, CLEAR_DOWN_TO = 160_000, 120_000
MOST_ABOVE, MOST_DOWN_TO = 0.8, 0.6


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of tokens, as multiples of an input token that is read without a cache, and the parts of a turn.

    The price defaults are Anthropic's ratios for a cached prefix (five minutes). The other defaults were measured on
    recorded sessions.
    """

    write: float = 1.25
    """The price of writing a token to the prompt cache. Each token of the conversation pays it once."""
    read: float = 0.1
    """The price of reading a token from the cache. Each token of the conversation pays it in each later turn."""
    output: float = 5.0
    """The price of a token that the model writes."""
    prompt: int = 20_000
    """Tokens of instructions and tools that each turn reads in addition to the conversation."""
    answer: int = 150
    """Tokens that the model writes in one turn."""
    turns: int = 40
    """The expected number of further turns, at any time. After the first 10, 50 and 100 calls of recorded
    conversations, 59, 46 and 53 more came on average; in other recordings 40, 39 and 42. So the number of past turns
    tells nothing about the number of further ones."""

    chars_per_token: ClassVar[float] = UNKNOWN.chars_per_token  # for estimates, if only the characters are known

    def of_text(self, tokens: int) -> float:
        """Return the cost of a text of this many tokens while it is carried in the conversation."""
        return tokens * self.while_carried(self.turns)

    def while_carried(self, turns: int) -> float:
        """Return the cost of a token that is written to the cache once and read in each of `turns` later turns."""
        return self.write + self.read * turns

    def of_turn(self, carried: float) -> float:
        """Return the cost of one more turn in a conversation of `carried` tokens."""
        return self.read * (self.prompt + carried) + self.output * self.answer


@dataclass(frozen=True, slots=True)
class Budget:
    """The size of a restored section. Raise UsageError for a negative limit.

    The default comes from the rereads after 86 compactions of real hosts: 20,000 characters, about 7,000 tokens, are
    the largest size that pays for itself. Use 14,000 tokens (40,000 characters) if a step limit or a person's time
    matters too. A smaller limit per file, such as Claude Code's 5,000 tokens, covers fewer of these rereads (see
    tests/benchmarks).
    """

    max_files: int = 50
    """Files, each with any number of ranges."""
    max_tokens: int | float = 7_000
    """Tokens of the whole section, by `Policy.count_tokens`. Below 1: a share of the window of a `Compactor`."""
    max_tokens_per_file: int = 14_000
    """Tokens of one file's ranges, or of one result."""

    def __post_init__(self) -> None:
        if min(self.max_files, self.max_tokens, self.max_tokens_per_file) < 0:
            raise UsageError(f"{self}: a limit cannot be negative")

    @property
    def is_share(self) -> bool:
        """True if `max_tokens` is a share of a window."""
        return 0 < self.max_tokens < 1

    def within(self, window: int) -> Budget:
        """Return the budget in tokens. `window`: the size of the model's context window, in tokens."""
        return replace(self, max_tokens=int(self.max_tokens * window)) if self.is_share else self


@dataclass(frozen=True, slots=True)
class Marks:
    """Two sizes of a conversation, in tokens of the model: above `above`, its oldest results are cleared until
    `down_to` tokens remain. Raise UsageError unless 0 <= down_to <= above.

    The defaults come from 319 recorded conversations of more than 100,000 tokens, as the providers counted them.
    Clearing by these marks takes 2 % of the text that edits needed later. Other marks that take at most 5 % cost at
    most 1.5 % less. A lower second mark is seldom reached, because instructions, words and calls stay.
    """

    above: int = CLEAR_ABOVE
    down_to: int = CLEAR_DOWN_TO

    def __post_init__(self) -> None:
        if not 0 <= self.down_to <= self.above:
            raise UsageError(f"above={self.above} and down_to={self.down_to}: give 0 <= down_to <= above")

    @classmethod
    def of_window(cls, window: int) -> Marks:
        """Return the default marks for a model with a context window of `window` tokens. They do not grow with a larger
        window, because carried text costs the same there."""
        return cls(min(CLEAR_ABOVE, int(MOST_ABOVE * window)), min(CLEAR_DOWN_TO, int(MOST_DOWN_TO * window)))


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings for a session's decisions. Sizes are in characters unless the name says tokens."""

    min_chars: int = MIN_CHARS
    """Outputs with fewer characters are never changed. The default is a little more than two markers."""
    partial: bool = True
    """Omit the visible part of an overlapping read and show the rest."""
    delta: bool = False
    """Also omit lines of a file that was written in the meantime, if the lines themselves did not change."""
    identical_output: bool = True
    """Omit the output of any other command if one earlier result contains all of it."""
    any_output: bool = False
    """Also omit runs of visible lines in the output of any other command: test logs, diffs, searches."""
    never: tuple[str, ...] = SUBMIT_COMMANDS
    """Regexes of commands whose output is never changed, because a harness takes it as the agent's answer.
    `SUBMIT_COMMANDS` are the patterns for mini-swe-agent and SWE-agent. A pattern sees the command as it was given,
    including the bodies of heredocs. A `^` at the start of a pattern also matches where a command begins in the middle
    of a line (`cd x && submit`)."""
    insist: Insist = Insist.SERVE
    """The answer to the same request right after an omission: `SERVE` shows all bytes; `STUB` shows a marker again."""
    min_worth: float = MIN_WORTH
    """An omission must be worth at least this share of one more turn, by `prices`. A marker may cause a second request:
    at 0.1 it pays if at most one marker in ten does. Values below the measured re-request rate are raised to it: 0.04
    for lines in a result, 0.2 for lines only in the agent's own text, 0.3 for a restored section. 0: omit regardless of
    the worth."""
    prices: Prices = Prices()
    """The prices of tokens and turns."""
    max_markers: int = 6
    """The maximum number of markers in one reply; the largest omissions come first. A text with many gaps is hard to
    read."""
    clip: Head | HeadTail | None = None
    """The form in which the harness truncates an output, in characters: `HeadTail(5000, 5000)` or `Head(n)`. Only the
    part that the harness shows counts as seen. None: the harness does not truncate."""
    horizon_tokens: int | None = None
    """Results with more than this many tokens of later output after them count as no longer visible. For a harness that
    does not report compactions. None: results of any age count as visible."""
    always: tuple[str, ...] = INSTRUCTIONS
    """Globs of files that are shown whole each time the agent requests them. They still count as seen."""
    protected: tuple[str, ...] = SECRET_NAMES
    """Globs of files that are never omitted, pruned or restored, and never kept in the store: `*.pem`, `secrets/*.txt`,
    below any directory. The default, `SECRET_NAMES`, lists the usual ones. Your globs replace it, so add to it:
    `(*SECRET_NAMES, "notes/*")`. Links are followed if the files are on this machine. Outputs that show secrets of a
    known form are treated the same way. `()` turns all of this off."""
    restore: Budget = Budget()
    """The lines to restore after a compaction, in a host that compacts by itself. `Budget(max_tokens=0)`: none."""
    clear: Marks | None = None
    """The sizes at which old results are cleared, in a host that gives readcache the messages of each request:
    `Marks(160_000, 120_000)`. None: results are never cleared."""
    prune: tuple[str, ...] = ("superseded_reads", "duplicate_outputs", "outdated_reads")
    """The strategies of `context.prune` that come first when results are cleared, because the prompt cache breaks then
    anyway. Their notes replace only text that is repeated or out of date. (): none."""
    model: str = ""
    """The name of the model, such as `claude-opus-5`. Its family decides how many characters a token has. "": the
    host's usual models decide, and if it has none, a token has 3 characters."""
    count_tokens: Callable[[str], int] = count_by_chars
    """A function `str -> int` that returns the tokens of a text. The default counts by the model's characters."""
    mode: Mode = Mode.ON
    """`ON`; `ADVISE` omits nothing and counts the lines that it would have omitted; `OFF` omits and records nothing."""
    _never: re.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        for name in ("never", "always", "protected"):
            if isinstance(given := getattr(self, name), str):  # without this check, each character would be a pattern
                raise UsageError(f"Policy({name}={given!r}) is a string: give a tuple, ({given!r},)")
        if self.restore.is_share:
            raise UsageError(f"Policy(restore={self.restore}): the window is not known: give a number of tokens")
        if not self.min_worth >= 0:
            raise UsageError(f"Policy(min_worth={self.min_worth!r}) is not a share of a turn: give 0 or more")
        if isinstance(self.count_tokens, CountByChars):  # a policy that was made for another model has its counter
            object.__setattr__(self, "count_tokens", CountByChars(self.chars_per_token))
        if self.never:
            joined = "|".join(f"(?:{pattern})" for pattern in self.never)
            object.__setattr__(self, "_never", re.compile(joined, re.MULTILINE))

    @classmethod
    def named(cls, name: str) -> Policy:
        """Return a preset. "default"; "delta", which also omits the unchanged lines of a file that was written; "max",
        which also omits the visible lines of any output. Raise UsageError for any other name."""
        if name not in PRESETS:
            raise UsageError(f"unknown policy {name!r}{did_you_mean(name, PRESETS)}: choose from {', '.join(PRESETS)}")
        return cls(delta=name != "default", any_output=name == "max")

    def protecting(self, globs: str) -> Policy:
        """Return this policy, which also protects the files of these globs (separated by commas)."""
        more = tuple(glob.strip() for glob in globs.split(",") if glob.strip())
        return replace(self, protected=(*self.protected, *more)) if more else self

    def restoring(self, tokens: str) -> Policy:
        """Return this policy with a restored section of at most `tokens` tokens; "" changes nothing. Raise UsageError
        if `tokens` is not a number."""
        if not tokens:
            return self
        most = whole_number(tokens)
        if most is None:
            raise UsageError(
                f"READCACHE_RESTORE or --restore {tokens!r} is not a number of tokens (at most {MOST_COUNT:,})"
            )
        return replace(self, restore=replace(self.restore, max_tokens=most))

    def clearing(self, marks: str) -> Policy:
        """Return this policy with these marks, ABOVE:DOWN_TO in tokens; "" changes nothing. Raise UsageError if the
        marks are invalid."""
        if not marks:
            return self
        above, down_to = (whole_number(mark) for mark in (*marks.split(":", 1), "")[:2])
        if above is None or down_to is None:
            raise UsageError(f"READCACHE_CLEAR {marks!r} is not ABOVE:DOWN_TO in tokens, such as 160000:120000")
        return replace(self, clear=Marks(above, down_to))

    def used_by(self, host: str) -> Policy:
        """Return this policy with the family of the host's usual models, if no model is named."""
        return self if self.model or not usual_model(host) else replace(self, model=usual_model(host))

    @property
    def chars_per_token(self) -> float:
        """Characters of a token of `model`, for estimates if only the characters are known."""
        return chars_per_token(self.model)

    def tokens(self, text: str) -> int:
        """Return the tokens of `text` by `count_tokens`. If that raises, count by the characters, so that a failed
        count does not stop a call."""
        try:
            return int(self.count_tokens(text))
        except Exception:
            return CountByChars(self.chars_per_token)(text)

    def forbids(self, text: str) -> bool:
        """Return True if a pattern of `never` matches the text. `is_answer` decides which part of a command is
        matched."""
        return self._never is not None and self._never.search(text) is not None


@dataclass(frozen=True, slots=True)
class Rules:
    """The inputs of a session's decisions: the user's policy and the tag of the session's own markers. `host` is only
    recorded."""

    policy: Policy
    tag: str
    host: str = ""


_JOINS = re.compile(r"&&|[;|&(){`]|\b(?:then|do|else)\b")  # a command may begin after one of these


def is_answer(command: str, policy: Policy = Policy()) -> bool:
    """Return True if a pattern of `policy.never` matches at the beginning of a line or of a command.

    The patterns see the bodies of heredocs, too. The output of a command that only looks like an answer is shown in
    full.
    """
    command = command.replace("\\\n", " ")
    return policy.forbids(command) or policy.forbids(_JOINS.sub("\n", command))
