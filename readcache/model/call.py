"""One tool call and what it printed, as it is judged."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache

from readcache.model.claims import FileLines, Reading
from readcache.model.text import digest, find_separator, split_lines
from readcache.reply import Reason


@dataclass(frozen=True)
class Call:
    """A call that ran. `reading` is what its command is believed to print and write."""

    call_id: str
    label: str  # the command, or "read PATH 5-30" for a read tool: markers shorten it
    request: str  # equal for equal requests
    output: str
    reading: Reading
    exit_code: int = 0
    batch: str = ""  # calls made at once share it
    trouble: Reason | None = None  # TIMED_OUT, KILLED, NOT_RUN, UNREADABLE, UNSTABLE: never judged, never credited
    fresh: bool = False  # the reader asked for every byte
    started: int = -1  # number of the last call that was logged when this one started; -1: it is not known

    @cached_property
    def digest(self) -> str:
        """The digest of the output, made at most once."""
        return digest(self.output)


def make_request(*parts: str | int | bool | None) -> str:
    """A name for a request, equal for equal parts."""
    return digest(json.dumps(parts))


def command_call(
    call_id: str,
    command: str,
    cwd: str,
    output: str,
    reading: Reading,
    *,
    exit_code: int = 0,
    batch: str = "",
    trouble: Reason | None = None,
    started: int = -1,
) -> Call:
    """A bash command that ran in the directory `cwd`."""
    request = make_request(command, cwd)
    return Call(call_id, command, request, output, reading, exit_code, str(batch), trouble, started=started)


def read_call(
    call_id: str,
    key: str,
    output: str,
    start: int,
    end: int | None,
    *,
    sep: str | None = None,
    exit_code: int = 0,
    batch: str = "",
    trouble: Reason | None = None,
    fresh: bool = False,
) -> Call:
    """A read tool's lines `start` to `end` of the file `key`; `sep`: with numbers before them."""
    start, end = int(start), None if end is None else int(end)
    request, reading = _read_claim(key, start, end, sep)
    lines = "" if (start, end) == (1, None) else f" {start}-{end or ''}"
    return Call(call_id, f"read {key}{lines}", request, output, reading, exit_code, str(batch), trouble, fresh)


def other_read_call(
    call_id: str, key: str, output: str, start: int, end: int | None, *, numbered: bool, batch: str = ""
) -> Call:
    """Lines `start` to `end` of the file `key` as another tool printed them. `numbered`: with numbers in front, whose
    form is found out from the output."""
    sep = find_separator(split_lines(output)) if numbered else None
    call = read_call(call_id, key, output, start, end, sep=sep, batch=batch)
    if numbered and sep is None:  # nothing that looks like numbered lines: an error text, a picture
        return Call(call_id, call.label, call.request, output, Reading(claims=()), batch=call.batch)
    return call


@lru_cache(maxsize=256)
def _read_claim(key: str, start: int, end: int | None, sep: str | None) -> tuple[str, Reading]:
    """The request and the claim, which are the same objects for each re-read."""
    claim = FileLines((key,), ((max(1, start), end),), sep)
    return make_request(key, start, end, sep is not None), Reading((claim,))
