"""What a loader makes of a transcript, for tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from readcache import Policy
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.replay_totals import ReplayTotals
from readcache.report.replay.replayer import replay_recording
from readcache.transcripts.files import Found, read_content, units_of
from readcache.transcripts.formats import recordings_in
from readcache.transcripts.records import HistoryRemoval, Recording, RequestSent

DATA = Path(__file__).parent / "data"
PRESETS = {name: Policy.named(name) for name in ("default", "delta", "max")}


def load(path: Path) -> list[Recording]:
    """The recordings of a file, or of a directory of events."""
    found = Found(str(path), True, 1)
    return [recording for unit in units_of(found) for recording in recordings_in(read_content(unit))]


def load_rows(directory: Path, rows: Sequence[Any]) -> list[Recording]:
    """Of these objects, one a line."""
    path = directory / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return load(path)


def load_document(directory: Path, value: Any) -> list[Recording]:
    """Of one JSON document."""
    path = directory / "document"
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
    return load(path)


def calls(recording: Recording) -> list[ToolCall]:
    """Its calls."""
    return [item for item in recording.items if isinstance(item, ToolCall)]


def removals(recording: Recording) -> list[HistoryRemoval]:
    """What left the conversation."""
    return [item for item in recording.items if isinstance(item, HistoryRemoval)]


def requests(recording: Recording) -> list[RequestSent]:
    """What the provider billed."""
    return [item for item in recording.items if isinstance(item, RequestSent)]


def kinds(recording: Recording) -> Counter[str]:
    """How many calls asked for what."""
    return Counter(_kind(call) for call in calls(recording))


def _kind(call: ToolCall) -> str:
    if call.asked is None:
        return "Tool" if call.is_judged else "NoneType"
    return type(call.asked).__name__.removeprefix("Asked")


def replay(recording: Recording) -> ReplayTotals:
    """Under all presets."""
    return replay_recording(recording, PRESETS)
