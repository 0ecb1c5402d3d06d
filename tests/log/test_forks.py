"""A process that forks while its threads use sessions: neither the parent nor a child may wait for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.files import WATCHDOG

BEGINNING = """
import os, sys, threading
from readcache import Session

TEXT = "".join(f"line {n} of f\\n" for n in range(60))
folder, store, times = sys.argv[1], sys.argv[2] or None, int(sys.argv[3])
session = Session(root=folder, store=store, session_id="fork")

def end_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

THREADS_THAT_FORK = """
def fork_often():
    for _ in range(6 * times):
        child = os.fork()
        if not child:
            os._exit(0)
        assert end_of(child) == 0

threads = [threading.Thread(target=fork_often) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert session.observe("cat f", TEXT).text == TEXT
assert session.observe("cat f", TEXT).text != TEXT
print("done")
"""

FORKS_AMID_CALLS = """
ended = threading.Event()

def call_often(number):
    while not ended.is_set():
        number += 1
        begin = number % 30
        session.observe(f"sed -n '{begin + 1},60p' f", "".join(TEXT.splitlines(True)[begin:]))

threads = [threading.Thread(target=call_often, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for _ in range(times):
    child = os.fork()
    if not child:
        reply = session.observe("cat f", TEXT)
        os._exit(0 if reply.full_text == TEXT else 1)
    assert end_of(child) == 0
ended.set()
for thread in threads:
    thread.join()
print("done")
"""


FORKS_AMID_IMPORTS = """
import time

begun = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name in ("readcache.core.shell.walk", "bashlex.parser"):
            begun.set()
            time.sleep(1)

sys.meta_path.insert(0, Slow())
call = "if true; then cat f; fi"
thread = threading.Thread(target=session.observe, args=(call, TEXT))
thread.start()
begun.wait()
child = os.fork()
if not child:
    session.observe("for x in f; do cat $x; done", TEXT)
    os._exit(0)
assert end_of(child) == 0
thread.join()
print("done")
"""


IMPORTS_AT_A_FORK = """
from readcache import Policy

def ours():
    return {name for name in sys.modules if name.startswith(("readcache.", "bashlex", "sqlite3"))}

with open("f", "w") as file:
    file.write(TEXT)
child = os.fork()
if not child:
    os._exit(0)
assert end_of(child) == 0
before = ours()
with Session(root=folder, store=store, session_id="max", policy=Policy.named("max")) as used:
    used.observe("if true; then cat f; fi", TEXT, call_id="c1")
    used.run("cat f")
    used.wrap(lambda command: TEXT)("cat f")
    used.read("f")
    used.wrote("g", content=TEXT)
    used.mend([{"role": "tool", "tool_call_id": "c1", "content": TEXT}])
    used.settle("c1", TEXT[:100])
    used.compacted(keep=["c1"], restored=used.restore_plan())
    used.fork("child", inherit=True).observe("cat f", TEXT)
    used.rewind("c1")
assert ours() == before, ours() - before
print("done")
"""


@pytest.mark.parametrize("times", [6, pytest.param(25, marks=pytest.mark.slow)])
@pytest.mark.parametrize("store", ["", "log.db"], ids=["memory", "sqlite"])
@pytest.mark.parametrize(
    "program",
    [THREADS_THAT_FORK, FORKS_AMID_CALLS, FORKS_AMID_IMPORTS, IMPORTS_AT_A_FORK],
    ids=["threads that fork", "amid calls", "amid imports", "nothing is imported later"],
)
def test_forks_beside_threads_never_hang(tmp_path: Path, program: str, store: str, times: int) -> None:
    words = [sys.executable, "-W", "ignore", "-c", BEGINNING + program]
    words += [str(tmp_path), store and str(tmp_path / store), str(times)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=WATCHDOG, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("done\n", "")
