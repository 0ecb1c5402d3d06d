"""What one program does, as far as its words tell."""

from __future__ import annotations

from dataclasses import dataclass

from readcache.model.claims import Authored
from readcache.shell.streams import ANYTHING, Claims


@dataclass(frozen=True, slots=True)
class Effect:
    """What a program prints, the keys that it writes, those that it may write, the script that it runs and that may
    write any, and the texts of the command's own that went into files."""

    claims: Claims = ()
    writes: tuple[str, ...] = ()
    authored: tuple[Authored, ...] = ()
    perhaps: tuple[str, ...] = ()
    script: str | None = None


def may_have_written(*keys: str) -> Effect:
    """Of a program that prints nobody knows what."""
    return Effect(ANYTHING, perhaps=keys)
