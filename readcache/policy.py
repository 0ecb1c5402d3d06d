"""What a user can set. Plain frozen values; nothing here acts."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass, field


class Insist(enum.Enum):
    """What a repeat of a request right after an omission gets."""

    SERVE = "serve"  # every byte
    STUB = "stub"  # a marker again, if it would still be true


class Mode(enum.Enum):
    """Whether to act at all."""

    ON = "on"
    ADVISE = "advise"  # never omit; record and report what would have been omitted
    OFF = "off"  # pass everything through, record nothing


@dataclass(frozen=True, slots=True)
class Head:
    """A harness that shows the first `chars` characters of a longer output."""

    chars: int

    def kept(self, text: str) -> tuple[str, ...]:
        """The stretches of `text` that survive, in order."""
        return (text[: self.chars],)


@dataclass(frozen=True, slots=True)
class HeadTail:
    """A harness that shows the first `head` and last `tail` characters of a longer output; mini-swe-agent: 5,000."""

    head: int
    tail: int

    def kept(self, text: str) -> tuple[str, ...]:
        """The stretches of `text` that survive, in order."""
        if len(text) <= self.head + self.tail:
            return (text,)
        return (text[: self.head], text[len(text) - self.tail :])


def count_by_chars(text: str) -> int:
    """Tokens by the usual rule of thumb: four characters each, rounded up."""
    return (len(text) + 3) // 4


# Harnesses that take a command's output as the agent's answer (read in their sources): mini-swe-agent v1 and v2,
# SWE-agent's `submit` and its v1 marker.
SUBMIT_COMMANDS = (
    r"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    r"MINI_SWE_AGENT_FINAL_OUTPUT",
    r"SWE_AGENT_SUBMISSION",
    r"^\s*submit\b",
)

# More than two markers, of which the median has 125. Chosen by replay, see tests/benchmarks/README.md.
MIN_CHARS = 300


@dataclass(frozen=True, slots=True)
class Policy:
    """How a session decides. Sizes are in characters of text unless the name says tokens."""

    min_chars: int = MIN_CHARS
    partial: bool = True
    delta: bool = False
    identical_output: bool = True
    any_output: bool = False
    never: tuple[str, ...] = SUBMIT_COMMANDS
    insist: Insist = Insist.SERVE
    clip: Head | HeadTail | None = None
    horizon_tokens: int | None = None
    protected: tuple[str, ...] = ()
    count_tokens: Callable[[str], int] = count_by_chars
    mode: Mode = Mode.ON
    _never: re.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.never:
            joined = "|".join(f"(?:{pattern})" for pattern in self.never)
            object.__setattr__(self, "_never", re.compile(joined, re.MULTILINE))

    def tokens(self, text: str) -> int:
        """`count_tokens`, or the rule of thumb where that fails: counting must not stop what the harness tells us."""
        try:
            return self.count_tokens(text)
        except Exception:
            return count_by_chars(text)

    def forbids(self, command: str) -> bool:
        """Is `command` one whose output a harness parses?"""
        return self._never is not None and self._never.search(command) is not None


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a restored section may hold. The defaults are Claude Code's published constants."""

    max_files: int = 5
    max_tokens: int = 50_000
    max_tokens_per_file: int = 5_000


@dataclass(frozen=True, slots=True)
class Rules:
    """What a session decides by: the user's policy, and the tag of its own markers."""

    policy: Policy
    tag: str
