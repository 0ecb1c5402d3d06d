"""Agents of deepagents whose model follows a script, as the conformance suite drives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, LocalShellBackend, StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain.agents.middleware import ContextEditingMiddleware
from langchain_core.messages import AIMessage

from readcache.testing.hosts import Bash, Clear, Compact, Delegate, Edit, Read, Rewind, ToolUse, Worker
from tests.real_hosts.langchain.agents import Conversation, LangChainHost, Script, says


class DeepHost(LangChainHost):
    """create_deep_agent on this machine. `virtual`: paths of the file tools begin at the project, as is the default."""

    can = frozenset((Bash, Read, Edit, Delegate, Compact, Clear, Rewind, Worker))

    def __init__(self, policy: str = "default", *, virtual: bool = True, **options: Any) -> None:
        super().__init__(policy, **options)
        self.virtual = virtual

    def agent(self, talk: Conversation, root: Path, ours: list[Any]) -> Any:
        """The agent that is talked to; its sub-agent `worker` has the middleware in its own list."""
        local = LocalShellBackend(root_dir=root, virtual_mode=self.virtual, inherit_env=True)
        aside = StateBackend()  # what deepagents itself writes is not in the project
        backend = CompositeBackend(
            default=local, routes={"/conversation_history/": aside, "/large_tool_results/": aside}
        )
        worker = {"name": "worker", "description": "Works.", "system_prompt": "Work.", "model": talk.worker}
        summary = SummarizationMiddleware(
            Script(answers=[AIMessage("what came before")] * 9),
            backend=backend,
            trigger=("tokens", 1000),
            keep=("messages", 1),
            token_counter=talk.count_tokens,
        )
        return create_deep_agent(
            talk.model,
            backend=backend,
            subagents=[{**worker, "middleware": ours}],
            middleware=[summary, ContextEditingMiddleware(edits=[talk.clearing]), *ours],
            checkpointer=talk.saver,
        )

    def call(self, use: ToolUse, talk: Conversation) -> tuple[str, dict[str, Any]]:
        """The call of one of deepagents' tools."""
        if isinstance(use, Bash):
            timeout = {"timeout": int(use.timeout)} if use.timeout else {}
            return "execute", {"command": use.command, **timeout}
        if isinstance(use, Delegate):
            talk.worker.answers = [says(self.call(inner, talk)) for inner in use.calls]
            return "task", {"description": "work", "subagent_type": "worker"}
        path = f"/{use.path}" if self.virtual else str(talk.root / use.path)
        if isinstance(use, Read):
            limit = {} if use.end is None else {"limit": use.end - use.start + 1}
            return "read_file", {"file_path": path, "offset": use.start - 1, **limit}
        return "edit_file", {"file_path": path, "old_string": use.old, "new_string": use.new}
