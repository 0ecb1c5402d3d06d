"""What programs write: a table from a program's name to the files it writes and what it prints.

Only what the command names is told; a program that is not in the table may write whatever it likes, and the bytes of
later reads decide.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from readcache.model.claims import WHOLE_TREE, Authored
from readcache.shell.arguments import Arg, CannotTell, Program, integer, options, text_arg
from readcache.shell.readers import git_command, sed_script
from readcache.shell.streams import ANYTHING, Claims, Stream


@dataclass(frozen=True, slots=True)
class Effect:
    """What a program prints, the keys that it writes, and the texts of the command's own that went into files."""

    claims: Claims = ()
    writes: tuple[str, ...] = ()
    authored: tuple[Authored, ...] = ()


Writer = Callable[[Program], "Effect | None"]  # None: this program writes nothing, ask the readers


def _operands(args: Iterable[Arg]) -> list[Arg]:
    """Everything that does not look like an option."""
    out: list[Arg] = []
    only_operands = False
    for arg in args:
        if arg.text == "--" and not only_operands:
            only_operands = True
        elif only_operands or not (arg.text or "").startswith("-"):
            out.append(arg)
    return out


def _keys(program: Program, args: Iterable[Arg]) -> tuple[str, ...]:
    return tuple(key for key in map(program.key, args) if key is not None)


def _take(args: Iterable[Arg], *names: str) -> tuple[list[Arg], Arg | None]:
    """The arguments without the options `names` and their values, and the last of these values."""
    rest: list[Arg] = []
    values: list[Arg] = []
    option = False
    for arg in args:
        if option:
            values.append(arg)
        elif arg.text not in names:
            rest.append(arg)
        option = not option and arg.text in names
    return rest, values[-1] if values else None


def _has_flag(program: Program, letters: str, *long: str) -> bool:
    """True if one of the short options, alone or in a cluster, or one of the long ones is among the arguments."""
    texts = [arg.text or "" for arg in program.args]
    return any(
        text.split("=")[0] in long or (re.fullmatch(r"-[A-Za-z]+", text) and any(c in letters for c in text[1:]))
        for text in texts
    )


def _sed(program: Program) -> Effect | None:
    if not any(re.match(r"-[nErsuz]*i|--in-place", arg.text or "") for arg in program.args):
        return None
    _, files, _ = sed_script(program)
    return Effect((), _keys(program, files))


def _perl(program: Program) -> Effect | None:
    if not any(re.match(r"-[0-9A-Za-z]*i", arg.text or "") for arg in program.args):
        return None
    given = options(program.args, "pnlwai::0::e:E:M:F:s")
    return Effect((), _keys(program, given.operands if given.has("eE") else given.operands[1:]))


def _tee(program: Program) -> Effect:
    files = _operands(program.args)
    append = _has_flag(program, "a", "--append")
    keys = _keys(program, files)
    return Effect(program.stdin.claims, keys, authored_by(program.stdin, keys, append=append))


def authored_by(stdin: Stream, keys: Iterable[str], *, append: bool) -> tuple[Authored, ...]:
    """What of `stdin` goes into the files `keys` and is the command's own text."""
    if stdin.body is None:
        return ()
    return tuple(Authored(key, stdin.body, 0 if append else 1) for key in keys)


def _copy(program: Program) -> Effect:
    """cp, mv, install, ln, rsync: the target, below a directory where it is seen to be one; for mv the sources too."""
    args, into = _take(program.args, "-t", "--target-directory")
    if program.name == "install":
        args, _ = _take(args, "-m", "-o", "-g")
    files = _operands(args)
    directory = into is not None or len(files) > 2
    if into is None and program.name == "ln" and len(files) == 1:
        into = text_arg(".")
    if into is None:
        if len(files) < 2:
            raise CannotTell
        into = files.pop()
    sources, target = _keys(program, files), program.key(into)
    written: tuple[str, ...] = ()
    if target is not None:
        directory = directory or re.search(r"(?:^|/)\.{0,2}$", into.path or "") is not None
        written = tuple(posixpath.join(target, posixpath.basename(key)) for key in sources) if directory else (target,)
    said = ANYTHING if _has_flag(program, "v", "--verbose") else ()
    return Effect(said, (*written, *(sources if program.name == "mv" else ())))


def _remove(program: Program) -> Effect:
    said = ANYTHING if _has_flag(program, "v", "--verbose") else ()
    return Effect(said, _keys(program, _operands(program.args)))


def _truncate(program: Program) -> Effect:
    files, _ = _take(program.args, "-s", "--size", "-r", "--reference")
    return Effect((), _keys(program, _operands(files)))


def _dd(program: Program) -> Effect:
    targets = [text_arg(arg.text[3:]) for arg in program.args if arg.text and arg.text.startswith("of=")]
    return Effect(ANYTHING, _keys(program, targets))


def _sort(program: Program) -> Effect | None:
    _, target = _take(program.args, "-o")
    return None if target is None else Effect((), _keys(program, [target]))


_PATCHED = re.compile(r"^(?:\+\+\+|---) ([^\t\n]+)|^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+)$", re.MULTILINE)


def patched_files(patch: str, strip: int) -> tuple[str, ...]:
    """The paths that a patch names, `strip` leading components taken off (but for `*** Update File: x`)."""
    out: list[str] = []
    for path, plain in _PATCHED.findall(patch):
        if plain:
            out.append(plain.strip())
        elif path.strip() != "/dev/null":
            out.append("/".join(path.strip().split("/")[strip:]))
    return tuple(dict.fromkeys(name for name in out if name))


def _patched(program: Program, patch: str | None, strip: int) -> Effect:
    names = patched_files(patch, strip) if patch is not None else ()
    if not names:
        return Effect(ANYTHING, (WHOLE_TREE,))
    return Effect(ANYTHING, _keys(program, map(text_arg, names)))


_PATCH_SPEC = "bcEeflnNRsTuvZp:i:d:o:r:B:D:F:V:Y:z:g:?t"
_PATCH_LONG = {"strip": "p", "input": "i", "directory": "d", "output": "o", "dry-run": "?", "forward": "N"}
_PATCH_LONG |= {"reverse": "R", "batch": "t", "force": "f", "silent": "s", "quiet": "s", "verbose": "v", "unified": "u"}


def _patch(program: Program) -> Effect:
    given = options(program.args, _PATCH_SPEC, _PATCH_LONG)
    if given.has("?"):
        return Effect(ANYTHING)
    if given.has("o"):
        return Effect(ANYTHING, _keys(program, [text_arg(given.value("o") or "")]))
    if given.operands:
        return Effect(ANYTHING, _keys(program, given.operands[:1]))
    directory = given.value("d")
    if directory is not None:
        program = replace(program, cwd=program.key(text_arg(directory)))
    strip = given.value("p")
    return _patched(program, None if given.has("i") else program.stdin.body, integer(strip) if strip else 0)


def _apply_patch(program: Program) -> Effect:
    body = program.stdin.body if program.stdin.body is not None else (program.args[0].text if program.args else None)
    return _patched(program, body, 0)


_WHOLE_TREE_GIT = ("reset", "merge", "pull", "rebase", "am", "cherry-pick", "revert", "clean", "switch")


def _git(program: Program) -> Effect | None:
    git = git_command(program)
    verb, args = git.name, git.args
    texts = [arg.text for arg in args]
    if verb == "add":
        return Effect()
    if verb == "apply":
        if {"--stat", "--check", "--numstat", "--summary"} & set(texts):
            return Effect(ANYTHING)
        patches = [arg for arg in _operands(args) if arg.text != "-"]
        strip = next((int(text[2:]) for text in texts if text and re.fullmatch(r"-p\d+", text)), 1)
        return _patched(git, None if patches else program.stdin.body, strip)
    if verb == "stash":
        return Effect(ANYTHING, () if texts[:1] and texts[0] in ("list", "show", "drop", "clear") else (WHOLE_TREE,))
    if verb in ("mv", "rm"):
        return Effect(ANYTHING if verb == "rm" else (), () if "--cached" in texts else _keys(git, _operands(args)))
    if verb == "restore":
        paths, _ = _take(args, "-s", "--source")
        staged_only = "--staged" in texts and "--worktree" not in texts
        return Effect((), () if staged_only else _keys(git, _operands(paths)))
    if verb == "checkout":
        return _git_checkout(git, texts)
    if verb == "switch" and {"-c", "-C", "--create"} & set(texts):
        return Effect(ANYTHING)
    if verb in _WHOLE_TREE_GIT:
        harmless = verb == "reset" and not {"--hard", "--merge", "--keep"} & set(texts)
        harmless = harmless or (verb == "clean" and any(re.match(r"-\w*n|--dry-run", text or "") for text in texts))
        return Effect(ANYTHING, () if harmless else (WHOLE_TREE,))
    return None


def _git_checkout(program: Program, texts: list[str | None]) -> Effect:
    """Paths after `--`, from the first that looks like one, or behind a branch; a branch alone may change any file."""
    if {"-b", "-B", "--orphan"} & set(texts):
        return Effect(ANYTHING)
    paths = _operands(program.args)
    if "--" in texts:
        paths = list(program.args[texts.index("--") + 1 :])
    elif paths and not {"--theirs", "--ours"} & set(texts) and not _looks_like_file(paths[0]):
        paths = paths[1:]
    return Effect(ANYTHING, _keys(program, paths) if paths else (WHOLE_TREE,))


def _looks_like_file(arg: Arg) -> bool:
    text = arg.path or ""
    return text in (".", "..") or re.search(r"\.[A-Za-z]\w*$", text) is not None


_FORMATTERS = "black isort rustfmt"  # write unless they are told not to
_READ_ONLY = {"--check", "--diff", "-c", "--check-only", "-d", "-"}
_FIXERS = "ruff gofmt gofumpt goimports prettier eslint clang-format autopep8 yapf shfmt biome"  # write when told to
_FIXING = {"--fix", "--fix-only", "format", "-w", "--write", "-i", "--in-place", "--apply"}
_SUBCOMMANDS = ("check", "format", "lint")


def _formatter(program: Program) -> Effect | None:
    texts = {arg.text for arg in program.args}
    writes = not texts & _READ_ONLY if program.name in _FORMATTERS.split() else bool(texts & _FIXING)
    if not writes or texts & {"--check", "--diff"}:
        return None
    files = [arg for arg in _operands(program.args) if arg.text not in _SUBCOMMANDS]
    return Effect(ANYTHING, _keys(program, files))


def _by_other_programs(program: Program) -> Effect | None:
    """`xargs sed -i …`, `find … -exec rm`: files that are found at run time."""
    texts = [arg.text or "" for arg in program.args]
    edits = any(text in ("sed", "perl") for text in texts) and any(re.match(r"-\w*i", text) for text in texts)
    if edits or any(text in ("rm", "mv", "cp", "-delete") for text in texts):
        return Effect(ANYTHING, (WHOLE_TREE,))
    return None


WRITERS: dict[str, Writer] = {"perl": _perl, "tee": _tee, "truncate": _truncate, "dd": _dd, "sort": _sort, "git": _git}
WRITERS |= {"patch": _patch}
WRITERS |= dict.fromkeys(("apply_patch", "applypatch"), _apply_patch)
WRITERS |= dict.fromkeys(("sed", "gsed"), _sed)
WRITERS |= dict.fromkeys(("cp", "mv", "ln", "install", "rsync"), _copy)
WRITERS |= dict.fromkeys(("rm", "unlink"), _remove)
WRITERS |= dict.fromkeys(("xargs", "find"), _by_other_programs)
WRITERS |= dict.fromkeys(f"{_FORMATTERS} {_FIXERS}".split(), _formatter)
