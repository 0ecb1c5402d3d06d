"""READCACHE means the same to the command line, the adapters, the client of hooks and the plugin."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import readcache
from readcache import Mode, UsageError
from readcache.core.model.limits import LARGEST_OUTPUT
from readcache.hosts.adapter_settings import policy_by_settings
from readcache.process.mode import OFF, acts, mode_named
from readcache.process.settings import read_settings
from readcache.serve import ask

PACKAGE = Path(readcache.__file__).parent


@pytest.mark.parametrize(
    ("said", "mode"),
    [
        *((said, Mode.OFF) for said in ("off", "0", "false", "no", " OFF ")),
        *((said, Mode.ON) for said in ("", "on", "1", "true", "Yes")),
        ("Advise", Mode.ADVISE),
    ],
)
def test_the_command_line_and_the_adapters_agree(said: str, mode: Mode) -> None:
    env = {"READCACHE": said}
    assert policy_by_settings({}, env).mode is mode
    assert read_settings({**env, "READCACHE_SESSION": "s"}).mode == mode.value
    assert read_settings({**env, "READCACHE_SESSION": "s"}).acts == acts(mode_named(env)) == (mode is not Mode.OFF)


def test_what_means_nothing_omits_nothing_and_is_an_error() -> None:
    env = {"READCACHE": "loud", "READCACHE_SESSION": "s"}
    assert not read_settings(env).acts
    with pytest.raises(UsageError, match="READCACHE=loud"):
        policy_by_settings({}, env)


@pytest.mark.parametrize("said", ["off", " No ", "loud"])
def test_no_server_is_asked_where_nothing_is_done(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READCACHE", said)
    monkeypatch.setenv("READCACHE_STORE", str(tmp_path / "log.db"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    monkeypatch.setattr("readcache.serve.address.reach", lambda *_: pytest.fail("a server was asked"))
    assert ask.ask_hook(["codex"]) == b"{}"


def test_the_plugins_know_the_same_words() -> None:
    source = (PACKAGE / "hosts/plugin.js").read_text(encoding="utf-8")
    words = re.search(
        r"\[([^\]]*)\]\.includes\(process\.env\.READCACHE\?\.trim\(\)\.toLowerCase\(\) \?\? \"\"\)", source
    )
    assert words is not None
    assert tuple(re.findall(r'"(\w+)"', words[1])) == OFF


def test_the_compiled_client_holds_as_much_as_is_judged() -> None:
    source = (PACKAGE.parent / "shims/client.c").read_text(encoding="utf-8")
    assert f"MOST_HELD = {LARGEST_OUTPUT}," in source
