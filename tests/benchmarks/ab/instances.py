"""Instances of SWE-bench, from a file or by the `datasets` package. A local instance brings its own repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import AbError

Instance = dict[str, Any]
FILES = (".json", ".jsonl", ".parquet")
NEEDED = ("instance_id", "problem_statement")
LOCAL = ("files", "test_files", "test_command")  # what a local one has besides


def load_instances(name: str, split: str, beside: Path, place: str = "swebench") -> list[Instance]:
    """The instances in a `.json`, `.jsonl` or `.parquet` file (relative paths from `beside`), or of a data set."""
    path = beside / name
    found = _from_file(path) if name.endswith(FILES) else _from_hub(name, split)
    # Dates and the like become texts, so that they can be sealed.
    found = [json.loads(json.dumps(instance, default=str)) for instance in found]
    wanted = NEEDED + (LOCAL if place == "local" else ())
    for instance in found:
        if lacking := [key for key in wanted if key not in instance]:
            raise AbError(f"{name}: an instance lacks {', '.join(lacking)}: {str(instance)[:80]}")
    return found


def _from_file(path: Path) -> list[Instance]:
    if not path.is_file():
        raise AbError(f"{path} is not there: name a file of instances in the plan, or a data set")
    if path.suffix == ".parquet":
        try:
            from pyarrow import parquet
        except ImportError as error:
            raise AbError(f"{path} needs pyarrow to be read: pip install pyarrow, or save it as .jsonl") from error
        rows: list[Instance] = parquet.read_table(path).to_pylist()
        return rows
    text = path.read_text(encoding="utf-8")
    try:
        rows = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines() if line]
    except ValueError as error:
        raise AbError(f"{path} is no JSON: {error}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise AbError(f"{path} holds no list of objects, each an instance")
    return rows


def _from_hub(name: str, split: str) -> list[Instance]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise AbError(f"{name} is no .json, .jsonl or .parquet file, and `datasets` is not installed") from error
    return [dict(row) for row in load_dataset(name, split=split)]
