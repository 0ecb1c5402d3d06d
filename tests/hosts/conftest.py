"""Tests against real hosts: each folder has its own packages, which `python tests/hosts/run.py NAME` installs."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent
# The folder that is tested here and now; the others' packages are not there.
collect_ignore = [
    str(folder) for folder in HERE.iterdir() if folder.is_dir() and folder.name != os.environ.get("READCACHE_TEST_HOST")
]
