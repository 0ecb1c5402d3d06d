"""A `configure` script and a make project are built the same, byte for byte, under shims and without them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.shims.sandbox import Ran, Sandbox, start

pytestmark = pytest.mark.slow  # builds real projects

CONFIGURE = r"""#!/bin/sh
# What autoconf's scripts do: look programs up, try them, put the results into files by here-documents and sed.
exec 5>config.log
as_dirs=$PATH
for ac_prog in nl tail head cat; do
  if command -v $ac_prog >/dev/null 2>&5; then echo "checking for $ac_prog... yes" | tee -a config.out; fi
done
SED=sed
ac_count=0
printf %s 0123456789 >conftest.in
while :; do
  cat conftest.in conftest.in >conftest.tmp
  mv conftest.tmp conftest.in
  cp conftest.in conftest.nl
  echo '' >>conftest.nl
  "$SED" 's/a$//' <conftest.nl >conftest.out 2>/dev/null || break
  diff conftest.out conftest.nl >/dev/null 2>&1 || break
  ac_count=$((ac_count + 1))
  [ $ac_count -gt 5 ] && break
done
rm -f conftest.*
cat >conftest.c <<_ACEOF
#include <stdio.h>
int main(void) { printf("%d\n", (int) sizeof(long)); return 0; }
_ACEOF
cat conftest.c >&5
SIZE=$(cc -o conftest conftest.c 2>&5 && ./conftest | cat)
sed -e "s/@SIZE@/$SIZE/" -e '/^#/!s/@NAME@/shown/' config.h.in >config.h
cat >confdefs.tail <<EOF
$(head -n 1 config.h; tail -n 1 config.h)
EOF
sed -n '1,3p' config.h
cat config.h
exit 0
"""
MAKEFILE = r"""
OBJECTS = $(shell sed -n 's/$$/.o/p' list)
all: program listing
program: $(OBJECTS)
	cc -o $@ $(OBJECTS)
	@cat list
%.o: %.c config.h
	cc -c -o $@ $<
listing: program
	./program | tee $@ | head -n 2
	for f in $$(cat list); do nl $$f.c >> $@; done
	@tail -n 3 $@
check: all
	./program >got && head -n 3 got | cat - list && sed -n '2p' got
"""


def write_project(directory: Path) -> None:
    directory.mkdir()
    (directory / "configure").write_text(CONFIGURE)
    (directory / "configure").chmod(0o755)
    (directory / "config.h.in").write_text('#define SIZE @SIZE@\n#define NAME "@NAME@"\n' + "/* a line */\n" * 40)
    (directory / "Makefile").write_text(MAKEFILE)
    (directory / "list").write_text("main\nother\n")
    (directory / "main.c").write_text(
        '#include <stdio.h>\n#include "config.h"\nint other(void);\n'
        'int main(void) { for (int i = 0; i < 40; i++) printf("%d of %d\\n", i, SIZE + other()); return 0; }\n'
    )
    (directory / "other.c").write_text("int other(void) { return 1; }\n")


def build(directory: Path, words: list[str], env: dict[str, str]) -> Ran:
    shutil.rmtree(directory, ignore_errors=True)
    write_project(directory)
    ran = start(words, env, "merged", directory)
    ran.files = {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    return ran


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("build") / "project"


@pytest.fixture(scope="module")
def plain(sandbox: Sandbox, directory: Path) -> Ran:
    """Without shims."""
    return build(directory, ["bash", "-c", COMMAND], sandbox.env())


COMMAND = "./configure && make && make check && ./configure >out.configure 2>&1 && make -B >out.make 2>&1"


@pytest.mark.skipif(not (shutil.which("make") and shutil.which("cc")), reason="no make and C compiler here")
@pytest.mark.parametrize("way", ["bash", "whole command", "path", "compiled"])
def test_a_configured_and_made_project_is_the_same(
    sandbox: Sandbox, request: pytest.FixtureRequest, directory: Path, plain: Ran, way: str
) -> None:
    if way == "compiled":
        sandbox = request.getfixturevalue("compiled")
    if way in ("path", "compiled"):
        path = f"{sandbox.shims}:{sandbox.env()['PATH']}"
        ours = build(
            directory, ["sh", "-c", f". {sandbox.shims}/agent-shell.sh; {COMMAND}"], sandbox.readcache(PATH=path)
        )
    else:
        sourced = "agent-shell.sh" if way == "bash" else "agent-command.sh"
        ours = build(directory, ["bash", "-c", COMMAND], sandbox.readcache(BASH_ENV=str(sandbox.shims / sourced)))
    assert plain.status == 0
    assert plain.out.count(b"\n") > 50
    assert (ours.status, ours.out, ours.files) == (plain.status, plain.out, plain.files)
