"""What the tests of a host measured, kept beside them with date and versions: the table in the docs is made of it.

`python tests/hosts/run.py --write NAME` writes it.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent


class Run(NamedTuple):
    """One scripted conversation."""

    chars: int  # characters of all tool results in all requests that the model was sent
    seconds: float  # wall time
    calls: int  # tool calls


def record(name: str, versions: Mapping[str, str], before: Run, after: Run) -> None:
    """Keeps the figures of `name` ("mini-swe-agent"), of the same script without readcache and with it."""
    if os.environ.get("READCACHE_WRITE_MEASURED"):
        today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        found = {"date": today, "versions": dict(versions), "before": before._asdict(), "after": after._asdict()}
        text = json.dumps({name: found}, indent=1) + "\n"
        (HERE / os.environ["READCACHE_TEST_HOST"] / f"measured-{name}.json").write_text(text, encoding="utf-8")
