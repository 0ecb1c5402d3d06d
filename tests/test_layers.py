"""The house: folders are the layers, imports between them point one way, and a folder is pure or it is not."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "readcache"
FILES = sorted(PACKAGE.rglob("*.py"))
PURE = frozenset(("core",))  # every other room may build on it
IMPURE = frozenset(
    "os time random subprocess uuid secrets threading socket pathlib shutil tempfile sqlite3 watchdog signal".split()  # noqa: SIM905  shorter so
)
HEAVY = ("bashlex", "sqlite3", "watchdog", "asyncio", "redis")
UNSAID = ("_", "test_")  # the name of a test is the sentence
MOST_FLOORS, MOST_ARROWS, MOST_ENTRIES = 7, 36, 14


def room_of(path: Path, below: Path = PACKAGE) -> str:
    """Return `log` for readcache/log/store/sqlite.py, `store` for the same file below readcache/log."""
    return path.relative_to(below).parts[0].removesuffix(".py")


def module(path: Path) -> str:
    return ".".join(("readcache", *path.relative_to(PACKAGE).with_suffix("").parts))


MODULES = frozenset(map(module, FILES))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Yield every module that a file imports: also in functions, and for type checkers only."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_by_name(path: Path) -> Iterator[str]:
    """Yield every module of ours whose name is a string in a file: it may be imported by that."""
    for node in outside_of_files(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.removesuffix(".")  # as in f"readcache.cli.{command}"
            yield from {name, f"{name}.__init__"} & MODULES - {"readcache.__init__"}
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            assert node.values[0].value != "readcache." or is_group(path), f"{path}: imports what?"


def outside_of_files(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes, except calls of `importlib.resources.files`: to read a file there, no module is imported."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "files"):
            yield from outside_of_files(node)


def is_group(path: Path) -> bool:
    """Return True for the file that knows groups of entry points, which are named as rooms are."""
    return path == PACKAGE / "core/model/plugins.py"


@cache
def arrows(below: Path = PACKAGE) -> dict[str, frozenset[str]]:
    """Return the rooms of a folder: room -> the rooms that it imports."""
    package = module(below / "__init__.py").removesuffix(".__init__")
    files = [path for path in FILES if path.is_relative_to(below)]
    rooms = {room_of(path, below) for path in files}
    out: dict[str, set[str]] = {room: set() for room in rooms}
    for path in files:
        for name in {*imported(path), *imported_by_name(path)}:
            if f"{name}.".startswith(f"{package}."):
                inner = name[len(package) + 1 :].partition(".")[0]
                out[room_of(path, below)].add(inner if inner in rooms else "__init__")
    return {room: frozenset(others - {room}) for room, others in out.items()}


def floors(below: Path = PACKAGE) -> dict[str, int]:
    """Return for each room the number of rooms in the longest chain of imports that begins there."""
    above, height = arrows(below), dict[str, int]()
    while ready := [room for room, below in above.items() if room not in height and below <= height.keys()]:
        height |= {room: 1 + max((height[other] for other in above[room]), default=0) for room in ready}
    return height


def file_imports(path: Path) -> set[str]:
    """The files that this file imports, by name too. An imported name belongs to the longest module whose name begins
    it."""
    out = set[str]()
    for name in {*imported(path), *imported_by_name(path)}:
        while name and name not in MODULES:
            name = name.rpartition(".")[0]
        out.add(name)
    return out - {"", module(path)}


@pytest.mark.parametrize("below", [PACKAGE, PACKAGE / "core"], ids=lambda path: path.name)
def test_imports_between_rooms_go_one_way(below: Path) -> None:
    assert not arrows(below).keys() - floors(below).keys(), "a circle"


def test_no_files_import_each_other_in_a_circle() -> None:
    waiting = {module(path): file_imports(path) for path in FILES}
    while ready := [name for name, imports in waiting.items() if not imports & waiting.keys()]:
        for name in ready:
            del waiting[name]
    assert sorted(waiting) == [], "these import each other, or one that does"


def test_the_house_has_few_floors_and_few_arrows() -> None:
    assert max(floors().values()) <= MOST_FLOORS
    assert sum(map(len, arrows().values())) <= MOST_ARROWS


def test_reports_replays_and_test_tools_use_what_anybody_can_use() -> None:
    others = {(room, other) for room in ("report", "testing") for other in arrows()[room]}
    inner = {(room, other) for room, other in others if other not in ("__init__", "core", "transcripts")}
    assert inner == set()


def test_the_top_of_the_package_fits_on_a_screen() -> None:
    entries = [path for path in PACKAGE.iterdir() if path.is_file() or any(path.glob("*.py"))]  # git leaves empty ones
    assert len(entries) <= MOST_ENTRIES


def test_pure_rooms_build_on_pure_rooms_alone() -> None:
    assert not {(room, other) for room in PURE for other in arrows()[room] - PURE}


OPENERS = ("transcripts/files.py",)  # parsing transcripts is pure, opening them is not


def is_pure(path: Path) -> bool:
    return room_of(path) in PURE | {"transcripts"} and str(path.relative_to(PACKAGE)) not in OPENERS


def test_pure_rooms_touch_nothing_outside() -> None:
    for path in filter(is_pure, FILES):
        assert not IMPURE.intersection(name.partition(".")[0] for name in imported(path)), path
        nodes = ast.walk(tree_of(path))
        called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert not called & {"open", "print", "input", "exec", "eval"}, path


def test_files_stay_short() -> None:
    assert not [path for path in FILES if len(path.read_text(encoding="utf-8").splitlines()) > 400]


@pytest.mark.parametrize("name", ["events", "view"])
def test_the_first_files_that_a_newcomer_reads_are_the_shortest(name: str) -> None:
    assert len((PACKAGE / f"core/model/{name}.py").read_text(encoding="utf-8").splitlines()) <= 225


def test_the_decision_is_as_short() -> None:
    assert len((PACKAGE / "core/judging/judge.py").read_text(encoding="utf-8").splitlines()) < 220


def test_no_two_public_things_have_one_name() -> None:
    homes: dict[str, set[str]] = {}
    for path in FILES:
        for node in tree_of(path).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                homes.setdefault(node.name, set()).add(str(path.relative_to(PACKAGE)))
    twice = {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1}
    # `readcache.Change` is a file that changed, `readcache.context.Change` a text; both names are promised to users.
    assert twice == {"Change": ["context/changes.py", "session/disk/changes.py"]}


def test_public_things_say_what_they_are() -> None:
    assert not {path: silent for path in FILES if (silent := without_docstring(tree_of(path)))}


def without_docstring(tree: ast.Module) -> list[str]:
    silent = [] if ast.get_docstring(tree) or not tree.body else ["the module"]
    outer: list[ast.Module | ast.ClassDef] = [tree]
    for node in outer + [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name[0] != "_"]:
        for inner in node.body:
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            if isinstance(inner, kinds) and not inner.name.startswith(UNSAID) and not ast.get_docstring(inner):
                silent.append(inner.name)
    return silent


def loaded_by(program: str) -> set[str]:
    program = f"import sys\n{program}\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_by("import readcache")


def test_a_plain_read_loads_no_parser() -> None:
    assert not loaded_by(
        "import readcache; session = readcache.Session('/w'); session.observe('cat f', 'some text\\n' * 90)"
    )


def test_a_command_that_only_writes_is_planned_without_the_code_that_judges() -> None:
    """A shim plans each command of the agent's shell before it starts it."""
    program = (
        "from readcache.process.plan import Caller, plan_call;"
        "caller = Caller('run', ['make > log'], '/w', {'READCACHE_SESSION': 's'});"
        "assert not plan_call(caller, lambda _: False).is_buffered;"
        "assert 'readcache.core.judging.marker' not in sys.modules"
    )
    assert not loaded_by(program)


def test_the_shell_package_brings_its_reader_only_when_it_is_asked_for() -> None:
    program = (
        "from readcache.core.shell import grammar, prefilter; before = 'readcache.core.shell.read' in sys.modules;"
        "import readcache.core.shell; from readcache.core.shell import read_command;"
        "assert not before and not hasattr(readcache.core.shell, 'functools') and read_command('cat f', '/w').claims"
    )
    assert not loaded_by(program)
