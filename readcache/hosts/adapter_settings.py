"""What a user may set for an adapter that runs inside its host, in the host's own configuration.

The environment has its say as everywhere: `READCACHE=off` switches everything off, `READCACHE_POLICY` names a preset.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from readcache import HeadTail, Mode, Policy, Session, UsageError
from readcache.process.mode import mode_named

_SETTINGS = ("policy", "mode", "clip", "root", "store", "protected")
_MODES = {"on": Mode.ON, "advise": Mode.ADVISE, "off": Mode.OFF, True: Mode.ON, False: Mode.OFF}  # YAML's on is True


def policy_by_settings(given: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Policy:
    """The policy of `given`: "policy" (the name of a preset), "mode" ("on", "advise", "off"), "protected" (globs of
    files never to omit or store, with commas between) and "clip" ([head, tail] in characters: how the host cuts long
    results). UsageError for what means nothing."""
    if unknown := given.keys() - {*_SETTINGS}:
        raise UsageError(f"unknown setting {', '.join(map(str, unknown))}: choose from {', '.join(_SETTINGS)}")
    named = mode_named(environment)
    if named not in _MODES:
        raise UsageError(f"invalid READCACHE={named}: use on, advise or off")
    mode = given.get("mode", "advise" if named == "advise" else "on")
    if mode not in _MODES:
        raise UsageError(f"invalid mode {mode!r}: use on, advise or off")
    policy = Policy.named(str(given.get("policy") or environment.get("READCACHE_POLICY") or "default"))
    protected = str(given.get("protected") or environment.get("READCACHE_PROTECTED", ""))
    policy, clip = policy.protecting(protected), given.get("clip")
    return replace(policy, mode=Mode.OFF if named == "off" else _MODES[mode], clip=HeadTail(*clip) if clip else None)


def session_by_settings(given: Mapping[str, Any], *, host: str, local: bool | None = None) -> Session:
    """A new conversation: `policy_by_settings`, "root" (the directory that paths are of; else the one where this
    process is) and "store" (a file to keep the log in; else memory). `host`, `local`: as for `Session`. UsageError for
    what means nothing."""
    policy = policy_by_settings(given)
    return Session(given.get("root") or ".", store=given.get("store"), policy=policy, local=local, host=host)
