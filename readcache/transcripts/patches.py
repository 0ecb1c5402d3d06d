"""What edits and patches (in the form of OpenAI's `apply_patch`) write, and what they take for granted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from readcache.messages.tools import replacements
from readcache.model.paths import canonical_path
from readcache.transcripts.records import Written

_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


def patch_writes(patch: str, directory: str) -> tuple[Written, ...]:
    """The files. Never with the whole content: each line in a patch begins with a `+`."""
    return tuple(Written(canonical_path(found[1].strip(), directory)) for found in _FILE.finditer(patch))


def replaced_lines(given: Mapping[str, Any], patch: str | None = None) -> str:
    """The text that an edit replaces, or that stands in a patch as context or to be removed."""
    if patch is not None:
        lines = (line for line in patch.splitlines() if not line.startswith("---"))
        return "\n".join(line[1:] for line in lines if line[:1] in (" ", "-"))
    return "\n".join(old for old, _ in replacements(given))
