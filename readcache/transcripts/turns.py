"""A reader's conversation while a loader reads it: requests, calls that wait for their results, removals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from readcache.core.model.call import Frame
from readcache.core.model.tool_call import ToolCall
from readcache.transcripts.records import HistoryRemoval, Item, Recording, RequestSent
from readcache.transcripts.tools import understood
from readcache.transcripts.values import epoch_of, said_in


class Turns:
    """A recording under construction, from a transcript in the order of the conversation: an answer of the model, then
    the results of its calls."""

    def __init__(self) -> None:
        self.first_call = ""
        self.model = ""
        self.since: float | None = None
        self._now: float | None = None
        self._items: list[Item] = []
        self._waiting: dict[str, ToolCall] = {}
        self._request: int | None = None  # index of the newest request, until its answer ends
        self._unpaid: int | None = None  # index of the newest request, until its usage is known
        self._typed = self._count = 0

    def at(self, time: object) -> None:
        """Set the current time, in any form that `epoch_of` reads. The first time is the start of the conversation."""
        now = epoch_of(time)
        self._now = self._now if now is None else now
        self.since = now if self.since is None else self.since

    def by(self, model: object) -> None:
        """Record the name of the model. The first name counts."""
        self.model = self.model or (model if isinstance(model, str) else "")

    def type(self, chars: int) -> None:
        """Record a message of the user or the host. `chars`: its length in characters."""
        self._typed += chars
        self._request = None

    def answer(self, chars: int = 0) -> None:
        """Record text of the model. `chars`: its length in characters.

        The first text after a result or a user message starts the answer to a new request.
        """
        if self._request is None:
            self._request = self._unpaid = len(self._items)
            self._count += 1
            self._items.append(RequestSent(added=self._typed))
            self._typed = 0
        one = self._items[self._request]
        if chars and isinstance(one, RequestSent):
            self._items[self._request] = replace(one, answer=one.answer + chars)

    def pay(self, usage: RequestSent) -> None:
        """Record the tokens of the newest request, unless they are already known."""
        one = None if self._unpaid is None else self._items[self._unpaid]
        if self._unpaid is not None and isinstance(one, RequestSent):
            self._items[self._unpaid] = replace(usage, added=one.added, answer=one.answer)
        self._unpaid = None

    def tool(self, call_id: str, name: str, given: Mapping[str, Any], cwd: str, said: str | None = None) -> None:
        """Record a tool call of the model.

        `cwd`: the directory for commands that name none. `said`: the text that the agent wrote, if the arguments do not
        contain it verbatim.
        """
        said = said_in(given) if said is None else said
        self.answer(len(said))
        self.first_call = self.first_call or call_id
        self._waiting[call_id] = ToolCall(call_id, name, given, "", f"answer-{self._count}", cwd=cwd, said=said)

    def result(
        self,
        call_id: str,
        output: str,
        *,
        failed: bool = False,
        exit_code: int | None = 0,
        complete: bool = True,
        frame: Frame | None = None,
    ) -> None:
        """Record the result of a call. Ignore the result of an unknown call.

        `exit_code`: None if it is not known. `complete`: False if the output was truncated. `frame`: the host's text
        around the output.
        """
        if call_id in self._waiting:
            call = replace(self._waiting.pop(call_id), output=output, is_error=failed, at=self._now)
            call = replace(call, exit_code=exit_code, complete=complete, frame=frame)
            self._items.append(understood(call))
        self._request = None

    def trim(self, kept: frozenset[str] = frozenset(), *, compacts: bool = True) -> None:
        """Record that the host removed all calls except `kept`. `compacts`: as for `HistoryRemoval`."""
        self._items.append(HistoryRemoval(kept, compacts=compacts))
        self._request = None

    def recording(self, name: str, form: str, *, agent: str = "", reader: str = "main") -> Recording:
        """Return the whole recording, without the requests that have no usage."""
        items = tuple(item for item in self._items if not isinstance(item, RequestSent) or item.prompt)
        return Recording(name, form, items, reader, agent or form, self.since, self.first_call, self.model)

    @property
    def waiting(self) -> list[str]:
        """The IDs of the calls that have no result yet, oldest first."""
        return list(self._waiting)
