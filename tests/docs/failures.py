"""The failures that users of such caches reported, and the tests that show that they do not happen here.

`failures.txt` has a row for each: its number in the project's list of failure modes, what failed, and tests by name or
why there is none. `tests/failures.md` is made of it.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.tables import table

TESTS = Path(__file__).resolve().parents[1]
ROWS = (TESTS / "docs/failures.txt").read_text(encoding="utf-8")
_TEST = re.compile(r"`(test_\w+)`")


def numbers() -> list[str]:
    """The numbers of the failures, in order."""
    return re.findall(r"^([FN]\d+b?) \|", ROWS, re.MULTILINE)


def named_tests() -> set[str]:
    """The tests that the rows name."""
    return set(_TEST.findall(ROWS))


def files_of_tests() -> dict[str, str]:
    """Where each test stands, below `tests`."""
    out = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for name in re.findall(r"^ *def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            out[name] = str(path.relative_to(TESTS))
    return out


def failures() -> str:
    """The tables, with a link from each test to its file. KeyError for a test that does not exist."""
    files = files_of_tests()
    linked = _TEST.sub(lambda test: f"[`{test[1]}`]({files[test[1]]})", ROWS)
    parts = []
    for section in linked.split("## ")[1:]:
        title, _, rows = section.partition("\n")
        cells = [tuple(row.split(" | ")) for row in rows.strip().split("\n")]
        parts.append(f"## {title}\n\n{table(('number', 'what failed', 'test, or why there is none'), cells)}")
    return "\n".join(parts)
