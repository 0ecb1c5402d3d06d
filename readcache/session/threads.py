"""Await a call that blocks: run it in a thread, and stop it when the task that waits for it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[threading.Event], T], *, undo: Callable[[T], object] = bool) -> T:
    """Return the result of `call(stop)`. `stop` is set when the call must end. `undo` reverts a result that is lost
    because the task was cancelled. The call ends before the task does, unless the task is cancelled again."""
    stop, deciding, results = threading.Event(), threading.Lock(), list[T]()

    def run() -> T:
        result = call(stop)
        with deciding:
            results.append(result)
            is_lost = stop.is_set()
        if is_lost:
            undo(result)
        return result

    running = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        with deciding:
            stop.set()
            ended = list(results)  # a result from before `stop` was set: `run` does not undo it
        for result in ended:
            undo(result)
        with contextlib.suppress(Exception):
            await asyncio.shield(running)  # a short wait, because `stop` is set
        raise
