"""From tokens to nodes where no compound command is about, so that most commands need no parser at all.

The pieces that every parser builds with are here too, so that they build the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Seq

from readcache.core.shell.lexer import Token, TokenKind
from readcache.core.shell.syntax import Group, Node, Opaque, Pipeline, Redirect, Sequence, SimpleCommand

BACKGROUND = ("&", SimpleCommand(()))  # what follows a last `&`: nothing


def flat(source: str, tokens: Seq[Token]) -> Node | None:
    """The node of a chain of pipelines of simple commands; None for anything else, and for what is not shell."""
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
    """The simple command of these tokens; None when there are none, or they are no command."""
    if not tokens:
        return None
    if any(token.kind is TokenKind.OPAQUE for token in tokens):
        behind = all(token.kind is TokenKind.REDIRECT for token in tokens[1:])
        return Opaque(source[tokens[0].start : tokens[-1].end]) if behind else None
    words = tuple(token.word for token in tokens if token.kind is TokenKind.WORD and token.word is not None)
    assigned = tuple((token.text, token.word) for token in tokens if token.kind is TokenKind.ASSIGNMENT and token.word)
    return SimpleCommand(words, redirects_of(tokens), assigned)


def redirects_of(tokens: Iterable[Token]) -> tuple[Redirect, ...]:
    """The redirections among the tokens."""
    return tuple(token.redirect for token in tokens if token.redirect is not None)


def pipeline(commands: Seq[Node]) -> Node:
    """The commands joined by pipes; one alone is itself."""
    return commands[0] if len(commands) == 1 else Pipeline(tuple(commands))


def conditional(parts: Seq[Node], redirects: tuple[Redirect, ...] = ()) -> Group:
    """`if … then … else … fi`: its conditions and bodies in order, each of which may run or not."""
    return Group(Sequence(tuple(("||", part) for part in parts)), False, redirects)


def sequence(items: Seq[tuple[str, Node]], trailing: str = ";") -> Node:
    """The items as one node: one alone is itself. `trailing`: the operator behind the last, if any."""
    all_items = (*items, BACKGROUND) if trailing == "&" else tuple(items)
    return all_items[0][1] if len(all_items) == 1 else Sequence(all_items)
