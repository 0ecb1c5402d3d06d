"""The syntax tree of a shell command.

The tree contains only the parts that the readers and writers need: simple commands with words and redirections, and the
operators that join them. Everything else is `Opaque`. Positions are not kept; a word keeps its source text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union


class Refused(Exception):
    """The error for a source that bash would refuse or that readcache cannot parse.

    Never leaves the package `shell`.
    """


class TooLong(Exception):
    """The error for a command that is too long to be worth reading. Never leaves the package `shell`."""


@dataclass(frozen=True, slots=True)
class WordText:
    """Literal characters of a word, already without quotes and escapes."""

    text: str
    quoted: bool = False  # quoted text neither globs nor splits


@dataclass(frozen=True, slots=True)
class Variable:
    """A plain `$NAME` or `${NAME}`. A leading `~` is a quoted HOME."""

    name: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part that only running the command would show: `$(…)`, `${x:-y}`, `$((…))`, `$1`, `<(…)`, `{a,b}`."""

    source: str


WordPart = WordText | Variable | Unknown


@dataclass(frozen=True, slots=True)
class Word:
    """One word: its parts in order (`a"$b"` has two) and its source text."""

    parts: tuple[WordPart, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Heredoc:
    """The body of `<<WORD`: the text up to the delimiter, with its final newline. Bash takes `quoted` bodies literally.

    It is the source's text. It still has the tabs that `<<-` strips, and the backslashes and expansions of an unquoted
    body.
    """

    body: str
    quoted: bool
    strip_tabs: bool = False  # `<<-`


@dataclass(frozen=True, slots=True)
class Redirect:
    """`fd op target`.

    For `<<` the target is None and `heredoc` contains the body. `fd` is None for the operator's default.
    """

    op: str  # one of < > >> >| &> &>> >& <& <> << <<- <<<
    target: Word | None
    fd: int | None = None
    heredoc: Heredoc | None = None


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A simple command: `A=1 B=2 words… redirects…`. Any of the three may be missing. `time` is a word like others."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """`a | b |& c`. A single command is not wrapped."""

    commands: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """`a && b || c; d & e`: items, each with the operator BEFORE it: ; && || &. The first item has ";".

    A newline is a ";". Bash's && and || have the same precedence, from left to right, so everything is one flat list.
    An "&" before an item says that the && / || chain before it went into the background. An empty `SimpleCommand`
    follows a last `&`. An empty script has no items. A single item is not wrapped. An `if` is a group of parts that all
    have "||" before them: each may run or not.
    """

    items: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`{ … }`, or `( … )` if `subshell` is True."""

    body: Node
    subshell: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class For:
    """`for name in words; do body; done`. `words` is None without an `in`."""

    name: str
    words: tuple[Word, ...] | None
    body: Node
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any other command: while, until, case, select, functions, [[ ]], (( )), `!`. Its source text is kept."""

    source: str


# `Union` instead of `|`: the alias is recursive, and Python 3.10 evaluates it.
Node = Union[SimpleCommand, Pipeline, Sequence, Group, For, Opaque]  # noqa: UP007


def literal(word: Word, variables: Mapping[str, str]) -> str | None:
    """Return the word's text with `variables` filled in. Return None if a part is not known.

    An unquoted variable makes the word unknown if bash would split or glob its value.
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
    """Return True if an unquoted part contains a glob character. The parser handles an unquoted `~` or brace."""
    return any(isinstance(p, WordText) and not p.quoted and any(c in p.text for c in "*?[") for p in word.parts)
