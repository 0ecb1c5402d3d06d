"""The syntax tree of a shell command.

Only what the readers and writers need: simple commands with words and redirections, and how they are joined. What has
no place here is `Opaque`. Positions are not kept; a word keeps its source text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union


class Refused(Exception):
    """Bash would refuse this source, or it is beyond us. Never leaves `parse_command`."""


class TooLong(Exception):
    """The command is beyond what is worth reading. Never leaves the package `shell`."""


@dataclass(frozen=True, slots=True)
class WordText:
    """Literal characters of a word, quotes and escapes already taken off."""

    text: str
    quoted: bool = False  # quoted text neither globs nor splits


@dataclass(frozen=True, slots=True)
class Variable:
    """`$NAME` or `${NAME}`, nothing fancier; a leading `~` is a quoted HOME."""

    name: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part that only running the command can tell: `$(…)`, `${x:-y}`, `$((…))`, `$1`, `<(…)`, `{a,b}`."""

    source: str


WordPart = WordText | Variable | Unknown


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its parts in order (`a"$b"` has two) and its source text."""

    parts: tuple[WordPart, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Heredoc:
    """The body of `<<WORD`: the text between, with its final newline; `quoted` bodies are taken literally by bash.

    It is the source's text: it still has the tabs that `<<-` strips, and the backslashes and expansions of an unquoted
    body.
    """

    body: str
    quoted: bool
    strip_tabs: bool = False  # `<<-`


@dataclass(frozen=True, slots=True)
class Redirect:
    """`fd op target`; for `<<` the target is None and `heredoc` holds the body. fd None: the operator's default."""

    op: str  # one of < > >> >| &> &>> >& <& <> << <<- <<<
    target: Word | None
    fd: int | None = None
    heredoc: Heredoc | None = None


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A simple command: `A=1 B=2 words… redirects…` (any of the three may be missing). `time` is a word like others."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`a | b |& c`. One command alone is not wrapped."""

    commands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """`a && b || c; d & e`: items with the operator that stands BEFORE each (the first has ";"): ; && || &.

    A newline is a ";". Bash's && and || bind alike, from left to right, so all is one flat list; an "&" before an item
    says that the && / || chain before it went into the background, and a last `&` is followed by an empty `Command`.
    An empty script has no items; one item alone is not wrapped. An `if` is a group of parts that all have "||" before
    them: each may run or not.
    """

    items: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`{ … }`, or `( … )` when `subshell`."""

    body: Node
    subshell: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class For:
    """`for name in words; do body; done`; words None without an `in`."""

    name: str
    words: tuple[Word, ...] | None
    body: Node
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Opaque:
    """Anything else: while, until, case, select, functions, [[ ]], (( )), `!`. Its source text is kept."""

    source: str


# `Union` and not `|`: the alias is recursive, and Python 3.10 evaluates it.
Node = Union[SimpleCommand, Pipeline, Sequence, Group, For, Opaque]  # noqa: UP007


def literal(word: Word, variables: Mapping[str, str]) -> str | None:
    """The word's text when every part is known, with `variables` filled in; else None.

    An unquoted variable whose value would be split or globbed makes the word unknown.
    """
    out: list[str] = []
    for part in word.parts:
        if isinstance(part, WordText):
            out.append(part.text)
        elif isinstance(part, Variable) and part.name in variables:
            value = variables[part.name]
            if not part.quoted and (not value or any(c in value for c in " \t\n*?[\\")):
                return None
            out.append(value)
        else:
            return None
    return "".join(out)


def has_glob(word: Word) -> bool:
    """True if an unquoted part holds a glob character. An unquoted `~` or brace is for the parser to see."""
    return any(isinstance(p, WordText) and not p.quoted and any(c in p.text for c in "*?[") for p in word.parts)
