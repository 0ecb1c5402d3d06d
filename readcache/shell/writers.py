"""What programs write: a table from a program's name to the files it writes and what it prints.

Of a program that is not in the table, `guesses` says what it may write.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq
from dataclasses import replace
from functools import partial

from readcache.model.claims import WHOLE_TREE, Authored, FileLines, glob_stem
from readcache.shell.arguments import Arg, CannotTell, Program, integer, options, text_arg
from readcache.shell.effects import Effect
from readcache.shell.guesses import may_write
from readcache.shell.harmless import only_reads
from readcache.shell.readers import READERS, git_command, sed_script
from readcache.shell.streams import ANYTHING, Stream
from readcache.shell.targets import keys_of, operands_of, value_of, without
from readcache.shell.trees import REWRITERS, Rewriter

Writer = Callable[[Program], "Effect | None"]  # None: this program writes nothing, ask the readers


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
    return Effect((), keys_of(program, files))


def _perl(program: Program) -> Effect:
    """perl and ruby."""
    if not any(re.match(r"-[0-9A-Za-z]*i", arg.text or "") for arg in program.args):
        return may_write(program)
    given = options(program.args, "pnlwaci::0::e:E:M:F:sr:")
    return Effect((), keys_of(program, given.operands if given.has("eE") else given.operands[1:]))


def _tee(program: Program) -> Effect:
    files = operands_of(program.args)
    append = _has_flag(program, "a", "--append")
    keys = keys_of(program, files)
    return Effect(program.stdin.claims, keys, authored_by(program.stdin, keys, append=append))


def authored_by(stdin: Stream, keys: Iterable[str], *, append: bool) -> tuple[Authored, ...]:
    """What of `stdin` goes into the files `keys` and is the command's own text."""
    if stdin.body is None:
        return ()
    return tuple(Authored(key, stdin.body, 0 if append else 1) for key in keys)


def _copy(program: Program) -> Effect:
    """cp, mv, install, ln, rsync: the target, below a directory where it is seen to be one; for mv the sources too.

    Of a directory whose contents are copied (`src/.`, for rsync `src/`), anything below the target."""
    args, into = without(program.args, "-t", "--target-directory")
    if program.name == "install":
        args, _ = without(args, "-m", "-o", "-g")
    files = operands_of(args)
    directory = into is not None or len(files) > 2
    if into is None and program.name == "ln" and len(files) == 1:
        into = text_arg(".")
    if into is None:
        if len(files) < 2:
            raise CannotTell
        into = files.pop()
    sources, target = keys_of(program, files), program.target(into)
    written: tuple[str, ...] = ()
    if target is not None:
        directory = directory or re.search(r"(?:^|/)\.{0,2}$", into.path or "") is not None
        contents = r"(?:^|/)\.?$" if program.name == "rsync" else r"(?:^|/)\.$"
        if not directory or any(re.search(contents, arg.path or "") for arg in files):
            written = (target,)
        else:
            written = tuple(posixpath.join(target, posixpath.basename(key)) for key in sources)
    said = ANYTHING if _has_flag(program, "v", "--verbose") else ()
    return Effect(said, (*written, *(sources if program.name == "mv" else ())))


def _remove(program: Program) -> Effect:
    said = ANYTHING if _has_flag(program, "v", "--verbose") else ()
    return Effect(said, keys_of(program, operands_of(program.args)))


def _truncate(program: Program) -> Effect:
    files, _ = without(program.args, "-s", "--size", "-r", "--reference")
    return Effect((), keys_of(program, operands_of(files)))


def _dd(program: Program) -> Effect:
    targets = [text_arg(arg.text[3:]) for arg in program.args if arg.text and arg.text.startswith("of=")]
    return Effect(ANYTHING, keys_of(program, targets))


def _touch(program: Program) -> Effect:
    files, _ = without(program.args, "-d", "-t", "-r", "--date", "--reference")
    return Effect((), keys_of(program, operands_of(files)))


def _sort(program: Program) -> Effect | None:
    target = value_of(program.args, "-o", "--output")
    return None if target is None else Effect((), keys_of(program, [target]))


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


def _patched(program: Program, patch: str | None, strip: int, file: str | None = None) -> Effect:
    """`file`: the key of the patch, where it is not on stdin."""
    names = patched_files(patch, strip) if patch is not None else ()
    if not names:
        return Effect(ANYTHING, script=file or WHOLE_TREE)
    return Effect(ANYTHING, keys_of(program, map(text_arg, names)))


_PATCH_SPEC = "bcEeflnNRsTuvZp:i:d:o:r:B:D:F:V:Y:z:g:?t"
_PATCH_LONG = {"strip": "p", "input": "i", "directory": "d", "output": "o", "dry-run": "?", "forward": "N"}
_PATCH_LONG |= {"reverse": "R", "batch": "t", "force": "f", "silent": "s", "quiet": "s", "verbose": "v", "unified": "u"}


def _patch(program: Program) -> Effect:
    given = options(program.args, _PATCH_SPEC, _PATCH_LONG)
    if given.has("?"):
        return Effect(ANYTHING)
    if given.has("o"):
        return Effect(ANYTHING, keys_of(program, [text_arg(given.value("o") or "")]))
    if given.operands:
        return Effect(ANYTHING, keys_of(program, given.operands[:1]))
    directory = given.value("d")
    if directory is not None:
        program = replace(program, cwd=program.key(text_arg(directory)))
    strip = given.value("p")
    given_file = given.value("i")
    file = program.key(text_arg(given_file)) if given_file else _only_file(program.stdin)
    return _patched(program, None if given_file else program.stdin.body, integer(strip) if strip else 0, file)


def _only_file(stdin: Stream) -> str | None:
    """The file that comes in as a whole."""
    match stdin.claims:
        case (FileLines(keys=(key,), ranges=((1, None),), sep=None),):
            return key
    return None


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
        patches = [arg for arg in operands_of(args) if arg.text != "-"]
        strip = next((int(text[2:]) for text in texts if text and re.fullmatch(r"-p\d+", text)), 1)
        file = git.key(patches[0]) if patches else _only_file(git.stdin)
        return _patched(git, None if patches else program.stdin.body, strip, file)
    if verb == "stash":
        return Effect(ANYTHING, () if texts[:1] and texts[0] in ("list", "show", "drop", "clear") else (WHOLE_TREE,))
    if verb in ("mv", "rm"):
        return Effect(ANYTHING if verb == "rm" else (), () if "--cached" in texts else keys_of(git, operands_of(args)))
    if verb == "restore":
        paths, _ = without(args, "-s", "--source")
        staged_only = "--staged" in texts and "--worktree" not in texts
        return Effect((), () if staged_only else keys_of(git, operands_of(paths)))
    if verb == "checkout":
        return _git_checkout(git, texts)
    if verb == "checkout-index":
        return Effect((), keys_of(git, operands_of(args)) if operands_of(args) else (WHOLE_TREE,))
    if verb == "switch" and {"-c", "-C", "--create"} & set(texts):
        return Effect(ANYTHING)
    if verb in _WHOLE_TREE_GIT:
        harmless = verb == "reset" and not {"--hard", "--merge", "--keep"} & set(texts)
        harmless = harmless or (verb == "clean" and any(re.match(r"-\w*n|--dry-run", text or "") for text in texts))
        return Effect(ANYTHING, () if harmless else (WHOLE_TREE,))
    known = only_reads("git", (verb, *(text for text in texts if text is not None)))
    out = (
        value_of(args, "-o", "--output", "--output-directory") if verb in ("diff", "archive", "format-patch") else None
    )
    if out is not None:
        return Effect(ANYTHING, keys_of(git, [out]))
    return None if known else Effect(ANYTHING, (WHOLE_TREE,))


def _git_checkout(program: Program, texts: list[str | None]) -> Effect:
    """Paths after `--`, from the first that looks like one, or behind a branch; a branch alone may change any file."""
    if {"-b", "-B", "--orphan"} & set(texts):
        return Effect(ANYTHING)
    paths = operands_of(program.args)
    if "--" in texts:
        paths = list(program.args[texts.index("--") + 1 :])
    elif paths and not {"--theirs", "--ours"} & set(texts) and not _looks_like_file(paths[0]):
        paths = paths[1:]
    return Effect(ANYTHING, keys_of(program, paths) if paths else (WHOLE_TREE,))


def _looks_like_file(arg: Arg) -> bool:
    text = arg.path or ""
    return text in (".", "..") or re.search(r"\.[A-Za-z]\w*$", text) is not None


def program_of_each(program: Program) -> Program | None:
    """The program that `xargs`, `parallel` and `find -exec` run, on the files that it is given or that are found at run
    time; None when there is none."""
    if program.name == "find":
        at = next((k for k, arg in enumerate(program.args) if arg.text in _FIND_RUNS), None)
        return None if at is None else _given(program, program.args[at + 1 :], [_found(program)])
    if program.name not in ("xargs", "parallel"):
        return None
    args = list(program.args)
    while args and (args[0].text or "").startswith("-"):
        if _XARGS_VALUE.fullmatch(args.pop(0).text or "") and args:
            args.pop(0)
    words = [arg.text for arg in args]
    at = words.index(":::") if ":::" in words else None
    return _given(program, args[:at], args[at + 1 :] if at is not None else [Arg(None, None, shape=WHOLE_TREE)])


_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_XARGS_VALUE = re.compile(r"-[aEIiLnPsdj]|--(?:arg-file|delimiter|max-\w+|replace|jobs)")


def _given(program: Program, words: Seq[Arg], files: Seq[Arg]) -> Program | None:
    if not words or words[0].text is None:
        return None
    plain = [word for word in words[1:] if word.text not in ("{}", ";", "+")]
    return replace(program, name=posixpath.basename(words[0].text), args=(*plain, *files), stdin=Stream())


def _find(program: Program) -> Effect | None:
    is_deleting = any(arg.text == "-delete" for arg in program.args)
    return Effect(ANYTHING, keys_of(program, [_found(program)])) if is_deleting else None


def _found(program: Program) -> Arg:
    """What `find` finds: files of that name, where there is one."""
    names = [
        value.text
        for option, value in zip(program.args, program.args[1:], strict=False)
        if option.text in ("-name", "-iname")
    ]
    return Arg(None, None, shape=f"*/{names[0]}" if len(names) == 1 and names[0] else WHOLE_TREE)


def _rewrite(rewriter: Rewriter, program: Program) -> Effect | None:
    """What is named is written; a whole directory, what fits a pattern, or what looks like no file, perhaps."""
    if only_reads(program.name, tuple(arg.text for arg in program.args if arg.text is not None)):
        return None
    targets = rewriter(program)
    if not targets:
        return None
    perhaps = tuple(
        key for key in targets if key == program.cwd or glob_stem(key) is not None or "." not in posixpath.basename(key)
    )
    return Effect(ANYTHING, tuple(key for key in targets if key not in perhaps), perhaps=perhaps)


def effect_of(program: Program) -> Effect:
    """What any program prints and writes."""
    writer, reader = WRITERS.get(program.name), READERS.get(program.name)
    try:
        written = writer(program) if writer is not None else None
    except CannotTell:  # an option that we do not know
        return may_write(program)
    if written is not None:
        return written
    if reader is None:
        return Effect(ANYTHING) if writer is not None else may_write(program)
    try:
        return Effect(reader(program))
    except CannotTell:
        return Effect(ANYTHING)


WRITERS: dict[str, Writer] = {"perl": _perl, "tee": _tee, "truncate": _truncate, "dd": _dd, "sort": _sort, "git": _git}
WRITERS |= {"patch": _patch}
WRITERS |= dict.fromkeys(("apply_patch", "applypatch"), _apply_patch)
WRITERS |= dict.fromkeys(("sed", "gsed"), _sed)
WRITERS |= dict.fromkeys(("cp", "mv", "ln", "install", "rsync"), _copy)
WRITERS |= dict.fromkeys(("rm", "unlink"), _remove)
WRITERS |= {"touch": _touch, "ruby": _perl, "find": _find}
WRITERS |= {name: partial(_rewrite, rewriter) for name, rewriter in REWRITERS.items()}
