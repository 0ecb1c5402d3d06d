"""Protected files (`Policy.protected`): what they hold is shown whole each time, and the log keeps nothing of it."""

from __future__ import annotations

import re
from itertools import chain

from readcache.model.call import Call
from readcache.model.paths import matches
from readcache.policy import Policy

HIDDEN = "(a command that names a protected file)"  # it may hold what is written there
_WORD = re.compile(r"[^\s'\"`=:;,|&<>(){}]+")  # what may be the name of a file in a command


def concerns_protected(call: Call, policy: Policy) -> bool:
    """True if the call may have read or written a protected file: by what is understood of its command, or by any word
    of it, since one that nobody understands (`awk … key.pem`) may have read whatever it names."""
    if not policy.protected:
        return False
    named = chain(_WORD.findall(call.label), call.reading.keys, (write.key for write in call.reading.writes))
    return any(matches(name, policy.protected) for name in named)


def kept_label(call: Call, policy: Policy) -> str:
    """What the log keeps of the call's command."""
    return HIDDEN if concerns_protected(call, policy) else call.label
