"""Names of files that contain secrets, and forms of text that are certainly secrets. Omitting, storing, restoring and
pruning use only these lists."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

# Globs of files that contain secrets and hardly anything else. Shortened from the lists of gitleaks, of GitHub's secret
# scanning and of GitHub's templates for `.gitignore`.
SECRET_NAMES = (
    *(".env", ".env.*", ".env-*", ".envrc", "*.env", "/proc/*/environ"),
    *(".netrc", ".pgpass", ".pypirc", ".npmrc", ".git-credentials", ".htpasswd", ".my.cnf", ".dockercfg"),
    *(".aws/config", ".docker/config.json", ".kube/config", "kubeconfig", ".codex/auth.json", ".vault-token"),
    *("credentials", "credentials.json", "credentials.y*ml", "credentials.xml", "credentials.csv", ".credentials.json"),
    *("credentials.toml", "application_default_credentials.json", "service-account*.json", "service_account*.json"),
    *("secrets.json", "secrets.y*ml", "secrets.toml", "*.tfstate", "*.tfstate.*", "*.tfvars", ".*_history"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.ppk"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ovpn"),
)

_REST = re.compile(r"[\w.+/=-]*")  # the rest of a token
_LINES = re.compile(r"[^\n]*(?:\n[\w \t\r+/=:.,@\\\"'-]*(?=\n|\Z))*")  # the lines of a key, and similar lines
_IN_TOKEN = frozenset(f"{string.ascii_letters}{string.digits}_-")
ELIDED = "…"  # replaces a secret
_WORD = r"[A-Za-z0-9]"
_OWN = rf"(?<!{_WORD})"  # no letter or digit comes before
_VARIED = r"(?!(.)\1{9})"  # an example in documentation repeats one character; AWS's examples end with EXAMPLE
# Forms that only secrets have, with the lengths of gitleaks' rules (config/gitleaks.toml). All outputs are searched.
# So each form has a literal part that is searched first: this takes half a nanosecond per character, and the part is
# rarely found. A part of one character begins several forms, because a search for a first character is as fast.
# No unbounded repetition can begin in the middle of another one, so a search takes linear time.
_FORMS = {
    "PRIVATE KEY": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[ \t]*(?:\\[nr]|[\r\n])(?:\\[nr]|\s)*[\w+/=-]|[ \t]+[\w+/]{32})",
    "A": rf"A(?<!{_WORD}A)(?:(?:KIA|SIA)(?![A-Z2-7]{{9}}EXAMPLE)[A-Z2-7]{{16}}(?!{_WORD})|Iza[\w-]{{35}}(?![\w-]))",
    "_": rf"_(?:(?<=gh[pousr]_)(?<!{_WORD}gh[pousr]_)|(?<=npm_)(?<!{_WORD}npm_)|(?<=hf_)(?<!{_WORD}hf_))"
    rf"{_VARIED}{_WORD}{{34}}",
    "github_pat_": rf"github_pat_{_VARIED}\w{{36}}",
    "glpat-": rf"{_OWN}glpat-{_VARIED}[\w-]{{20}}",
    "xox": rf"{_OWN}xox[a-z]-\d{{1,13}}-[A-Za-z0-9-]{{16}}",
    "hooks.slack.com/": r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Z]\w{4,40}/(?!(.)\1{6})[\w/]{24}",
    "sk-ant-": rf"{_OWN}sk-ant-\w{{3,8}}-{_VARIED}[\w-]{{32}}",
    "sk-or-v1-": rf"{_OWN}sk-or-v1-{_VARIED}[a-f0-9]{{64}}",
    "T3BlbkFJ": r"(?<=[\w-]{20})T3BlbkFJ[\w-]{20}",  # in the middle of OpenAI's keys
    "pypi-AgE": r"pypi-AgE[\w-]{50}",
    "k_live_": rf"{_OWN}[rs]k_live_{_VARIED}{_WORD}{{16}}",  # Stripe's
    "SG.": rf"{_OWN}SG\.[\w-]{{22}}\.[\w-]{{43}}",  # SendGrid's
    "hvs.": rf"{_OWN}hvs\.[\w-]{{24}}",  # Vault's
    ".eyJ": r"(?<=[\w-]{10})\.eyJ[\w-]{10,}\.[\w-]{20}",  # the second part of a JWT, and its signature
    "AGE-SECRET-KEY-1": r"AGE-SECRET-KEY-1[A-Z0-9]{58}",
    "kind: Secret": r"kind: Secret(?!\w)",  # Kubernetes
    '"kind": "Secret"': r'"kind": "Secret"',
}
_CERTAIN = {part: re.compile(form) for part, form in _FORMS.items()}
_SHORTEST = 12  # characters: no form is shorter
_ASSIGNED = re.compile(r"[=:]\s*[\"']?([^\s\"',;]+)")
LEAST_PART = 6  # characters; shorter lines and values of a text are in any other text

# The forms in which commands are given secrets. The captured value counts if it has letters and digits.
_VALUE = r"['\"]?([^\s'\"$`();&|<>]{8,})"
_GIVEN = {
    **{f"{name}=": re.compile(f"{name}={_VALUE}") for name in ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS")},
    **{f"--{name}": re.compile(f"--{name}[= ]{_VALUE}") for name in ("password", "token", "secret", "api-key")},
    "uthorization:": re.compile(rf"uthorization: *\w{{1,20}} {_VALUE}"),
    "mysql": re.compile(rf"mysql[^\n;|&]{{0,80}}? -p{_VALUE}"),
    "://": re.compile(r"://[^\s/:@'\"$]{1,80}:([^\s/@'\"$`]{8,})@"),
}


def contains_secret(text: str) -> bool:
    """Return True if the text certainly contains a secret: a private key, or a token of a known form. Takes about 10
    nanoseconds per character."""
    if len(text) < _SHORTEST:
        return False
    for part, form in _CERTAIN.items():  # noqa: SIM110  a generator takes longer
        if (len(part) == 1 or part in text) and form.search(text) is not None:
            return True
    return False


def quotable_in(text: str) -> set[str]:
    """Return the lines of a text and the values in it that another text quotes only on purpose."""
    parts = (part.strip() for part in (*text.splitlines(), *_ASSIGNED.findall(text)))
    return {part for part in parts if len(part) >= LEAST_PART}


def secrets_given(command: str) -> Iterator[str]:
    """Yield the values that the command names as keys, tokens or passwords, if they have letters and digits."""
    for part, form in _GIVEN.items():
        if part in command:
            found = (match[1] for match in form.finditer(command))
            yield from (value for value in found if re.search(r"\d", value) and re.search("[A-Za-z]", value))


def without_secrets(text: str) -> str:
    """Return the text with `…` instead of each token of a known form and each line of a private key. The number of
    lines stays the same."""
    if contains_secret(text):
        for form in _CERTAIN.values():
            text = _elide(form, text)
    return text


def without_given(command: str) -> str:
    """Return the command with `…` instead of each token of a known form and each value of `secrets_given`."""
    command = without_secrets(command)
    for value in sorted(set(secrets_given(command)), key=len, reverse=True):
        command = command.replace(value, ELIDED)
    return command


def _elide(form: re.Pattern[str], text: str) -> str:
    parts, at = [], 0
    for match in form.finditer(text):
        start = match.start()
        while start > at and text[start - 1] in _IN_TOKEN:  # the form may begin in the middle
            start -= 1
        if start >= at:
            end = _end_of(match)
            parts += [text[at:start], "\n".join([ELIDED] * (text.count("\n", start, end) + 1))]
            at = end
    return "".join((*parts, text[at:]))


def _end_of(match: re.Match[str]) -> int:
    """Return the end of the secret that begins with the match: the end of its word, or of the lines of its block."""
    is_block = "PRIVATE KEY" in match[0] or "Secret" in match[0]
    rest = (_LINES if is_block else _REST).match(match.string, match.end())
    return rest.end() if rest is not None else match.end()
