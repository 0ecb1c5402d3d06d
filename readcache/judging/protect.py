"""Protected files (`Policy.protected`): shown whole each time, and never kept in the log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain

from readcache.model.call import Call
from readcache.model.paths import literals_of, matches
from readcache.model.policy import Policy

HIDDEN = "(a command that names a protected file)"  # it may hold what is written there
_WORD = re.compile(r"[^\s'\"`=:;,|&<>(){}]+")  # what may be the name of a file in a command


def concerns_protected(call: Call, policy: Policy) -> bool:
    """True if the call may have read or written a protected file."""
    if not policy.protected:
        return False
    known = chain(call.reading.keys, (write.key for write in call.reading.writes), call.leads_to)
    if any(matches(name, policy.protected) for name in known):
        return True
    if literals_of(policy.protected).search(call.label) is None:  # as in nearly every command
        return False
    return any(matches(word, policy.protected) for word in _WORD.findall(call.label))


def possible_files(call: Call) -> Iterable[str]:
    """Names of files that the call may have read or written: those that we understand, and every other word of the
    command, because a command that we do not understand (`awk … key.pem`) may have read any file it names."""
    return chain(_WORD.findall(call.label), call.reading.keys, (write.key for write in call.reading.writes))


def leads_to_protected(call: Call, policy: Policy) -> bool:
    """True if one of the names is a link to a protected file."""
    return any(matches(path, policy.protected) for path in call.leads_to)


def kept_label(call: Call, policy: Policy) -> str:
    """What the log keeps of the call's command."""
    return HIDDEN if concerns_protected(call, policy) else call.label
