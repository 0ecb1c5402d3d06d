"""Where mini-swe-agent is switched on: which file, which lines, and what `doctor` finds there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from readcache import ReadcacheError
from readcache.hosts import find_host
from readcache.hosts.host import InstallTarget, OwnFile
from readcache.hosts.mini_swe_agent.adapter import MODEL

HOST = find_host("mini-swe-agent")
assert HOST.in_force is not None
in_force = HOST.in_force


def target(home: Path, *, is_user: bool = False, **environment: str) -> InstallTarget:
    environment = {"MSWEA_GLOBAL_CONFIG_DIR": str(home / "mini-swe-agent"), **environment}
    return InstallTarget(str(home / "project"), str(home), is_user, ("readcache",), "on", "default", environment)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "mini-swe-agent").mkdir()
    return tmp_path


@pytest.mark.parametrize("is_user", [False, True])
def test_where_mini_reads_its_own_file_ours_is_to_be_named_beside_it(home: Path, is_user: bool) -> None:
    (made,) = HOST.changes(target(home, is_user=is_user))
    assert isinstance(made, OwnFile)
    assert made.path == str(home / ("mini-swe-agent" if is_user else "project") / "readcache.yaml")
    assert f"mini -c mini.yaml -c {made.path if is_user else 'readcache.yaml'}\n" in made.text
    assert f"model:\n  model_class: {MODEL}\n  readcache:\n    mode: 'on'\n" in made.text


@pytest.mark.parametrize(
    "text",
    [
        "model:\n  model_name: m\n  model_class: 'litellm_textbased'\n",
        "model: {model_name: m, model_class: litellm_textbased}\n",
        "model:\n  # model_class: mine\n  model_class: litellm_textbased\n",
    ],
)
def test_a_model_class_of_the_users_goes_inside_ours(home: Path, text: str) -> None:
    path = home / "project/mini.yaml"
    path.write_text(text)
    (made,) = HOST.changes(target(home))
    assert isinstance(made, OwnFile)
    assert made.text.endswith("    model_class: 'litellm_textbased'\n")


def test_the_users_directory_is_where_platformdirs_has_it(home: Path) -> None:
    at = InstallTarget("/p", str(home), True, ("readcache",), "on", "default", {"XDG_CONFIG_HOME": str(home / "xdg")})
    (made,) = HOST.changes(at)
    assert made.path == str(home / "xdg/mini-swe-agent/readcache.yaml")
    (made,) = HOST.changes(at._replace(environment={}))
    base = "Library/Application Support" if sys.platform == "darwin" else ".config"
    assert made.path == str(home / base / "mini-swe-agent/readcache.yaml")


def mini(home: Path, python: str) -> str:
    """The directory of a `mini` that this Python runs."""
    program = home / "bin/mini"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{python}\n")
    program.chmod(0o755)
    (home / "project/readcache.yaml").write_text(f"model:\n  model_class: {MODEL}\n")
    return str(program.parent)


def test_where_mini_cannot_import_us_it_is_not_in_force(home: Path) -> None:
    with pytest.raises(ReadcacheError, match="install it there"):
        in_force(target(home, PATH=mini(home, "/bin/false")))


def test_where_there_is_no_mini_it_is_not_in_force(home: Path) -> None:
    mini(home, sys.executable)
    with pytest.raises(ReadcacheError, match="not on PATH"):
        in_force(target(home, PATH=str(home)))


def test_where_mini_can_import_us_its_version_is_told(home: Path) -> None:
    (home / "minisweagent.py").write_text("__version__ = '2.4.6'\n")
    packages = f"{home}:{Path(__file__).parents[2]}"
    found = in_force(target(home, PYTHONPATH=packages, PATH=mini(home, sys.executable)))
    assert found.startswith("mini-swe-agent 2.4.6, ")
    assert "-c mini.yaml -c " in found
