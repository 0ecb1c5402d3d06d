"""`readcache mcp`: what its options say. The server is in `readcache.hosts`."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from readcache.core.model.errors import UsageError
from readcache.process.buffered import chosen_policy
from readcache.process.settings import Settings


def mcp_command(options: argparse.Namespace, settings: Settings) -> int:
    """Serves until the client goes. Without a named session each start is a new conversation."""
    from readcache.serve.mcp.server import serve_mcp

    if not os.path.isdir(options.root):
        raise UsageError(f"--root {options.root} is not a directory: give the project's")
    policy = replace(chosen_policy(settings), horizon_tokens=options.horizon)
    return serve_mcp(
        options.root,
        policy=policy,
        store=settings.store_spec(),
        conversation=settings.session,
        agent=settings.agent,
        one_reader=options.one_reader,
        host=settings.host or "mcp",
    )
