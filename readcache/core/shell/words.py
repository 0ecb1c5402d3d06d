"""Words of a shell command: find the end of a word, and its text without quotes and escapes.

The rules come from bash (manual, "Quoting" and "Shell Expansions"). A word is read from the source itself, never from a
parser's version of it. So are the bodies of heredocs (manual, "Here Documents").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from readcache.core.shell.syntax import Heredoc, Refused, Unknown, Variable, Word, WordPart, WordText

SkipCommands = Callable[[str, int], int]  # (source, start of the commands) -> the position after the `)` that ends them

_SAFE = re.compile(r"[A-Za-z0-9_./:@%+,=\-]+(?=[ \t\n;|&]|\Z)")
_PLAIN = re.compile(r"[^ \t\n|&;()<>\\'\"`$~{}?*+@!]+")
_IN_DOUBLE = re.compile(r'[^"\\`$]+')
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACED_NAME = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_BRACES = re.compile(r",|\.\.")
# Limits in characters. Without them, thousands of unclosed `((` or `a[` could take minutes.
_LONGEST_ARITHMETIC = 1000
LONGEST_SUBSCRIPT = 200
_PARENTHESES = re.compile(r"""[()]|\\.|'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_PATTERN_FOLLOWS = re.compile(rf"!?(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*])(?:\[[^\]]{{0,{LONGEST_SUBSCRIPT}}}\])?[#%/]")


def read_word(source: str, start: int, skip_commands: SkipCommands, at: int | None = None) -> tuple[Word, int]:
    """Return the word that begins at `start`, and the position of its end.

    `at`: the position at which the value of an assignment begins. The value is then the word. An empty word (at the
    end, a blank, an operator) has no parts. Raise Refused if a quote or substitution is not closed.
    """
    if at is None and (safe := _SAFE.match(source, start)):
        text = safe.group()
        return Word((WordText(text),), text), safe.end()
    reader = _Reader(source, start, start if at is None else at, skip_commands)
    return reader.word(), reader.pos


class _Reader:
    """A reader of one word. `pos` is the position that it has reached; `parts` contains the parts that it has found."""

    __slots__ = (
        "begin", "has_braces", "literal", "open_brace", "parts", "pos", "quoted", "skip_commands", "source", "start",
        "value",
    )  # fmt: skip

    def __init__(self, source: str, start: int, pos: int, skip_commands: SkipCommands) -> None:
        self.source = source
        self.start = start
        self.begin = pos
        self.pos = pos
        self.skip_commands = skip_commands
        self.parts: list[WordPart] = []
        self.literal: list[str] = []  # text for the next part, `quoted` or not
        self.quoted = False
        self.open_brace = -1  # the position of the first unquoted `{`
        self.value = -1  # the start of the assigned value, after it was looked for
        self.has_braces = False  # a brace expansion gives several words, so nothing is known

    def word(self) -> Word:
        while self.step():
            pass
        text = self.source[self.begin : self.pos]
        if self.has_braces:
            return Word((Unknown(text),), text)
        self.flush()
        full = [part for part in self.parts if not isinstance(part, WordText) or part.text]
        return Word(tuple(full or self.parts[:1]), text)

    def step(self) -> bool:
        """Read one step of unquoted text. Return False at the word's end."""
        source, pos = self.source, self.pos
        if plain := _PLAIN.match(source, pos):
            self.take(plain.group(), plain.end())
            return True
        char = source[pos : pos + 1]
        if char in "<>" and source.startswith("(", pos + 1):
            self.unknown(self.skip_commands(source, pos + 2))
        elif not char or char in " \t\n|&;()<>":
            return False
        elif char in "?*+@!" and source.startswith("(", pos + 1):
            self.unknown(_skip_balanced(source, pos + 1, "(", ")", self.skip_commands))  # extglob
        elif char == "\\":
            self.escape()
        elif char == "'":
            end = _find(source, "'", pos + 1)
            self.take(source[pos + 1 : end], end + 1, quoted=True)
        elif char == '"':
            self.pos += 1
            self.double_quoted()
        elif char in "$`":
            self.expansion(quoted=False)
        elif char == "~" and self.at_tilde():
            self.tilde()
        else:
            self.brace(char)
            self.take(char, pos + 1)
        return True

    def take(self, text: str, end: int, *, quoted: bool = False) -> None:
        """Add literal text. The source is read up to `end`."""
        if quoted != self.quoted:
            self.flush()
            self.quoted = quoted
        self.literal.append(text)
        self.pos = end

    def flush(self) -> None:
        if self.literal:
            self.parts.append(WordText("".join(self.literal), self.quoted))
            self.literal.clear()

    def part(self, part: WordPart, end: int) -> None:
        self.flush()
        self.parts.append(part)
        self.pos = end

    def unknown(self, end: int) -> None:
        self.part(Unknown(self.source[self.pos : end]), end)

    def escape(self) -> None:
        """Read a backslash outside quotes: the next character is literal, a newline is removed."""
        following = self.source[self.pos + 1 : self.pos + 2]
        if following == "\n":
            self.pos += 2
        elif following:
            self.take(following, self.pos + 2, quoted=True)
        else:
            self.take("\\", self.pos + 1, quoted=True)

    def double_quoted(self) -> None:
        """Read the text after a `"`, up to and including the next one."""
        source = self.source
        self.take("", self.pos, quoted=True)
        while not source.startswith('"', self.pos):
            if literal := _IN_DOUBLE.match(source, self.pos):
                self.take(literal.group(), literal.end(), quoted=True)
            elif not source.startswith("\\", self.pos):
                self.expansion(quoted=True)
            elif source.startswith("\n", self.pos + 1):
                self.pos += 2
            elif source[self.pos + 1 : self.pos + 2] in ("$", "`", '"', "\\"):
                self.take(source[self.pos + 1], self.pos + 2, quoted=True)
            else:
                self.take("\\", self.pos + 1, quoted=True)
        self.pos += 1

    def expansion(self, *, quoted: bool) -> None:
        """Read the expansion at a `$` or a backtick.

        Raise Refused at the end of the source: a double quote is not closed.
        """
        source, pos = self.source, self.pos
        if pos >= len(source):
            raise Refused("unclosed double quote")
        if source[pos] == "`":
            self.unknown(_skip_escaped(source, pos, "`"))
            return
        following = source[pos + 1 : pos + 2]
        if named := _NAME.match(source, pos + 1) or _BRACED_NAME.match(source, pos + 1):
            if source.startswith("\\\n", named.end()) and following != "{":
                raise Refused("a name continued on the next line")
            self.part(Variable(named.group(named.lastindex or 0), quoted), named.end())
        elif following == "(":
            self.unknown(skip_arithmetic(source, pos + 1) or self.skip_commands(source, pos + 2))
        elif following == "{":
            self.unknown(_skip_parameter(source, pos + 1, quoted, self.skip_commands))
        elif following == "[":
            self.unknown(_skip_balanced(source, pos + 1, "[", "]", self.skip_commands))
        elif following and following in "0123456789@*#?-$!":
            self.unknown(pos + 2)
        elif following == "'" and not quoted:
            self.unknown(_skip_escaped(source, pos + 1, "'"))  # its escapes are not decoded
        elif following == '"' and not quoted:
            self.pos += 2
            self.double_quoted()
        else:
            self.take("$", pos + 1, quoted=quoted)

    def at_tilde(self) -> bool:
        """Return True if bash expands a tilde at this position.

        These are the start of a word, the start of an assigned value, and the position after an unquoted `:` in that
        value.
        """
        if self.pos == self.start:
            return True
        if self.value < 0:
            assigned = _ASSIGNED.match(self.source, self.start)
            self.value = len(self.source) if assigned is None else assigned.end()
        is_behind_colon = self.source[self.pos - 1] == ":" and not self.quoted  # `\:` is not one
        return self.value == self.pos or (self.value < self.pos and is_behind_colon)

    def tilde(self) -> None:
        following = self.source[self.pos + 1 : self.pos + 2]
        if not following or following in "/ \t\n|&;()<>" or (following == ":" and self.start != self.begin):
            self.part(Variable("HOME", quoted=True), self.pos + 1)  # its value is neither split nor globbed
        elif following in "'\"\\`$" and not self.source.startswith("\\\n", self.pos + 1):
            self.take("~", self.pos + 1)
        else:
            self.unknown(self.pos + 1)

    def brace(self, char: str) -> None:
        """Record a brace, and whether the word has a brace expansion.

        Bash pairs braces in an unusual way (it expands `{0},}`), so a comma or `..` between any two braces is enough.
        """
        if char == "{" and self.open_brace < 0 and self.begin == self.start:
            self.open_brace = self.pos
        elif char == "}" and self.open_brace >= 0:
            self.has_braces = self.has_braces or _BRACES.search(self.source, self.open_brace, self.pos) is not None


def _find(source: str, what: str, pos: int) -> int:
    end = source.find(what, pos)
    if end < 0:
        raise Refused(f"unclosed {what}")
    return end


def _skip_escaped(source: str, pos: int, quote: str) -> int:
    """Return the position after the unescaped quote that closes the quote at `pos`. Raise Refused if there is none."""
    pos += 1
    while not source.startswith(quote, pos):
        if pos >= len(source):
            raise Refused(f"unclosed {quote}")
        pos += 2 if source[pos] == "\\" else 1
    return pos + 1


def skip_arithmetic(source: str, pos: int) -> int | None:
    """Return the position after the `))` that closes the `((` at `pos`.

    Return None if there is none: nested subshells look the same.
    """
    if not source.startswith("((", pos):
        return None
    depth = 0
    for found in _PARENTHESES.finditer(source, pos + 2, pos + _LONGEST_ARITHMETIC):
        char = found.group()
        if char == "(":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif char == ")":
            return found.end() + 1 if source.startswith(")", found.end()) else None
    return None


def _skip_parameter(source: str, pos: int, quoted: bool, skip_commands: SkipCommands) -> int:
    """Return the position after the `}` of the `{` at `pos`. In double quotes a `'` is literal, except in patterns."""
    single_quotes = not quoted or _PATTERN_FOLLOWS.match(source, pos + 1) is not None
    return _skip_balanced(source, pos, "{", "}", skip_commands, single_quotes=single_quotes)


def _skip_balanced(
    source: str, pos: int, opening: str, closing: str, skip_commands: SkipCommands, *, single_quotes: bool = True
) -> int:
    """Return the position after the bracket that closes the bracket at `pos`. Skip quotes and substitutions inside.

    Inside `${…}`, only `${` opens another level, which is read separately. Raise Refused if the bracket is not closed.
    """
    pos += 1
    depth = 1
    while depth:
        char = source[pos : pos + 1]
        if not char:
            raise Refused(f"unclosed {opening}")
        if char == "\\":
            pos += 2
        elif char == "'" and single_quotes:
            pos = _find(source, "'", pos + 1) + 1
        elif char in '"$`':
            pos = _skip_expansion(source, pos, skip_commands)
        else:
            if char == closing:
                depth -= 1
            elif char == opening and char != "{":
                depth += 1
            pos += 1
    return pos


def _skip_expansion(source: str, pos: int, skip_commands: SkipCommands) -> int:
    """Return the position after the double-quoted string or the expansion at `pos`."""
    reader = _Reader(source, pos, pos, skip_commands)
    if source[pos] == '"':
        reader.pos += 1
        reader.double_quoted()
    else:
        reader.expansion(quoted=False)
    return reader.pos


_QUOTES = re.compile(r"['\"\\]")


@dataclass(slots=True)
class PendingHeredoc:
    """A heredoc whose body has not been read yet.

    `index` is the index of its token, or -1 if the token is not needed.
    """

    index: int
    delimiter: str
    heredoc: Heredoc


def pending_heredoc(index: int, op: str, word: str) -> PendingHeredoc:
    """Return the heredoc that `op` and the delimiter's source `word` announce. `index` is the index of its token."""
    return PendingHeredoc(index, _QUOTES.sub("", word), Heredoc("", _QUOTES.search(word) is not None, op == "<<-"))


def read_body(source: str, start: int, one: PendingHeredoc) -> tuple[str, int]:
    """Return the body that begins at `start`, and the position after its delimiter.

    The body ends before the delimiter or, as in bash, at the end of the source. It keeps its tabs and backslashes.
    """
    pos = start
    quoted, strip_tabs = one.heredoc.quoted, one.heredoc.strip_tabs
    while pos < len(source):
        end = _line_end(source, pos)
        while not quoted and end < len(source) and _is_continued(source, pos, end):
            end = _line_end(source, end + 1)
        line = source[pos:end] if quoted else source[pos:end].replace("\\\n", "")
        if (line.lstrip("\t") if strip_tabs else line) == one.delimiter:
            return source[start:pos], min(end + 1, len(source))
        pos = end + 1
    body = source[start:]
    return (body if not body or body.endswith("\n") else body + "\n"), len(source)


def _line_end(source: str, pos: int) -> int:
    end = source.find("\n", pos)
    return len(source) if end < 0 else end


def _is_continued(source: str, start: int, end: int) -> bool:
    """Return True if an odd number of backslashes comes before `end`, counted from `start` on."""
    pos = end
    while pos > start and source[pos - 1] == "\\":
        pos -= 1
    return (end - pos) % 2 == 1
