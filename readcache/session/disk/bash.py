"""Run a command with bash as a harness's tool does: stdin is closed, and stderr is in order with stdout."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping

from readcache.core.model.reply import Reason
from readcache.session.disk.files import ToolOutput

# Exit statuses of coreutils' `timeout` and `env --chdir` for the same two events.
TIMED_OUT_STATUS = 124
NOT_RUN_STATUS = 125
# Bytes. Endless output under a timeout ends here, before it fills the harness's memory.
MOST_BYTES = 256 * 1024 * 1024
LOOK_SECONDS = 0.05  # between two checks if the time is over, or `stop` is set


def run_bash(
    command: str,
    *,
    cwd: str,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    stop: threading.Event | None = None,
) -> ToolOutput:
    """Run `command`. `timeout` is in seconds. Never raise for anything that the command or its environment does.

    The exit status is as in `subprocess`: negative if a signal ended the command. After a timeout, the command and
    its children are killed, and the status is 124. The output is everything printed until then. The same happens when
    `stop` is set.
    """
    try:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that a timeout can kill the children too
        )
    except OSError as error:
        return _not_run(f" in {cwd}: {error.strerror or error}")
    except ValueError as error:  # NUL or a lone surrogate in the command
        return _not_run(f": the command cannot be passed to it: {error}")
    with process:
        try:
            if timeout is None and stop is None:
                output, late = process.communicate()[0], False
            else:
                deadline = math.inf if timeout is None else time.monotonic() + timeout
                output, late = _wait(process, deadline, stop or threading.Event())
        except BaseException:
            _kill(process)
            raise
    text = output.decode("utf-8", "replace")
    if late:
        return ToolOutput(text, TIMED_OUT_STATUS, Reason.TIMED_OUT)
    return ToolOutput(text, process.returncode, Reason.KILLED if process.returncode < 0 else None)


def _wait(process: subprocess.Popen[bytes], deadline: float, stop: threading.Event) -> tuple[bytes, bool]:
    """Return (output, True if the command was killed). It is killed when the time is over, when `stop` is set, or if
    it prints more than MOST_BYTES under a timeout."""
    while True:
        try:
            left = max(0.0, deadline - time.monotonic())
            return process.communicate(timeout=min(LOOK_SECONDS, left))[0], False
        except subprocess.TimeoutExpired as error:
            printed = error.output or b""
            is_too_much = len(printed) > MOST_BYTES and not math.isinf(deadline)
            if is_too_much or stop.is_set() or time.monotonic() >= deadline:
                _kill(process)
                with contextlib.suppress(subprocess.TimeoutExpired):  # a child outside the group keeps the pipe open
                    return process.communicate(timeout=LOOK_SECONDS)[0], True
                return printed, True


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _not_run(why: str) -> ToolOutput:
    return ToolOutput(f"readcache: bash was not started{why}\n", NOT_RUN_STATUS, Reason.NOT_RUN)
