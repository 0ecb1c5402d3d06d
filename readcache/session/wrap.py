"""Wraps a harness's own tools: a bash tool, whatever it takes and gives, so that its results go through a session; a
write tool, so that the session is told of each write.

What a bash tool takes: a command string, or a dict with "command" (mini-swe-agent's action). What it gives: a string, a
`CompletedProcess`, or a dict with "output" and "returncode" (or "exit_code"). Async tools stay async. Whatever else it
gives, and whatever it raises, goes through untouched.
"""

from __future__ import annotations

import copy
import functools
import inspect
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from readcache.model.errors import UsageError
from readcache.model.reply import Reason, Reply

_STATUS_NAMES = ("returncode", "exit_code")
_COMMAND_NAMES = ("command", "action", "cmd")

OwnCall = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What stands around a harness's tool."""

    answer: Callable[..., Reply]  # judges a result, as `Session.observe` does
    calls_so_far: Callable[[], int]  # asked before the tool runs: later calls are not sources for this one
    own_call: OwnCall  # entered while the tool runs
    call_id: Callable[[], str | None] | None = None  # gives the harness's id for the call under way
    on_reply: Callable[[Reply], object] | None = None  # is told each reply


def wrap(bash: Callable[..., Any], around: Wrapped) -> Callable[..., Any]:
    """A callable with `bash`'s signature, called as `bash` is, by position or by keyword. The arguments `cwd`,
    `call_id` and `batch` are used where they are given; the last two are passed on only if `bash` takes them."""
    arguments = _Arguments(bash)

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Answer:
        given = arguments.ours(args, kwargs, "call_id")
        named = given if given is not None or around.call_id is None else _asked(around.call_id)
        batch = arguments.ours(args, kwargs, "batch")
        action = arguments.command(args, kwargs)
        cwd = arguments.named(args, kwargs, "cwd") or (action.get("cwd") if isinstance(action, dict) else None)
        call_id = None if named is None else str(named)
        return _Answer(around, action, cwd or None, call_id, batch, around.calls_so_far())

    return _wrapped(bash, begin, around.own_call)


def wrap_write(
    edit: Callable[..., Any],
    path: str,
    wrote: Callable[..., None],
    own_call: OwnCall,
) -> Callable[..., Any]:
    """A callable with `edit`'s signature that calls `wrote` with the argument named `path`, also if `edit` raises:
    half a write is a write. Raises UsageError if `edit` has no such parameter."""
    arguments = _Arguments(edit)
    if not arguments.takes(path):
        name = getattr(edit, "__name__", type(edit).__name__)
        raise UsageError(f"{name}() has no parameter {path!r}: name the one that gives the path, wrap_write(…, path=…)")

    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Write:
        call_id = arguments.ours(args, kwargs, "call_id")
        named = arguments.named(args, kwargs, path)
        return _Write(partial(_asked, partial(wrote, named, call_id=call_id)))

    return _wrapped(edit, begin, own_call)


def _wrapped(
    tool: Callable[..., Any],
    begin: Callable[[tuple[Any, ...], dict[str, Any]], _Answer | _Write],
    own_call: OwnCall,
) -> Callable[..., Any]:
    """`tool`, sync or async, with what `begin` gives for each call told how that ended."""

    async def finish(call: _Answer | _Write, result: Awaitable[Any]) -> Any:
        try:
            with own_call():
                awaited = await result
        except BaseException:
            call.failed()
            raise
        return call.of(awaited)

    if inspect.iscoroutinefunction(tool) or inspect.iscoroutinefunction(getattr(tool, "__call__", None)):  # noqa: B004  asks whether calling it gives a coroutine

        @functools.wraps(tool)
        async def call_later(*args: Any, **kwargs: Any) -> Any:
            call = begin(args, kwargs)
            return await finish(call, tool(*args, **kwargs))

        return call_later

    @functools.wraps(tool)
    def call_now(*args: Any, **kwargs: Any) -> Any:
        call = begin(args, kwargs)
        try:
            with own_call():
                result = tool(*args, **kwargs)
        except BaseException:
            call.failed()
            raise
        return finish(call, result) if inspect.isawaitable(result) else call.of(result)

    return call_now


class _Arguments:
    """What a tool's parameters are called."""

    def __init__(self, tool: Callable[..., Any]) -> None:
        try:
            parameters = tuple(inspect.signature(tool).parameters.values())
        except (TypeError, ValueError):  # a builtin
            parameters = ()
        self._takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        self._names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]

    def takes(self, name: str) -> bool:
        """True if the tool can be given an argument of this name."""
        return self._takes_any or name in self._names

    def ours(self, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
        """The argument of this name. It is taken out of `kwargs` if the tool cannot be given it."""
        given = self.named(args, kwargs, name)
        if not self.takes(name):
            kwargs.pop(name, None)
        return given

    def command(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The argument with the command, by its usual names, or else the first; None when it is not given."""
        if (name := next((name for name in _COMMAND_NAMES if name in self._names), None)) is not None:
            return self.named(args, kwargs, name)
        names = (*self._names[:1], *_COMMAND_NAMES)
        return args[0] if args else next((kwargs[name] for name in names if name in kwargs), None)

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
        """The argument of this name, by position or by keyword; None when it is not given."""
        if name in kwargs or name not in self._names:
            return kwargs.get(name)
        at = self._names.index(name)
        return args[at] if at < len(args) else None


@dataclass(frozen=True, slots=True)
class _Answer:
    """One call of the tool, to be answered."""

    around: Wrapped
    action: Any
    cwd: Any
    call_id: str | None
    batch: Any
    started: int

    def failed(self) -> None:
        """The tool raised: it showed nothing."""

    def of(self, result: Any) -> Any:
        """The tool's result, in its own shape, with what the reader is to see. What is no text is passed on as it is,
        and counted."""
        if isinstance(result, str):
            return self._judge(result, None)
        if isinstance(result, subprocess.CompletedProcess):
            return self._completed(result)
        if isinstance(result, dict) and isinstance(result.get("output"), str):
            status = next((result[name] for name in _STATUS_NAMES if name in result), None)
            shown = self._judge(result["output"], status)
            if shown != result["output"]:
                result = copy.copy(result)  # of its own class
                result["output"] = shown
            return result
        self._judge("", 0, Reason.NOT_TEXT)
        return result

    def _judge(self, output: str, status: Any, trouble: Reason | None = None) -> str:
        command = self.action.get("command") if isinstance(self.action, dict) else self.action
        if not isinstance(command, str):
            return output
        exit_code = status if isinstance(status, int) else None
        reply = self.around.answer(
            command,
            output,
            exit_code=exit_code,
            cwd=self.cwd,
            call_id=self.call_id,
            batch=None if self.batch is None else str(self.batch),
            started=self.started,
            trouble=trouble,
        )
        if self.around.on_reply is not None:
            _asked(partial(self.around.on_reply, reply))
        return reply.text

    def _completed(self, result: Any) -> Any:
        """A copy of the result, of the same class, if something is omitted."""
        out = result.stdout
        try:
            text = out.decode() if isinstance(out, bytes) else out
        except UnicodeDecodeError:  # two texts that decode to one are not known to be equal
            text = None
        if not isinstance(text, str):
            self._judge("", result.returncode, Reason.NOT_TEXT)
            return result
        shown = self._judge(text, result.returncode)
        if shown == text:
            return result
        answered = copy.copy(result)
        answered.stdout = shown.encode() if isinstance(out, bytes) else shown
        return answered


@dataclass(frozen=True, slots=True)
class _Write:
    """One call of a tool that writes a file."""

    tell: Callable[[], None]

    def failed(self) -> None:
        """The tool raised: it may have written a part."""
        self.tell()

    def of(self, result: Any) -> Any:
        """The tool's result, as it is."""
        self.tell()
        return result


def _asked(callback: Callable[[], Any]) -> Any:
    """What the call gives; None if it raises, since that must not cost the tool's output."""
    try:
        return callback()
    except Exception:
        import logging  # 6 ms, which no other part of a session needs

        logging.getLogger(__name__).warning("what a wrapped tool calls raised", exc_info=True)
        return None
