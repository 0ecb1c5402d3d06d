"""Values as transcripts hold them: any may be missing, or of another type than it should be."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

_MOST = 2**53  # whole numbers that every JSON reader keeps
_MILLISECONDS = 1e11  # later than any time in seconds that is meant


def dict_in(value: object) -> Mapping[str, Any]:
    """The value, where it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def object_in(value: object) -> Mapping[str, Any]:
    """The value, where it is an object, or the text of one; else an empty one."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return dict_in(value)


def list_in(value: object) -> list[Any]:
    """The value, where it is a list; else an empty one."""
    return value if isinstance(value, list) else []


def block_text(content: object) -> str | None:
    """The text of a result: a string, or text blocks alone. None where something else is in it."""
    if isinstance(content, str):
        return content
    blocks = [object_in(block) for block in list_in(content)]
    texts = [block.get("text") for block in blocks]
    return "\n".join(map(str, texts)) if blocks and all(isinstance(text, str) for text in texts) else None


def int_in(value: object) -> int | None:
    """The number, also where a model gave it as a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < _MOST else None


def epoch_of(value: object) -> float | None:
    """Seconds since the epoch of an ISO text, or of a number of seconds or milliseconds. None for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value / 1000 if value > _MILLISECONDS else float(value)
        # Python 3.10 takes no "Z"
        return datetime.datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None


def chars_in(arguments: object) -> int:
    """Characters of what the agent wrote in a call."""
    return len(json.dumps(arguments, ensure_ascii=False))


def said_in(arguments: Mapping[str, Any]) -> str:
    """What the agent wrote in a call, each text of it whole."""
    return "\n".join(value if isinstance(value, str) else json.dumps(value) for value in arguments.values())
