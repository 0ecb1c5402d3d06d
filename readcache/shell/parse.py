"""From a command's source to its syntax tree.

One walk cuts the source into tokens (`lexer`, `words`). A command without compounds, as 99 of 100 recorded ones are, is
put together from them at once (`grammar`); for `if`, `for`, `{ }` and `( )` bashlex decides the structure.
"""

from __future__ import annotations

import functools

from readcache.shell import grammar
from readcache.shell.lexer import tokenize
from readcache.shell.syntax import Node, Refused


def parse_command(source: str) -> Node | None:
    """The tree of a whole script, `Sequence(())` for an empty one; None when it is refused. Never raises."""
    try:
        return _parse(source)
    except Exception:  # bashlex raises AttributeError, NotImplementedError and more; deep nesting RecursionError
        return None


@functools.lru_cache(maxsize=512)  # as many as `read_command` remembers
def _parse(source: str) -> Node:
    if "\0" in source:
        raise Refused("bash cannot be given a NUL")
    found = tokenize(source)
    if (node := grammar.flat(source, found)) is not None:
        return node
    from readcache.shell.bashlex_backend import build

    return build(source, found)
