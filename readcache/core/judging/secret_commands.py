"""Commands that print secrets without reading a protected file: `env`, `gh auth token`, `kubectl get secret`."""

from __future__ import annotations

import re
from functools import lru_cache

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
