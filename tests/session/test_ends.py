"""How a process may end, or lose what it stands on, with a session open: the agent's output is whole each time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from readcache import Outcome, Session
from tests.helpers.files import TEXT, WATCHDOG, wait_for

ROOT = Path(__file__).resolve().parents[2]


def run(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program in `directory`, where a file `f` is; `session` is a durable one."""
    (directory / "f").write_text(TEXT)
    start = "from readcache import Session\nsession = Session('.', session_id='s', store='log.db')\n"
    command = [sys.executable, "-W", "error", "-c", start + textwrap.dedent(program)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True, timeout=WATCHDOG)


ENDS = {
    "atexit": """
        import atexit
        atexit.register(lambda: print(session.run("cat f").full_text, end=""))
    """,
    "an exception": """
        import sys
        sys.excepthook = lambda *error: None
        print(session.run("cat f").full_text, end="")
        raise ValueError
    """,
    "a daemon thread": """
        import threading
        done = threading.Event()
        def work():
            print(session.run("cat f").full_text, end="", flush=True)
            done.set()
            while True:
                session.run("cat f")
        threading.Thread(target=work, daemon=True).start()
        done.wait()
    """,
    "a thread that outlives the main one": """
        import threading
        threading.Thread(target=lambda: print(session.run("cat f").full_text, end="")).start()
    """,
    "_exit": """
        import os
        print(session.run("cat f").full_text, end="", flush=True)
        os._exit(0)
    """,
    "a finalizer": """
        import pathlib
        text = pathlib.Path("f").read_text()
        class Last:  # by then Python imports nothing and starts no program any more
            def __del__(self, session=session, text=text):
                print(session.observe("cat f", text).full_text, end="")
        last = Last()
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_however_a_process_ends_its_output_is_whole_and_the_session_can_go_on(tmp_path: Path, end: str) -> None:
    done = run(ENDS[end], tmp_path)
    assert (done.stdout, done.stderr) == (TEXT, "")
    with Session(tmp_path, session_id="s", store=tmp_path / "log.db") as session:
        assert session.run("cat f").full_text == TEXT
        assert session.run("cat f").full_text == TEXT
        assert not session.stats().get("store_failed")


def test_an_interrupt_while_a_command_runs_reaches_the_program_and_kills_the_command(tmp_path: Path) -> None:
    program = """
        import os, signal, threading, time
        def interrupt():
            while not os.path.exists("started"):
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            session.run("touch started; sleep 60; touch ended")
        except KeyboardInterrupt:
            print("interrupted")
        print(session.run("cat f").text, end="")
        print(session.run("cat f").outcome.name)
    """
    done = run(program, tmp_path)
    assert done.stdout == f"interrupted\n{TEXT}UNCHANGED\n"
    assert done.stderr == ""
    assert not (tmp_path / "ended").exists()


def test_a_clock_that_is_set_back_or_on_changes_no_answer(tmp_path: Path) -> None:
    times = iter([1e9, 2e9, 5.0, 0.0, -1.0, 1e12, 3e9] * 30)
    with Session("/w", session_id="s", store=tmp_path / "log.db", clock=lambda: next(times)) as session:
        for _ in range(3):
            assert session.observe("cat f", TEXT).text == TEXT
            assert session.observe("cat f", TEXT).outcome is Outcome.UNCHANGED
            session.compacted()
    with Session("/w", session_id="s", store=tmp_path / "log.db", clock=lambda: 0.0) as session:
        assert session.observe("cat f", TEXT).text == TEXT
        assert session.observe("cat f", TEXT).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("lost", ["removed", "not writable", "a file"])
def test_without_its_state_directory_a_session_shows_everything_and_comes_back_with_it(
    tmp_path: Path, lost: str
) -> None:
    if lost == "not writable" and os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    directory = tmp_path / "state"
    with Session("/w", session_id="s", store=directory / "log.db") as session:
        session.observe("cat f", TEXT)
        shutil.rmtree(directory)
        if lost == "not writable":
            tmp_path.chmod(0o500)
        elif lost == "a file":
            directory.write_text("")
        replies = [session.observe("cat f", TEXT) for _ in range(3)]
        lasting = 1 if lost == "removed" else 3  # a directory that is gone is made again
        assert [reply.text for reply in replies[:lasting]] == [TEXT] * lasting
        tmp_path.chmod(0o700)
        if lost == "a file":
            directory.unlink()
        later = [session.observe("cat f", TEXT) for _ in range(4)]
        assert later[-1].outcome is Outcome.UNCHANGED or later[-2].outcome is Outcome.UNCHANGED
        session.compacted()
        assert session.observe("cat f", TEXT).text == TEXT


def test_of_a_program_that_is_killed_while_a_command_runs_nothing_counts_as_shown(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    program = (
        "from readcache import Session\n"
        "command = 'cat f; touch started; until [ -e over ]; do sleep 0.02; done'\n"
        "Session('.', session_id='s', store='log.db').run(command)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=env) as process:
        wait_for(tmp_path / "started")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=WATCHDOG) == -signal.SIGTERM, "as without us"
    (tmp_path / "over").touch()
    with Session(tmp_path, session_id="s", store=tmp_path / "log.db") as session:
        assert session.run("cat f").text == TEXT
