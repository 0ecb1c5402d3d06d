"""Proves each omission of a recorded run from its trajectory alone, with the specification.

It shares no code with what decides omissions. It is given the texts as the model was sent them: after the
observation template, which cuts long outputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from readcache import Omitted, Outcome, Reason, Reply, Shown
from readcache.core.model.spec.world import World
from readcache.transcripts.values import block_text, list_in, object_in

Message = Mapping[str, Any]


@dataclass(slots=True)
class Found:
    """`accounts`: results with an account. `markers`: omissions. `wrong`: of those that are not proven, what is
    wrong."""

    accounts: int = 0
    markers: int = 0
    wrong: list[str] = field(default_factory=list)


def check_omissions(messages: Sequence[Message]) -> Found:
    """Every reply of a conversation."""
    found, world, commands = Found(), World(), list[str]()
    for message in messages:
        extra = object_in(message.get("extra"))
        if "actions" in extra:
            commands = [str(object_in(action).get("command") or "") for action in list_in(extra["actions"])]
            continue
        if "raw_output" not in extra:
            continue
        said = commands.pop(0) if commands else ""
        account = object_in(extra.get("account"))
        if account:
            _check(world, found, message, account, said)
        elif "full_output" in extra:
            found.wrong.append("something was left out of a result that has no account")
    return found


def _check(world: World, found: Found, message: Message, account: Message, said: str) -> None:
    extra = object_in(message["extra"])
    shown, call_id, batch = str(extra["raw_output"]), str(account["call_id"]), str(account["batch"])
    full = str(extra.get("full_output", shown))
    segments = tuple(_segment(object_in(each)) for each in list_in(account["segments"]))
    omitted = [each for each in segments if isinstance(each, Omitted)]
    # Only its texts and its account are looked at.
    reply = Reply(shown, 0, Outcome.PARTIAL, Reason.OVERLAP, segments, call_id, 0, full)
    found.accounts += 1
    found.markers += len(omitted)
    findings = world.answered("", reply, full, said=said, batch=batch)
    found.wrong += [f"{call_id}: {finding.fault}" for finding in findings if finding.fault]
    world.clipped("", call_id, sent_text(message, shown))


def _segment(given: Message) -> Shown | Omitted:
    if "shown" in given:
        return Shown(str(given["shown"]))
    path = given["path"]
    return Omitted(path, int(given["start"]), int(given["end"]), tuple(map(str, list_in(given["sources"]))))


def sent_text(message: Message, shown: str) -> str:
    """What the model was sent of an output: all of it, or what the observation template left."""
    text = block_text(message.get("content") or message.get("output")) or ""
    if shown in text:
        return shown
    try:
        inner = json.loads(text, strict=False)
    except ValueError:
        return text
    return "\n".join(str(value) for value in inner.values()) if isinstance(inner, dict) else text
