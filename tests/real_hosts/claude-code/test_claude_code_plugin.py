"""readcache as a plugin inside the real Claude Code: what hooks cannot do, and what may be missing around it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from readcache.core.judging.marker import name_in
from readcache.testing.hosts import Bash, Compact, Read
from readcache.testing.requests import markers
from tests.real_hosts.claude_cli import Chat, Talk, conversation, environment, program, switch_on
from tests.real_hosts.messages_api import seen_in, text_in

CAT, HEAD = Bash("cat shop.py"), Bash("sed -n '1,40p' shop.py")


def readcache(root: Path, *words: str) -> str:
    """What the command line prints."""
    command = [sys.executable, "-m", "readcache", *words]
    ran = subprocess.run(command, cwd=root, env=environment(root), check=False, capture_output=True, text=True)
    return ran.stdout + ran.stderr


def server(chat: Chat) -> int:
    """The process that answers."""
    found = re.search(r"server +process (\d+)", readcache(chat.root, "doctor"))
    assert found
    return int(found[1])


def test_the_middle_of_a_read_is_left_out_and_the_rest_has_its_numbers(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        chat.step(Read("shop.py", 11, 40))
        (shown,) = chat.step(Read("shop.py", 1, 60))
    lines = shown.split("\n")
    assert lines[9].startswith("10\tdef item_10(")
    assert markers(lines[10])
    assert lines[11].startswith("41\tdef item_41(")


@pytest.mark.parametrize("command", ["grep -n number shop.py", "cat -n shop.py"])
def test_a_numbered_line_counts_as_seen_with_the_preset_max(tmp_path: Path, command: str) -> None:
    with conversation(tmp_path / "p", way="--user", init="--policy max") as chat:
        chat.step(CAT)
        (shown,) = chat.step(Bash(command))
    assert markers(shown)


def test_every_way_to_read_again_is_shortened(tmp_path: Path) -> None:
    """Claude Code trims a result's end, and puts a reminder behind it."""
    with conversation(tmp_path / "p", way="--user") as chat:
        (chat.root / "other.py").write_text((chat.root / "shop.py").read_text().replace("shop", "other"))
        chat.step(Read("shop.py"))
        again: list[Bash | Read] = [Read("shop.py", 1, 60), Read("shop.py", 5, 50), Bash("sed -n '1,40p' shop.py")]
        shown = [text for call in again for text in chat.step(call)]
        chat.step(Bash("cat other.py"))
        others: list[Bash | Read] = [Read("other.py"), Bash("head -n 45 other.py")]
        shown += [text for call in others for text in chat.step(call)]
    assert [bool(markers(text)) for text in shown] == [True] * 5


def module_of(chat: Chat) -> Path:
    """The plugin's code, as `init` wrote it."""
    return Path(chat.talk.env["HOME"]) / ".claude/skills/readcache/hooks/register.js"


def edited_module(chat: Chat, before: str, after: str) -> None:
    """Start Claude Code anew, without a server, and with a plugin in which a text is another one."""
    chat.talk.close()
    readcache(chat.root, "serve", "--stop")
    text = module_of(chat).read_text()
    assert before in text
    module_of(chat).write_text(text.replace(before, after))
    chat.talk = Talk(chat.root, chat.talk.env["ANTHROPIC_BASE_URL"], chat.talk.env)


def test_what_was_shown_before_the_server_ran_is_a_source(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        slow = tmp_path / "slow"
        slow.write_text('#!/bin/sh\nwhile [ ! -e "$HOME/go" ]; do sleep 0.1; done\nexec "$@"\n')
        slow.chmod(0o755)
        edited_module(chat, '"program": [', f'"program": ["{slow}", ')
        chat.talk.is_new = False
        chat.step(CAT)
        (whole,) = chat.step(HEAD)
        assert not markers(whole), "no server runs"
        (Path(chat.talk.env["HOME"]) / "go").touch()
        chat.model.delay = 0.25
        for _ in range(60):
            if "not running" not in readcache(chat.root, "doctor"):
                break
            chat.step(Bash("true"))  # starts one if the first try has ended
        asked = (Read("shop.py", 1, last) for last in range(60, 20, -1))  # until the plugin has heard of its server
        assert any('above in "cat shop.py"' in text for call in asked for text in chat.step(call))


@pytest.mark.parametrize("patience", [0, 5, 500])
def test_no_more_is_counted_than_the_model_was_sent(tmp_path: Path, patience: int) -> None:
    """Answers that come too late, and the last call of a process."""
    with conversation(tmp_path / "p", way="--user") as chat:
        edited_module(chat, "const PATIENCE = 500 ", f"const PATIENCE = {patience} ")
        lines = (chat.root / "shop.py").read_text().splitlines()
        calls: list[Bash | Read] = [
            CAT,
            HEAD,
            Read("shop.py", 1, 39),
            Bash("head -n 38 shop.py"),
            Read("shop.py", 2, 50),
        ]
        shown = [chat.host.normal(text) for call in calls for text in chat.step(call)]
        chat.talk.close()
        found = json.loads(readcache(chat.root, "gain", "--json"))["windows"]["all"]
        told = readcache(chat.root, "verify")
    numbered = [f"{number}\t{line}" for number, line in enumerate(lines, 1)]
    real = map("\n".join, (lines, lines[:40], numbered[:39], lines[:38], numbered[1:50]))
    sent = [len(whole) - len(text) for whole, text in zip(real, shown, strict=True) if markers(text)]
    assert found["counters"]["calls"] + found["counters"].get("missed", 0) == len(calls)
    assert found["results_cut"] <= len(sent)
    assert found["chars_saved"] <= sum(sent)
    assert f"{found['results_cut']} omission" in told or not found["results_cut"]
    assert patience or not sent


def test_an_error_in_the_plugin_is_told_by_doctor(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        edited_module(chat, "$.session.messages({ last,", "$.session.messages({ lost: last,")
        chat.step(CAT)
        (shown,) = chat.step(CAT)
        told = readcache(chat.root, "doctor")
        stats = json.loads(readcache(chat.root, "gain", "--json"))["windows"]["all"]["counters"]
    assert not markers(shown)
    assert (stats["calls"], stats["missed"]) == (0, 2)
    assert re.search(r"broken +failures .*claude-code plugin: \w+: .*messages takes .*lost", told)


def test_a_failed_command_is_shortened_and_stays_failed(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        chat.step(CAT)
        (shown,) = chat.step(Bash("cat shop.py; exit 3"))
        content = [m["content"] for m in chat.model.requests[-1]["messages"] if isinstance(m["content"], list)]
        results = [block for blocks in content for block in blocks if block["type"] == "tool_result"]
    assert shown.startswith("Exit code 3\n[")
    assert markers(shown)
    assert results[-1]["is_error"] is True


def test_of_calls_made_at_once_none_names_another(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        chat.step(Bash("ls"))
        shown = chat.step(CAT, CAT)
        (later,) = chat.step(HEAD)
    assert not any(map(markers, shown))
    assert markers(later)


def test_a_model_that_answers_before_its_request_is_written_down_gets_markers(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        chat.step(CAT)
        chat.model.delay = 0
        shown = [text for last in range(40, 45) for text in chat.step(Bash(f"sed -n '1,{last}p' shop.py"))]
    assert all(map(markers, shown))


def test_of_many_calls_made_at_once_each_is_judged(tmp_path: Path) -> None:
    """More than stand in the newest rows of the conversation, and more than the server is asked about at once."""
    with conversation(tmp_path / "p", way="--user") as chat:
        parts = [Bash(f"sed -n '{line},{line + 2}p' shop.py") for line in range(1, 49, 2)]
        chat.step(*parts)
        (shown,) = chat.step(Bash("sed -n '1,48p' shop.py"))
        chat.talk.close()
        counters = json.loads(readcache(chat.root, "gain", "--json"))["windows"]["all"]["counters"]
        told = readcache(chat.root, "doctor")
    assert markers(shown)
    assert (counters["calls"], counters["missed"]) == (len(parts) + 1, 0)
    assert re.search(r"ok +failures +none", told)


def test_a_fork_is_not_shown_again_what_it_began_with(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        (chat.root / "new.py").write_text((chat.root / "shop.py").read_text().replace("shop", "new"))
        chat.step(CAT)
        other = Bash("cat other.py")
        (chat.root / "other.py").write_text((chat.root / "shop.py").read_text().replace("shop", "other"))
        calls = [other, CAT, Bash("cat new.py"), Bash("sed -n '1,40p' new.py")]
        sent, ids = chat.model.fork(calls, beside=[other])
        chat.talk.say("go on")
        until = time.monotonic() + 20
        while len(sent) < 5 and time.monotonic() < until:
            time.sleep(0.1)
        shown = seen_in(sent[4], ids).results
        assert (chat.root / "shop.py").read_text().rstrip() in text_in(sent[0]), "its own first request"
    assert [bool(markers(text)) for text in shown] == [False, True, False, True]
    assert "def item_60(" in shown[0], "its parent made that call at once with the fork"


def test_what_is_gone_from_the_conversation_is_shown(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        chat.step(Bash("ls"))
        chat.step(CAT)
        chat.talk.go_back(1)
        (shown,) = chat.step(CAT)
    assert not markers(shown)


def test_after_results_were_cut_everything_is_shown(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        chat.step(CAT)
        (path,) = (Path(chat.talk.env["HOME"]) / ".claude/projects").glob(f"*/{chat.talk.session}.jsonl")
        with path.open("a") as file:
            file.write('{"type":"system","subtype":"microcompact_boundary"}\n')
        (shown,) = chat.step(CAT)
    assert not markers(shown)


@pytest.mark.parametrize("way", ["manual", "auto"])
def test_what_claude_code_does_not_put_back_itself_is_put_back_and_is_a_source(tmp_path: Path, way: str) -> None:
    more = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}
    with conversation(tmp_path / "p", way="--user", more=more) as chat:
        for n in range(8):
            lines = "".join(f"value_{n}_{k} = {n * k}  # of file {n}\n" for k in range(90))
            (chat.root / f"file_{n}.py").write_text(lines)
            os.utime(chat.root / f"file_{n}.py", (1_700_000_000 + n, 1_700_000_000 + n))
        for n in range(8):
            chat.step(Bash(f"cat file_{n}.py") if n % 2 else Read(f"file_{n}.py"))
        if way == "manual":
            chat.seen(Compact())
        else:
            chat.model.prompt = 178_000
            chat.step(Bash("ls"))
            chat.model.prompt = 1000
        (shown,) = chat.step(Bash("cat file_1.py"))
        text = text_in(chat.model.requests[-1])
        assert text.count("## Files restored after compaction") == 1
        assert (chat.root / "file_1.py").read_text() in text
        assert 'file_1.py lines 1-90, in the section "Files restored after compaction"' in shown
        chat.talk.again()
        (shown,) = chat.step(Read("file_1.py", 1, 60))
    assert 'in the section "Files restored after compaction"' in shown


def test_a_server_that_is_gone_is_started_again(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        chat.step(CAT)
        os.kill(server(chat), signal.SIGKILL)
        (shown,) = chat.step(CAT)
        assert not markers(shown)
        time.sleep(2.5)
        chat.step(Bash("ls"))  # starts it
        time.sleep(2)
        chat.step(CAT)
        assert markers(chat.step(HEAD)[0])


def test_a_server_that_hangs_is_replaced_and_nothing_waits_for_it(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        chat.step(CAT)
        process = server(chat)
        os.kill(process, signal.SIGSTOP)
        began = time.monotonic()
        (shown,) = chat.step(CAT)
        chat.step(Bash("ls"))  # Claude Code waits for a request that is not answered, before the next prompt
        assert time.monotonic() - began < 10
        assert not markers(shown)
        time.sleep(4)
        chat.step(CAT)
        assert server(chat) != process
        assert markers(chat.step(HEAD)[0])


@pytest.mark.parametrize("lost", ["program", "state"])
def test_what_it_needs_may_be_missing(tmp_path: Path, lost: str) -> None:
    with conversation(tmp_path / "p", way="--user", on=False) as chat:
        switch_on(chat.root, "--user")
        if lost == "program":
            module = Path(chat.talk.env["HOME"]) / ".claude/skills/readcache/hooks/register.js"
            module.write_text(module.read_text().replace('"program": ["', '"program": ["/nowhere'))
        else:
            chat.talk.env["XDG_STATE_HOME"] = "/proc/nowhere"
        chat.talk.close()
        chat.talk = Talk(chat.root, chat.talk.env["ANTHROPIC_BASE_URL"], chat.talk.env)
        chat.step(CAT)
        (shown,) = chat.step(CAT)
        sent = text_in(chat.model.requests[-1])
    assert shown.startswith("def item_1(")
    assert "readcache" not in sent


def test_with_hooks_in_the_project_too_each_call_has_one_answer(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        chat.talk.close()
        bare = {**environment(chat.root), "PATH": os.environ["PATH"]}
        command = [sys.executable, "-m", "readcache", "init", "claude-code", "--project"]
        subprocess.run(command, cwd=chat.root, env=bare, check=True, capture_output=True)
        assert "are both in force" in readcache(chat.root, "doctor", "--host", "claude-code")
        chat.talk = Talk(chat.root, chat.talk.env["ANTHROPIC_BASE_URL"])
        (whole,) = chat.step(CAT)
        (shown,) = chat.step(CAT)
        (again,) = chat.step(CAT)
    assert "def item_60(" in whole
    assert len(markers(shown)) == 1
    assert "def item_60(" in again


def test_claude_code_finds_it_valid(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        folder = Path(chat.talk.env["HOME"]) / ".claude/skills/readcache"
        command = [program(), "plugin", "validate", str(folder)]
        ran = subprocess.run(command, env=chat.talk.env, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    assert "session.append{door=tool-result}" in ran.stdout


def test_doctor_says_so_and_uninit_leaves_nothing(tmp_path: Path) -> None:
    with conversation(tmp_path / "p", way="--user") as chat:
        assert "Claude Code loads the plugin" in readcache(chat.root, "doctor", "--host", "claude-code")
        chat.talk.close()
        readcache(chat.root, "uninit", "claude-code", "--user")
        assert not (Path(chat.talk.env["HOME"]) / ".claude/skills").exists()
        chat.talk = Talk(chat.root, chat.talk.env["ANTHROPIC_BASE_URL"])
        chat.step(CAT)
        (shown,) = chat.step(CAT)
    assert not markers(shown)


@pytest.mark.parametrize("way", ["--user", "--project"])
def test_a_recall_is_answered_by_the_plugin_or_the_hook(tmp_path: Path, way: str) -> None:
    with conversation(tmp_path / "p", way=way) as chat:
        chat.step(CAT)
        (shown,) = chat.step(CAT)
        chat.seen(Compact())
        (recalled,) = chat.step(Bash(f"readcache recall {name_in(markers(shown)[0])}"))
        (refused,) = chat.step(Bash("readcache recall 0000.1"))
        text = (chat.root / "shop.py").read_text()
    assert recalled.startswith(text.rstrip())
    assert refused.startswith("readcache: no call 0000.1")
