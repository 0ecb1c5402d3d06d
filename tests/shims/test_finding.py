"""A shim finds the real tool, and never itself or another shim."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from readcache.cli import shim_files
from readcache.cli.shim_files import find_client
from tests.helpers.files import WATCHDOG
from tests.shims.sandbox import LINES, Sandbox, make_client, make_sandbox, script

PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture(scope="module", params=["scripts", "compiled"])
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    top = tmp_path_factory.mktemp("sandbox")
    return make_sandbox(top, make_client(top / "client") if request.param == "compiled" else "", has_client=False)


def prototype(directory: Path) -> Path:
    """The script in a directory of shims, where a compiled program may stand before it."""
    behind = directory / ".tool" / "cat"
    return behind if behind.exists() else directory / "cat"


def move(source: Path, directory: Path, **values: str) -> None:
    """A copy of the shims, with time stamps, that finds its own files, and where those variables have other values."""
    shutil.copytree(source, directory)
    for path in (path for path in directory.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if b"\0" not in data:
            text = data.decode().replace(str(source), str(directory))
            for name, value in values.items():
                text = re.sub(rf"\b{name}=[^\s$]+", f"{name}={value}", text)
            path.write_text(text)
            os.utime(path, ns=(0, (source / path.relative_to(directory)).stat().st_mtime_ns))


def _compiled(sandbox: Sandbox) -> bool:
    return (sandbox.shims / ".tool").exists()


def generation(directory: Path) -> Path:
    shim_files.write(str(directory), shim_files.DEFAULT_TOOLS, "")
    return directory


def cat(sandbox: Sandbox, path: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs `cat f`, or `words`, as a shell with that PATH would; a circle would run into the time limit."""
    found = words or (shutil.which("cat", path=path) or "cat", "f")
    return subprocess.run(
        found,
        env={"PATH": path, **env},
        cwd=sandbox.directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
    )


@pytest.fixture(autouse=True)
def _fresh(sandbox: Sandbox) -> None:
    sandbox.reset()


def test_two_generations_on_one_path_do_not_call_each_other(sandbox: Sandbox, tmp_path: Path) -> None:
    """A shim found itself, and started itself without end."""
    other = generation(tmp_path / "other")
    for path in (f"{sandbox.shims}:{other}:{PATH}", f"{other}:{sandbox.shims}:{other}:{PATH}"):
        assert cat(sandbox, path).stdout == LINES


def test_a_copied_directory_does_not_loop_with_or_without_its_mark(sandbox: Sandbox, tmp_path: Path) -> None:
    for name in ("one", "two"):
        shutil.copytree(sandbox.shims, tmp_path / name)
    path = f"{tmp_path}/one:{tmp_path}/two:{sandbox.shims}:{PATH}"
    assert cat(sandbox, path).stdout == LINES
    for name in ("one", "two"):
        (tmp_path / name / shim_files.MARK).unlink()
    assert cat(sandbox, path).stdout == LINES


def test_links_to_a_shim_are_that_shim(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "cat").symlink_to(sandbox.shims / "cat")
    (tmp_path / "hard").mkdir()
    (tmp_path / "hard" / "cat").hardlink_to(sandbox.shims / "cat")
    (tmp_path / "way").symlink_to(sandbox.shims)
    assert cat(sandbox, f"{tmp_path}/links:{tmp_path}/hard:{tmp_path}/way:{PATH}").stdout == LINES


@pytest.mark.parametrize("call", ['exec {} "$@"', '{} "$@"'])
def test_a_foreign_shim_that_calls_ours_by_its_full_path_ends_at_the_systems_tool(
    sandbox: Sandbox, tmp_path: Path, call: str
) -> None:
    foreign = script(tmp_path / "foreign" / "cat", f"#!/bin/sh\n{call.format(sandbox.shims / 'cat')}\n")
    assert cat(sandbox, f"{foreign.parent}:{PATH}").stdout == LINES


def test_a_foreign_shim_that_puts_our_directory_back_on_path_ends_at_the_systems_tool(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    text = f'#!/bin/sh\nPATH={sandbox.shims}:{tmp_path}/foreign:$PATH\nexec cat "$@"\n'
    foreign = script(tmp_path / "foreign" / "cat", text)
    assert cat(sandbox, f"{foreign.parent}:{PATH}").stdout == LINES


@pytest.mark.parametrize("path", ["{0}:/bin:/usr/bin", "{0}", "/bin:{0}", "{0}:{1}:/bin"])
def test_without_proc_the_real_tools_run(sandbox: Sandbox, tmp_path: Path, path: str) -> None:
    """A chroot, a small container."""
    shutil.copytree(sandbox.shims, tmp_path / "copy")
    (tmp_path / "copy" / shim_files.MARK).unlink()
    words = ["unshare", "-m", "sh", "-c", 'umount -l /proc && ! [ -e /proc/self ] && exec "$@"', "-"]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("/proc cannot be taken away here")
    command = "PATH=$1; head -n 2 f; echo f | sed s/f/g/; cat f | tail -n 1; {0}/cat f | nl | tail -n 1; cat nosuch"
    for env in (sandbox.env(), sandbox.by_bash_env()):
        shell = ["bash", "-c", command.format(sandbox.shims), "bash", path.format(sandbox.shims, tmp_path / "copy")]
        done = subprocess.run(
            [*words, *shell], env=env, cwd=sandbox.directory, capture_output=True, text=True, timeout=WATCHDOG
        )
        lines = LINES.splitlines(keepends=True)
        assert done.stdout == "".join([*lines[:2], "g\n", lines[-1], f"    60\t{lines[-1]}"])
        assert done.stderr.endswith("cat: nosuch: No such file or directory\n")
        assert done.returncode == 1


def test_without_proc_and_without_a_shell_the_real_tool_runs(sandbox: Sandbox, tmp_path: Path) -> None:
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if not _compiled(sandbox) or chroot is None or os.geteuid() or shutil.which("ldd") is None:
        pytest.skip("for the compiled shims alone, which need no shell")
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copytree(sandbox.shims, root / "shims", ignore=shutil.ignore_patterns(".tool"))
    shutil.copy(shutil.which("cat", path=PATH) or "", root / "bin")
    for library in re.findall(
        r"/\S+", subprocess.run(["ldd", root / "bin/cat"], capture_output=True, text=True).stdout
    ):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    (root / "f").write_text(LINES)
    for path in ("/shims:/bin", "/bin:/shims", "/shims", "/nowhere", ""):
        for depth in ("", "+++++++++"):
            words, env = [chroot, str(root), "/shims/cat", "/f"], {"PATH": path, "READCACHE_DEPTH": depth}
            assert subprocess.run(words, env=env, capture_output=True, text=True, timeout=WATCHDOG).stdout == LINES
    (root / "bin" / "cat").unlink()
    done = subprocess.run([chroot, str(root), "/shims/cat", "/f"], env={"PATH": "/bin"}, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (127, 1)


def test_a_changed_home_changes_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    assert cat(sandbox, f"{sandbox.shims}:{PATH}", HOME=str(tmp_path)).stdout == LINES
    assert cat(sandbox, f"{sandbox.shims}:{PATH}", HOME="").stdout == LINES


@pytest.mark.parametrize("path", ["", ".:/bin", "/bin:", "relative:/bin"])
def test_any_value_of_path_finds_the_tool_that_sh_finds(sandbox: Sandbox, path: str) -> None:
    done = cat(sandbox, path, str(sandbox.shims / "cat"), "f")
    env = {"PATH": path or PATH}
    plain = subprocess.run(["/bin/sh", "-c", "exec cat f"], env=env, cwd=sandbox.directory, capture_output=True)
    assert (done.stdout.encode(), done.returncode) == (plain.stdout, plain.returncode)


def test_without_a_path_the_real_tool_runs(sandbox: Sandbox) -> None:
    words = ["env", "-i", str(sandbox.shims / "cat"), "f"]
    assert subprocess.run(words, cwd=sandbox.directory, capture_output=True, text=True).stdout == LINES


def test_without_a_real_tool_one_line_says_so_and_the_status_is_127(sandbox: Sandbox, tmp_path: Path) -> None:
    if shutil.which("gsed", path=PATH):
        pytest.skip("there is a gsed here")
    shim_files.write(str(tmp_path / "d"), ["gsed"], find_client() if _compiled(sandbox) else "")
    for path in (f"{tmp_path}/d:{PATH}", "/nowhere"):
        done = cat(sandbox, path, str(tmp_path / "d" / "gsed"), "f")
        assert (done.returncode, done.stdout) == (127, "")
        assert done.stderr.startswith("readcache: there is no gsed on PATH but shims: ")
        assert done.stderr.count("\n") == 1


def test_a_shim_called_by_its_full_path_with_no_tool_on_path_runs_the_systems_tool(sandbox: Sandbox) -> None:
    for path in (f"{sandbox.shims}:/nowhere", "/nowhere", str(sandbox.shims)):
        assert cat(sandbox, path, str(sandbox.shims / "cat"), "f").stdout == LINES


def test_what_is_no_program_is_passed_over(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a" / "cat").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "cat").write_text("not executable\n")
    assert cat(sandbox, f"{sandbox.shims}:{tmp_path}/a:{tmp_path}/b:{PATH}").stdout == LINES


@pytest.mark.slow
def test_a_very_long_path_is_searched_to_its_end(sandbox: Sandbox, tmp_path: Path) -> None:
    script(tmp_path / "last" / "cat", '#!/bin/sh\necho "$PATH" | md5sum\n')
    for start in ("/nowhere" * 600, ":".join(["/nowhere"] * 5000)):
        path = f"{start}:{tmp_path}/last:{PATH}"
        plain = cat(sandbox, path, str(tmp_path / "last" / "cat"))
        assert cat(sandbox, f"{sandbox.shims}:{path}", str(sandbox.shims / "cat")).stdout == plain.stdout


def test_the_first_real_tool_on_path_is_taken_with_its_arguments_and_its_environment(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    script(tmp_path / "first" / "cat", '#!/bin/sh\nprintf "<%s>" "$@"\necho\nexec env\n')
    words = ("cat", "", "a b", "-", "*", "--", "\n", "'\"", "\udcff")
    theirs = {"readcache_tool": "mine", "IFS": "x", "tool": "mine", "A": "b", "READCACHE_X": "y"}
    path = f"{tmp_path}/first:{PATH}"

    def printed(executable: Path, path: str) -> set[str]:
        env = {"PATH": path, **theirs}
        done = subprocess.run(words, executable=executable, env=env, capture_output=True, check=True)
        return set(done.stdout.decode("utf-8", "surrogateescape").splitlines())

    ours = printed(sandbox.shims / "cat", f"{sandbox.shims}:{path}")
    # to the script a variable of that very name is lost
    names = {"readcache_tool=mine", "readcache_tool=cat"}
    assert (ours ^ printed(tmp_path / "first" / "cat", path)) - names == {"READCACHE_DEPTH=+"}


def test_error_messages_name_the_tool_without_its_directory(sandbox: Sandbox) -> None:
    words, env = ["cat", "nosuch"], {"PATH": f"{sandbox.shims}:{PATH}"}
    done = subprocess.run(words, executable=sandbox.shims / "cat", env=env, capture_output=True, text=True)
    assert done.stderr == "cat: nosuch: No such file or directory\n"


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_the_shim_runs_under_any_posix_shell(sandbox: Sandbox, shell: str, tmp_path: Path) -> None:
    real = shutil.which(shell)
    if real is None:
        pytest.skip(f"no {shell} here")
    text = prototype(sandbox.shims).read_text()
    line = f"#!{real}{' sh' if shell == 'busybox' else ''}\n"
    changed = script(tmp_path / "changed" / "cat", line + text.partition("\n")[2])
    assert cat(sandbox, f"{changed.parent}:{sandbox.shims}:{PATH}").stdout == LINES
    command = f". {sandbox.shims}/agent-shell.sh; hash -p {changed} cat; cat f; :"
    done = subprocess.run(["bash", "-c", command], env=sandbox.readcache(), cwd=sandbox.directory, capture_output=True)
    assert done.stdout.startswith(b"[FILE_UNCHANGED ")


WAYS = [("cat f; :", "shell"), ("cat f", "command"), ("cat f; env | grep READCACHE_B", "command")]


def shown_by(directory: Path, sandbox: Sandbox, **env: str) -> set[tuple[str, bytes]]:
    """What each way prints for `cat f`, and its stderr."""
    out = set()
    for command, way in WAYS:
        named = sandbox.readcache(BASH_ENV=str(directory / f"agent-{way}.sh"), **env)
        done = subprocess.run(
            ["bash", "-c", command], env=named, cwd=sandbox.directory, capture_output=True, timeout=WATCHDOG
        )
        out.add((done.stdout.decode(), done.stderr))
    return out


@pytest.mark.parametrize("name", ["readcache_python", "readcache_entry"])
def test_a_python_or_package_that_is_gone_leaves_the_real_tool(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    move(sandbox.shims, tmp_path / "shims", **{name: "/nowhere/at/all"})
    assert shown_by(tmp_path / "shims", sandbox) == {(LINES, b"")}


def test_the_shim_script_stays_short() -> None:
    text = (Path(__file__).resolve().parents[2] / "shims" / "tool.sh").read_text()
    assert len(text.splitlines()) <= 70
    assert max(map(len, text.splitlines())) <= 120
