from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from readcache.cli.main import main
from readcache.core.model.limits import LARGEST_OUTPUT
from readcache.process import child, failures
from tests.helpers.files import wait_for

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
Start = Callable[..., "subprocess.Popen[bytes]"]
Capture = pytest.CaptureFixture[bytes]


def reasons(capfdbinary: Capture) -> dict[str, int]:
    capfdbinary.readouterr()
    assert main(["stats", "--json"]) == 0
    found: dict[str, int] = json.loads(capfdbinary.readouterr().out)
    return found


def printed(capfdbinary: Capture, command: str, *options: str) -> bytes:
    capfdbinary.readouterr()
    assert main(["run", *options, "-c", command]) == 0
    return capfdbinary.readouterr().out


# ------------------------------------------------------------ what is left out


def test_the_second_of_two_processes_says_unchanged_and_the_one_that_insists_gets_every_byte(
    run: Run, work: Path
) -> None:
    replies = [run("run", "-c", "cat f") for _ in range(3)]
    assert [reply.returncode for reply in replies] == [0, 0, 0]
    assert replies[0].stdout == replies[2].stdout == (work / "f").read_bytes()
    assert replies[1].stdout.startswith(b"[FILE_UNCHANGED ")
    assert replies[1].stdout.count(b"\n") == 1
    assert {reply.stderr for reply in replies} == {b""}


def test_an_overlapping_read_shows_what_is_new(capfdbinary: Capture, work: Path) -> None:
    printed(capfdbinary, "head -200 f")
    out = printed(capfdbinary, "cat f").splitlines(keepends=True)
    assert out[0].startswith(b"[UNCHANGED ")
    assert b"".join(out[1:]) == b"".join((work / "f").read_bytes().splitlines(keepends=True)[200:])


def test_words_after_two_dashes_are_a_command_whatever_they_look_like(capfdbinary: Capture, work: Path) -> None:
    name = "a b; -c $HOME --help"
    (work / name).write_bytes((work / "f").read_bytes())
    for start in (b"line 1 of", b"[FILE_UNCHANGED"):
        capfdbinary.readouterr()
        assert main(["run", "--session", "t", "--", "cat", "--", name]) == 0
        assert capfdbinary.readouterr().out.startswith(start)


@pytest.mark.parametrize("options", [[], ["--session", "t"], ["--agent=a", "--advise"]])
def test_the_first_word_that_is_no_option_begins_the_command(run: Run, work: Path, options: list[str]) -> None:
    (work / "--session").write_text("a file of that name\n")
    assert run("run", *options, "cat", "--", "--session").stdout == b"a file of that name\n"
    assert run("run", *options, "sh", "-c", "exit 7").returncode == 7


def test_run_understands_every_option_that_its_help_names(run: Run) -> None:
    names = re.findall(r"^  (--[a-z-]+)( [A-Z])?", run("run", "--help").stdout.decode(), re.MULTILINE)
    words = [[name, {"--clip": "100", "--policy": "max"}.get(name, "x")] if value else [name] for name, value in names]
    assert len(words) >= 8
    assert run("run", *(word for option in words for word in option), "-c", "exit 5").returncode == 5


def test_a_call_does_not_point_at_one_that_ended_after_its_start(start: Start, work: Path) -> None:
    whole = (work / "f").read_text()
    os.mkfifo(work / "gate")
    with start("run", "-c", "touch begun; read x <gate; sed -n '1,$p' f") as slow:
        wait_for(work / "begun")
        with start("run", "-c", "cat f") as quick:
            assert quick.communicate()[0].decode() == whole
        (work / "gate").write_text("open\n")
        assert slow.communicate()[0].decode() == whole


@pytest.mark.parametrize("way", ["option", "environment"])
def test_calls_made_at_once_do_not_point_at_each_other(
    capfdbinary: Capture, work: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    def at_once(name: str) -> list[str]:
        monkeypatch.setenv("READCACHE_BATCH", name if way == "environment" else "")
        return ["--batch", name] if way == "option" else []

    whole = (work / "f").read_bytes()
    assert printed(capfdbinary, "cat f", *at_once("one")) == whole
    assert printed(capfdbinary, "head -100 f", *at_once("one")) == b"".join(whole.splitlines(keepends=True)[:100])
    assert len(printed(capfdbinary, "tail -100 f", *at_once("two"))) < 300


def test_a_policy_is_taken_from_the_option_and_from_the_environment(
    capfdbinary: Capture, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_an_edit(session: str, *options: str) -> bytes:
        printed(capfdbinary, "cat f", "--session", session)
        printed(capfdbinary, "sed -i '150s/$/ x/' f", "--session", session)
        return printed(capfdbinary, "cat f", "--session", session, *options)

    assert after_an_edit("t") == (work / "f").read_bytes()
    assert len(after_an_edit("u", "--policy", "delta")) < 1500
    monkeypatch.setenv("READCACHE_POLICY", "max")
    assert len(after_an_edit("v")) < 1500
    assert after_an_edit("w", "--policy", "default") == (work / "f").read_bytes()


def test_sessions_and_agents_and_stores_see_nothing_of_each_other(capfdbinary: Capture, work: Path) -> None:
    whole = (work / "f").read_bytes()
    assert printed(capfdbinary, "cat f") == whole
    assert printed(capfdbinary, "cat f", "--session", "t") == whole
    assert printed(capfdbinary, "cat f", "--agent", "helper") == whole
    assert printed(capfdbinary, "cat f", "--store", "other.db") == whole
    assert printed(capfdbinary, "cat f") != whole


def test_after_a_write_the_file_is_shown_and_the_write_is_on_record(capfdbinary: Capture, work: Path) -> None:
    printed(capfdbinary, "cat f")
    assert printed(capfdbinary, "sed -i '1s/line/LINE/' f") == b""
    assert printed(capfdbinary, "cat f") == (work / "f").read_bytes()
    assert reasons(capfdbinary)["written"] == 1
    main(["explain", "f"])
    assert b"sed -i '1s/line/LINE/' f" in capfdbinary.readouterr().out.partition(b"writes seen:")[2]


def test_what_the_agent_wrote_in_a_heredoc_counts_as_seen(capfdbinary: Capture, work: Path) -> None:
    text = "".join(f"{n}: some words to make the line long enough\n" for n in range(20))
    printed(capfdbinary, f"cat > g <<'EOF'\n{text}EOF")
    assert (work / "g").read_text() == text
    assert b"your own command" in printed(capfdbinary, "cat g")


def test_advising_shows_everything_and_says_what_it_would_have_saved(
    capfdbinary: Capture, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (work / "f").read_bytes()
    assert [printed(capfdbinary, "cat f", "--advise") for _ in range(2)] == [whole, whole]
    monkeypatch.setenv("READCACHE", "advise")
    assert printed(capfdbinary, "cat f") == whole
    counts = reasons(capfdbinary)
    assert counts["advised"] >= 1
    assert counts["tokens_saved"] == 0 < counts["tokens_saved_if_on"]


def test_an_output_that_a_harness_parses_is_never_touched(capfdbinary: Capture, work: Path) -> None:
    command = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat f"
    outs = {printed(capfdbinary, command) for _ in range(2)}
    assert outs == {b"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n" + (work / "f").read_bytes()}


# ------------------------------------------------------------ when nothing may be left out


@pytest.mark.parametrize("value", ["off", "OFF", "0", "nonsense"])
def test_switched_off_every_byte_comes_and_nothing_is_recorded(run: Run, work: Path, value: str) -> None:
    for _ in range(2):
        reply = run("run", "-c", "cat f; exit 3", env={**os.environ, "READCACHE": value})
        assert (reply.returncode, reply.stdout) == (3, (work / "f").read_bytes())
    assert not (work.parent / "state").exists()


def test_without_a_session_every_byte_comes_and_it_is_said_once_that_nothing_is_recorded(run: Run, work: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "READCACHE_SESSION"}
    replies = [run("run", "-c", "cat f", env=env) for _ in range(3)]
    assert [reply.stdout for reply in replies] == [(work / "f").read_bytes()] * 3
    assert [reply.stderr.count(b"\n") for reply in replies] == [1, 0, 0]
    assert b"READCACHE_SESSION" in replies[0].stderr
    assert not (work.parent / "state/readcache/readcache.db").exists()


def test_where_it_cannot_be_remembered_that_no_session_is_named_it_is_not_said(run: Run, work: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "READCACHE_SESSION"}
    assert run("run", "-c", "cat f", env={**env, "XDG_STATE_HOME": str(work / "f")}).stderr == b""
    assert run("run", "-c", "cat f", env={**env, "READCACHE": "off"}).stderr == b""


def test_what_goes_to_dev_null_was_not_seen(run: Run, work: Path) -> None:
    run("run", "-c", "cat f", stdout=subprocess.DEVNULL)
    assert run("run", "-c", "cat f").stdout == (work / "f").read_bytes()


def test_a_run_within_a_wrapped_command_shows_every_byte(run: Run, work: Path) -> None:
    run("run", "-c", "cat f")
    inner = f"{sys.executable} -m readcache run -c 'cat f'"
    assert run("run", "-c", f"{inner} | md5sum").stdout == run("run", "-c", "md5sum < f").stdout
    size = (work / "f").stat().st_size - 1
    assert run("run", "-c", f"x=$({inner}); head -1 f; echo ${{#x}}").stdout.endswith(b"%d\n" % size)


def test_text_that_is_not_utf8_comes_byte_for_byte(capfdbinary: Capture, work: Path) -> None:
    data = bytes(range(1, 256)) * 4 + b"\nno newline at the end\xff"
    (work / "g").write_bytes(data)
    assert printed(capfdbinary, "cat g") == data
    (work / "g").write_bytes(b"\0" + data)
    assert printed(capfdbinary, "cat g") == b"\0" + data


def test_a_huge_output_passes_through_and_is_not_credited(capfdbinary: Capture, work: Path) -> None:
    (work / "g").write_bytes(b"0123456789abcde\n" * (LARGEST_OUTPUT // 16 + 5000))
    for _ in range(2):
        assert printed(capfdbinary, "cat g") == (work / "g").read_bytes()


def test_a_command_that_takes_its_time_is_shown_as_it_comes_and_not_credited(
    capfdbinary: Capture, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LONGEST_BUFFERED", 0.0)
    whole = (work / "f").read_bytes()
    assert [printed(capfdbinary, "cat f; sleep 0.1; echo end") for _ in range(2)] == [whole + b"end\n"] * 2


@pytest.mark.parametrize("closing", ["exec >/dev/null 2>&1", "exec >&- 2>&-"])
def test_a_command_that_gives_up_its_stdout_is_shown_at_the_limit(
    capfdbinary: Capture, work: Path, monkeypatch: pytest.MonkeyPatch, closing: str
) -> None:
    whole = (work / "f").read_bytes()
    monkeypatch.setattr(child, "LONGEST_BUFFERED", 0.0)
    assert [printed(capfdbinary, f"cat f; {closing}; sleep 0.2") for _ in range(2)] == [whole] * 2, "it was not held"
    monkeypatch.setattr(child, "LONGEST_BUFFERED", 600.0)
    printed(capfdbinary, f"cat f; {closing}; sleep 0.1")
    assert printed(capfdbinary, "cat f").startswith(b"[FILE_UNCHANGED"), "one that ends in time is judged"


def test_what_the_harness_cuts_away_does_not_count_as_seen(capfdbinary: Capture, work: Path) -> None:
    whole = (work / "f").read_bytes()
    printed(capfdbinary, "cat f", "--clip", "1000,1000")
    out = printed(capfdbinary, "sed -n '20,200p' f", "--clip", "1000,1000")
    lines = whole.splitlines(keepends=True)
    seen = whole[:1000].count(b"\n")
    assert out.startswith(b"[UNCHANGED ")
    assert out.partition(b"\n")[2] == b"".join(lines[seen:200])


def test_with_an_invalid_clip_nothing_is_left_out(run: Run, work: Path) -> None:
    env = {**os.environ, "READCACHE_CLIP": "much"}
    assert [run("run", "-c", "cat f", env=env).stdout for _ in range(2)] == [(work / "f").read_bytes()] * 2


# ------------------------------------------------------------ when something of ours is broken


def broken_stores(work: Path) -> list[str]:
    (work / "garbage.db").write_bytes(b"this is no database at all, " * 100)
    (work / "directory.db").mkdir()
    return [str(work / "garbage.db"), str(work / "directory.db"), str(work / "f" / "x.db"), "redis://nowhere/0"]


@pytest.mark.parametrize("which", range(4))
def test_with_a_broken_store_output_and_status_are_the_commands(
    capfdbinary: Capture, work: Path, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    store = broken_stores(work)[which]
    monkeypatch.setenv("READCACHE_STORE", store)
    for _ in range(2):
        capfdbinary.readouterr()
        assert main(["run", "-c", "cat f; exit 9"]) == 9
        assert capfdbinary.readouterr() == ((work / "f").read_bytes(), b"")
    assert main(["run", "-c", "echo x > g; exit 8"]) == 8
    assert (work / "g").read_text() == "x\n"
    assert all(" s: " in line for line in failures.noted())
    assert len(failures.noted()) >= 3
    capfdbinary.readouterr()
    assert main(["stats", "--store", store]) in (1, 2)


def test_with_an_unwritable_state_directory_output_and_status_are_the_commands(
    run: Run, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(work / "f"))
    for _ in range(2):
        reply = run("run", "-c", "cat f; exit 9")
        assert (reply.returncode, reply.stdout, reply.stderr) == (9, (work / "f").read_bytes(), b"")


def test_a_command_that_reads_nothing_costs_no_imports(run: Run) -> None:
    err = run("run", "-c", "echo hi", env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}).stderr.decode()
    imported = {line.rpartition("|")[2].strip() for line in err.splitlines()}
    assert "readcache.cli.run" in imported
    heavy = {"bashlex", "sqlite3", "argparse", "subprocess", "xxhash", "readcache.session", "readcache.log.store"}
    assert not imported & heavy


# ------------------------------------------------------------ usage


@pytest.mark.parametrize(
    "arguments",
    [
        ["nosuch"],
        ["help", "nosuch"],
        ["run"],
        ["run", "--"],
        ["run", "-c"],
        ["run", "--session", "t"],
        ["run", "--nosuch", "cat", "f"],
        ["run", "-c", "cat f", "--nosuch"],
        ["run", "-c", "cat f", "cat", "f"],
        ["run", "-c", "cat f", "--", "cat", "f"],
        ["run", "-c", "cat f", "-cls"],
        ["run", "-c", "cat \0f"],
        ["run", "-c", "cat f", "--clip", "1,2,3"],
        ["run", "-c", "cat f", "--policy", "most"],
        ["run", "-c", "cat f", "--store", "mysql://host/0"],
        ["run", "-c", "cat f", "--store", "."],
        ["run", "--store=sqlite:///", "cat", "f"],
        ["log", "--store", "."],
        ["compacted", "--store", "."],
        ["run", "--session"],
        ["explain"],
        ["stats", "--jso"],
    ],
)
def test_a_usage_error_is_one_line_and_status_2(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("readcache: ")
    assert err.count("\n") == 1


def test_without_a_bash_one_line_says_so(run: Run, work: Path) -> None:
    for command in ("true", "cat f", "echo > g"):
        reply = run("run", "-c", command, env={**os.environ, "PATH": str(work)})
        assert (reply.returncode, reply.stdout, reply.stderr.count(b"\n")) == (1, b"", 1)
        assert b"install bash" in reply.stderr


def test_help_and_version_are_no_errors(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == main(["--help"]) == main(["run", "--help"]) == 0
    assert "readcache run [options] (-c STRING | [--] ARGV…)" in capfd.readouterr().out


@pytest.mark.parametrize("arguments", [["help"], ["help", "explain"]])
def test_whoever_asks_for_help_gets_the_help(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 0
    out, err = capfd.readouterr()
    assert out.startswith("usage: readcache ")
    assert out.startswith("usage: readcache explain ") == (arguments == ["help", "explain"])
    assert err == ""


def test_the_store_of_an_option_is_looked_at_before_the_command_is_run(work: Path, run: Run) -> None:
    for store in ("mysql://host/0", str(work)):
        assert run("run", "--store", store, "-c", "touch ran").returncode == 2
    assert not (work / "ran").exists()


@pytest.mark.parametrize("name", ["READCACHE_STORE", "READCACHE_CLIP", "READCACHE_POLICY"])
def test_what_the_environment_says_wrong_keeps_no_command_from_its_output_and_doctor_tells_of_it(
    run: Run, work: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "mysql://host/0")
    for _ in range(2):
        reply = run("run", "-c", "cat f; exit 9")
        assert (reply.returncode, reply.stdout, reply.stderr) == (9, (work / "f").read_bytes(), b"")
    report = run("doctor")
    assert report.returncode == 1
    assert any(line.startswith(b"broken") and b"mysql://host/0" in line for line in report.stdout.splitlines())
