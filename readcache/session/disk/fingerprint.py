"""One version of a file: the hash of its bytes, read while the file held still.

No stat value says that a file is as it was: coarse clocks stand still between two writes, times are set back, a page
that was mapped and written before can be written again and leave no time. So a file is hashed at each look: 20 µs for
one of 8 KB, 80 ms for one of 100 MB; by BLAKE2, since two files of one xxh3 are made at will.

No omission rests on this: those compare the bytes that were just read. It serves to find what others changed.
Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b

from readcache.session.disk.stable import BLOCK, read_stable


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One version of a file. Two are of the same bytes if their digests (BLAKE2b, 16 bytes) are equal."""

    digest: bytes
    head: bytes  # the first bytes: somewhat more than were asked for, or all there are
    is_truncated: bool  # there are more than these


def take(path: str, most: int = 0) -> Fingerprint | None:
    """The version that stands at `path` (links are followed), with its first `most` bytes.

    None for what is not a regular file, cannot be read, or would not hold still. Never raises."""
    try:
        found, is_stable = read_stable(path, lambda fd, state: _hash(fd, state.st_size, most))
    except (OSError, ValueError):
        return None
    return found if is_stable else None


def _hash(fd: int, size: int, most: int) -> Fingerprint:
    digest = blake2b(digest_size=16)
    head: list[bytes] = []
    left = size or BLOCK  # files of /proc say that they are empty
    kept = done = 0
    while block := os.read(fd, min(left + 1, BLOCK)):  # one byte more tells that it grew, which may go on for ever
        left -= len(block)
        done += len(block)
        digest.update(block)
        if kept < most:
            head.append(block)
            kept += len(block)
    return Fingerprint(digest.digest(), b"".join(head), kept < done)
