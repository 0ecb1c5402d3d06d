"""`doctor --fire`: is it proven that the model's copy changed? Python programs stand for Gemini CLI; the tests of the
hosts have the real ones."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from readcache import Session
from readcache.cli import firing
from readcache.cli.firing import recorded_proof
from readcache.cli.main import main
from readcache.process.settings import read_settings
from readcache.process.state import default_store
from tests.helpers.files import WATCHDOG, text
from tests.replay.loaded import DATA

pytestmark = pytest.mark.slow  # fires real hooks

# As Gemini CLI does: it runs what the model asks for, has the installed hook look at it, and sends what that says.
HOST = """
import json, os, subprocess, sys, time, urllib.request
home, chat, contents = os.environ["HOME"], os.path.abspath("chat.jsonl"), []
with open(home + "/.gemini/settings.json") as file:
    hook = json.load(file)["hooks"]["AfterTool"][0]["hooks"][0]["command"]
with open(os.path.dirname(sys.argv[0]) + "/environment.json", "w") as file:
    json.dump(dict(os.environ), file)
def ask():
    url = os.environ["GOOGLE_GEMINI_BASE_URL"] + "/v1beta/models/m:generateContent"
    body = json.dumps({"tools": [{}], "contents": contents}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body)) as answer:
        return json.load(answer)["candidates"][0]["content"]["parts"][0]
open(chat, "w").close()
while call := ask().get("functionCall"):
    printed = subprocess.run(call["args"]["command"], shell=True, capture_output=True, text=True).stdout
    shown = "<untrusted_context>\\nOutput: " + printed + "\\n</untrusted_context>"
    event = {"hook_event_name": "AfterTool", "session_id": "s", "transcript_path": chat, "cwd": os.getcwd(),
             "tool_name": call["name"], "tool_input": call["args"], "tool_response": {"llmContent": shown}}
    ran = subprocess.run(hook, shell=True, input=json.dumps(event), capture_output=True, text=True)
    replaced = json.loads(ran.stdout)["reason"] if ran.stdout and HEEDS else shown
    part = {"functionResponse": {"id": str(len(contents)), "response": {"output": replaced}}}
    contents.append({"role": "user", "parts": [part]})
    with open(chat, "a") as file:
        file.write(json.dumps({"id": str(len(contents)), "content": [part]}) + "\\n")
"""
# With a child that holds its streams.
HANGING = "import subprocess, time; subprocess.Popen(['sleep', '600']); print('it waits', flush=True); time.sleep(600)"


@pytest.fixture
def programs(work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that is on PATH. The user has a key, a proxy, and Gemini switched on."""
    found, home = work / "programs", work / "home"
    found.mkdir()
    home.mkdir()
    for name in ("cat", "sh", "sleep"):
        (found / name).symlink_to(str(shutil.which(name)))
    for name, value in {"PATH": found, "HOME": home, "GEMINI_API_KEY": "mine", "HTTPS_PROXY": "http://proxy"}.items():
        monkeypatch.setenv(name, str(value))
    assert main(["init", "gemini"]) == 0
    return found


def put(programs: Path, source: str) -> None:
    (programs / "gemini").write_text(f"#!{sys.executable}\n{source}")
    (programs / "gemini").chmod(0o755)


def said(capfd: pytest.CaptureFixture[str]) -> str:
    """What doctor says of the model's copy, and before that what it is doing. It writes nothing of the user's."""
    files = [Path.home(), Path(os.environ["XDG_STATE_HOME"])]
    before = [(path, path.stat().st_mtime_ns) for top in files for path in sorted(top.rglob("*"))]
    capfd.readouterr()
    assert main(["doctor", "--host", "gemini", "--fire"]) == 0
    assert [(path, path.stat().st_mtime_ns) for top in files for path in sorted(top.rglob("*"))] == before
    told = capfd.readouterr()
    assert told.err == f"readcache: running gemini once with a scripted model (at most {firing.SECONDS:.0f} seconds)\n"
    return told.out.strip().partition("; the model's copy: ")[2]


def test_it_is_proven_by_what_the_model_is_sent(programs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    put(programs, HOST.replace("HEEDS", "True"))
    assert said(capfd) == "proven by a scripted model, which was sent a marker for its second read, had it been on"
    env = json.loads((programs / "environment.json").read_text())
    assert env["HOME"] != os.environ["HOME"]
    assert env["GEMINI_API_KEY"] == "none"
    assert "HTTPS_PROXY" not in env
    assert not Path(env["HOME"]).exists()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (None, "gemini is not on PATH"),
        (
            "print('no such option'); raise SystemExit(2)",
            "gemini read no file twice, and ended with status 2: no such option",
        ),
        (HANGING, "gemini read no file twice, and ran for 2 seconds: it waits"),
    ],
    ids=["absent", "fails", "hangs"],
)
def test_it_is_not_where_it_cannot_be(
    source: str | None, why: str, programs: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if source == HANGING:
        monkeypatch.setattr(firing, "SECONDS", 2.0)
    if source is not None:
        put(programs, source)
    began = time.monotonic()
    line = said(capfd)
    assert line.startswith(f"not proven ({why}")
    assert line.endswith("): have it read a file twice, then run this again")
    assert time.monotonic() - began < WATCHDOG


def test_a_trial_that_failed_is_broken_whatever_an_older_transcript_says(
    programs: Path, work: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(programs, HOST.replace("HEEDS", "False"))
    with Session(work, session_id="12345678-talk", store=default_store(), host="gemini") as session:
        marker = [session.observe("cat f", text()).text for _ in range(2)][1].rstrip()
    rows = [json.loads(line) for line in (DATA / "gemini.jsonl").read_text().splitlines()]
    shown = next(call for row in rows for call in row.get("toolCalls", ()) if call.get("result"))
    shown["result"][0]["functionResponse"]["response"]["output"] = marker
    path = Path.home() / ".gemini/tmp/p/chats/session-2026-11-01T00-00-12345678.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert recorded_proof("gemini", read_settings(os.environ)) == str(path)
    capfd.readouterr()
    assert main(["doctor", "--host", "gemini", "--fire"]) == 1
    line = capfd.readouterr().out
    assert line.startswith(
        "broken  gemini     tried and failed: a scripted model was sent both reads of a file in full, so"
    )
    assert str(path) not in line
    (programs / "gemini").unlink()
    assert main(["doctor", "--host", "gemini", "--fire"]) == 0
    assert capfd.readouterr().out.endswith(f"; the model's copy: proven by {path} (gemini is not on PATH)\n")
