"""The look at a command that costs next to nothing: most commands read and write no file, and need no more than this.

Imports nothing of the package, so that `readcache run` can get out of the way of such a command at once.
"""

from __future__ import annotations

import re

# Parsing pays only when one of these may be in the command. A name inside a string costs a parse, nothing else.
_INTERESTING = re.compile(
    r"<|>(?!&[\d-]|\s*/dev/null)|(?<![\w-])(?:"
    r"cat|nl|head|tail|g?sed|[ef]?grep|rg|sort|perl|tee|cp|mv|ln|install|rsync|rm|unlink|truncate|dd|patch|apply_?patch"
    r"|-delete"
    r"|show|checkout|restore|stash|reset|merge|pull|rebase|apply|am|cherry-pick|revert|clean|switch"
    r"|black|isort|rustfmt|ruff|gofmt|gofumpt|goimports|prettier|eslint|clang-format|autopep8|yapf|shfmt|biome"
    r")(?![\w-])"
)


def may_matter(command: str) -> bool:
    """True if `command` may read or write a file in a way that the parser understands."""
    return _INTERESTING.search(command) is not None
