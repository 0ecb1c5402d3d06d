"""Fills the blocks `<!-- generated: NAME -->` … `<!-- end -->` of the documents by running the code.

    python -m tests.docs.generate           says which documents are out of date; exit status 1 when one is
    python -m tests.docs.generate --write   brings them up to date

`BLOCKS` has the function that makes each.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial

from readcache import Budget, Policy, Reply
from tests.docs import faults, hosts, reads, rivals, tables
from tests.docs.flow import DIAGRAM, diagram
from tests.docs.gain import gain_block
from tests.docs.methods import methods
from tests.docs.picture import PICTURE, picture
from tests.docs.sandbox import demo_block, first_session, replay, sandbox
from tests.docs.tables import TOP

PAGES = sorted(
    str(path.relative_to(TOP)) for pattern in ("docs/*.md", "readcache/**/README.md") for path in TOP.glob(pattern)
)
DOCUMENTS = (
    *("README.md", *PAGES, "docs/hosts/README.md"),
    *(f"docs/hosts/{name}.md" for name in hosts.tried_hosts()),
    *("tests/benchmarks/README.md", "tests/benchmarks/ab/README.md"),
)
BLOCKS: dict[str, Callable[[], str]] = {
    "demo": demo_block,
    "policy": partial(tables.field_table, Policy),
    "budget": partial(tables.field_table, Budget),
    "reply": partial(tables.field_table, Reply),
    "reasons": tables.reasons,
    "reads": reads.reads,
    "command line": tables.command_line,
    "variables": tables.variables,
    "methods": methods,
    "replay": replay,
    "gain": gain_block,
    "sandbox": sandbox,
    "first session": first_session,
    "dependencies": tables.dependencies,
    "testing": tables.testing_example,
    "hosts": hosts.hosts,
    "versions": hosts.versions,
    "headline": rivals.headline,
    "presets": rivals.presets,
    "bill": rivals.bill,
    "reread": rivals.reread,
    "rivals": rivals.contest,
    "beside": rivals.beside,
    "power": tables.power,
    "faults": faults.faults,
    "worlds": faults.worlds,
    **{f"versions of {name.replace('-', ' ')}": partial(hosts.tried, name) for name in hosts.tried_hosts()},
}
PICTURES = {PICTURE: picture, DIAGRAM: diagram}
_BLOCK = re.compile(r"(<!-- generated: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(text: str) -> str:
    """`text` with its blocks made anew. KeyError for a block that nothing makes."""
    return _BLOCK.sub(lambda found: f"{found.group(1)}\n{BLOCKS[found.group(2)]().strip()}\n\n{found.group(3)}", text)


def block_names(text: str) -> list[str]:
    """The names of the blocks in `text`."""
    return [found.group(2) for found in _BLOCK.finditer(text)]


def main() -> int:
    """The command line."""
    write = sys.argv[1:] == ["--write"]
    outdated = []
    for name in DOCUMENTS:
        path = TOP / name
        before = path.read_text(encoding="utf-8")
        after = fill(before)
        if after != before:
            outdated.append(name)
            if write:
                path.write_text(after, encoding="utf-8")
    for path, draw in PICTURES.items():
        drawn = draw()
        if not path.exists() or path.read_text(encoding="utf-8") != drawn:
            outdated.append(str(path.relative_to(TOP)))
            if write:
                path.write_text(drawn, encoding="utf-8")
    for name in outdated:
        print(f"{name} {'was brought up to date' if write else 'is out of date: run with --write'}")
    return 1 if outdated and not write else 0


if __name__ == "__main__":
    sys.exit(main())
