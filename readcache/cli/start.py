"""The entry point of the command line. A hook that a server answers needs only this module. All other commands use
`main`."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # see readcache/__init__.py
if TYPE_CHECKING:
    from collections.abc import Sequence


def start_command_line(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: this process's). Return the exit status."""
    if sys.version_info < (3, 10):  # noqa: UP036 - pip refuses such a Python, a checkout on PYTHONPATH cannot
        version, path = ".".join(map(str, sys.version_info[:3])), sys.executable
        sys.stderr.write(f"readcache: {path} is Python {version}, and readcache needs 3.10 or later: use another one\n")
        return 1
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["hook"] and not {"-h", "--help"} & {*words}:
        from readcache.serve import ask

        data = ask.ask_hook(words[1:])
        if data is not None:
            from readcache.hosts.hooks import hook

            hook(words[1:], data)
            ask.start_server(words[1:])
        return 0
    from readcache.cli.main import main

    return main(words)
