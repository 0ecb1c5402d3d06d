"""What the documents show of a terminal: `demo`, `replay`, and a sandbox with shims in which bash really runs."""

from __future__ import annotations

import contextlib
import io
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from readcache.cli.demo import SESSION_ID, shorten, write_sample
from readcache.cli.main import main
from readcache.core.model.text import split_lines
from tests.docs.tables import TOP
from tests.helpers.files import WATCHDOG

SETTING_UP = ("readcache shims install shims", 'eval "$(readcache shims env shims --launch)"; export READCACHE=on')
PAGE = "docs/commands.md"
COMMANDS = (
    "cat shop.py",
    "sed -n '8,29p' shop.py",
    "sed -n '8,29p' shop.py | wc -l; cat shop.py >copy.py; cmp shop.py copy.py && echo the same",
)

FIRST_COMMANDS = (
    "run cat shop.py",
    "run sed -n '8,29p' shop.py",
    "run sed -n '8,29p' shop.py",
    "verify",
)


def demo_block() -> str:
    """The output of `readcache demo`, as a fenced block."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["demo"]) == 0
    return f"```text\n{out.getvalue()}```\n"


def replay() -> str:
    """What `readcache replay` prints of the transcripts of its tests, as a fenced block."""
    words = ["replay", "tests/replay/data", "--conversation", "clear:12k:10k", "--conversation", "mask:5"]
    done = subprocess.run(
        [sys.executable, "-m", "readcache", *words], cwd=TOP, capture_output=True, text=True, check=True
    )
    return f"```text\n$ readcache {' '.join(words)}\n{done.stdout}```\n"


def first_session() -> str:
    """Return the commands of docs/quickstart.md and what they print, as a fenced block."""
    with tempfile.TemporaryDirectory() as directory:
        write_sample(Path(directory))
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(TOP), "HOME": directory, "COLUMNS": "100"}
        env |= {"READCACHE_SESSION": SESSION_ID, "READCACHE_STORE": f"{directory}/readcache.db"}
        steps = []
        for words in FIRST_COMMANDS:
            command = [sys.executable, "-m", "readcache", *shlex.split(words)]
            done = subprocess.run(command, cwd=directory, env=env, capture_output=True, text=True, check=True)
            steps.append(f"$ readcache {words}\n{_shown(done.stdout)}")
    return "```text\n" + "\n".join(steps).rstrip() + "\n```\n"


def sandbox() -> str:
    """The commands and what is printed, as a fenced block. Where shims do not work, the block as it is."""
    if not _shims_work():
        text = (TOP / PAGE).read_text(encoding="utf-8")
        return text.partition("<!-- generated: sandbox -->\n")[2].partition("<!-- end -->")[0]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        top = Path(directory).resolve()
        write_sample(top)
        steps = "".join(f"$ {command}\n{_shown(printed)}\n" for command, printed in _run(top))
    return "```text\n" + steps.replace(str(top), "/sandbox").rstrip() + "\n```\n"


def _run(top: Path) -> list[tuple[str, str]]:
    """Each command with what it printed. Each is a bash of its own, whose stdout is a pipe."""
    env = {"PATH": f"{top}/bin:/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(TOP), "HOME": str(top)}
    env |= {"READCACHE_SESSION": SESSION_ID, "READCACHE_STORE": f"{top}/readcache.db"}
    (top / "bin").mkdir()
    (top / "bin/readcache").write_text(f'#!/bin/sh\nexec {sys.executable} -m readcache "$@"\n')
    (top / "bin/readcache").chmod(0o755)
    printed = _bash(f"{SETTING_UP[0]}; {SETTING_UP[1]}; env -0 >environment", top, env)
    env = dict(entry.split("=", 1) for entry in (top / "environment").read_text().split("\0") if entry)
    answers = [(f'bash -c "{command}"', _bash(command, top, env)) for command in COMMANDS]
    return [*zip(SETTING_UP, (printed, ""), strict=True), *answers]


def _bash(command: str, top: Path, env: dict[str, str]) -> str:
    words = ["bash", "-c", command]
    done = subprocess.run(words, cwd=top, env=env, capture_output=True, text=True, check=True, timeout=WATCHDOG)
    return done.stdout + done.stderr


def _shown(printed: str) -> str:
    return "".join(line + "\n" for line in shorten(split_lines(printed)))


def _shims_work() -> bool:
    try:
        return "\nino:" in Path("/proc/self/fdinfo/0").read_text(encoding="ascii")
    except OSError:
        return False
