"""Walk a parsed command in the order in which bash runs it, and gather the lines it prints and the files it writes.

Parts that bash may or may not run (the right side of `||`, the body of an `if`) are gathered as if they ran. Claimed
lines that are absent cost nothing. The text of such parts is not a landmark. A directory or variable that they change
is unknown afterwards.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace

from readcache.core.model.claims import Reading
from readcache.core.model.paths import canonical_path
from readcache.core.shell.arguments import Arg, CannotTell, Program, Redirected, arg_of, text_arg, written_by
from readcache.core.shell.parse import parse_command, simple_commands
from readcache.core.shell.readers import hands_on
from readcache.core.shell.state import ShellState
from readcache.core.shell.streams import ANYTHING, Claims, Stream, heredoc_stream, unknown
from readcache.core.shell.syntax import (
    For,
    Group,
    Node,
    Opaque,
    Pipeline,
    Redirect,
    Sequence,
    SimpleCommand,
    Word,
    literal,
)
from readcache.core.shell.writers import Effect, authored_by, effect_of, started_by

_MOST_TURNS = 50  # a loop over more words than this is not unrolled
_CHARS_OF_A_STEP = 100  # characters of an inner script, which is parsed again, that count as one step
_MOVES = re.compile(r"\b(?:cd|pushd|popd)\b")
_SHELLS = ("bash", "sh", "zsh", "dash")
_END = ("exec", "exit", "kill", "return", "trap")  # these end the shell, or may end it
_MOVE = ("pushd", "popd", "eval", "source", ".")  # these change the directory, or may change it
_SET_VARIABLES = (
    "declare",
    "export",
    "getopts",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "typeset",
    "unset",
)
_TRACES = re.compile(r"-[a-zA-Z]*[xv][a-zA-Z]*|xtrace|verbose")
# Commands that always complain if they fail: silence means success. `test`, `grep` and `diff` can fail silently.
_LOUD = ("cat", "cd", "chmod", "cp", "echo", "mkdir", "mv", "printf", "rm", "tee", "touch")


def read(node: Node, cwd: str) -> Reading:
    """Return the reading of a command that ran in `cwd`. Raise TooLong if it has too many commands and words."""
    walk = _Walk(canonical_path(cwd, "/"))
    walk.run(node, Stream())
    return Reading(tuple(walk.out), tuple(walk.writes), tuple(walk.authored))


@dataclass(slots=True)
class _Walk(ShellState):
    """The state of the shell, and the methods that walk the tree."""

    def capture(self, node: Node, stdin: Stream) -> Stream:
        """Return the stream that `node` writes to its stdout."""
        if isinstance(node, SimpleCommand):
            return self.command(node, stdin)
        outer, position = self.out, self.position
        self.position = len(outer) if position is None else position
        self.out = []
        try:
            self.run(node, stdin)
            return Stream(tuple(self.out))
        finally:
            self.out, self.position = outer, position

    # structure

    def run(self, node: Node, stdin: Stream) -> None:
        """Walk any node, and add its output to `out`."""
        if isinstance(node, SimpleCommand):
            self.emit(self.command(node, stdin).claims)
        elif isinstance(node, Pipeline):
            self.emit(self.pipeline(node, stdin).claims)
        elif isinstance(node, Sequence):
            self.sequence(node, stdin)
        elif isinstance(node, Opaque):
            self.opaque(node)
        else:
            with self.doubting(executed=not _hides_complaints(node.redirects)):
                self.compound(node, stdin)

    def compound(self, node: Group | For, stdin: Stream) -> None:
        """Walk a group or loop with the redirections after it."""
        redirected = self.redirect(node.redirects, stdin)
        stdin = redirected.stdin
        if not redirected.prints:
            self.capture(replace(node, redirects=()), stdin)
        elif isinstance(node, For):
            self.loop(node, stdin)
        elif node.subshell:
            with self.subshell():
                self.run(node.body, stdin)
        else:
            self.run(node.body, stdin)

    def sequence(self, node: Sequence, stdin: Stream) -> None:
        """Walk `a && b || c; d & e`. Background output may arrive at any time."""
        chain: list[tuple[str, Node]] = []
        for k, (op, item) in enumerate(node.items):
            chain.append((op, item))
            following = node.items[k + 1][0] if k + 1 < len(node.items) else ";"
            if following == "&":
                with self.subshell(), self.doubting(executed=False, status_covers=False):
                    self.capture(Sequence(tuple(chain)), stdin)
                self.emit(ANYTHING)
            elif following == ";":
                with self.doubting(status_covers=k + 1 == len(node.items)):
                    self.chain(chain, stdin)
            if following in (";", "&"):
                chain = []

    def chain(self, chain: list[tuple[str, Node]], stdin: Stream) -> None:
        """Walk `a && b || c`, as if all of it ran."""
        status_covers = all(op != "||" for op, _ in chain)
        loud = True  # the commands before would have complained if they had kept the next from running
        for op, item in chain:
            if op == "||":
                with self.uncertain():
                    self.run(item, stdin)
            else:
                with self.doubting(executed=loud, status_covers=status_covers):
                    self.run(item, stdin)
            loud = loud and _is_loud(item)

    def loop(self, node: For, stdin: Stream) -> None:
        """Walk `for`, unrolled if its words are known. Otherwise emit some unknown lines of the output of its turns."""
        words = [self.arg(word) for word in node.words or ()]
        known = node.words is not None and all(word.text is not None and not word.glob for word in words)
        if known and len(words) <= _MOST_TURNS:
            for word in words:
                self.count(1)
                self.assign(node.name, word.known)
                with self.doubting(executed=False, status_covers=False):  # `break`
                    self.run(node.body, stdin)
            return
        claims: Claims = ANYTHING if len(words) > _MOST_TURNS else ()
        with self.uncertain():
            for word in words[:_MOST_TURNS] or [Arg(None, None)]:  # a glob counts as one turn with the pattern
                self.assign(node.name, word.text)
                claims += self.capture(node.body, stdin).claims
        self.emit(unknown(claims))

    def opaque(self, node: Opaque) -> None:
        """Emit Anything, except for a bare test, which prints nothing. Commands inside may write."""
        if node.source.startswith(("[[", "((")):
            return
        self.emit(ANYTHING)
        self.variables.clear()
        self.count(len(node.source) // _CHARS_OF_A_STEP)
        if _MOVES.search(node.source):
            self.cwd = None
        with self.uncertain():
            for command in simple_commands(node.source):
                self.capture(command, Stream())

    def pipeline(self, node: Pipeline, stdin: Stream) -> Stream:
        """Walk each command in its own subshell. Return the stream of the last command."""
        stream = stdin
        for command in node.commands:
            with self.subshell(), self.doubting(status_covers=command is node.commands[-1]):
                stream = self.capture(command, stream)
        return stream

    # simple commands

    def redirect(self, redirects: tuple[Redirect, ...], stdin: Stream) -> Redirected:
        """Return the streams after the redirections, and record the files that the redirections write."""
        out = Redirected(stdin)
        for item in redirects:
            if item.op.startswith("<") and item.op != "<>":
                if item.fd in (None, 0):
                    out = replace(out, stdin=heredoc_stream(item.heredoc) if item.heredoc else Stream())
                continue
            prints, key = written_by(item, self.arg(item.target), self.cwd) if item.target else (True, None)
            if item.op.startswith("&>") or item.fd == 1 or (item.fd is None and item.op != "<>"):
                out = replace(out, prints=prints, file=key, appends=item.op.endswith(">>"))
            if key is not None:
                self.wrote(key)
        return out

    def arg(self, word: Word) -> Arg:
        """Return the argument that `word` becomes here."""
        return arg_of(word, self.variables, self.cwd)

    def command(self, node: SimpleCommand, stdin: Stream) -> Stream:
        """Walk one simple command: its redirections, then the program's effect.

        Return the stream that is still printed or piped.
        """
        self.count(1 + len(node.words))
        redirected = self.redirect(node.redirects, stdin)
        if not node.words:
            for name, word in node.assignments:
                self.assign(name, self.arg(word).text)
            return Stream(())
        args = tuple(self.arg(word) for word in node.words)
        program = Program(args[0].text or "", args[1:], redirected.stdin, self.cwd)
        self.builtin(program)
        effect = self.effect(program)
        for key in (*effect.writes, *effect.possible_writes):
            self.wrote(key, is_certain=key in effect.writes)
        printed = program.stdin if hands_on(program) else Stream(effect.claims)
        authored = effect.authored
        if redirected.file is not None:
            authored += authored_by(printed, [redirected.file], append=redirected.appends)
        with self.doubting(executed=not _hides_complaints(node.redirects)):
            self.author(authored)
        return printed if redirected.prints else Stream(())

    def effect(self, program: Program) -> Effect:
        """Return the claims about the output of a program and the files that it writes."""
        try:
            if program.name in _SHELLS:
                return self.shell(program)
            if (inner := started_by(program, _SHELLS)) is not None:
                effect = self.effect(inner)
                return Effect(ANYTHING, possible_writes=(*effect.writes, *effect.possible_writes))
        except CannotTell:
            return Effect(ANYTHING)
        return effect_of(program)

    def shell(self, program: Program) -> Effect:
        """Return the effect of `bash -c SCRIPT`. The effect of a script in a file or on stdin is not known."""
        option, *rest = program.args or (text_arg(""),)
        if not rest or not re.fullmatch(r"-[a-z]*c", option.known):
            return Effect(ANYTHING)
        source = rest[0].known
        self.count(len(source) // _CHARS_OF_A_STEP)
        node = parse_command(source)
        if node is None:
            return Effect(ANYTHING)
        with self.subshell():
            self.variables = {}
            self.traced = re.search("[xv]", option.known) is not None
            inner = Sequence(((";", node),)) if self.traced else node  # `emit` adds the traced lines
            return Effect(self.capture(inner, program.stdin).claims)

    def builtin(self, program: Program) -> None:
        """Apply the effects of the shell's own commands on directory, variables and tracing."""
        if program.name == "cd":
            self.change_directory(program)
        elif program.name == "set":
            self.traced = self.traced or any(_TRACES.fullmatch(arg.text or "") for arg in program.args)
        elif program.name in _END:
            self.over = True
        elif program.name in _MOVE:
            self.variables.clear()
            self.cwd = None
        elif program.name in _SET_VARIABLES:
            self.variables.clear()

    def change_directory(self, program: Program) -> None:
        """Apply `cd`. If the directory is not known (`cd -`, for example), every relative path after it is unknown."""
        operands = [arg for arg in program.args if not re.match("-.", arg.text or "")] or [text_arg("~")]
        key = None if operands[0].glob or operands[0].text == "-" else program.key(operands[0])
        self.cwd = key and posixpath.normpath(key)  # unlike the kernel, `cd` ignores links before `..`


def _is_loud(node: Node) -> bool:
    """Return True for a command that always complains in the output if it fails."""
    if not isinstance(node, SimpleCommand) or not node.words:
        return False
    return literal(node.words[0], {}) in _LOUD and not _hides_complaints(node.redirects)


def _hides_complaints(redirects: tuple[Redirect, ...]) -> bool:
    """Return True if stderr does not go into the output."""
    return any(redirect.fd == 2 or redirect.op.startswith("&>") for redirect in redirects)
