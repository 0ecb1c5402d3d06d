"""Check figures: `readcache gain` counts no marker and no saved character that the model was not sent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from readcache.testing.hosts import Seen
from readcache.testing.requests import markers

_ROUNDING = 1  # characters of a result, because a host may trim its final newline


def check_figures(store: Path, ours: Sequence[Seen], real: Sequence[Seen]) -> None:
    """Compare a store's figures with the requests of its conversation. Raise AssertionError if they do not fit.

    `ours` and `real`: the requests with and without readcache. Only results of the last step may be missing in the
    figures, because no later request shows what became of them.
    """
    done = subprocess.run(
        [sys.executable, "-m", "readcache", "gain", "--json", "--store", str(store)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    counted = said["windows"]["all"]
    steps = [list(zip(one.results, other.results, strict=True)) for one, other in zip(ours, real, strict=True)]
    shortened = [[(shown, full) for shown, full in step if markers(shown)] for step in steps]
    sent, least = sum(map(len, shortened)), sum(map(len, shortened[:-1]))
    assert least <= counted["results_cut"] <= sent, f"{counted['results_cut']} results cut, and {sent} were sent"
    assert said["checked"]["markers"] <= sum(len(markers(shown)) for step in shortened for shown, _ in step)
    saved = sum(len(full) - len(shown) for step in shortened for shown, full in step)
    most = saved + _ROUNDING * sent
    assert 0 < counted["chars_saved"] <= most, f"{counted['chars_saved']} characters, and {saved} were saved"
