"""The commands of a command line, wherever they stand: as text, for patterns that look for a command, and parsed."""

from __future__ import annotations

from collections.abc import Iterator

from readcache.shell.expansion import substitutions
from readcache.shell.grammar import simple_command
from readcache.shell.lexer import Token, TokenKind, tokenize_inside
from readcache.shell.syntax import Refused, SimpleCommand, WordText

_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "eval"))


def command_lines(source: str) -> str:
    """`source` with each simple command on a line of its own, without comments and the bodies of heredocs; a quoted
    text that spans lines stands on one. What a shell runs (`bash <<EOF`, `bash -c '…'`, `$(…)`) is taken as commands.
    Source that is not shell is given back as it is."""
    try:
        tokens = tokenize_inside(source)
    except Refused:
        return source
    return "\n".join(line for command in _commands(tokens) for line in _lines_of(source, command))


def simple_commands(source: str) -> list[SimpleCommand]:
    """The simple commands anywhere in `source`, in their order; none if it is not shell."""
    try:
        found = [simple_command(source, command) for command in _commands(tokenize_inside(source))]
    except Refused:
        return []
    return [command for command in found if isinstance(command, SimpleCommand)]


def _commands(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each simple command."""
    command: list[Token] = []
    for token in tokens:
        if token.kind in (TokenKind.OPERATOR, TokenKind.RESERVED):
            yield command
            command = []
        else:
            command.append(token)
    yield command


def _lines_of(source: str, command: list[Token]) -> list[str]:
    """A simple command on one line, and behind it the commands inside it."""
    texts = [source[token.start : token.end] for token in command]
    line = " ".join(texts).replace("\n", " ")
    scripts = [script for text in texts for script in substitutions(text)]
    bodies = [token.redirect.heredoc for token in command if token.redirect and token.redirect.heredoc]
    scripts += [script for heredoc in bodies if not heredoc.quoted for script in substitutions(heredoc.body)]
    if any(text.rpartition("/")[2] in _SHELLS for text in texts):
        scripts += [heredoc.body for heredoc in bodies]
        scripts += [
            part.text
            for token in command
            for part in (token.word.parts if token.word else ())
            if isinstance(part, WordText) and part.quoted
        ]
    return [line, *map(command_lines, scripts)]
