"""`readcache mcp`: what its options say. The server is in `readcache.hosts`."""

from __future__ import annotations

import argparse
from dataclasses import replace

from readcache.cli.held import chosen_policy
from readcache.cli.settings import Settings
from readcache.policy import Mode


def start_mcp(options: argparse.Namespace, settings: Settings) -> int:
    """Serves until the client goes. Without a named session each start is a new conversation."""
    from readcache.hosts.mcp.server import serve_mcp

    policy = replace(chosen_policy(settings), horizon_tokens=options.horizon)
    if settings.mode not in ("on", "advise"):
        policy = replace(policy, mode=Mode.OFF)
    return serve_mcp(
        options.root,
        policy=policy,
        store=settings.store_spec(),
        conversation=settings.session,
        agent=settings.agent,
        one_reader=options.one_reader,
        host=settings.host or "mcp",
        only_hooks=options.hooks,
    )
