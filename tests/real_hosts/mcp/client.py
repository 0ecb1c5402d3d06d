"""The real package's own stdio client, of whatever version, talking to a real `readcache mcp`."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import mcp
import mcp.client.stdio
from mcp import types

NOW = hasattr(mcp, "Client")  # 2.x


class Got(NamedTuple):
    """The result of one call."""

    text: str  # of all its parts
    data: dict[str, Any]  # the structured result
    failed: bool


class Connected:
    """A client that is connected to a server of its own."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def call(self, name: str, *, meta: dict[str, Any] | None = None, progress: Any = None, **given: Any) -> Got:
        """One call of a tool."""
        result = await self.client.call_tool(name, given, progress_callback=progress, meta=meta)
        found = result.model_dump(by_alias=True, mode="json")
        text = "\n".join(part["text"] for part in found["content"])
        return Got(text, found.get("structuredContent") or {}, bool(found.get("isError")))

    async def shown(self, name: str, **given: Any) -> str:
        """The text of one call."""
        return (await self.call(name, **given)).text

    async def cancel(self, running: Any) -> None:
        """Cancels the call that is made in the task `running`."""
        if not NOW:  # its client does not tell the server by itself
            params: Any = {"requestId": self.client._request_id - 1}
            told = types.CancelledNotification(method="notifications/cancelled", params=params)
            await self.client.send_notification(types.ClientNotification(told))
        running.cancel()


@asynccontextmanager
async def connected(
    root: Path, *options: str, roots: Sequence[str] | None = None, mode: str = "auto", **env: str
) -> AsyncIterator[Connected]:
    """A server that is started in `root` with these options; `roots`: the URIs that the client names."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    state = str(root.parent / "state")
    params = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "readcache", "mcp", *options],
        cwd=root,
        env={**kept, "XDG_STATE_HOME": state, "PYTHONSAFEPATH": "1", **env},
    )

    async def name_roots(_: Any) -> Any:
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in roots or ()]})

    answer: Callable[..., Awaitable[Any]] | None = None if roots is None else name_roots
    if NOW:
        client: Any = mcp.Client
        async with client(params, list_roots_callback=answer, mode=mode) as session:
            yield Connected(session)
    else:
        async with (
            mcp.client.stdio.stdio_client(params) as (received, sent),
            mcp.ClientSession(received, sent, list_roots_callback=answer) as session,
        ):
            await session.initialize()
            yield Connected(session)
