"""A call that blocks, awaited: in a thread, and stopped when the task that waits for it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[int], T], *, undo: Callable[[T], object] = bool) -> T:
    """What `call(stop)` gives. `stop` is a file descriptor that can be read from once the call is to end. `undo` takes
    back a result that is lost because the task was cancelled. It ends before the task does, unless the call itself is
    still running."""
    stop, cancel = os.pipe()
    results = list[T]()
    deciding, is_cancelled = threading.Lock(), False

    def run() -> T:
        try:
            result = call(stop)
        finally:
            os.close(stop)  # by the thread alone: the waiting task may be gone before it has looked
        with deciding:
            results.append(result)
            is_lost = is_cancelled
        if is_lost:
            undo(result)
        return result

    try:
        running = asyncio.ensure_future(asyncio.to_thread(run))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            with deciding:
                is_cancelled = True
            for result in results:  # the call ended before the task looked
                undo(result)
            with contextlib.suppress(OSError):  # nobody reads it any more
                os.write(cancel, b"\0")
            with contextlib.suppress(Exception):
                await asyncio.shield(running)  # a moment: it has been told
            raise
    finally:
        os.close(cancel)
