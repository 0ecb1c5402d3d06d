"""`readcache serve`: the settings of the command line for the server."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from readcache.cli.held import chosen_policy
from readcache.cli.settings import Settings
from readcache.hosts.serve import server
from readcache.policy import Mode


def serve(settings: Settings, socket_path: str | None, *, may_run: bool) -> int:
    """Answers until there is nobody to answer. `may_run` is for a socket: who starts us on stdin may run what he likes.
    UsageError."""
    policy, store = chosen_policy(settings), cast("str | None", settings.store_spec())
    if settings.mode not in ("on", "advise"):
        policy, store = replace(policy, mode=Mode.OFF), None  # nothing is recorded, so that there is nothing to keep
    return server.answer_clients(
        socket_path=socket_path,
        store=store,
        policy=policy,
        may_run=may_run or socket_path is None,
        host=settings.host or "serve",
    )
