"""Takes from a host's plugin what it needs, before a conversation or in the middle: the agent loses nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import readcache
from readcache.testing.hosts import Bash, Seen, Step
from readcache.testing.requests import markers

CAT, HEAD, TAIL = Bash("cat shop.py"), Bash("sed -n '1,40p' shop.py"), Bash("sed -n '21,60p' shop.py")
DEADLINE = 2  # seconds that the client waits for an answer


def stale_markers(seen: Sequence[Seen]) -> list[str]:
    """Markers in requests that hold the 30th line nowhere: every marker of these conversations stands for it."""
    texts = [one.texts for one in seen]
    found = [m for each in texts for text in each for m in markers(text) if "number 30 of" not in "".join(each)]
    return [marker for marker in found if not marker.startswith("[GONE ")]


class Environment:
    """A readcache of its own in `directory`, to be taken away, with the state directory of the user `home`."""

    def __init__(self, directory: Path, home: Path) -> None:
        self.directory, self._state, self._pids = (
            directory / "venv",
            home / ".local/state/readcache",
            directory / "pids",
        )
        shutil.copytree(Path(readcache.__file__).parent, self.directory / "readcache", dirs_exist_ok=True)
        script = f"""
import os, sys
sys.path.insert(0, {str(self.directory)!r})
open({str(self._pids)!r}, "a").write(f"{{os.getpid()}} ")
from readcache.cli.start import start_command_line
start_command_line()
"""
        (self.directory / "start.py").write_text(script)
        self.program = (sys.executable, str(self.directory / "start.py"))

    def lose(self, what: str) -> None:
        """Takes away "the environment", "the state" or "the server", or lets "a server that hangs" hang."""
        if what == "the environment":
            shutil.rmtree(self.directory)
        elif what == "the state":
            shutil.rmtree(self._state, ignore_errors=True)
            self._state.parent.mkdir(parents=True, exist_ok=True)
            self._state.write_text("in its place")
        else:
            os.kill(int(self._pids.read_text().split()[-1]), signal.SIGSTOP if "hangs" in what else signal.SIGKILL)
            time.sleep(0.2)

    def check(self, what: str, when: str, run_steps: Callable[[Sequence[Step]], list[Seen]], real: str) -> None:
        """Holds a conversation about the file with the text `real`, and takes `what` away "before" it or "after"
        its first half."""
        lines, early, late = real.splitlines(keepends=True), [(CAT,), (HEAD,)], [(TAIL,), (CAT,), (HEAD,), (TAIL,)]
        if when == "before":
            self.lose(what)
        seen = run_steps(early)
        assert bool(markers(seen[1].results[0])) == (when == "after")
        if when == "after":
            self.lose(what)
        began = time.monotonic()
        seen += run_steps(late)
        assert time.monotonic() - began < 15 + DEADLINE, "it waits once"
        assert not stale_markers(seen)
        whole = {CAT: real, HEAD: "".join(lines[:40]), TAIL: "".join(lines[20:])}
        for (call,), one in zip([*early, *late], seen, strict=True):
            assert markers(one.results[0]) or one.results[0] == whole[call]
        if what != "the server":  # which is started again
            assert when == "after" or not any(markers(text) for one in seen for text in one.texts)
        for process in self._pids.read_text().split() if self._pids.exists() else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)


LOSSES = [(what, when) for what in ("the environment", "the state") for when in ("before", "after")]
LOSSES += [("the server", "after"), ("a server that hangs", "after")]
