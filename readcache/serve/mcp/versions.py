"""The official `mcp` package, 1.x and 2.x: the versions differ in how to declare tools, and in how a call asks the
client for more. Since the protocol of 2026-07-28, the answer asks the client to call again with the missing input.
"""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import mcp.server.lowlevel
from mcp import types

from readcache import __version__
from readcache.serve.mcp.files import root_directories
from readcache.serve.mcp.schemas import INSTRUCTIONS, TOOLS
from readcache.serve.mcp.tools import McpTools

ASK_SECONDS = 5.0  # time for the client to name its roots
ASKS_ROOTS = ("read", "run")  # tools for which the client must name its roots before a call


def make_server(tools: McpTools) -> Any:
    """Return a server with these tools."""
    listed = [types.Tool.model_validate(tool) for tool in TOOLS]
    about = {"version": __version__, "instructions": INSTRUCTIONS}
    make = _server_1 if hasattr(mcp.server.lowlevel.Server, "call_tool") else _server_2
    return make(tools, listed, about)


def _server_1(tools: McpTools, listed: list[Any], about: dict[str, str]) -> Any:
    server: Any = mcp.server.lowlevel.Server("readcache", **about)

    async def list_tools() -> Any:
        return listed

    async def call_tool(name: str, given: dict[str, Any]) -> Any:
        context = server.request_context
        meta = {} if context.meta is None else context.meta.model_dump()

        async def progress(so_far: float, total: float, words: str) -> None:
            if (token := meta.get("progressToken")) is not None:
                await context.session.send_progress_notification(token, so_far, total, words)

        roots = await _ask_roots(context.session) if name in ASKS_ROOTS and _has_roots(context.session) else []
        return types.CallToolResult.model_validate(await tools.call(name, given, meta, roots, progress))

    server.list_tools()(list_tools)
    server.call_tool(validate_input=False)(call_tool)
    return server


def _server_2(tools: McpTools, listed: list[Any], about: dict[str, str]) -> Any:
    kinds: Any = types  # version 1.x does not have these names

    async def list_tools(_: Any, __: Any) -> Any:
        return kinds.ListToolsResult(tools=listed)

    async def call_tool(context: Any, params: Any) -> Any:
        session, roots = context.session, list[str]()
        if params.name in ASKS_ROOTS and _has_roots(session):
            if session.can_send_request:
                roots = await _ask_roots(session)
            elif params.input_responses is None:
                return kinds.InputRequiredResult(input_requests={"roots": kinds.ListRootsRequest()})
            else:
                roots = _named(params.input_responses.get("roots"))
        given, meta = params.arguments or {}, context.meta or {}
        result = await tools.call(params.name, given, meta, roots, session.report_progress)
        return kinds.CallToolResult.model_validate(result)

    server: Any = mcp.server.lowlevel.Server
    return server("readcache", **about, on_list_tools=list_tools, on_call_tool=call_tool)


def _has_roots(session: Any) -> bool:
    """Return True if the client said that it can name roots."""
    holder = session if hasattr(session, "client_capabilities") else session.client_params
    capabilities = getattr(holder, "client_capabilities", None) or getattr(holder, "capabilities", None)
    return getattr(capabilities, "roots", None) is not None


async def _ask_roots(session: Any) -> list[str]:
    """Return the directories that the client names, or an empty list if asking fails."""
    try:
        with warnings.catch_warnings():  # deprecated in newer protocols, but this client uses an older one
            warnings.simplefilter("ignore")
            asking = session.list_roots()
        return _named(await asyncio.wait_for(asking, ASK_SECONDS))
    except Exception:
        return []


def _named(found: Any) -> list[str]:
    return root_directories([str(root.uri) for root in getattr(found, "roots", ())])
