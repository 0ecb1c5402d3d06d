"""Settings for an adapter that runs inside its host, given in Python or in the host's own configuration.

The environment variables work as everywhere else. `READCACHE=off` switches everything off. `READCACHE_POLICY` names a
preset, `READCACHE_STORE` a store, and `READCACHE_PROTECTED` files. `READCACHE_RESTORE` is the size of a restored
section, and `READCACHE_CLEAR` the sizes at which old results are cleared. `READCACHE_MODEL` names the model.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from readcache import Budget, HeadTail, Marks, Mode, Policy, Reply, Session, Sessions, UsageError
from readcache.process.mode import mode_named

T = TypeVar("T")
LOG = logging.getLogger("readcache.hosts")

_SETTINGS = ("policy", "mode", "clip", "root", "store", "protected", "restore", "clear", "on_reply")
_MODES = {"on": Mode.ON, "advise": Mode.ADVISE, "off": Mode.OFF, True: Mode.ON, False: Mode.OFF}  # YAML's on is True


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """The settings of one adapter, all of them valid."""

    root: str  # the directory that relative paths start from
    store: Any  # as for `Session`; None: in memory
    policy: Policy  # also for clearing and restoring, which happen only in mode ON
    on_reply: Callable[[Reply], object] | None

    def told(self, reply: Reply | None) -> Reply | None:
        """Call `on_reply` with the reply, and return the reply. An error in `on_reply` goes to the host's log."""
        heard = self.on_reply
        if heard is not None and reply is not None:
            fallback(lambda: heard(reply), None)
        return reply

    def new_session(self, host: str) -> Session:
        """Return the session of an adapter that has one conversation. `host`: as for `Session`."""
        return Session(self.root, store=self.store, policy=self.policy, host=host)

    def sessions(self, host: str, *, local: bool | None = None) -> Sessions:
        """Return the sessions of an adapter that has many conversations. `host`, `local`: as for `Session`."""
        most = Sessions.MOST
        return Sessions(self.root, store=self.store, policy=self.policy, local=local, host=host, most_readers=most)


def adapter_settings(
    given: Mapping[str, Any], environment: Mapping[str, str] = os.environ, *, window: int | None = None
) -> AdapterSettings:
    """Return the settings in `given`. A setting that is None counts as not given, except "restore". Raise UsageError
    for an invalid value.

    Besides the settings of `policy_by_settings`, `given` may have "root" (default: this process's directory), "store",
    "restore", "clear", and "on_reply" (a function that is called with each Reply).

    "restore" is a Budget, a number of tokens, a share of the model's `window`, True for the policy's budget, or False
    or None for nothing. "clear" is a Marks, [above, down_to] in tokens, True for the default marks in that window, or
    False for none. `window`: the model's context window in tokens, if known.
    """
    given, put_back = {name: value for name, value in given.items() if value is not None}, given
    policy = policy_by_settings(given, environment)
    budget = _budget(put_back.get("restore", True), policy.restore)
    store, heard = given.get("store") or environment.get("READCACHE_STORE") or None, given.get("on_reply")
    if "://" in str(store):
        Session(store=store).close()  # raises UsageError for a URL of an unknown kind of store
    if heard is not None and not callable(heard):
        raise UsageError(f"invalid on_reply {heard!r}: give a function that takes a Reply")
    if policy.mode is not Mode.ON:
        budget = Budget(max_tokens=0)
    marks = _marks(given["clear"], window) if "clear" in given else policy.clear
    policy = replace(policy, restore=budget if window is None else budget.within(window), clear=marks)
    return AdapterSettings(str(given.get("root") or "."), store, policy, heard)


def policy_by_settings(given: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Policy:
    """Return the policy in `given`. Raise UsageError for an invalid value, or an unknown setting.

    "policy" is a Policy, which is used unchanged, or the name of a preset. "mode" is "on", "advise" or "off".
    "protected" is a comma-separated list of globs of files never to omit or store. "clip" is [head, tail] in
    characters: how the host truncates long results.
    """
    if unknown := given.keys() - {*_SETTINGS}:
        raise UsageError(f"unknown setting {', '.join(map(str, unknown))}: choose from {', '.join(_SETTINGS)}")
    if isinstance(policy := given.get("policy"), Policy):
        return policy
    named = mode_named(environment)
    if named not in _MODES:
        raise UsageError(f"invalid READCACHE={named}: use on, advise or off")
    mode = given.get("mode", "advise" if named == "advise" else "on")
    if mode not in _MODES:
        raise UsageError(f"invalid mode {mode!r}: use on, advise or off")
    policy = Policy.named(str(policy or environment.get("READCACHE_POLICY") or "default"))
    protected = str(given.get("protected") or environment.get("READCACHE_PROTECTED", ""))
    policy = policy.protecting(protected).restoring(environment.get("READCACHE_RESTORE", ""))
    policy = policy.clearing(environment.get("READCACHE_CLEAR", ""))
    clip, model = given.get("clip"), environment.get("READCACHE_MODEL", "")
    policy = replace(policy, model=model)
    return replace(policy, mode=Mode.OFF if named == "off" else _MODES[mode], clip=HeadTail(*clip) if clip else None)


def _budget(given: object, default: Budget) -> Budget:
    if isinstance(given, Budget) or given is True:
        return default if given is True else given
    if not isinstance(given, (int, float, type(None))):
        raise UsageError(f"invalid restore {given!r}: use True, False, a number of tokens or a Budget")
    return Budget(max_tokens=given or 0)


def _marks(given: object, window: int | None) -> Marks | None:
    if isinstance(given, (Marks, bool)):
        default = Marks() if window is None else Marks.of_window(window)
        return given if isinstance(given, Marks) else default if given else None
    if not (isinstance(given, (list, tuple)) and [type(size) for size in given] == [int, int]):
        raise UsageError(f"invalid clear {given!r}: use True, False, Marks or [above, down_to] in tokens")
    return Marks(*given)


def model_name(model: object) -> str:
    """Return the name of a host's model: the value itself, or an attribute of it. Return "" if it has none."""
    names = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return model if isinstance(model, str) else next((name for name in names if isinstance(name, str)), "")


def fallback(ours: Callable[[], T], otherwise: T) -> T:
    """Return the result of `ours`. If it raises an exception, log a warning for the host, and return `otherwise`."""
    try:
        return ours()
    except Exception:
        LOG.warning("readcache failed; the host goes on without it", exc_info=True)
        return otherwise
