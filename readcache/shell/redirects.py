"""Where a command's stdin comes from and where its stdout goes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from readcache.shell.arguments import Program
from readcache.shell.known_words import arg_of
from readcache.shell.streams import ANYTHING, Stream, literal_stream
from readcache.shell.syntax import Heredoc, Redirect, literal

_EXPANDS = re.compile(r"[$`\\]")
_DEVICE = re.compile("/dev/(?!shm/)")  # what is below /dev/shm are files
_SAME_OUTPUT = ("/dev/stdout", "/dev/stderr", "/dev/tty")


def input_stream(item: Redirect, variables: Mapping[str, str], cwd: str | None) -> Stream:
    """The stream that `<`, `<<` or `<<<` makes stdin."""
    if item.heredoc is not None:
        return _heredoc(item.heredoc)
    if item.target is None or item.op == "<&":
        return Stream()
    if item.op == "<<<":
        text = literal(item.target, variables)
        return Stream() if text is None else literal_stream(text + "\n")
    arg = arg_of(item.target, variables, cwd)
    return Stream() if arg.glob or arg.path == "-" else Stream(Program("", (), Stream(), cwd).lines(arg))


def _heredoc(heredoc: Heredoc) -> Stream:
    """Its body is the command's own text, unless tabs are taken off it."""
    body, tabs = heredoc.body, heredoc.strip_tabs and re.search(r"(?m)^\t", heredoc.body) is not None
    if not heredoc.quoted and _EXPANDS.search(body):
        return Stream(ANYTHING, None if tabs else body)
    return literal_stream(re.sub(r"(?m)^\t+", "", body)) if tabs else literal_stream(body, body)


def output_target(item: Redirect, variables: Mapping[str, str], cwd: str | None) -> tuple[bool, str | None]:
    """(does the output still reach the reader, the key of the file that is written) for one redirection."""
    if item.target is None:
        return True, None
    arg = arg_of(item.target, variables, cwd)
    if item.op == ">&" and re.fullmatch(r"\d+-?|-", arg.text or ""):
        return arg.text != "-", None
    key = Program("", (), Stream(), cwd).key(arg)
    if key in _SAME_OUTPUT:
        return True, None
    return False, None if key is None or _DEVICE.match(key) else key
