"""Find the files that a shell command reads and writes, from its text only: `read_command`. Pure."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from readcache.core.shell.read import read_command as read_command


def __getattr__(name: str) -> Any:  # the prefilter is enough for most commands, so it must not import the parser
    if name == "read_command":
        from readcache.core.shell.read import read_command

        return read_command
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
