"""How providers say that a request was too long for their model."""

from __future__ import annotations

import re

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
    """Does the error, or one that it was raised from, say that the request was longer than the context window?"""
    seen: BaseException | None = error
    while seen is not None:
        if _SAYINGS.search(f"{type(seen).__name__}: {seen} {getattr(seen, 'code', '')}"):
            return True
        seen = seen.__cause__
    return False
