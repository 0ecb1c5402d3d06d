"""A process that hangs: it has stopped, and can be killed or continued."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def hang(pid: int) -> None:
    """Stop a process, and wait until all of its threads have stopped: one of them handles SIGSTOP, and on a busy
    machine another may serve a call meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    while Path("/proc/self").exists() and not all(map(_has_stopped, Path(f"/proc/{pid}/task").iterdir())):
        time.sleep(0.01)


def _has_stopped(thread: Path) -> bool:
    try:
        return (thread / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"
    except (FileNotFoundError, ProcessLookupError):  # it has ended
        return True
