"""The state of the shell while a command is walked, and everything gathered so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from readcache.core.model.claims import Anything, Authored, Claim, Literal, Write
from readcache.core.shell.streams import Claims
from readcache.core.shell.syntax import TooLong

_MOST_STEPS = 20_000  # commands and words in one reading
_LONGEST_VALUE = 10_000  # characters in a variable: `a=$a$a` doubles it each time


@dataclass(slots=True)
class ShellState:
    """The state of the shell, if it is known, and everything gathered so far."""

    cwd: str | None
    is_certain: bool = True  # the part that is walked now is expected to run
    executed: bool = True  # only a failure that complains in the output can keep the part from running
    status_covers: bool = True  # the whole command's status is 0 only if it succeeds
    traced: bool = False  # `set -x`, `set -v`: the shell prints its own lines before the output of each command
    over: bool = False  # the shell may have exited before this
    variables: dict[str, str] = field(default_factory=dict)
    out: list[Claim] = field(default_factory=list)
    writes: dict[Write, None] = field(default_factory=dict)  # in order
    authored: list[Authored] = field(default_factory=list)
    position: int | None = None  # the index in the real output, while `out` is only a pipe
    steps: int = 0  # commands and words so far, of all loops and scripts together

    def emit(self, claims: Claims) -> None:
        """Add claims to the end of the output.

        Adjacent texts become one, because a longer text is found more reliably. A text that may not be printed becomes
        Anything.
        """
        for claim in (Anything(), *claims, Anything()) if self.traced else claims:
            if isinstance(claim, Literal) and not self.is_certain:
                claim = Anything()
            last = self.out[-1] if self.out else None
            if isinstance(claim, Literal) and isinstance(last, Literal):
                self.out[-1] = Literal(last.text + claim.text)
            elif not (isinstance(claim, Anything) and isinstance(last, Anything)):
                self.out.append(claim)

    def wrote(self, key: str, *, is_certain: bool = True) -> None:
        """Record a write at this point of the output."""
        self.writes.setdefault(Write(key, len(self.out) if self.position is None else self.position, is_certain))

    def count(self, steps: int) -> None:
        """Count commands and words. Raise TooLong if there are more than `_MOST_STEPS` in this reading."""
        self.steps += steps
        if self.steps > _MOST_STEPS:
            raise TooLong

    @contextmanager
    def subshell(self) -> Iterator[None]:
        """Restore directory, variables and tracing afterwards: a subshell does not change them outside."""
        cwd, variables, traced = self.cwd, dict(self.variables), self.traced
        yield
        self.cwd, self.variables, self.traced = cwd, variables, traced

    @contextmanager
    def uncertain(self) -> Iterator[None]:
        """Walk a part that may not run.

        Afterwards, only the directory and the variables that it did not change are known.
        """
        cwd, variables, is_certain = self.cwd, dict(self.variables), self.is_certain
        self.is_certain = False
        with self.doubting(executed=False, status_covers=False):
            yield
        self.is_certain = is_certain
        self.cwd = cwd if self.cwd == cwd else None
        self.variables = {name: value for name, value in variables.items() if self.variables.get(name) == value}

    @contextmanager
    def doubting(self, *, executed: bool = True, status_covers: bool = True) -> Iterator[None]:
        """Walk a part that may not have `executed`, or whose failure the status of the whole command may not cover."""
        before = self.executed, self.status_covers
        self.executed, self.status_covers = self.executed and executed, self.status_covers and status_covers
        yield
        self.executed, self.status_covers = before

    def author(self, texts: Iterable[Authored]) -> None:
        """Record texts that become files' contents if this command succeeds."""
        executed, status_covers = self.executed and not self.over, self.status_covers and not self.over
        self.authored.extend(replace(text, executed=executed, status_covers=status_covers) for text in texts)

    def assign(self, name: str, value: str | None) -> None:
        """Give a variable a value. With None, or a value that is too long, the variable is not known any more."""
        self.variables.pop(name, None)
        if value is not None and len(value) <= _LONGEST_VALUE:
            self.variables[name] = value
