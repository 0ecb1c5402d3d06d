"""Count tokens. Nothing else in readcache decides how many tokens a text or a conversation has.

A text is counted by its characters, because the newest tokenizers are not public. Each family of models has a fixed
number of characters per token, so that two processes, a replay and a check give one judgement. The size of a whole
conversation is the provider's own count, if that is known: see `ConversationTokens`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from types import MappingProxyType
from typing import NamedTuple


class Family(NamedTuple):
    """Models with one tokenizer. `chars_per_token`: the median over recorded turns, measured on `date`."""

    name: str
    chars_per_token: float
    turns: int
    date: str


# From transcripts of 15 public repositories: turns that added mostly one large result. Their new characters were
# divided by the growth of the provider's count.
OLDER_CLAUDE = Family("Claude to 4.6", 2.8, 4_140, "2026-11-24")
NEWER_CLAUDE = Family("Claude 4.7 and newer", 2.0, 574, "2026-11-24")
GPT = Family("GPT-5 and newer", 3.3, 1_829, "2026-11-24")
GEMINI = Family("Gemini", 2.9, 36, "2026-11-24")
UNKNOWN = Family("an unknown model", 3.0, 0, "2026-11-24")
_NEWER = (4, 7)  # the first Claude with the newer tokenizer
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:-(\d{1,2}))?(?!\d)")  # its version may come after the kind of model
_OTHERS = ((re.compile(r"gpt-[5-9]"), GPT), (re.compile(r"gemini"), GEMINI))


class HostTokens(NamedTuple):
    """The facts about a host that its messages do not show.

    `instructions`: tokens of the instructions and the tools that it sends before the conversation, the median of first
    requests. `model`: the family of its usual models; "" if it has none.
    """

    instructions: int
    model: str = ""


# Measured on 2026-11-24, in the same transcripts.
HOSTS: Mapping[str, HostTokens] = MappingProxyType(
    {
        "claude-code": HostTokens(39_000, "claude"),
        "codex": HostTokens(20_000, "gpt-5"),
        "gemini": HostTokens(19_500, "gemini"),
        "opencode": HostTokens(36_000),
        "pi": HostTokens(3_300),
    }
)

LEAST_GROWN = 4_000  # characters that a turn must add to be measured, because hosts add text that nobody records
LEAST_SHARE = 0.5  # of our count; some gateways report only the tokens that were not cached
LEAST_TURNS = 3  # measured turns before their median counts


def family_of(model: str) -> Family:
    """Return the family of a model by its name, which may have a provider before it and a version after it."""
    name = model.lower().replace(".", "-")
    if "claude" in name:
        version = _CLAUDE.search(name)
        is_newer = version is not None and (int(version[1]), int(version[2] or 0)) >= _NEWER
        return NEWER_CLAUDE if is_newer else OLDER_CLAUDE
    return next((family for pattern, family in _OTHERS if pattern.search(name)), UNKNOWN)


def chars_per_token(model: str, host: str = "") -> float:
    """Return how many characters make a token of this model. `model`: its name; "" for the usual models of `host`."""
    return family_of(model or usual_model(host)).chars_per_token


def instructions_of(host: str, otherwise: int = 0) -> int:
    """Return the tokens that this host sends before the conversation. `otherwise`: if nobody measured them, or if the
    host gives readcache its whole message list."""
    return HOSTS[host].instructions if host in HOSTS else otherwise


def usual_model(host: str) -> str:
    """Return the family of this host's usual models, as a name for `chars_per_token`; "" if it has none."""
    return HOSTS[host].model if host in HOSTS else ""


@dataclass(frozen=True, slots=True)
class CountByChars:
    """A counter of tokens, which divides the characters of a text and rounds up."""

    chars_per_token: float = UNKNOWN.chars_per_token

    def __call__(self, text: str) -> int:
        return self.of_chars(len(text))

    def of_chars(self, chars: int) -> int:
        """Return the tokens of a text of this many characters."""
        return math.ceil(round(chars / self.chars_per_token, 6))  # 84 / 2.8 is a little more than 30 in floats


count_by_chars = CountByChars()


class _Request(NamedTuple):
    prompt: int  # tokens by the provider
    counted: float  # the same text, by our count


@dataclass(slots=True)
class ConversationTokens:
    """The size of one conversation, in tokens.

    It is the provider's count of the last request, and our count of what is new since then. Our count is corrected by
    the median over the turns that added enough text to be measured. Until the first request is known, it is our count.
    `least`: tokens that a turn must add by our count to be measured.
    """

    least: float
    ratio: float = 1.0
    """Tokens by the provider for one token by our count. 1 until enough turns were measured."""
    _last: _Request | None = None
    _ratios: list[float] = field(default_factory=list)
    _asked: float | None = None  # our count of the newest request
    _answer: str = ""  # the newest recorded answer

    @property
    def is_known(self) -> bool:
        """True if the provider counted a request."""
        return self._last is not None

    def of(self, counted: float) -> float:
        """Return the tokens of the conversation. `counted`: our count of all its texts."""
        if self._last is None:
            return counted
        return self._last.prompt + (counted - self._last.counted) * self.ratio

    def sent(self, prompt: int, counted: float) -> None:
        """Record the provider's count of a request. `counted`: our count of the same texts."""
        last, self._last = self._last, _Request(prompt, counted)
        if last is not None and counted - last.counted >= self.least and prompt > last.prompt:
            self._ratios.append((prompt - last.prompt) / (counted - last.counted))
            self.ratio = median(self._ratios) if len(self._ratios) >= LEAST_TURNS else 1.0

    def asked(self, counted: float) -> None:
        """Record a request whose size the provider may tell later. `counted`: our count of its texts."""
        self._asked = counted

    def answered(self, prompt: int, answer: str = "") -> None:
        """Record the provider's count of the newest request; 0 if it is unknown. A count that is much too low has no
        effect. `answer`: the name of its answer, if the host keeps answers and may show the same one again."""
        if answer and answer == self._answer:
            return
        self._answer = answer or self._answer
        if self._asked is not None and prompt > LEAST_SHARE * self._asked:
            self.sent(prompt, self._asked)

    def restart(self, counted: float | None = None) -> None:
        """Forget the measured turns, because the conversation was compacted. `counted`: our count of what is left. If
        it is None, the next request is not known to continue the conversation."""
        left = None if counted is None or self._last is None else _Request(max(0, round(self.of(counted))), counted)
        self._last, self.ratio = left, 1.0
        self._ratios.clear()
