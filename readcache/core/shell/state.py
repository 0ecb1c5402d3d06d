"""The state of the shell while a command is walked, and everything gathered so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from readcache.core.model.claims import Anything, Authored, Claim, Literal, Write
from readcache.core.shell.streams import Claims
from readcache.core.shell.syntax import TooLong

_MOST_STEPS = 20_000  # commands and words of one reading
_LONGEST_VALUE = 10_000  # characters of a variable: `a=$a$a` doubles it each time


@dataclass(slots=True)
class ShellState:
    """The state of the shell as far as it is known, and what was gathered."""

    cwd: str | None
    is_certain: bool = True  # what is walked now is believed to run
    executed: bool = True  # nothing can keep it from running
    status_covers: bool = True  # the whole command's status is 0 only if it succeeds
    traced: bool = False  # `set -x`, `set -v`: the shell prints lines of its own before those of each command
    over: bool = False  # the shell may have exited before this
    variables: dict[str, str] = field(default_factory=dict)
    out: list[Claim] = field(default_factory=list)
    writes: dict[Write, None] = field(default_factory=dict)  # in order
    authored: list[Authored] = field(default_factory=list)
    position: int | None = None  # the place in the real output, while `out` is only a pipe
    steps: int = 0  # commands and words so far, of all loops and scripts together

    def emit(self, claims: Claims) -> None:
        """Puts claims at the end of the output. Neighbouring texts become one: the longer, the surer it is found."""
        for claim in (Anything(), *claims, Anything()) if self.traced else claims:
            if isinstance(claim, Literal) and not self.is_certain:
                claim = Anything()
            last = self.out[-1] if self.out else None
            if isinstance(claim, Literal) and isinstance(last, Literal):
                self.out[-1] = Literal(last.text + claim.text)
            elif not (isinstance(claim, Anything) and isinstance(last, Anything)):
                self.out.append(claim)

    def wrote(self, key: str, *, is_certain: bool = True) -> None:
        """Note a write at this point of the output."""
        self.writes.setdefault(Write(key, len(self.out) if self.position is None else self.position, is_certain))

    def count(self, steps: int) -> None:
        """Raises TooLong when it is enough."""
        self.steps += steps
        if self.steps > _MOST_STEPS:
            raise TooLong

    @contextmanager
    def subshell(self) -> Iterator[None]:
        """What is done to directory, variables and options stays inside."""
        cwd, variables, traced = self.cwd, dict(self.variables), self.traced
        yield
        self.cwd, self.variables, self.traced = cwd, variables, traced

    @contextmanager
    def uncertain(self) -> Iterator[None]:
        """What is walked inside may not run: afterwards only what it left alone is known."""
        cwd, variables, is_certain = self.cwd, dict(self.variables), self.is_certain
        self.is_certain = False
        with self.doubting(executed=False, status_covers=False):
            yield
        self.is_certain = is_certain
        self.cwd = cwd if self.cwd == cwd else None
        self.variables = {name: value for name, value in variables.items() if self.variables.get(name) == value}

    @contextmanager
    def doubting(self, *, executed: bool = True, status_covers: bool = True) -> Iterator[None]:
        """The part walked inside may not have `executed`, or the status of the whole command does not cover it."""
        before = self.executed, self.status_covers
        self.executed, self.status_covers = self.executed and executed, self.status_covers and status_covers
        yield
        self.executed, self.status_covers = before

    def author(self, texts: Iterable[Authored]) -> None:
        """Notes texts that become files' contents, if this command does what it should."""
        executed, status_covers = self.executed and not self.over, self.status_covers and not self.over
        self.authored.extend(replace(text, executed=executed, status_covers=status_covers) for text in texts)

    def assign(self, name: str, value: str | None) -> None:
        """Gives a variable a value; None: it is not known any more."""
        self.variables.pop(name, None)
        if value is not None and len(value) <= _LONGEST_VALUE:
            self.variables[name] = value
