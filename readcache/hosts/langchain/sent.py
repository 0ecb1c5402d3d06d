"""Check the messages that a model is really sent. Middleware that is listed after readcache may have changed them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.tracers.context import register_configure_hook


class NotSent(BaseException):
    """A signal that stops a request before it is sent. Not an Exception, because middleware that retries must not catch
    it."""


class _Look(BaseCallbackHandler):  # type: ignore[misc]  # no types where these are checked
    def __init__(self, is_true: Callable[[Sequence[BaseMessage]], bool]) -> None:
        self._is_true = is_true

    def on_chat_model_start(self, _: Any, messages: list[list[BaseMessage]], **__: Any) -> None:
        if not all(map(self._is_true, messages)):
            raise NotSent


_LOOK: ContextVar[_Look | None] = ContextVar("readcache_look", default=None)
register_configure_hook(_LOOK, inheritable=False)


@contextmanager
def sent_if(is_true: Callable[[Sequence[BaseMessage]], bool]) -> Iterator[None]:
    """Inside the block, raise NotSent instead of sending a chat model messages for which `is_true` returns False."""
    token = _LOOK.set(_Look(is_true))
    try:
        yield
    finally:
        _LOOK.reset(token)
