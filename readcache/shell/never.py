"""Commands whose output a harness takes as the agent's answer: the text that the patterns of `Policy.never` see."""

from __future__ import annotations

import re

from readcache.model.policy import Policy

_JOINS = re.compile(r"&&|[;|&(){`]|\b(?:then|do|else)\b")  # a command may begin behind one


def is_answer(command: str, policy: Policy = Policy()) -> bool:  # noqa: B008  frozen
    """True if it contains a command of `policy.never`, at its start or in the middle of a line.

    In a command of several lines, the patterns see only the commands: no bodies of heredocs, and no quoted text as
    separate lines.
    """
    if not policy.may_forbid(command := command.replace("\\\n", " ")):
        return False
    if not (policy.forbids(command) or policy.forbids(_JOINS.sub("\n", command))):
        return False
    if "\n" not in command:
        return True
    from readcache.shell.command_lines import command_lines  # here, since a PATH shim's start is all its cost

    try:
        return policy.forbids(command_lines(command))
    except RecursionError:
        return True
