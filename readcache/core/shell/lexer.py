"""The tokens of a shell command, read in one walk over the source.

The lexer handles everything that makes shell hard to split: quotes, substitutions, heredocs, comments, line
continuations, and reserved words. Only grammar is left for a parser. `[[ … ]]`, `(( … ))` and `case … esac` become one
opaque token each, and an array `a=(…)` becomes one assignment. A newline becomes `;` if it ends a command. Other
newlines become nothing.

The rules come from bash (manual, "Shell Grammar"; parse.y for the positions at which reserved words count).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from readcache.core.shell.syntax import Redirect, Refused, Unknown, Word
from readcache.core.shell.words import (
    LONGEST_SUBSCRIPT,
    PendingHeredoc,
    pending_heredoc,
    read_body,
    read_word,
    skip_arithmetic,
)


class TokenKind(enum.Enum):
    """The role of a token in the grammar."""

    WORD = "word"
    ASSIGNMENT = "assignment"
    REDIRECT = "redirect"
    OPERATOR = "operator"  # ; & && || | |& ( )
    RESERVED = "reserved"
    OPAQUE = "opaque"  # a compound command, skipped whole


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the source.

    `text` is the operator, the reserved word, or the assigned name. `start` and `end` are its positions in the source.
    """

    kind: TokenKind
    start: int
    end: int
    text: str = ""
    word: Word | None = None  # of a word or an assignment
    redirect: Redirect | None = None


_BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|[&;|()]")
_REDIRECT = re.compile(r"([0-9]*)(<<<|<<-|<<|<>|<&|>>|>&|>\||[<>](?!\())|(&>>|&>)")
_ASSIGNMENT = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]\n]{{0,{LONGEST_SUBSCRIPT}}}\])?(\+?)=")
_COMPOUND_FOLLOWS = re.compile(r"[ \t]*(?:\(|[{!][ \t\n]|\[\[[ \t]|(?:if|for|while|until|case|select)\b)")
_CASE_ENDS = (";;", ";&", ";;&", "esac")
_OPENING = frozenset(("if", "then", "elif", "else", "while", "until", "do", "{", "!"))
_CLOSING = frozenset(("fi", "done", "}"))
_JOINING = frozenset((";", "&", "&&", "||", "|", "|&", "("))


def tokenize(source: str) -> list[Token]:
    """Return the tokens of a whole script. Raise Refused if a quote, substitution or compound is not closed."""
    lexer = _Lexer(source, 0)
    lexer.run(())
    return lexer.tokens


def tokenize_inside(source: str) -> list[Token]:
    """Return the tokens of a whole script, with the tokens inside `case … esac` instead of one token for it.

    A `[[ … ]]` yields no token. Raise Refused as `tokenize` does.
    """
    lexer = _Lexer(source, 0, looks_inside=True)
    lexer.run(())
    return lexer.tokens


def skip_commands(source: str, pos: int) -> int:
    """Return the position after the `)` that ends a substitution whose commands begin at `pos`.

    Raise Refused if none does.
    """
    lexer = _Lexer(source, pos)
    lexer.run((")",))
    return lexer.pos


class _Lexer:
    """A walk over the source that gathers tokens.

    `starts`: True if a reserved word counts at this position. `assigns`: True if an assignment does. `looks_inside`:
    keep the tokens inside a `case` instead of one opaque token.
    """

    __slots__ = ("assigns", "looks_inside", "pending", "pos", "source", "starts", "tokens")

    def __init__(self, source: str, pos: int, *, looks_inside: bool = False) -> None:
        self.looks_inside = looks_inside
        self.source = source
        self.pos = pos
        self.tokens: list[Token] = []
        self.pending: list[PendingHeredoc] = []
        self.starts = True
        self.assigns = True

    def run(self, stops: tuple[str, ...]) -> str:
        """Read tokens up to and including one of `stops`, and return it.

        Without `stops`, read to the end and return "".
        """
        depth = 0
        source = self.source
        while True:
            self.blanks()
            if self.pos >= len(source):
                if stops or depth:
                    raise Refused("unexpected end")
                self.bodies()
                return ""
            if source[self.pos] == "\n":
                self.newline()
            elif found := _REDIRECT.match(source, self.pos):
                self.redirect(found)
            elif found := _OPERATOR.match(source, self.pos):
                text = found.group()
                if depth == 0 and text in stops:
                    self.pos = found.end()
                    return text
                depth += self.operator(text, found.end())
                if depth < 0 or text in _CASE_ENDS:
                    raise Refused(f"unexpected {text}")
            elif self.starts and "esac" in stops and _reserved_at(source, self.pos, "esac"):
                self.pos += 4
                return "esac"
            else:
                self.word()

    def blanks(self) -> None:
        """Skip blanks, continued lines and a comment."""
        if found := _BLANKS.match(self.source, self.pos):
            self.pos = found.end()
        if found := _COMMENT.match(self.source, self.pos):
            self.pos = found.end()

    def newline(self) -> None:
        start = self.pos
        self.pos += 1
        self.bodies()
        last = self.tokens[-1] if self.tokens else None
        if last is None or (last.kind is TokenKind.OPERATOR and last.text in _JOINING):
            return
        if last.kind is TokenKind.RESERVED and last.text in _OPENING:
            return
        self.add(Token(TokenKind.OPERATOR, start, start + 1, ";"), starts=True)

    def operator(self, text: str, end: int) -> int:
        """Add an operator, or the arithmetic or function header that its `(` begins.

        Return the change in the depth of parentheses: 1, 0 or -1.
        """
        start = self.pos
        self.pos = end
        if text == "(" and self.starts and (closed := skip_arithmetic(self.source, start)):
            self.pos = closed
            self.add(Token(TokenKind.OPAQUE, start, closed), starts=True)
            return 0
        names = text == "(" and not self.starts
        self.add(Token(TokenKind.OPERATOR, start, end, text), starts=True)
        if names:
            self.header()
            return 0
        return {"(": 1, ")": -1}.get(text, 0)

    def header(self) -> None:
        """Read the `)` after `name (`, and skip to the function's body."""
        self.blanks()
        if not self.source.startswith(")", self.pos):
            raise Refused("unexpected (")
        self.pos += 1
        self.add(Token(TokenKind.OPERATOR, self.pos - 1, self.pos, ")"), starts=True)
        self.lines()

    def add(self, token: Token, *, starts: bool, assigns: bool | None = None) -> None:
        self.tokens.append(token)
        self.starts = starts
        self.assigns = starts if assigns is None else assigns

    def word(self) -> None:
        source, start = self.source, self.pos
        if (found := _ASSIGNMENT.match(source, start)) and (self.assigns or source.startswith("(", found.end())):
            self.assignment(found)
            return
        word, end = read_word(source, start, skip_commands)
        if end == start:
            raise Refused(f"unexpected {source[start : start + 1]!r}")
        self.pos = end
        if self.starts and self.reserved(word.source, start):
            return
        self.add(Token(TokenKind.WORD, start, end, word=word), starts=False)

    def assignment(self, found: re.Match[str]) -> None:
        source, start, value = self.source, self.pos, found.end()
        if source.startswith("(", value):
            self.pos = skip_commands(source, value + 1)  # the words of an array end like the commands of a substitution
            text = source[value : self.pos]
            word = Word((Unknown(text),), text)
        else:
            word, self.pos = read_word(source, start, skip_commands, value)
            if found.group(2) or found.group(3):  # an element, or something appended: the variable's value is unknown
                word = Word((Unknown(word.source),), word.source)
        if self.assigns:
            token = Token(TokenKind.ASSIGNMENT, start, self.pos, found.group(1), word)
            self.add(token, starts=False, assigns=True)
        else:  # the argument of `declare` and the like
            text = source[start : self.pos]
            self.add(Token(TokenKind.WORD, start, self.pos, word=Word((Unknown(text),), text)), starts=False)

    def redirect(self, found: re.Match[str]) -> None:
        start = self.pos
        op = found.group(2) or found.group(3)
        fd = int(found.group(1)) if found.group(1) else None
        self.pos = found.end()
        self.pos = blanks.end() if (blanks := _BLANKS.match(self.source, self.pos)) else self.pos
        target_start = self.pos
        word, self.pos = read_word(self.source, target_start, skip_commands)
        if self.pos == target_start:
            raise Refused(f"nothing behind {op}")
        if op in ("<<", "<<-"):
            self.pending.append(pending_heredoc(len(self.tokens), op, word.source))
            redirect = Redirect(op, None, fd, self.pending[-1].heredoc)
        else:
            redirect = Redirect(op, word, fd)
        self.add(Token(TokenKind.REDIRECT, start, self.pos, redirect=redirect), starts=False, assigns=self.assigns)

    def bodies(self) -> None:
        """Read the bodies of the pending heredocs, at the start of a line or at the end of the source."""
        for one in self.pending:
            body, self.pos = read_body(self.source, self.pos, one)
            if one.index >= 0:
                token = self.tokens[one.index]
                assert token.redirect is not None
                redirect = replace(token.redirect, heredoc=replace(one.heredoc, body=body))
                self.tokens[one.index] = replace(token, redirect=redirect)
        self.pending.clear()

    def reserved(self, text: str, start: int) -> bool:
        """Process a reserved word that has just been read. Return False if `text` is not a reserved word."""
        token = Token(TokenKind.RESERVED, start, self.pos, text)
        if text in _OPENING or text in _CLOSING:
            self.add(token, starts=True)
        elif text in ("for", "select"):
            self.loop(token)
        elif text == "function":
            self.add(token, starts=False)
            self.blanks()
            self.word()
            self.blanks()
            if not self.source.startswith("(", self.pos):
                self.lines()
                self.starts = self.assigns = True
        elif text == "case":
            self.opaque(start, self.case)
        elif text == "[[":
            self.opaque(start, self.condition)
        elif text == "time" and _COMPOUND_FOLLOWS.match(self.source, self.pos):
            self.add(Token(TokenKind.RESERVED, start, self.pos, "!"), starts=True)  # like `!`: the rest is opaque
        else:
            return False
        return True

    def loop(self, token: Token) -> None:
        """Read the rest of the header of `for` or `select`: the name (for `for ((…))`, its expressions), and `in`."""
        self.add(token, starts=False)
        self.blanks()
        if closed := skip_arithmetic(self.source, self.pos):
            text = self.source[self.pos : closed]
            self.add(Token(TokenKind.WORD, self.pos, closed, word=Word((Unknown(text),), text)), starts=False)
            self.pos = closed
            self.lines()
            if self.source.startswith(";", self.pos):
                self.pos += 1
            self.add(Token(TokenKind.OPERATOR, self.pos, self.pos, ";"), starts=True)
            return
        self.word()
        self.lines()
        if _reserved_at(self.source, self.pos, "in"):
            self.pos += 2
            self.add(Token(TokenKind.RESERVED, self.pos - 2, self.pos, "in"), starts=False)
        else:
            self.starts = True

    def lines(self) -> None:
        """Skip blanks and newlines."""
        self.blanks()
        while self.source.startswith("\n", self.pos):
            self.pos += 1
            self.bodies()
            self.blanks()

    def opaque(self, start: int, read: Callable[[], None]) -> None:
        """Replace all tokens that `read` adds with one opaque token, unless the lexer looks inside."""
        index = len(self.tokens)
        read()
        if self.looks_inside:
            return
        del self.tokens[index:]
        for one in self.pending:
            one.index = one.index if one.index < index else -1
        self.add(Token(TokenKind.OPAQUE, start, self.pos), starts=True)

    def case(self) -> None:
        """Read the rest of a `case`, to the position after its `esac`."""
        self.blanks()
        self.starts = self.assigns = False
        self.word()
        self.lines()
        if not _reserved_at(self.source, self.pos, "in"):
            raise Refused("case without in")
        self.pos += 2
        self.tokens[-1] = Token(TokenKind.OPERATOR, self.pos, self.pos, ";")
        while True:
            self.lines()
            if _reserved_at(self.source, self.pos, "esac"):
                self.pos += 4
                return
            self.pattern()
            self.starts = self.assigns = True
            ended = self.run(_CASE_ENDS)
            self.add(Token(TokenKind.OPERATOR, self.pos, self.pos, ";"), starts=True)
            if ended == "esac":
                return

    def pattern(self) -> None:
        """Read the patterns of one branch of a `case`, to the position after their `)`."""
        self.pos += self.source.startswith("(", self.pos)
        while not self.source.startswith(")", self.pos):
            start = self.pos
            self.blanks()
            _, self.pos = read_word(self.source, self.pos, skip_commands)
            self.blanks()
            self.pos += self.source.startswith("|", self.pos)
            if self.pos == start:
                raise Refused("no pattern")
        self.pos += 1

    def condition(self) -> None:
        """Read the rest of a `[[`, to the position after its `]]`."""
        while True:
            self.lines()
            start = self.pos
            word, self.pos = read_word(self.source, start, skip_commands)
            if word.source == "]]":
                return
            if self.pos == start:  # < > && || ( ) and, in a regular expression, | and others
                if start >= len(self.source):
                    raise Refused("unclosed [[")
                self.pos += 1


def _reserved_at(source: str, pos: int, text: str) -> bool:
    """Return True if the word `text` is at `pos`, unquoted and whole."""
    return source.startswith(text, pos) and source[pos + len(text) : pos + len(text) + 1] in ("", *" \t\n;&|()<>")
