"""Which code an experiment runs: hashes of the sources, versions of the packages."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import readcache

HERE = Path(__file__).resolve().parent
PACKAGES = ("mini-swe-agent", "litellm", "swebench", "datasets")


def code_version() -> dict[str, Any]:
    """What is sealed of the code: every source file of readcache and of this kit by its path and its bytes."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return {
        "readcache": _tree_sha256(Path(str(readcache.__file__)).parent),
        "kit": _tree_sha256(HERE),
        "readcache_version": readcache.__version__,
        "python": platform.python_version(),
        "packages": found,
    }


def _tree_sha256(top: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(top.rglob("*.py")):
        if not path.name.startswith("test_"):
            digest.update(f"{path.relative_to(top).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
