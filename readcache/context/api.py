"""What the models' APIs say: that a request was too long, and how many tokens one had."""

from __future__ import annotations

import re
from collections.abc import Mapping

from readcache.messages.messages import as_mapping

# OpenAI, Azure, vLLM, Mistral; Anthropic (two); Gemini; Bedrock; Groq; xAI; llama.cpp; LiteLLM's class. A limit of
# tokens for each minute is something else.
_SAYINGS = re.compile(
    r"context_length_exceeded|maximum context length"
    r"|prompt is too long|exceed context limit"
    r"|exceeds the maximum number of (?:input )?tokens"
    r"|input is too long for requested model"
    r"|reduce the length of the (?:messages|prompt|input)"
    r"|maximum prompt length"
    r"|exceeds? the (?:available )?context (?:size|window|length)"
    r"|context ?window ?(?:exceeded|overflow|limit)",
    re.IGNORECASE,
)


def is_overflow(error: BaseException) -> bool:
    """True if the error, or one that it was raised from, says that the request was longer than the context window."""
    seen: BaseException | None = error
    while seen is not None:
        if _SAYINGS.search(f"{type(seen).__name__}: {seen} {getattr(seen, 'code', '')}"):
            return True
        seen = seen.__cause__
    return False


def prompt_tokens(answer: object) -> int | None:
    """The tokens of the request by the answer's `usage`; None if there is none. OpenAI's chat completions and responses
    count cached tokens among them, Anthropic's messages beside them."""
    usage = answer.get("usage") if isinstance(answer, Mapping) else getattr(answer, "usage", None)
    told = as_mapping(usage) or {}
    if isinstance(prompt := told.get("prompt_tokens"), int):
        return prompt
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [count for name in names if isinstance(count := told.get(name), int)]
    return sum(counts) if counts else None
