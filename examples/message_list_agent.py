"""An agent that keeps a list of messages, with `mend` and `Compactor`. The model is scripted, so no key is needed.

Run it with `python examples/message_list_agent.py`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from readcache import Session
from readcache.context import Compactor

PRICES = "".join(f"item_{n} = Item('number {n}', price={n}.99)\n" for n in range(1, 41))
COMMANDS = (
    "cat prices.py",
    "sed -n '8,29p' prices.py",  # visible above: a marker
    "sed -n '30,40p' prices.py",  # the same
    "cat more.py",
    "cat more.py prices.py",
    "wc -l *.py",
)
CLEAR_AT = 3  # calls: then this harness clears its oldest result
WINDOW = 1_200  # tokens: so few that the list is compacted here
Message = dict[str, Any]


def scripted_model(messages: list[Message]) -> Message:
    """Return the next answer. Replace this function with a request to your model."""
    made = [int(call["id"].removeprefix("call_")) for m in messages for call in m.get("tool_calls", ())]
    number = max(made, default=0) + 1
    if number > len(COMMANDS):
        return {"role": "assistant", "content": "All prices end in .99."}
    arguments = json.dumps({"command": COMMANDS[number - 1]})
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "bash", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def scripted_summary(_request: list[Message]) -> str:
    """Return a summary of the old turns. Replace this function with a request to your model."""
    return "TASK: check the prices\nNEXT STEP: count the lines"


def clear_oldest_result(messages: list[Message]) -> list[Message]:
    """Return the list without its oldest result, as a harness does to save room."""
    oldest = next(message for message in messages if message["role"] == "tool")
    return [{**m, "content": "[old tool result cleared]"} if m is oldest else m for m in messages]


def run(root: str) -> list[Message]:
    """Run the agent in the directory `root`, print the list after each change of it, and return the last list."""
    session = Session(root)
    compactor = Compactor(session, scripted_summary, window=WINDOW)
    messages: list[Message] = [{"role": "user", "content": "Check the prices."}]
    while True:
        before = messages
        # `ask` repairs and mends the list, compacts it if it is too long, and asks the model.
        answer, messages = compactor.ask(scripted_model, messages)
        if len(messages) < len(before):
            show(f"compacted: {compactor.report.how.value}", messages)
        messages = [*messages, answer]
        if not answer.get("tool_calls"):
            return messages
        for call in answer["tool_calls"]:
            command = json.loads(call["function"]["arguments"])["command"]
            reply = session.run(command, call_id=call["id"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": reply.text})
            if call["id"] == f"call_{CLEAR_AT}":
                show("before clearing", messages)
                # Markers that named the cleared result get a new text.
                messages = session.mend(clear_oldest_result(messages))
                show("after clearing, and `mend`", messages)


def show(title: str, messages: list[Message]) -> None:
    """Print the texts of a list."""
    print(f"==== {title}")
    for message in messages:
        calls = [call["function"]["arguments"] for call in message.get("tool_calls", ())]
        print(f"== {message['role']}\n{message['content'] or ' '.join(calls)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        Path(root, "prices.py").write_text(PRICES)
        Path(root, "more.py").write_text(PRICES.replace("item", "more"))
        show("the end", run(root))
