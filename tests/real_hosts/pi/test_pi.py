"""pi with its extension, with the real program: what the extension takes care of, and what happens when it cannot."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from readcache.testing.conformance import make_project
from readcache.testing.hosts import Bash, Compact, Edit, Read, Seen
from readcache.testing.requests import markers
from tests.real_hosts.fired import check_fire
from tests.real_hosts.measured import Run, compare
from tests.real_hosts.measured_script import CALLS, STEPS
from tests.real_hosts.pi.host import PROGRAM, Pi, extension, pi
from tests.real_hosts.taken_away import CAT, HEAD, LOSSES, TAIL, Environment, stale_markers

SECTION = "## Files restored after compaction"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_project(tmp_path / "project")
    return tmp_path / "project"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's, with the extension."""
    extension(tmp_path / "home", PROGRAM, is_user=True)
    return tmp_path / "home"


@pytest.fixture
def talk(home: Path, root: Path) -> Iterator[Pi]:
    with pi(home, root) as running:
        yield running


def sections(seen: Seen) -> list[str]:
    return [text for text in seen.texts if SECTION in text]


def kept(home: Path) -> list[str]:
    """The lines of the session's files."""
    return [line for path in home.glob(".pi/agent/sessions/*/*.jsonl") for line in path.read_text().splitlines()]


def test_the_model_is_sent_markers_and_pi_keeps_the_real_output(talk: Pi, home: Path, root: Path) -> None:
    seen = talk.run_steps((CAT,), (CAT,), (Edit("shop.py", "number 7 of", "number seven of"),), (CAT,))
    assert markers(seen[1].results[0])
    assert seen[3].results[0] == (root / "shop.py").read_text()
    messages = [entry["message"] for entry in map(json.loads, kept(home)) if entry["type"] == "message"]
    results = [message["content"][0]["text"] for message in messages if message["role"] == "toolResult"]
    assert results[0] == results[1] != results[3]
    assert not any(markers(text) for text in results)


def test_what_pi_says_below_a_result_is_passed_on_and_never_counted(talk: Pi, root: Path) -> None:
    (root / "blank.py").write_text(
        "import os\n\n" + "".join(f"value_{n} = {n}  # of a file with blank lines\n" for n in range(57)) + "\n"
    )
    failing = Bash("cat blank.py; exit 3")
    seen = talk.run_steps((Read("blank.py"),), (failing,), (Read("blank.py", 21, 40),))
    assert "blank.py lines 1-60, " in seen[1].results[0]
    assert seen[1].results[0].endswith("]\n\n\nCommand exited with code 3")
    assert "blank.py lines 21-40, " in seen[2].results[0]
    assert seen[2].results[0].endswith("]\n\n[21 more lines in file. Use offset=41 to continue.]")


def test_written_files_are_known_by_what_the_model_wrote(talk: Pi) -> None:
    text = "".join(f"value_{n} = {n}  # of the new file\n" for n in range(40))
    calls = iter([("call_w", "write", {"path": "new.py", "content": text})])
    talk.model.script = lambda _: {"tool_calls": [call]} if (call := next(calls, None)) else {"content": "done"}
    talk.ask("prompt", message="write it")
    talk.until(lambda event: event["type"] == "agent_settled")
    (seen,) = talk.run_steps((Bash("cat new.py"),))
    assert "your" in markers(seen.results[0])[0]


def test_what_a_compaction_took_away_is_put_back_in_each_request_and_is_a_source(home: Path, root: Path) -> None:
    real = (root / "shop.py").read_text()
    with pi(home, root) as talk:
        seen = talk.run_steps(
            (CAT,), (CAT,), (Bash("ls"),), Compact(), (HEAD,), (Edit("shop.py", "number 7 of", "number 7: "),)
        )
    with pi(home, root, "--continue") as talk:  # in another process, too
        seen += talk.run_steps((TAIL,), Compact(), (CAT,))
    found = [sections(one) for one in seen[3:]]
    assert [len(each) for each in found] == [1] * len(found)
    assert len({each[0] for each in found[:4]}) == 1, "the same bytes in each request"
    assert real in found[0][0]
    assert 'shop.py lines 1-40, in the section "Files restored after compaction"' in seen[4].results[0]
    assert not any(SECTION in line for line in kept(home)), "pi keeps its own summary"
    assert found[4] != found[0]
    assert not stale_markers(seen)


def test_the_summary_is_made_of_real_texts(talk: Pi) -> None:
    talk.run_steps((CAT,), (CAT,), (Bash("ls"),))
    asked = []
    talk.model.script = lambda request: asked.append(json.dumps(request)) or {"content": "A summary."}  # type: ignore[func-returns-value]
    talk.ask("compact")
    assert asked
    assert not markers(asked[0])


def test_pi_compacts_by_itself_and_goes_on(home: Path, root: Path) -> None:
    with pi(home, root) as talk:
        talk.run_steps((CAT,), (Bash("ls"),))
        talk.ask("set_auto_compaction", enabled=True)
        talk.model.prompt = 995_000
        talk.turn(Bash("ls"))
        assert talk.model.prompt == 100, "it asked for a summary"
        (seen,) = talk.run_steps((HEAD,))
    assert len(sections(seen)) == 1
    assert markers(seen.results[0])


def test_a_conversation_that_goes_on_in_another_process_is_sent_as_before(home: Path, root: Path) -> None:
    with pi(home, root) as talk:
        before = talk.run_steps((CAT,), (HEAD,))
    with pi(home, root, "--continue") as talk:
        after = talk.run_steps((TAIL,))
    assert markers(before[1].results[0])
    assert before[1].texts == after[0].texts[: len(before[1].texts)], "the prompt cache is whole"
    assert markers(after[0].results[0])


def test_a_clone_begins_with_the_real_outputs_and_a_new_session_with_none(talk: Pi, root: Path) -> None:
    assert markers(talk.run_steps((CAT,), (CAT,))[1].results[0])
    talk.ask("clone")
    (root / "shop.py").write_text((root / "shop.py").read_text().replace("number 60 of", "number sixty of"))
    seen, *later = talk.run_steps((Bash("true"),), (HEAD,), (TAIL,))
    assert sum("number 20 of the shop" in text for text in seen.texts) == 2
    assert not any(markers(text) for text in seen.texts)
    assert len(markers(later[0].results[0])) == 1
    assert not stale_markers(later)
    assert "number sixty of" in later[1].results[0]
    talk.ask("new_session")
    assert [bool(markers(one.results[0])) for one in talk.run_steps((CAT,), (HEAD,))] == [False, True]


def test_a_process_that_a_sub_agent_runs_in_is_another_reader(talk: Pi, home: Path, root: Path) -> None:
    talk.run_steps((CAT,))
    with pi(home, root, "--no-session") as other:  # as pi's example of a sub-agent does
        seen = other.run_steps((CAT,), (HEAD,))
    assert not markers(seen[0].results[0])
    assert markers(seen[1].results[0])
    assert markers(talk.run_steps((HEAD,))[0].results[0])


# ---------------------------------------------------------------- each piece of care is needed


def change_extension(home: Path, old: str, new: str) -> None:
    path = extension(home, PROGRAM, is_user=True)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_without_batches_a_call_points_at_one_that_was_made_at_once(home: Path, root: Path) -> None:
    change_extension(home, "{ call_id: call, batch, commit: false }", "{ call_id: call, commit: false }")
    with pi(home, root) as talk:
        (seen,) = talk.run_steps((CAT, CAT))
    assert [text for text in seen.results if markers(text)]


# ---------------------------------------------------------------- failing and turning it off


@pytest.mark.parametrize(("what", "when"), LOSSES)
def test_what_is_taken_away_costs_the_agent_nothing(what: str, when: str, tmp_path: Path, root: Path) -> None:
    home, own = tmp_path / "home", Environment(tmp_path, tmp_path / "home")
    extension(home, own.program, is_user=True)
    with pi(home, root) as talk:
        own.check(what, when, lambda steps: talk.run_steps(*steps), (root / "shop.py").read_text())


def test_a_session_goes_on_where_the_extension_is_gone(home: Path, root: Path) -> None:
    with pi(home, root) as talk:
        talk.run_steps((CAT,), (CAT,))
    (home / ".pi/agent/extensions/readcache.js").unlink()
    with pi(home, root, "--continue") as talk:
        (seen,) = talk.run_steps((CAT,))
    assert sum("number 20 of the shop" in text for text in seen.texts) == 3
    assert not any(markers(text) for text in seen.texts)


@pytest.mark.parametrize(("mode", "env"), [("advise", {}), ("off", {}), ("on", {"READCACHE": "off"})])
def test_turned_down_it_leaves_nothing_out(mode: str, env: dict[str, str], tmp_path: Path, root: Path) -> None:
    extension(tmp_path / "home", PROGRAM, is_user=True, mode=mode)
    with pi(tmp_path / "home", root, **env) as talk:
        seen = talk.run_steps((CAT,), (CAT,), (Bash("ls"),), Compact(), (CAT,))
    assert seen[0].results == seen[1].results == seen[4].results
    assert not sections(seen[4])


def test_a_user_and_a_project_that_both_have_it_have_it_once(tmp_path: Path, home: Path, root: Path) -> None:
    for directory, is_user in ((home, True), (root, False)):
        count = ("bash", "-c", f'echo x >> {tmp_path}/started; exec {" ".join(PROGRAM)} "$@"', "bash")
        extension(directory, count, is_user=is_user)
    with pi(home, root, "--approve") as talk:
        seen = talk.run_steps((CAT,), (CAT,), (CAT,))
    assert [bool(markers(one.results[0])) for one in seen] == [False, True, False]
    assert len((tmp_path / "started").read_text().split()) == 1


# ---------------------------------------------------------------- figures


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    def run_steps(root: Path, on: bool) -> Run:
        make_project(root)
        home = root.parent / f"home-{root.name}"
        if on:
            extension(home, PROGRAM, is_user=True)
        with pi(home, root) as talk:
            talk.run_steps((Bash("true"),))  # pi and the server have started
            began, before = time.monotonic(), talk.result_chars
            talk.run_steps(*STEPS)
            return Run(talk.result_chars - before, time.monotonic() - began, CALLS)

    version = subprocess.run(["pi", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    compare("pi", {"@earendil-works/pi-coding-agent": version}, run_steps, tmp_path)


def test_doctor_proves_with_a_scripted_model_that_its_copy_changed() -> None:
    check_fire("pi")
