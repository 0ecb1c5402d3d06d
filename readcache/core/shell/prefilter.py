"""A cheap check of a command: most commands read and write no file, and need no parser.

Imports nothing from the package, so that `readcache run` can become bash immediately.
"""

from __future__ import annotations

import re

# Parsing pays if the command may contain one of these. A name inside a string only costs a parse.
_INTERESTING = re.compile(
    r"<|>(?!&[\d-]|\s*/dev/null)"
    r"|(?<![\w-])(?:cat|nl|head|tail|g?sed|[ef]?grep|rg|tee|cp|mv|rm|show|apply_?patch)(?![\w-])"
    r"|^\s*readcache recall "  # it is answered, and not run
    r"|(?:python|pypy|node|deno|bun|tsx|ruby|perl|php|lua|osascript|pwsh)[\d.]*(?:\.exe)?\s+-(?!m)"
)


def may_matter(command: str) -> bool:
    """Return True if `command` may read or write a file in a way that the parser understands."""
    return _INTERESTING.search(command) is not None
