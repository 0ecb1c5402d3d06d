"""Switches a host on and off: what its settings files are to hold, worked out before anything is written.

The file as it was before is kept in the state directory, readable by its owner alone. If the file was not edited since,
its exact bytes come back. If it was, or no copy was kept, our entries are found by their content.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

from readcache import ReadcacheError
from readcache.hosts.host import Entry, Host, OwnFile, Where
from readcache.hosts.settings_files.files import FileChange, look, missing_directories, require_writable, write_all
from readcache.hosts.settings_files.settings_text import SettingsText

_BOM = "\ufeff"


class Switch:
    """One host at one place. `memory`: the directory in which is remembered what was put into which file."""

    def __init__(self, host: Host, where: Where, memory: str) -> None:
        self.host, self.where, self._memory = host, where, memory
        self._wanted: dict[str, list[Entry | OwnFile]] = {}
        for change in host.changes(where):
            self._wanted.setdefault(os.path.abspath(change.path), []).append(change)
        for path in map(os.path.abspath, host.former_files(where)):
            if os.path.exists(self._record_file(path)):
                self._wanted.setdefault(path, [])
        self._to_remember: dict[str, dict[str, Any] | None] = {}

    def plan_on(self) -> list[FileChange]:
        """The changes that switch the host on. ReadcacheError where that cannot be done."""
        return self._plan(is_on=True)

    def plan_off(self) -> list[FileChange]:
        """The changes that take out what is ours, and nothing else. ReadcacheError."""
        return self._plan(is_on=False)

    def is_on(self) -> bool:
        """True if all that is ours is where `plan_on` would put it. ReadcacheError for files that cannot be read."""
        return not self.plan_on()

    def is_known(self) -> bool:
        """True if the host was switched on here: something of ours is in its files, or we remember it."""
        if any(os.path.exists(self._record_file(path)) for path in self._wanted):
            return True
        try:
            return bool(self.plan_off())
        except ReadcacheError:  # what cannot be read was not written by us
            return False

    def write(self, changes: Sequence[FileChange]) -> None:
        """Makes the changes, all or none, and remembers them. ReadcacheError."""
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
        for path, wanted in self._wanted.items():
            target, before = look(path)
            record = self._record(path)
            make = self._own_file if wanted and isinstance(wanted[0], OwnFile) else self._settings
            stays = is_on and bool(wanted)
            if not wanted and path.endswith((".yaml", ".yml")):
                after, new_record = self._former_yaml(path, before, record), None
            else:
                after, new_record = make(path, before, wanted, record, stays)
            if after != before:
                directories = tuple(record.get("directories", ()))
                change = FileChange(path, target, before, after, directories)
                require_writable(change)
                changes.append(change)
                if new_record is not None:
                    new_record["directories"] = directories or missing_directories(target)
                    new_record["after"] = _digest(after)
                self._to_remember[path] = new_record
            elif not stays:
                self._to_remember[path] = None
        return changes

    def _own_file(
        self, path: str, before: bytes | None, wanted: Sequence[Any], record: dict[str, Any], is_on: bool
    ) -> tuple[bytes | None, dict[str, Any] | None]:
        """The new content of a file of ours, and the record to keep."""
        text = wanted[0].text.encode()
        is_ours = before is not None and (before == text or self._knows(before, record))
        if before is not None and not is_ours:
            if is_on:
                raise ReadcacheError(f"{path} exists and is not ours; nothing was changed: move it away")
            return before, None
        return (text, {"original": None}) if is_on else (None, None)

    def _settings(
        self, path: str, before: bytes | None, wanted: Sequence[Any], record: dict[str, Any], is_on: bool
    ) -> tuple[bytes | None, dict[str, Any] | None]:
        """The new content of a settings file, and the record to keep."""
        bom, text = _decoded(path, before)
        entries, old = list(wanted), [Entry(path, tuple(keys), value) for keys, value in record.get("entries", ())]
        now = SettingsText(path, text)
        if is_on and before is not None and all(map(now.has, entries)) and not _stale(now, old, entries):
            return before, None
        if before is not None and _digest(before) == record.get("after"):
            original = _original(before, record)
        else:
            users = SettingsText(path, _decoded(path, record["original"])[1]) if "original" in record else None
            for entry in [*entries, *(entry for entry in old if entry not in entries)]:
                now.take_out(entry, users)
            original = (bom + now.text).encode() if before is not None else None
            is_ours = (
                record["original"] is None if "original" in record else self._is_all_ours(path, text, entries, record)
            )
            if is_ours and "".join(now.text.split()) in ("", "{}"):
                original = None
        if not is_on:
            return original, None
        base = SettingsText(path, _decoded(path, original)[1])
        for entry in entries:
            base.put(entry)
        kept = None if original is None else original.decode()
        return (bom + base.text).encode(), {"entries": [entry[1:] for entry in entries], "original": kept}

    def _former_yaml(self, path: str, before: bytes | None, record: dict[str, Any]) -> bytes | None:
        """The user's YAML file without the two lines that 0.1.0 put in; this version does not edit YAML."""
        if before is not None and _digest(before) == record.get("after"):
            return _original(before, record)
        if before is not None and b"readcache" in before:
            raise ReadcacheError(
                f"{path} has changed since readcache was put into it: remove its lines `model_class: readcache…` and "
                "`readcache:` by hand, then run this again; nothing was changed"
            )
        return before

    def _knows(self, data: bytes, record: dict[str, Any]) -> bool:
        """True if a file of our own is as we made it, or says that we did."""
        return _digest(data) == record.get("after") or b"readcache init" in data

    def _is_all_ours(self, path: str, text: str, entries: Sequence[Entry], record: dict[str, Any]) -> bool:
        """True if there is no record, and the file equals one that we would create."""
        fresh, now = SettingsText(path, ""), SettingsText(path, text)
        for entry in entries:
            for value in now.values_of(entry):  # in whatever mode
                fresh.put(entry._replace(value=value))
        return not record and fresh.text == text

    def _record_file(self, path: str) -> str:
        return os.path.join(self._memory, f"{self.host.name}-{_digest(path.encode())[:16]}.json")

    def _record(self, path: str) -> dict[str, Any]:
        """What is remembered of the file; nothing where that was lost."""
        try:
            with open(self._record_file(path), encoding="utf-8") as file:
                found = json.load(file)
            return found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            return {}


def _stale(settings: SettingsText, old: Sequence[Entry], entries: Sequence[Entry]) -> bool:
    """True if something is there that is not to be there any more."""
    return any(settings.has(entry) for entry in old if entry not in entries)


def _original(data: bytes, record: dict[str, Any]) -> bytes | None:
    """The file as it was before us; None: it was not there. `data`: as we left it. 0.1.0 remembered its insertions."""
    if "original" in record:
        return None if record["original"] is None else str(record["original"]).encode()
    text = data.decode()
    for edits in reversed(record["steps"]):
        for at, put, _ in sorted(edits):  # those before it are out already, so that its place is what it was
            text = text[:at] + text[at + len(put) :]
    return None if record.get("made") and "".join(text.split()) in ("", "{}") else text.encode()


def _digest(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _decoded(path: str, data: bytes | str | None) -> tuple[str, str]:
    """(the byte order mark, the text). ReadcacheError for what is not UTF-8."""
    try:
        text = data if isinstance(data, str) else (data or b"").decode()
    except UnicodeDecodeError:
        raise ReadcacheError(f"{path} is not UTF-8: convert it first; nothing was changed") from None
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
