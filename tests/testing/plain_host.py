"""A host of a few lines for the conformance suite: a loop with bash, read and edit tools, and what hosts do to lists.

With `lacks` it does without a piece of an adapter's care, and the suite must find that out.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from readcache import Marks, Policy, Session
from readcache.context import mend_and_clear
from readcache.testing.hosts import Bash, Clear, Compact, Delegate, Edit, Read, Rewind, Seen, Step, ToolUse, Worker

MOST_SHOWN = 20_000  # characters that it shows of a result


class PlainHost:
    """`lacks`: names of what it does not do."""

    can: frozenset[type] = frozenset((Bash, Read, Edit, Delegate, Compact, Clear, Rewind, Worker))

    def __init__(self, *lacks: str, policy: str = "default") -> None:
        self.lacks, self.policy = lacks, policy
        self.store: Path | None = None
        self.clear: Marks | None = None

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        policy = replace(Policy.named(self.policy), clear=self.clear)
        session = Session(root, policy=policy, store=self.store) if on else None
        return Agent(self, root, session).converse(steps)


class Agent:
    """One conversation."""

    def __init__(self, host: PlainHost, root: Path, session: Session | None, name: str = "call") -> None:
        self.host, self.root, self.session, self.name = host, root, session, name
        self.messages: list[dict[str, Any]] = []
        self.number = 0

    def converse(self, steps: Sequence[Step]) -> list[Seen]:
        """One `Seen` for each step."""
        return [self.step(step) for step in steps]

    def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        inner: tuple[Seen, ...] = ()
        ids: list[str] = []
        if isinstance(step, tuple):
            once = self.session.batch() if self.session and "batches" not in self.host.lacks else nullcontext()
            with once:
                for call in step:
                    self.number += 1
                    ids.append(f"{self.name}-{self.number}")
                    if isinstance(call, Delegate):
                        inner += self.delegate(call)
                    text = "done" if isinstance(call, Delegate) else self.call(call, ids[-1])
                    self.messages.append({"role": "assistant", "tool_calls": [tool_call(ids[-1], call)]})
                    self.messages.append({"role": "tool", "tool_call_id": ids[-1], "content": text})
        elif isinstance(step, Compact):
            self.messages[:] = [{"role": "user", "content": "A summary of what came before."}]
        elif isinstance(step, Clear):
            next(m for m in self.messages if m["role"] == "tool")["content"] = "[cleared]"
        elif isinstance(step, Worker):
            self.work_elsewhere()
        else:
            del self.messages[-2 * step.calls :]
        if self.session is not None and "sync" not in self.host.lacks:
            self.messages = mend_and_clear(self.messages, self.session)
        shown = {m["tool_call_id"]: m["content"] for m in self.messages if m["role"] == "tool"}
        texts = tuple(str(m.get("content") or m.get("tool_calls")) for m in self.messages)
        return Seen(texts, tuple(shown[name] for name in ids), inner)

    def work_elsewhere(self) -> None:
        """In another process, which knows the name of the conversation. Markers stay in the list as they are."""
        before = self.session
        if before is None:
            return
        name = None if "a name" in self.host.lacks else before.session_id
        self.session = Session(self.root, session_id=name, policy=before.policy, store=self.host.store)
        for message in self.messages if name is None else ():
            message["content"] = str(message.get("content") or "").replace(f" {before.tag}.", f" {self.session.tag}.")

    def delegate(self, call: Delegate) -> tuple[Seen, ...]:
        """What the sub-agent's model is sent."""
        session = self.session
        if session is not None and "sessions of sub-agents" not in self.host.lacks:
            session = session.fork("sub")
        return tuple(
            Agent(self.host, self.root, session, f"{self.name}-{self.number}").converse([(one,) for one in call.calls])
        )

    def call(self, call: Bash | Read | Edit, call_id: str) -> str:
        """The result as the model is shown it."""
        if isinstance(call, Bash):
            text = self.bash(call, call_id)
        elif isinstance(call, Read):
            text = self.read(call, call_id)
        else:
            path = self.root / call.path
            path.write_text(path.read_text().replace(call.old, call.new, 1))
            if self.session is not None and "wrote" not in self.host.lacks:
                self.session.wrote(call.path, call_id=call_id)
            return "edited"
        if len(text) <= MOST_SHOWN:
            return text
        text = f"{text[: MOST_SHOWN // 2]}\n[cut]\n{text[-MOST_SHOWN // 2 :]}"
        if self.session is not None and "settle" not in self.host.lacks:
            self.session.settle(call_id, text)
        return text

    def bash(self, call: Bash, call_id: str) -> str:
        """With the exit status in front, as hosts have it."""
        late = False
        try:
            ran = subprocess.run(
                ["bash", "-c", call.command], cwd=self.root, capture_output=True, timeout=call.timeout, check=False
            )
            output, status = (ran.stdout + ran.stderr).decode(), ran.returncode
        except subprocess.TimeoutExpired as error:
            output, status, late = (error.stdout or b"").decode(), 124, True
        head = f"exit {status}\n"
        if self.session is None:
            return head + output
        if "frames" in self.host.lacks:
            return self.session.observe(call.command, head + output, exit_code=status, call_id=call_id).text
        complete = not late or "complete" in self.host.lacks
        reply = self.session.observe(call.command, output, exit_code=status, call_id=call_id, complete=complete)
        return head + reply.text

    def read(self, call: Read, call_id: str) -> str:
        """Numbered, as hosts have it; an error is a text."""
        try:
            lines = (self.root / call.path).read_text().splitlines()[call.start - 1 : call.end]
        except OSError:
            text = f"cannot read {call.path}"
            if self.session is not None and "failed" not in self.host.lacks:
                return self.session.observe_read(call.path, text, call_id=call_id, failed=True).text
            return text
        text = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(lines, call.start))
        if self.session is None:
            return text
        known: dict[str, Any] = {"start": call.start, "end": call.end, "numbered": True, "call_id": call_id}
        return self.session.observe_read(call.path, text, **known).text


def tool_call(call_id: str, call: ToolUse) -> dict[str, Any]:
    """As OpenAI's lists have it."""
    return {"id": call_id, "type": "function", "function": {"name": type(call).__name__, "arguments": str(call)}}
