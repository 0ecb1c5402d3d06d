"""Imports point downwards: vocabulary <- judgement <- effects <- session <- entry points."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "readcache"
FILES = sorted(PACKAGE.rglob("*.py"))

VOCABULARY, JUDGEMENT, EFFECTS, SESSION, ENTRY = range(5)
LAYERS = {
    VOCABULARY: "errors text spans claims policy reply events paths",
    JUDGEMENT: "again answer calls compact compose context conversation cover evidence glance index inherit judge "
    "locate marker match mend restore restore_fit restore_plan restore_rank restore_rules shell survive sync view",
    EFFECTS: "changes files fingerprint ledger recorder restorable runner store watch wrap",
    SESSION: "session",
}
LAYER_OF = {name: layer for layer, names in LAYERS.items() for name in names.split()}  # what is not named is an entry
IMPURE = {
    "os",
    "time",
    "random",
    "subprocess",
    "uuid",
    "secrets",
    "threading",
    "socket",
    "pathlib",
    "shutil",
    "tempfile",
}
HEAVY = ("bashlex", "sqlite3", "watchdog", "asyncio", "tree_sitter", "redis")


def name_of(path: Path) -> str:
    """`store` for readcache/store/sqlite.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def layer_of(name: str) -> int:
    return LAYER_OF.get(name, ENTRY)


def imports(tree: ast.AST) -> list[str]:
    """Everything imported, but for what only a type checker sees."""
    skipped = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    out: list[str] = []
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            out += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            out += [f"{node.module}.{alias.name}" for alias in node.names]
    return out


def own_imports(path: Path) -> set[str]:
    """The parts of the package that a file imports."""
    names = (name.split(".") for name in imports(ast.parse(path.read_text(encoding="utf-8"))))
    return {parts[1] for parts in names if parts[0] == "readcache" and len(parts) > 1}


ids = [str(path.relative_to(PACKAGE)) for path in FILES]
each_file = pytest.mark.parametrize("path", FILES, ids=ids)
pure = pytest.mark.parametrize(
    "path", [path for path in FILES if layer_of(name_of(path)) <= JUDGEMENT and path.name != "__init__.py"]
)


@each_file
def test_imports_point_downwards(path: Path) -> None:
    name = name_of(path)
    if path == PACKAGE / "__init__.py":
        return
    above = {other for other in own_imports(path) if layer_of(other) > layer_of(name) and other[0] != "_"}
    assert not above, f"{name} is below {above}"


def test_every_name_in_the_table_exists() -> None:
    assert not {name for name in LAYER_OF if name not in {name_of(path) for path in FILES}}


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph: dict[str, set[str]] = {}
    for path in FILES:
        if path != PACKAGE / "__init__.py":
            graph.setdefault(name_of(path), set()).update(own_imports(path) - {name_of(path)})
    done: set[str] = set()
    while ready := {name for name, needs in graph.items() if name not in done and not (needs & graph.keys()) - done}:
        done |= ready
    assert not graph.keys() - done, f"a circle among {graph.keys() - done}"


@pure
def test_vocabulary_and_judgement_touch_nothing_outside(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not IMPURE.intersection(name.split(".")[0] for name in imports(tree))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"open", "print", "input", "exec", "eval"}


@each_file
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@each_file
def test_public_things_say_what_they_are(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    silent = [] if ast.get_docstring(tree) or not tree.body else ["the module"]
    outer: list[ast.Module | ast.ClassDef] = [tree]
    for node in outer + [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name[0] != "_"]:
        for inner in node.body:
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            if isinstance(inner, kinds) and inner.name[0] != "_" and not ast.get_docstring(inner):
                silent.append(inner.name)
    assert not silent


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = f"import sys, readcache; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_a_plain_read_loads_no_parser() -> None:
    program = (
        "import sys, readcache\n"
        "session = readcache.Session('/w')\n"
        "session.observe('cat f', 'some text\\n' * 90)\n"
        "print(*[m for m in ('bashlex', 'sqlite3', 'tree_sitter') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
