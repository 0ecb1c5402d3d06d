"""Read values of transcripts. Any value may be missing or have the wrong type."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

_MOST = 2**53  # every JSON reader keeps integers below this exactly
_MILLISECONDS = 1e11  # a larger time is in milliseconds; in seconds it would be after the year 5000


def dict_in(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def object_in(value: object) -> Mapping[str, Any]:
    """Return the value if it is an object. Return the parsed object if it is the JSON text of one. Otherwise return an
    empty object."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return dict_in(value)


def list_in(value: object) -> list[Any]:
    """Return the value if it is a list, otherwise an empty list."""
    return value if isinstance(value, list) else []


def block_text(content: object) -> str | None:
    """Return the text of a result that is a string or consists only of text blocks. Return None if it contains anything
    else."""
    if isinstance(content, str):
        return content
    blocks = [object_in(block) for block in list_in(content)]
    texts = [block.get("text") for block in blocks]
    return "\n".join(map(str, texts)) if blocks and all(isinstance(text, str) for text in texts) else None


def int_in(value: object) -> int | None:
    """Return the value as an integer, also if a model gave it as text. Return None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < _MOST else None


def count_in(value: object, *keys: str) -> int:
    """Return the number, such as a number of tokens, under these keys: each leads into the object under the key before
    it. Return 0 if there is none."""
    for key in keys:
        value = object_in(value).get(key)
    return int_in(value) or 0


def epoch_of(value: object) -> float | None:
    """Return the time in seconds since the epoch, or None if `value` is anything else.

    `value`: a text in ISO format, or a number of seconds or milliseconds.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value / 1000 if value > _MILLISECONDS else float(value)
        # Python 3.10 does not accept "Z".
        return datetime.datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None


def chars_in(arguments: object) -> int:
    """Return the number of characters that the agent wrote in a call."""
    return len(json.dumps(arguments, ensure_ascii=False))


def said_in(arguments: Mapping[str, Any]) -> str:
    """Return the text that the agent wrote in a call: each argument on lines of its own, and strings verbatim."""
    return "\n".join(value if isinstance(value, str) else json.dumps(value) for value in arguments.values())
