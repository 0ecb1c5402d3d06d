"""Results of the tools of `readcache mcp`, as plain data, and cancelled replies."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from readcache import Reply, UsageError
from readcache.serve.mcp.readers import McpCaller

PROGRESS_SECONDS = 1.0  # between two notes that a command is still at work

Result = dict[str, Any]
Progress = Callable[[float, float, str], Awaitable[None]]  # told (seconds so far, of how many, words)


async def shown_reply(caller: McpCaller, answer: Awaitable[Reply], *, is_stopped: bool = False) -> Reply:
    """The reply. If the client cancels the call meanwhile, nothing of it counts as shown."""
    running = asyncio.ensure_future(answer)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        running.add_done_callback(lambda _: _forget(caller))
        if is_stopped:
            running.cancel()
        raise


def _forget(caller: McpCaller) -> None:
    with contextlib.suppress(UsageError):  # it was never logged
        caller.session.settle(caller.call_id, "")


async def tell_progress(progress: Progress, total: float) -> None:
    """Tells how long a command has run, until it is cancelled."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        took = time.monotonic() - began
        await progress(took, total, f"still running after {took:.0f} s")


def account_of(reply: Reply) -> dict[str, Any]:
    """What a structured result says of a reply."""
    told = {"text": reply.text, "outcome": reply.outcome.value, "reason": reply.reason.value}
    return told | {"call_id": reply.call_id, "tokens_saved": reply.tokens_saved}


def mcp_result(texts: Sequence[str], structured: Mapping[str, Any]) -> Result:
    """The result of a call: texts for the model, and the same as data."""
    return {"content": [{"type": "text", "text": text} for text in texts], "structuredContent": dict(structured)}


def failed_result(text: str) -> Result:
    """The result of a call that could not be done."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
