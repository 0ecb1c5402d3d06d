"""`readcache mcp`: the tools over stdio, on the official `mcp` package."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
from collections.abc import Callable
from typing import Any

from readcache import Policy, ReadcacheError
from readcache.core.model.plugins import how_to_add
from readcache.serve.mcp.readers import McpReaders
from readcache.serve.mcp.tools import McpTools

END_SECONDS = 0.5  # time to kill commands


def serve_mcp(root: str = ".", *, policy: Policy, **reader: Any) -> int:
    """Serve the client on stdin and stdout until it leaves. Return 0.

    `root`: the directory of a client that names no roots. `reader`: see `McpReaders`. Raise ReadcacheError if the `mcp`
    package is missing.
    """
    try:
        import jsonschema  # noqa: F401  part of the same extra
        import mcp.server.stdio
    except ImportError as error:
        raise ReadcacheError(f"readcache mcp needs the package mcp: {how_to_add('mcp')} ({error})") from None
    from readcache.serve.mcp.versions import make_server

    readers = McpReaders(os.path.abspath(root), policy=policy, **reader)

    async def serve() -> None:
        _stop_on_signals()
        server = make_server(McpTools(os.path.abspath(root), readers))
        async with mcp.server.stdio.stdio_server(*_own_streams(readers.written)) as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    try:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(serve())
    finally:
        readers.close()
    return 0


def _stop_on_signals() -> None:
    """On SIGTERM or SIGINT, kill the running commands, and exit."""
    # The commands are not the client's children, so the client cannot kill them. The thread that reads the client's
    # next line cannot be stopped, so the process exits.
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_later(END_SECONDS, os._exit, 128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)


def _own_streams(written: Callable[[str], None]) -> tuple[Any, Any]:
    """Return the client's streams for the mcp package. Everything else that is printed goes to stderr. `written` is
    called with each text that was written to the client."""
    import anyio

    class Sent(io.TextIOWrapper):
        def write(self, text: str) -> int:
            count = super().write(text)
            self.flush()
            written(text)
            return count

    received = os.fdopen(os.dup(0), encoding="utf-8", errors="replace")
    sent = Sent(os.fdopen(os.dup(1), "wb"), encoding="utf-8")
    os.dup2(2, 1)
    return anyio.wrap_file(received), anyio.wrap_file(sent)
