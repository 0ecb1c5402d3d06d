"""`readcache completion SHELL`: a script that completes commands, options and their values."""

from __future__ import annotations

import argparse

from readcache.cli.parser import command_parsers
from readcache.hosts import MODULES
from readcache.model.plugins import plugin_names
from readcache.model.policy import PRESETS
from readcache.process.settings import Settings


def completion_command(options: argparse.Namespace, _: Settings) -> int:
    """Prints it."""
    import shtab

    values = {"HOST": [*MODULES, *plugin_names("hosts")], "NAME": [*PRESETS]}
    files = {"FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}
    parser, commands = command_parsers()
    for command in commands.values():
        for action in command._actions:
            if action.metavar in files:
                action.complete = files[action.metavar]  # type: ignore[attr-defined]  # as shtab wants it
            elif action.metavar in values and action.dest in ("host", "policy"):
                action.choices = values[action.metavar]
    for action in parser._actions:
        if action.dest == "command":
            action.help = "the command"  # shtab leaves out what has none
    print(shtab.complete(parser, options.shell))
    return 0
