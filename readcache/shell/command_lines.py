"""The commands of a command line, as text, for patterns that look for a command."""

from __future__ import annotations

from readcache.shell.expansion import substitutions
from readcache.shell.lexer import Token, TokenKind, tokenize_inside
from readcache.shell.syntax import Refused, WordText

_SHELLS = frozenset(("bash", "sh", "zsh", "dash", "eval"))


def command_lines(source: str) -> str:
    """`source` with each simple command on a line of its own, without comments and the bodies of heredocs; a quoted
    text that spans lines stands on one. What a shell runs (`bash <<EOF`, `bash -c '…'`, `$(…)`) is taken as commands.
    Source that is not shell is given back as it is."""
    try:
        tokens = tokenize_inside(source)
    except Refused:
        return source
    lines: list[str] = []
    command: list[Token] = []
    for token in tokens:
        if token.kind in (TokenKind.OPERATOR, TokenKind.RESERVED):
            lines += _lines_of(source, command)
            command = []
        else:
            command.append(token)
    return "\n".join([*lines, *_lines_of(source, command)])


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
