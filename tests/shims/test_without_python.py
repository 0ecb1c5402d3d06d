"""A sandbox without Python and without bash: a busybox, the directory of the client, and a server on the host."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from readcache.cli import shim_files
from readcache.cli.main import main
from tests.shims.sandbox import LINES, OTHER, PATIENT, Sandbox, make_client, make_sandbox, served, start

pytestmark = pytest.mark.slow  # sandboxes without Python

APPLETS = ("sh", "cat", "head", "tail", "sed", "nl", "sleep", "wc", "env", "mkdir")
MARKER = "[FILE_UNCHANGED "


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Shims with a client."""
    top = tmp_path_factory.mktemp("static")
    return make_sandbox(top, make_client(top / "client", PATIENT))


def inside(root: Path, bound: Path) -> list[str]:
    """What starts a command in the root directory of a sandbox, with `bound` where it is on the host, and /proc. Skips
    where that is not possible."""
    mount, chroot = (shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") for name in ("mount", "chroot"))
    directory, top = shlex.quote(f"{root}{bound}"), shlex.quote(str(root))
    script = (
        f"{mount} --bind {shlex.quote(str(bound))} {directory} && {mount} --bind /dev/null {top}/dev/null && "
        f"{mount} -t proc proc {top}/proc || exit 99; "
        f'cd / && exec {chroot} {top} "$@"'
    )
    for user in ([], ["-Ur"]):
        words = ["unshare", *user, "-mpf", "sh", "-c", script, "-"]
        if shutil.which("unshare") and subprocess.run([*words, "/bin/true"], capture_output=True).returncode == 0:
            return words
    pytest.skip("no file systems of one's own can be mounted here")


def in_bubblewrap(root: Path, bound: Path) -> list[str]:
    """The same by bubblewrap, as docs/shims.md has it."""
    words = [shutil.which("bwrap") or "", "--bind", str(root), "/", "--proc", "/proc", "--dev", "/dev"]
    words += ["--ro-bind", str(bound), str(bound)]
    if not words[0] or subprocess.run([*words, "/bin/true"], capture_output=True).returncode:
        pytest.skip("no bubblewrap here, or none that may do anything")
    return words


@pytest.fixture(scope="module", params=[inside, in_bubblewrap])
def container(
    request: pytest.FixtureRequest, static: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Sequence[str]:
    """The words that start a program in it."""
    busybox = shutil.which("busybox")
    if busybox is None or subprocess.run(["ldd", busybox], capture_output=True).returncode == 0:
        pytest.skip("no static busybox here")
    root = tmp_path_factory.mktemp("root")
    for name in ("bin", "dev", "proc", "work", str(static.shims)[1:]):
        (root / name).mkdir(parents=True)
    shutil.copy(busybox, root / "bin" / "busybox")
    for name in (*APPLETS, "true"):
        (root / "bin" / name).symlink_to("busybox")
    (root / "dev" / "null").touch()
    (root / "work" / "f").write_text(LINES)
    (root / "work" / "g").write_text(OTHER)
    words: list[str] = request.param(root, static.shims)
    return words


SERVED = ("--session", "c", "--session", "w", "--session", "s")  # the conversations that the tests name


@pytest.fixture
def server(static: Sandbox) -> Iterator[None]:
    """On the host."""
    static.reset()
    with served(static, "--socket", str(static.shims / shim_files.SOCKET), *SERVED):
        yield


def in_sandbox(static: Sandbox, container: Sequence[str], *words: str, **more: str) -> str:
    env = {"PATH": "/bin", "READCACHE_SESSION": "c", "READCACHE": "on", **more}
    ran = start([*container, *words], env, "pipe", static.directory)
    assert ran.err == b""
    return ran.out.decode()


def cat(static: Sandbox, container: Sequence[str], name: str, after: str = ":", **more: str) -> str:
    """As a harness does it there that starts `sh -c`. By its full path, since a busybox's shell may have a `cat`."""
    record = f". {static.shims}/agent-shell.sh; cd /work; "
    return in_sandbox(static, container, "sh", "-c", f"{record} {static.shims}/cat {name}; {after}", **more)


@pytest.mark.usefixtures("server")
def test_a_read_is_shown_and_the_next_one_is_cut(static: Sandbox, container: Sequence[str]) -> None:
    assert cat(static, container, "f") == LINES
    assert cat(static, container, "f").startswith(MARKER)
    assert cat(static, container, "g", "echo end") == OTHER + "end\n"
    assert cat(static, container, "f", READCACHE_AGENT="other") == LINES


@pytest.mark.usefixtures("server")
def test_a_whole_command_is_judged_and_its_writes_are_known(static: Sandbox, container: Sequence[str]) -> None:
    def run(command: str) -> str:
        words = [f"{static.shims}/readcache-run", "-c", f"cd /work && {command}"]
        return in_sandbox(static, container, *words, READCACHE_BASH="/bin/sh", READCACHE_SESSION="w")

    assert run("cat f | head -n 40") == "".join(LINES.splitlines(keepends=True)[:40])
    assert "UNCHANGED " in run("head -n 30 f")
    assert run("sed -i s/line/LINE/ f; sed -i s/LINE/line/ f") == ""
    assert run("echo hello") == "hello\n"


@pytest.mark.usefixtures("server")
def test_a_pipeline_and_a_redirection_have_every_byte(static: Sandbox, container: Sequence[str]) -> None:
    shim = f"{static.shims}/cat"
    cat(static, container, "f")
    record = f". {static.shims}/agent-shell.sh; cd /work; "
    command = f"{shim} f | wc -l; {shim} f >out; wc -l <out; x=$({shim} f); echo ${{#x}}"
    out = in_sandbox(static, container, "sh", "-c", record + command)
    assert out.split() == ["60", "60", str(len(LINES) - 1)]


@pytest.mark.usefixtures("server")
def test_the_last_program_of_a_command_which_the_shell_becomes_is_served_with_an_exit_behind_it(
    static: Sandbox, container: Sequence[str]
) -> None:
    def last(command: str, behind: str) -> tuple[str, int]:
        env = {"PATH": "/bin", "READCACHE_SESSION": "c", "READCACHE": "on"}
        text = f". {static.shims}/agent-shell.sh; cd /work; {static.shims}/{command}{behind}"
        ran = start([*container, "sh", "-c", text], env, "pipe", static.directory)
        return ran.out.decode(), ran.status

    assert last("cat f", "") == (LINES, 0)
    assert last("cat f", "\nexit $?") == (LINES, 0), "the first was not recorded"
    assert last("cat f", "") == (LINES, 0)
    assert last("cat f", "\nexit $?")[0].startswith(MARKER)
    assert last("cat missing", "\nexit $?") == ("", 1)


def test_without_a_server_every_byte_comes(static: Sandbox, container: Sequence[str]) -> None:
    static.reset()
    assert [cat(static, container, "f") for _ in range(2)] == [LINES] * 2
    words = [f"{static.shims}/readcache-run", "-c", "cat /work/f"]
    assert in_sandbox(static, container, *words, READCACHE_BASH="/bin/sh") == LINES


@pytest.mark.skipif(os.geteuid() != 0, reason="root sees every file")
def test_doctor_looks_for_no_python_that_the_sandbox_does_not_need(static: Sandbox) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(os.path.realpath(name)) / "closed"
        directory.parent.chmod(0o755)
        directory.mkdir(0o700)
        (directory / "d").mkdir()
        shutil.copy(static.shims / shim_files.MARK, directory / "d")
        (directory / "d" / shim_files.SOCKET).touch()
        assert shim_files.find_closed_to_others(str(directory / "d")) == str(directory)
        directory.chmod(0o755)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "executable", f"{name}/python")  # which nobody may read, since it is not there
            assert shim_files.find_closed_to_others(str(directory / "d")) is None


def test_what_a_server_left_behind_goes_with_the_shims(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "d"
    for is_living in (True, False):
        main(["shims", "install", str(directory)])
        (directory / shim_files.SOCKET).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(directory / shim_files.SOCKET))
            if is_living:
                server.listen()
            capfd.readouterr()
            assert main(["shims", "uninstall", str(directory)]) == 0
        left = f"a server is still running at {directory}/.socket: stop it with SIGTERM\n"
        assert capfd.readouterr().out == f"{directory}: shims removed\n" + (left if is_living else "")
        assert directory.exists() == is_living


@pytest.mark.usefixtures("server")
def test_in_a_bash_on_the_host_they_do_the_same(static: Sandbox) -> None:
    """The directory may be tried out before it is mounted anywhere."""
    for way in ("agent-shell.sh", "agent-command.sh"):
        static.reset()
        env = static.readcache(BASH_ENV=str(static.shims / way))
        outs = [start(["bash", "-c", "cat sub/g; :"], env, "pipe", static.directory).out.decode() for _ in range(2)]
        assert outs[0] == OTHER
        assert outs[1].startswith(MARKER)
