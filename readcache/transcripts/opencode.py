"""OpenCode: the output of `opencode export`, one JSON document with the messages and their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from readcache.transcripts.records import Content, Form, Recording, RequestSent, Turns
from readcache.transcripts.values import count_in, epoch_of, int_in, list_in, object_in

Part = Mapping[str, Any]


def is_opencode(row: Mapping[str, Any]) -> bool:
    """Return True for an export."""
    messages = list_in(row.get("messages"))
    return isinstance(row.get("info"), dict) and any("parts" in object_in(message) for message in messages)


def load_opencode(content: Content) -> Iterator[Recording]:
    """Yield one recording. OpenCode exports a sub-agent's session separately."""
    for _, row in content.objects():
        info = object_in(row.get("info"))
        export = _Export(str(info.get("directory") or "/"))
        export.turns.at(object_in(info.get("time")).get("created"))
        for message in map(object_in, list_in(row.get("messages"))):
            export.message(object_in(message.get("info")), [object_in(part) for part in list_in(message.get("parts"))])
        reader = str(info["id"]) if info.get("parentID") else "main"
        yield export.turns.recording(str(info.get("id") or content.path), "opencode", reader=reader)


FORM = Form("opencode", is_opencode, load_opencode)


class _Export:
    def __init__(self, directory: str) -> None:
        self.turns = Turns()
        self._directory = directory
        self._live: dict[str, float | None] = {}  # call ID -> when its result was pruned, in seconds since the epoch
        self._results: list[Callable[[], None]] = []  # of the current step

    def message(self, info: Part, parts: list[Part]) -> None:
        """Process the next message."""
        began = object_in(info.get("time")).get("created")
        self._prune(epoch_of(began))
        self.turns.at(began)
        self.turns.by(info.get("modelID"))
        directory = str(object_in(info.get("path")).get("cwd") or self._directory)
        for part in parts:
            kind = part.get("type")
            text = len(str(part.get("text") or ""))
            if kind == "compaction":
                self.turns.trim()
                self._live = {}
            elif info.get("role") != "assistant":
                self.turns.type(text)
            elif kind == "tool":
                self._tool(part, directory)
            elif kind == "step-finish":
                self._finish(part.get("tokens"))
            else:
                self.turns.answer(text)
        self._deliver()

    def _tool(self, part: Part, directory: str) -> None:
        state = object_in(part.get("state"))
        given, metadata = object_in(state.get("input")), object_in(state.get("metadata"))
        failed = state.get("status") == "error"
        output = state.get("error") if failed else state.get("output")
        name = str(part.get("callID"))
        if not isinstance(output, str):
            return  # the call never ended
        self.turns.tool(name, str(part.get("tool")), given, directory)
        status, whole = int_in(metadata.get("exit")), not metadata.get("truncated")
        result = partial(self.turns.result, name, output, failed=failed, exit_code=status, complete=whole)
        self._results.append(result)
        self._live[name] = epoch_of(object_in(state.get("time")).get("compacted"))

    def _finish(self, tokens: object) -> None:
        """Record the end of a step: one request, whose results are in the next request. `tokens`: its usage."""
        output = count_in(tokens, "output") + count_in(tokens, "reasoning")
        written, read = count_in(tokens, "cache", "write"), count_in(tokens, "cache", "read")
        self.turns.answer()
        self.turns.pay(RequestSent(count_in(tokens, "input"), written, cache_read=read, output=output))
        self._deliver()

    def _deliver(self) -> None:
        for deliver in self._results:
            deliver()
        self._results = []

    def _prune(self, now: float | None) -> None:
        """Remove the results that OpenCode had pruned by the time `now`, in seconds since the epoch."""
        kept = {name: at for name, at in self._live.items() if at is None or now is None or at > now}
        if len(kept) < len(self._live):
            self._live = kept
            self.turns.trim(frozenset(kept))
