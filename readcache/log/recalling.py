"""Answer a recall: the result of an earlier call, as this reader was shown it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

from readcache.core.judging.marker import names_of
from readcache.core.judging.protect import shows_lines_of
from readcache.core.model.call import BASH, Call
from readcache.core.model.claims import Reading
from readcache.core.model.errors import UsageError
from readcache.core.model.paths import matches_any, may_name
from readcache.core.model.policy import HeadTail, Policy, Rules
from readcache.core.model.reply import Reason
from readcache.core.model.secrets import without_secrets
from readcache.core.sync.recall import AskedRecall, Recalled, asked_recall, recall
from readcache.log.log import Log

# Of one answer, so that no host truncates it: Claude Code shows 30,000 characters of a command's output.
MOST_LINES, MOST_CHARS = 2_000, 25_000
_LONGEST_LINE = 2_000  # characters
_LAST_LINE = 200  # characters, for the line that says how to see the rest


def answered_recall(call: Call, log: Log, rules: Rules, *, local: bool) -> Call:
    """Return the call with the recalled text as its output if its command is exactly `readcache recall NAME
    [FIRST-LAST]`. An error is one line of text, so that the tool never sees it. Return any other call unchanged.
    `local`: as for `recalled_text`. Raise StoreError."""
    asked = asked_recall(call.label) if call.tool == BASH and call.skip_reason is None else None
    if asked is None:
        return call
    try:
        text, code = recalled_text(log, rules, asked, local=local), 0
    except UsageError as error:
        text, code = f"readcache: {error}\n", 1
    # The text is not a source, so later markers never name it.
    answered = replace(call, output=text, exit_code=code, head="", tail="", reading=Reading())
    return replace(answered, skip_reason=Reason.RECALLED, complete=True)


def recalled_text(log: Log, rules: Rules, asked: AskedRecall, *, local: bool) -> str:
    """Return the recalled lines. `local`: the files are on this machine, so the first line can say that one has
    changed. Raise UsageError for a name that is not this reader's, or if its text is not kept. Raise StoreError."""
    own, _, number = asked.name.partition(".")
    is_own = own == rules.tag and number.isdigit()
    records = log.store.records(log.session_id, log.agent_id) if is_own else ()
    found = recall(records, log.agent_id, int(number)) if is_own else None
    if found is None:
        raise UsageError(f"no call {asked.name} of this conversation: give a name as a marker or a note has it")
    if found.text is None or _is_protected(found, found.text, rules.policy):
        raise UsageError(f"the text of call {asked.name} is not kept: repeat the call to see it as it is now")
    return _changed_since(found, local=local) + _part(found.text, asked, _most_chars(rules.policy))


def _most_chars(policy: Policy) -> int:
    """Return the characters of one answer, within what the harness shows of an output."""
    clip = policy.clip
    if clip is None:
        return MOST_CHARS
    shown = clip.head + clip.tail if isinstance(clip, HeadTail) else clip.chars
    return min(MOST_CHARS, shown - _LAST_LINE)


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


def _part(text: str, asked: AskedRecall, most: int) -> str:
    """Return the requested lines without certain secrets, at most about `most` characters. A last line says how to see
    the rest."""
    lines = without_secrets(text).split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    end = min(len(lines), asked.last or len(lines))
    if not 1 <= asked.first <= max(end, 1):
        raise UsageError(f"lines {asked.first}-{asked.last or ''} are not a range of the {len(lines)} lines")
    shown, chars = list[str](), 0
    for line in lines[asked.first - 1 : min(end, asked.first - 1 + MOST_LINES)]:
        line = line if len(line) <= _LONGEST_LINE else line[:_LONGEST_LINE] + " [the rest of the line is not shown]"
        chars += len(line) + 1
        if shown and chars > most:
            break
        shown.append(line)
    after = asked.first + len(shown)
    rest = f'[lines {after}-{end} are not shown; to see them, run "readcache recall {asked.name} {after}-{end}"]'
    return "".join(f"{line}\n" for line in [*shown, *([rest] if after <= end else [])])
