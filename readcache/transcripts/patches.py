"""What a patch in the form of OpenAI's `apply_patch` writes."""

from __future__ import annotations

import re

from readcache.model.paths import canonical_path
from readcache.transcripts.records import Written

_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


def patch_writes(patch: str, directory: str) -> tuple[Written, ...]:
    """The files. Never with the whole content: each line in a patch begins with a `+`."""
    return tuple(Written(canonical_path(found[1].strip(), directory)) for found in _FILE.finditer(patch))
