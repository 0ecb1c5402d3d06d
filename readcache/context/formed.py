"""Make a list acceptable for the APIs: remove broken and empty parts, and alternate the roles if an API requires it.

Read the APIs' answers and errors, too: if a request was too long, and how many tokens it had.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from readcache.core.messages.blocks import CALLS, RESULTS, Raw, as_mapping, blocks_key, typed
from readcache.core.messages.editing import as_blocks, with_blocks
from readcache.core.messages.messages import Kind, Message, normalise_one
from readcache.core.messages.structure import BESIDE_CONTENT, cut_points, is_response, repair_each

_SPEAKERS = ("user", "assistant")
_UNSAID = (Kind.TEXT, Kind.OTHER)  # parts that are empty without a text or the name of a type


def well_formed(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the list repaired and `sendable`; the same list object if it already was. Calls at its end that wait for
    their results stay."""
    out = sendable([message for message in repaired_each(messages) if message is not None])
    is_same = len(out) == len(messages) and all(a is b for a, b in zip(out, messages, strict=True))
    return messages if is_same else out


def repaired_each(messages: Sequence[Message], *, may_wait: bool = True) -> list[Message | None]:
    """Return each message repaired, or None if nothing is left of it. `may_wait`: calls at the end that wait for their
    results stay."""
    waiting = _waiting(messages) if may_wait else ()
    answers = [normalise_one({"role": "tool", "tool_call_id": call_id}) for call_id in waiting]
    left = repair_each([*messages, *answers])[: len(messages)]
    pairs = zip(messages, left, strict=True)
    return [m if raw is m.raw else None if raw is None else m.with_raw(raw) for m, raw in pairs]


def _waiting(messages: Sequence[Message]) -> Iterator[str | None]:
    """Yield the IDs of calls at the end whose results are still to come. Yield nothing if anything except results and
    images follows these calls."""
    last = messages[cut_points(messages)[-1] :]
    made = [part.call_id for message in last for part in message.parts if part.kind is Kind.CALL]
    since = [part for message in last if not is_response(message) for part in message.parts]
    if all(part.kind is Kind.RESULT and part.call_id in made for part in since if part.kind is not Kind.IMAGE):
        yield from (Counter(made) - Counter(part.call_id for part in since)).elements()


def sendable(messages: Sequence[Message], gone: Sequence[Message] = ()) -> list[Message]:
    """Return the list without messages and blocks that say nothing.

    If calls are blocks, as in Anthropic's API, adjacent messages of one speaker become one message, with results first.
    `gone`: removed messages, which also show which API it is.
    """
    left = without_blanks(messages)
    if not shows_blocks((*left, *gone)):
        return left
    out: list[Message] = []
    for message in left:
        raw = as_mapping(message.raw) or {}
        is_further = out and message.role == out[-1].role and message.role in _SPEAKERS
        if is_further and not any(raw.get(key) for key in BESIDE_CONTENT):
            blocks = [*as_blocks(out[-1].raw), *as_blocks(raw)]
            blocks.sort(key=lambda block: _type_of(block) not in RESULTS)
            out[-1] = normalise_one(with_blocks(out[-1].raw, blocks))
        else:
            out.append(message)
    return out


def without_blanks(messages: Iterable[Message]) -> list[Message]:
    """Return the messages without messages and blocks that say nothing."""
    return [message.with_raw(raw) for message in messages if (raw := _without_blanks(message)) is not None]


def shows_blocks(messages: Iterable[Message]) -> bool:
    """Return True if calls or results in these messages are blocks, as in Anthropic's API."""
    blocks = (block for message in messages for block in as_blocks(message.raw))
    return any(_type_of(block) in (*CALLS, *RESULTS) for block in blocks)


def _without_blanks(message: Message) -> Raw | None:
    """Return the message without its empty blocks; None if nothing is left. The result of a call may be empty."""
    raw: Raw = message.raw
    if message.role in (*_SPEAKERS, "system", "developer"):
        if not any(part.text.strip() or part.name or part.kind not in _UNSAID for part in message.parts):
            return None
        given = as_mapping(raw) or {}
        blocks = given.get(blocks_key(given))
        if isinstance(blocks, list) and not all(map(_is_solid, blocks)):
            return with_blocks(given, list(filter(_is_solid, blocks)))
    return raw


def _is_solid(block: Any) -> bool:
    return _type_of(block) != "text" or bool(str((as_mapping(block) or {}).get("text") or "").strip())


def _type_of(block: Any) -> object:
    return typed(as_mapping(block) or {}).get("type")


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
    if usage.get("totalTokens") == usage.get("inputTokens", 0) + usage.get("outputTokens", 0):
        return usage.get("inputTokens")  # a provider that includes cached tokens in these, in Converse's shape
    counts = [count for name in _BESIDE if isinstance(count := usage.get(name), int)]
    return sum(counts) if counts else None
