"""Answer a recall: the result of an earlier call, as this reader was shown it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from readcache.core.judging.marker import names_of
from readcache.core.judging.protect import shows_lines_of
from readcache.core.model.errors import UsageError
from readcache.core.model.events import Record
from readcache.core.model.paths import matches_any, may_name
from readcache.core.model.policy import Policy
from readcache.core.model.reply import Reply, unseen_reply
from readcache.core.model.secrets import without_secrets
from readcache.core.sync.recall import AskedRecall, Recalled, recall

# Of one answer, so that no host truncates it: Claude Code shows 30,000 characters of a command's output.
MOST_LINES, MOST_CHARS = 2_000, 25_000
_LONGEST_LINE = 2_000  # characters


def recalled_reply(
    records: Iterable[Record], agent_id: str, tag: str, asked: AskedRecall, policy: Policy, *, local: bool
) -> Reply:
    """Return the reply with the recalled lines. `tag`: of the reader's own names. `local`: the files are on this
    machine, so the first line can say that one has changed. Raise UsageError for a name that is not this reader's, or
    if its text is not kept."""
    own, _, number = asked.name.partition(".")
    found = recall(records, agent_id, int(number)) if own == tag and number.isdigit() else None
    if found is None:
        raise UsageError(f"no call {asked.name} of this conversation: give a name as a marker or a note has it")
    if found.text is None or _is_protected(found, found.text, policy):
        raise UsageError(f"the text of call {asked.name} is not kept: repeat the call to see it as it is now")
    text = _changed_since(found, local=local) + _part(found.text, asked)
    return unseen_reply(text, found.call_id)


def _is_protected(found: Recalled, text: str, policy: Policy) -> bool:
    """Return True if a glob of today protects a file of the call."""
    globs = policy.protected
    return (
        any(matches_any(key, globs) for key in found.keys)
        or may_name(found.label, globs)
        or shows_lines_of(globs, text)
    )


def _changed_since(found: Recalled, *, local: bool) -> str:
    """Return the line that names the files that changed after the call; "" if none is known to have changed."""
    changed = set(found.changed)
    for key in found.keys if local else ():
        with suppress(OSError, ValueError):
            if not os.path.exists(key) or os.stat(key).st_mtime > found.at:
                changed.add(key)
    names = ", ".join(names_of(sorted(changed)).values())
    return f"[{names} changed after this was shown; below are the earlier lines]\n" if changed else ""


def _part(text: str, asked: AskedRecall) -> str:
    """Return the requested lines without certain secrets, within the limits. A last line says how to see the rest."""
    lines = without_secrets(text).split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    end = min(len(lines), asked.last or len(lines))
    if not 1 <= asked.first <= max(end, 1):
        raise UsageError(f"lines {asked.first}-{asked.last or ''} are not a range of the {len(lines)} lines")
    shown, chars = list[str](), 0
    for line in lines[asked.first - 1 : min(end, asked.first - 1 + MOST_LINES)]:
        line = line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + " [the rest of the line is not shown]"
        chars += len(line) + 1
        if shown and chars > MOST_CHARS:
            break
        shown.append(line)
    after = asked.first + len(shown)
    rest = f'[lines {after}-{end} are not shown; to see them, run "readcache recall {asked.name} {after}-{end}"]'
    return "".join(f"{line}\n" for line in [*shown, *([rest] if after <= end else [])])
