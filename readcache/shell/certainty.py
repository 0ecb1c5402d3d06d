"""When a write surely took: whether its command ran, and whether anybody would hear it complain."""

from __future__ import annotations

from readcache.shell.syntax import Node, Redirect, SimpleCommand, literal

# What complains whenever it fails, so that silence says it did not; `test`, `grep` and `diff` fail in silence.
_LOUD = ("cat", "cd", "chmod", "cp", "echo", "mkdir", "mv", "printf", "rm", "tee", "touch")


def is_loud(node: Node) -> bool:
    """True for a command that complains whenever it fails."""
    if not isinstance(node, SimpleCommand) or not node.words:
        return False
    if any(redirect.fd == 2 or redirect.op.startswith("&>") for redirect in node.redirects):
        return False
    return literal(node.words[0], {}) in _LOUD


def hides_complaints(redirect: Redirect, *, reaches_reader: bool, stdout_is_away: bool) -> bool:
    """True if stderr goes elsewhere than into the output. `stdout_is_away`: into a file or pipe, where `2>&1` leads."""
    if redirect.fd == 2 and reaches_reader:
        return stdout_is_away
    return not reaches_reader and (redirect.fd == 2 or redirect.op.startswith("&>") or redirect.op == ">&")
