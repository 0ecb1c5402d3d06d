"""What a shell command reads and writes, from its text alone: `read_command`."""

from __future__ import annotations

import functools
import re

from readcache.claims import OPAQUE, UNPARSED, Reading

# Parsing pays only when one of these may be in the command. A name inside a string costs a parse, nothing else.
_INTERESTING = re.compile(
    r"<|>(?!&[\d-]|\s*/dev/null)|(?<![\w-])(?:"
    r"cat|nl|head|tail|g?sed|[gm]?awk|[ef]?grep|rg|less|more|bat|batcat|tac|rev|sort|cut|tr|column|uniq|jq|yq|fold|xxd|od"
    r"|hexdump|base64|strings|python[\d.]*|perl|tee|cp|mv|ln|install|rsync|rm|unlink|truncate|dd|patch|apply_?patch|-delete"
    r"|show|cat-file|checkout|restore|stash|reset|merge|pull|rebase|apply|am|cherry-pick|revert|clean|switch"
    r"|black|isort|rustfmt|ruff|gofmt|gofumpt|goimports|prettier|eslint|clang-format|autopep8|yapf|shfmt|biome"
    r")(?![\w-])"
)


@functools.lru_cache(maxsize=512)
def read_command(command: str, cwd: str, exit_code: int | None = 0) -> Reading:
    """What `command`, run by bash in directory `cwd`, is believed to print and write.

    `exit_code` is the command's, None when it is not known. Never raises: what cannot be told is `claims.OPAQUE`, what
    cannot be parsed `claims.UNPARSED`.
    """
    if not _INTERESTING.search(command):
        return OPAQUE
    try:
        from readcache.shell.parse import parse
        from readcache.shell.walk import read

        node = parse(command)
        return UNPARSED if node is None else read(node, cwd, exit_code, parse)
    except Exception:  # a guess that fails is no guess: RecursionError, or a bug of ours
        return OPAQUE
