"""Where mini-swe-agent reads its YAML, and what `readcache init mini-swe-agent` puts there.

`mini` reads the file that $MSWEA_MINI_CONFIG_PATH names, which its own `.env` may set, or else one that comes with it;
`-c FILE` names any number of others, and the later ones win. So we write a file of our own, to be named last.
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
from readcache.hosts.host import Host, OwnFile, Where

MODEL = "readcache.hosts.mini_swe_agent.ReadcacheModel"
NAMED = "MSWEA_MINI_CONFIG_PATH"
WHY = "mini gives the whole message list to its model class before each call, so that what left it is known"


def _directory(where: Where) -> Path:
    """mini's own directory, as platformdirs names it."""
    if given := where.environment.get("MSWEA_GLOBAL_CONFIG_DIR"):
        return Path(given)
    base = "Library/Application Support" if sys.platform == "darwin" else ".config"
    return Path(where.environment.get("XDG_CONFIG_HOME") or Path(where.home, base), "mini-swe-agent")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _users_file(where: Where) -> Path | None:
    """The user's YAML file that mini reads: `mini.yaml` in the project (`mini -c mini.yaml` looks there first), or the
    one named by the environment or by mini's `.env`."""
    if not where.is_user:
        return path if (path := Path(where.root, "mini.yaml")).is_file() else None
    noted = re.findall(
        rf"^(?:export\s+)?{NAMED}\s*=\s*(['\"]?)(.+?)\1\s*$", _text(_directory(where) / ".env"), re.MULTILINE
    )
    given = where.environment.get(NAMED) or (noted[-1][1] if noted else "")
    return path if given and (path := Path(where.root, given)).is_file() else None


def _changes(where: Where) -> Sequence[OwnFile]:
    path = _users_file(where)
    found = re.search(r"^[^#\n]*\bmodel_class:\s*[\"']?([\w.]+)", _text(path), re.MULTILINE) if path else None
    own = {"mode": where.mode} | ({} if where.policy == "default" else {"policy": where.policy})
    own |= {"protected": where.protected.replace("'", "''")} if where.protected else {}
    # Two files cannot both have a model class: the user's goes inside ours.
    own |= {"model_class": found[1]} if found and found[1] != MODEL else {}
    lines = "".join(f"    {key}: '{value}'\n" for key, value in own.items())
    told = f"# Made by readcache init. Name it last: mini -c {path.name if path else 'mini.yaml'} -c "
    overlay = _overlay(where)
    told += str(overlay) if where.is_user else overlay.name  # of a file that a team shares, no path of this machine
    return [OwnFile(str(overlay), f"{told}\nmodel:\n  model_class: {MODEL}\n  readcache:\n{lines}")]


def _overlay(where: Where) -> Path:
    return (_directory(where) if where.is_user else Path(where.root)) / "readcache.yaml"


def _in_force(where: Where) -> str:
    program = shutil.which("mini", path=where.environment.get("PATH"))
    first = _text(Path(program)).partition("\n")[0] if program else ""
    if not first.startswith("#!"):
        raise ReadcacheError("mini is not on PATH, or is not a Python program")
    asked = "import minisweagent, readcache.hosts.mini_swe_agent; print(minisweagent.__version__)"
    env = {**os.environ, **where.environment, "MSWEA_SILENT_STARTUP": "1"}
    done = subprocess.run([first[2:].strip(), "-c", asked], capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        raise ReadcacheError(f"{first[2:].strip()}, which runs mini, cannot import readcache: install it there")
    return f"mini-swe-agent {done.stdout.strip()}, where mini is told to read it: -c mini.yaml -c {_overlay(where)}"


HOST = Host(
    name="mini-swe-agent",
    mode="on",
    why=WHY,
    changes=_changes,
    in_force=_in_force,
    keeps=False,
    todo=lambda where: f"name the file to mini each time: mini -c mini.yaml -c {_overlay(where)}",
)
