"""`readcache init`, `uninit` and `hook` as a user and a host call them."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from readcache import ReadcacheError, Session
from readcache.cli.main import main
from readcache.hosts import MODULES, find_host
from readcache.hosts.checks import TEXT
from readcache.hosts.host import Entry, Host, InstallTarget, OwnFile
from readcache.hosts.settings_files.switch import Switch
from readcache.process import failures
from readcache.process.state import default_store
from tests.replay.loaded import DATA

USERS = '{\n\t// mine\n\t"theme": "dark", // as I like it\n\t"hooks": {"AfterTool": [{"matcher": "x"}]}\n}'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, a home and a state directory of its own."""
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    for name in [name for name in os.environ if name.startswith(("READCACHE", "GEMINI", "CODEX"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return directory


def settings_of(project: Path, text: str | None = None) -> Path:
    path = project.parent / "home/.gemini/settings.json"
    if text is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
    return path


def test_a_dry_run_prints_each_change_and_makes_none(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "gemini", "--dry-run"]) == 0
    told = capfd.readouterr().out
    assert f"+++ {settings_of(project)}" in told
    assert "hook gemini" in told
    assert list(project.iterdir()) == []
    assert not failures.path().startswith(str(project))
    assert not (project.parent / "state" / "readcache").exists()


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("name", "what"), [("gemini", "for 30 days"), ("mini-swe-agent", "nothing after a run")])
def test_init_says_in_one_line_what_is_kept(capfd: pytest.CaptureFixture[str], name: str, what: str) -> None:
    assert main(["init", name]) == 0
    (line,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("kept: ")]
    assert what in line
    assert ("`readcache clear`" in line) == (name == "gemini")
    assert main(["init", name, "--off"]) == 0
    assert "kept: " not in capfd.readouterr().out


@pytest.mark.parametrize("tokens", ["0", "700"])
def test_the_size_of_what_is_put_back_is_in_the_hooks_command(project: Path, tokens: str) -> None:
    assert main(["init", "gemini", "--restore", tokens]) == 0
    assert f"hook gemini --advise --restore {tokens} || exit 0" in settings_of(project).read_text()


def test_a_size_that_is_no_number_is_refused(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "gemini", "--restore", "much"]) == 2
    assert "'much' is not a number of tokens" in capfd.readouterr().err
    assert list(project.iterdir()) == []


def test_what_init_made_goes_again_with_its_directories(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "gemini"]) == 0
    told = capfd.readouterr().out
    assert "gemini: advise (a compression may keep a reply" in told
    assert json.loads(settings_of(project).read_text())["hooks"]["AfterTool"]
    assert main(["uninit", "gemini"]) == 0
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("remembers", [True, False])
def test_a_users_file_comes_back_byte_for_byte(project: Path, remembers: bool) -> None:
    path = settings_of(project, USERS)
    path.chmod(0o640)
    assert main(["init", "gemini"]) == 0
    assert path.read_text().startswith(USERS[:40])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert main(["init", "gemini", "--on"]) == 0
    if not remembers:
        for kept in (project.parent / "state/readcache/hosts").iterdir():
            kept.unlink()
    assert main(["uninit", "gemini"]) == 0
    assert path.read_bytes() == USERS.encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_of_ours_alone_goes_also_when_nothing_is_remembered(project: Path) -> None:
    main(["init", "gemini"])
    for kept in (project.parent / "state/readcache/hosts").iterdir():
        kept.unlink()
    assert main(["uninit", "gemini"]) == 0
    assert not settings_of(project).exists()


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_each_host_leaves_nothing_behind(project: Path, name: str, remembers: bool, scope: str) -> None:
    if importlib.util.find_spec(MODULES[name]) is None:
        assert main(["init", name]) == 1
        return
    home = project.parent / "home"
    home.mkdir()
    before = files_below(project.parent)
    assert main(["init", name, scope]) == 0
    first = files_below(project.parent)
    assert first != before
    assert main(["init", name, scope]) == 0
    assert files_below(project.parent) == first
    assert main(["init", name, scope, "--advise", "--policy", "max"]) == 0
    if not remembers:
        for kept in (project.parent / "state/readcache/hosts").iterdir():
            kept.unlink()
    assert main(["uninit", name, scope]) == 0
    assert files_below(project.parent) == before


@pytest.mark.parametrize("name", MODULES)
def test_what_a_team_may_commit_names_no_path_of_this_machine(
    project: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """One user's path stood in a settings file that the team commits."""
    assert main(["init", name, "--project"]) == 0
    made = files_below(project)
    assert made
    for text in made.values():
        assert str(project.parent).encode() not in text
        assert os.path.dirname(sys.executable).encode() not in text
    assert ("needs `readcache` on PATH" in capfd.readouterr().out) == (name != "mini-swe-agent")


@pytest.mark.parametrize("name", MODULES)
def test_without_an_option_no_file_of_the_project_changes(project: Path, name: str) -> None:
    assert main(["init", name]) == 0
    assert not files_below(project)
    assert files_below(project.parent)


@pytest.mark.parametrize(("name", "todo"), [("codex", "type /hooks"), ("claude-code", "start Claude Code anew")])
@pytest.mark.parametrize("scope", [[], ["--project"]])
def test_init_says_what_is_left_to_do_how_to_look_and_how_to_undo(
    project: Path, name: str, todo: str, scope: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    before = files_below(project.parent)
    assert main(["init", name, *scope]) == 0
    lines = dict(line.split(": ", 1) for line in capfd.readouterr().out.splitlines() if ": " in line)
    assert todo in lines["next"]
    assert f"look: `readcache doctor --host {name}`" in lines["kept"]
    undo = lines["kept"].partition("undo: `readcache ")[2].rstrip("`").split()
    assert main(undo) == 0
    assert files_below(project.parent) == before


def test_uninit_names_the_place_where_the_host_is_on(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["init", "claude-code", "--project"])
    capfd.readouterr()
    assert main(["uninit", "claude-code"]) == 0
    assert "it is on elsewhere: `readcache uninit claude-code --project`" in capfd.readouterr().out
    assert files_below(project)


@pytest.mark.usefixtures("project")
def test_a_long_file_of_ours_is_printed_only_by_a_dry_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "opencode", "--dry-run"]) == 0
    assert len(capfd.readouterr().out.splitlines()) > 100
    assert main(["init", "opencode"]) == 0
    out = capfd.readouterr().out
    assert len(out.splitlines()) < 10
    assert "/opencode/plugin/readcache.js: " in out


def files_below(folder: Path) -> dict[str, bytes]:
    """What is there, but for the state directory."""
    paths = [path for path in folder.rglob("*") if path.is_file() and folder / "state" not in path.parents]
    return {str(path): path.read_bytes() for path in paths}


def test_a_second_init_changes_nothing_and_another_mode_changes_ours(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = settings_of(project, USERS)
    main(["init", "gemini"])
    first = path.read_bytes()
    capfd.readouterr()
    assert main(["init", "gemini"]) == 0
    assert path.read_bytes() == first
    assert capfd.readouterr().out.startswith("gemini: already advise (")
    main(["init", "gemini", "--advise", "--policy", "delta"])
    hooks = [hook["hooks"][0]["command"] for hook in _hooks(path) if "hooks" in hook]
    assert len(hooks) == 1
    assert hooks[0].endswith("hook gemini --advise --policy delta || exit 0")
    main(["init", "gemini"])
    assert path.read_bytes() == first


def _hooks(path: Path) -> list[dict[str, list[dict[str, str]]]]:
    lines = [line for line in path.read_text().splitlines() if not line.strip().startswith("//")]
    found = json.loads("\n".join(line.split(" //")[0] for line in lines))
    hooks: list[dict[str, list[dict[str, str]]]] = found["hooks"]["AfterTool"]
    return hooks


def test_another_place_of_the_program_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"

    def switch(program: str) -> Switch:
        install = InstallTarget(str(tmp_path), str(tmp_path), False, (program,), "on", "default")
        host = Host(
            "h", "on", "", lambda install: [Entry(str(path), ("hooks", "+"), {"run": install.line("hook", "h")})]
        )
        return Switch(host, install, str(tmp_path / "memory"))

    for program in ("/old place/bin/readcache", "/new/bin/readcache"):
        now = switch(program)
        now.write(now.plan_on())
        (tmp_path / "memory" / os.listdir(tmp_path / "memory")[0]).unlink()  # it must be known again by itself
    assert json.loads(path.read_text()) == {"hooks": [{"run": "/new/bin/readcache hook h || exit 0"}]}


def test_a_link_stays_a_link_and_its_file_is_edited(project: Path) -> None:
    real = project / "dotfiles.json"
    real.write_text(USERS)
    path = settings_of(project)
    path.parent.mkdir(parents=True)
    path.symlink_to(real)
    assert main(["init", "gemini"]) == 0
    assert path.is_symlink()
    assert "hook gemini" in real.read_text()
    assert main(["uninit", "gemini"]) == 0
    assert real.read_text() == USERS
    assert path.is_symlink()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"hooks": [}', "line 1: Expecting value"),
        ('{"a": 1}\n{"b": 2}', "line 2: Extra data"),
        ("[]", "no mapping at its top"),
        ('{"hooks": "none"}', 'hooks is "none"'),
        ('{"hooks": {"AfterTool": {}}}', "hooks.AfterTool is {}"),
        ("{'a': 1}", "line 1: Expecting property name"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_edited_is_refused_in_words_and_nothing_is_done(
    project: Path, capfd: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    path = settings_of(project, text)
    assert main(["init", "gemini"]) == 1
    error = capfd.readouterr().err
    assert told in error
    assert str(path) in error
    assert path.read_text() == text


def test_bytes_that_are_no_text_a_lost_link_and_a_read_only_file_are_refused(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = settings_of(project, "{}")
    path.write_bytes(b'{"a": "\xff"}')
    assert main(["init", "gemini"]) == 1
    assert "not UTF-8" in capfd.readouterr().err
    path.write_text("{}")
    path.chmod(0o444)
    assert main(["init", "gemini"]) == 1
    assert "read-only" in capfd.readouterr().err
    assert path.read_text() == "{}"
    path.unlink()
    path.symlink_to(project / "nowhere")
    assert main(["init", "gemini"]) == 1
    assert "which is not there" in capfd.readouterr().err
    assert os.listdir(path.parent) == ["settings.json"]


def test_two_files_are_changed_both_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "one.json", tmp_path / "deep" / "two.json"
    one.write_text('{"a": 1}')
    host = Host("h", "on", "", lambda _: [Entry(str(path), ("readcache",), "run") for path in (one, two)])
    install = InstallTarget(str(tmp_path), str(tmp_path), False, ("readcache",), "on", "default")
    switch = Switch(host, install, str(tmp_path / "memory"))
    replace = os.replace

    def full(source: str, target: str) -> None:
        if target == str(two):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ReadcacheError, match="No space left on device; nothing was changed"):
        switch.write(switch.plan_on())
    assert one.read_text() == '{"a": 1}'
    assert sorted(os.listdir(tmp_path)) == ["one.json"]


def test_a_file_that_changes_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text("{}")
    host = Host("h", "on", "", lambda _: [Entry(str(path), ("readcache",), "run")])
    install = InstallTarget(str(tmp_path), str(tmp_path), False, ("readcache",), "on", "default")
    switch = Switch(host, install, str(tmp_path / "memory"))
    changes = switch.plan_on()
    path.write_text('{"new": 1}')
    with pytest.raises(ReadcacheError, match="just changed"):
        switch.write(changes)
    assert path.read_text() == '{"new": 1}'


def test_a_file_of_our_own_is_made_brought_up_to_date_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "plugins" / "readcache.js"

    def switch(mode: str) -> Switch:
        text = f"// Made by `readcache init h`.\nconst mode = '{mode}'\n"
        install = InstallTarget(str(tmp_path), str(tmp_path), False, ("readcache",), mode, "default")
        return Switch(Host("h", "on", "", lambda _: [OwnFile(str(path), text)]), install, str(tmp_path / "memory"))

    for mode in ("on", "advise"):
        now = switch(mode)
        now.write(now.plan_on())
        assert mode in path.read_text()
    now = switch("advise")
    now.write(now.plan_off())
    assert os.listdir(tmp_path) == ["memory"]
    path.parent.mkdir()
    path.write_text("my own plugin")
    with pytest.raises(ReadcacheError, match="not ours"):
        switch("on").plan_on()
    assert switch("on").plan_off() == []


# ------------------------------------------------------------ hooks


def hook(words: list[str], event: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(event.encode())))
    capfd.readouterr()
    assert main(["hook", *words]) == 0
    told = capfd.readouterr()
    assert told.err == ""
    return told.out


@pytest.mark.parametrize(
    ("words", "event"),
    [
        (["codex"], "no json"),
        (["codex"], "[]"),
        (["codex"], '{"hook_event_name": "PostToolUse", "tool_name": "Bash"}'),
        (["nobody"], "{}"),
        ([], "{}"),
        (["codex", "--nonsense"], "{}"),
        (["codex", "--policy"], "{}"),
        (["gemini", "--policy", "none"], '{"hook_event_name": "AfterTool", "transcript_path": "/dev/null"}'),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_hook_that_fails_prints_nothing_ends_with_0_and_is_noted(
    words: list[str], event: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert hook(words, event, monkeypatch, capfd) == ""
    assert len(failures.noted()) == 1
    assert "hook" in failures.noted()[0]


def trial(name: str, directory: Path) -> list[str]:
    """Events of which the last is answered."""
    from readcache.hosts import find_host

    return [json.dumps(event) for event in find_host(name).trial(str(directory))]


@pytest.mark.parametrize("name", ["codex", "gemini"])
@pytest.mark.parametrize(
    ("words", "env", "is_answered"),
    [
        ([], {}, True),
        (["--policy", "max"], {}, True),
        (["--advise"], {}, False),
        (["--off"], {}, False),
        ([], {"READCACHE": "off"}, False),
        ([], {"READCACHE": "advise"}, False),
    ],
)
def test_a_hook_leaves_lines_out_only_where_it_is_on(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
    words: list[str],
    env: dict[str, str],
    is_answered: bool,
) -> None:
    for key, value in env.items():
        monkeypatch.setenv(key, value)
    first, second = trial(name, project)
    assert hook([name, *words], first, monkeypatch, capfd) == ""
    answer = hook([name, *words], second, monkeypatch, capfd)
    assert ("UNCHANGED" in answer) == is_answered
    assert failures.noted() == []


def test_a_hook_imports_no_session_for_an_event_that_needs_none(project: Path) -> None:
    program = (
        "import sys\nfrom readcache.cli.main import main\nassert main(['hook', 'codex']) == 0\n"
        "assert 'readcache.session' not in sys.modules and 'dataclasses' not in sys.modules"
    )
    event = '{"hook_event_name": "PostToolUse", "tool_name": "apply_patch"}'
    env = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    ran = subprocess.run([sys.executable, "-c", program], input=event, text=True, cwd=project, env=env, check=False)
    assert ran.returncode == 0
    assert failures.noted() == []


# ------------------------------------------------------------ doctor


def doctors_line(capfd: pytest.CaptureFixture[str], name: str, *words: str) -> list[str]:
    capfd.readouterr()
    main(["doctor", *words])
    return [line for line in capfd.readouterr().out.splitlines() if line.split()[1] == name]


@pytest.mark.slow
def test_doctor_says_whether_a_host_is_in_force(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))  # for the program that settings name
    assert doctors_line(capfd, "gemini") == []
    assert doctors_line(capfd, "gemini", "--host", "gemini")[0].startswith("broken")
    main(["init", "gemini", "--on", "--policy", "delta"])
    assert doctors_line(capfd, "gemini")[0].startswith("ok      gemini     on, policy delta (--user)")
    path = settings_of(project)
    good = path.read_text()
    path.write_text(good.replace("{", '{"hooksConfig": {"enabled": false},', 1))
    assert "disables all hooks" in doctors_line(capfd, "gemini")[0]
    path.write_text(good.replace("{", '{"hooksConfig": {"disabled": ["readcache"]},', 1))
    assert "disables the hook" in doctors_line(capfd, "gemini")[0]
    path.write_text(good.replace("AfterTool", "BeforeTool"))
    assert doctors_line(capfd, "gemini")[0].startswith("broken")
    path.write_text(good)
    main(["init", "gemini", "--off"])
    assert doctors_line(capfd, "gemini")[0].startswith("ok      gemini     off (--user)")
    main(["uninit", "gemini"])
    assert doctors_line(capfd, "gemini") == []


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_doctor_speaks_of_a_named_host_alone(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    main(["init", "gemini"])
    main(["init", "mini-swe-agent"])
    monkeypatch.setenv("READCACHE", "nonsense")
    capfd.readouterr()
    assert main(["doctor", "--host", "gemini"]) == 0
    assert [line.split()[:2] for line in capfd.readouterr().out.splitlines()] == [["ok", "gemini"]]
    assert main(["doctor", "--host", "codex", "--host", "gemini"]) == 1
    assert [line.split()[:2] for line in capfd.readouterr().out.splitlines()] == [["ok", "gemini"], ["broken", "codex"]]


def test_doctor_fires_each_hook_and_says_proven_only_by_a_transcript_of_the_host(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(project.parent / "claude"))
    monkeypatch.setenv("PATH", "/nowhere")  # no host can be run
    main(["init", "gemini"])
    main(["init", "claude-code", "--user"])
    for host, program in (("gemini", "gemini"), ("claude-code", "claude")):
        line = doctors_line(capfd, host, "--fire")[0]
        assert "; fired: " in line
        why = f"({program} is not on PATH): have it read a file twice, then run this again"
        assert line.endswith(f"; the model's copy: not proven {why}")
    with Session(project, session_id="talk", store=default_store(), host="claude-code") as session:
        marker = [session.observe("cat f", TEXT).text for _ in range(2)][1].rstrip()
    path = project.parent / "claude/projects/p/talk.jsonl"
    path.parent.mkdir(parents=True)
    for result, is_proven in (("something else", False), (f"1\t{marker}\n", True)):
        path.write_text(_transcript(result))
        line = doctors_line(capfd, "claude-code", "--fire")[0]
        assert line.endswith(f"; the model's copy: proven by {path} (claude is not on PATH)") == is_proven
    assert "proven" not in doctors_line(capfd, "claude-code")[0]


def _transcript(result: str) -> str:
    """Claude Code's, with this as the result of its first call."""
    rows = [json.loads(line) for line in (DATA / "claude-code.jsonl").read_text().splitlines()]
    blocks = (block for row in rows for block in row.get("message", {}).get("content", ()) if isinstance(block, dict))
    next(block for block in blocks if block.get("type") == "tool_result")["content"] = result
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_doctor_tells_of_a_program_that_does_not_answer(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = project / "readcache"
    program.write_text("#!/bin/sh\necho 0.1\n")
    program.chmod(0o755)
    monkeypatch.setattr("readcache.cli.hosts.python_program", lambda: (str(program),))
    main(["init", "gemini"])
    assert "answers an empty event" in doctors_line(capfd, "gemini")[0]
    program.write_text("#!/bin/sh\n:\n")
    assert "did not answer a trial event" in doctors_line(capfd, "gemini")[0]
    program.write_text("#!/bin/sh\nexit 9\n")
    assert "ends with status 9" in doctors_line(capfd, "gemini")[0]
    program.unlink()
    assert "does not run" in doctors_line(capfd, "gemini")[0]


def test_a_shared_program_that_is_not_on_path_is_missed_at_once(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tools = project.parent / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    assert main(["init", "gemini", "--project", "--on"]) == 0
    (line,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("missing: ")]
    assert line.startswith("missing: `readcache` is not on your PATH, so nothing is omitted yet: ")
    assert doctors_line(capfd, "gemini")[0].endswith("; put it on PATH")
    line = (project / ".gemini/settings.json").read_text()
    assert '"PYTHONHOME= PYTHONPATH= readcache hook gemini || exit 0"' in line  # it is started so below
    (tools / "readcache").write_text(
        f'#!/bin/sh\nPYTHONPATH={Path(__file__).resolve().parents[2]} exec {sys.executable} -m readcache "$@"\n'
    )
    (tools / "readcache").chmod(0o755)
    assert main(["init", "gemini", "--project", "--on"]) == 0
    assert "missing: " not in capfd.readouterr().out
    assert doctors_line(capfd, "gemini")[0].startswith("ok ")


def test_init_says_why_it_falls_back_to_hooks(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tools = project.parent / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    assert main(["init", "claude-code"]) == 0
    said = capfd.readouterr().out.splitlines()
    assert "way: hooks instead of a plugin: no claude on PATH tells its version" in said
    assert main(["init", "gemini"]) == 0
    assert not [line for line in capfd.readouterr().out.splitlines() if line.startswith("way: ")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemini", "codex"])
def test_a_hook_starts_whatever_python_is_told_to_import(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As an agent may have it in its environment, and in its directory."""
    monkeypatch.setenv("PATH", "/nowhere")  # no claude, so hooks
    assert main(["init", name, "--on"]) == 0
    found = [path for path in (project.parent / "home").rglob("*") if path.suffix in (".json", ".toml")]
    (line,) = {line for path in found for line in re.findall(r'"([^"]* hook [^"]*)"', path.read_text())}
    for module in ("enum.py", "json.py", "readcache.py", "xxhash.py"):
        (project / module).write_text("raise SystemExit(1)")
    trial = list(find_host(name).trial(str(project)))
    for wrong in ({}, {"PYTHONPATH": str(project)}, {"PYTHONHOME": "/nowhere"}, {"PYTHONWARNINGS": "error"}):
        env = {"READCACHE_SERVER": "off", "XDG_STATE_HOME": str(project.parent / "s" / str(wrong)[2:12]), **wrong}
        answers = [
            subprocess.run(["/bin/sh", "-c", line], input=json.dumps(event), env=env, capture_output=True, text=True)
            for event in trial
        ]
        assert [answer.returncode for answer in answers] == [0] * len(trial)
        assert "LEFT_OUT" in answers[-1].stdout or "UNCHANGED" in answers[-1].stdout, (wrong, answers)
