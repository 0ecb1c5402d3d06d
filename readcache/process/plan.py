"""What is done about one call that another process makes: the one decision that `readcache run`, the shims and the
server share.

Only the words of the call decide; nothing is run here. The caller answers what depends on its machine: whether a name
leads into /proc, and whether its stdout can be buffered.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from readcache.process.settings import Settings, clip_sizes, read_settings
from readcache.shell.prefilter import may_matter

if TYPE_CHECKING:
    from readcache.model.call import Call
    from readcache.model.claims import Reading

SINK = "READCACHE_SINK"  # "PID mnt_id:N ino:N [at:TIME] KIND SHELL", see shims/agent-shell.sh
SHIMS = "shims"  # the host, if none was named
RUN = "readcache-run"  # among the shims, the program that runs a whole command


def settings_of(env: Mapping[str, str], kind: str) -> Settings:
    """The settings of a call that shims make: of one tool ("tool"), of a whole command by a shell ("command"), or by a
    harness ("run")."""
    settings = read_settings(env)
    if kind != "run" and settings.mode == "on" and not env.get("READCACHE"):
        settings = settings._replace(mode="advise")  # nobody says that compactions are reported
    if kind == "tool":
        # The agent made the call when its shell began: what was logged since was not there to be pointed at.
        settings = settings._replace(began=min(settings.began, _began(env[SINK], settings.began)))
    return settings._replace(host=settings.host or (SHIMS if kind == "tool" else "run"))


def _began(sink: str, now: float) -> float:
    """When the shell of one command began; `now` for a shell that stays, and where bash does not tell."""
    at = re.search(r" at:(\d+)[.,](\d+) .*\bcommand ", sink)
    return float(f"{at[1]}.{at[2]}") if at else now


class Plan(NamedTuple):
    """One call: what it is believed to read and write, and whether its output is buffered and judged."""

    command: str
    cwd: str
    reading: Reading  # before the exit status is known
    is_held: bool
    batch: str
    is_tool: bool = False  # its output is judged only if it is UTF-8: no other bytes come through beside a marker

    def text(self, output: bytes) -> str | None:
        """The call's output as text; None for one that must be shown as it is."""
        text = output.decode("utf-8", "replace")
        return None if self.is_tool and "\ufffd" in text and text.encode() != output else text

    def call(self, text: str, status: int, call_id: str | None = None) -> Call:
        """The call that printed `text` and ended with `status`, negative for a signal."""
        from readcache.model.call import command_call
        from readcache.model.events import MADE_UP_ID
        from readcache.model.reply import Reason

        reading = self.reading
        if status and not self.is_tool:  # a failed command may have written less
            from readcache.shell.read import read_command

            reading = read_command(self.command, self.cwd, status)
        return command_call(
            call_id or MADE_UP_ID + os.urandom(6).hex(),
            self.command,
            self.cwd,
            text,
            reading,
            exit_code=status,
            batch=self.batch,
            trouble=Reason.KILLED if status < 0 else None,
        )


def planned(settings: Settings, make: Callable[[], Plan | None]) -> Plan | None:
    """What `make` gives; None, so that nothing is done, where it fails."""
    try:
        return make()
    except OSError:  # the directory is gone, stdout is closed, the caller is another user's: not our failure
        return None
    except Exception as error:
        from readcache.process import failures

        failures.note_error(settings.session, error)
        return None


def plan_command(
    command: str,
    cwd: str,
    settings: Settings,
    *,
    inside: str,
    can_hold: Callable[[], bool],
    is_virtual: Callable[[str], bool],
) -> Plan | None:
    """What is done about a whole command: its output is held, or (`is_held` false) only its writes are logged. None:
    nothing. `inside`: the caller's READCACHE_INSIDE. UsageError for settings that mean nothing."""
    if not settings.acts or inside == settings.context or not may_matter(command):
        return None
    clip_sizes(settings.clip)  # what cannot be understood here leaves nothing to be relied on
    from readcache.shell.read import read_command

    reading = read_command(command, cwd, None)
    is_held = bool(reading.keys) and not any(map(is_virtual, reading.keys)) and can_hold()
    return Plan(command, cwd, reading, is_held, settings.batch) if is_held or reading.writes else None


def plan_tool(
    words: Sequence[str], cwd: str, settings: Settings, sink: str, *, is_virtual: Callable[[str], bool]
) -> Plan | None:
    """What is done about one tool that the agent's own shell calls. None: nothing, also in doubt whether it prints
    lines of files and nothing else. `sink`: the caller's `SINK`."""
    if not settings.acts or settings.clip:  # if the harness cuts outputs, only `plan_command` knows what is cut
        return None
    from readcache.model.claims import FileLines, Literal
    from readcache.shell.read import read_command

    command = shlex.join(words)
    try:
        (cwd + command).encode()
    except UnicodeEncodeError:  # names that are not UTF-8 cannot be told to a model
        return None
    reading = read_command(command, cwd, None)
    is_sure = reading.keys and not reading.writes and all(isinstance(c, (FileLines, Literal)) for c in reading.claims)
    if not is_sure or any(map(is_virtual, reading.keys)):
        return None
    return Plan(command, cwd, reading, True, settings.batch or _batch_of(sink), is_tool=True)


def is_own_command(sink: str, caller: Sequence[str]) -> bool:
    """False where the shell that called, by its command line, runs a script, or a command whose output a harness
    parses. `sink`: what it wrote down."""
    from readcache.shell.never import is_answer

    if sink.endswith(" command sh") and not any(re.fullmatch("-[a-z]*c", word) for word in caller[1:3]):
        return False  # a script: what else it prints is not known; bash has told it in agent-shell.sh
    return not any(is_answer(word) for word in caller)


def _batch_of(sink: str) -> str:
    """The reads of one command are delivered at once. In a shell that stays, each command counts by itself."""
    return f"shell {sink}" if sink.split()[-2] == "command" else ""
