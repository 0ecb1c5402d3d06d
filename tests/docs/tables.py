"""The tables of the documentation, each from what it is about."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import enum
import inspect
import io
import itertools
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import MISSING
from pathlib import Path
from types import FunctionType

from readcache import Reason
from readcache.cli.main import main
from readcache.cli.options import VARIABLES
from readcache.core.model.policy import SUBMIT_COMMANDS

TOP = Path(__file__).resolve().parents[2]


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    cells = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in cells)


def field_table(kind: type) -> str:
    """The public fields of a dataclass, each with the string under it. ValueError for a field without one."""
    defaults = {field.name: field.default for field in dataclasses.fields(kind) if field.init}
    has_defaults = MISSING not in defaults.values()
    rows = []
    for name, annotation, text in _described(kind):
        second = _default(defaults[name]) if has_defaults else annotation
        rows.append((f"`{name}`", f"`{second}`", text))
    if [row[0] for row in rows] != [f"`{name}`" for name in defaults]:
        raise ValueError(f"a field of {kind.__name__} has no string under it")
    return table(("field", "default" if has_defaults else "type", "meaning"), rows)


def _described(kind: type) -> Iterator[tuple[str, str, str]]:
    """(name, type, meaning) of each field that has a string under it."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    for field, below in itertools.pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, ast.unparse(field.annotation), " ".join(text.split())


def _default(value: object) -> str:
    if value is SUBMIT_COMMANDS:
        return "SUBMIT_COMMANDS"
    if isinstance(value, enum.Enum):
        return str(value)
    return value.__name__ if isinstance(value, FunctionType) else repr(value)


def reasons() -> str:
    """Every `Reason`."""
    return table(("reason", "why"), ((f"`{reason.value}`", reason.why) for reason in Reason))


def command_line() -> str:
    """Every command, from its own --help, and the options that all but `demo` take."""
    names = re.findall(r"^  ([a-z]+)  ", _help(), re.MULTILINE)
    common = " [-h] [--session ID] [--store FILE] [--agent ID]"
    out = []
    for name in names:
        usage, about = _help(name).split("\n\n")[:2]
        words = " ".join(usage.removeprefix("usage: ").split()).replace(common, "").replace(" [-h]", "")
        out.append((f"`{words}`", " ".join(about.split())))
    options = re.findall(r"^  (--(?:session|store|agent) \S+) +(.*)$", _help("log"), re.MULTILINE)
    return (
        table(("command", "what it does"), out)
        + "\n"
        + table(
            ("option of most commands", "meaning"),
            ((f"`{option}`", text) for option, text in options),
        )
    )


def variables() -> str:
    """The environment variables that a user sets."""
    return table(("variable", "meaning"), ((f"`{name}`", what) for name, what in VARIABLES.items()))


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
    """The packages that pyproject.toml asks for, and the reason that stands beside each."""
    text = (TOP / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    rows = []
    for line in found.group(1).splitlines():
        name, _, comment = line.partition("# ")
        if not comment:
            raise ValueError(f"no reason stands beside {name} in pyproject.toml")
        rows.append((f"`{re.findall('[a-z-]+', name)[0]}`", comment.replace("see the README", "see below")))
    return table(("package", "reason"), rows)


def power() -> str:
    """How many instances the A/B kit needs, as it says itself."""
    command = [sys.executable, "-m", "tests.benchmarks.ab", "power"]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout


def testing_example() -> str:
    """The example of a harness's test, which the suite runs: all of it but its docstring."""
    source = (TOP / "tests/testing/test_example.py").read_text(encoding="utf-8")
    return "```python\n" + source.partition("\n\n")[2] + "```\n"
