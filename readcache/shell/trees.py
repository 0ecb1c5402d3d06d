"""Programs that write files which they find by themselves, or that nobody can name beforehand: version control,
archives, downloads, formatters, package managers, tasks.

Their writes are below a directory as a rule: the one they work in, or WHOLE_TREE.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

from readcache.model.claims import WHOLE_TREE
from readcache.model.names import below_anything
from readcache.shell.arguments import Program, text_arg
from readcache.shell.harmless import CHANGES, is_test_or_build, words
from readcache.shell.targets import keys_of, operands_of, value_of, without

Targets = tuple[str, ...]
Rewriter = Callable[[Program], Targets]


def here(program: Program) -> Targets:
    """All that is below the directory in which the program works."""
    return (program.cwd or WHOLE_TREE,)


def _texts(program: Program) -> list[str]:
    return [arg.text or "" for arg in program.args]


def _verb(program: Program) -> str:
    return next((text for text in _texts(program) if text and not text.startswith(("-", "+"))), "")


_READ_ONLY = {"--check", "--diff", "-c", "--check-only", "-d", "-"}
# They write unless they are told not to.
_WRITING = words("black isort rustfmt dos2unix unix2dos mac2unix pyupgrade")
_FIXING = {
    "format",
    "fmt",
    "fix",
    "-w",
    "-i",
    "--in-place",
    "--inplace",
    "--apply",
    "-F",
    "-A",
    "-a",
    "-U",
    "--reformat",
}
_FORMATTERS = words(
    """
    ruff gofmt gofumpt goimports golines gci golangci-lint prettier eslint stylelint oxlint clang-format autopep8
    autoflake docformatter yapf shfmt biome @biomejs/biome dprint stylua swiftformat swiftlint ktlint rubocop
    standardrb sqlfluff djlint mdformat markdownlint markdownlint-cli2 terraform buf taplo deno mix dotnet
    google-java-format php-cs-fixer 2to3 modernize nixpkgs-fmt
    """
)  # they write when they are told to
_SUBCOMMANDS = ("check", "format", "fmt", "fix", "lint", "run")


def formatter(program: Program) -> Targets:
    """The files that it is given, or all below the directory."""
    texts = set(_texts(program))
    if not texts.isdisjoint(("--check", "--diff", "--list-different", "-l")):
        return ()
    told = not texts.isdisjoint(_FIXING) or CHANGES.search(" ".join(texts)) is not None
    if program.name in _WRITING:
        told = texts.isdisjoint(_READ_ONLY)
    if not told:
        return ()
    files = [arg for arg in operands_of(program.args) if arg.text not in _SUBCOMMANDS]
    return keys_of(program, files) or here(program)


def _all_below(program: Program) -> Targets:
    return here(program)


def _go(program: Program) -> Targets:
    verb = _verb(program)
    if verb in ("fmt", "generate", "fix", "run"):
        return here(program)
    return ("*/go.mod", "*/go.sum", "*/go.work") if verb in ("mod", "get", "work") else ()


def _cargo(program: Program) -> Targets:
    verb = _verb(program)
    if verb in ("fmt", "fix") or (verb == "clippy" and "--fix" in _texts(program)):
        return () if "--check" in _texts(program) else here(program)
    if verb in ("add", "rm", "remove", "update", "upgrade", "generate-lockfile"):
        return ("*/Cargo.toml", "*/Cargo.lock")
    return ()


_MANIFESTS = ("*/package.json", "*/package-lock.json", "*/pnpm-lock.yaml", "*/yarn.lock", "*/bun.lock")
_PYTHON_MANIFESTS = ("*/pyproject.toml", "*/uv.lock", "*/poetry.lock")
_PLACES = ("--filter", "-F", "-C", "--dir", "--prefix", "--cwd", "-w", "--workspace")
_INSTALLS = words("install i add ci remove rm uninstall update upgrade up dedupe version pkg lock sync")


def package_manager(program: Program) -> Targets:
    """npm and its kin: a task of the project's, a program, or the manifest and the lock file."""
    plain = [arg.text or "" for arg in without(program.args, *_PLACES)[0]]
    plain = [text for text in plain if text and not text.startswith("-")]
    verb = plain[0] if plain else ""
    if verb in _INSTALLS:
        return _MANIFESTS
    if verb in ("init", "create"):
        return here(program)
    if verb in ("run", "run-script"):
        return _by_task(program, plain[1] if len(plain) > 1 else "")
    return _by_task(program, verb) if program.name != "npm" else ()


def _python_packages(program: Program) -> Targets:
    return _PYTHON_MANIFESTS if _verb(program) in _INSTALLS else ()


_TASK_RUNNERS = words("make gmake just task mise rake gradle gradlew mvn tox nox invoke inv lerna turbo nx")


def task_runner(program: Program) -> Targets:
    """make and its kin: by the names of the targets."""
    texts = _texts(program)
    given = texts[: texts.index("--")] if "--" in texts else texts
    plain = [
        text for text in given if text and not text.startswith("-") and "=" not in text and text not in ("run", "r")
    ]
    names = plain[:1] if program.name in ("mise", "just", "task", "nx") else plain  # the others take several
    return tuple(dict.fromkeys(key for name in names for key in _by_task(program, name)))


def _by_task(program: Program, name: str) -> Targets:
    if CHANGES.search(" ".join(_texts(program))):
        return (WHOLE_TREE,)
    return () if is_test_or_build(name) else (WHOLE_TREE,)


def _tar(program: Program) -> Targets:
    texts = _texts(program)
    mode = texts[0] if texts else ""
    letters = "".join(text.lstrip("-") for text in texts if re.fullmatch(r"-[A-Za-z]+", text))
    letters += mode.lstrip("-") if re.fullmatch(r"[A-Za-z]+", mode) else ""
    if "x" in letters or "--extract" in texts or "--get" in texts:
        into = value_of(program.args, "-C", "--directory")
        return (program.target(into) or WHOLE_TREE,) if into is not None else here(program)
    return keys_of(program, operands_of(program.args)[:2]) if "c" in letters else ()


def _unzip(program: Program) -> Targets:
    if any(re.fullmatch(r"-\w*[lptvZz]\w*", text) for text in _texts(program)):
        return ()
    into = value_of(program.args, "-d", "-o") if program.name != "unzip" else value_of(program.args, "-d")
    return (program.target(into) or WHOLE_TREE,) if into is not None else here(program)


def _unpack(program: Program) -> Targets:
    """gzip and its kin: the file, with and without the ending."""
    files = operands_of(program.args)
    plain = [text_arg(posixpath.splitext(arg.path)[0]) for arg in files if arg.path]
    return keys_of(program, [*files, *plain])


def _download(program: Program) -> Targets:
    """curl and wget: the file that is named, or the last part of the address."""
    args = program.args
    into = value_of(args, "-o", "--output") if program.name == "curl" else value_of(args, "-O", "--output-document")
    if into is not None:
        return keys_of(program, [into])
    remote = any(re.fullmatch(r"-[A-Za-z]*O[A-Za-z]*|--remote-name(?:-all)?", text) for text in _texts(program))
    if program.name == "curl" and not remote:
        return ()
    names = [re.sub(r"[?#].*", "", text).rpartition("/")[2] for text in _texts(program) if "/" in text]
    return tuple(filter(None, map(below_anything, names)))


_LOOKS = words("status st diff log cat info list ls annotate blame add commit ci push propset")


def _other_vcs(program: Program) -> Targets:
    """hg and svn: the files that are named, or any."""
    if _verb(program) in _LOOKS:
        return ()
    return keys_of(program, operands_of(program.args)[1:]) or (WHOLE_TREE,)


def _gh(program: Program) -> Targets:
    plain = [text for text in _texts(program) if not text.startswith("-")]
    return (WHOLE_TREE,) if plain[:2] in (["pr", "checkout"], ["pr", "co"], ["repo", "sync"]) else ()


def _host_edit(program: Program) -> Targets:
    """The edit commands that some harnesses put on the PATH: `edit 1:5` is of the file that is open."""
    files = [arg for arg in operands_of(program.args) if re.search(r"[./]\w", arg.path or arg.shape)]
    return keys_of(program, files) or (WHOLE_TREE,)


REWRITERS: dict[str, Rewriter] = {"go": _go, "cargo": _cargo, "gh": _gh}
REWRITERS |= dict.fromkeys(_WRITING | _FORMATTERS, formatter)
REWRITERS |= dict.fromkeys(("npm", "pnpm", "yarn", "bun"), package_manager)
REWRITERS |= dict.fromkeys(_TASK_RUNNERS, task_runner)
REWRITERS |= dict.fromkeys(("uv", "poetry", "pdm", "pipenv"), _python_packages)
REWRITERS |= dict.fromkeys(("tar", "bsdtar", "gtar"), _tar)
REWRITERS |= dict.fromkeys(("unzip", "7z", "7za", "unrar", "bsdunzip"), _unzip)
REWRITERS |= dict.fromkeys(("gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd"), _unpack)
REWRITERS |= dict.fromkeys(("curl", "wget"), _download)
REWRITERS |= dict.fromkeys(("hg", "svn", "jj"), _other_vcs)
REWRITERS |= dict.fromkeys(("pre-commit", "lint-staged", "cpio"), _all_below)
REWRITERS |= dict.fromkeys(("edit", "insert", "str_replace", "undo_edit"), _host_edit)
