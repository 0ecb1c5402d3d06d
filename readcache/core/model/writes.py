"""The one rule that says which files a write concerns. Invalidation, the order of a call's events, and `explain` use
it.

A write names one of these:
- a file;
- a directory, with everything below it;
- a glob, in which `*` is any text, including slashes: `*/src/a.py` names the file at that path below any directory;
- WHOLE_TREE, any file.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

from readcache.core.model.claims import WHOLE_TREE, glob_stem


def concerns(written: str, key: str) -> bool:
    """Return True if a write to `written` concerns the file of `key`. `*.py` and `/w/src` concern /w/src/a.py."""
    if written in (key, WHOLE_TREE) or key.startswith(written.rstrip("/") + "/"):
        return True
    return glob_stem(written) is not None and fnmatchcase(key, written)


@lru_cache(maxsize=4096)
def file_name_of(written: str) -> str | None:
    """Return the file name shared by all files that a write to the pattern `*/…` concerns; None for other writes."""
    name = written.rpartition("/")[2]
    return name if written.startswith("*/") and name and glob_stem(name) is None else None


def common_prefix(written: str) -> str:
    """Return the common prefix of all keys that a write to a file, directory or glob concerns."""
    stem = glob_stem(written)
    return written.rstrip("/") if stem is None else stem
