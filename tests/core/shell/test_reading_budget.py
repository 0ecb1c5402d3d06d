"""Reading a command has a budget: a command beyond it is not understood."""

from __future__ import annotations

import resource
import shlex

import pytest

from readcache.core.model.claims import OPAQUE, FileLines
from readcache.core.shell.read import read_command
from tests.helpers.adversaries import beside_a_loop

MANY = " ".join(str(n) for n in range(50))


def loops(depth: int, body: str) -> str:
    """`depth` nested loops over 50 words each."""
    names = "abcdefgh"[:depth]
    opening = "".join(f"for {name} in {MANY}; do " for name in names)
    return opening + body + "; done" * depth


def nested(command: str, depth: int) -> str:
    for _ in range(depth):
        command = f"bash -c {shlex.quote(command)}"
    return command


LONG = {
    "three loops": f"if false; then {loops(3, 'cat $a$b$c')}; fi; head -3 f.py",
    "four loops": loops(4, "cat $a$b$c$d"),
    "echo in loops": loops(3, "echo $a"),
    "doubling": "a=xxxxxxxxxx; if false; then " + "a=$a$a; " * 40 + "cat $a; fi; cat f",
    "doubling by export": "a=xxxxxxxxxx; " + "export a=$a$a; " * 40 + "cat $a",
    "cat many": "cat " + " ".join(f"f{n}" for n in range(20_000)),
    "head many": "head -n 5 " + " ".join(f"f{n}" for n in range(20_000)),
    "head some": "head -n 5 " + " ".join(f"f{n}" for n in range(9_000)),
    "rm many": "rm " + " ".join(f"f{n}" for n in range(20_000)),
    "substitutions": "echo " + "$(echo " * 2_000 + "x" + ")" * 2_000,
    "shells": nested("cat f", 13),
    "eval in loops": loops(3, "eval 'for x in 1 2 3; do cat $x; done'"),
    "whiles": "while a; do " * 200 + "cat f; " + "done; " * 200,
    "one word": "python3 - <<'EOF'\nx = " + "1+" * 50_000 + "1\nEOF",
    "quotes": "mytool " + "'a' \"b\" " * 20_000,
}


@pytest.mark.parametrize("command", LONG.values(), ids=LONG)
def test_a_command_is_read_in_time_or_not_at_all(command: str) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert beside_a_loop(lambda: read_command(command, "/r")) < 40
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 300_000  # KiB


def test_what_is_too_long_has_no_claims() -> None:
    assert read_command(f"{loops(3, 'cat $a')}; cat f.py", "/r") == OPAQUE


def test_a_loop_within_the_budget_is_unrolled() -> None:
    claims = read_command("for a in 1 2; do for b in 3 4; do cat $a$b; done; done", "/r").claims
    assert [claim.keys[0] for claim in claims if isinstance(claim, FileLines)] == ["/r/13", "/r/14", "/r/23", "/r/24"]
