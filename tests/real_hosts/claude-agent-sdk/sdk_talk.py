"""claude-agent-sdk, the real package, as a host of the conformance suite; Claude Code itself comes with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, ResultMessage

from readcache import Policy, Sessions
from readcache.hosts.claude_agent_sdk import hooks
from tests.real_hosts.claude_cli import ClaudeCode, Talk


class AgentSdk(ClaudeCode):
    """Hooks in this process. `more`: the user's own. `policy`: the name of a preset."""

    def __init__(self, more: dict[str, list[HookMatcher]] | None = None, policy: str = "default") -> None:
        super().__init__()
        self.more, self.policy = more or {}, policy

    def talk(self, root: Path, address: str, *, on: bool, more: dict[str, str] | None = None) -> Talk:  # noqa: ARG002
        """A conversation that has not begun."""
        if not on:
            return SdkTalk(root, address, self.more)
        sessions = Sessions(root, store=self.store, policy=Policy.named(self.policy))
        return SdkTalk(root, address, hooks(sessions, self.more))


class SdkTalk(Talk):
    """One conversation by the package's client."""

    def __init__(self, root: Path, address: str, hooks: dict[str, list[HookMatcher]]) -> None:
        self._hooks, self._loop = hooks, asyncio.new_event_loop()
        super().__init__(root, address)

    def _start(self, *words: str) -> None:
        forks = "--fork-session" in words
        words = tuple(word for word in words if word != "--fork-session")
        given = dict(zip((word.removeprefix("--") for word in words[::2]), words[1::2], strict=True))
        options = ClaudeAgentOptions(
            cwd=self.root,
            env=self.env,
            hooks=self._hooks,
            permission_mode="bypassPermissions",
            model="claude-sonnet-4-5",
            resume=given.pop("resume", None),
            fork_session=forks,
            extra_args=dict(given),
        )
        self._client = ClaudeSDKClient(options)
        self._loop.run_until_complete(self._client.connect())

    def say(self, text: str) -> dict[str, Any]:
        """The user says something; returns when the turn is over."""
        return self._loop.run_until_complete(self._say(text))

    async def _say(self, text: str) -> dict[str, Any]:
        await self._client.query(text)
        async for message in self._client.receive_response():
            if isinstance(message, ResultMessage):
                self.session = message.session_id
                assert not message.is_error, message
                return {"result": message.result}
        raise AssertionError("Claude Code ended")

    def again(self, *words: str) -> None:
        """The program is ended, and resumes the conversation."""
        self._loop.run_until_complete(self._client.disconnect())
        self._start("--resume", self.session, *words)

    def close(self) -> None:
        """Ends the program."""
        self._loop.run_until_complete(self._client.disconnect())
        self._loop.close()
