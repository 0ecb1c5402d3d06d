"""Walks a parsed command in the order in which bash runs it and gathers what is printed and written.

What bash may or may not run (the right side of `||`, the body of an `if`) is gathered as if it ran: lines of a file
that are not there cost nothing. Only literal text counts as foreseen where it surely is printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from readcache.model.claims import Anything, Authored, Claim, Literal, Reading, Write
from readcache.model.paths import canonical_path
from readcache.shell import readers, writers
from readcache.shell.arguments import Arg, CannotTell, Program
from readcache.shell.known_words import arg_of
from readcache.shell.parse import parse_command
from readcache.shell.redirects import input_stream, output_target
from readcache.shell.streams import ANYTHING, Claims, Stream, unknown
from readcache.shell.syntax import (
    For,
    Group,
    If,
    Node,
    Opaque,
    Pipeline,
    Redirect,
    Sequence,
    SimpleCommand,
    literal,
)
from readcache.shell.wrappers import program_name, unwrap
from readcache.shell.writers import Effect

_MOST_TURNS = 50  # a loop over more words than this is not unrolled


def read(node: Node, cwd: str, exit_code: int | None) -> Reading:
    """The reading of a command that ran in `cwd` and ended with `exit_code` (None: not known)."""
    walk = _Walk(canonical_path(cwd, "/"), proven=exit_code == 0, failed=exit_code not in (0, None))
    walk.run(node, Stream(), proven=exit_code == 0)
    return Reading(tuple(walk.out), tuple(walk.writes), tuple(walk.authored))


@dataclass(slots=True)
class _Walk:
    """The state of the shell as far as it is known, and what was gathered."""

    cwd: str | None
    proven: bool  # the whole command succeeded
    failed: bool  # the whole command failed: what is silent as a rule may have complained
    variables: dict[str, str] = field(default_factory=dict)
    old_cwd: str | None = None
    sure: bool = True  # what is walked now surely runs
    blind: bool = False  # stdout went elsewhere for good (`exec >f`)
    out: list[Claim] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    authored: list[Authored] = field(default_factory=list)
    position: int | None = None  # the place in the real output, while `out` is only a pipe

    # what is gathered

    def emit(self, claims: Claims) -> None:
        """Puts claims at the end of the output. Neighbouring texts become one: the longer, the surer it is found."""
        for claim in claims:
            if self.blind or (isinstance(claim, Literal) and not self.sure):
                claim = Anything()
            last = self.out[-1] if self.out else None
            if isinstance(claim, Literal) and isinstance(last, Literal):
                self.out[-1] = Literal(last.text + claim.text)
            elif not (isinstance(claim, Anything) and isinstance(last, Anything)):
                self.out.append(claim)

    def wrote(self, key: str) -> None:
        """Notes a write at this point of the output."""
        write = Write(key, len(self.out) if self.position is None else self.position)
        if write not in self.writes:
            self.writes.append(write)

    def capture(self, node: Node, stdin: Stream, *, proven: bool = False) -> Stream:
        """What `node` sends down its stdout."""
        if isinstance(node, SimpleCommand):
            return self.command(node, stdin)
        outer, position = self.out, self.position
        self.position = len(outer) if position is None else position
        self.out = []
        try:
            self.run(node, stdin, proven=proven)
            return Stream(tuple(self.out))
        finally:
            self.out, self.position = outer, position

    @contextmanager
    def subshell(self) -> Iterator[None]:
        """What is done to directory and variables stays inside."""
        cwd, old_cwd, variables, sure, blind = self.cwd, self.old_cwd, dict(self.variables), self.sure, self.blind
        yield
        self.cwd, self.old_cwd, self.variables, self.sure, self.blind = cwd, old_cwd, variables, sure, blind

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """What is walked inside may not run: afterwards only what it left alone is known."""
        cwd, variables, sure = self.cwd, dict(self.variables), self.sure
        self.sure = False
        yield
        self.sure = sure
        self.cwd = cwd if self.cwd == cwd else None
        for name in {*variables, *self.variables}:
            if variables.get(name) != self.variables.get(name):
                self.variables.pop(name, None)

    # structure

    def run(self, node: Node, stdin: Stream, *, proven: bool = False) -> None:
        """Walks any node. `proven`: its exit status is known to be 0."""
        if isinstance(node, SimpleCommand):
            self.emit(self.command(node, stdin).claims)
        elif isinstance(node, Pipeline):
            self.emit(self.pipeline(node, stdin).claims)
        elif isinstance(node, Sequence):
            self.sequence(node, stdin, proven)
        elif isinstance(node, Opaque):
            self.opaque(node, stdin)
        else:
            self.compound(node, stdin, proven)

    def compound(self, node: Group | If | For, stdin: Stream, proven: bool) -> None:
        """A group, `if` or loop with the redirections behind it."""
        stdin, prints = self.redirect(node.redirects, stdin, None)
        if not prints:
            self.capture(replace(node, redirects=()), stdin, proven=proven)
        elif isinstance(node, For):
            self.loop(node, stdin)
        elif isinstance(node, If):
            for condition, body in node.branches:
                with self.perhaps():
                    self.run(condition, stdin)
                    self.run(body, stdin)
            if node.otherwise is not None:
                with self.perhaps():
                    self.run(node.otherwise, stdin)
            self.sure = self.sure and not _may_leave(node)
        elif node.subshell:
            with self.subshell():
                self.run(node.body, stdin, proven=proven)
        else:
            self.run(node.body, stdin, proven=proven)

    def sequence(self, node: Sequence, stdin: Stream, proven: bool) -> None:
        """`a && b || c; d & e`."""
        chains: list[tuple[tuple[str, Node], ...]] = []
        for op, item in node.items:
            if op in (";", "&") or not chains:
                chains.append(())
            chains[-1] += ((op, item),)
        for k, chain in enumerate(chains):
            last = k + 1 == len(chains)
            if not last and chains[k + 1][0][0] == "&":
                self.discard(chain, stdin)
            else:
                self.chain(chain, stdin, proven and last)

    def chain(self, chain: tuple[tuple[str, Node], ...], stdin: Stream, proven: bool) -> None:
        """`a && b || c`. A chain of && alone that succeeded ran to its end."""
        proven = proven and all(op != "||" for op, _ in chain)
        for k, (op, item) in enumerate(chain):
            if k == 0 or (proven and op == "&&"):
                self.run(item, stdin, proven=proven)
            elif op == "&&":
                sure, self.sure = self.sure, False
                self.run(item, stdin)
                self.sure = sure and not _may_leave(item)
            else:
                with self.perhaps():
                    self.run(item, stdin)
                self.sure = self.sure and not _may_leave(item)

    def discard(self, chain: tuple[tuple[str, Node], ...], stdin: Stream) -> None:
        """In the background: its output comes whenever it likes."""
        with self.subshell():
            self.capture(Sequence(chain), stdin)
        self.emit(ANYTHING)

    def loop(self, node: For, stdin: Stream) -> None:
        """`for`, unrolled when its words are known; a glob stands for one turn with the pattern."""
        words = [arg_of(word, self.variables, self.cwd) for word in node.words or ()]
        known = all(word.text is not None and not word.glob for word in words)
        if node.words is not None and known and len(words) <= _MOST_TURNS:
            for word in words:
                self.variables[node.name] = word.known
                self.run(node.body, stdin)
            return
        claims: Claims = () if words else ANYTHING
        with self.perhaps():
            for word in words[:_MOST_TURNS] or [Arg(None, None)]:
                self.variables.pop(node.name, None)
                if word.text is not None:
                    self.variables[node.name] = word.text
                claims += self.capture(node.body, stdin).claims
        self.emit(unknown(claims))

    def opaque(self, node: Opaque, stdin: Stream) -> None:
        """Anything may have happened; a bare test prints nothing, and `! a` prints what `a` does."""
        if node.source.startswith(("[[", "((")):
            return
        negated = parse_command(node.source[1:]) if node.source.startswith("!") else None
        if negated is not None:
            self.run(negated, stdin)
            return
        self.emit(ANYTHING)
        self.variables.clear()
        if re.search(r"\b(?:cd|pushd|popd)\b", node.source):
            self.cwd = None
        if any(re.search(rf"\b{word}\b", node.source) for word in _LEAVING):
            self.sure = False

    def pipeline(self, node: Pipeline, stdin: Stream) -> Stream:
        """Each command in a subshell of its own."""
        stream = stdin
        for command in node.commands:
            with self.subshell():
                stream = self.capture(command, stream)
        return stream

    # redirections

    def redirect(self, redirects: tuple[Redirect, ...], stdin: Stream, program: Program | None) -> tuple[Stream, bool]:
        """(stdin, is stdout still printed) behind the redirections; the files they write are noted.

        With a `program` that hands its stdin on, a heredoc that goes into a file is noted as authored.
        """
        prints = True
        targets: list[tuple[str, bool]] = []
        for item in redirects:
            if item.op.startswith("<") and item.op != "<>":
                if item.fd in (None, 0):
                    stdin = input_stream(item, self.variables, self.cwd)
                continue
            goes_on, key = output_target(item, self.variables, self.cwd)
            if item.op in ("&>", "&>>") or item.fd in (None, 1) or (item.op == "<>" and item.fd == 1):
                prints = goes_on
                if key is not None:
                    targets.append((key, item.op.endswith(">>")))
            if key is not None:
                self.wrote(key)
        if program is not None and targets:
            handed_on = readers.passes_through(replace(program, stdin=stdin))
            if handed_on is not None:
                key, append = targets[-1]
                self.note(writers.authored_by(handed_on, (key,), append=append))
        return stdin, prints

    def note(self, authored: tuple[tuple[str, str, int], ...]) -> None:
        """Notes texts of the command's own that went into files."""
        self.authored.extend(Authored(key, text, first) for key, text, first in authored)

    # simple commands

    def command(self, node: SimpleCommand, stdin: Stream) -> Stream:
        """One simple command: its redirections, then what the program prints and writes."""
        if not node.words:
            self.redirect(node.redirects, stdin, None)
            self.assign(node)
            return Stream(())
        args = tuple(arg_of(word, self.variables, self.cwd) for word in node.words)
        bare = Program(program_name(args[0].text or ""), args[1:], stdin, self.cwd)
        program = unwrap(bare)
        stdin, prints = self.redirect(node.redirects, stdin, program)
        if bare.name == "exec" and len(args) == 1:
            self.blind = self.blind or not prints
        if program is None:
            return Stream(ANYTHING if prints and args[1:] else ())
        program = replace(program, stdin=stdin)
        self.builtin(program)
        effect = self.effect(program)
        for key in effect.writes:
            self.wrote(key)
        self.note(effect.authored)
        handed_on = readers.passes_through(program)
        if not prints:
            return Stream(())
        if self.failed and effect.writes and not effect.claims:
            return Stream()
        return handed_on if handed_on is not None else Stream(effect.claims)

    def assign(self, node: SimpleCommand) -> None:
        """`A=1 B=$(…)` alone."""
        for name, word in node.assignments:
            value = literal(word, self.variables)
            if value is None or name.endswith(("+", "]")):
                self.variables.pop(name.rstrip("+"), None)
            else:
                self.variables[name] = value

    def effect(self, program: Program) -> Effect:
        """What a program prints and writes."""
        try:
            if program.name in _SHELLS:
                return Effect(self.shell(program))
            write, read = writers.WRITERS.get(program.name), readers.READERS.get(program.name)
            written = write(program) if write is not None else None
            return written or Effect(ANYTHING if read is None else read(program))
        except CannotTell:
            return Effect(ANYTHING)

    def shell(self, program: Program) -> Claims:
        """`bash -c SCRIPT` and `bash <<EOF`."""
        args = list(program.args)
        while args and re.fullmatch(r"-[a-zA-Z]+", args[0].text or "") and not args[0].known.endswith("c"):
            args.pop(0)
        if args and re.fullmatch(r"-[a-zA-Z]*c", args[0].text or "") and len(args) > 1:
            source, stdin = args[1].known, program.stdin
        elif not args and program.stdin.body is not None and program.stdin.claims != ANYTHING:
            source, stdin = program.stdin.body, Stream()
        else:
            raise CannotTell
        node = parse_command(source)
        if node is None:
            raise CannotTell
        with self.subshell():
            self.variables = {}
            return self.capture(Sequence(((";", node),)), stdin).claims

    def builtin(self, program: Program) -> None:
        """What the shell's own commands do to directory, variables and the rest of the command."""
        if program.name == "cd" or program.name == "pushd":
            self.change_directory(program)
        elif program.name == "popd":
            self.cwd, self.old_cwd = self.old_cwd, None
        elif program.name in ("export", "declare", "local", "readonly", "typeset"):
            for arg in program.args:
                name, equals, value = (arg.text or "").partition("=")
                if equals:
                    self.variables[name] = value
            if any(arg.text is None for arg in program.args):
                self.variables.clear()
        elif program.name in ("read", "unset", "mapfile", "readarray", "getopts", "eval", "source", "."):
            self.variables.clear()
        elif program.name in _LEAVING or (program.name == "set" and not self.proven and _stops_at_errors(program)):
            self.sure = False

    def change_directory(self, program: Program) -> None:
        """`cd`; a directory that is not known makes every relative path after it unknown."""
        operands = [arg for arg in program.args if arg.text is None or arg.text == "-" or not arg.text.startswith("-")]
        old = self.cwd
        if not operands:
            self.cwd = "~"
        elif operands[0].text == "-":
            self.cwd = self.old_cwd
        else:
            self.cwd = None if operands[0].glob else program.key(operands[0])
        self.old_cwd = old


_SHELLS = ("bash", "sh", "zsh", "dash")
_LEAVING = ("exit", "return", "break", "continue")


def _stops_at_errors(program: Program) -> bool:
    return any(re.match(r"-\w*e", arg.text or "") for arg in program.args)


def _may_leave(node: Node) -> bool:
    """May what follows `node` not run because of it?"""
    if isinstance(node, SimpleCommand):
        return bool(node.words) and literal(node.words[0], {}) in _LEAVING
    if isinstance(node, Sequence):
        return any(_may_leave(item) for _, item in node.items)
    if isinstance(node, If):
        bodies = [body for _, body in node.branches]
        return any(map(_may_leave, bodies)) or (node.otherwise is not None and _may_leave(node.otherwise))
    return isinstance(node, Group) and not node.subshell and _may_leave(node.body)
