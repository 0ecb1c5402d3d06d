"""Read answers and errors of the models' APIs: if a request was too long, and how many tokens it had."""

from __future__ import annotations

import re
from collections.abc import Mapping

from readcache.core.messages.blocks import as_mapping

# Errors of OpenAI, Azure, vLLM, Mistral; Anthropic (two); Gemini; Bedrock; Groq; xAI; llama.cpp; LiteLLM's class. A
# limit of tokens per minute is a different error, and must not match.
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
    """Return True if the error says that the request was longer than the context window. Check the errors that it was
    raised from (`__cause__`), too."""
    seen: BaseException | None = error
    while seen is not None:
        if _SAYINGS.search(f"{type(seen).__name__}: {seen} {getattr(seen, 'code', '')}"):
            return True
        seen = seen.__cause__
    return False


# OpenAI's chat completions and Gemini report all tokens of a request in one number. So does OpenAI's Responses API:
# its input tokens include the cached ones. Anthropic's messages and Bedrock's Converse count cached tokens separately.
_TOTAL = ("prompt_tokens", "prompt_token_count", "promptTokenCount")
_BESIDE = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    *("inputTokens", "cacheWriteInputTokens", "cacheReadInputTokens"),
)


def prompt_tokens(answer: object) -> int | None:
    """Return the number of tokens in the request, from the `usage` of the model's answer. Return None if the answer has
    none."""
    names = ("usage", "usage_metadata", "usageMetadata")
    found = (answer.get(name) if isinstance(answer, Mapping) else getattr(answer, name, None) for name in names)
    usage = next(filter(None, map(as_mapping, found)), {})
    total = next((count for name in _TOTAL if isinstance(count := usage.get(name), int)), None)
    if total is not None:
        return total
    counts = [count for name in _BESIDE if isinstance(count := usage.get(name), int)]
    return sum(counts) if counts else None
