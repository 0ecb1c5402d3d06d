"""The tools of `readcache mcp`. They return results of `tools/call` as plain data; `schemas` describes the tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from readcache import Budget, ReadcacheError, Reason, Reply, RestorePlan
from readcache.serve.mcp.files import allowed_path
from readcache.serve.mcp.readers import McpCall, McpReaders, Progress
from readcache.serve.mcp.schemas import MOST_LINES, TOOLS

PROGRESS_SECONDS = 1.0  # between two reports that a command is still running

Result = dict[str, Any]


class McpTools:
    """The tools of one server. `root`: the directory in which commands run and relative paths start."""

    def __init__(self, root: str, readers: McpReaders) -> None:
        self.root, self.readers = root, readers

    async def call(
        self, name: str, given: Mapping[str, Any], meta: Mapping[str, Any], roots: Sequence[str], progress: Progress
    ) -> Result:
        """Return the result of one call. An error is a result, too, with its text. `roots`: the directories that the
        client allows; if it names none, it is `root`."""
        if complaint := _complaint_of(name, given):
            return _failed(complaint)
        try:
            with self.readers.call(meta, roots or [self.root], progress) as call:
                tool: Callable[..., Awaitable[Result]] = getattr(self, f"_{name}")
                return await tool(call, **given)
        except ReadcacheError as error:
            return _failed(str(error))
        except Exception as error:
            return _failed(f"{name} failed, which is a bug of readcache: {type(error).__name__}: {error}")

    async def _read(
        self,
        call: McpCall,
        path: str,
        start: int = 1,
        end: int | None = None,
        numbered: bool = False,
        fresh: bool = False,
        max_lines: int = MOST_LINES,
    ) -> Result:
        where, session = allowed_path(path, call.roots, self.root), call.session
        reading = asyncio.ensure_future(
            asyncio.to_thread(
                session.read,
                where,
                start=int(start),  # JSON Schema takes 1.0 for an integer
                end=None if end is None else int(end),
                numbered=numbered,
                fresh=fresh,
                max_lines=int(max_lines),
                call_id=call.call_id,
                batch=call.batch,
                commit=False,
            )
        )
        try:
            reply = await asyncio.shield(reading)
        except asyncio.CancelledError:  # no part of the reply will be shown
            reading.add_done_callback(lambda _: session.reader.forget(call.call_id))
            raise
        if reply.exit_code:
            return _failed(reply.text)
        self.readers.answered(session, reply)
        return _result([reply.text], {**_account_of(reply), "path": where})

    async def _run(self, call: McpCall, command: str, cwd: str = ".", timeout: float = 120) -> Result:
        where = allowed_path(cwd, call.roots, self.root)
        telling = asyncio.ensure_future(_tell_progress(call.progress, timeout))
        try:
            reply = await call.session.arun(
                command, cwd=where, timeout=timeout, call_id=call.call_id, batch=call.batch, commit=False
            )
        finally:
            telling.cancel()
        self.readers.answered(call.session, reply)
        is_late = reply.reason is Reason.TIMED_OUT
        ended = f"Killed after {timeout:g} s." if is_late else f"Exit status: {reply.exit_code}"
        texts = [reply.text, ended if reply.exit_code or not reply.text else ""]
        return _result([text for text in texts if text], {**_account_of(reply), "exit_code": reply.exit_code})

    async def _recall(self, call: McpCall, name: str, first: int = 1, last: int | None = None) -> Result:
        reply = await asyncio.to_thread(call.session.recall, name, int(first), None if last is None else int(last))
        return _result([reply.text], _account_of(reply))

    async def _restore_plan(self, call: McpCall, keep: Sequence[str] = (), **budget: int) -> Result:
        plan = await asyncio.to_thread(call.session.restore_plan, keep=keep, budget=Budget(**budget))
        return _result([plan.render()], plan.to_dict())

    async def _compacted(self, call: McpCall, keep: Sequence[str] = (), restored: object = None) -> Result:
        plan = None if restored is None else RestorePlan.from_dict(restored)
        done = call.session.compacted(keep=keep, restored=plan)
        text = "Lines that are no longer in the conversation are sent again if you request them."
        return _result([text], {"restored_id": done.restored_id or "", "rewrites": done.rewrites})

    async def _stats(self, call: McpCall) -> Result:
        counts = call.session.stats()
        return _result(["\n".join(f"{name}: {count}" for name, count in counts.items())], counts)


def _complaint_of(name: str, given: Mapping[str, Any]) -> str:
    """Return a text about the errors in a call's arguments, or "" if there are none."""
    import jsonschema

    schema = next((tool["inputSchema"] for tool in TOOLS if tool["name"] == name), None)
    if schema is None:
        return f"there is no tool {name!r}: there are {', '.join(tool['name'] for tool in TOOLS)}"
    errors = jsonschema.Draft202012Validator(schema).iter_errors(dict(given))
    return "; ".join(f"{'.'.join(map(str, error.path)) or name}: {error.message}" for error in errors)


async def _tell_progress(progress: Progress, total: float) -> None:
    """Report how long a command has run, in seconds, until this task is cancelled. `total`: the command's timeout in
    seconds."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        took = time.monotonic() - began
        await progress(took, total, f"still running after {took:.0f} s")


def _account_of(reply: Reply) -> dict[str, Any]:
    """Return the fields of a structured result that describe a reply."""
    told = {"text": reply.text, "outcome": reply.outcome.value, "reason": reply.reason.value}
    return told | {"call_id": reply.call_id, "tokens_saved": reply.tokens_saved}


def _result(texts: Sequence[str], structured: Mapping[str, Any]) -> Result:
    """Return the result of a call: texts for the model, and the same facts as data."""
    return {"content": [{"type": "text", "text": text} for text in texts], "structuredContent": dict(structured)}


def _failed(text: str) -> Result:
    """Return the result of a call that failed."""
    return {"content": [{"type": "text", "text": text}], "isError": True}
