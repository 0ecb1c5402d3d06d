"""Ask the file system and git for the restore plan: which files may be restored, and their lines as they are now.

Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterable, Sequence

from readcache.core.model.text import split_lines
from readcache.core.restore.fit import why_not_name, why_not_text
from readcache.session.disk.files import read_lines

# Seconds that git may take. It looks only at names and at its index, which takes 15 ms for a thousand paths.
GIT_SECONDS = 5


def why_not_restored(paths: Iterable[str], protected: Sequence[str], *, local: bool) -> dict[str, str]:
    """Return the `paths` that must not be restored into a conversation, each with the reason. A path is refused for its
    name, for the name of the file that it links to, or because git ignores it. `local`: the files are on this machine.
    Otherwise only the names of the paths are checked."""
    asked = list(paths)
    out = {path: why for path in asked if (why := _why_not_names(path, protected, local=local)) is not None}
    if local:
        out.update((path, "ignored by git") for path in _ignored(path for path in asked if path not in out))
    return out


def _why_not_names(path: str, protected: Sequence[str], *, local: bool) -> str | None:
    why = why_not_name(path, protected)
    return why_not_name(os.path.realpath(path), protected) if why is None and local else why


def current_lines(path: str) -> list[str] | str:
    """Return the lines of a file as they are on disk, or a text that says why they must not be restored. Never
    raise."""
    if not os.path.lexists(path):
        return "deleted or moved"
    got = read_lines(path, 1, None, numbered=False)
    if got.skip_reason is not None:
        return got.skip_reason.value
    why_not = why_not_text(path, got.text)
    return why_not if why_not is not None else split_lines(got.text)


def _ignored(paths: Iterable[str]) -> list[str]:
    """Return the paths that git ignores. Git never ignores a tracked file."""
    real = functools.cache(os.path.realpath)  # git refuses to look beyond a symbolic link
    repository = functools.cache(_repository)
    below: dict[str, dict[str, str]] = {}
    for path in paths:
        directory, name = os.path.split(path)
        top = repository(real(directory))
        if top is not None:
            below.setdefault(top, {})[os.path.join(real(directory), name)] = path
    return [names[path] for top, names in below.items() for path in _ask_git(top, names) if path in names]


def _repository(directory: str) -> str | None:
    """Return the directory with the `.git` that `directory` belongs to, or None."""
    while not os.path.lexists(os.path.join(directory, ".git")):
        above = os.path.dirname(directory)
        if above == directory:
            return None
        directory = above
    return directory


def _ask_git(top: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that `git check-ignore` prints. Return none if git fails or is missing."""
    # A git hook sets GIT_DIR and others for its own repository.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", "core.fsmonitor=false", "-C", top, "check-ignore", "-z", "--stdin"]
    try:
        done = subprocess.run(
            command, input=os.fsencode("\0".join(paths)), capture_output=True, timeout=GIT_SECONDS, check=False, env=env
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    return os.fsdecode(done.stdout).split("\0")
