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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from readcache.session import Session

_STATUS_NAMES = ("returncode", "exit_code")


def wrap(session: Session, bash: Callable[..., Any]) -> Callable[..., Any]:
    """A callable with `bash`'s signature; `cwd` and `call_id` keyword arguments, where given, are used (`call_id` is
    passed on only if `bash` takes it)."""
    takes_call_id = _takes(bash, "call_id")

    def prepare(kwargs: dict[str, Any]) -> str | None:
        call_id = kwargs.get("call_id") if takes_call_id else kwargs.pop("call_id", None)
        return call_id if isinstance(call_id, str) else None

    if inspect.iscoroutinefunction(bash) or inspect.iscoroutinefunction(getattr(bash, "__call__", None)):  # noqa: B004  asks whether calling it gives a coroutine

        @functools.wraps(bash)
        async def answer_later(action: Any, *args: Any, **kwargs: Any) -> Any:
            call_id = prepare(kwargs)
            with session._own_call():
                result = await bash(action, *args, **kwargs)
            return _answer(session, action, result, kwargs, call_id)

        return answer_later

    @functools.wraps(bash)
    def answer(action: Any, *args: Any, **kwargs: Any) -> Any:
        call_id = prepare(kwargs)
        with session._own_call():
            result = bash(action, *args, **kwargs)
        if inspect.isawaitable(result):
            return _await(session, action, result, kwargs, call_id)
        return _answer(session, action, result, kwargs, call_id)

    return answer


async def _await(
    session: Session, action: Any, result: Awaitable[Any], kwargs: dict[str, Any], call_id: str | None
) -> Any:
    with session._own_call():
        answered = await result
    return _answer(session, action, answered, kwargs, call_id)


def _answer(session: Session, action: Any, result: Any, kwargs: dict[str, Any], call_id: str | None) -> Any:
    command = action.get("command") if isinstance(action, dict) else action
    if not isinstance(command, str):
        return result
    cwd = kwargs.get("cwd") or (action.get("cwd") if isinstance(action, dict) else None)

    def judge(output: str, status: Any) -> str:
        exit_code = status if isinstance(status, int) else 0
        return session.observe(command, output, exit_code=exit_code, cwd=cwd or None, call_id=call_id).text

    if isinstance(result, str):
        return judge(result, 0)
    if isinstance(result, subprocess.CompletedProcess):
        return _completed(result, judge)
    if isinstance(result, dict) and isinstance(result.get("output"), str):
        status = next((result[name] for name in _STATUS_NAMES if name in result), 0)
        return {**result, "output": judge(result["output"], status)}
    return result


def _completed(result: Any, judge: Callable[[str, Any], str]) -> Any:
    out = result.stdout
    if isinstance(out, bytes):
        text = out.decode("utf-8", "replace")
        shown = judge(text, result.returncode)
        out = out if shown == text else shown.encode("utf-8", "replace")
    elif isinstance(out, str):
        out = judge(out, result.returncode)
    return subprocess.CompletedProcess(result.args, result.returncode, out, result.stderr)


def _takes(function: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)
