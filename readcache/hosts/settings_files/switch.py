"""Switch a host on and off. The new content of its settings files is worked out before anything is written.

The previous content of each file is kept in the state directory, readable only by its owner. If the file was not edited
in the meantime, its exact bytes come back. If it was edited, or no copy was kept, readcache finds its entries by their
content.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import stat
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from readcache import ReadcacheError
from readcache.hosts.host import Entry, Host, InstallTarget, OwnFile
from readcache.hosts.settings_files.settings_text import SettingsText

Record = dict[str, Any]  # what `init` remembers about one file
_REMEMBERED = ("mode", "policy", "protected", "restore")


# ---------------------------------------------------------------- several files, all of them or none


class FileChange(NamedTuple):
    """A file's content before and after a change.

    `path`: the path as it was asked for. `target`: the file that `path` leads to if it is a link, otherwise `path`
    itself. `before`, `after`: the bytes, or None if the file does not exist.
    """

    path: str
    target: str
    before: bytes | None
    after: bytes | None
    directories: tuple[str, ...] = ()  # created for the file, removed with it if empty; the deepest first

    def diff(self) -> str:
        """Return the change as a unified diff. A file that does not exist is named /dev/null. An empty file has no
        lines."""
        old = (self.before or b"").decode("utf-8", "replace").splitlines(keepends=True)
        new = (self.after or b"").decode("utf-8", "replace").splitlines(keepends=True)
        names = [self.path if data is not None else "/dev/null" for data in (self.before, self.after)]
        lines = difflib.unified_diff(old, new, names[0], names[1])
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def look(path: str) -> tuple[str, bytes | None]:
    """Return (the file that `path` leads to, its bytes or None if it does not exist).

    Raise ReadcacheError if it cannot be edited: a broken link, not a plain file, or unreadable.
    """
    target = os.path.realpath(path)
    try:
        if not os.path.lexists(path):
            return target, None
        if not os.path.exists(target):
            raise ReadcacheError(f"{path} is a link to {target}, which is not there: repair or remove the link")
        if not stat.S_ISREG(os.stat(target).st_mode):
            raise ReadcacheError(f"{path} is not a file: move it away")
        with open(target, "rb") as file:
            return target, file.read()
    except OSError as error:
        raise ReadcacheError(f"cannot read {path}: {error.strerror}; change its rights") from None


def missing_directories(path: str, made: Collection[str] = ()) -> tuple[str, ...]:
    """Return the directories above `path`, the deepest first, that do not exist or that readcache created (`made`). The
    list ends at the first other directory."""
    found, directory = [], os.path.dirname(path)
    while directory in made or not os.path.lexists(directory):
        found.append(directory)
        directory = os.path.dirname(directory)
    return tuple(found)


def require_writable(change: FileChange) -> None:
    """Raise ReadcacheError if the file is read-only."""
    # `os.replace` would ignore that the file is read-only.
    if change.before is not None and not (os.stat(change.target).st_mode & 0o222 and os.access(change.target, os.W_OK)):
        raise ReadcacheError(f"{change.path} is read-only; nothing was changed: make it writable first")


def write_all(changes: Sequence[FileChange]) -> None:
    """Write all the changes. If one fails, undo the earlier ones and raise ReadcacheError."""
    done: list[FileChange] = []
    for change in changes:
        try:
            _write(change)
        except (OSError, ReadcacheError) as error:
            _remove_empty(change.directories)
            for back in reversed(done):
                with contextlib.suppress(OSError, ReadcacheError):
                    _write(back)
            reason = error.strerror if isinstance(error, OSError) else error
            raise ReadcacheError(f"{change.path} was not written: {reason}; nothing was changed") from None
        done.append(change._replace(before=change.after, after=change.before))


def _write(change: FileChange) -> None:
    target, beside = change.target, f"{change.target}.{os.urandom(6).hex()}"
    if look(target)[1] != change.before:
        raise ReadcacheError("another program has just changed it; try again")
    if change.after is None:
        os.unlink(target)
        _remove_empty(change.directories)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        with open(beside, "xb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        if change.before is not None:
            was = os.stat(target)
            with contextlib.suppress(OSError):  # fails if the user may not give a file to that owner or group
                os.chown(beside, was.st_uid, was.st_gid)
            os.chmod(beside, stat.S_IMODE(was.st_mode))
        os.replace(beside, target)
    finally:
        with contextlib.suppress(OSError):  # it only still exists if something failed
            os.unlink(beside)


def _remove_empty(directories: Sequence[str]) -> None:
    for directory in directories:
        with contextlib.suppress(OSError):  # it is not empty, or was never created
            os.rmdir(directory)


# ---------------------------------------------------------------- one host


class Switch:
    """One host at one install target. `memory`: the directory that records which entries were put into which file."""

    def __init__(self, host: Host, target: InstallTarget, memory: str) -> None:
        self.host, self.target, self._memory = host, target, memory
        self._wanted = _by_path(host.changes(target))
        # The record of the mode may be lost. Mode "on" has the most entries, so they include all others.
        self._may_be_there = _by_path(host.changes(target._replace(mode="on")))
        for path in map(os.path.abspath, host.former_files(target)):
            if os.path.exists(self._record_file(path)):
                self._wanted.setdefault(path, [])
        self._to_remember: dict[str, Record | None] = {}

    def paths(self) -> list[str]:
        """Return the existing files that have, or once had, content from readcache."""
        return [path for path in self._wanted if os.path.lexists(path)]

    def plan_on(self) -> list[FileChange]:
        """Return the changes that switch the host on. Raise ReadcacheError if a file cannot be read or edited."""
        return self._plan(is_on=True)

    def plan_off(self) -> list[FileChange]:
        """Return the changes that remove readcache's content and nothing more. Raise ReadcacheError if a file cannot be
        read or edited."""
        return self._plan(is_on=False)

    def is_on(self) -> bool:
        """Return True if `plan_on` would change nothing. Raise ReadcacheError if a file cannot be read or edited."""
        return not self.plan_on()

    def is_known(self) -> bool:
        """Return True if the host was switched on here: a record exists, or its files contain entries from
        readcache."""
        if any(os.path.exists(self._record_file(path)) for path in self._wanted):
            return True
        try:
            return bool(self.plan_off())
        except ReadcacheError:  # readcache writes only files that it can read again
            return False

    def as_remembered(self) -> InstallTarget:
        """Return the install target with the mode, policy, protected files and restore size with which the host was
        switched on, if they are recorded."""
        known = next(filter(None, map(self._record, self._wanted)), {})
        return self.target._replace(**{name: known[name] for name in _REMEMBERED if name in known})

    def write(self, changes: Sequence[FileChange]) -> None:
        """Make the changes, all or none, and record them. Raise ReadcacheError if one fails."""
        write_all(changes)
        for path, record in self._to_remember.items():
            name = self._record_file(path)
            if record is not None:
                os.makedirs(os.path.dirname(self._memory), mode=0o700, exist_ok=True)
                os.makedirs(self._memory, mode=0o700, exist_ok=True)
                with open(name, "w", encoding="utf-8", opener=lambda n, flags: os.open(n, flags, 0o600)) as file:
                    json.dump(record, file)
            elif os.path.exists(name):
                os.unlink(name)

    def _plan(self, *, is_on: bool) -> list[FileChange]:
        changes = []
        made = {directory for path in self._wanted for directory in self._record(path).get("directories", ())}
        for path, wanted in self._wanted.items():
            target, before = look(path)
            record = self._record(path)
            original = _original(path, before, [*wanted, *self._may_be_there.get(path, ())], record)
            stays = is_on and bool(wanted)
            after = _with_ours(path, before, original, wanted, record) if stays else original
            if after != before:
                directories = tuple(record.get("directories", ())) or missing_directories(target, made)
                changes.append(FileChange(path, target, before, after, directories))
                require_writable(changes[-1])
                record = {
                    "entries": [entry[1:] for entry in wanted if isinstance(entry, Entry)],
                    "original": None if original is None else original.decode(),
                    "after": _digest(after),
                    "directories": directories,
                    "place": [self.target.root, self.target.is_user],
                    **{name: getattr(self.target, name) for name in _REMEMBERED},
                }
                self._to_remember[path] = record if stays else None
            elif not stays:
                self._to_remember[path] = None
        return changes

    def _record_file(self, path: str) -> str:
        return os.path.join(self._memory, f"{self.host.name}-{_digest(path.encode())[:16]}.json")

    def _record(self, path: str) -> Record:
        return _read_record(self._record_file(path))


def _by_path(changes: Iterable[Entry | OwnFile]) -> dict[str, list[Entry | OwnFile]]:
    found: dict[str, list[Entry | OwnFile]] = {}
    for change in changes:
        found.setdefault(os.path.abspath(change.path), []).append(change)
    return found


def remembered_installs(memory: str) -> list[tuple[str, str, bool]]:
    """Return (host, project, True if it is enabled for all of the user's projects) for each recorded installation. The
    project is "" if the record was lost."""
    names = sorted(os.listdir(memory)) if os.path.isdir(memory) else []
    found = ((name.rpartition("-")[0], _read_record(os.path.join(memory, name))) for name in names)
    return list(dict.fromkeys((host, *record.get("place", ("", False))) for host, record in found))


def _read_record(path: str) -> Record:
    """Return the record in this file. Empty if it is missing or broken."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def _original(path: str, before: bytes | None, wanted: Sequence[Any], record: Record) -> bytes | None:
    """Return the file's content without anything from readcache, or None if nothing would be left of the file."""
    if before is None:
        return None
    if "original" in record and _digest(before) == record["after"]:
        return None if record["original"] is None else str(record["original"]).encode()
    if wanted and isinstance(wanted[0], OwnFile):
        return None if before == wanted[0].text.encode() or b"readcache init" in before else before
    if record and not record["entries"] and b"readcache init" in before:  # a former plugin file, edited since
        return None
    settings = SettingsText(path, before)
    for entry in [*wanted, *_remembered(path, record)]:
        settings.take_out(entry)
    was_made_by_us = settings.data != before and settings.says_nothing() and record.get("original") is None
    return None if was_made_by_us else settings.data


def _with_ours(path: str, before: bytes | None, original: bytes | None, wanted: Sequence[Any], record: Record) -> bytes:
    """Return the file's content with the wanted entries. Return `before` if it has all of them and no outdated one.

    Raise ReadcacheError if the user has another value, or a file of the user's own is at the path.
    """
    if isinstance(wanted[0], OwnFile):
        if original is not None:
            raise ReadcacheError(f"{path} exists and is not ours; nothing was changed: move it away")
        return wanted[0].text.encode()
    if before is not None:
        now = SettingsText(path, before)
        is_stale = any(map(now.has, (entry for entry in _remembered(path, record) if entry not in wanted)))
        if all(map(now.has, wanted)) and not is_stale:
            return before
    settings = SettingsText(path, original)
    for entry in wanted:
        settings.put(entry)
    return settings.data


def _remembered(path: str, record: Record) -> list[Entry]:
    """Return the recorded entries, which another version of readcache may have written."""
    return [Entry(path, tuple(keys), value) for keys, value in record.get("entries", ())]


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()
