"""The tools of `readcache mcp`. They return results of `tools/call` as plain data; `schemas` describes the tools."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from readcache import Budget, ReadcacheError, Reason, RestorePlan
from readcache.serve.mcp.files import allowed_path
from readcache.serve.mcp.readers import McpCaller, McpReaders
from readcache.serve.mcp.results import (
    Progress,
    Result,
    account_of,
    failed_result,
    mcp_result,
    shown_reply,
    tell_progress,
)


@dataclasses.dataclass(frozen=True, slots=True)
class McpRequest:
    """One call of a tool, in the same form for every version of the protocol."""

    meta: Mapping[str, Any]
    roots: Sequence[str]  # directories that the client allows
    progress: Progress


class McpTools:
    """The tools of one server. `root`: the directory in which commands run and relative paths start."""

    def __init__(self, root: str, readers: McpReaders) -> None:
        self.root, self.readers = root, readers

    async def call(self, name: str, given: Mapping[str, Any], request: McpRequest) -> Result:
        """Return the result of one call. An error is a result, too, with its text."""
        try:
            with self.readers.caller(request.meta) as caller:
                tool: Callable[..., Awaitable[Result]] = getattr(self, f"_{name}")
                return await tool(caller, request, **given)
        except ReadcacheError as error:
            return failed_result(str(error))
        except Exception as error:
            return failed_result(f"{name} failed, which is a bug of readcache: {type(error).__name__}: {error}")

    async def _read(
        self,
        caller: McpCaller,
        request: McpRequest,
        path: str,
        start: int = 1,
        end: int | None = None,
        numbered: bool = False,
        fresh: bool = False,
    ) -> Result:
        where, session = allowed_path(path, request.roots, self.root), caller.session
        reading = asyncio.to_thread(
            session.read,
            where,
            start=int(start),
            end=None if end is None else int(end),
            numbered=numbered,
            fresh=fresh,
            call_id=caller.call_id,
            batch=caller.batch,
            commit=False,
        )
        reply = await shown_reply(caller, reading)
        if reply.exit_code:
            return failed_result(reply.text)
        self.readers.answered(caller, reply)
        return mcp_result([reply.text], {**account_of(reply), "path": where})

    async def _run(
        self, caller: McpCaller, request: McpRequest, command: str, cwd: str = ".", timeout: float = 120
    ) -> Result:
        where, session = allowed_path(cwd, request.roots, self.root), caller.session
        name, batch = caller.call_id, caller.batch
        running = asyncio.ensure_future(
            session.arun(command, cwd=where, timeout=timeout, call_id=name, batch=batch, commit=False)
        )
        telling = asyncio.ensure_future(tell_progress(request.progress, timeout))
        try:
            reply = await shown_reply(caller, running, is_stopped=True)
        finally:
            telling.cancel()
        self.readers.answered(caller, reply)
        ended = (
            f"Killed after {timeout:g} s." if reply.reason is Reason.TIMED_OUT else f"Exit status: {reply.exit_code}"
        )
        texts = [reply.text, ended if reply.exit_code or not reply.text else ""]
        return mcp_result([text for text in texts if text], {**account_of(reply), "exit_code": reply.exit_code})

    async def _restore_plan(self, caller: McpCaller, _: McpRequest, keep: Sequence[str] = (), **budget: int) -> Result:
        plan = await asyncio.to_thread(caller.session.restore_plan, keep=keep, budget=Budget(**budget))
        return mcp_result([plan.render()], plan.to_dict())

    async def _compacted(
        self, caller: McpCaller, _: McpRequest, keep: Sequence[str] = (), restored: object = None
    ) -> Result:
        plan = None if restored is None else RestorePlan.from_dict(restored)
        done = caller.session.compacted(keep=keep, restored=plan)
        text = "Nothing is left out any more because of what is gone."
        return mcp_result([text], {"restored_id": done.restored_id or "", "rewrites": done.rewrites})

    async def _stats(self, caller: McpCaller, _: McpRequest) -> Result:
        counts = caller.session.stats()
        return mcp_result(["\n".join(f"{name}: {count}" for name, count in counts.items())], counts)
