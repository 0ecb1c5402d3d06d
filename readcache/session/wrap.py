"""Wrap a harness's own tools. The session judges the results of a bash tool, and learns of each write by a write tool.

A bash tool takes a command string, or a dict with "command" (mini-swe-agent's action). It returns a string, a
`CompletedProcess`, or a dict with "output" and "returncode" (or "exit_code"). Async tools stay async. Any other result
and any exception go through unchanged.
"""

from __future__ import annotations

import copy
import functools
import inspect
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from readcache.core.model.call import BASH
from readcache.core.model.errors import UsageError
from readcache.core.model.reply import Reason, Reply
from readcache.core.model.tool_call import AskedCommand, ToolCall

_STATUS_NAMES = ("returncode", "exit_code")
_COMMAND_NAMES = ("command", "action", "cmd")

OwnCall = Callable[[], AbstractContextManager[None]]  # entered while the tool runs
Answered = Callable[[Any], Any]  # converts the tool's result to the result for the reader
# The context around one call, made from the call's positional and keyword arguments.
Around = Callable[[tuple[Any, ...], dict[str, Any]], AbstractContextManager[Answered]]


def wrap(
    bash: Callable[..., Any],
    answer: Callable[..., Reply],
    calls_so_far: Callable[[], int],
    own_call: OwnCall,
    call_id: Callable[[], str | None] | None,
    on_reply: Callable[[Reply], object] | None,
) -> Callable[..., Any]:
    """Return a callable with `bash`'s signature, called as `bash` is, by position or by keyword. It uses the arguments
    `cwd`, `call_id` and `batch` if they are given, and passes on the last two only if `bash` takes them.

    `answer` judges a call: `Session._answer_command`. `calls_so_far` is called before the tool runs: later calls are
    not sources for this one. `call_id` returns the harness's ID for the current call. `on_reply` is called with each
    reply."""
    parameters = _Parameters(bash)

    @contextmanager
    def around(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Answered]:
        given = parameters.take(args, kwargs, "call_id", "batch")
        action = parameters.command(args, given)
        cwd = given.get("cwd") or (action.get("cwd") if isinstance(action, dict) else None)
        named, batch = given.get("call_id"), given.get("batch")
        if named is None and call_id is not None:
            named = _asked(call_id)
        command = action.get("command") if isinstance(action, dict) else action
        batch = "" if batch is None else str(batch)
        started = calls_so_far()

        def judge(output: str, status: Any, skip_reason: Reason | None = None) -> str:
            if not isinstance(command, str):
                return output
            exit_code = status if isinstance(status, int) else None
            call = ToolCall(named, BASH, None, output, batch, exit_code=exit_code, cwd=cwd or None)
            reply = answer(call, AskedCommand(command), started, skip_reason=skip_reason)
            if on_reply is not None:
                _asked(partial(on_reply, reply))
            return reply.text

        with own_call():
            yield partial(_answered, judge)

    return _wrapped(bash, around)


def wrap_write(
    edit: Callable[..., Any], path: str, wrote: Callable[..., None], own_call: OwnCall
) -> Callable[..., Any]:
    """Return a callable with `edit`'s signature that calls `wrote` with the argument named `path`. It does so also if
    `edit` raises, because a partial write is a write. Raise UsageError if `edit` has no such parameter."""
    parameters = _Parameters(edit)
    if not parameters.has(path):
        name = getattr(edit, "__name__", type(edit).__name__)
        raise UsageError(f"{name}() has no parameter {path!r}: name the one that gives the path, wrap_write(…, path=…)")

    @contextmanager
    def around(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Answered]:
        given = parameters.take(args, kwargs, "call_id")
        try:
            with own_call():
                yield lambda result: result
        finally:
            _asked(partial(wrote, given.get(path), call_id=given.get("call_id")))

    return _wrapped(edit, around)


def _wrapped(tool: Callable[..., Any], around: Around) -> Callable[..., Any]:
    """Return `tool`, sync or async, with the context `around` open during each call, until its result is there."""

    def call_now(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as running:
            answered = running.enter_context(around(args, kwargs))
            result = tool(*args, **kwargs)
            if inspect.isawaitable(result):
                return finish(running.pop_all(), result, answered)
        return answered(result)

    async def finish(running: ExitStack, result: Awaitable[Any], answered: Answered) -> Any:
        with running:
            awaited = await result
        return answered(awaited)

    async def call_later(*args: Any, **kwargs: Any) -> Any:
        return await call_now(*args, **kwargs)

    is_async = inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None))  # noqa: B004  asks whether calling it gives a coroutine
    return functools.wraps(tool)(call_later if is_async else call_now)


class _Parameters:
    """The names of a tool's parameters."""

    def __init__(self, tool: Callable[..., Any]) -> None:
        try:
            parameters = tuple(inspect.signature(tool).parameters.values())
        except (TypeError, ValueError):  # a builtin
            parameters = ()
        self._takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self._names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]

    def has(self, name: str) -> bool:
        """Return True if the tool accepts an argument of this name."""
        return self._takes_any or name in self._names

    def take(self, args: tuple[Any, ...], kwargs: dict[str, Any], *ours: str) -> dict[str, Any]:
        """Return the arguments by name. Remove from `kwargs` each name in `ours` that the tool does not accept."""
        given = dict(zip(self._names, args, strict=False)) | kwargs
        for name in ours:
            if not self.has(name):
                kwargs.pop(name, None)
        return given

    def command(self, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Return the argument with the command: the argument with one of the usual names, otherwise the first one.
        Return None if it is not given."""
        if (name := next((name for name in _COMMAND_NAMES if name in self._names), None)) is not None:
            return given.get(name)
        names = (*self._names[:1], *_COMMAND_NAMES)
        return args[0] if args else next((given[name] for name in names if name in given), None)


def _answered(judge: Callable[..., str], result: Any) -> Any:
    """Put the text that the reader sees into the tool's result, and keep the result's shape. Pass a result without text
    through, and count it."""
    text, status = result, None
    if isinstance(result, dict):
        text, status = result.get("output"), next((result[name] for name in _STATUS_NAMES if name in result), None)
    elif isinstance(result, subprocess.CompletedProcess):
        text, status = _decoded(result.stdout), result.returncode
    if not isinstance(text, str):
        judge("", status, Reason.NOT_TEXT)
        return result
    shown = judge(text, status)
    if shown == text:
        return result
    if isinstance(result, str):
        return shown
    answered: Any = copy.copy(result)  # keeps the result's class
    if isinstance(result, dict):
        answered["output"] = shown
    else:
        answered.stdout = shown.encode() if isinstance(result.stdout, bytes) else shown
    return answered


def _decoded(output: Any) -> Any:
    """Return the output as text, or None for bytes that are not UTF-8. Different bytes could be decoded to the same
    text, so such texts cannot be compared."""
    try:
        return output.decode() if isinstance(output, bytes) else output
    except UnicodeDecodeError:
        return None


def _asked(callback: Callable[[], Any]) -> Any:
    """Return the result of the call, or None if it raises: an error here must not cost the tool's output."""
    try:
        return callback()
    except Exception:
        import logging  # takes 6 ms, and nothing else in a session needs it

        logging.getLogger(__name__).warning("what a wrapped tool calls raised", exc_info=True)
        return None
