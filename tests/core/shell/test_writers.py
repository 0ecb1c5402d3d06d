"""What commands write: told apart by running them for real, and by table where running is not possible here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from readcache.core.model.claims import OPAQUE, Authored, FileLines, Literal, Write
from readcache.core.shell.read import read_command


def written(command: str, cwd: str = "/w") -> list[str]:
    """The keys that a command writes, without those of its directory's name."""
    return [write.key.removeprefix(f"{cwd}/") for write in read_command(command, cwd).writes]


# Each changes, makes or removes exactly the files named. a b c hold three lines, d/e too.
REAL = {
    "echo new > a": "a",
    "echo new >> b": "b",
    "echo new >| a": "a",
    "ls > out 2>&1": "out",
    "ls &> out": "out",
    "ls nope 2> err": "err",
    "cat a > out; cat b >> out": "out",
    "{ cat a; cat b; } > out": "out",
    "(cd d && echo x > e)": "d/e",
    "if true; then echo x; fi > out": "out",
    "for f in 1 2; do echo $f; done > out": "out",
    "for f in a b; do echo x >> $f; done": "a b",
    "F=a; echo x > $F": "a",
    "echo x > 'with space'": "with space",
    "tee x y < a": "x y",
    "echo x | tee -a a > /dev/null": "a",
    "cat <<'EOF' > a\nbody\nEOF": "a",
    "cat <<EOF | tee x\nbody\nEOF": "x",
    "sed -i s/one/two/ a": "a",
    "sed -i.bak s/one/two/ a": "a",
    "sed -i -e s/one/two/ -e s/two/three/ a b": "a b",
    "sed -ni 1p a": "a",
    "sed --in-place 1d a d/e": "a d/e",
    "sed -Ei 's/(o)ne/\\1/' a": "a",
    "cp a new": "new",
    "cp -r d n": "n",
    "cp a b d/": "d/a d/b",
    "cp a d/.": "d/a",
    "cd d && cp ../a .": "d/a",
    "mv a new": "new a",
    "mv a b d/": "d/a d/b a b",
    "rm a": "a",
    "rm -rf d b": "d b",
    "rm -f -- a": "a",
    "bash -c 'echo x > a'": "a",
    "X=1 bash -c 'cd d; echo x > e'": "d/e",
    "test -f a && echo x > b || echo x > c": "b",
    "cat a b": "",
    "grep one a > /dev/null 2>&1": "",
}


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize(("command", "named"), REAL.items())
def test_the_files_that_a_command_changes_are_told(command: str, named: str, tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "d").mkdir()
    for path in ("a", "b", "c", "d/e"):
        (root / path).write_text("one\ntwo\nthree\n")
    before = snapshot(root)
    reading = read_command(command, str(root))
    subprocess.run(["bash", "-c", command], cwd=root, check=False, stdin=subprocess.DEVNULL, capture_output=True)
    after = snapshot(root)
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path) and not path.endswith(".bak")}
    keys = {write.key.removeprefix(f"{root}/") for write in reading.writes}
    if command.startswith("test -f a"):
        assert keys == {"b", "c"}  # either side may have run
        return
    assert keys == set([named] if named in after else named.split())
    assert {path for path in changed if path not in keys and path.split("/")[0] not in keys} == set()
    for text in reading.authored:
        assert Path(text.key).read_text() == text.text


NAMED = {
    "git diff > p; git status; git commit -m x; git add a": ["p"],
    "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: x.py\n*** Add File: y.py\n*** End Patch\nEOF": [
        "*/x.py",
        "*/y.py",
    ],
    "patch -p1 <<'EOF'\n--- a/x/y.py\n+++ b/x/y.py\n@@ -1 +1 @@\n-a\n+b\nEOF": ["*/a/x/y.py", "*/b/x/y.py", "*/x/y.py"],
    "cp -t d a b": ["d", "a", "b"],
    "sed -i '' s/a/b/ f": ["f"],
    "sed -i s/a/b/ src/*.py": ["src/*.py"],
    "echo x > $UNKNOWN": [],
    "echo x > ~/notes": ["~/notes"],
    "cd $UNKNOWN; echo x > a; echo x > /abs": ["/abs"],
    "echo x > D:/a/b": ["/d/a/b"],
    "pytest; make": [],
}


@pytest.mark.parametrize(("command", "keys"), NAMED.items())
def test_the_files_that_a_command_names_as_written(command: str, keys: list[str]) -> None:
    assert written(command) == keys


def test_a_write_before_a_read_is_told_from_one_after() -> None:
    assert read_command("cat f; sed -i s/a/b/ f", "/w").writes == (Write("/w/f", 1),)
    assert read_command("sed -i s/a/b/ f && cat f", "/w").writes == (Write("/w/f", 0),)
    assert read_command("cat f; { cat g; echo x > g; } | head -3; cat g", "/w").writes == (Write("/w/g", 1),)


def test_a_quoted_heredoc_is_the_content_of_the_file() -> None:
    reading = read_command("cat > f <<'EOF'\na $b\n\nc\nEOF\ncat f", "/w")
    assert reading.authored == (Authored("/w/f", "a $b\n\nc\n", 1),)
    assert reading.claims == (FileLines(("/w/f",)),)


def test_an_unquoted_heredoc_is_authored_too_for_the_bytes_decide() -> None:
    assert read_command("cat > f <<EOF\n$HOME\nEOF", "/w").authored == (Authored("/w/f", "$HOME\n", 1),)


def test_where_appended_text_begins_is_not_known() -> None:
    assert read_command("cat >> f <<'EOF'\na\nEOF", "/w").authored == (Authored("/w/f", "a\n", 0),)
    assert read_command("tee -a f <<'EOF' > /dev/null\na\nEOF", "/w").authored == (Authored("/w/f", "a\n", 0),)


def test_a_heredoc_that_loses_its_tabs_is_not_authored() -> None:
    assert read_command("cat > f <<-'EOF'\n\ta\nEOF", "/w").authored == ()
    assert read_command("cat > f <<-EOF\n\t$a\nEOF", "/w").authored == ()
    assert read_command("cat > f <<-'EOF'\na\nEOF", "/w").authored == (Authored("/w/f", "a\n", 1),)


def test_a_heredoc_that_a_program_reads_is_not_authored() -> None:
    reading = read_command("sort > f <<'EOF'\nb\na\nEOF", "/w")
    assert reading.authored == ()
    assert reading.writes == (Write("/w/f", 0),)


def test_output_in_a_file_is_not_shown() -> None:
    assert read_command("cat f > g; echo x &> h; ls >> i", "/w").claims == ()
    assert read_command("cat f >/dev/null", "/w").claims == ()


def test_output_to_stderr_is_shown() -> None:
    assert read_command("echo x >&2; cat f", "/w").claims == (Literal("x\n"), FileLines(("/w/f",)))


def test_a_command_that_neither_reads_nor_writes_is_not_even_parsed() -> None:
    assert read_command("pytest -x 2>&1", "/w") is OPAQUE
    assert read_command("git status && ls -la >/dev/null", "/w") is OPAQUE
