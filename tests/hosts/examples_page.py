"""The code of `docs/hosts/examples.md`, to be run as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

PAGE = Path(__file__).resolve().parents[2] / "docs/hosts/examples.md"


def example(heading: str) -> ModuleType:
    """The first block of Python below that heading, as a module."""
    section = re.split(rf"^## {re.escape(heading)}\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    found = re.search(r"^```python\n(.*?)^```$", section.partition("\n## ")[0], re.MULTILINE | re.DOTALL)
    assert found, f"{PAGE} has no code below {heading!r}"
    module = ModuleType(re.sub(r"\W+", "_", f"example {heading}").lower())
    sys.modules[module.__name__] = module  # dataclasses and typing look it up
    exec(compile(found[1], f"{PAGE} ({heading})", "exec"), module.__dict__)
    return module
