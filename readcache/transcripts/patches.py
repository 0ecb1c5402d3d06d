"""What edits and patches (in the form of OpenAI's `apply_patch`) write, and what they take for granted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from readcache.model.paths import canonical_path
from readcache.transcripts.records import Written
from readcache.transcripts.values import dict_in, list_in

_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)
_OLD = ("old_string", "old_str", "oldString", "oldText", "old_text")  # the names of an edit's old text


def patch_writes(patch: str, directory: str) -> tuple[Written, ...]:
    """The files. Never with the whole content: each line in a patch begins with a `+`."""
    return tuple(Written(canonical_path(found[1].strip(), directory)) for found in _FILE.finditer(patch))


def replaced_lines(given: Mapping[str, Any], patch: str | None = None) -> str:
    """The text that an edit replaces, or that stands in a patch as context or to be removed."""
    if patch is not None:
        lines = (line for line in patch.splitlines() if not line.startswith("---"))
        return "\n".join(line[1:] for line in lines if line[:1] in (" ", "-"))
    edits = [given, *map(dict_in, list_in(given.get("edits")))]
    return "\n".join(edit[name] for edit in edits for name in _OLD if isinstance(edit.get(name), str))
