"""From a command's source to a `syntax.Node`.

One walk cuts the source into tokens (`lexer`, `words`). Commands without compounds are put together from those at once
(`grammar`); for the rest bashlex decides the structure. tree-sitter-bash, which reads the source by itself, is the
second implementation: the two are each other's test.
"""

from __future__ import annotations

from readcache.shell import grammar
from readcache.shell.lexer import tokens
from readcache.shell.syntax import Node


def parse(source: str, *, parser: str = "bashlex") -> Node | None:
    """The node of a whole script, `Sequence(())` for an empty one; None when it is refused. Never raises.

    `parser`: "bashlex", or "tree-sitter". One that is not installed refuses everything that needs it.
    """
    try:
        return _parse(source, parser)
    except Exception:  # bashlex raises AttributeError, NotImplementedError and more; deep nesting RecursionError
        return None


def _parse(source: str, parser: str) -> Node | None:
    if "\0" in source:  # bash cannot be given it
        return None
    if parser == "tree-sitter":
        from readcache.shell.treesitter_backend import build_from_source

        return build_from_source(source)
    found = tokens(source)
    if (node := grammar.flat(source, found)) is not None:
        return node
    from readcache.shell.bashlex_backend import build

    return build(source, found)
