"""A sandbox that has a BASH_ENV of its own keeps it: nvm, conda, CI images."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from readcache.cli.main import main
from tests.shims.sandbox import LINES, Ran, Sandbox, script, start

WAYS = {"agent-shell.sh": "--launch", "agent-command.sh": "--whole-command"}
IMAGE = 'echo "sourced $0 $# $-" >&2\nexport FROM_IMAGE=yes\nof_image=here\ntool() { echo image tool; }\n'
# what the image gives to the agent's shell, to a bash in it, and to a script
COMMAND = (
    "echo $FROM_IMAGE $of_image; tool; cat f; echo $BASH_ENV; bash -c 'tool; echo $BASH_ENV'; bash ./run; "
    "{ compgen -v; compgen -A function; } | grep -c readcache_"
)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    directory = tmp_path / "an image"
    directory.mkdir()
    return script(directory / "env.sh", IMAGE)


def both(sandbox: Sandbox, way: str, value: str, *options: str, **env: str) -> tuple[Ran, Ran]:
    """With shims and without."""
    words = ["bash", *options, "-c", COMMAND]
    out = []
    for named in (
        sandbox.readcache(BASH_ENV=str(sandbox.shims / way), READCACHE_BASH_ENV=value, **env),
        sandbox.env(BASH_ENV=value, **env),
    ):
        sandbox.reset()
        script(sandbox.directory / "run", "tool\n")
        out.append(start(words, named, "pipe", sandbox.directory))
    return out[0], out[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [[], ["-e"], ["-u"], ["-o", "pipefail"]])
def test_it_is_read_once_by_the_agents_shell_and_by_its_children(
    sandbox: Sandbox, image: Path, way: str, options: list[str]
) -> None:
    ours, plain = both(sandbox, way, str(image), *options)
    assert LINES.encode() not in ours.out  # was shown before
    kept = [line for line in ours.out.splitlines() if not line.startswith(b"[")]
    assert kept == plain.out.replace(LINES.encode(), b"").splitlines()
    assert (ours.err, ours.status) == (plain.err, plain.status)
    assert b"image tool" in ours.out


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "value", ["${IMAGE}/env.sh", '$(dirname "$IMAGE/x")/env.sh', '`echo "$IMAGE"`/env.sh', "nowhere"]
)
def test_its_value_is_expanded_as_bash_does_it(sandbox: Sandbox, image: Path, way: str, value: str) -> None:
    ours, plain = both(sandbox, way, value, IMAGE=str(image.parent))
    assert (b"image tool" in ours.out) == (b"image tool" in plain.out) == (value != "nowhere")
    assert ours.err == plain.err


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("words", [["sh", "-c", 'bash -c "$0"; :'], ["bash", "run"]])
def test_a_bash_that_is_not_the_agents_reads_it_as_well(
    sandbox: Sandbox, image: Path, way: str, words: list[str]
) -> None:
    outs = []
    for named in (
        sandbox.readcache(BASH_ENV=str(sandbox.shims / way), READCACHE_BASH_ENV=str(image)),
        sandbox.env(BASH_ENV=str(image)),
    ):
        sandbox.reset()
        (sandbox.directory / "run").write_text("tool; cat f; bash -c tool")
        outs.append(start([*words, "tool; cat f; bash -c tool"], named, "pipe", sandbox.directory))
    assert (outs[0].out, outs[0].err) == (outs[1].out, outs[1].err)


@pytest.mark.parametrize("options", [["--launch"], ["--whole-command"], ["--launch", "--whole-command"]])
def test_env_keeps_it_and_doctor_tells(
    capfd: pytest.CaptureFixture[str],
    sandbox: Sandbox,
    image: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    tmp_path: Path,
) -> None:
    shims = tmp_path / "shims"
    main(["shims", "install", str(shims)])
    for name, value in sandbox.readcache(BASH_ENV=str(image)).items():
        monkeypatch.setenv(name, value)
    capfd.readouterr()
    for _ in range(2):  # a second time, with what the first has set, it is the same
        assert main(["shims", "env", str(shims), *options]) == 0
        told = capfd.readouterr()
        exports = dict(line.removeprefix("export ").split("=", 1) for line in told.out.splitlines())
        for name, value in exports.items():
            monkeypatch.setenv(name, shlex.split(value)[0])
        assert shlex.split(exports["READCACHE_BASH_ENV"]) == [str(image)]
        assert str(image) in told.err
    main(["doctor"])
    line = next(line for line in capfd.readouterr().out.splitlines() if line.split()[1] == "shims")
    assert str(image) in line
    assert str(shims) in line


def test_env_for_a_shell_that_evaluates_it_leaves_bash_env_alone(
    capfd: pytest.CaptureFixture[str], image: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    main(["shims", "install", str(tmp_path / "shims")])
    monkeypatch.setenv("BASH_ENV", str(image))
    capfd.readouterr()
    main(["shims", "env", str(tmp_path / "shims")])
    told = capfd.readouterr()
    assert "BASH_ENV" not in told.out
    assert told.err == ""
