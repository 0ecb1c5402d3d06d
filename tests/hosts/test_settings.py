"""Entries in settings files: put in and taken out, in any file, without a byte of the user's lost."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import ReadcacheError
from readcache.hosts.host import Entry, Host, InstallTarget
from readcache.hosts.settings_files.settings_text import SettingsText
from readcache.hosts.settings_files.switch import Switch
from tests.hosts.settings_files import jsonc_texts

HOOK = {"matcher": "^Bash$", "hooks": [{"type": "command", "command": "/v/readcache hook trial", "timeout": 30}]}
ENTRIES = {
    "appended": (("hooks", "PostToolUse", "+"), HOOK),
    "set": (("features", "readcache"), True),
    "deep": (("x", "y", "z"), "/v/readcache hook trial"),
    "top": (("readcache",), {"mode": "on", "policy": "max"}),
    "beside": (("model", "readcache"), {"mode": "on"}),
}
FILES = {"json": jsonc_texts()}


def host_of(*entries: Entry) -> Host:
    return Host("trial", "on", "", lambda _: entries)


def switch_of(host: Host, folder: Path) -> Switch:
    target = InstallTarget(str(folder), str(folder), False, ("/v/readcache",), "on", "default")
    return Switch(host, target, str(folder / "memory"))


def with_entries(value: dict[str, Any], entries: list[Entry]) -> dict[str, Any]:
    """What the file is to say, worked out by hand."""
    value = json.loads(json.dumps(value))
    for entry in entries:
        node: Any = value
        for key, after in zip(entry.keys, entry.keys[1:], strict=False):
            if node.get(key) is None:
                node[key] = [] if after == "+" else {}
            node = node[key]
        if entry.keys[-1] == "+":
            node.insert(0, entry.value)
        else:
            node[entry.keys[-1]] = entry.value
    return value


@pytest.mark.parametrize("kind", FILES)
@given(data=st.data())
def test_init_says_what_it_is_to_say_and_uninit_gives_back_the_very_bytes(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, value = data.draw(FILES[kind])
    folder = tmp_path_factory.mktemp("settings")
    path = folder / f"settings.{kind}"
    before = (b"\xef\xbb\xbf" if data.draw(st.booleans()) and kind == "json" else b"") + text.encode()
    path.write_bytes(before)
    names = data.draw(st.lists(st.sampled_from(sorted(ENTRIES)), unique=True, min_size=1, max_size=3))
    entries = [Entry(str(path), *ENTRIES[name]) for name in names]
    switch = switch_of(host_of(*entries), folder)
    try:
        changes = switch.plan_on()
    except ReadcacheError:  # refused: nothing is done
        assert path.read_bytes() == before
        return
    switch.write(changes)
    shown = path.read_bytes().decode("utf-8-sig")
    assert SettingsText(str(path), shown.encode()).value == with_entries(value, entries)
    left_of_it = iter(shown)
    assert all(character in left_of_it for character in text)  # all that is the user's is there, in its order
    assert not switch_of(host_of(*entries), folder).plan_on()
    if data.draw(st.booleans()):
        for kept in (folder / "memory").iterdir():
            kept.unlink()
        again = switch_of(host_of(*entries), folder)
        again.write(again.plan_off())
        left = path.read_bytes().decode("utf-8-sig") if path.exists() else "{}" if kind == "json" else ""
        kept_value = SettingsText(str(path), left.encode()).value
        assert _without_empty(kept_value) == _without_empty(value)
    else:
        again = switch_of(host_of(*entries), folder)
        again.write(again.plan_off())
        assert path.read_bytes() == before


def _without_empty(value: Any) -> Any:
    """Without empty members, since what is empty may have been made by us when nothing is remembered."""
    if isinstance(value, dict):
        found = {key: _without_empty(inner) for key, inner in value.items()}
        return {key: inner for key, inner in found.items() if inner not in ({}, [], None)}
    return [_without_empty(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", FILES)
@given(data=st.data())
def test_files_are_read_as_others_read_them(kind: str, data: st.DataObject) -> None:
    text, value = data.draw(FILES[kind])
    assert SettingsText(f"settings.{kind}", text.encode()).value == value


@pytest.mark.parametrize("kind", FILES)
@given(data=st.data())
def test_what_the_user_does_to_the_file_meanwhile_stays(
    kind: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, value = data.draw(FILES[kind])
    folder = tmp_path_factory.mktemp("settings")
    path = folder / f"settings.{kind}"
    path.write_bytes(text.encode())
    entries = [Entry(str(path), *ENTRIES[name]) for name in ("appended", "deep")]
    users = Entry(str(path), ("hooks", "PostToolUse", "+"), {"matcher": "mine"})
    switch = switch_of(host_of(*entries), folder)
    try:
        switch.write(switch.plan_on())
        edited = SettingsText(str(path), path.read_bytes())
        edited.put(users)
    except ReadcacheError:
        return
    path.write_bytes(edited.data)
    again = switch_of(host_of(*entries), folder)
    again.write(again.plan_off())
    left = SettingsText(str(path), path.read_bytes()).value
    assert _without_empty(left) == _without_empty(with_entries(value, [users]))


USERS = '{\n  "model": "x"\n}\n'


def test_what_the_version_before_remembered_as_insertions_is_taken_out(tmp_path: Path) -> None:
    path, entry = tmp_path / "settings.json", Entry(str(tmp_path / "settings.json"), *ENTRIES["set"])
    put = ',\n  "features": {\n    "readcache": true\n  }'
    at = USERS.index("\n}")
    path.write_text(USERS[:at] + put + USERS[at:])
    record = {"entries": [entry[1:]], "steps": [[[at, put, 0]]], "containers": [["features"]], "made": False}
    record |= {"after": hashlib.sha256(path.read_bytes()).hexdigest(), "directories": []}
    name = hashlib.sha256(str(path).encode()).hexdigest()[:16]
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / f"trial-{name}.json").write_text(json.dumps(record))
    switch = switch_of(host_of(entry), tmp_path)
    assert switch.is_on()
    switch.write(switch.plan_off())
    assert path.read_text() == USERS


def test_the_copy_of_the_users_file_is_for_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(USERS)
    switch = switch_of(host_of(Entry(str(path), *ENTRIES["set"])), tmp_path)
    switch.write(switch.plan_on())
    assert [kept.stat().st_mode & 0o777 for kept in (tmp_path / "memory").iterdir()] == [0o600]
