"""Claude Code's plugin: where `init` puts it, and what its events are answered. The real program: tests/real_hosts."""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from readcache import ReadcacheError, Sessions
from readcache.core.sync.recall import UNANSWERED
from readcache.hosts.claude_code.adapter import HOST, claude_hook
from readcache.hosts.claude_code.settings import changes, in_force
from readcache.hosts.host import Entry, InstallTarget, OwnFile
from readcache.hosts.settings_files.switch import Switch

TEXT = "".join(f"line number {number} of the file\n" for number in range(60)).rstrip("\n")
NUMBERED = "\n".join(f"{number}\t{line}" for number, line in enumerate(TEXT.split("\n"), 1))
SENT = {"timestamp": "2026-11-25T20:00:00.500Z"}
REQUEST = {"type": "api-request", "id": "r", "params": {}, "keep": 0, "tail": [], **SENT}
REQUESTED = datetime(2026, 11, 25, 20, 0, 0, 400_000, tzinfo=timezone.utc).timestamp()


def target_of(tmp_path: Path, version: str = "2.1.330 (Claude Code)", *, is_user: bool = True) -> InstallTarget:
    """A place for a user who has this version of Claude Code."""
    for name in ("home", "p", "bin"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    program = tmp_path / "bin/claude"
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    target = InstallTarget(str(tmp_path / "p"), str(tmp_path / "home"), is_user, ("readcache",), "on", "default")
    return target._replace(environment={"PATH": f"{tmp_path / 'bin'}{os.pathsep}/bin"})


@pytest.fixture(autouse=True)
def _short_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/tmp/s")


def ways(target: InstallTarget) -> list[Entry | OwnFile]:
    """The changes that switch it on, without the permission for `readcache recall`, which both ways need."""
    *made, permission = changes(target)
    assert isinstance(permission, Entry)
    assert permission.keys == ("permissions", "allow", "+")
    assert permission.value == "Bash(readcache recall:*)"
    return made


def test_a_new_enough_version_gets_the_plugin_and_an_old_one_hooks(tmp_path: Path) -> None:
    made = ways(target_of(tmp_path / "new"))
    assert all(isinstance(change, OwnFile) for change in made)
    texts = [change.text for change in made if isinstance(change, OwnFile)]
    assert '"program": ["readcache"], "words": ["claude-code"]' in texts[2]
    assert all(isinstance(change, Entry) for change in ways(target_of(tmp_path / "old", "2.1.299 (Claude Code)")))
    assert all(isinstance(change, Entry) for change in ways(target_of(tmp_path / "odd", "unknown")))


def test_a_project_gets_the_plugin_once_claude_code_trusts_it(tmp_path: Path) -> None:
    target = target_of(tmp_path, is_user=False)
    assert all(isinstance(change, Entry) for change in ways(target))
    trusted = {"projects": {target.root: {"hasTrustDialogAccepted": True}}}
    (tmp_path / "home/.claude.json").write_text(json.dumps(trusted))
    assert all(isinstance(change, OwnFile) for change in ways(target))


def test_claude_code_may_have_its_files_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()

    def moved(target: InstallTarget) -> InstallTarget:
        return target._replace(environment={**target.environment, "CLAUDE_CONFIG_DIR": str(tmp_path / "mine")})

    for version, file in (("2.1.330", "skills/readcache/hooks/register.js"), ("2.1.299", "settings.json")):
        made = {change.path for change in changes(moved(target_of(tmp_path / version, version)))}
        assert str(tmp_path / "mine" / file) in made
    project = moved(target_of(tmp_path, is_user=False))
    trusted = {"projects": {project.root: {"hasTrustDialogAccepted": True}}}
    (tmp_path / "mine/.claude.json").write_text(json.dumps(trusted))
    assert all(isinstance(change, OwnFile) for change in ways(project))


def test_a_socket_that_a_plugin_cannot_reach_means_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/tmp/" + "long/" * 20)
    assert all(isinstance(change, Entry) for change in ways(target_of(tmp_path)))


def switch(target: InstallTarget) -> Switch:
    """It, and where is remembered what it did."""
    return Switch(HOST, target, str(Path(target.home).parent / "memory"))


def switch_on(target: InstallTarget) -> None:
    """As `init` does."""
    done = switch(target)
    done.write(done.plan_on())


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("versions", [("2.1.299", "2.1.300"), ("2.1.300", "2.1.299"), ("2.1.300", "2.1.300")])
def test_one_way_takes_the_other_away_and_uninit_leaves_nothing(
    tmp_path: Path, versions: tuple[str, str], edited: bool
) -> None:
    from readcache.hosts.claude_code.settings import _version

    for version in versions:
        _version.cache_clear()
        target = target_of(tmp_path, version)
        switch_on(target)
        files = [path for path in Path(target.home).rglob("*") if path.is_file()]
        assert len(files) == (4 if version == "2.1.300" else 1)
        assert switch(target).is_on()
        for file in files if edited and version == "2.1.300" else ():
            file.write_text(file.read_text() + " ")
    off = switch(target)
    off.write(off.plan_off())
    assert list(Path(target.home).iterdir()) == []


def test_doctor_tells_what_is_in_force(tmp_path: Path) -> None:
    target = target_of(tmp_path)
    switch_on(target)
    assert in_force(target) == "Claude Code loads the plugin"
    project = target_of(tmp_path, is_user=False)
    switch_on(project)
    with pytest.raises(ReadcacheError, match="are both in force"):
        in_force(target)
    settings = Path(target.home, ".claude/settings.json")
    settings.write_text('{"enabledPlugins": {"readcache@skills-dir": false}}')
    with pytest.raises(ReadcacheError, match="remove readcache@skills-dir"):
        in_force(target)


class Plugin:
    """Its events in one conversation, and a transcript."""

    def __init__(self, tmp_path: Path) -> None:
        self.root, self.transcript = tmp_path, tmp_path / "t.jsonl"
        self.sessions = Sessions(tmp_path, local=True)
        self.count = 0
        (tmp_path / "f").write_text(TEXT + "\n")
        self.record(REQUEST)

    def record(self, entry: dict[str, Any]) -> None:
        """In the transcript."""
        with self.transcript.open("a") as file:
            file.write("\n" + json.dumps(entry, separators=(",", ":")) + "\n")

    def tell(self, name: str, **more: Any) -> Any:
        """The answer to an event."""
        known = {"session_id": "c", "transcript_path": str(self.transcript), "since": 1000 * REQUESTED}
        return claude_hook({"hook_event_name": name, **known, **more}, self.sessions)

    def result(self, tool: str, given: dict[str, object], text: str, **more: object) -> Any:
        """The answer to the result of a call."""
        self.count += 1
        call = {"tool_use_id": f"call_{self.count}", "tool_name": tool, "tool_input": given, "text": text}
        return self.tell("ToolResult", **call, **{"cwd": str(self.root), "is_error": False, **more})

    def bash(self, command: str, text: str = TEXT, **more: object) -> Any:
        """The answer to the result of a command."""
        return self.result("Bash", {"command": command}, text, **more)


def test_a_second_result_is_shortened_and_names_the_texts_that_it_needs(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    assert plugin.bash("cat f") is None
    answer = plugin.bash("cat f")
    assert "FILE_UNCHANGED" in answer["text"]
    assert answer["sources"] == [("call_1", TEXT)]
    assert plugin.bash("cat f") is None, "who insists is shown it"


def test_a_failed_command_keeps_its_status(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f")
    answer = plugin.bash("cat f; exit 3", f"Exit code 3\n{TEXT}", is_error=True)
    assert answer["text"].startswith("Exit code 3\n[")
    assert plugin.bash("cat f; exit 3", TEXT + "\nTimed out", is_error=True) is None


def test_what_the_model_was_shown_instead_is_what_counts(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f")
    instead = [{"tool_use_id": "call_1", "text": "redacted"}, {"tool_use_id": "unknown", "text": ""}]
    assert plugin.bash("cat f", settled=instead) is None


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "system", "subtype": "microcompact_boundary"},
        {"type": "tool_results_cut", "callIds": ["call_1"]},
        {**REQUEST, "params": {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}},
    ],
)
def test_where_results_may_have_been_cleared_everything_is_shown(tmp_path: Path, entry: dict[str, Any]) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f")
    plugin.record(entry)
    assert plugin.bash("cat f") is None


def test_without_a_transcript_everything_is_shown(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.transcript.unlink()
    plugin.bash("cat f")
    assert plugin.bash("cat f") is None


def test_a_request_that_is_not_known_yet_may_let_the_server_clear_results(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f")
    assert plugin.bash("cat f", since=1000 * REQUESTED + 200) is None


@pytest.mark.parametrize("text", ["<persisted-output>\n", "Command running in background with ID: b\n"])
def test_what_the_model_does_not_read_whole_is_no_source(tmp_path: Path, text: str) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f", text + TEXT)
    assert plugin.bash("cat f") is None


def test_a_command_that_moves_is_judged_where_it_is_known_to_have_begun(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/f").write_text(TEXT + "\n")
    plugin.bash("cat src/f")
    assert plugin.bash("cd src; cat f", cwd=str(tmp_path / "src")) is None
    answer = plugin.bash("cd src; cat f", cwd=str(tmp_path / "src"), began=str(tmp_path))
    assert answer["text"].startswith("[FILE_UNCHANGED")


def test_claude_codes_own_last_line_is_kept(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f")
    moved = f"\nShell cwd was reset to {tmp_path}"
    answer = plugin.bash("cd .; cat f", TEXT + moved, began=str(tmp_path))
    assert answer["text"].startswith("[UNCHANGED")
    assert answer["text"].endswith(moved)


@pytest.mark.parametrize(("command", "is_said"), [("make", True), ("diff f g", False)])
def test_of_a_command_that_may_have_said_no_there_is_no_status(tmp_path: Path, command: str, is_said: bool) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash(command)
    assert ("exit 0" in plugin.bash(command)["text"]) is is_said


def test_lines_have_their_numbers_where_blank_ones_were_taken_away(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    (tmp_path / "f").write_text(f"\n\n{TEXT}\n")
    plugin.bash("sed -n 2,41p f", "\n".join(TEXT.split("\n")[:39]))
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(["", "", *TEXT.split("\n")], 1))
    lines = plugin.result("Read", {"file_path": str(tmp_path / "f")}, numbered)["text"].split("\n")
    assert "lines 3-41" in lines[2]
    assert lines[3].startswith("42\tline")


def test_the_middle_of_a_read_is_left_out(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("sed -n 11,40p f", "\n".join(TEXT.split("\n")[10:40]))
    lines = plugin.result("Read", {"file_path": str(tmp_path / "f")}, NUMBERED)["text"].split("\n")
    assert lines[9].startswith("10\tline")
    assert "lines 11-40" in lines[10]
    assert lines[11].startswith("41\tline")


@pytest.mark.parametrize(
    ("given", "word"), [({}, "FILE_UNCHANGED"), ({"limit": 60}, "UNCHANGED"), ({"limit": 80}, "FILE")]
)
def test_a_read_is_whole_if_it_was_not_stopped_by_its_limit(tmp_path: Path, given: dict[str, int], word: str) -> None:
    plugin = Plugin(tmp_path)
    plugin.result("Read", {"file_path": str(tmp_path / "f")}, NUMBERED)
    shown = plugin.result("Read", {"file_path": str(tmp_path / "f"), **given}, NUMBERED)["text"]
    assert shown.startswith(f"[{word}")


def test_a_fork_has_what_its_parent_saw_and_a_fresh_agent_nothing(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f")
    plugin.tell("Forked", agent_id="fork")
    assert plugin.bash("cat f", agent_id="fork")["sources"] == [("call_1", TEXT)]
    assert plugin.bash("cat f", agent_id="fresh") is None


def test_after_a_compaction_it_gets_a_section_which_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    plugin = Plugin(tmp_path)
    plugin.bash("ls; cat f", "f\n" + TEXT)
    section = plugin.tell("Compacted", kept=[])["text"]
    assert TEXT in section
    answer = plugin.bash("cat f")
    assert answer["sources"] == [("", section)]


def test_a_call_that_a_hook_has_answered_is_left_alone(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f")
    plugin.sessions.get("c").observe("cat f", TEXT, call_id="call_2", cwd=str(tmp_path))
    assert plugin.bash("cat f") is None


def test_a_marker_needs_only_the_lines_that_it_stands_for(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.result("Read", {"file_path": str(tmp_path / "f")}, NUMBERED + "\n61\t")
    answer = plugin.bash("sed -n 11,40p f", "\n".join(TEXT.split("\n")[10:40]))
    assert answer["sources"] == [("call_1", "\n".join(NUMBERED.split("\n")[10:40]))]


def test_lines_that_two_calls_showed_are_needed_of_each(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    lines = TEXT.split("\n")
    plugin.bash("head -n 30 f", "\n".join(lines[:30]))
    plugin.bash("tail -n 40 f", "\n".join(lines[20:]))
    answer = plugin.bash("cat f")
    needed = [text for _, text in answer["sources"]]
    assert {name for name, _ in answer["sources"]} == {"call_1", "call_2"}
    assert all(text in TEXT for text in needed)
    assert {line for text in needed for line in text.split("\n")} == set(lines)


def test_a_result_that_the_plugin_could_not_ask_about_is_a_source_for_later_ones(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    known = {"session_id": "c", "transcript_path": str(plugin.transcript), "since": 0, "cwd": str(tmp_path)}
    call = {"tool_use_id": "early", "tool_name": "Bash", "tool_input": {"command": "cat f"}, "is_error": False}
    answer = plugin.bash("sed -n 11,60p f", "\n".join(TEXT.split("\n")[10:]), missed=[{**known, **call, "text": TEXT}])
    assert [name for name, _ in answer["sources"]] == ["early"]


def test_an_error_in_the_plugin_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from readcache.process import failures

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Plugin(tmp_path).tell("Told", errors=[["HooksError: not that", 3]])
    (noted,) = failures.noted()
    assert noted.endswith("claude-code plugin: HooksError: not that (3 times)")


def test_a_version_that_lists_no_requests_only_advises(tmp_path: Path) -> None:
    old, new = (
        target_of(tmp_path / "old", "2.1.299 (Claude Code)"),
        target_of(tmp_path / "new", "2.1.300 (Claude Code)"),
    )
    why = "Claude Code 2.1.299 is too old for omitting: it only advises; update Claude Code"
    assert (HOST.only_advises(old), HOST.only_advises(new)) == (why, None)
    with pytest.raises(ReadcacheError, match="is too old for omitting"):
        in_force(old)
    assert why in in_force(old._replace(mode="advise"))


NOTHING: dict[str, Any] = {"settled": [], "missed": [], "errors": []}  # what the plugin of this version has to tell


def counted(plugin: Plugin) -> tuple[int, int]:
    """(results that count as shortened, tokens that count as saved), and every event reads the same from the store."""
    stats = plugin.sessions.get("c").stats()
    return stats.get("covered", 0), stats.get("tokens_saved", 0)


def test_a_marker_counts_once_the_plugin_says_that_it_was_sent(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f", **NOTHING)
    assert plugin.bash("cat f", **NOTHING)["text"].startswith("[FILE_UNCHANGED")
    assert counted(plugin) == (0, 0)
    plugin.tell("Told", **{**NOTHING, "settled": [{"tool_use_id": "call_2"}]})
    assert counted(plugin)[0] == 1
    assert counted(plugin)[1] > 0


def test_a_marker_that_came_too_late_counts_as_shown_and_is_a_source_later(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    lines = TEXT.split("\n")
    plugin.bash("head -n 40 f", "\n".join(lines[:40]), **NOTHING)
    plugin.bash("head -n 39 f", "\n".join(lines[:39]), **NOTHING)
    late = [{"tool_use_id": "call_2", "text": "\n".join(lines[:39])}]
    answer = plugin.bash("head -n 38 f", "\n".join(lines[:38]), **{**NOTHING, "settled": late})
    assert answer["text"].startswith("[UNCHANGED")
    assert counted(plugin) == (0, 0)
    assert plugin.sessions.get("c").stats()["not_sent"] == 1


def test_a_call_whose_source_is_not_proven_is_one_row(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f", **NOTHING)
    plugin.record({"type": "system", "subtype": "microcompact_boundary"})
    assert plugin.bash("cat f", **NOTHING) is None
    stats = plugin.sessions.get("c").stats()
    assert (stats["calls"], stats["not_proven"], stats.get("insisted")) == (2, 1, None)


def test_results_that_nobody_judged_are_counted(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.tell("Told", **NOTHING, lost=[["the server was late", 3]])
    assert plugin.sessions.get("c").stats()["missed"] == 3


@pytest.mark.parametrize("event", ["Forked", "Begin", "Compacted"])
def test_whatever_event_comes_next_tells_what_was_shown(tmp_path: Path, event: str) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f", **NOTHING)
    plugin.bash("cat f", **NOTHING)
    told = {**NOTHING, "settled": [{"session_id": "c", "tool_use_id": "call_2"}]}
    plugin.tell(event, agent_id="fork" if event == "Forked" else None, kept=["call_1", "call_2"], **told)
    assert counted(plugin)[0] == 1


def test_what_was_shown_is_told_of_the_conversation_in_which_it_was(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("cat f", **NOTHING)
    plugin.bash("cat f", **NOTHING)
    told = {**NOTHING, "settled": [{"session_id": "c", "tool_use_id": "call_2"}]}
    claude_hook({"hook_event_name": "Told", "session_id": "after /clear", **told}, plugin.sessions)
    assert counted(plugin)[0] == 1


@pytest.mark.parametrize("text", [NUMBERED, NUMBERED + "\n61\t"], ids=["no newline at the end", "a newline"])
def test_the_number_behind_the_last_newline_is_no_line_of_the_file(tmp_path: Path, text: str) -> None:
    plugin = Plugin(tmp_path)
    plugin.result("Read", {"file_path": str(tmp_path / "f")}, text)
    shown = plugin.result("Read", {"file_path": str(tmp_path / "f")}, text)["text"]
    assert shown.startswith("[FILE_UNCHANGED")
    assert " lines 1-60, above in the read" in shown


@pytest.mark.parametrize("is_error", [False, True])
def test_a_recall_is_answered_whatever_the_process_printed(tmp_path: Path, is_error: bool) -> None:
    plugin = Plugin(tmp_path)
    plugin.bash("make test")
    tag = plugin.sessions.get("c").tag
    printed = "Exit code 127\nbash: readcache: command not found" if is_error else UNANSWERED.rstrip()
    answer = plugin.bash(f"readcache recall {tag}.1", printed, is_error=is_error)
    assert answer == {"text": TEXT, "sources": [], "recalled": True}
    answer = plugin.bash("readcache recall 0000.1", printed, is_error=is_error)
    assert answer["text"].startswith("readcache: no call 0000.1")
    assert plugin.bash("cat readcache recall", "no", is_error=True) is None
