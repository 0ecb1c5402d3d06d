"""`off` and `on`, and where things stand: what `readcache` alone prints."""

from __future__ import annotations

import argparse
import contextlib
import os

from readcache.cli.terminal import say
from readcache.model.errors import ReadcacheError
from readcache.process.settings import Settings
from readcache.process.state import is_off, off_file

PAUSED = "off (`readcache off`): everything is shown; `readcache on` switches it on again"


def off_command(_: argparse.Namespace, __: Settings) -> int:
    """Nothing is omitted from now on, in processes that run already too. ReadcacheError."""
    path = off_file()
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise ReadcacheError(f"cannot write {path}: {error.strerror}; set READCACHE=off instead") from None
    say(PAUSED)
    return 0


def on_command(_: argparse.Namespace, __: Settings) -> int:
    """The end of `off`. ReadcacheError."""
    was_off, path = is_off(), off_file()
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    except OSError as error:
        raise ReadcacheError(f"cannot remove {path}: {error.strerror}; remove it yourself") from None
    say("on again; what was shown meanwhile will be shown again" if was_off else "on already")
    return 0
