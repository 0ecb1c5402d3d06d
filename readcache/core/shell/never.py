"""Commands whose output a harness takes as the agent's answer: the text that the patterns of `Policy.never` see."""

from __future__ import annotations

import re

from readcache.core.model.policy import Policy

_JOINS = re.compile(r"&&|[;|&(){`]|\b(?:then|do|else)\b")  # a command may begin after one of these


def is_answer(command: str, policy: Policy = Policy()) -> bool:  # noqa: B008  frozen
    """Return True if a pattern of `policy.never` matches at the beginning of a line or of a command.

    The patterns see the bodies of heredocs, too. The output of a command that only looks like an answer is shown in
    full.
    """
    command = command.replace("\\\n", " ")
    return policy.forbids(command) or policy.forbids(_JOINS.sub("\n", command))
