"""Results of the tools of `readcache mcp`, as plain data, and cancelled replies."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from readcache import Reply, UsageError
from readcache.serve.mcp.readers import McpCaller

PROGRESS_SECONDS = 1.0  # between two reports that a command is still running

Result = dict[str, Any]
Progress = Callable[[float, float, str], Awaitable[None]]  # (seconds so far, timeout in seconds, text)


async def shown_reply(caller: McpCaller, answer: Awaitable[Reply], *, is_stopped: bool = False) -> Reply:
    """Return the reply. If the client cancels the call in the meantime, no part of the reply counts as shown.

    `is_stopped`: True if cancelling the call also cancels `answer`.
    """
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
    """Report how long a command has run, in seconds, until this task is cancelled. `total`: the command's timeout in
    seconds."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        took = time.monotonic() - began
        await progress(took, total, f"still running after {took:.0f} s")


def account_of(reply: Reply) -> dict[str, Any]:
    """Return the fields of a structured result that describe a reply."""
    told = {"text": reply.text, "outcome": reply.outcome.value, "reason": reply.reason.value}
    return told | {"call_id": reply.call_id, "tokens_saved": reply.tokens_saved}


def mcp_result(texts: Sequence[str], structured: Mapping[str, Any]) -> Result:
    """Return the result of a call: texts for the model, and the same facts as data."""
    return {"content": [{"type": "text", "text": text} for text in texts], "structuredContent": dict(structured)}


def failed_result(text: str) -> Result:
    """Return the result of a call that failed."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
