"""A made-up conversation to try a hook with: one file is read twice, and the second read is answered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

TEXT = "".join(f"line {number} of a file that is read twice\n" for number in range(40))
Entries = Callable[[str], Sequence[object]]


def two_reads(place: str, event: Mapping[str, Any], asked: Entries, shown: Entries) -> list[dict[str, Any]]:
    """The events, and in the directory the host's own file for each as it is then. `asked`, `shown`: the entries with
    which that file tells of a call, and of its result. `event`: what an event says besides whose it is."""
    entries, events = list[object](), list[dict[str, Any]]()
    for name in ("one", "two"):
        path = os.path.join(place, f"{name}.jsonl")
        entries += asked(name)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)
        entries += shown(name)
        whose = {"session_id": "trial", "transcript_path": path, "cwd": place, "tool_use_id": name}
        events.append({**whose, "tool_response": TEXT, **event})
    return events
