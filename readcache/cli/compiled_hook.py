"""The compiled program that hooks are given: it asks the server without a start of Python, which does all else."""

from __future__ import annotations

import os
import re
import shlex
import subprocess

from readcache import __version__
from readcache.cli import shim_files
from readcache.hosts.hooks import python_program
from readcache.model.errors import ReadcacheError, UsageError
from readcache.process.state import state_directory

_NAME = "readcache"  # by which a host's settings are known to be ours
_SCRIPT = """\
#!/bin/sh
# readcache {version}: for what the program above does not do itself.
program={program}
[ -x "$program" ] || {{
  echo "readcache: $program is gone: install readcache again, or take its hooks out of the host's settings" >&2
  exit 1
}}
exec {words} "$@"
"""
_SAYS = re.compile(r"^# readcache (\S+):", re.M)


def program() -> tuple[str, ...]:
    """The words that start this readcache for a host: the compiled program where there is one of this version, else
    what `python_program` says."""
    found = find_program()
    return (found,) if found else python_program()


def find_program() -> str:
    """The path of the program of this version; "" where there is none."""
    try:
        place = _place()
        with open(os.path.join(place, shim_files.BEHIND, _NAME), encoding="utf-8") as file:
            is_ours = file.read() == _script()
    except (OSError, UsageError, UnicodeDecodeError):
        return ""
    program = os.path.join(place, _NAME)
    return program if is_ours and os.access(program, os.X_OK) else ""


def program_path() -> str:
    """Where the program is made, whether it is there or not. UsageError without a home."""
    return os.path.join(_place(), _NAME)


def program_state(again: str) -> str:
    """What the program is, in words. ReadcacheError where it does not do what it is for. `again`: the command line that
    makes it anew."""
    path, script = program_path(), os.path.join(_place(), shim_files.BEHIND, _NAME)
    mend = f"say `{again}`"
    if not shim_files.find_compiler():
        mend += ", for which a C compiler has to be installed, or the same without --compile"
    try:
        with open(script, encoding="utf-8") as file:
            found = file.read()
    except (OSError, UnicodeDecodeError):
        raise ReadcacheError(f"{path} starts {script}, which cannot be read: {mend}") from None
    version = _SAYS.search(found)
    if version is not None and version.group(1) != __version__:
        raise ReadcacheError(
            f"{path} is of readcache {version.group(1)}, and this is {__version__}: each hook costs a start of Python; "
            f"{mend}"
        )
    if found != _script():
        raise ReadcacheError(f"{path} starts, by {script}, another readcache than this one: {mend}")
    if not os.access(path, os.X_OK):
        raise ReadcacheError(f"{path} cannot be run: {mend}")
    return f"{path}, of readcache {__version__}"


def build_program() -> str:
    """Compiles it into the state directory; its path. ReadcacheError."""
    place = _place()
    behind = os.path.join(place, shim_files.BEHIND)
    try:
        compiled = shim_files.compile_program(beside=False)
        for directory in (os.path.dirname(place), place, behind):
            os.makedirs(directory, mode=0o700, exist_ok=True)
        shim_files.replace_file(os.path.join(place, _NAME), compiled, 0o700)
        shim_files.replace_file(os.path.join(behind, _NAME), _script().encode(), 0o700)  # last: it tells the version
    except shim_files.NoCompiler:
        raise ReadcacheError(
            "no C compiler is on PATH, and nothing was changed: install one (cc, gcc or clang), or say init without "
            "--compile"
        ) from None
    except subprocess.CalledProcessError as error:
        raise ReadcacheError(f"the compiler failed, say init without --compile: {error.stderr or error}") from None
    except OSError as error:
        raise ReadcacheError(
            f"no program can be made in {place}: {error.strerror}; say init without --compile"
        ) from None
    return os.path.join(place, _NAME)


def _place() -> str:
    return os.path.join(state_directory(), "bin")


def _script() -> str:
    words = python_program()
    return _SCRIPT.format(version=__version__, program=shlex.quote(words[0]), words=shlex.join(words))
