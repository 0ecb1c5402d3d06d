"""Finds what others do to the files that the agent has seen, while its session watches. No omission depends on it, and
a failure here costs the agent nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from readcache.model.call import Call
from readcache.model.errors import UsageError
from readcache.model.reply import Reason
from readcache.model.view import View

if TYPE_CHECKING:
    from readcache.disk.changes import Change, SeenFiles


class Others:
    """The watch of one session. While `lock` is held, the result of `view` does not change; `fail(call_id, reason,
    error)` counts a failure of ours."""

    def __init__(
        self,
        lock: AbstractContextManager[object],
        view: Callable[[], View],
        fail: Callable[[str, Reason, BaseException], None],
    ) -> None:
        self._lock, self._view, self._fail = lock, view, fail
        self._seen: SeenFiles | None = None  # while the watch lasts

    @contextlib.contextmanager
    def watch(self, view: View, *, local: bool) -> Iterator[SeenFiles]:
        """See `Session.watch`. `local`: the files of the view are on this machine."""
        from readcache.disk.changes import SeenFiles

        outer = self._seen
        if outer is not None:
            yield outer
            return
        with contextlib.closing(SeenFiles()) as seen:
            with self._lock:  # no call comes between
                seen.begin(view, local=local)
                self._seen = seen
            try:
                yield seen
            finally:
                self._seen = None

    def changes(self) -> list[Change]:
        """See `Session.changes`."""
        if self._seen is None:
            raise UsageError("changes() works only while watching: call it inside `with session.watch():`")
        return self._seen.changes()

    def own_call(self) -> AbstractContextManager[None]:
        """While a command of the agent runs, what changes is its own doing."""
        return contextlib.nullcontext() if self._seen is None else self._seen.own_call()

    def saw(self, call: Call, *, local: bool) -> None:
        """The agent saw what the call printed."""
        if self._seen is not None:
            self._tell(call.call_id, lambda seen, view: seen.saw(view, call, local=local))

    def wrote(self, key: str, call_id: str, *, local: bool) -> None:
        """The agent's own tool wrote the file."""
        self._tell(call_id, lambda seen, view: seen.wrote(view, key, call_id, local=local))

    def _tell(self, call_id: str, tell: Callable[[SeenFiles, View], None]) -> None:
        if self._seen is None:
            return
        try:
            with self._lock:  # no fold happens meanwhile
                tell(self._seen, self._view())
        except Exception as error:  # a bug of ours must not cost the agent its output
            self._fail(call_id, Reason.INTERNAL_ERROR, error)
