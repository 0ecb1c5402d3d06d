"""Switch a host on and off. The new content of its settings files is worked out before anything is written.

The previous content of each file is kept in the state directory, readable only by its owner. If the file was not edited
in the meantime, its exact bytes come back. If it was edited, or no copy was kept, readcache finds its entries by their
content.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

from readcache import ReadcacheError
from readcache.hosts.host import Entry, Host, InstallTarget, OwnFile
from readcache.hosts.settings_files.files import FileChange, look, missing_directories, require_writable, write_all
from readcache.hosts.settings_files.settings_text import SettingsText

Record = dict[str, Any]  # what `init` remembers about one file
_REMEMBERED = ("mode", "policy", "protected", "restore")


class Switch:
    """One host at one install target. `memory`: the directory that records which entries were put into which file."""

    def __init__(self, host: Host, target: InstallTarget, memory: str) -> None:
        self.host, self.target, self._memory = host, target, memory
        self._wanted: dict[str, list[Entry | OwnFile]] = {}
        for change in host.changes(target):
            self._wanted.setdefault(os.path.abspath(change.path), []).append(change)
        # The record of the mode may be lost. Mode "on" has the most entries, so they include all others.
        self._may_be_there: dict[str, list[Entry | OwnFile]] = {}
        for change in host.changes(target._replace(mode="on")):
            self._may_be_there.setdefault(os.path.abspath(change.path), []).append(change)
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
