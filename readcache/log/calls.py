"""What a tool was asked and what it printed, as a `Call` to be judged. Pure."""

from __future__ import annotations

from functools import lru_cache

from readcache.judging.answer import make_request
from readcache.judging.judge import Call
from readcache.model.claims import FileLines, Reading
from readcache.model.text import find_separator, split_lines
from readcache.reply import Reason
from readcache.shell.read import read_command


def command_call(
    call_id: str,
    command: str,
    cwd: str,
    output: str,
    exit_code: int,
    *,
    batch: str = "",
    trouble: Reason | None = None,
) -> Call:
    """A bash command, run in the directory `cwd`."""
    reading = read_command(command, cwd, exit_code)
    return Call(call_id, command, make_request(command, cwd), output, reading, batch, trouble)


def read_call(
    call_id: str,
    key: str,
    output: str,
    start: int,
    end: int | None,
    *,
    sep: str | None = None,
    batch: str = "",
    trouble: Reason | None = None,
    fresh: bool = False,
) -> Call:
    """A read tool's lines `start` to `end` of the file `key`; `sep`: with numbers before them."""
    request, reading = _read_claim(key, start, end, sep)
    return Call(call_id, f"read {key}", request, output, reading, batch, trouble, fresh)


def other_read_call(
    call_id: str, key: str, output: str, start: int, end: int | None, *, numbered: bool, batch: str = ""
) -> Call:
    """What another tool gave for the same: the form of its numbers is found out from the output."""
    sep = find_separator(split_lines(output)) if numbered else None
    call = read_call(call_id, key, output, start, end, sep=sep, batch=batch)
    if numbered and sep is None:  # nothing that looks like numbered lines: an error text, a picture
        return Call(call_id, call.command, call.request, output, Reading(claims=()), batch)
    return call


@lru_cache(maxsize=256)
def _read_claim(key: str, start: int, end: int | None, sep: str | None) -> tuple[str, Reading]:
    """The request and the claim, which are the same objects for each re-read."""
    claim = FileLines((key,), ((max(1, start), end),), sep)
    return make_request(key, start, end, sep is not None), Reading((claim,))
