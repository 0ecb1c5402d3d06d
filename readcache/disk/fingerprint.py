"""One version of a file: its stat values and the hash of its bytes. The stat says when to hash, the hash decides.

`(dev, ino, size, mtime_ns, ctime_ns)` may stay as it was while the bytes change: coarse clocks stand still between two
writes, times are set back, a page that was mapped and written before can be written again and leave no time. So an
equal tuple is hashed all the same, but for files so large that it would be felt, under the conditions of
`Fingerprint.trusted`. Values are compared for equality alone: clocks go backwards.

No omission rests on this: those compare the bytes that were just read. It serves to find what others changed.
Functions of `os` are used by module attribute, so that a mocked file system sees them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

import xxhash

from readcache.disk.stable import BLOCK, open_regular, read_stable

# Bytes. Opening, reading and hashing a smaller file takes at most half a millisecond (80 KB: 16 µs; 20 MB: 1.2 ms).
ALWAYS_HASHED = 8 * 1024 * 1024
# Nanoseconds. A younger file may change once more within the same tick of its clock; ccache's inode cache has this
# figure, which is also the step of the coarsest clock in use (FAT).
SETTLED_AFTER = 2_000_000_000
# ccache's list without tmpfs, where a shared mapping that was read before is written without any time stamp, and
# without ext2 and ext3. Network and FUSE file systems, overlays and what is not known are hashed.
KNOWN_FILE_SYSTEMS = frozenset({"ext4", "xfs", "btrfs"})


@dataclass(frozen=True, slots=True)
class Stat:
    """What changes with nearly every change. Times are nanoseconds since the epoch."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, result: os.stat_result) -> Stat:
        """The part of a stat that counts."""
        return cls(result.st_dev, result.st_ino, result.st_size, result.st_mtime_ns, result.st_ctime_ns)

    def has_settled(self, now_ns: int) -> bool:
        """Would a write from `now_ns` on leave another time than these?"""
        return now_ns - max(self.mtime_ns, self.ctime_ns) > SETTLED_AFTER


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """One version of a file. Two are of the same bytes if their digests (xxh3_128) are equal.

    `settled`: both times were older than the hashing by more than `SETTLED_AFTER`. `trusted`: an equal stat is proof
    enough. That is so for a file larger than `ALWAYS_HASHED`, settled, on one of `KNOWN_FILE_SYSTEMS`, whose pages had
    all been written out before it was read: a page that is still dirty can be written through a mapping without
    leaving a time (seen on ext4 3 s after the first write), a clean one can not.
    """

    stat: Stat
    digest: bytes
    settled: bool
    trusted: bool


def take(path: str, *, now_ns: int) -> Fingerprint | None:
    """The version that stands at `path` (links are followed). `now_ns`: the time before the call, since the epoch.

    None for what is not a regular file, cannot be read, or would not hold still. Never raises."""
    taken = take_with_head(path, now_ns=now_ns, most=0)
    return None if taken is None else taken[0]


def take_with_head(path: str, *, now_ns: int, most: int) -> tuple[Fingerprint, bytes] | None:
    """`take`, and the first `most` bytes (somewhat more, or all there are) of that same version."""
    try:
        fd, before = open_regular(path)
    except (OSError, ValueError):
        return None
    try:
        return _take(fd, before, now_ns, most)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)


def has_same_stat(path: str, old: Fingerprint) -> bool:
    """Does the file still have the stat values of `old`? Proof of nothing, unless `old` is trusted."""
    try:
        return Stat.of(os.stat(path)) == old.stat
    except (OSError, ValueError):
        return False


def look(path: str, old: Fingerprint, *, now_ns: int, suspect: bool = False) -> Fingerprint | None:
    """The version that stands at `path` now, as `take`; `old` itself where its stat is the same and trusted.
    `suspect`: there is a reason to trust no stat."""
    if old.trusted and not suspect and has_same_stat(path, old):
        return old
    return take(path, now_ns=now_ns)


def _take(fd: int, before: os.stat_result, now_ns: int, most: int) -> tuple[Fingerprint, bytes] | None:
    def read(state: os.stat_result) -> tuple[bytes, bytes, bool]:
        written_out = Stat.of(state).has_settled(now_ns) and _write_out(fd, state)
        return (*_hash(fd, state.st_size, most), written_out)

    (digest, head, written_out), after, is_stable = read_stable(fd, before, read)
    if not is_stable:
        return None
    found = Stat.of(after)
    settled = found.has_settled(now_ns)
    return Fingerprint(found, digest, settled, settled and written_out), head


def _write_out(fd: int, found: os.stat_result) -> bool:
    """Is this a large file on a known file system, and are all its pages on the disk now?"""
    if found.st_size <= ALWAYS_HASHED or _file_system(found.st_dev) not in KNOWN_FILE_SYSTEMS:
        return False
    try:
        os.fdatasync(fd)  # 2 ms, the disk's own flush; 12 ms when 20 MB were dirty
    except OSError:
        return False
    return True


@lru_cache(maxsize=64)
def leaves_no_times(dev: int) -> bool:
    """Is `dev` a file system where writing through a mapping leaves no time at all? Remembered for each number."""
    return _file_system(dev) == "tmpfs"


def _file_system(dev: int) -> str:
    """The type of a mounted file system, as Linux names it (man 5 proc, "mountinfo"); "" when it is not known. Python
    has no statfs. btrfs gives files another number than its mount has: unknown, so that they are hashed."""
    number = f"{os.major(dev)}:{os.minor(dev)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                if line.split(" ", 3)[2] == number:
                    return line.partition(" - ")[2].split(" ", 1)[0]
    except (OSError, IndexError):
        pass
    return ""


def _hash(fd: int, size: int, most: int) -> tuple[bytes, bytes]:
    """The digest of all the bytes, and the first of them."""
    digest = xxhash.xxh3_128()
    head: list[bytes] = []
    left = size or BLOCK  # files of /proc say that they are empty
    kept = 0
    while block := os.read(fd, min(left + 1, BLOCK)):  # one byte more tells that it grew, which may go on for ever
        left -= len(block)
        digest.update(block)
        if kept < most:
            head.append(block)
            kept += len(block)
    return digest.digest(), b"".join(head)
