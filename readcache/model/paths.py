"""One name for one file: paths as keys. Text only, the disk is never asked."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache

_DRIVE = re.compile(r"([A-Za-z]):[\\/]")


@lru_cache(maxsize=1024)
def canonical_path(path: str, cwd: str) -> str:
    """`path`, as given in directory `cwd`, as a key: absolute, without `.`, `..` and doubled slashes.

    `D:\\a`, `D:/a` and `/d/a` (the same file in Git's bash) are all `/d/a`. A home directory is unknown here: `~/a`
    stays `~/a`, and `~/../a` as well. A glob pattern is treated like a path. Links are not followed.
    """
    path = _slashes(path)
    if not path.startswith(("/", "~")):
        path = posixpath.join(_slashes(cwd), path)
    if path.startswith("~"):
        home, _, rest = path.partition("/")
        rest = posixpath.normpath(rest.lstrip("/"))
        return home if rest == "." else f"{home}/{rest}"
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path


def _slashes(path: str) -> str:
    drive = _DRIVE.match(path)
    if drive is None:
        return path
    return f"/{drive.group(1).lower()}/" + path[drive.end() :].replace("\\", "/")


def matches(path: str, globs: Iterable[str]) -> bool:
    """True if one of the globs names this path.

    `*.pem` and `secrets/*.txt` name files below any directory, `/etc/*` an absolute path; `**/` also matches nothing.
    """
    return _pattern_of(tuple(globs)).fullmatch(path) is not None


@lru_cache(maxsize=64)
def _pattern_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for all of the globs: each call is asked for some names."""
    forms = dict.fromkeys(form for glob in globs for form in (glob, glob.replace("**/", "")))
    return re.compile(rf"(?s:(?:.*/)?(?:{'|'.join(map(translate, forms)) or '(?!)'}))")


@lru_cache(maxsize=64)
def literals_of(globs: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern that is found in every text with a name that one of the globs matches: their longest literal parts."""
    parts = (max(re.split(r"[*?]|\[.*", glob.replace("**/", "")), key=len) for glob in globs)
    return re.compile("|".join(sorted({re.escape(part) for part in parts})))
