"""What the environment and the flags say: session, agent, store, mode."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from readcache.core.model.errors import UsageError
from readcache.core.model.limits import whole_number
from readcache.process.mode import acts, mode_named
from readcache.process.state import default_store, is_off, store_file

# Names the variable that names the session, where READCACHE_SESSION does not.
SESSION_FROM = "READCACHE_SESSION_FROM"
# Set for the children of a wrapped command: what they print is not what the agent reads.
INSIDE = "READCACHE_INSIDE"


class Settings(NamedTuple):  # not a dataclass: importing those takes longer than all else that `run` needs
    """Whose conversation it is and where it is kept. `session` is "" when none was named."""

    session: str
    agent: str
    store: str  # a path or URL; "" for the default
    mode: str  # "on", "advise", "off", or an invalid value of READCACHE
    clip: str  # what the harness shows of a long output, see `clip_sizes`
    policy: str  # the name of a preset, see `Policy.named`
    batch: str  # what this call shares with others that the model made at once; "" for nothing
    began: float  # when this process began, near enough; seconds since the epoch
    protected: str  # globs of files, with commas between, besides the default ones
    restore: str  # tokens that are put back after a compaction; "" for the policy's own
    host: str  # the harness, for `readcache gain`; "" if none was named

    @property
    def acts(self) -> bool:
        """False where commands are let pass and nothing else is done."""
        return acts(self.mode) and self.session != "" and not is_off()

    @property
    def context(self) -> str:
        """The value of `INSIDE` for the children of this context's commands."""
        return f"{self.session}/{self.agent}"

    def store_spec(self) -> str:
        """The store to open. UsageError when there is no home directory to put the default one into."""
        return self.store or default_store()


def read_settings(env: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Settings:
    """`flags`: the options of the command line by name. They win over the environment; an empty value is none."""
    flags = flags or {}
    mode = mode_named(env)

    def named(name: str) -> str:
        return flags.get(name) or env.get(f"READCACHE_{name.upper()}", "")

    mode = "advise" if flags.get("advise") and mode == "on" else mode
    # A host that names the conversation in a variable of its own needs one setting for all its conversations.
    session = named("session") or env.get(env.get(SESSION_FROM, ""), "")
    reader = session, named("agent") or "main", named("store")
    return Settings(
        *reader,
        mode,
        named("clip"),
        named("policy") or "default",
        named("batch"),
        time.time(),
        named("protected"),
        named("restore"),
        env.get("READCACHE_HOST", ""),
    )


def session_variable(env: Mapping[str, str], session: str) -> str:
    """The variable that `session` was taken from, where that is not READCACHE_SESSION; "" for none."""
    name = env.get(SESSION_FROM, "")
    return name if name and not env.get("READCACHE_SESSION") and session == env.get(name, "") else ""


def clip_sizes(clip: str) -> tuple[int, ...]:
    """(head,) or (head, tail) in characters from "10000" or "5000,5000"; () from "". UsageError for anything else."""
    sizes = [whole_number(part) for part in clip.split(",")] if clip else []
    found = tuple(size for size in sizes if size is not None)
    if len(sizes) > 2 or len(found) < len(sizes):
        raise UsageError(f"READCACHE_CLIP or --clip {clip!r} is not HEAD or HEAD,TAIL in characters")
    return found


def require_store(spec: str) -> None:
    """UsageError for what cannot be a store: a URL of an unknown kind, a directory, a server without its package."""
    path = store_file(spec)
    if path is None:
        from readcache.log.store import open_store

        open_store(spec).close()
    elif os.path.isdir(path):
        raise UsageError(f"the store {spec!r} is a directory: give a file in it")
