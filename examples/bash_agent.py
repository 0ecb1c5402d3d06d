"""A bash agent with readcache. One line wraps its tool. The model is scripted, so no key is needed.

Run it with `python examples/bash_agent.py`.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from readcache import Session

PRICES = "".join(f"item_{n} = Item('number {n}', price={n}.99)\n" for n in range(1, 41))
COMMANDS = (
    "cat prices.py",
    "sed -n '8,29p' prices.py",  # visible above: the model receives a marker
    "sed -n '8,29p' prices.py",  # the same request again: the model receives the lines
    "sed -i.bak 's/[.]99/.49/' prices.py && cat prices.py",  # other bytes: the model receives them
)


def scripted_model(messages: list[dict[str, str]]) -> str | None:
    """Return the next command, or None at the end. Replace this function with a request to your model."""
    done = sum(message["role"] == "tool" for message in messages)
    return COMMANDS[done] if done < len(COMMANDS) else None


def bash_in(root: str) -> Callable[[str], str]:
    """Return the agent's bash tool, which runs commands in the directory `root`."""

    def bash(command: str) -> str:
        return subprocess.run(["bash", "-c", command], cwd=root, capture_output=True, text=True, check=False).stdout

    return bash


def run(root: str) -> list[dict[str, str]]:
    """Run the agent in the directory `root`, and return the conversation."""
    bash = Session(root).wrap(bash_in(root))  # the only line that readcache needs
    messages = [{"role": "user", "content": "Change the prices."}]
    while (command := scripted_model(messages)) is not None:
        messages.append({"role": "assistant", "content": command})
        messages.append({"role": "tool", "content": bash(command)})
    return messages


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        Path(root, "prices.py").write_text(PRICES)
        for message in run(root):
            print(f"== {message['role']}\n{message['content']}")
