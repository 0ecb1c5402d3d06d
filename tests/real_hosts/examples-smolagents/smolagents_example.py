"""smolagents: `add_readcache(agent, Session("/repo"))` for a `ToolCallingAgent` with a tool that runs a command.

Not for a `CodeAgent`: its tools' results go to a program, which would read markers as data.
"""

from dataclasses import replace
from itertools import count
from typing import Any

from readcache import Session


def add_readcache(agent: Any, session: Session, tool_name: str = "bash") -> None:
    tool, model, asked = agent.tools[tool_name], agent.model, count()
    run, ask, batch = tool.forward, model.generate, [""]

    def forward(command: str) -> str:
        output = run(command)
        return session.observe(command, output, exit_code=None, batch=batch[0]).text

    def generate(messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        batch[0] = str(next(asked))  # the calls of one answer run in parallel threads
        plain = [{"role": str(message.role.value), "content": message.content} for message in messages]
        repaired = session.mend(plain)
        told = [
            message if new is old else replace(message, content=new["content"])
            for message, old, new in zip(messages, plain, repaired, strict=True)
        ]
        return ask(told, *args, **kwargs)

    tool.forward, model.generate = forward, generate
