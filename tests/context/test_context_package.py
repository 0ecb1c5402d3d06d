from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from readcache import context

TOP = Path(__file__).resolve().parents[2]
HEAVY = ("sqlite3", "asyncio", "bashlex", "tree_sitter", "watchdog", "readcache.session", "readcache.log.store")


def loaded_by(program: str) -> set[str]:
    """The heavy modules that a program imports."""
    program += f"\nimport sys; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=TOP, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_every_public_name_is_there() -> None:
    assert all(getattr(context, name) is not None for name in context.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = context.nothing


def test_a_name_is_the_same_in_whatever_order_the_modules_were_imported() -> None:
    program = "import readcache.context.pruner\nfrom readcache.context import Compactor, prune\nassert callable(prune)"
    assert loaded_by(program) == set()


@pytest.mark.parametrize("name", [*context.__all__])
def test_a_name_loads_neither_a_store_nor_a_parser(name: str) -> None:
    assert loaded_by(f"from readcache.context import {name}") == set()
