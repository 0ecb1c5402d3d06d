"""Read the settings from the environment and the flags: session, agent, store, mode."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from readcache.core.model.errors import UsageError
from readcache.core.model.limits import whole_number
from readcache.process.mode import MODES, acts, mode_named
from readcache.process.state import default_store, is_off, store_file

# Names the variable with the session's ID, if READCACHE_SESSION is not set.
SESSION_FROM = "READCACHE_SESSION_FROM"
# Set for the children of a wrapped command, because the agent does not read their output.
INSIDE = "READCACHE_INSIDE"
_WITH_VALUE = ("--policy", "--protected", "--restore", "--store")  # the options of `hook` that take a value


class Settings(NamedTuple):  # not a dataclass: importing them takes longer than everything else that `run` needs
    """The conversation that a call belongs to, and the store of its log. `session` is "" if none was named."""

    session: str
    agent: str
    store: str  # a path or URL; "" for the default
    mode: str  # "on", "advise", "off", or an invalid value of READCACHE
    clip: str  # the part of a long output that the harness shows, see `clip_sizes`
    policy: str  # the name of a preset, see `Policy.named`
    batch: str  # an ID shared by parallel calls; "" for none
    began: float  # approximate start of this process or of the agent's shell, in seconds since the epoch
    protected: str  # comma-separated globs of files, in addition to the default ones
    restore: str  # tokens to restore after a compaction; "" for the policy's own number
    host: str  # the harness, for `readcache gain`; "" if none was named
    model: str  # the name of the model, as for `Policy.model`

    @property
    def acts(self) -> bool:
        """False if commands pass unchanged and nothing else is done."""
        return acts(self.mode) and self.session != "" and not is_off()

    @property
    def context(self) -> str:
        """The value of `INSIDE` for the children of this context's commands."""
        return f"{self.session}/{self.agent}"

    def store_spec(self) -> str:
        """Return the store to open. Raise UsageError if it is the default one and there is no home directory for it."""
        return self.store or default_store()


def read_settings(env: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings. `flags`: the options of the command line by name. They override the environment. An empty
    value counts as not given."""
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
        env.get("READCACHE_MODEL", ""),
    )


def hook_settings(words: Sequence[str], environ: Mapping[str, str]) -> tuple[str, Settings]:
    """Return (the host's name, the settings) of a hook. Raise UsageError for invalid arguments or settings."""
    name, flags = _read_words(words)
    settings = read_settings(environ, flags)
    settings = settings._replace(mode="off") if flags.get("off") else settings
    if settings.mode not in MODES.values():
        raise UsageError(f"invalid READCACHE={settings.mode}: use on, advise or off")
    return name, settings


def _read_words(words: Sequence[str]) -> tuple[str, Mapping[str, str]]:
    """Return (the host's name, the options). Raise UsageError for invalid arguments."""
    names, flags, left = list[str](), dict[str, str](), iter(words)
    for word in left:
        if word in _WITH_VALUE:
            value = next(left, None)
            if value is None:
                raise UsageError(f"{word} needs a value")
            flags[word[2:]] = value
        elif word in ("--advise", "--off"):
            flags[word[2:]] = "yes"
        elif word.startswith("-"):
            raise UsageError(f"hook has no option {word}")
        else:
            names.append(word)
    if len(names) != 1:
        raise UsageError("hook needs exactly one host")
    return names[0], flags


def session_variable(env: Mapping[str, str], session: str) -> str:
    """Return the name of the variable that gave `session`; "" if it was READCACHE_SESSION or no variable."""
    name = env.get(SESSION_FROM, "")
    return name if name and not env.get("READCACHE_SESSION") and session == env.get(name, "") else ""


def clip_sizes(clip: str) -> tuple[int, ...]:
    """Return (head,) or (head, tail) in characters from "10000" or "5000,5000"; () from "". Raise UsageError for
    anything else."""
    sizes = [whole_number(part) for part in clip.split(",")] if clip else []
    found = tuple(size for size in sizes if size is not None)
    if len(sizes) > 2 or len(found) < len(sizes):
        raise UsageError(f"READCACHE_CLIP or --clip {clip!r} is not HEAD or HEAD,TAIL in characters")
    return found


def require_store(spec: str) -> None:
    """Raise UsageError for a spec that cannot be a store: a URL of an unknown kind, a directory, a server without its
    package."""
    path = store_file(spec)
    if path is None:
        from readcache.log.store import open_store

        open_store(spec).close()
    elif os.path.isdir(path):
        raise UsageError(f"the store {spec!r} is a directory: give a file in it")
