"""A cheap look at a command: most commands read and write no file, and need no parser.

Imports nothing of the package, so that `readcache run` can become bash at once.
"""

from __future__ import annotations

import re

# Parsing pays if one of these may be in the command. A name inside a string costs a parse, nothing else.
_INTERESTING = re.compile(
    r"<|>(?!&[\d-]|\s*/dev/null)"
    r"|(?<![\w-])(?:cat|nl|head|tail|g?sed|[ef]?grep|rg|tee|cp|mv|rm|show|apply_?patch)(?![\w-])"
    r"|(?:python|pypy|node|deno|bun|tsx|ruby|perl|php|lua|osascript|pwsh)[\d.]*(?:\.exe)?\s+-(?!m)"
)


def may_matter(command: str) -> bool:
    """True if `command` may read or write a file in a way that the parser understands."""
    return _INTERESTING.search(command) is not None
