"""What a patch in the form of OpenAI's `apply_patch` writes."""

from __future__ import annotations

import os
import re

from readcache.transcripts.records import Written

_FILE = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+)$", re.MULTILINE)


def patch_writes(patch: str, directory: str) -> tuple[Written, ...]:
    """The files. Of none all the content: what the agent wrote has a `+` in front of each line."""
    return tuple(Written(os.path.join(directory, found[1].strip())) for found in _FILE.finditer(patch))
