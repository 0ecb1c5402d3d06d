"""Turn a command's source into its syntax tree.

One walk splits the source into tokens (`lexer`, `words`). Of 100 recorded commands, 99 have no compounds, and `grammar`
builds their trees directly from the tokens. For `if`, `for`, `{ }` and `( )` bashlex finds the structure.
"""

from __future__ import annotations

from readcache.core.shell import grammar
from readcache.core.shell.lexer import Token, TokenKind, tokenize, tokenize_inside
from readcache.core.shell.syntax import Node, Refused, SimpleCommand


def parse_command(source: str) -> Node | None:
    """Return the tree of a whole script, `Sequence(())` for an empty one. Return None if it is refused. Never raise."""
    try:
        if "\0" in source:  # no argument of bash can contain a NUL
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
    """Return the simple commands anywhere in `source`, in their order. Return [] if the source is refused."""
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
