"""A made-up conversation to try a hook with. One file is read twice, and the hook must shorten the second read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

TEXT = "".join(f"line {number} of a file that is read twice\n" for number in range(40))
Entries = Callable[[str], Sequence[object]]


def two_reads(directory: str, event: Mapping[str, Any], asked: Entries, shown: Entries) -> list[dict[str, Any]]:
    """Return two events for the hook. For each, write the host's transcript into `directory` as it would be at that
    moment.

    `asked` and `shown` return its entries for a call and for a result. `event` has the fields that both events share.
    """
    entries, events = list[object](), list[dict[str, Any]]()
    for name in ("one", "two"):
        path = os.path.join(directory, f"{name}.jsonl")
        entries += asked(name)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)
        entries += shown(name)
        whose = {"session_id": "trial", "transcript_path": path, "cwd": directory, "tool_use_id": name}
        events.append({**whose, "tool_response": TEXT, **event})
    return events
