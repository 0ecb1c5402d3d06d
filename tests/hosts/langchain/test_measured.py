"""What the middleware saves in one conversation, and what it costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.messages import ToolMessage

from readcache.hosts.langchain import ReadcacheMiddleware
from tests.hosts.langchain.agents import Conversation, DeepHost, LangChainHost
from tests.hosts.measured_script import STEPS, measure


@pytest.mark.parametrize(("name", "host"), [("langchain", LangChainHost()), ("deepagents", DeepHost())])
def test_what_it_saves_is_measured(name: str, host: LangChainHost, tmp_path: Path) -> None:
    def hold(root: Path, on: bool) -> int:
        talk = Conversation(host, root, [ReadcacheMiddleware(str(root))] if on else [])
        talk.converse(STEPS)
        sent = [message for request in talk.model.requests for message in request]
        return sum(len(message.text) for message in sent if isinstance(message, ToolMessage))

    measure(name, name, hold, tmp_path)
