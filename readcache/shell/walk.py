"""Walks a parsed command in the order in which bash runs it and gathers what is printed and written.

What bash may or may not run (the right side of `||`, the body of an `if`) is gathered as if it ran: lines of a file
that are not there cost nothing. Its text is no landmark, and directory and variables that it changes are unknown after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from readcache.model.claims import Anything, Authored, Claim, Literal, Reading, Write
from readcache.model.paths import canonical_path
from readcache.shell.arguments import Arg, CannotTell, Program, text_arg
from readcache.shell.certainty import hides_complaints, is_loud
from readcache.shell.parse import parse_command
from readcache.shell.readers import READERS, hands_on
from readcache.shell.streams import ANYTHING, Claims, Stream, heredoc_stream, literal_stream, unknown
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
    Variable,
    Word,
    WordText,
    has_glob,
    literal,
)
from readcache.shell.wrappers import program_name, unwrap
from readcache.shell.writers import WRITERS, Effect, authored_by

_MOST_TURNS = 50  # a loop over more words than this is not unrolled
_SHELLS = ("bash", "sh", "zsh", "dash")
_DEVICE = re.compile("/dev/(?!shm/)")  # what is below /dev/shm are files
_SAME_OUTPUT = ("/dev/stdout", "/dev/stderr", "/dev/tty")


def read(node: Node, cwd: str, exit_code: int | None) -> Reading:
    """The reading of a command that ran in `cwd` and ended with `exit_code` (None: not known)."""
    walk = _Walk(canonical_path(cwd, "/"), failed=exit_code not in (0, None))
    walk.run(node, Stream())
    return Reading(tuple(walk.out), tuple(walk.writes), tuple(walk.authored))


@dataclass(slots=True)
class _Walk:
    """The state of the shell as far as it is known, and what was gathered."""

    cwd: str | None
    failed: bool  # the whole command failed: what is silent as a rule may have complained
    sure: bool = True  # what is walked now is believed to run
    ran: bool = True  # nothing can keep it from running
    told: bool = True  # the whole command's status is 0 only if it succeeds
    over: bool = False  # what is walked now may come after the end of it all
    heard: bool = True  # what it complains about is in the output
    variables: dict[str, str] = field(default_factory=dict)
    out: list[Claim] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    authored: list[Authored] = field(default_factory=list)
    position: int | None = None  # the place in the real output, while `out` is only a pipe

    # what is gathered

    def emit(self, claims: Claims) -> None:
        """Puts claims at the end of the output. Neighbouring texts become one: the longer, the surer it is found."""
        for claim in claims:
            if isinstance(claim, Literal) and not self.sure:
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

    def capture(self, node: Node, stdin: Stream) -> Stream:
        """What `node` sends down its stdout."""
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

    @contextmanager
    def subshell(self) -> Iterator[None]:
        """What is done to directory and variables stays inside."""
        cwd, variables = self.cwd, dict(self.variables)
        yield
        self.cwd, self.variables = cwd, variables

    @contextmanager
    def perhaps(self) -> Iterator[None]:
        """What is walked inside may not run: afterwards only what it left alone is known."""
        cwd, variables, sure = self.cwd, dict(self.variables), self.sure
        self.sure = False
        with self.doubting(ran=False, told=False):
            yield
        self.sure = sure
        self.cwd = cwd if self.cwd == cwd else None
        self.variables = {name: value for name, value in variables.items() if self.variables.get(name) == value}

    @contextmanager
    def doubting(self, *, ran: bool = True, told: bool = True) -> Iterator[None]:
        """What is walked inside may not have `ran`, or the status of the whole command does not tell of it."""
        before = self.ran, self.told
        self.ran, self.told = self.ran and ran, self.told and told
        yield
        self.ran, self.told = before

    # structure

    def run(self, node: Node, stdin: Stream) -> None:
        """Walks any node."""
        if isinstance(node, SimpleCommand):
            self.emit(self.command(node, stdin).claims)
        elif isinstance(node, Pipeline):
            self.emit(self.pipeline(node, stdin).claims)
        elif isinstance(node, Sequence):
            self.sequence(node, stdin)
        elif isinstance(node, Opaque):
            self.opaque(node, stdin)
        else:
            self.compound(node, stdin)

    def compound(self, node: Group | If | For, stdin: Stream) -> None:
        """A group, `if` or loop with the redirections behind it."""
        heard = self.heard
        redirected = self.redirect(node.redirects, stdin)
        stdin = redirected.stdin
        if not redirected.prints:
            self.capture(replace(node, redirects=()), stdin)
        elif isinstance(node, For):
            self.loop(node, stdin)
        elif isinstance(node, If):
            otherwise: tuple[Node, ...] = () if node.otherwise is None else (node.otherwise,)
            for branch in (*node.branches, otherwise):
                with self.perhaps():
                    for part in branch:
                        self.run(part, stdin)
        elif node.subshell:
            with self.subshell():
                self.run(node.body, stdin)
        else:
            self.run(node.body, stdin)
        self.heard = heard

    def sequence(self, node: Sequence, stdin: Stream) -> None:
        """`a && b || c; d & e`. The output of what runs in the background comes whenever it likes."""
        chain: list[tuple[str, Node]] = []
        for k, (op, item) in enumerate(node.items):
            chain.append((op, item))
            following = node.items[k + 1][0] if k + 1 < len(node.items) else ";"
            if following == "&":
                with self.subshell(), self.doubting(ran=False, told=False):
                    self.capture(Sequence(tuple(chain)), stdin)
                self.emit(ANYTHING)
            elif following == ";":
                with self.doubting(told=k + 1 == len(node.items)):
                    self.chain(chain, stdin)
            if following in (";", "&"):
                chain = []

    def chain(self, chain: list[tuple[str, Node]], stdin: Stream) -> None:
        """`a && b || c`, with all of it taken to run."""
        told = all(op != "||" for op, _ in chain)
        loud = True  # what ran before would have complained if it had kept the next from running
        for op, item in chain:
            if op == "||":
                with self.perhaps():
                    self.run(item, stdin)
            else:
                with self.doubting(ran=loud, told=told):
                    self.run(item, stdin)
            loud = loud and is_loud(item)

    def loop(self, node: For, stdin: Stream) -> None:
        """`for`, unrolled when its words are known; else some of what its turns print."""
        words = [self.arg(word) for word in node.words or ()]
        known = node.words is not None and all(word.text is not None and not word.glob for word in words)
        if known and len(words) <= _MOST_TURNS:
            for word in words:
                self.variables[node.name] = word.known
                with self.doubting(ran=False, told=False):  # `break`
                    self.run(node.body, stdin)
            return
        claims: Claims = ANYTHING if len(words) > _MOST_TURNS else ()
        with self.perhaps():
            for word in words[:_MOST_TURNS] or [Arg(None, None)]:  # a glob stands for one turn with the pattern
                self.assign(node.name, word.text)
                claims += self.capture(node.body, stdin).claims
        self.emit(unknown(claims))

    def opaque(self, node: Opaque, stdin: Stream) -> None:
        """Anything may have happened; a bare test prints nothing, and `! a` prints what `a` does."""
        if node.source.startswith(("[[", "((")):
            return
        negated = parse_command(node.source[1:]) if node.source.startswith("!") else None
        if negated is not None:
            with self.doubting(told=False):
                self.run(negated, stdin)
            return
        self.emit(ANYTHING)
        self.variables.clear()
        if re.search(r"\b(?:cd|pushd|popd)\b", node.source):
            self.cwd = None

    def pipeline(self, node: Pipeline, stdin: Stream) -> Stream:
        """Each command in a subshell of its own."""
        stream = stdin
        for command in node.commands:
            with self.subshell(), self.doubting(told=command is node.commands[-1]):
                stream = self.capture(command, stream)
        return stream

    # simple commands

    def redirect(self, redirects: tuple[Redirect, ...], stdin: Stream) -> _Redirected:
        """The streams behind the redirections; the files that these write are noted."""
        out = _Redirected(stdin)
        for item in redirects:
            if item.op.startswith("<") and item.op != "<>":
                if item.fd in (None, 0):
                    out = replace(out, stdin=self.source(item))
                continue
            prints, key = self.target(item)
            piped = self.position is not None or not out.prints
            self.heard = self.heard and not hides_complaints(item, reaches_reader=prints, stdout_is_away=piped)
            if item.op.startswith("&>") or item.fd == 1 or (item.fd is None and item.op != "<>"):
                out = replace(out, prints=prints, file=key, appends=item.op.endswith(">>"))
            if key is not None:
                self.wrote(key)
        return out

    def source(self, item: Redirect) -> Stream:
        """The stream that `<`, `<<` or `<<<` makes stdin."""
        if item.heredoc is not None:
            return heredoc_stream(item.heredoc)
        if item.target is None or item.op == "<&":
            return Stream()
        if item.op == "<<<":
            text = literal(item.target, self.variables)
            return Stream() if text is None else literal_stream(text + "\n")
        arg = self.arg(item.target)
        return Stream() if arg.glob or arg.path == "-" else Stream(Program("", (), Stream(), self.cwd).lines(arg))

    def target(self, item: Redirect) -> tuple[bool, str | None]:
        """(does the output still reach the reader, the key of the file that is written) for one redirection."""
        if item.target is None:
            return True, None
        arg = self.arg(item.target)
        if item.op == ">&" and re.fullmatch(r"\d+-?|-", arg.text or ""):
            return arg.text != "-", None
        key = Program("", (), Stream(), self.cwd).key(arg)
        if key in _SAME_OUTPUT:
            return True, None
        return False, None if key is None or _DEVICE.match(key) else key

    def arg(self, word: Word) -> Arg:
        """The argument that `word` becomes here."""
        return arg_of(word, self.variables, self.cwd)

    def command(self, node: SimpleCommand, stdin: Stream) -> Stream:
        """One simple command: its redirections, then what the program prints and writes."""
        heard = self.heard
        try:
            return self.simple(node, stdin)
        finally:
            self.heard = heard

    def simple(self, node: SimpleCommand, stdin: Stream) -> Stream:
        """`command`, with what it does not hear staying unheard."""
        redirected = self.redirect(node.redirects, stdin)
        if not node.words:
            for name, word in node.assignments:
                self.assign(name, literal(word, self.variables))
            return Stream(())
        args = tuple(self.arg(word) for word in node.words)
        program = unwrap(Program(program_name(args[0].text or ""), args[1:], redirected.stdin, self.cwd))
        if program is None:
            return Stream(ANYTHING if redirected.prints and args[1:] else ())
        self.builtin(program)
        effect = self.effect(program)
        for key in effect.writes:
            self.wrote(key)
        self.author(effect.authored)
        printed = program.stdin if hands_on(program) else Stream(effect.claims)
        if redirected.file is not None:
            self.author(authored_by(printed, [redirected.file], append=redirected.appends))
        if not redirected.prints:
            return Stream(())
        return Stream() if self.failed and effect.writes and not effect.claims else printed

    def author(self, texts: Iterable[Authored]) -> None:
        """Notes texts that become files' contents, if this command does what it should."""
        ran, told = self.ran and self.heard and not self.over, self.told and not self.over
        self.authored.extend(replace(text, ran=ran, told_by_status=told) for text in texts)

    def assign(self, name: str, value: str | None) -> None:
        """Gives a variable a value; None: it is not known any more."""
        self.variables.pop(name, None)
        if value is not None:
            self.variables[name] = value

    def effect(self, program: Program) -> Effect:
        """What a program prints and writes."""
        try:
            if program.name in _SHELLS:
                return Effect(self.shell(program))
            write, read = WRITERS.get(program.name), READERS.get(program.name)
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
            return self.capture(node, stdin).claims

    def builtin(self, program: Program) -> None:
        """What the shell's own commands do to directory and variables."""
        if program.name == "cd":
            self.change_directory(program)
        elif program.name in ("pushd", "popd"):
            self.cwd = None
        elif program.name in ("exit", "exec", "return", "trap", "kill"):
            self.over = True
        elif program.name in ("export", "declare", "local", "readonly", "typeset"):
            for arg in program.args:
                name, equals, value = (arg.text or "").partition("=")
                if equals:
                    self.variables[name] = value
            if any(arg.text is None for arg in program.args):
                self.variables.clear()
        elif program.name in ("read", "unset", "mapfile", "readarray", "getopts", "eval", "source", "."):
            self.variables.clear()

    def change_directory(self, program: Program) -> None:
        """`cd`; a directory that is not known (`cd -` too) makes every relative path after it unknown."""
        operands = [arg for arg in program.args if not re.match("-.", arg.text or "")] or [text_arg("~")]
        self.cwd = None if operands[0].glob or operands[0].text == "-" else program.key(operands[0])


def arg_of(word: Word, variables: Mapping[str, str], cwd: str | None) -> Arg:
    """The argument that `word` becomes. `$HOME` and `$PWD` are known as paths only."""
    text = literal(word, variables)
    places = {"HOME": "~", "PWD": cwd} if cwd else {"HOME": "~"}
    path = text if text is not None else literal(word, {**places, **variables})
    first = word.parts[0] if word.parts else WordText("")
    tilde = isinstance(first, Variable) or (isinstance(first, WordText) and not first.quoted)
    if path is not None and path.startswith("~") and not tilde:
        path = "./" + path
    if text is not None and text.startswith("~") and tilde:
        text = None
    return Arg(text, path, has_glob(word))


@dataclass(frozen=True, slots=True)
class _Redirected:
    """What a command reads, whether its stdout is still printed, and else the file that it goes into."""

    stdin: Stream
    prints: bool = True
    file: str | None = None
    appends: bool = False
