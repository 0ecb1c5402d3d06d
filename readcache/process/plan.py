"""Plan one call that another process makes. `readcache run`, the shims and the server share this decision.

Only the text of the call decides, and nothing is run here. The caller reports the facts of its machine: if its stdout
can be buffered, and if a name leads into /proc.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from readcache.core.shell.prefilter import may_matter
from readcache.process.settings import INSIDE, Settings, clip_sizes, read_settings

if TYPE_CHECKING:
    from readcache.core.model.call import Call
    from readcache.core.model.claims import Reading

SINK = "READCACHE_SINK"  # "PID mnt_id:N ino:N [at:TIME] KIND SHELL", see shims/agent-shell.sh
SHIMS = "shims"  # the host, if none was named
KINDS = ("tool", "command", "run")
RUN = "readcache-run"  # the shim that runs a whole command


class Caller(NamedTuple):
    """A process's description of the call that it is about to make."""

    kind: str  # one of KINDS: a tool (from the agent's shell), a whole command (from a shell), a harness's `run`
    words: Sequence[str]  # the tool and its arguments; for other kinds, only the command
    cwd: str
    environ: Mapping[str, str]
    can_buffer: bool = True  # its stdout may be buffered
    line: Sequence[str] = ()  # the command line of the shell that calls a tool; empty if the shell became the tool


class Plan(NamedTuple):
    """One call: the reads and writes that its text suggests, and if its output is buffered and judged."""

    caller: Caller
    settings: Settings
    command: str
    reading: Reading
    is_buffered: bool
    is_recall: bool = False

    def text(self, output: bytes) -> str | None:
        """Return the call's output as text; None if it must be shown unchanged."""
        text = output.decode("utf-8", "replace")
        is_exact = "\ufffd" not in text or text.encode() == output
        return text if is_exact or self.caller.kind != "tool" else None  # other bytes do not survive next to a marker

    def call(self, text: str, status: int, call_id: str | None = None) -> Call:
        """Return the call that printed `text` and ended with `status`, negative for a signal."""
        from readcache.core.model.call import MADE_UP_ID, command_call
        from readcache.core.model.reply import Reason

        return command_call(
            call_id or MADE_UP_ID + os.urandom(6).hex(),
            self.command,
            self.caller.cwd,
            text,
            self.reading,
            exit_code=status,
            batch=self.settings.batch,
            skip_reason=Reason.KILLED if status < 0 else None,
        )


def plan_call(caller: Caller, is_virtual: Callable[[str], bool], settings: Settings | None = None) -> Plan | None:
    """Return the plan of a call. Return None if nothing must be done, or if planning fails. `settings`: by default,
    they are read from the caller's environment."""
    settings = settings or _settings_of(caller)
    try:
        return _plan(caller, settings, is_virtual) if settings.acts and caller.kind in KINDS else None
    except OSError:  # the directory is gone, which is not a failure of readcache
        pass
    except Exception as error:
        from readcache.process import failures

        failures.note_error(settings.session, error)
    return None


def _settings_of(caller: Caller) -> Settings:
    settings = read_settings(caller.environ)
    if caller.kind != "run" and settings.mode == "on" and not caller.environ.get("READCACHE"):
        settings = settings._replace(mode="advise")  # it is unknown if compactions are reported
    if caller.kind == "tool":
        # The agent made the call when its shell started, so text that was logged later cannot be a source.
        settings = settings._replace(began=min(settings.began, _began(caller.environ.get(SINK, ""), settings.began)))
    return settings._replace(host=settings.host or (SHIMS if caller.kind == "tool" else "run"))


def _began(sink: str, now: float) -> float:
    """Return the time at which the shell of one command started. Return `now` for a shell that stays, and if bash does
    not report the time."""
    at = re.search(r" at:(\d+)[.,](\d+) .*\bcommand ", sink)
    return float(f"{at[1]}.{at[2]}") if at else now


def _plan(caller: Caller, settings: Settings, is_virtual: Callable[[str], bool]) -> Plan | None:
    """Return the plan of a call; None if nothing must be done.

    A tool is buffered only if it certainly prints lines of files and nothing else. If a command is not buffered, its
    writes may still be logged. Raise UsageError for invalid settings.
    """
    is_tool = caller.kind == "tool"
    command = shlex.join(caller.words) if is_tool else caller.words[0]
    if not (_is_agents_tool(caller, settings, command) if is_tool else _is_agents_command(caller, settings, command)):
        return None
    from readcache.core.shell.read import read_command

    reading = read_command(command, caller.cwd)
    is_buffered = bool(reading.keys) and (reading.only_reads if is_tool else caller.can_buffer)
    is_buffered = is_buffered and not any(map(is_virtual, reading.keys))
    is_recall = not is_tool and caller.can_buffer and _is_recall(command)
    is_buffered = is_buffered or is_recall
    if not is_buffered and (is_tool or not reading.writes):
        return None
    batch = settings.batch or (_batch_of(caller.environ[SINK]) if is_tool else "")
    return Plan(caller, settings._replace(batch=batch), command, reading, is_buffered, is_recall)


def _is_recall(command: str) -> bool:
    if "readcache recall" not in command:  # most commands: the import takes longer than all else here
        return False
    from readcache.core.sync.recall import asked_recall

    return asked_recall(command) is not None


def _is_agents_command(caller: Caller, settings: Settings, command: str) -> bool:
    """Return True for a command that may matter, unless another wrapped command runs it. Raise UsageError for an
    invalid `clip`."""
    if caller.environ.get(INSIDE, "") == settings.context or not may_matter(command):
        return False
    clip_sizes(settings.clip)  # raises for invalid sizes: without them, the visible part of an output is unknown
    return True


def _is_agents_tool(caller: Caller, settings: Settings, command: str) -> bool:
    """Return True for a tool that may be judged by itself.

    Return False if the harness truncates outputs, because only a plan for the whole command knows what is truncated.
    Return False if a name in the call is not UTF-8. Also return False if the calling shell, by its command line, runs a
    script, or a command whose output a harness parses.
    """
    if settings.clip:
        return False
    try:
        (caller.cwd + command).encode()
    except UnicodeEncodeError:  # a marker cannot contain names that are not UTF-8
        return False
    if not caller.line:
        return True
    from readcache.core.model.policy import is_answer

    has_command = any(re.fullmatch("-[a-z]*c", word) for word in caller.line[1:3])
    if caller.environ[SINK].endswith(" command sh") and not has_command:
        return False  # a script, whose other output is unknown; for bash, agent-shell.sh checks this
    return not any(map(is_answer, caller.line))


def _batch_of(sink: str) -> str:
    """Return the batch of a tool's call. The reads of one command share a batch, because they are delivered together.
    In a shell that stays, each command counts by itself."""
    return f"shell {sink}" if sink.split()[-2] == "command" else ""
