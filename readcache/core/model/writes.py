"""Which files a write concerns: the one rule for invalidation, for the order of a call's events, and for `explain`.

A write names a file, a directory (everything below it), a glob (`*` is any text, also with slashes in it: `*/src/a.py`
is the file of that path below any directory), or WHOLE_TREE (any file).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

from readcache.core.model.claims import WHOLE_TREE, glob_stem


def concerns(written: str, key: str) -> bool:
    """Does a write to `written` concern the file of `key`? `*.py` and `/w/src` concern /w/src/a.py."""
    if written in (key, WHOLE_TREE) or key.startswith(written.rstrip("/") + "/"):
        return True
    return glob_stem(written) is not None and fnmatchcase(key, written)


@lru_cache(maxsize=4096)
def file_name_of(written: str) -> str | None:
    """The file name shared by all files that a write to the pattern `*/…` concerns; None for other writes."""
    name = written.rpartition("/")[2]
    return name if written.startswith("*/") and name and glob_stem(name) is None else None


def common_prefix(written: str) -> str:
    """The common prefix of all keys that a write to a file, directory or glob concerns."""
    stem = glob_stem(written)
    return written.rstrip("/") if stem is None else stem
