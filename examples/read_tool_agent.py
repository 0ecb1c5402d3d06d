"""An agent with a read tool and an edit tool instead of bash. The model is scripted, so no key is needed.

Run it with `python examples/read_tool_agent.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from readcache import Session

PRICES = "".join(f"item_{n} = Item('number {n}', price={n}.99)\n" for n in range(1, 41))
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("read", {"path": "prices.py"}),
    ("read", {"path": "prices.py", "start": 8, "end": 29}),  # visible above: a marker
    ("edit", {"path": "prices.py", "old": "price=9.99", "new": "price=8.99"}),
    ("read", {"path": "prices.py", "start": 8, "end": 29}),  # the file has changed: all of the lines
)


def scripted_model(messages: list[dict[str, str]]) -> tuple[str, dict[str, Any]] | None:
    """Return the next call: a tool's name and its arguments, or None. Replace this with a request to your model."""
    done = sum(message["role"] == "tool" for message in messages)
    return CALLS[done] if done < len(CALLS) else None


def tools_of(root: str) -> dict[str, Callable[..., str]]:
    """Return the agent's tools. Their session knows what the model can see."""
    session = Session(root)

    def read(path: str, start: int = 1, end: int | None = None) -> str:
        # `session.read` is a complete read tool. To keep your own, give its output to `session.observe_read`.
        return session.read(path, start=start, end=end, numbered=True).text

    def edit(path: str, old: str, new: str) -> str:
        file = Path(root, path)
        file.write_text(file.read_text().replace(old, new, 1))
        return f"edited {path}"

    return {"read": read, "edit": session.wrap_write(edit, path="path")}


def run(root: str) -> list[dict[str, str]]:
    """Run the agent in the directory `root`, and return the conversation."""
    tools = tools_of(root)
    messages = [{"role": "user", "content": "Make item 9 cheaper."}]
    while (call := scripted_model(messages)) is not None:
        name, arguments = call
        messages.append({"role": "assistant", "content": f"{name} {arguments}"})
        messages.append({"role": "tool", "content": tools[name](**arguments)})
    return messages


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        Path(root, "prices.py").write_text(PRICES)
        for message in run(root):
            print(f"== {message['role']}\n{message['content']}")
