"""What must not be put back into a conversation, by a path's name and by a file's text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from readcache.core.model.paths import matches_any, may_name
from readcache.core.model.policy import INSTRUCTIONS
from readcache.core.model.secrets import SECRET_NAMES, contains_secret

# Lock files and build products, as GitHub's linguist knows generated files by their names.
GENERATED_NAMES = (
    *("*.lock", "*.lockb", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.sum"),
    *("*.min.js", "*.min.css", "*.js.map", "*.css.map", "*.designer.cs"),
    *("*.pb.go", "*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*.pb.h", "*.pb.cc"),
)
# Go's convention and Facebook's for saying so in the first lines, and what other generators write.
_GENERATED = re.compile(r"@generated\b|(?:code |auto-?)generated\b.{0,80}\bdo not (?:edit|modify)\b", re.IGNORECASE)
HEAD_LINES = 10
# Characters a line, on average: linguist takes scripts and style sheets of longer lines for minified.
MINIFIED = 110


def why_not_name(path: str, protected: Sequence[str] = ()) -> str | None:
    """Why a file of this name must not be restored; None when it may. `protected`: globs of paths or of names."""
    name = path.rsplit("/", 1)[-1]
    if path.startswith("git:"):
        return "not a file of the work tree"
    if matches_any(path, protected):
        return "protected"
    if matches_any(path, SECRET_NAMES):
        return "looks like a secret"
    if name != "SKILL.md" and matches_any(name, INSTRUCTIONS):  # the others are attached to every conversation
        return "memory file, harnesses attach it themselves"
    if matches_any(name, GENERATED_NAMES):
        return "generated"
    return None


def why_not_text(path: str, text: str) -> str | None:
    """Why a file with this text must not be restored; None when it may."""
    if "\0" in text:
        return "binary"
    if contains_secret(text):
        return "looks like a secret"
    lines = text.split("\n")
    minified = path.endswith((".js", ".css")) and len(text) > MINIFIED * len(lines)
    if minified or any(map(_GENERATED.search, lines[:HEAD_LINES])):
        return "generated"
    return None


def why_not_output(command: str, text: str) -> str | None:
    """Why a command's result must not be restored; None when it may."""
    if may_name(command, SECRET_NAMES):
        return "looks like a secret"
    return "binary" if "\0" in text else "looks like a secret" if contains_secret(text) else None
