"""What a shell command reads and writes, from its text alone: `read_command`. Pure."""

from importlib import import_module


def __getattr__(name: str) -> object:  # when it is used: of most commands the prefilter alone is asked
    return getattr(import_module("readcache.shell.read"), name)
