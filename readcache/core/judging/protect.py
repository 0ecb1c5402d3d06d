"""Protected files (`Policy.protected`) and secrets: shown in full each time, and never kept in the log.

`Policy(protected=())` protects nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from readcache.core.judging.secret_commands import prints_secrets
from readcache.core.model.call import Call
from readcache.core.model.paths import literals_of, matches_any, may_name, words_of
from readcache.core.model.policy import Policy
from readcache.core.model.secrets import contains_secret, secrets_given, without_given

HIDDEN = "(a command that names a protected file or a secret)"  # the command may contain the text of the protected file
# Commands that read files without naming them: `cat $(ls -A)`, `find . | xargs cat`, `grep -rh KEY .`.
_UNNAMED = re.compile(
    r"\$\(|`|\bxargs\b|\bwhile\b.{0,80}\bread\b|\s-exec|\b(?:grep|rg)\b[^|;]{0,80}\s(?:-\w{0,9}[hI]\w{0,9}\b|--no-filename)"
)
_ASSIGNED = re.compile(  # as in a file `.env`
    r"^(?:\d{1,9}[:-])?(?:export )?[A-Z0-9_]{0,60}?(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL)[A-Z0-9_]{0,60}=\S{6}",
    re.MULTILINE,
)
# The forms in which tools name the file of the lines that they print.
_NAMES = re.compile(
    r"==> (.+) <==$"  # head and tail
    r"|(?:---|\+\+\+|diff --git) (?:[a-z]/)?(\S+)"
    # tools of MCP servers: `File: .env`, `<document path=".env">`
    r"|[^\w\n]{0,9}(?:\w{1,12} )?(?:(?:file|path)[-_ ]?)?(?:file|path|name)['\"*` ]{0,3}"
    r"[:=][ '\"*`]{0,4}([^\s'\"`<>*]+)"
    r"|((?:[A-Za-z]:[\\/])?[^\s:]+?)(?::|[-=]\d+[-=])"  # grep: `path:12:`, `path-12-`
    r"|(\S+)\n(?=\d+[:-])",  # rg: above numbered lines
    re.MULTILINE | re.IGNORECASE,
)
LOOKED_AT = 500  # characters at the beginning of a line that are searched for a name


def concerns_protected(call: Call, policy: Policy) -> bool:
    """Return True if the call may have read or written a protected file, or asked a program for secrets."""
    if not policy.protected:
        return False
    known = chain(call.reading.keys, (write.key for write in call.reading.writes), call.leads_to)
    if any(matches_any(name, policy.protected) for name in known):
        return True
    return may_name(call.label, policy.protected) or prints_secrets(call.label)


def shows_secrets(call: Call, policy: Policy) -> bool:
    """Return True if the output names a protected file above its lines, or contains a secret.

    A text is a secret if it has a known form or if the command was given it. After a command that does not name the
    files that it reads, it is enough that the text looks like a secret.
    """
    if not policy.protected:
        return False
    # Lines of a file that readcache read itself have no headings of other files, and there may be 100,000.
    if not call.exact and shows_lines_of(policy.protected, call.output):
        return True
    if any(map(contains_secret, (call.output, call.head, call.tail))):
        return True
    if any(value in call.output for value in secrets_given(call.label)):
        return True
    return _UNNAMED.search(call.label) is not None and _ASSIGNED.search(call.output) is not None


def shows_lines_of(globs: tuple[str, ...], output: str) -> bool:
    """Return True if the output names a file of these globs above or before its lines, as searches and diffs do.

    Each pattern looks at a line one time, and only at its beginning.
    """
    return any(_heads_lines_of(globs, line) for part in literals_of(globs) for line in _lines_with(part, output))


def _lines_with(part: re.Pattern[str], output: str) -> Iterator[tuple[str, int]]:
    """Yield the output and the start of a line, for each line in which the pattern is found."""
    at = 0
    while (found := part.search(output, at)) is not None:
        yield output, output.rfind("\n", at, found.start()) + 1 or at
        at = output.find("\n", found.end()) + 1 or len(output)


def _heads_lines_of(globs: tuple[str, ...], line: tuple[str, int]) -> bool:
    output, start = line
    named = _NAMES.match(output, start, start + LOOKED_AT)
    return named is not None and any(matches_any(name.replace("\\", "/"), globs) for name in named.groups() if name)


def possible_files(call: Call) -> Iterable[str]:
    """Return names of files that the call may have read or written, and every other word of the command.

    A command that readcache does not understand (`awk … key.pem`) may have read any file that it names.
    """
    return chain(words_of(call.label), call.reading.keys, (write.key for write in call.reading.writes))


def leads_to_protected(call: Call, policy: Policy) -> bool:
    """Return True if one of the names in the call is a link to a protected file."""
    return any(matches_any(path, policy.protected) for path in call.leads_to)


def kept_label(call: Call, policy: Policy) -> str:
    """Return the call's command as the log keeps it: without secrets.

    Return `HIDDEN` if the call concerns a protected file.
    """
    if concerns_protected(call, policy):
        return HIDDEN
    return without_given(call.label) if policy.protected else call.label


def may_keep(text: str, command: str, policy: Policy) -> bool:
    """Return True if the log may keep a text that the agent wrote, because it contains no secret."""
    return not (policy.protected and (contains_secret(text) or any(given in text for given in secrets_given(command))))
