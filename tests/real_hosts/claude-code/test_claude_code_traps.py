"""What goes wrong with Claude Code unless its adapter takes care; with the real program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from readcache.testing.hosts import Bash, Compact, Delegate, Edit, Read
from readcache.testing.requests import markers
from tests.real_hosts.claude_cli import Talk, conversation, environment, program
from tests.real_hosts.fired import check_fire
from tests.real_hosts.measured import Run, compare
from tests.real_hosts.messages_api import result_chars, seen_in, text_in

CAT, HEAD = Bash("cat shop.py"), Bash("sed -n '1,40p' shop.py")
both_ways = pytest.mark.parametrize("way", ["--project", "--user"], ids=["hooks", "plugin"])


def python_hook(path: Path, source: str) -> dict[str, object]:
    """A hook of the user's own: `event` is what it is told."""
    path.write_text("import json, sys\nevent = json.load(sys.stdin)\n" + source)
    return {"type": "command", "command": f"{sys.executable} {path}"}


def test_the_numbers_after_a_marker_are_those_of_the_lines(tmp_path: Path) -> None:
    with conversation(tmp_path / "p") as chat:
        chat.step(Read("shop.py", 11, 40))
        (shown,) = chat.step(Read("shop.py", 21, 60))
    lines = shown.split("\n")
    assert lines[0].startswith("40\t[")
    assert markers(lines[0])
    assert lines[1].startswith("41\tdef item_41(")


@both_ways
def test_an_edit_goes_through_after_a_marker_and_a_resumption(tmp_path: Path, way: str) -> None:
    with conversation(tmp_path / "p", way=way) as chat:
        chat.step(CAT)
        (shown,) = chat.step(Read("shop.py"))
        assert markers(shown)
        chat.talk.again()
        (edited,) = chat.step(Edit("shop.py", "number 9 of", "number nine of"))
        assert shown in text_in(chat.model.requests[-1]), "what was shown stays"
        (again,) = chat.step(CAT)
    assert "updated successfully" in edited
    assert "number nine of" in again
    assert "number nine of" in (tmp_path / "p/shop.py").read_text()


def test_a_marker_may_name_what_was_shown_before_a_resumption(tmp_path: Path) -> None:
    with conversation(tmp_path / "p") as chat:
        chat.step(CAT)
        chat.step(Bash("ls"))
        chat.talk.again()
        (shown,) = chat.step(HEAD)
    assert markers(shown)


@both_ways
def test_a_forked_conversation_begins_with_what_its_source_was_shown(tmp_path: Path, way: str) -> None:
    with conversation(tmp_path / "p", way=way) as chat:
        chat.step(Bash("ls"))
        chat.step(CAT)
        source = chat.talk.session
        chat.talk.again("--fork-session")
        (shown,) = chat.step(HEAD)
        assert chat.talk.session != source
        chat.talk.session = source
        chat.talk.go_back(1, "--fork-session")
        (before,) = chat.step(HEAD)
    assert markers(shown)
    assert not markers(before), "this fork was made before its source read the file"


def make_files(root: Path) -> None:
    """Eight files, older than `shop.py`. Claude Code puts back the newest five of those that were read alone."""
    for n in range(8):
        file = root / f"file_{n}.py"
        file.write_text("".join(f"value_{n}_{k} = {n * k}  # of file {n}\n" for k in range(30)))
        os.utime(file, (1_700_000_000 + n, 1_700_000_000 + n))


def section_in(body: dict[str, object]) -> str:
    """What readcache put back, in a request that has it once."""
    found = re.findall(
        r"(?s)hook additional context: (## Files restored after compaction\n.*?)\n</system", text_in(body)
    )
    assert len(found) == 1
    return str(found[0])


@pytest.mark.parametrize("way", ["manual", "auto"])
def test_what_claude_code_does_not_put_back_itself_is_put_back_and_is_a_source(tmp_path: Path, way: str) -> None:
    with conversation(tmp_path / "p", more={"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}) as chat:
        make_files(chat.root)
        chat.step(CAT)
        for n in range(8):
            chat.step(Bash(f"cat file_{n}.py") if n % 2 else Read(f"file_{n}.py"))
        if way == "manual":
            chat.talk.say("/compact")
        else:
            chat.model.prompt = 178_000
            chat.step(Bash("ls"))
            chat.model.prompt = 1000
        (shown,) = chat.step(Bash("cat file_1.py"))
        body = chat.model.requests[-1]
        section = section_in(body)
        for n in range(8):
            text = (chat.root / f"file_{n}.py").read_text()
            is_ours = n < 4
            assert (text in section) is is_ours
            assert text_in(body).count(f"value_{n}_7 = ") == 1, "nothing stands twice"
        assert 'file_1.py lines 1-30, in the section "Files restored after compaction"' in shown
        chat.talk.again()
        (shown,) = chat.step(Read("file_2.py"))
        assert section_in(chat.model.requests[-1]) == section
        assert 'file_2.py lines 1-30, in the section "Files restored after compaction"' in shown
        (shown,) = chat.step(Read("file_6.py"))
        assert "file_6.py lines 1-30, above in the read" in shown


@pytest.mark.parametrize("by", ["the agent", "another program"])
def test_lines_of_several_files_are_put_back_as_they_are_on_disk(tmp_path: Path, by: str) -> None:
    old, new = "number 33 of the shop", "NUMBER 33 of the shop"
    with conversation(tmp_path / "p") as chat:
        make_files(chat.root)
        chat.step(Bash("cat file_1.py shop.py"))
        chat.step(Bash("cat shop.py nosuch.py"))
        shop = chat.root / "shop.py"
        if by == "the agent":
            chat.step(Bash(f"sed -i 's/{old}/{new}/' shop.py"))
        else:
            shop.write_text(shop.read_text().replace(old, new))
        chat.talk.say("/compact")
        chat.step(Bash("true"))
        section = section_in(chat.model.requests[-1])
        assert shop.read_text() in section
        assert (chat.root / "file_1.py").read_text() in section
        assert (section.count(old), section.count(new)) == (0, 1)


def test_a_section_of_no_tokens_puts_nothing_back(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", init="--restore 0") as chat:
        chat.step(Bash("ls; cat shop.py"))
        chat.talk.say("/compact")
        (shown,) = chat.step(CAT)
    assert "restored after" not in text_in(chat.model.requests[-1])
    assert not markers(shown)


def test_a_conversation_that_was_cleared_is_another_one(tmp_path: Path) -> None:
    with conversation(tmp_path / "p") as chat:
        chat.step(CAT)
        chat.talk.say("/clear")
        assert not markers(chat.step(CAT)[0])
        assert markers(chat.step(HEAD)[0])


def test_what_claude_code_restored_is_a_source_and_is_not_put_back_twice(tmp_path: Path) -> None:
    with conversation(tmp_path / "p") as chat:
        chat.step(Read("shop.py"))
        after = chat.seen(Compact())
        (shown,) = chat.step(CAT)
    assert "\n".join(after.texts).count("number 33 of the shop") == 1, "Claude Code restores it; nobody else does"
    assert markers(shown), "and that is a source"


@both_ways
def test_a_command_that_changes_the_directory_is_of_the_one_it_began_in(tmp_path: Path, way: str) -> None:
    with conversation(tmp_path / "p", way=way) as chat:
        (chat.root / "src").mkdir()
        (chat.root / "src/shop.py").write_text((chat.root / "shop.py").read_text().replace("shop", "other shop"))
        chat.step(Bash("cd src && cat shop.py"))
        (again,) = chat.step(Bash("cat shop.py"))
        (other,) = chat.step(Bash("cd .. && cat shop.py"))
    assert markers(again)
    assert not markers(other)
    assert "number 7 of the shop" in other


def test_lines_have_their_numbers_where_claude_code_takes_blank_ones_away(tmp_path: Path) -> None:
    with conversation(tmp_path / "p") as chat:
        text = "\n\n\n" + (chat.root / "shop.py").read_text()
        (chat.root / "blank.py").write_text(text)
        chat.step(Bash("sed -n 2,30p blank.py"))
        (shown,) = chat.step(Bash("sed -n 2,30p blank.py"))
    assert [found for found in markers(shown) if "blank.py lines 4-30" in found]


def test_what_another_hook_changed_is_not_taken_for_shown(tmp_path: Path) -> None:
    redact = """
if event["tool_input"].get("command") == "cat shop.py":
    result = {**event["tool_response"], "stdout": event["tool_response"]["stdout"].replace("number", "XXX")}
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": result}}))
"""
    note = f"open({str(tmp_path / 'told')!r}, 'a').write('x')"
    hooks = [python_hook(tmp_path / "redact.py", redact), python_hook(tmp_path / "note.py", note)]
    with conversation(tmp_path / "p", hooks=hooks) as chat:
        (redacted,) = chat.step(CAT)
        (shown,) = chat.step(HEAD)
    assert "XXX 7 of" in redacted
    assert "number 7 of" in shown
    assert not markers(shown)
    assert (tmp_path / "told").read_text() == "xx"


def test_a_hook_that_fails_leaves_the_result_and_the_model_is_not_told(tmp_path: Path) -> None:
    with conversation(tmp_path / "p") as chat:
        settings = chat.root / ".claude/settings.json"
        assert "readcache hook" in settings.read_text()
        settings.write_text(settings.read_text().replace("readcache hook", "no-such-program hook"))
        chat.talk.close()
        chat.talk = Talk(chat.root, chat.talk.env["ANTHROPIC_BASE_URL"])
        chat.step(CAT)
        (shown,) = chat.step(CAT)
        sent = json.dumps(chat.model.requests[-1])
    assert shown.startswith("def item_1(")
    assert "no-such-program" not in sent
    assert "hook error" not in sent


LISTING = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    done = {"content": [{"type": "text", "text": "\\n".join(f"row {n} of the table" for n in range(90))}]}
    tools = {"tools": [{"name": "rows", "inputSchema": {"type": "object"}}]}
    made = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    results = {"initialize": made, "tools/list": tools, "tools/call": done}
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}
    print(json.dumps(answer), flush=True)
"""


def test_a_tool_of_another_server_is_answered_too(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(LISTING)
    with conversation(tmp_path / "p") as chat:
        path = chat.root / ".mcp.json"
        servers = json.loads(path.read_text()) if path.exists() else {"mcpServers": {}}
        servers["mcpServers"]["table"] = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
        path.write_text(json.dumps(servers))
        chat.talk.close()
        chat.talk._start()
        call = {"type": "tool_use", "name": "mcp__table__rows", "input": {}}
        results: list[str] = []
        for name in ("toolu_a", "toolu_b", "toolu_c"):
            chat.model.blocks([{**call, "id": name}])
            chat.talk.say("go on")
            results += seen_in(chat.model.requests[-1], [name]).results
        sent = json.dumps(chat.model.requests[-1])
    assert "row 89 of the table" in results[0]
    assert markers(results[1])
    assert "row 89 of the table" in results[2]
    assert "hook error" not in sent


@both_ways
def test_without_a_transcript_everything_is_shown(tmp_path: Path, way: str) -> None:
    with conversation(tmp_path / "p", way=way) as chat:
        chat.talk.close()
        chat.talk._start("--no-session-persistence")
        chat.step(CAT)
        (shown,) = chat.step(CAT)
    assert not markers(shown)


def test_a_failing_command_may_have_written(tmp_path: Path) -> None:
    with conversation(tmp_path / "p") as chat:
        chat.step(CAT)
        chat.step(Bash("sed -i 's/number 7 /number seven /' shop.py; exit 3"))
        (shown,) = chat.step(CAT)
    assert "number seven of" in shown


def test_of_a_background_command_only_what_the_model_was_shown_is_a_source(tmp_path: Path) -> None:
    """From some version on, it is shown the last 2 KB of what was printed so far."""
    with conversation(tmp_path / "p") as chat:
        (before,) = chat.step(Bash("cat shop.py; sleep 20", timeout=1))
        (shown,) = chat.step(CAT)
    lines = (tmp_path / "p/shop.py").read_text().splitlines()
    assert all(line in before or line in shown for line in lines)
    assert "UNCHANGED" not in shown, "its lines have no numbers there"


@both_ways
@pytest.mark.parametrize("init", ["--advise", "--off"])
def test_it_can_be_told_to_leave_nothing_out(tmp_path: Path, init: str, way: str) -> None:
    with conversation(tmp_path / "p", init=init, way=way) as chat:
        chat.step(CAT)
        (shown,) = chat.step(CAT)
    assert not markers(shown)


def test_it_is_switched_off_by_one_line(tmp_path: Path) -> None:
    with conversation(tmp_path / "p") as chat:
        command = [sys.executable, "-m", "readcache", "uninit", "claude-code", "--project"]
        subprocess.run(command, cwd=chat.root, env=environment(chat.root), check=True, capture_output=True)
        chat.talk.close()
        chat.talk = Talk(chat.root, chat.talk.env["ANTHROPIC_BASE_URL"])
        chat.step(CAT)
        (shown,) = chat.step(CAT)
    assert not markers(shown)


@pytest.mark.parametrize(("name", "way"), [("claude-code", "--user"), ("claude-code-hooks", "--project")])
def test_what_it_saves_is_measured(tmp_path: Path, name: str, way: str) -> None:
    steps: list[tuple[Bash | Read | Edit | Delegate, ...]] = [
        (CAT,),
        (Read("shop.py"),),
        (Bash("grep -n 'number 3' shop.py"), Bash("ls")),
        (HEAD,),
        (Edit("shop.py", "number 9 of", "number nine of"),),
        (CAT,),
        (Read("shop.py", 20, 60),),
        (Bash("sed -n '100,200p' long.txt"),),
        (Bash("sed -n '150,260p' long.txt"),),
        (Delegate((CAT, HEAD)),),
        (Bash("head -50 shop.py"),),
    ]

    def run_steps(root: Path, on: bool) -> Run:
        with conversation(root, on=on, way=way) as chat:
            chat.seen((Bash("true"),))  # Claude Code and the server have started
            chat.model.delay, began = 0.25, time.monotonic() - chat.model.waited
            for step in steps:
                chat.seen(step)
            seconds = time.monotonic() - began - chat.model.waited
            bodies = [*chat.model.requests, *(body for inner in chat.model.inner.values() for body in inner)]
        return Run(sum(map(result_chars, bodies)), seconds, sum(map(len, steps)) + 2)

    version = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout.split()[0]
    compare(name, {"claude-code": version}, run_steps, tmp_path)


def test_doctor_proves_with_a_scripted_model_that_its_copy_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(program()).parent}{os.pathsep}{os.environ['PATH']}")
    check_fire("claude-code")
    check_fire("claude-code", is_user=False)  # a project that it does not trust, so by hooks
