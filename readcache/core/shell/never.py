"""Commands whose output a harness takes as the agent's answer: the text that the patterns of `Policy.never` see."""

from __future__ import annotations

import re

from readcache.core.model.policy import Policy

_JOINS = re.compile(r"&&|[;|&(){`]|\b(?:then|do|else)\b")  # a command may begin behind one


def is_answer(command: str, policy: Policy = Policy()) -> bool:  # noqa: B008  frozen
    """True if a pattern of `policy.never` matches where a line or a command begins. The patterns see the bodies of
    heredocs, too: the output of a command that only looks like an answer is shown in full."""
    command = command.replace("\\\n", " ")
    return policy.forbids(command) or policy.forbids(_JOINS.sub("\n", command))
