"""Protected files (`Policy.protected`): shown whole each time, and never kept in the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import chain, islice

from readcache.model.call import Call
from readcache.model.paths import literals_of, matches
from readcache.model.policy import SECRET_TEXT, Policy

HIDDEN = "(a command that names a protected file)"  # it may hold what is written there
_WORD = re.compile(r"[^\s'\"`=:;,|&<>(){}]+")  # what may be the name of a file in a command
_PATTERN = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_UNSPLIT = re.compile(r"[^\s'\"`;|&<>()]+")  # the same, braces in it
MOST_EXPANDED, MOST_BRACES = 64, 6  # words that one is expanded to, by so many pairs of braces
# Commands that read files whose names they do not tell: `cat $(ls -A)`, `find . | xargs cat`, `grep -rh KEY .`.
_UNNAMED = re.compile(
    r"\$\(|`|\bxargs\b|\bwhile\b.{0,80}\bread\b|\s-exec|\b(?:grep|rg)\b[^|;]{0,80}\s(?:-\w{0,9}[hI]\b|--no-filename)"
)
_ASSIGNED = re.compile(  # as in a file `.env`
    r"^(?:export )?[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL)[A-Z0-9_]*=\S{6,}", re.MULTILINE
)
# How tools name the file of the lines that they print.
_NAMES = re.compile(
    r"==> (.+) <==$"  # head and tail
    r"|(?:---|\+\+\+|diff --git) (?:[a-z]/)?(\S+)"
    r"|([^\s:]+?)(?::|[-=]\d+[-=])"  # grep: `path:12:`, `path-12-`
    r"|(\S+)\n(?=\d+[:-])",  # rg: above numbered lines
    re.MULTILINE,
)


def concerns_protected(call: Call, policy: Policy) -> bool:
    """True if the call may have read or written a protected file."""
    if not policy.protected:
        return False
    known = chain(call.reading.keys, (write.key for write in call.reading.writes), call.leads_to)
    if any(matches(name, policy.protected) for name in known):
        return True
    return may_name(call.label, policy.protected)


def may_name(command: str, globs: tuple[str, ...]) -> bool:
    """True if a word of the command may name a file of these globs."""
    braced = [word for word in _UNSPLIT.findall(command) if _BRACES.search(word)] if "{" in command else []
    if not braced and literals_of(globs).search(command) is None and _PATTERN.search(command) is None:
        return False  # as for nearly every command
    expanded = (word for each in braced for word in islice(_expand(each), MOST_EXPANDED))
    return any(_may_be(word, globs) for word in chain(_WORD.findall(command), expanded))


def _expand(word: str, most: int = MOST_BRACES) -> Iterator[str]:
    """The words that bash makes of one with braces, `most` pairs of them."""
    found = _BRACES.search(word) if most else None
    if found is None:
        yield word
        return
    for part in found[1].split(","):
        yield from _expand(word[: found.start()] + part + word[found.end() :], most - 1)


def may_show_secrets(call: Call, policy: Policy) -> bool:
    """True if the call reads files that it does not name, and prints what looks like secrets."""
    if not policy.protected or _UNNAMED.search(call.label) is None:
        return False
    return SECRET_TEXT.search(call.output) is not None or _ASSIGNED.search(call.output) is not None


def _may_be(word: str, globs: tuple[str, ...]) -> bool:
    """True if a word of a command names a protected file, or is a pattern (`.e*`) that may. `*` and `*.x` are not taken
    for one: nearly every directory would be protected."""
    if matches(word, globs):
        return True
    name = word.rpartition("/")[2]
    is_pattern = name[:1] not in ("*", "") and _PATTERN.search(name)
    return bool(is_pattern) and any(fnmatchcase(glob, name) for glob in globs)


def shows_lines_of(globs: tuple[str, ...], output: str) -> bool:
    """True if the output says that some of its lines are those of a file of these globs, as searches and diffs do."""
    for found in literals_of(globs).finditer(output) if globs else ():
        named = _NAMES.match(output, output.rfind("\n", 0, found.start()) + 1)
        if named is not None and any(matches(name, globs) for name in named.groups() if name):
            return True
    return False


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
