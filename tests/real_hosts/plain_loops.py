"""Loops of a user's own, as the conformance suite drives them: `work(client, session, messages)` of the examples."""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from readcache import Mode, Policy, Session
from readcache.testing.hosts import Bash, Clear, Compact, Rewind, Seen, Step

Message = Any


def shell_line(use: Bash) -> str:
    """The command, stopped where it takes too long: the tool of the examples takes no time."""
    return f"timeout {use.timeout} bash -c {shlex.quote(use.command)}" if use.timeout else use.command


class LoopHost:
    """`talk` makes a conversation with a scripted API."""

    store: Path | None = None

    def __init__(self, can: frozenset[type], talk: Callable[[], Any]) -> None:
        self.can, self.talk = can, talk

    def normal(self, text: str) -> str:
        """Without the directory of the project, which is another one without readcache."""
        return re.sub(r"/with(?:out)?(?=/)", "", text)

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        policy = Policy() if on else Policy(mode=Mode.OFF)
        with Session(root, policy=policy, store=self.store and str(self.store)) as session:
            return Loop(self.talk(), session).converse(steps)


class Loop:
    """One conversation. `talk` has `work(session, messages)`, `calls` (what the model says next), `requests` (what it
    was sent), `is_result(message)`, `cleared(message)`, `seen(request, calls)` and `call(use)`."""

    def __init__(self, talk: Any, session: Session) -> None:
        self.talk, self.session = talk, session
        self.messages: list[Message] = []
        self.past: list[tuple[int, list[Message]]] = []

    def converse(self, steps: Sequence[Step]) -> list[Seen]:
        """One `Seen` for each step."""
        return [self.step(step) for step in steps]

    def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        made, calls = self.past[-1][0] if self.past else 0, 0
        if isinstance(step, tuple):
            calls = len(step)
            self.talk.calls = [self.talk.call(use) for use in step]
        elif isinstance(step, Compact):
            self.messages = []
        elif isinstance(step, Clear):
            indexes = (at for at, message in enumerate(self.messages) if self.talk.is_result(message))
            at = next(at for at in indexes if self.talk.cleared(self.messages[at]) != self.messages[at])
            self.messages[at] = self.talk.cleared(self.messages[at])
        elif isinstance(step, Rewind):
            made -= step.calls
            self.messages = next(list(messages) for number, messages in self.past if number == made)
        self.messages.append({"role": "user", "content": "go on"})
        self.messages = list(self.talk.work(self.session, self.messages))
        self.past.append((made + calls, list(self.messages)))
        return self.talk.seen(copy.deepcopy(self.talk.requests[-1]), calls)  # type: ignore[no-any-return]  # a scripted API's
