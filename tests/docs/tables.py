"""The tables of the documentation, each from what it is about."""

from __future__ import annotations

import ast
import contextlib
import enum
import io
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from types import FunctionType

from readcache import Policy, Reason
from readcache.cli.main import main
from readcache.cli.reasons import WHY
from readcache.policy import SUBMIT_COMMANDS

TOP = Path(__file__).resolve().parents[2]
PACKAGE = TOP / "readcache"

MEANINGS = {
    "min_chars": "outputs with fewer characters are never touched",
    "partial": "leave out the visible part of an overlapping read and show the rest",
    "delta": "also leave out lines of a file that was written since, where the lines themselves did not change",
    "identical_output": "leave out the output of any other command when one earlier result holds all of it",
    "any_output": "also leave out visible runs of lines in the output of any other command: test logs, diffs, searches",
    "never": "regexes of commands whose output a harness takes as the agent's answer: never touched",
    "insist": "what the same request gets right after an omission: `SERVE` all bytes, `STUB` a marker again",
    "clip": "how the harness truncates, `HeadTail(5000, 5000)` or `Head(n)`: only what survives counts as seen",
    "horizon_tokens": "results with more than this many tokens of later output after them count as gone",
    "protected": "globs of files that are never omitted nor restored",
    "count_tokens": "any `str -> int`; the default is a quarter of the characters",
    "mode": "`ON`; `ADVISE` omits nothing and counts what it would have omitted; `OFF` records nothing either",
}

# Layers as in tests/test_layers.py, uppermost first; a name ends with "*" for all modules that begin so.
LAYERS = {
    "entry points": ("__init__", "__main__", "cli*", "shim*", "testing/*"),
    "session": ("session",),
    "effects": (
        "wrap",
        "recorder",
        "ledger",
        "runner",
        "changes",
        "watch",
        "fingerprint",
        "restorable",
        "files",
        "store/*",
    ),
    "judgement, pure": (
        "calls",
        "answer",
        "again",
        "judge",
        "match",
        "cover",
        "index",
        "compose",
        "marker",
        "survive",
        "restore",
        "restore_plan",
        "restore_rank",
        "restore_fit",
        "restore_rules",
        "evidence",
        "compact",
        "sync",
        "conversation",
        "locate",
        "mend",
        "inherit",
        "view",
    ),
    "message lists, pure": ("context/*",),
    "reading commands, pure": ("glance", "shell/*"),
    "vocabulary, pure": ("claims", "events", "reply", "policy", "spans", "text", "paths", "errors"),
}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    cells = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in cells)


def policy() -> str:
    """Every field of `Policy`."""
    public = [field for field in fields(Policy) if field.init]
    names = {field.name for field in public}
    if names != MEANINGS.keys():
        raise ValueError(f"MEANINGS and the fields of Policy differ: {sorted(names ^ MEANINGS.keys())}")
    rows = ((f"`{f.name}`", f"`{_default(f.default)}`", MEANINGS[f.name]) for f in public)
    return table(("field", "default", "meaning"), rows)


def _default(value: object) -> str:
    if value is SUBMIT_COMMANDS:
        return "SUBMIT_COMMANDS"
    if isinstance(value, enum.Enum):
        return str(value)
    return value.__name__ if isinstance(value, FunctionType) else repr(value)


def reasons() -> str:
    """Every `Reason`."""
    return table(("reason", "why"), ((f"`{reason.value}`", WHY[reason]) for reason in Reason))


def command_line() -> str:
    """Every command as its own --help tells of it, without what all of them take."""
    names = re.findall(r"^ {4}([a-z-]+)(?:\s|$)", _help(), re.MULTILINE)
    common = " [-h] [--session ID] [--store FILE] [--agent ID]"
    out = []
    for name in names:
        usage, about = _help(name).split("\n\n")[:2]
        words = " ".join(usage.removeprefix("usage: ").split()).replace(common, "")
        out.append((f"`{words}`", " ".join(about.split())))
    options = re.findall(r"^  (--(?:session|store|agent) \S+) +(.*)$", _help("log"), re.MULTILINE)
    return (
        table(("command", "what it does"), out)
        + "\n"
        + table(("option of all of them", "what it names"), ((f"`{option}`", text) for option, text in options))
    )


def _help(*words: str) -> str:
    out = io.StringIO()
    with _width("200"), contextlib.redirect_stdout(out):
        main([*words, "--help"])
    return out.getvalue()


@contextlib.contextmanager
def _width(columns: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ("COLUMNS", "NO_COLOR")}
    os.environ.update(COLUMNS=columns, NO_COLOR="1")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def dependencies() -> str:
    """What pyproject.toml asks for, and the reason that stands beside it."""
    text = (TOP / "pyproject.toml").read_text(encoding="utf-8")
    rows = []
    for list_, kind in (("dependencies", "always"),):
        found = re.search(rf"^{list_} = \[(.*?)\]([^\n]*)$", text, re.MULTILINE | re.DOTALL)
        if found is None:
            raise ValueError(f"pyproject.toml has no {list_}")
        for line in found.group(1).strip().splitlines():
            names = ", ".join(f"`{name}`" for name in re.findall(r'"([\w-]+)', line))
            comment = (line + found.group(2)).partition("# ")[2]
            if not comment:
                raise ValueError(f"no reason stands beside {names} in pyproject.toml")
            rows.append((names, kind, comment.replace("see the README", "see [Licence](#licence)")))
    return table(("package", "needed", "reason"), rows)


def modules() -> str:
    """Every module with the first line of its docstring, by layers. ValueError when `LAYERS` and the package differ."""
    here = [path.relative_to(PACKAGE).with_suffix("").as_posix() for path in sorted(PACKAGE.rglob("*.py"))]
    out = []
    for layer, patterns in LAYERS.items():
        out.append(f"\n**{layer}**\n\n")
        for pattern in patterns:
            named = [name for name in here if name == pattern or (pattern[-1] == "*" and name.startswith(pattern[:-1]))]
            if not named:
                raise ValueError(f"LAYERS names {pattern}, which is not there")
            out += [f"- [`{name}`]({name}.py): {_about(name)}\n" for name in named]
            here = [name for name in here if name not in named]
    if here:
        raise ValueError(f"LAYERS lacks {', '.join(here)}")
    return "".join(out)[1:]


def _about(name: str) -> str:
    about = ast.get_docstring(ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8")))
    if not about:
        raise ValueError(f"{name} has no docstring")
    return about.splitlines()[0]


def testing_example() -> str:
    """The example of a harness's test, which the suite runs: all of it but its docstring."""
    source = (TOP / "tests/testing/test_example.py").read_text(encoding="utf-8")
    return "```python\n" + source.partition("\n\n")[2] + "```\n"
