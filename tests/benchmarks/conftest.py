"""The tests of the benchmarks are slow tests: they say nothing of the package."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks each of them."""
    item.add_marker("slow")
