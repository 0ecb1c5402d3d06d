"""Rules for lines that must not be restored, by a path's name and by a file's text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from readcache.core.model.paths import matches_any, may_name
from readcache.core.model.policy import INSTRUCTIONS
from readcache.core.model.secrets import SECRET_NAMES, contains_secret

# Lock files and build products: names that GitHub's linguist recognises as generated files.
GENERATED_NAMES = (
    *("*.lock", "*.lockb", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.sum"),
    *("*.min.js", "*.min.css", "*.js.map", "*.css.map", "*.designer.cs"),
    *("*.pb.go", "*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*.pb.h", "*.pb.cc"),
)
# Notes in the first lines of generated files: Go's and Facebook's conventions, and the notes of other generators.
_GENERATED = re.compile(r"@generated\b|(?:code |auto-?)generated\b.{0,80}\bdo not (?:edit|modify)\b", re.IGNORECASE)
HEAD_LINES = 10
# Characters per line, on average. Linguist regards scripts and style sheets with longer lines as minified.
MINIFIED = 110


def why_not_name(path: str, protected: Sequence[str] = ()) -> str | None:
    """Return the reason why a file of this name must not be restored; None if it may be. `protected`: globs of paths or
    of names."""
    name = path.rsplit("/", 1)[-1]
    if path.startswith("git:"):
        return "not a file of the work tree"
    if matches_any(path, protected):
        return "protected"
    if matches_any(path, SECRET_NAMES):
        return "looks like a secret"
    if name != "SKILL.md" and matches_any(name, INSTRUCTIONS):  # harnesses attach all of these except SKILL.md
        return "memory file, harnesses attach it themselves"
    if matches_any(name, GENERATED_NAMES):
        return "generated"
    return None


def why_not_text(path: str, text: str) -> str | None:
    """Return the reason why a file with this text must not be restored; None if it may be."""
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
    """Return the reason why a command's result must not be restored; None if it may be."""
    if may_name(command, SECRET_NAMES):
        return "looks like a secret"
    return "binary" if "\0" in text else "looks like a secret" if contains_secret(text) else None
