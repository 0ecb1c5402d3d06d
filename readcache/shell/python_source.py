"""What a Python program given on the command line prints and writes, for the few idioms that agents use."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

from readcache.model.claims import FileLines
from readcache.shell.streams import ANYTHING, Claims


@dataclass(frozen=True, slots=True)
class _File:
    """A value that stands for lines `first` to `last` of the file `path`: an open file, its text, a list of lines."""

    path: str
    kind: str  # path, handle, text, lines
    first: int = 1
    last: int | None = None
    ended: bool = True  # the text, or each of the lines, carries its final newline
    exact: bool = True  # False: printed to its end, it shows an empty line that the file has not


Value = _File | int | str | None
Key = Callable[[str], "str | None"]


def python_effect(source: str, key: Key) -> tuple[Claims, tuple[str, ...]]:
    """(claims, keys written) of a program; `key` turns a path that it opens into a key."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a doubtful escape in the agent's program is not our user's affair
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ANYTHING, ()
    program = _Program(key)
    for statement in tree.body:
        program.run(statement)
    written = tuple(dict.fromkeys(filter(None, map(key, _Writes(program.names).paths(tree)))))
    return (ANYTHING if program.lost or not program.claims else tuple(program.claims)), written


class _Program:
    """Runs what it understands of a program; `lost` once it met something else that may print."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.names: dict[str, Value] = {}
        self.claims: list[FileLines] = []
        self.lost = False

    def run(self, node: ast.stmt) -> None:
        """One statement."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self.names[node.targets[0].id] = self.value(node.value)
            self.lost = self.lost or self._prints(node.value)
        elif isinstance(node, ast.With) and all(isinstance(i.optional_vars, ast.Name | None) for i in node.items):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    self.names[item.optional_vars.id] = self.value(item.context_expr)
            for statement in node.body:
                self.run(statement)
        elif isinstance(node, ast.For):
            self._loop(node)
        elif isinstance(node, ast.Expr):
            self._expression(node.value)
        elif not isinstance(node, ast.Import | ast.ImportFrom | ast.Pass):
            self.lost = True

    def _prints(self, node: ast.expr) -> bool:
        """May evaluating `node` print? Only what is understood surely does not."""
        return self.value(node) is None and any(isinstance(n, ast.Call) for n in ast.walk(node))

    def _expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant):
            return
        printed = _printed(node)
        if printed is not None:
            value = self.value(printed.value)
            if isinstance(value, _File) and value.kind == "text":
                self._show(replace(value, exact=value.exact and printed.newline != value.ended))
                return
        elif isinstance(node, ast.Call) and _dotted(node.func).rsplit(".", 1)[-1] in _QUIET_CALLS:
            return
        self.lost = True

    def _show(self, value: _File, sep: str | None = None, shift: int = 0) -> None:
        path = self.key(value.path)
        if path is None:
            self.lost = True
            return
        known = value.exact or value.last is not None
        self.claims.append(FileLines((path,), ((value.first, value.last),) if known else None, sep, shift))

    def _loop(self, node: ast.For) -> None:
        """`for line in f: print(line)` and the numbered forms."""
        self.lost = self.lost or len(node.body) != 1 or not isinstance(node.body[0], ast.Expr)
        if self.lost:
            return
        printed = _printed(node.body[0].value)  # type: ignore[attr-defined]
        source, start = node.iter, 0
        if isinstance(source, ast.Call) and _dotted(source.func) == "enumerate" and source.args:
            given = [*source.args[1:], *(word.value for word in source.keywords if word.arg == "start")]
            first = self.value(given[0]) if given else 0
            source, start = source.args[0], first if isinstance(first, int) else -1
            names = _names(node.target)
        else:
            names = ["", *_names(node.target)]
        lines = self.value(source)
        if printed is None or len(names) != 2 or start < 0 or not isinstance(lines, _File):
            self.lost = True
            return
        shown = _numbering(printed.value, names[0], names[1])
        if lines.kind not in ("lines", "handle") or shown is None:
            self.lost = True
            return
        sep, plus, stripped = shown
        if printed.newline == (lines.ended and not stripped):
            self.lost = True  # an empty line after each line, or all in one
            return
        self._show(lines, sep, start + plus - lines.first if sep is not None else 0)

    def value(self, node: ast.expr) -> Value:
        """What an expression stands for, or None."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str | int) and not isinstance(node.value, bool) else None
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Subscript):
            return self._slice(self.value(node.value), node.slice)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            left, right = self.value(node.left), self.value(node.right)
            if isinstance(left, int) and isinstance(right, int):
                return left + right if isinstance(node.op, ast.Add) else left - right
        if isinstance(node, ast.Call):
            return self._call(node)
        return None

    def _slice(self, value: Value, index: ast.expr) -> Value:
        if not isinstance(value, _File) or value.kind != "lines" or not isinstance(index, ast.Slice) or index.step:
            return None
        low = self.value(index.lower) if index.lower else 0
        high = self.value(index.upper) if index.upper else None
        if not isinstance(low, int) or low < 0 or (index.upper and (not isinstance(high, int) or high < low)):
            return None
        last = value.first + high - 1 if isinstance(high, int) else value.last
        return replace(value, first=value.first + low, last=last)

    def _call(self, node: ast.Call) -> Value:
        name = _dotted(node.func)
        if name in ("Path", "pathlib.Path") and len(node.args) == 1:
            path = self.value(node.args[0])
            return _File(path, "path") if isinstance(path, str) else None
        if name in ("open", "io.open", "codecs.open") and node.args:
            path = self.value(node.args[0])
            if "b" in _mode(node) or isinstance(path, int | None):
                return None
            return _File(path.path if isinstance(path, _File) else path, "handle")
        if not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr == "join" and len(node.args) == 1:
            lines, glue = self.value(node.args[0]), self.value(node.func.value)
            fits = isinstance(lines, _File) and lines.kind == "lines" and glue == ("" if lines.ended else "\n")
            return replace(lines, kind="text") if fits and isinstance(lines, _File) else None
        owner = self.value(node.func.value)
        if not isinstance(owner, _File):
            return None
        return _method(owner, node.func.attr)


class _Writes:
    """Finds the paths that a program opens to write, copies over, removes."""

    def __init__(self, names: dict[str, Value]) -> None:
        self._values = _Program(lambda _: None)
        self._values.names = names

    def paths(self, tree: ast.AST) -> list[str]:
        """As they stand in the program."""
        out: list[str] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for target in _targets(node):
                    value = self._values.value(target)
                    path = value.path if isinstance(value, _File) else value
                    if isinstance(path, str):
                        out.append(path)
        return out


def _method(owner: _File, name: str) -> _File | None:
    """What a method of a path, an open file or a text gives."""
    if name in ("read", "read_text"):
        return replace(owner, kind="text")
    if name == "open":
        return replace(owner, kind="handle")
    if name == "readlines":
        return replace(owner, kind="lines")
    if name in ("splitlines", "split"):
        return replace(owner, kind="lines", ended=False, exact=name == "splitlines")
    return None


_QUIET_CALLS = ("write", "write_text", "write_bytes", "copy", "copy2", "copyfile", "move", "remove", "unlink", "close")
_COPIES = ("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree")
_MOVES = ("shutil.move", "os.rename", "os.replace")
_REMOVALS = ("os.remove", "os.unlink", "shutil.rmtree", "os.truncate")


def _targets(node: ast.Call) -> list[ast.expr]:
    """The expressions of the files that this call writes."""
    name = _dotted(node.func)
    if name in ("open", "io.open", "codecs.open"):
        return node.args[:1] if set(_mode(node)) & set("wax+") else []
    if name in _COPIES:
        return node.args[1:2]
    if name in _MOVES:
        return node.args[:2]
    if name in _REMOVALS:
        return node.args[:1]
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in ("write_text", "write_bytes", "unlink"):
            return [node.func.value]
        if node.func.attr == "open" and set(_mode(node, 0)) & set("wax+"):
            return [node.func.value]
    return []


def _mode(node: ast.Call, at: int = 1) -> str:
    given = [*node.args[at : at + 1], *(word.value for word in node.keywords if word.arg == "mode")]
    mode = given[0] if given else None
    return str(mode.value) if isinstance(mode, ast.Constant) else "r"


def _names(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return ""


@dataclass(frozen=True, slots=True)
class _Print:
    """What is printed, and whether a newline is put after it."""

    value: ast.expr
    newline: bool


def _printed(node: ast.expr) -> _Print | None:
    """The one thing that `print(…)`, `print(…, end="")` or `sys.stdout.write(…)` prints."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return None
    name = _dotted(node.func)
    if name == "sys.stdout.write":
        return _Print(node.args[0], newline=False)
    ends = [word.value for word in node.keywords if word.arg == "end"]
    if name != "print" or any(not isinstance(end, ast.Constant) or end.value != "" for end in ends):
        return None
    return _Print(node.args[0], newline=not ends)


def _numbering(node: ast.expr, number: str, line: str) -> tuple[str | None, int, bool] | None:
    """(separator, what is added to the number, is the line stripped) of `f"{i + 1}: {line}"`, or of the bare line.

    The bare line has the separator None. What is neither is None.
    """
    stripped = _is_line(node, line)
    if stripped is not None:
        return None, 0, stripped
    if not isinstance(node, ast.JoinedStr) or len(node.values) != 3 or not number:
        return None
    shown, middle, last = node.values
    if not isinstance(shown, ast.FormattedValue) or not isinstance(last, ast.FormattedValue):
        return None
    plus, stripped = _offset(shown.value, number), _is_line(last.value, line)
    if plus is None or stripped is None or last.conversion != -1 or not isinstance(middle, ast.Constant):
        return None
    return str(middle.value), plus, stripped


def _offset(node: ast.expr, number: str) -> int | None:
    """`number` is 0, `number + 3` is 3."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant):
        inner, added = node.left, node.right.value
    else:
        inner, added = node, 0
    return added if isinstance(inner, ast.Name) and inner.id == number and isinstance(added, int) else None


def _is_line(node: ast.expr, line: str) -> bool | None:
    """False for `line`, True for `line.rstrip()`, else None. Blanks before a newline are rare, and the bytes tell."""
    stripped = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "rstrip"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and stripped:
        node = node.func.value
    return stripped if isinstance(node, ast.Name) and node.id == line else None
