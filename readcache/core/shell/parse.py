"""From a command's source to its syntax tree.

One walk cuts the source into tokens (`lexer`, `words`). A command without compounds, as 99 of 100 recorded ones are, is
put together from them at once (`grammar`); for `if`, `for`, `{ }` and `( )` bashlex decides the structure.
"""

from __future__ import annotations

from readcache.core.shell import grammar
from readcache.core.shell.lexer import Token, TokenKind, tokenize, tokenize_inside
from readcache.core.shell.syntax import Node, Refused, SimpleCommand


def parse_command(source: str) -> Node | None:
    """The tree of a whole script, `Sequence(())` for an empty one; None when it is refused. Never raises."""
    try:
        if "\0" in source:  # bash cannot be given one
            return None
        found = tokenize(source)
        node = grammar.flat(source, found)
        if node is None:
            from readcache.core.shell.bashlex_backend import build

            node = build(source, found)
        return node
    except Exception:  # bashlex raises AttributeError, NotImplementedError and more; deep nesting RecursionError
        return None


def simple_commands(source: str) -> list[SimpleCommand]:
    """The simple commands anywhere in `source`, in their order; none if it is not shell."""
    commands: list[list[Token]] = [[]]
    try:
        for token in tokenize_inside(source):
            if token.kind in (TokenKind.OPERATOR, TokenKind.RESERVED):
                commands.append([])
            else:
                commands[-1].append(token)
        found = [grammar.simple_command(source, command) for command in commands]
    except Refused:
        return []
    return [command for command in found if isinstance(command, SimpleCommand)]
