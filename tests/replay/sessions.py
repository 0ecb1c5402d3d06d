"""Sessions in the plain form, made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

APP = [f"def item_{n}(count):  # of the shop, with a few words" for n in range(1, 201)]


def lines(first: int, last: int) -> str:
    """What `sed -n 'first,lastp' app.py` prints."""
    return "\n".join(APP[first - 1 : last]) + "\n"


def bash(command: str, output: str) -> dict[str, Any]:
    """A shell call."""
    return {"tool": "bash", "input": {"command": command}, "output": output, "cwd": "/w"}


def sed(first: int, last: int) -> dict[str, Any]:
    """A read of these lines."""
    return bash(f"sed -n '{first},{last}p' app.py", lines(first, last))


def read(first: int, last: int) -> dict[str, Any]:
    """The same by a read tool, which numbers them."""
    output = "\n".join(f"{n:6}→{APP[n - 1]}" for n in range(first, last + 1))
    given = {"path": "/w/app.py", "offset": first, "limit": last - first + 1}
    return {"tool": "read", "input": given, "output": output, "cwd": "/w"}


COMPACTION = {"tool": "_compact", "input": {}, "output": "", "cwd": "/w"}


def session(*records: dict[str, Any], name: str = "one") -> str:
    """A line of the plain form."""
    return json.dumps({"id": name, "source": "made-up", "agent": "claude-code", "records": records}) + "\n"


def write(path: Path, *sessions: str) -> Path:
    """A file of them."""
    path.write_text("".join(sessions), encoding="utf-8")
    return path
