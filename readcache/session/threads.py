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
    try:
        running = asyncio.ensure_future(asyncio.to_thread(call, stop))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            os.write(cancel, b"\0")
            with contextlib.suppress(Exception):
                await running  # a moment: it has been told
            raise
    finally:
        os.close(cancel)
        os.close(stop)
