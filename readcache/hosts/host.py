"""What the command line has to know of a host: which settings switch it on, and what answers its hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from readcache import Sessions


class Where(NamedTuple):
    """The place at which a host is switched on."""

    root: str  # the project's directory, absolute
    home: str  # the user's
    is_user: bool  # for all of the user's projects, not for this one alone
    program: tuple[str, ...]  # the words that start this readcache, e.g. ("/venv/bin/readcache",)
    mode: str  # "on", "advise" or "off"
    policy: str  # the name of a preset, see `Policy.named`
    environment: Mapping[str, str] = {}  # this process's: some hosts name their directory there


@dataclass(frozen=True, slots=True)
class Entry:
    """A value that is put into a settings file (JSON with comments, TOML or YAML, by its suffix).

    `keys` leads to it from the top; mappings that are missing are made. Where a list stands there, or the last key is
    "+", `value` is appended to the list; else it is set, which is refused where the user has another value.
    """

    path: str
    keys: tuple[str, ...]
    value: object


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is ours as a whole: a plugin, a hook's script."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Host:
    """One host. `hook` answers an event of its hooks; None: nothing is printed, and the host goes on as without us."""

    name: str
    mode: str  # without --advise or --off: "on" where the host tells what leaves the conversation, else "advise"
    why: str  # of that mode, one sentence that `init` prints
    changes: Callable[[Where], Sequence[Entry | OwnFile]]
    hook: Callable[[Mapping[str, Any], Sessions], Mapping[str, Any] | None] | None = None
    in_force: Callable[[Where], str] | None = None  # what `doctor` says; raises ReadcacheError with what is wrong
