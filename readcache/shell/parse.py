"""From a command's source to its syntax tree.

One walk cuts the source into tokens (`lexer`, `words`). A command without compounds, as 99 of 100 recorded ones are, is
put together from them at once (`grammar`); for `if`, `for`, `{ }` and `( )` bashlex decides the structure.
"""

from __future__ import annotations

import functools

from readcache.shell import grammar
from readcache.shell.lexer import tokenize
from readcache.shell.syntax import Node


@functools.lru_cache(maxsize=512)  # as many as `read_command`, which asks again for another exit status
def parse_command(source: str) -> Node | None:
    """The tree of a whole script, `Sequence(())` for an empty one; None when it is refused. Never raises."""
    try:
        if "\0" in source:  # bash cannot be given one
            return None
        found = tokenize(source)
        node = grammar.flat(source, found)
        if node is None:
            from readcache.shell.bashlex_backend import build

            node = build(source, found)
        return node
    except Exception:  # bashlex raises AttributeError, NotImplementedError and more; deep nesting RecursionError
        return None
