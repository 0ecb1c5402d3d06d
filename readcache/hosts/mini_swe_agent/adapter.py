"""mini-swe-agent's YAML files: which ones it reads, and which one `readcache init mini-swe-agent` writes.

`mini` reads the file that $MSWEA_MINI_CONFIG_PATH names; its own `.env` may set that variable. Otherwise it reads a
file that comes with it. `-c FILE` names any number of other files, and the later ones win. So readcache writes a file
of its own, which must be named last.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from readcache import ReadcacheError
from readcache.hosts.host import Host, InstallTarget, OwnFile

MODEL = "readcache.hosts.mini_swe_agent.ReadcacheModel"
NAMED = "MSWEA_MINI_CONFIG_PATH"
WHY = "mini gives the whole message list to its model class before each call, so that what left it is known"


def _directory(target: InstallTarget) -> Path:
    """Return mini's own directory, as platformdirs names it."""
    if given := target.environment.get("MSWEA_GLOBAL_CONFIG_DIR"):
        return Path(given)
    base = "Library/Application Support" if sys.platform == "darwin" else ".config"
    return Path(target.environment.get("XDG_CONFIG_HOME") or Path(target.home, base), "mini-swe-agent")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _users_file(target: InstallTarget) -> Path | None:
    """Return the user's YAML file that mini reads, or None if there is none.

    In a project it is `mini.yaml`, because `mini -c mini.yaml` looks there first. Otherwise the environment or mini's
    `.env` names it.
    """
    if not target.is_user:
        return path if (path := Path(target.root, "mini.yaml")).is_file() else None
    noted = re.findall(
        rf"^(?:export\s+)?{NAMED}\s*=\s*(['\"]?)(.+?)\1\s*$", _text(_directory(target) / ".env"), re.MULTILINE
    )
    given = target.environment.get(NAMED) or (noted[-1][1] if noted else "")
    return path if given and (path := Path(target.root, given)).is_file() else None


def _changes(target: InstallTarget) -> Sequence[OwnFile]:
    path = _users_file(target)
    found = re.search(r"^[^#\n]*\bmodel_class:\s*[\"']?([\w.]+)", _text(path), re.MULTILINE) if path else None
    own = {"mode": target.mode} | ({} if target.policy == "default" else {"policy": target.policy})
    own |= {"protected": target.protected.replace("'", "''")} if target.protected else {}
    # Only the last file's model class counts, so it names the user's model class as the inner one.
    own |= {"model_class": found[1]} if found and found[1] != MODEL else {}
    lines = "".join(f"    {key}: '{value}'\n" for key, value in own.items())
    header = f"# Made by readcache init. Name it last: mini -c {path.name if path else 'mini.yaml'} -c "
    overlay = _overlay(target)
    header += str(overlay) if target.is_user else overlay.name  # a team may share it: no path of this machine
    return [OwnFile(str(overlay), f"{header}\nmodel:\n  model_class: {MODEL}\n  readcache:\n{lines}")]


def _overlay(target: InstallTarget) -> Path:
    return (_directory(target) if target.is_user else Path(target.root)) / "readcache.yaml"


def _in_force(target: InstallTarget) -> str:
    program = shutil.which("mini", path=target.environment.get("PATH"))
    first = _text(Path(program)).partition("\n")[0] if program else ""
    if not first.startswith("#!"):
        raise ReadcacheError("mini is not on PATH, or is not a Python program")
    asked = "import minisweagent, readcache.hosts.mini_swe_agent; print(minisweagent.__version__)"
    env = {**os.environ, **target.environment, "MSWEA_SILENT_STARTUP": "1"}
    done = subprocess.run([first[2:].strip(), "-c", asked], capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        raise ReadcacheError(f"{first[2:].strip()}, which runs mini, cannot import readcache: install it there")
    return f"mini-swe-agent {done.stdout.strip()}, where mini is told to read it: -c mini.yaml -c {_overlay(target)}"


HOST = Host(
    name="mini-swe-agent",
    mode="on",
    why=WHY,
    changes=_changes,
    in_force=_in_force,
    keeps=False,
    program="mini",
    todo=lambda target: f"name the file to mini each time: mini -c mini.yaml -c {_overlay(target)}",
)
