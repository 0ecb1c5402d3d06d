"""Wraps a harness's own bash tool, whatever it takes and gives, so that its results go through a session.

What the tool takes: a command string, or a dict with "command" (mini-swe-agent's action). What it gives: a string, a
`CompletedProcess`, or a dict with "output" and "returncode" (or "exit_code"). Async tools stay async. Whatever else it
gives, and whatever it raises, goes through untouched.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from readcache.reply import Reply

_STATUS_NAMES = ("returncode", "exit_code")


def wrap(
    bash: Callable[..., Any],
    observe: Callable[..., Reply],
    own_call: Callable[[], AbstractContextManager[None]],
    *,
    call_id: Callable[[], str | None] | None = None,
    on_reply: Callable[[Reply], object] | None = None,
) -> Callable[..., Any]:
    """A callable with `bash`'s signature, whose results `observe` (as `Session.observe`) answers; `own_call()` is
    entered while it runs. Its keyword arguments `cwd` and `call_id` are used where they are given; `call_id` is passed
    on only if `bash` takes it."""
    takes_call_id = _takes(bash, "call_id")

    def begin(action: Any, kwargs: dict[str, Any]) -> _Answer:
        given = kwargs.get("call_id") if takes_call_id else kwargs.pop("call_id", None)
        named = given if given is not None or call_id is None else call_id()
        cwd = kwargs.get("cwd") or (action.get("cwd") if isinstance(action, dict) else None)
        return _Answer(observe, on_reply, action, cwd or None, named if isinstance(named, str) else None)

    async def finish(answer: _Answer, result: Awaitable[Any]) -> Any:
        with own_call():
            awaited = await result
        return answer.of(awaited)

    if inspect.iscoroutinefunction(bash) or inspect.iscoroutinefunction(getattr(bash, "__call__", None)):  # noqa: B004  asks whether calling it gives a coroutine

        @functools.wraps(bash)
        async def call_later(action: Any, *args: Any, **kwargs: Any) -> Any:
            answer = begin(action, kwargs)
            return await finish(answer, bash(action, *args, **kwargs))

        return call_later

    @functools.wraps(bash)
    def call(action: Any, *args: Any, **kwargs: Any) -> Any:
        answer = begin(action, kwargs)
        with own_call():
            result = bash(action, *args, **kwargs)
        return finish(answer, result) if inspect.isawaitable(result) else answer.of(result)

    return call


@dataclass(frozen=True, slots=True)
class _Answer:
    """One call of the tool, to be answered."""

    observe: Callable[..., Reply]
    on_reply: Callable[[Reply], object] | None
    action: Any
    cwd: Any
    call_id: str | None

    def of(self, result: Any) -> Any:
        """The tool's result, in its own shape, with what the reader is to see."""
        if isinstance(result, str):
            return self._judge(result, 0)
        if isinstance(result, subprocess.CompletedProcess):
            return self._completed(result)
        if isinstance(result, dict) and isinstance(result.get("output"), str):
            status = next((result[name] for name in _STATUS_NAMES if name in result), 0)
            return {**result, "output": self._judge(result["output"], status)}
        return result

    def _judge(self, output: str, status: Any) -> str:
        command = self.action.get("command") if isinstance(self.action, dict) else self.action
        if not isinstance(command, str):
            return output
        exit_code = status if isinstance(status, int) else 0
        reply = self.observe(command, output, exit_code=exit_code, cwd=self.cwd, call_id=self.call_id)
        if self.on_reply is not None:
            self.on_reply(reply)
        return reply.text

    def _completed(self, result: Any) -> Any:
        out = result.stdout
        if isinstance(out, bytes):
            text = out.decode("utf-8", "replace")
            shown = self._judge(text, result.returncode)
            out = out if shown == text else shown.encode("utf-8", "replace")
        elif isinstance(out, str):
            out = self._judge(out, result.returncode)
        return subprocess.CompletedProcess(result.args, result.returncode, out, result.stderr)


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)
