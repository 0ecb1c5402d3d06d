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


class Insist(enum.Enum):
    """The answer to a request that is repeated right after an omission."""

    SERVE = "serve"  # every byte that was left out
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
        """The parts of `text` that the harness shows, in order."""
        return (text[: self.chars],)


@dataclass(frozen=True, slots=True)
class HeadTail:
    """A harness that shows the first `head` and last `tail` characters of a longer output; mini-swe-agent: 5,000."""

    head: int
    tail: int

    def kept(self, text: str) -> tuple[str, ...]:
        """The parts of `text` that the harness shows, in order."""
        if len(text) <= self.head + self.tail:
            return (text,)
        return (text[: self.head], text[len(text) - self.tail :])


CHARS_PER_TOKEN = 4


def count_by_chars(text: str) -> int:
    """Tokens by the usual rule of thumb, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


# Harnesses that take a command's output as the agent's answer (read in their sources): mini-swe-agent v1 and v2,
# SWE-agent's `submit` and its v1 marker.
SUBMIT_COMMANDS = (
    r"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    r"MINI_SWE_AGENT_FINAL_OUTPUT",
    r"SWE_AGENT_SUBMISSION",
    r"^[^\S\n]*submit\b(?!\s*=)",
)

PRESETS = ("default", "delta", "max")

# Files of instructions. Agents obey less what they were shown as a marker (NousResearch/hermes-agent#44819).
INSTRUCTIONS = (
    "SKILL.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    "GEMINI.md",
    ".cursorrules",
    "copilot-instructions.md",
)

# More than two markers, of which the median has 120. Chosen by replay, see tests/benchmarks/README.md.
MIN_CHARS = 300


# The share of one more turn. Chosen by replay, see tests/benchmarks/README.md.
MIN_WORTH = 0.125

# Tokens; of a smaller window at most these shares. Chosen by replay, see tests/benchmarks/README.md.
CLEAR_ABOVE, CLEAR_DOWN_TO = 160_000, 60_000
MOST_ABOVE, MOST_DOWN_TO = 0.8, 0.3


@dataclass(frozen=True, slots=True)
class Prices:
    """What a token costs, as a multiple of one that is read without a cache, and what a turn is made of.

    The defaults are Anthropic's ratios for a cached prefix (five minutes); the rest was measured on recorded sessions.
    """

    write: float = 1.25
    """A token that is put into the conversation, once: it is written to the prompt cache."""
    read: float = 0.1
    """A token of the conversation, for each later turn: it is read from the cache."""
    output: float = 5.0
    """A token that the model writes."""
    prompt: int = 20_000
    """Tokens of instructions and tools that each turn reads beside the conversation."""
    answer: int = 150
    """Tokens that the model writes in one turn."""
    turns: int = 40
    """Turns that are still to come, at any time: after the first 10, 50 and 100 calls of recorded conversations, 59, 46
    and 53 more came on average, and in other recordings 40, 39 and 42: how many there were already tells nothing."""

    chars_per_token: ClassVar[int] = CHARS_PER_TOKEN  # where only characters are known

    def of_text(self, tokens: int) -> float:
        """What a text will cost while it is carried."""
        return tokens * self.while_carried(self.turns)

    def while_carried(self, turns: int) -> float:
        """What a token costs that is written to the cache once and read by so many later turns."""
        return self.write + self.read * turns

    def of_turn(self, carried: float) -> float:
        """What one more turn costs when the conversation has so many tokens."""
        return self.read * (self.prompt + carried) + self.output * self.answer


@dataclass(frozen=True, slots=True)
class Budget:
    """The size of a restored section. UsageError for a negative one.

    By what 86 compactions of real hosts read again, 5,000 tokens are the most that pay for themselves. Give 10,000 if a
    step limit or a person's time counts as well. A limit of 5,000 tokens a file, as Claude Code has, costs two points
    of what is read again at 10,000 tokens and nine at 50,000 (see tests/benchmarks)."""

    max_files: int = 50
    """Files, each with any number of ranges."""
    max_tokens: int | float = 5_000
    """Tokens of the whole section, by `Policy.count_tokens`. Below 1: a share of the window of a `Compactor`."""
    max_tokens_per_file: int = 10_000
    """Tokens of one file's ranges, or of one result."""

    def __post_init__(self) -> None:
        if min(self.max_files, self.max_tokens, self.max_tokens_per_file) < 0:
            raise UsageError(f"{self}: a limit cannot be negative")

    @property
    def is_share(self) -> bool:
        """True if `max_tokens` is a share of a window."""
        return 0 < self.max_tokens < 1

    def within(self, window: int) -> Budget:
        """The budget in tokens. `window`: tokens of the model's context window."""
        return replace(self, max_tokens=int(self.max_tokens * window)) if self.is_share else self


@dataclass(frozen=True, slots=True)
class Marks:
    """Two sizes of a conversation: above the first, its oldest results are cleared down to the second. UsageError
    unless 0 <= down_to <= above. Both count the messages, by `Policy.count_tokens`.

    By what 52 long conversations needed later, the defaults are the cheapest marks with which at most 3 % of that is
    missed, whether cached input costs a tenth or a twentieth."""

    above: int = CLEAR_ABOVE
    down_to: int = CLEAR_DOWN_TO

    def __post_init__(self) -> None:
        if not 0 <= self.down_to <= self.above:
            raise UsageError(f"above={self.above} and down_to={self.down_to}: give 0 <= down_to <= above")

    @classmethod
    def of_window(cls, window: int) -> Marks:
        """The default marks for a model whose context holds so many tokens. What is carried costs the same in a larger
        window."""
        return cls(min(CLEAR_ABOVE, int(MOST_ABOVE * window)), min(CLEAR_DOWN_TO, int(MOST_DOWN_TO * window)))


@dataclass(frozen=True, slots=True)
class Policy:
    """How a session decides. Sizes are in characters of text unless the name says tokens."""

    min_chars: int = MIN_CHARS
    """Outputs with fewer characters are never touched. The default is a little more than two markers."""
    partial: bool = True
    """Leave out the visible part of an overlapping read and show the rest."""
    delta: bool = False
    """Also leave out lines of a file that was written since, where the lines themselves did not change."""
    identical_output: bool = True
    """Leave out the output of any other command when one earlier result holds all of it."""
    any_output: bool = False
    """Also leave out visible runs of lines in the output of any other command: test logs, diffs, searches."""
    never: tuple[str, ...] = SUBMIT_COMMANDS
    """Regexes of commands whose output a harness takes as the agent's answer: never touched. `SUBMIT_COMMANDS` are
    those of mini-swe-agent and SWE-agent. A pattern sees the command as it was given, and a `^` in front also matches
    where a command begins in the middle of a line (`cd x && submit`). It sees the bodies of heredocs, too."""
    insist: Insist = Insist.SERVE
    """What the same request gets right after an omission: `SERVE` all bytes; `STUB` a marker again."""
    min_worth: float = MIN_WORTH
    """What a reply leaves out must be worth this share of one more turn, by `prices`. A marker may make the reader ask
    again: at 0.1 it pays as long as no more than one in ten does. A smaller share than that of agents who ask again
    counts as theirs: 0.04, or 0.2 where the lines stand only in what the agent itself wrote, or 0.3 in a section that
    was put back. 0: whatever it is worth."""
    prices: Prices = Prices()
    """What tokens and turns cost."""
    max_markers: int = 6
    """Markers in one reply, the largest omissions first: with many holes a text is hard to read."""
    clip: Head | HeadTail | None = None
    """How the harness truncates an output, in characters: `HeadTail(5000, 5000)` or `Head(n)`. Only what is left
    counts as seen. None: not at all."""
    horizon_tokens: int | None = None
    """Results with more than this many tokens of later output after them count as gone. For a harness that does not
    report compaction. None: nothing goes by age."""
    always: tuple[str, ...] = INSTRUCTIONS
    """Globs of files that are shown whole each time the agent asks for them. They count as seen all the same."""
    protected: tuple[str, ...] = SECRET_NAMES
    """Globs of files that are never left out, pruned or restored, and never kept in the store: `*.pem`,
    `secrets/*.txt`, below any directory. `SECRET_NAMES` are the usual ones; yours take their place, so add them:
    `(*SECRET_NAMES, "notes/*")`. Links are followed where the files are on this machine. Outputs that show secrets of a
    known form are treated alike. `()` turns all of this off."""
    restore: Budget = Budget()
    """What is put back after a compaction in a host that compacts by itself. `Budget(max_tokens=0)`: nothing."""
    clear: Marks | None = None
    """When old results are cleared, in a host that gives us the messages of each request: `Marks(160_000, 60_000)`.
    None: never."""
    count_tokens: Callable[[str], int] = count_by_chars
    """Tokens of a text, any `str -> int`. The default is a quarter of the characters."""
    mode: Mode = Mode.ON
    """`ON`; `ADVISE` leaves nothing out and counts what it would have left out; `OFF` records nothing either."""
    _never: re.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        for name in ("never", "always", "protected"):
            if isinstance(given := getattr(self, name), str):  # else each of its characters would be one
                raise UsageError(f"Policy({name}={given!r}) is a string: give a tuple, ({given!r},)")
        if self.restore.is_share:
            raise UsageError(f"Policy(restore={self.restore}): the window is not known: give a number of tokens")
        if not self.min_worth >= 0:
            raise UsageError(f"Policy(min_worth={self.min_worth!r}) is not a share of a turn: give 0 or more")
        if self.never:
            joined = "|".join(f"(?:{pattern})" for pattern in self.never)
            object.__setattr__(self, "_never", re.compile(joined, re.MULTILINE))

    @classmethod
    def named(cls, name: str) -> Policy:
        """A preset: "default"; "delta", which also leaves out the unchanged lines of a file that was written; "max",
        which also leaves out the visible lines of any output. UsageError for any other name."""
        if name not in PRESETS:
            raise UsageError(f"unknown policy {name!r}{did_you_mean(name, PRESETS)}: choose from {', '.join(PRESETS)}")
        return cls(delta=name != "default", any_output=name == "max")

    def protecting(self, globs: str) -> Policy:
        """This policy, which also protects files of these globs (with commas between)."""
        more = tuple(glob.strip() for glob in globs.split(",") if glob.strip())
        return replace(self, protected=(*self.protected, *more)) if more else self

    def restoring(self, tokens: str) -> Policy:
        """This policy with a restored section of at most so many tokens; "" changes nothing. UsageError."""
        if not tokens:
            return self
        most = whole_number(tokens)
        if most is None:
            raise UsageError(
                f"READCACHE_RESTORE or --restore {tokens!r} is not a number of tokens (at most {MOST_COUNT:,})"
            )
        return replace(self, restore=replace(self.restore, max_tokens=most))

    def clearing(self, marks: str) -> Policy:
        """This policy with these marks, ABOVE:DOWN_TO in tokens; "" changes nothing. UsageError."""
        if not marks:
            return self
        above, down_to = (whole_number(mark) for mark in (*marks.split(":", 1), "")[:2])
        if above is None or down_to is None:
            raise UsageError(f"READCACHE_CLEAR {marks!r} is not ABOVE:DOWN_TO in tokens, such as 160000:60000")
        return replace(self, clear=Marks(above, down_to))

    def tokens(self, text: str) -> int:
        """Tokens of `text` by `count_tokens`; by `count_by_chars` where that raises, so that counting stops no call."""
        try:
            return int(self.count_tokens(text))
        except Exception:
            return count_by_chars(text)

    def forbids(self, text: str) -> bool:
        """True for a text that a pattern of `never` matches. `shell.never` decides which part of a command they see."""
        return self._never is not None and self._never.search(text) is not None


@dataclass(frozen=True, slots=True)
class Rules:
    """What a session decides by: the user's policy, and the tag of its own markers; and the host that it is in, which
    decides nothing and is noted."""

    policy: Policy
    tag: str
    host: str = ""
