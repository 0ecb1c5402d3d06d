from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from readcache import context

TOP = Path(__file__).resolve().parents[2]
HEAVY = ("sqlite3", "asyncio", "bashlex", "watchdog", "readcache.session", "readcache.log.store")


def test_every_public_name_is_there_and_loads_neither_a_store_nor_a_parser() -> None:
    """In a new process, after a module of the package was imported by itself: the order of imports does not matter."""
    program = f"""
import sys
import readcache.context.pruner
from readcache.context import {", ".join(context.__all__)}
assert callable(prune)
print(*[module for module in {HEAVY!r} if module in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=TOP, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
