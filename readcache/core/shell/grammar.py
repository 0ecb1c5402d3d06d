"""Build nodes from tokens without a compound command, so that most commands need no other parser.

The functions with which every parser builds nodes are here too, so that all parsers build the same nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Seq

from readcache.core.shell.lexer import Token, TokenKind
from readcache.core.shell.syntax import Group, Node, Opaque, Pipeline, Redirect, Sequence, SimpleCommand

BACKGROUND = ("&", SimpleCommand(()))  # the empty command after a last `&`


def flat(source: str, tokens: Seq[Token]) -> Node | None:
    """Return the node of a chain of pipelines of simple commands.

    Return None for anything else, and for invalid shell.
    """
    items: list[tuple[str, Node]] = []
    before = ";"
    commands: list[Node] = []
    current: list[Token] = []
    for token in (*tokens, _END):
        if token.kind is TokenKind.RESERVED or token.text in ("(", ")"):
            return None
        if token.kind is not TokenKind.OPERATOR:
            current.append(token)
            continue
        command = simple_command(source, current)
        if command is None:
            ended = token is _END and not current and not commands and before in (";", "&")
            return sequence(items, trailing=before) if ended else None
        commands.append(command)
        current = []
        if token.text not in ("|", "|&"):
            items.append((before, pipeline(commands)))
            before, commands = token.text, []
    return sequence(items)


_END = Token(TokenKind.OPERATOR, 0, 0, "")


def simple_command(source: str, tokens: Seq[Token]) -> Node | None:
    """Return the simple command of these tokens.

    Return None if there are no tokens, or if they do not form a command.
    """
    if not tokens:
        return None
    if any(token.kind is TokenKind.OPAQUE for token in tokens):
        behind = all(token.kind is TokenKind.REDIRECT for token in tokens[1:])
        return Opaque(source[tokens[0].start : tokens[-1].end]) if behind else None
    words = tuple(token.word for token in tokens if token.kind is TokenKind.WORD and token.word is not None)
    assigned = tuple((token.text, token.word) for token in tokens if token.kind is TokenKind.ASSIGNMENT and token.word)
    return SimpleCommand(words, redirects_of(tokens), assigned)


def redirects_of(tokens: Iterable[Token]) -> tuple[Redirect, ...]:
    """Return the redirections among the tokens."""
    return tuple(token.redirect for token in tokens if token.redirect is not None)


def pipeline(commands: Seq[Node]) -> Node:
    """Return the commands joined by pipes. A single command is returned as it is."""
    return commands[0] if len(commands) == 1 else Pipeline(tuple(commands))


def conditional(parts: Seq[Node], redirects: tuple[Redirect, ...] = ()) -> Group:
    """Return a group for `if … then … else … fi`: its conditions and bodies in order. Each of them may run or not."""
    return Group(Sequence(tuple(("||", part) for part in parts)), False, redirects)


def sequence(items: Seq[tuple[str, Node]], trailing: str = ";") -> Node:
    """Return the items as one node.

    A single item is returned as it is. `trailing`: the operator after the last item, if any.
    """
    all_items = (*items, BACKGROUND) if trailing == "&" else tuple(items)
    return all_items[0][1] if len(all_items) == 1 else Sequence(all_items)
