"""A call that blocks, awaited: in a thread, and stopped when the task that waits for it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[int], T]) -> T:
    """What `call(stop)` gives. `stop` is a file descriptor that can be read from once the call is to end."""
    stop, cancel = os.pipe()

    def run() -> T:
        try:
            return call(stop)
        finally:
            os.close(stop)  # by the thread alone: who waits may be gone before it has looked

    try:
        running = asyncio.ensure_future(asyncio.to_thread(run))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            os.write(cancel, b"\0")
            with contextlib.suppress(Exception):
                await asyncio.shield(running)  # a moment: it has been told
            raise
    finally:
        os.close(cancel)
