"""GitHub Copilot SDK: the CLI's hook, answered inside your own program.

    session = await client.create_session(..., hooks=copilot_hooks("/repo"))

The package starts the Copilot CLI, so everything else is as in `copilot`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from readcache.hosts.adapter_settings import adapter_settings, fallback
from readcache.hosts.copilot import copilot_home, copilot_hook, events_file

if TYPE_CHECKING:
    from copilot import SessionHooks


def copilot_hooks(
    root: str = ".", more: Mapping[str, Any] | None = None, *, base_directory: str | None = None, **settings: Any
) -> SessionHooks:
    """Return the hooks for `create_session(hooks=...)` and `resume_session`. They may serve any number of sessions.

    `root`: the directory that relative paths start from. `more`: your own hooks, which are called first.
    `base_directory`: as you give it to the client; None for COPILOT_HOME, or `~/.copilot`. `settings`: as for
    `adapter_settings`, e.g. `store`, `policy` and `on_reply`. Raise UsageError for an invalid value.
    """
    made = adapter_settings({"root": root, **settings})
    sessions, own = made.sessions("copilot-sdk"), (more or {}).get("on_post_tool_use")
    home = base_directory or copilot_home(os.environ)

    async def after_tool(event: Any, invocation: Any) -> Any:
        answer: dict[str, Any] = {}
        if own is not None:
            given = own(event, invocation)
            answer = (await given if inspect.isawaitable(given) else given) or {}
        result = answer.get("modifiedResult", event["toolResult"])
        at = round(1000 * event["timestamp"].timestamp())
        judged = {**event, "toolResult": result, "timestamp": at, "transcriptPath": events_file(event, home)}
        ours = await asyncio.to_thread(fallback, lambda: copilot_hook(judged, sessions, made.told), None)
        return {**answer, **(ours or {})}

    return cast("SessionHooks", {**(more or {}), "on_post_tool_use": after_tool})
