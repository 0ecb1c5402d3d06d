"""Protected files (`Policy.protected`) and secrets: shown in full each time, and never kept in the log.

`Policy(protected=())` protects nothing. Some commands print secrets without reading a protected file: `env`, `gh auth
token`, `kubectl get secret`. `prints_secrets` recognises them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

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


_ON = r"[^\n;&|]{0,100}?"  # further arguments of the same command
_ENVIRONMENT = r"['\"]?(?:env|printenv)\b"
_IN_CONTAINER = rf"{_ON}\b(?:inspect\b|compose\s{_ON}\bconfig\b|(?:exec|run)\s{_ON}\s{_ENVIRONMENT})"
# A program's name, and the arguments with which it prints secrets.
_PROGRAMS = {
    "docker": _IN_CONTAINER,
    "podman": _IN_CONTAINER,
    "kubectl": rf"{_ON}(?:\bget\s{_ON}\bsecrets?\b|\bconfig\s{_ON}--raw|\bexec\s{_ON}\s{_ENVIRONMENT})",
    "ssh": rf"{_ON}\s{_ENVIRONMENT}",
    "gh": rf"{_ON}\bauth\s+(?:token|status\b{_ON}\s(?:-t|--show-token))\b",
    "aws": rf"{_ON}(?:\b(?:sts|secretsmanager)\b|--with-decryption|get-login-password|export-credentials|access-key)",
    "gcloud": rf"{_ON}(?:print-\w+-token|secrets\s+versions\s+access)",
    "az": rf"{_ON}(?:get-access-token|keyvault\s+secret)",
    "vault": r"\s*\b(?:kv|read|write|login|token|print|unwrap|operator|pki|ssh|transit)\b",
    "op": r"\s*\b(?:read|item|document|inject|run)\b",
    "bw": r"\s*\b(?:get|list|unlock)\b",
    "pass": r"\s*\bshow\b",
    "sops": rf"{_ON}(?:-d|--decrypt|decrypt)\b",
    "ansible-vault": r"\s*(?:view|decrypt)\b",
    "security": r"\s*find-\w+-password\b",
    "secret-tool": r"\s*lookup\b",
    "terraform": rf"{_ON}(?:output|state\s+pull)\b",
    "heroku": r"\s*config\b",
    "doppler": r"\s*secrets\b",
    "git": r"\s*credential\s+fill\b",
}
_ASKED = {name: re.compile(rf"(?<![\w.-]){name}\s(?:{then})") for name, then in _PROGRAMS.items()}

# The environment: `env` without a command, `set` without an option.
_BARE_NAMES = ("env", "set", "export", "declare", "typeset", "history")
_BARE = (
    r"(?:env(?:[ \t]+(?:-\w+|\w+=\S*))*|printenv\b[^\n;&|<>()'\"]*|set|history(?:[ \t]+\d+)?"
    r"|(?:export|declare|typeset)(?:[ \t]+-[a-zA-Z]{0,9}[px][a-zA-Z]{0,9})?)"
)


def _as_command(program: str, quotes: str = "") -> re.Pattern[str]:
    """Return the pattern of a program and its arguments as a whole command, which the `quotes` may enclose."""
    begins = (
        rf"(?:^|[\n;&|({{`!{quotes}]|\b(?:then|do|else|sudo|exec|time|command|xargs)\b)[ \t]*(?:/\w{{1,9}}/(?:bin/)?)?"
    )
    return re.compile(rf"{begins}{program}[ \t]*(?=$|[\n;&|)`>}}#{quotes}]|\d>)")


_BARE_IN_QUOTES, _BARE_UNQUOTED = _as_command(_BARE, quotes="'\""), _as_command(_BARE)
# `echo $API_KEY`, and a program that prints its whole environment.
_ECHOED = re.compile(
    r"(?:echo|printf|<<<)[^\n;|&]{0,200}?\$\{?\w{0,60}?(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL)"
    r"|(?:print|log|dumps|stringify|dict|inspect)\(\s{0,9}(?:os\.environ|process\.env)\b(?![.\[])"
)
# Text in quotes, which may be a script after `-c`, or an escaped character.
_QUOTED = re.compile(r"(\s-\w{0,9}c\s{1,9})?(?:'([^']*)'|\"((?:[^\"\\]|\\.)*)\")|\\.", re.DOTALL)


@lru_cache(maxsize=16)  # asked again for each event of a call
def prints_secrets(command: str) -> bool:
    """Return True if the command asks for secrets, or prints the environment. `env X=1 make` and `set -e` do not."""
    if any(name in command and asked.search(command) is not None for name, asked in _ASKED.items()):
        return True
    if _ECHOED.search(command) is not None:
        return True
    if not any(name in command for name in _BARE_NAMES) or _BARE_IN_QUOTES.search(command) is None:
        return False
    return _BARE_UNQUOTED.search(_QUOTED.sub(_unquoted, command)) is not None


def _unquoted(quoted: re.Match[str]) -> str:
    """Return a script on its own line, and a word for any other text in quotes."""
    return f"\n{quoted[2] or quoted[3] or ''}\n" if quoted[1] else "_"
