"""Google ADK: a plugin.

    runner = Runner(..., plugins=[..., ReadcachePlugin("/repo")])

Put it last in the list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from readcache.hosts.adapter_settings import fallback
from readcache.hosts.judged_lists import JudgedLists
from readcache.hosts.tool_results import Judge


class ReadcachePlugin(BasePlugin):  # type: ignore[misc]  # no types where these are checked
    """A plugin that omits visible lines from requests. Raise UsageError for an invalid value.

    `root`: the directory that relative paths start from. `tools`: the kinds of tools, by name: "bash", "read", "write",
    "other", "ignore" or a function. Only needed for tools whose names and arguments do not show their kind. `settings`:
    as for `adapter_settings`, e.g. `store`, `policy`, `restore`, `clear` and `on_reply`.
    """

    def __init__(self, root: str = ".", *, tools: Mapping[str, str | Judge] | None = None, **settings: Any) -> None:
        super().__init__(name="readcache")
        self._lists = JudgedLists("google-adk", tools, {"root": root, **settings})

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Put markers into the contents that the model is sent. The events of the conversation do not change."""
        contents = llm_request.contents

        def judged() -> list[types.Content]:
            sent = self._lists.messages(contents, _name_of(callback_context), model=llm_request.model)
            pairs = zip(contents, sent, strict=True)
            return [old if new is old else types.Content.model_validate(new) for old, new in pairs]

        llm_request.contents = await asyncio.to_thread(fallback, judged, contents)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Record the size of the request. The response does not change."""
        await asyncio.to_thread(self._lists.answered, _name_of(callback_context), llm_response)

    def stats(self) -> dict[str, int]:
        """Return the counters of `Session.stats`, summed over all conversations."""
        return self._lists.stats()

    async def close(self) -> None:
        """End all conversations, and release the store."""
        self._lists.close()


def _name_of(context: Any) -> str:
    return f"{context.session.id} {context.agent_name}"
