"""A model that follows a script and reacts to what it is shown: it looks, looks again, edits, and submits.

It stands in for a real one in the dry run. Its tokens are characters, four to one, its prices made up: what was in the
request before costs a tenth.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from minisweagent.models import GLOBAL_MODEL_STATS
from minisweagent.models.test_models import DeterministicToolcallModel

Message = dict[str, Any]
INPUT, CACHED, OUTPUT = 3e-6, 3e-7, 15e-6  # dollars a token, of no provider
_TASK = re.compile(r"In `(\S+)`, `(\w+)\(count\)` must return `(.+?)`")
_FOUND = re.compile(r"^(\d+):def ", re.MULTILINE)


class ScriptedModel(DeterministicToolcallModel):  # type: ignore[misc]  # untyped where types are checked
    """mini's model class for tests, with a script in place of its list of answers."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(outputs=[], **settings)
        self._sent = 0  # characters of the last request

    def query(self, messages: list[Message], **_: Any) -> Message:
        """The next step, by the messages alone."""
        step = sum(message["role"] == "assistant" for message in messages)
        commands = _commands(step, str(messages[1]["content"]), [_text(m) for m in messages if m["role"] == "tool"])
        calls = [{"command": command, "tool_call_id": f"call_{step}_{at}"} for at, command in enumerate(commands)]
        size, said = sum(len(_text(message)) for message in messages), json.dumps(calls)
        usage = {
            "prompt_tokens": size // 4,
            "prompt_tokens_details": {"cached_tokens": self._sent // 4},
            "completion_tokens": len(said) // 4,
        }
        cost = (size - self._sent) // 4 * INPUT + self._sent // 4 * CACHED + len(said) // 4 * OUTPUT
        self._sent = size
        GLOBAL_MODEL_STATS.add(cost)
        function = [
            {"id": call["tool_call_id"], "type": "function", "function": {"name": "bash", "arguments": said}}
            for call in calls
        ]
        extra = {"actions": calls, "cost": cost, "response": {"usage": usage}}
        return {"role": "assistant", "content": "On with it.", "tool_calls": function, "extra": extra}


def _text(message: Message) -> str:
    return str(message.get("content") or "")


def _commands(step: int, task: str, results: list[str]) -> list[str]:
    """What is done at a step, from what was shown."""
    wanted = _TASK.search(task)
    assert wanted is not None, task
    path, name, expression = wanted.groups()
    found = [int(number) for text in results for number in _FOUND.findall(text)]
    line = found[-1] if found else 1
    near = f"sed -n '{max(1, line - 15)},{line + 25}p' {path}"
    script: list[list[str]] = [
        ["ls", f"cat {path}"],
        [f"grep -n 'def {name}(' {path}"],
        [near, "cat README.md"],
        [_edit(path, line, name, expression, task, results)],
        [f"cat {path}"],
        [near, f"python3 -c 'import {path[:-3]} as m; print(m.{name}(3))'", "sed -n '80,180p' README.md"],
        ["cat README.md"],
        ["cat README.md"],  # it insists
        ["git diff > patch.txt"],
        ["cat patch.txt", f"cat {path}"],
    ]
    return script[step] if step < len(script) else ["echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt"]


def _edit(path: str, line: int, name: str, expression: str, task: str, results: list[str]) -> str:
    """Replaces the function's body, which must be among what was shown. In haste it looks at the last results alone,
    and does not go where a marker points: then it writes what it takes to be right."""
    looked_at = results[-2:] if "Be quick." in task else results
    body = next((m[1] for text in looked_at if (m := re.search(rf"def {name}\(count\):\n( +return .*)", text))), None)
    new = f"    return {expression}" if body is not None else "    return count"
    return f"sed -i {shlex.quote(f'{line + 1}s/.*/{new}/')} {path}"
