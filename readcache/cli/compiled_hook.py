"""The compiled program that hooks are given: it asks the server without a start of Python, which does all else."""

from __future__ import annotations

import os
import shlex
import subprocess

from readcache import __version__
from readcache.cli import shim_files
from readcache.cli.hook import python_program
from readcache.cli.state import state_directory
from readcache.errors import ReadcacheError, UsageError

_NAME = "readcache"  # by which a host's settings are known to be ours
_SCRIPT = '#!/bin/sh\n# readcache {version}: for what the program above does not do itself.\nexec {words} "$@"\n'


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


def build_program() -> str:
    """Compiles it into the state directory; its path. ReadcacheError."""
    place = _place()
    behind = os.path.join(place, shim_files.BEHIND)
    try:
        compiled = shim_files.compile_program(beside=False)
        os.makedirs(behind, mode=0o700, exist_ok=True)
        shim_files.replace_file(os.path.join(behind, _NAME), _script().encode(), 0o700)
        shim_files.replace_file(os.path.join(place, _NAME), compiled, 0o700)
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
    return _SCRIPT.format(version=__version__, words=shlex.join(python_program()))
