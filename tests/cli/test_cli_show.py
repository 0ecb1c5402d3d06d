from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from readcache import Session
from readcache.cli.main import main
from readcache.core.model.reply import Reason

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def store(work: Path) -> str:
    """A store that another harness filled: two sessions, the second one newer."""
    path = str(work / "store.db")
    for session_id, at in (("old", 1_000.0), ("new", 2_000.0)):
        with Session(work, session_id=session_id, store=path, clock=lambda at=at: at) as session:  # type: ignore[misc]
            session.run("head -200 f", call_id="c1")
            session.run("cat f", call_id="c2")
            session.run("cat f", call_id="c3")
            session.wrote("f", call_id="c4")
    return path


def said(capfd: Capture, *arguments: str) -> list[str]:
    capfd.readouterr()
    assert main(arguments) == 0
    return capfd.readouterr().out.splitlines()


def test_every_reason_has_a_sentence_of_its_own() -> None:
    sentences = [reason.why for reason in Reason]
    assert all(sentence and "\n" not in sentence for sentence in sentences)
    assert len(set(sentences)) == len(sentences)


# ------------------------------------------------------------ log


def test_the_log_has_a_line_for_each_event_in_order(capfd: Capture, store: str) -> None:
    lines = said(capfd, "log", "--store", store, "--session", "new")
    assert [line.split()[2:5] for line in lines] == [
        ["main", "c1", "full/not_seen"],
        ["main", "c2", "partial/overlap"],
        ["main", "c3", "full/insisted"],
        ["main", "c4", "wrote"],
    ]
    assert "saved" in lines[1]
    assert lines[1].endswith("cat f")


def test_a_label_with_newlines_and_control_characters_stays_one_line(capfd: Capture) -> None:
    main(["run", "-c", "cat f\n\techo '\x1b[31m é \u2028'" + " #" * 100])
    lines = said(capfd, "log")
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert lines[0].endswith("…")


def test_a_reader_that_leaves_gets_no_traceback(work: Path) -> None:
    with Session(work, session_id="s", store=work / "store.db") as session:
        for n in range(2000):
            session.wrote(f"some/long/path/to/a/file/number/{n}")
    ours = f"{sys.executable} -m readcache log --store store.db | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", ours], capture_output=True)
    assert done.stdout.endswith(b"\n141\n")
    assert done.stderr == b""


# ------------------------------------------------------------ explain


def test_explain_tells_what_was_shown_what_is_visible_and_why(capfd: Capture, store: str, work: Path) -> None:
    text = "\n".join(said(capfd, "explain", "f", "--store", store, "--session", "new"))
    assert text.startswith(f"{work}/f in session new, agent main")
    assert "c1  shown lines 1-200: head -200 f" in text
    assert "c2  shown lines 201-300; left out 1-200: cat f" in text
    assert "c3  shown lines 1-300: cat f" in text
    assert "insisted: " + Reason.INSISTED.why in text.partition("last read: c3, cat f\n")[2]
    assert "as it was before the agent's write" in text
    assert "c4  wrote " in text.partition("writes seen:")[2]


def test_explain_names_the_lines_that_are_visible_and_where(capfd: Capture, work: Path) -> None:
    main(["run", "--call-id", "a", "-c", "sed -n '10,60p' f"])
    main(["run", "--call-id", "b", "-c", "sed -n '30,99p' f"])
    lines = said(capfd, "explain", str(work / "f"))
    visible = lines[lines.index("  visible now:") + 1 : -3]
    assert visible[0].startswith("    lines 10-60 in a:")
    assert visible[1].startswith("    lines 61-99 in b:")
    assert "  disk: has the visible lines" in lines
    (work / "f").write_text("other\n")
    assert "  disk: does not have the visible lines" in said(capfd, "explain", "f")
    (work / "f").unlink()  # or it is on another machine: then nothing is known
    assert not any(line.startswith("  disk:") for line in said(capfd, "explain", "f"))


def test_explain_of_a_file_never_shown_says_so_and_names_files_like_it(capfd: Capture, work: Path) -> None:
    main(["run", "-c", "cat f"])
    capfd.readouterr()
    assert main(["explain", "elsewhere/f"]) == 1
    text = capfd.readouterr().out.strip()
    assert "last read: none that was recorded" in text
    assert text.endswith(f"files of that name which were shown: {work}/f")


def test_explain_knows_a_read_of_which_nothing_was_credited(capfd: Capture, work: Path) -> None:
    (work / "binary").write_bytes(b"a\0b" * 500)
    main(["run", "-c", "cat binary"])
    text = "\n".join(said(capfd, "explain", "binary"))
    assert f"binary: {Reason.BINARY.why}" in text


def test_explain_at_a_call_answers_as_of_then(capfd: Capture, store: str) -> None:
    text = "\n".join(said(capfd, "explain", "f", "--at", "c2", "--store", store, "--session", "new"))
    assert "agent main, as of after c2" in text
    visible = text.partition("visible then:")[2]
    assert "lines 1-200 in c1" in visible
    assert "lines 201-300 in c2" in visible
    assert "last read: c2" in text
    assert "c3" not in text
    assert "wrote" not in text


def test_the_log_and_the_counters_can_be_had_as_of_a_call(capfd: Capture, store: str) -> None:
    named = ("--at", "c2", "--store", store, "--session", "new")
    assert [line.split()[3] for line in said(capfd, "log", *named)] == ["c1", "c2"]
    assert json.loads("".join(said(capfd, "stats", "--json", *named)))["calls"] == 2


@pytest.mark.parametrize("command", [["log"], ["stats"], ["explain", "f"]], ids=lambda words: words[0])
def test_a_call_that_nobody_made_is_an_error_that_names_the_newest(
    capfd: Capture, store: str, command: list[str]
) -> None:
    assert main([*command, "--at", "c9", "--store", store, "--session", "new"]) == 1
    said_ = capfd.readouterr().err
    assert said_ == (
        "readcache: --at: agent main made no call 'c9': its newest calls are c4, c3, c2, c1; see `readcache log`\n"
    )


# ------------------------------------------------------------ stats


def test_stats_are_those_of_the_session(capfd: Capture, store: str, work: Path) -> None:
    got = json.loads("".join(said(capfd, "stats", "--json", "--store", store, "--session", "new")))
    with Session(work, session_id="new", store=store) as session:
        assert {**session.stats(), "session": "new", "agent": "main"}.items() <= got.items()
    assert (got["calls"], got["overlap"], got["insisted"]) == (3, 1, 1)
    table = said(capfd, "stats", "--store", store, "--session", "new")
    assert table[0].split()[:2] == ["calls", "3"]
    assert any(line.endswith(Reason.OVERLAP.why) for line in table)


# ------------------------------------------------------------ which session


def test_without_a_session_the_newest_is_taken_and_named(
    capfd: Capture, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("READCACHE_SESSION")
    monkeypatch.setenv("READCACHE_STORE", f"sqlite:///{store}")
    assert main(["stats", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["session"] == "new"
    assert err == f"readcache: session new, the newest of 2 sessions in sqlite:///{store}\n"


@pytest.mark.parametrize("command", [["log"], ["stats"], ["explain", "f"]])
def test_what_is_not_there_is_an_expected_failure_in_one_line(
    capfd: Capture, store: str, work: Path, command: list[str]
) -> None:
    assert main([*command, "--store", "nosuch.db"]) == 1
    assert main([*command, "--store", store, "--session", "nosuch"]) == 1
    assert main([*command, "--store", "mysql://host/0"]) == 2
    (work / "garbage").write_text("no database " * 100)
    assert main([*command, "--store", "garbage"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 4
    assert not (work / "nosuch.db").exists()


# ------------------------------------------------------------ compacted


def test_after_a_compaction_what_was_not_kept_is_shown_again(capfd: Capture, work: Path) -> None:
    main(["run", "--call-id", "a", "-c", "head -200 f"])
    main(["run", "--call-id", "b", "-c", "cat f"])
    told = json.loads("".join(said(capfd, "compacted", "--keep", "b")))
    assert told["restored_id"] is None
    assert list(told["rewrites"]) == ["b"]
    assert "[GONE" in told["rewrites"]["b"]
    assert said(capfd, "run", "-c", "head -200 f") == (work / "f").read_text().splitlines()[:200]


def test_a_compaction_that_was_not_recorded_is_not_passed_over(capfd: Capture, work: Path) -> None:
    (work / "garbage").write_text("no database " * 100)
    assert main(["compacted", "--store", "garbage"]) == 1
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "start a new session" in err


def test_a_compaction_of_no_session_is_a_usage_error(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("READCACHE_SESSION")
    assert main(["compacted"]) == 2
    assert capfd.readouterr().err.count("\n") == 1
