"""Check that an enabled host really runs readcache: its settings name a readcache program that exists and answers.

`two_reads` makes up a conversation to try a hook with: one file is read twice, and the hook must shorten the second.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from readcache import ReadcacheError
from readcache.hosts.host import Host, InstallTarget
from readcache.hosts.settings_files.switch import Switch

_PATIENCE = 30.0  # seconds for the readcache program to answer


def check_host(
    host: Host, target: InstallTarget, memory: str, also: Callable[[InstallTarget], str] | None = None
) -> str:
    """Return a sentence about how the host is enabled. Raise ReadcacheError, with the problem and its solution, if it
    is not.

    `also`: if given, the sentence reports a trial of the hook, too, and ends with the result of `also` for the install
    target as it was switched on.
    """
    scope, again = target.scope_option(), f"readcache init {host.name} {target.scope_option()}"
    switch = Switch(host, target, memory)
    found = switch.as_remembered()
    if not Switch(host, found, memory).is_on():
        what = "its settings are of another version, or were edited" if switch.is_known() else "it is not switched on"
        raise ReadcacheError(f"{what}: run `{again}`")
    said = f"{found.mode}{f', policy {found.policy}' if found.policy != 'default' else ''} ({scope})"
    if found.mode == "off":
        return said
    _run([*target.program, "--version"], "", {})
    trial = "it has no hook to fire" if host.hook is None else _try_hook(host, found)
    said = f"{said}: {host.in_force(found)}" if host.in_force is not None else said
    return said if also is None else f"{said}; {trial}; {also(found)}"


def _try_hook(host: Host, target: InstallTarget) -> str:
    """Run the hook as the host does, on events of a made-up conversation. Return what it did. Raise ReadcacheError if
    it fails."""
    words = target._replace(mode="on").words("hook", host.name)
    with tempfile.TemporaryDirectory() as directory:
        alone = {"READCACHE_STORE": os.path.join(directory, "trial.db"), "XDG_STATE_HOME": directory, "READCACHE": "on"}
        alone["READCACHE_SERVER"] = "off"
        if _run(words, "{}", alone):
            raise ReadcacheError(f"`{' '.join(words)}` answers an empty event: reinstall readcache")
        answers = [_run(words, json.dumps(event), alone) for event in host.trial(directory)]
        if answers and not answers[-1]:
            noted = Path(directory, "readcache", "failures.log")
            why = f" ({' '.join(noted.read_text(errors='replace').split())})" if noted.exists() else ""
            raise ReadcacheError(f"the hook did not answer a trial event{why}: reinstall readcache")
    return "fired: it shortened a second read" if answers else "fired: it answers an empty event"


def _run(words: Sequence[str], text: str, environment: Mapping[str, str]) -> str:
    """Return the program's output. Raise ReadcacheError if it does not run, or fails."""
    env: dict[str, Any] = {key: value for key, value in os.environ.items() if not key.startswith("READCACHE")}
    try:
        done = subprocess.run(
            words, input=text, env=env | {**environment}, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        is_shared = os.path.basename(words[0]) == words[0]
        todo = "put it on PATH" if is_shared else "run init again with the installed readcache"
        raise ReadcacheError(f"{words[0]} does not run: {error}; {todo}") from None
    if done.returncode:
        last = " ".join(done.stderr.split()[-30:])
        raise ReadcacheError(f"{' '.join(words)} ends with status {done.returncode}: {last}; reinstall readcache")
    return done.stdout


TEXT = "".join(f"line {number} of a file that is read twice\n" for number in range(40))
Entries = Callable[[str], Sequence[object]]


def two_reads(directory: str, event: Mapping[str, Any], asked: Entries, shown: Entries) -> list[dict[str, Any]]:
    """Return two events for the hook. For each, write the host's transcript into `directory` as it would be at that
    moment.

    `asked` and `shown` return its entries for a call and for a result. `event` has the fields that both events share.
    """
    entries, events = list[object](), list[dict[str, Any]]()
    for name in ("one", "two"):
        path = os.path.join(directory, f"{name}.jsonl")
        entries += asked(name)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)
        entries += shown(name)
        whose = {"session_id": "trial", "transcript_path": path, "cwd": directory, "tool_use_id": name}
        events.append({**whose, "tool_response": TEXT, **event})
    return events
