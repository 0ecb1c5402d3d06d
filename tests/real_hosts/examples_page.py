"""The code of the pages of hosts, to be run as it stands there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

PAGES = Path(__file__).resolve().parents[2] / "docs/hosts"


def example(heading: str) -> ModuleType:
    """The first block of Python below that heading of `examples.md`, as a module."""
    page = PAGES / "examples.md"
    section = re.split(rf"^## {re.escape(heading)}\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    found = re.search(r"^```python\n(.*?)^```$", section.partition("\n## ")[0], re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no code below {heading!r}"
    return _run(found[1], f"{page} ({heading})")


def switched_on(module: str, root: Path) -> ModuleType:
    """The block of `frameworks.md` that imports this module, as a module, for the project at `root`."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (PAGES / "frameworks.md").read_text(), re.MULTILINE | re.DOTALL)
    (code,) = [block for block in blocks if f"from {module} import" in block]
    return _run(code.replace("/repo", str(root)), module)


def _run(code: str, name: str) -> ModuleType:
    module = ModuleType(re.sub(r"\W+", "_", f"example {name}").lower())
    sys.modules[module.__name__] = module  # dataclasses and typing look it up
    exec(compile(code, name, "exec"), module.__dict__)
    return module
