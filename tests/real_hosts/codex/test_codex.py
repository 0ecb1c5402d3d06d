"""Codex CLI with readcache: the suite, and what is peculiar to it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from readcache.core.model.text import session_tag
from readcache.log.store import open_store
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Compact, Edit, Step
from readcache.testing.requests import markers
from tests.real_hosts.codex.scripted import CodexHost, texts_of, trusted
from tests.real_hosts.fired import check_fire
from tests.real_hosts.measured import Run, compare

CAT = Bash("cat shop.py")
VERSIONS = {"codex": subprocess.run(["codex", "--version"], capture_output=True, text=True).stdout.split()[-1]}


class TestCodex(Conformance):
    host = CodexHost()


def project(tmp_path: Path) -> Path:
    make_project(tmp_path / "project")
    return tmp_path / "project"


def test_the_command_that_runs_is_the_users_own_and_its_status_is_told(tmp_path: Path) -> None:
    failing = Bash("cat shop.py; (exit 3)")
    seen = CodexHost().converse(project(tmp_path), [(failing,), (failing,)], on=True)
    assert re.fullmatch(r"Process exited with code 3\nOutput:\n\[UNCHANGED .*; exit 3; .*\]\n", seen[1].results[0])
    assert not [text for text in seen[1].texts if "readcache" in text]


def test_the_log_is_written_from_outside_of_the_sandbox(tmp_path: Path) -> None:
    root, host = project(tmp_path), CodexHost(sandbox="read-only")
    seen = host.converse(root, [(Bash("touch new; cat shop.py"),), (CAT,)], on=True)
    if "bwrap" in seen[0].results[0] or "sandbox" in seen[0].results[0]:
        pytest.skip("no sandbox can be made here")
    assert not (root / "new").exists()
    assert markers(seen[1].results[0])
    assert host.failures == ""


def test_a_command_that_goes_on_in_the_background_is_no_source(tmp_path: Path) -> None:
    slow = Bash("sleep 1; cat shop.py; cat crlf.txt", timeout=0.3)
    seen = CodexHost().converse(project(tmp_path), [(slow,), (Bash("sleep 2"),), (CAT,), (CAT,)], on=True)
    assert "running with session ID" in seen[0].results[0]
    assert "UNCHANGED" not in seen[2].results[0]
    assert "UNCHANGED" in seen[3].results[0]


def test_what_an_earlier_message_was_told_to_cut_is_shown_when_it_is_asked_for(tmp_path: Path) -> None:
    steps: list[Step] = [(Bash("cat long.txt"),), (Bash("sed -n '3000,3020p' long.txt"),)]
    seen = CodexHost().converse(project(tmp_path), steps, on=True)
    assert "Warning: truncated output" in seen[0].results[0]
    assert "UNCHANGED" not in seen[1].results[0]


def test_a_failure_of_ours_passes_the_real_output_through_and_is_noted(tmp_path: Path) -> None:
    host = CodexHost(store=tmp_path)
    seen = host.converse(project(tmp_path), [(CAT,), (CAT,)], on=True)
    assert "def item_60" in seen[1].results[0]
    assert "store" in host.failures.lower() or "directory" in host.failures.lower()


@pytest.mark.parametrize("host", [CodexHost(words=("--advise",)), CodexHost(env={"READCACHE": "off"})])
def test_it_can_be_turned_off(tmp_path: Path, host: CodexHost) -> None:
    seen = host.converse(project(tmp_path), [(CAT,), (CAT,)], on=True)
    assert "def item_60" in seen[1].results[0]
    assert host.failures == ""


@pytest.mark.parametrize("way", ["agent-shell.sh", "agent-command.sh"])
def test_shims_serve_the_shell_that_codex_puts_in_place_of_its_own(tmp_path: Path, way: str) -> None:
    shims = tmp_path / "shims"
    subprocess.run(["readcache", "shims", "install", str(shims)], check=True)
    set_there = {
        "BASH_ENV": str(shims / way),
        "READCACHE_SESSION_FROM": "CODEX_THREAD_ID",
        "READCACHE_STORE": str(tmp_path / "store.db"),
        "READCACHE": "on",
    }
    lines = "".join(f'{name} = "{value}"\n' for name, value in set_there.items())
    host = CodexHost(more=f"[shell_environment_policy.set]\n{lines}", has_init=False)
    steps: list[Step] = [(CAT,), (CAT,), (Bash("sed -i 's/number 7 /number seven /' shop.py"),), (CAT,)]
    seen = host.converse(project(tmp_path), steps, on=True)
    assert "def item_60" in seen[0].results[0]
    assert "FILE_UNCHANGED" in seen[1].results[0]
    assert "number seven of" in seen[3].results[0]
    again = host.converse(project(tmp_path / "again"), [(CAT,)], on=True)  # another conversation, the same settings
    assert "def item_60" in again[0].results[0]


def test_what_a_compaction_took_away_is_put_back_and_is_a_source(tmp_path: Path) -> None:
    steps: list[Step] = [(CAT,), (Bash("cat crlf.txt | head -3; ls"),), Compact(), (Bash("sed -n '5,30p' shop.py"),)]
    root, host = project(tmp_path), CodexHost()
    model = host.run(root, steps, on=True)
    sections = [text for text in texts_of(model.requests[-1]) if "## Files restored after compaction" in text]
    assert len(sections) == 1
    assert (root / "shop.py").read_text() in sections[0]
    assert 'shop.py lines 5-30, in the section "Files restored after compaction"' in model.seen[-1].results[0]
    assert host.failures == ""


@pytest.mark.parametrize("words", [("--restore", "0"), ("--advise",)])
def test_nothing_is_put_back_where_that_was_not_asked_for(tmp_path: Path, words: tuple[str, ...]) -> None:
    steps: list[Step] = [(CAT,), Compact(), (CAT,)]
    seen = CodexHost(words=words).converse(project(tmp_path), steps, on=True)
    assert not [text for text in seen[-1].texts if "restored after" in text]


def test_doctor_asks_codex_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = project(tmp_path)
    for name, value in {"CODEX_HOME": "codex", "HOME": "home", "XDG_STATE_HOME": "state"}.items():
        (tmp_path / value).mkdir()
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.chdir(root)

    def doctor() -> tuple[int, str]:
        ran = subprocess.run(["readcache", "doctor", "--host", "codex"], capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout.splitlines()[-1]

    assert doctor()[0] == 1
    subprocess.run(["readcache", "init", "codex", "--user"], check=True)
    assert doctor() == (
        1,
        "broken  codex      codex does not run the hooks until you trust them: start codex and run /hooks",
    )
    config = tmp_path / "codex" / "config.toml"
    config.write_text(trusted(tmp_path))
    assert doctor()[1] == "ok      codex      on (--user): codex runs the hooks"
    config.write_text(trusted(tmp_path) + "[features]\nhooks = false\n")
    assert "codex does not load" in doctor()[1]
    subprocess.run(["readcache", "uninit", "codex", "--user"], check=True)
    assert not (tmp_path / "codex" / "hooks.json").exists()


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    edit = Edit("shop.py", "number 9 of", "number nine of")
    steps: list[Step] = [
        (CAT,),
        (Bash("sed -n '10,50p' shop.py"),),
        (Bash("grep -n count shop.py | head"),),
        (edit,),
        (CAT,),
        (Bash("sed -n '1,30p' shop.py"),),
        Compact(),
        (CAT,),
        (Bash("tail -n 40 shop.py"),),
    ]

    def run_steps(directory: Path, on: bool) -> Run:
        root, began = project(directory), time.monotonic()
        model = CodexHost().run(root, steps, on=on)
        seconds = time.monotonic() - began
        outputs = [item["output"] for body in model.requests for item in body["input"] if "output" in item]
        return Run(sum(map(len, outputs)), seconds, 8)

    compare("codex", VERSIONS, run_steps, tmp_path)


def test_doctor_proves_with_a_scripted_model_that_its_copy_changed() -> None:
    check_fire("codex")


class Recall(Bash):
    """The recall of a conversation's second call. Its name is known only once Codex has chosen the session's ID."""

    def __getattribute__(self, name: str) -> Any:
        if name != "command":
            return super().__getattribute__(name)
        with contextlib.closing(open_store(super().__getattribute__(name))) as store:
            (session_id, *_) = next(iter(store.sessions()), ("",))
        return f"readcache recall {session_tag(session_id)}.2"


def test_a_recall_is_answered_by_the_hook(tmp_path: Path) -> None:
    root, store = project(tmp_path), tmp_path / "store.db"
    steps: list[Step] = [(CAT,), (CAT,), Compact(), (Recall(str(store)),)]
    host = CodexHost(store=store, sandbox="danger-full-access")
    seen = host.converse(root, steps, on=True)
    assert markers(seen[1].results[0])
    assert seen[3].results[0] == f"Process exited with code 0\nOutput:\n{(root / 'shop.py').read_text()}"
    assert host.failures == ""
