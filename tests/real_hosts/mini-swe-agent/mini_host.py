"""mini-swe-agent as the conformance suite drives it: the real agent, environment and model classes, over real HTTP.

mini itself takes nothing out of a conversation. What agents derived from its own do to `messages` is done here as they
do it, from outside.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ |= {
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_CONFIGURED": "true",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_API_KEY": "none",
}

from minisweagent.agents.default import DefaultAgent
from minisweagent.config import get_config_from_spec
from minisweagent.environments import get_environment
from minisweagent.models import get_model

from readcache import Marks
from readcache.testing.hosts import Bash, Clear, Compact, Rewind, Seen, Step
from tests.real_hosts.chat_api import Json, ScriptedModel, texts_of

OURS = "readcache.hosts.mini_swe_agent."
TEMPLATES = {"system_template": "You can use a shell.", "instance_template": "{{task}}"}


def agent_for(model: ScriptedModel, root: Path, inner: str = "litellm", wrapped: str = "model", **ours: Any) -> Any:
    """mini's agent in `root`, as its programs make it of YAML. `wrapped`: "model", "environment" or "". `ours`: what
    stands under `readcache:`; "config" names a file of mini's whose observation template is taken."""
    template = get_config_from_spec(config)["model"] if (config := ours.pop("config", "")) else {}
    shown = {key: template[key] for key in ("observation_template",) if key in template}
    name = ours.pop("model_name", "openai/fake") if inner != "litellm_response" else "openai/responses/fake"
    kwargs = {"api_base": model.url}
    settings: dict[str, Any] = {"model_name": name, "model_class": inner, "model_kwargs": kwargs, **shown}
    outside: dict[str, Any] = {"cwd": str(root)}
    if wrapped == "model":
        settings |= {"model_class": OURS + "ReadcacheModel", "readcache": {**ours, "model_class": inner}}
    if wrapped == "environment":
        outside |= {"environment_class": OURS + "ReadcacheEnvironment", "readcache": ours}
    environment = get_environment(outside, default_type="local")
    return DefaultAgent(get_model(config=settings), environment, cost_limit=0, **TEMPLATES)


class MiniHost:
    """`inner`: the user's model class. `wrapped`: which of our two classes is used. `config`: mini's own, for its
    observation template."""

    can: frozenset[type] = frozenset((Bash, Compact, Clear, Rewind))

    def __init__(self, inner: str = "litellm", wrapped: str = "model", config: str = "", **ours: Any) -> None:
        self.inner, self.wrapped, self.config, self.ours = inner, wrapped, config, ours
        self.store: Path | None = None
        self.clear: Marks | None = None
        if wrapped == "environment":  # which is not told what leaves the conversation, and clears nothing
            self.can = frozenset((Bash,))
            del self.clear

    def normal(self, text: str) -> str:
        """With the closing tag on a line of its own, as it is after a marker: not every output ends with a newline."""
        return text.replace("\n</output>", "</output>").replace("</output>", "\n</output>")

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        with ScriptedModel() as model:
            store: dict[str, Any] = {"store": str(self.store)} if self.store else {}
            store |= {"clear": self.clear} if getattr(self, "clear", None) else {}
            wrapped = self.wrapped if on else ""
            agent = agent_for(model, root, self.inner, wrapped, config=self.config, **self.ours, **store)
            agent.add_messages(
                agent.model.format_message(role="system", content="You can use a shell."),
                agent.model.format_message(role="user", content="Do it."),
            )
            return [self._seen(model, agent, step) for step in steps]

    def _seen(self, model: ScriptedModel, agent: Any, step: Step) -> Seen:
        """What the model is sent after the step."""
        count = 0
        if isinstance(step, tuple):
            commands = [call for call in step if isinstance(call, Bash)]
            count = len(commands)
            agent.env.config.timeout = max((int(call.timeout or 0) for call in commands), default=0) or 30
            for batch in [[call] for call in commands] if "textbased" in self.inner else [commands]:
                calls = [model.call("bash", {"command": call.command}) for call in batch]
                text = f"```mswea_bash_command\n{batch[0].command}\n```" if "textbased" in self.inner else ""
                model.says(*([] if text else calls), text=text)
                agent.step()
        elif isinstance(step, Compact):
            agent.messages[1:] = [agent.model.format_message(role="user", content="A summary of what came before.")]
        elif isinstance(step, Clear):
            at, key = next((at, key) for at, m in enumerate(agent.messages[2:], 2) if (key := _result_key(m)))
            agent.messages[at] = {**agent.messages[at], key: "[cleared]"}
        elif isinstance(step, Rewind):
            del agent.messages[len(agent.messages) - 2 * step.calls :]
        model.says(text="```mswea_bash_command\ntrue\n```") if "textbased" in self.inner else model.says(
            model.call("bash", {"command": "true"})
        )
        agent.model.query(agent.messages)  # the next request; what it answers is dropped
        texts = [(role, _decoded(text)) for role, text in texts_of(model.requests[-1])]
        results = [text for role, text in texts[2:] if role == ("user" if "textbased" in self.inner else "tool")]
        return Seen(tuple(text for _, text in texts), tuple(results[len(results) - count :]))


def _result_key(message: Json) -> str:
    """The key under which a result stands in it; "" for another message."""
    if message.get("type") == "function_call_output":
        return "output"
    return "content" if message.get("role") in ("tool", "user") and "raw_output" in message.get("extra", {}) else ""


def _decoded(text: str) -> str:
    """A result that stands in JSON, as lines."""
    try:
        decoded = json.loads(text, strict=False)
    except ValueError:
        return text
    if not isinstance(decoded, dict):
        return text
    return "\n".join(value for value in decoded.values() if isinstance(value, str))
