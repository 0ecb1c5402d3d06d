"""Inputs made to take long, of any size, and how much longer twice as much of one takes.

`CASES` has for each a function that gives, for about `n` characters, the work to be measured. Whoever finds another way
to make readcache slow adds it here; `benchmarks/blowup.py` and `test_blowup.py` take all of them.
"""

from __future__ import annotations

import contextlib
import gc
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from readcache import Policy, Session, Sessions, UsageError
from readcache.context import prune
from readcache.context.summary import serialize_transcript
from readcache.core.judging.marker import find_markers
from readcache.core.messages.editing import with_results, without_cleared
from readcache.core.messages.messages import Kind, normalise
from readcache.core.messages.structure import cut_points, repair
from readcache.core.model.events import Failed
from readcache.core.model.reply import Reason
from readcache.core.model.text import session_tag
from readcache.core.model.tool_call import AskedCommand, ToolCall
from readcache.core.shell.read import _read, read_command
from readcache.core.sync.amend import align
from readcache.hosts.settings_files.settings_text import JsonText
from readcache.log.store.codec import encode
from readcache.log.store.protocol import MemoryStore
from readcache.log.store.redis_rows import read_rows
from readcache.report.replay.policy_run import FilesShown
from readcache.report.replay.turns import TurnKinds
from readcache.serve.protocol import Protocol, parse, to_line
from readcache.transcripts.claude_code import Transcript
from readcache.transcripts.files import find_files, read_content, units_of
from readcache.transcripts.formats import recordings_in

Work = Callable[[], object]
Case = Callable[[int], Work]
Calls = Sequence[tuple[str, str]]  # command, output
Messages = list[dict[str, Any]]

SHORTEST = 0.02  # seconds; below, the clock says little
MOST = 1_000_000  # characters
TAG = session_tag("s")
MARKER = f'[UNCHANGED {TAG}.1: f lines 1-9, above in "cat f"; repeat to see]'


def per_doubling(case: Case, shortest: float = SHORTEST) -> tuple[int, float, float]:
    """(n, seconds of processor time for n, how many times that each of the next two doublings takes). 2 is linear, 4
    quadratic; two doublings, since a budget that runs out between them makes one step."""
    size = 500
    while (took := seconds(case(size))) < shortest and size < MOST:
        size *= 2
    return size, took, (min(seconds(case(4 * size)) for _ in range(2)) / max(took, 1e-9)) ** 0.5


def seconds(work: Work) -> float:
    """Processor time, without the garbage collector's, which goes by how much there is besides."""
    gc.collect()
    return _seconds(work)


def _seconds(work: Work) -> float:
    gc.disable()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.enable()


def beside_a_loop(work: Work) -> float:
    """How many times as long the work takes as a loop of a million steps, some 0.05 seconds: on a slow machine, or one
    that is busy, both take longer. The loop has a fifth of the steps."""
    before = _seconds(_loop)
    return _seconds(work) / max(before, _seconds(_loop)) / 5


def _loop() -> None:
    total = 0
    for number in range(200_000):
        total += number


# ---------------------------------------------------------------- commands

COMMANDS: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: "(" * (n // 2) + "cat f" + ")" * (n // 2),
    "open substitutions": lambda n: "echo " + "$(" * (n // 2),
    "substitutions": lambda n: "echo " + "$(echo " * (n // 8) + "x" + ")" * (n // 8),
    "quoted substitutions": lambda n: "echo " + '"$(' * (n // 5) + "x" + ')"' * (n // 5),
    "open parameters": lambda n: "echo " + "${a[" * (n // 4),
    "quoted parameters": lambda n: "echo " + '"${a[x}" ' * (n // 9),
    "open arithmetic": lambda n: "(( " * (n // 3),
    "arithmetic": lambda n: "echo " + "$((1+1)) " * (n // 9),
    "groups": lambda n: "{ " * (n // 6) + "cat f;" + " };" * (n // 6),
    "ifs": lambda n: "if a; then " * (n // 16) + "cat f; " + "fi; " * (n // 16),
    "whiles": lambda n: "while a; do " * (n // 18) + "cat f; " + "done; " * (n // 18),
    "branches of a case": lambda n: "case x in " + "a) cat f;; " * (n // 11) + "esac",
    "negations": lambda n: "! " * (n // 2) + "cat f",
    "functions": lambda n: "f() { " * (n // 8) + "cat x;" + " }" * (n // 8),
    "heredocs on one line": lambda n: "cat " + "<<A " * (n // 6) + "\n" + "A\n" * (n // 6),
    "heredocs of one line, open": lambda n: "cat " + "<<A " * (n // 4) + "\nx",
    "heredocs one by one": lambda n: "cat <<A >f\nx\nA\n" * (n // 15),
    "a heredoc of continued lines": lambda n: "cat <<A\n" + "x\\\n" * (n // 3) + "A\n",
    "a heredoc of backslashes": lambda n: "cat <<A\n" + "\\" * n + "\nA\n",
    "tildes": lambda n: "cat " + "a" * (n // 2) + "~" * (n // 2),
    "assigned tildes": lambda n: "a" * (n // 2) + "=" + "~" * (n // 2),
    "open subscripts": lambda n: "a[ " * (n // 3),
    "closing braces": lambda n: "echo {" + "}" * n,
    "continued words": lambda n: "cat " + "\\\n" * (n // 2) + "f",
    "redirections": lambda n: "cat f" + " >a" * (n // 3),
    "pipes": lambda n: "cat f" + " | cat" * (n // 6),
    "reads": lambda n: "cat f; " * (n // 7),
    "directories": lambda n: "cd a; cat f; " * (n // 13),
    "variables": lambda n: "a=x; cat " + "$a" * (n // 2),
    "a growing variable": lambda n: "a=x; " + "a=$a$a; " * (n // 8) + "cat $a",
    "wrappers": lambda n: "timeout 5 " * (n // 10) + "cat f",
    "names": lambda n: "mytool " + " ".join(f"a{k}/b.py" for k in range(n // 10)),
    "a program in quotes": lambda n: "python3 -c '" + '"a" ' * (n // 4) + "'",
    "sed: addresses": lambda n: "sed -n '" + "".join(f"{k}p;" for k in range(1, n // 7)) + "' f",
    "sed: addresses of addresses": lambda n: (
        "sed -n '" + "".join(f"{k}p;" for k in range(1, n // 14)) + "' f | sed -n '" + "1p;3p;" * (n // 14) + "'"
    ),
    "sed: blanks": lambda n: "sed -n '1p" + " " * n + "x' f",
    "sed: brackets": lambda n: "sed -n '/" + "[a]" * (n // 3) + "' f",
    "sed: digits": lambda n: "sed -n '" + "1" * n + "x' f",
    "sed: slashes": lambda n: "sed -n '" + "/" * n + "' f",
    "words that submit": lambda n: "\n" * n + "x submit",
}


def read(make: Callable[[int], str]) -> Case:
    """A command is read and looked at for an answer."""

    def case(n: int) -> Work:
        command = make(n)
        never = Policy()

        def work() -> None:
            _read.cache_clear()
            read_command(command, "/r")
            never.forbids(command)

        return work

    return case


# ---------------------------------------------------------------- outputs


def lines(count: int, word: str = "line") -> str:
    """Lines of 35 characters that say something."""
    return "".join(f"    {word} number {k} of this very file\n" for k in range(count))


def numbered(count: int, sep: str = "\t") -> str:
    """The same with numbers in front."""
    return "".join(f"{k:6}{sep}    line number {k} of this file\n" for k in range(1, count + 1))


def twice(command: str, output: str) -> Calls:
    """The same again, and once more with another line, so that nothing is told by the request alone."""
    return [(command, output), (command, output), (command, output + "one more line than before\n")]


def read_by_a_tool(make: Callable[[int], tuple[str, str, str]]) -> Case:
    """A read tool's output with numbers, eight ranges of it again, then a command, then the tool once more. `make`
    gives the tool's output, the command and what it printed."""

    def case(n: int) -> Work:
        shown, command, output = make(n)

        def work() -> None:
            session = Session("/w", policy=Policy.named("max"))
            for start in range(9):
                session.observe_read("f", shown[start * (len(shown) // 20) :], numbered=True)
            session.observe(command, output)
            session.observe_read("f", shown, numbered=True)
            assert "internal_error" not in session.stats()

        return work

    return case


NUMBERED: dict[str, Callable[[int], tuple[str, str, str]]] = {
    "raw": lambda n: (numbered(n // 36, ": "), "cat f", lines(n // 36 + 1)),
    "nothing indented less": lambda n: (numbered(n // 36, ":"), "cat f", lines(n // 36 + 1)),
    "hits of a search": lambda n: (
        numbered(n // 36, ": "),
        "grep -n -A1 x f",
        "".join(f"{k}:    line number {k} of this file\n" for k in range(1, n // 36) if k % 3),
    ),
    "blanks before nothing": lambda n: (f"1: {' ' * n}\n{'a' + ' ' * n}\n{' ' * n}\n", "cat f", " " * n),
    "one number in all lines": lambda n: ("7: x line of it\n" * (n // 16), "cat f", "x line of it\n" * (n // 16)),
}


def _halves(n: int) -> list[str]:
    return lines(n // 72).splitlines(True)


OUTPUTS: dict[str, Callable[[int], Calls]] = {
    "lines": lambda n: twice("cat f", lines(n // 36)),
    "numbered lines": lambda n: twice("cat -n f", numbered(n // 36)),
    "numbers before a colon": lambda n: twice("grep -n x f", numbered(n // 36, ":").replace(" ", "")),
    "falling numbers": lambda n: twice("cat -n f", "".join(f"{k}\tx line of it\n" for k in range(n // 20, 0, -1))),
    "one number": lambda n: twice("cat -n f", "     1\tx line of it\n" * (n // 20)),
    "one long line": lambda n: twice("cat f", "a" * n + "\n"),
    "a long line that was cut": lambda n: twice("cat f", "a" * (n // 2) + "... 5 lines omitted ..." + "a" * (n // 2)),
    "digits that were cut": lambda n: twice("cat f", "x lines omitted " + "1" * n + "\n"),
    "digits and commas": lambda n: twice("cat f", "x lines omitted " + "1," * (n // 2) + "\n"),
    "blanks that were cut": lambda n: twice("cat f", " " * n + "truncated\n"),
    "notices": lambda n: twice("cat -n f", "".join(f"{2 * k:6}\tx\n... 5 lines omitted ...\n" for k in range(n // 33))),
    "equal lines": lambda n: twice("cat f", "the same line each time\n" * (n // 24)),
    "equal lines of no file": lambda n: twice("./x", "the same line each time\n" * (n // 24)),
    "blank lines": lambda n: twice("./x", "\n" * n),
    "two lines in turn": lambda n: [("./x", "some line a\nsome line b\n" * (n // 24)), ("./y", "some line b\n" * n)],
    "lines eight times": lambda n: [("./x", lines(n // 288) * 8), ("./y", lines(n // 288) * 8 + "x\n")],
    "lines upside down": lambda n: [("./x", "".join(_halves(n))), ("./y", "".join(_halves(n)[::-1]))],
    "every other line": lambda n: [("cat f", "".join(_halves(n))), ("cat f", "".join(_halves(n)[::2]))],
    "a new line after each": lambda n: [("./x", lines(n // 72)), ("./y", "new line\n".join(_halves(n)))],
    "claims": lambda n: twice(
        "".join(f"sed -n {k},{k}p f;" for k in range(1, n // 40)),
        "".join(f"line {k} of it\n" for k in range(1, n // 40)),
    ),
    "files": lambda n: twice("".join(f"cat f{k};" for k in range(n // 30)), "a line of a file\n" * (n // 30)),
    "printed texts": lambda n: twice("echo ---;cat f;" * (n // 40), "---\nsome line of a file\n" * (n // 40)),
    "printed lines": lambda n: twice("echo '" + "aaa\n" * (n // 12) + "';cat f", "aaa\n" * (n // 6) + "x\n"),
    "ranges": lambda n: twice("sed -n '" + "".join(f"{k}p;" for k in range(1, n // 20, 2)) + "' f", lines(n // 40)),
    "ranges of numbered lines": lambda n: twice(
        "nl -ba f | sed -n '" + "".join(f"{k}p;" for k in range(1, n // 20)) + "'", numbered(n // 20 - 1)
    ),
    "hits": lambda n: twice("grep -rn x .", "".join(f"./a/b{k % 7}.py:{k}:some line {k}\n" for k in range(n // 30))),
    "hunks": lambda n: twice("git diff", "@@ -1,3 +1,3 @@\n a context line\n-old line\n+new line\n more\n" * (n // 58)),
    "headers of hunks": lambda n: twice("git diff", "+++ b/f\n@@ -1,3 +1,3 @@\n" * (n // 25)),
    "markers": lambda n: twice("./x", (MARKER + "\n") * (n // len(MARKER))),
    "markers on one line": lambda n: twice("./x", MARKER * (n // len(MARKER))),
    "complaints": lambda n: twice("cat a b", "cat: a: No such file or directory\n" * (n // 34)),
    "calls": lambda n: [(f"./x {k}", lines(20, f"l{k % 9}")) for k in range(n // 720)],
    "windows of a file": lambda n: [
        (f"sed -n '{k + 1},{k + 20}p' f", "".join(_halves(n)[k : k + 20])) for k in range(min(n // 720, 400))
    ],
    "edits": lambda n: [("cat f", lines(20)), ("sed -i s/a/b/ f", "")] * (n // 750),
}


# Made for the search for secrets. A command is given with an output of 20 lines.
SECRETIVE: dict[str, Callable[[int], Calls]] = {
    "protected files in one line": lambda n: [("./x", "src/.env.x," * (n // 11))],
    "a heading that does not end": lambda n: [("./x", "==> .env " * (n // 9))],
    "headings": lambda n: [("./x", "a.env.b-1-\n" * (n // 11))],
    "headings without an end": lambda n: [("./x", "file: " * (n // 12) + ".env" * (n // 8))],
    "names of keys in one line": lambda n: [("cat $(ls)", "KEY" * (n // 3))],
    "names of keys": lambda n: [("cat $(ls)", "A_KEY_KEY_B\n" * (n // 12))],
    "beginnings of keys": lambda n: [("./x", "-----BEGIN PRIVATE KEY-----" * (n // 27))],
    "keys without a body": lambda n: [("./x", "-----BEGIN PRIVATE KEY-----\\n " * (n // 30))],
    "beginnings of tokens": lambda n: [("./x", "ghp_.eyJ-AKIA.hvs.sk-ant-a-T3BlbkFJ xoxb-1-npm_ " * (n // 48))],
    "parts of tokens": lambda n: [("./x", "eyJ-eyJ-eyJ.eyJ-" * (n // 16))],
    "blanks behind a key": lambda n: [("./x", "-----BEGIN PRIVATE KEY-----" + " \n" * (n // 2) + ".")],
    "a command: options of one git": lambda n: [("git " + "-C " * (n // 3), lines(20))],
    **{
        f"a command: {name}": lambda n, part=part: [(part * (n // len(part)), lines(20))]  # type: ignore[misc]
        for name, part in {
            "env": "env A=1 ",
            "envs": "env; ",
            "docker": "docker exec x ",
            "echo": "echo $A_ ",
            "quotes": "\\\"'",
            "open quotes": 'env \\" ',
            "braces": "{,,",
            "commas": "{" + "," * 50,
            "slashes": "a/",
            "hidden directories": "/.a",
            "patterns": ".e* ",
            "other patterns": "/x?y[a] ",
            "percent signs": "%2E%",
            "keys": "A_KEY=",
            "URLs": "://a:b",
            "databases": "mysql -p ",
            "options": "env -a -b=c ",
            "options of git": "-git -C ",
        }.items()
    },
}


def judged(make: Callable[[int], Calls]) -> Case:
    """Calls are judged under `max`, which does the most."""

    def case(n: int) -> Work:
        calls = make(n)

        def work() -> None:
            session = Session("/r", session_id="s", store=MemoryStore(), policy=Policy.named("max"))
            for command, output in calls:
                session.observe(command, output, exit_code=0)
            assert "internal_error" not in session.stats()

        return work

    return case


def restored(make: Callable[[int], str]) -> Case:
    """A section is planned after such a command."""

    def case(n: int) -> Work:
        session = Session("/r", session_id="s", store=MemoryStore())
        session.observe(make(n), lines(40), exit_code=0)
        return session.restore_plan

    return case


# ---------------------------------------------------------------- message lists


def exchange(number: int, output: str) -> Messages:
    """A call and its result, in OpenAI's shape."""
    function = {"name": "bash", "arguments": json.dumps({"command": f"cat f{number}"})}
    asked: Messages = [{"id": f"c{number}", "type": "function", "function": function}]
    result = {"role": "tool", "tool_call_id": f"c{number}", "content": output}
    return [{"role": "assistant", "content": None, "tool_calls": asked}, result]


def plainly(number: int, output: str) -> Messages:
    """The same in a chat without ids."""
    said = {"role": "assistant", "content": f"I look.\n\n```bash\ncat f{number}\n```"}
    return [said, {"role": "user", "content": f"<output>\n{output}</output>"}]


def synced(turn: Callable[[int, str], Messages], then: Callable[[Messages], Messages], different: int = MOST) -> Case:
    """A session of many calls is synced with its list, and with what became of that. `different`: the outputs repeat
    after so many."""

    def case(n: int) -> Work:
        outputs = [lines(20, f"l{k % different}") for k in range(max(2, n // 800))]
        messages = [message for k, output in enumerate(outputs) for message in turn(k, output)]
        later = then(messages)

        def work() -> None:
            session = Session("/r", session_id="s", store=MemoryStore(), policy=Policy.named("max"))
            for k, output in enumerate(outputs):
                session.observe(f"cat f{k}", output, exit_code=0, call_id=f"c{k}")
            session.sync(messages)
            session.sync(later)
            assert "internal_error" not in session.stats()

        return work

    return case


def said(make: Callable[[int], str]) -> Case:
    """Somebody says such a text in a conversation with and without ids."""

    def case(n: int) -> Work:
        text = {"role": "user", "content": make(n)}

        def work() -> None:
            for turn in (exchange, plainly):
                session = Session("/r", session_id="s", store=MemoryStore(), policy=Policy.named("max"))
                session.observe("cat f0", lines(40), exit_code=0, call_id="c0")
                session.sync([*turn(0, lines(40)), text])
                session.sync([text])
                assert "internal_error" not in session.stats()

        return work

    return case


def _deep(n: int) -> str:
    return '{"a":' * (n // 6) + '"x"' + "}" * (n // 6)


def _nested(n: int) -> object:
    inner: object = "x"
    for _ in range(n // 60):
        inner = [{"type": "tool_result", "tool_use_id": "a", "content": inner}]
    return inner


def _call(number: int, arguments: str = "{}") -> dict[str, Any]:
    return {"id": f"c{number}", "function": {"name": "bash", "arguments": arguments}}


LISTS: dict[str, Callable[[int], Messages]] = {
    "messages": lambda n: [{"role": "user", "content": "x"}] * (n // 30),
    "blocks": lambda n: [{"role": "user", "content": [{"type": "text", "text": "x"}] * (n // 30)}],
    "calls at once": lambda n: [
        {"role": "assistant", "tool_calls": [_call(k) for k in range(n // 120)]},
        *({"role": "tool", "tool_call_id": f"c{k}", "content": "x"} for k in range(n // 120)),
    ],
    "calls of one id": lambda n: [
        {"role": "assistant", "tool_calls": [_call(0)] * (n // 120)},
        *({"role": "tool", "tool_call_id": "c0", "content": "x"} for _ in range(n // 120)),
    ],
    "results far from their calls": lambda n: [
        *({"role": "assistant", "tool_calls": [_call(k)]} for k in range(n // 120)),
        *({"role": "tool", "tool_call_id": f"c{k}", "content": "x"} for k in range(n // 120)),
    ],
    "deep arguments": lambda n: [{"role": "assistant", "tool_calls": [_call(0, _deep(n))]}],
    "results in results": lambda n: [{"role": "user", "content": _nested(n)}],
}


LISTS_WITH_RESULTS = ("calls at once", "results far from their calls")


def normalised(make: Callable[[int], Messages]) -> Case:
    """A list is read, mended and written as one text."""

    def case(n: int) -> Work:
        messages = make(n)
        return lambda: (cut_points(normalise(messages)), repair(messages), serialize_transcript(messages))

    return case


def _in_one_message(n: int) -> Messages:
    results = [{"type": "tool_result", "tool_use_id": f"c{k}", "content": "x"} for k in range(n // 60)]
    return [{"role": "user", "content": results}]


def rewritten(make: Callable[[int], Messages]) -> Case:
    """Every result of a list is replaced, as where a host keeps results that were cleared."""

    def case(n: int) -> Work:
        messages = make(n)
        parts = ((at, part) for at, message in enumerate(normalise(messages)) for part in message.parts)
        changes = {(at, part.call_id, part.text): "a note" for at, part in parts if part.kind is Kind.RESULT}
        assert changes
        return lambda: with_results(messages, changes)  # type: ignore[arg-type]

    return case


def pruned(n: int) -> Work:
    """Results that stand in one message are pruned, and then cleared by the provider."""
    output = "".join(f"some words on line {k}\n" for k in range(60))
    blocks = [(f"c{k}", f"{output}{k // 2}\n") for k in range(max(2, n // 1_500))]
    said = [{"type": "tool_use", "id": name, "name": "bash", "input": {"command": "./x"}} for name, _ in blocks]
    given = [{"type": "tool_result", "tool_use_id": name, "content": text} for name, text in blocks]
    messages: Messages = [{"role": "assistant", "content": said}, {"role": "user", "content": given}]
    names = {name for name, _ in blocks}
    return lambda: (prune(messages, protect_last_turns=0), without_cleared(messages, names))  # type: ignore[arg-type]


def _clip(messages: Messages) -> Messages:
    return [{**message, "content": (message["content"] or "")[:400]} for message in messages]


def _join(messages: Messages) -> Messages:
    return [{"role": "user", "content": "\n".join(message["content"] or "" for message in messages)}]


# ---------------------------------------------------------------- files, hooks, sockets


def _claude(number: int, parent: int) -> str:
    block = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": "cat f"}}
    message = {"id": f"m{number}", "content": [block]}
    entry = {"type": "assistant", "uuid": f"u{number}", "parentUuid": f"u{parent}", "message": message}
    return json.dumps(entry, separators=(",", ":")) + "\n"


def _codex(output: str) -> str:
    """A rollout of Codex with one command."""
    call = {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": json.dumps({"command": ["ls"]})}
    result = {"type": "function_call_output", "call_id": "c1", "output": output}
    rows = [("session_meta", {"id": "s", "cwd": "/r"}), ("response_item", call), ("response_item", result)]
    return "".join(json.dumps({"type": kind, "payload": payload}) + "\n" for kind, payload in rows)


TRANSCRIPTS: dict[str, Callable[[int], str]] = {
    "prose that Codex printed": lambda n: _codex(("Word" + " word" * (n // 50) + "\n") * 8),
    "a chain": lambda n: "".join(_claude(k, k - 1) for k in range(n // 200)),
    "parents that are not there": lambda n: "".join(_claude(k, k + 10**6) for k in range(n // 200)),
    "one uuid": lambda n: _claude(1, 1) * (n // 200),
    "deep JSON": lambda n: _claude(0, 0) + _deep(n) + "\n",
    "lines of JSON that are none": lambda n: _claude(0, 0) + "{\n" * (n // 2),
    "messages in one": lambda n: json.dumps({"messages": [{"role": "user", "content": "x"}] * (n // 30)}),
}


def loaded(make: Callable[[int], str]) -> Case:
    """`readcache replay` reads such a file."""

    def case(n: int) -> Work:
        directory = tempfile.TemporaryDirectory()
        path = Path(directory.name, "t.jsonl")
        path.write_text(make(n))

        def work() -> None:
            with directory:
                for found in find_files([str(path)]):
                    for unit in units_of(found):
                        list(recordings_in(read_content(unit)))

        return work

    return case


def sorted_by_kind(make: Callable[[int], str]) -> Case:
    """`readcache replay` counts the turn of such a command."""

    def case(n: int) -> Work:
        command = make(n)
        call = ToolCall("c1", "bash", {"command": command}, "", asked=AskedCommand(command))
        return lambda: TurnKinds(None).call(call, FilesShown(0, 0))

    return case


def proven(make: Callable[[int], str]) -> Case:
    """A hook of Claude Code looks into such a transcript."""

    def case(n: int) -> Work:
        found = Transcript((make(n) + _claude(10**6, 1)).encode())
        return lambda: (found.lines_of("c1", "c1000000"), list(found.restored_files()))

    return case


def settled_in(make: Callable[[int], str]) -> Case:
    """Settings of a host are such a text."""

    def case(n: int) -> Work:
        text = make(n)

        def work() -> None:
            with contextlib.suppress(UsageError):
                JsonText(text)

        return work

    return case


REQUESTS: dict[str, Callable[[int], str]] = {
    "deep": _deep,
    "deep arguments": lambda n: (
        f'{{"jsonrpc":"2.0","id":1,"method":"observe_tool","params":{{"conversation":"c","name":"x","output":"y","arguments":{_deep(n)}}}}}'
    ),
    "a long number": lambda n: '{"jsonrpc":"2.0","id":' + "1" * n + "}",
    "many fields": lambda n: json.dumps({str(k): k for k in range(n // 12)}),
    "a long list": lambda n: (
        '{"jsonrpc":"2.0","id":1,"method":"sync","params":{"conversation":"c","messages":[' + "{}," * (n // 3) + "{}]}}"
    ),
}


def answered(make: Callable[[int], str]) -> Case:
    """`readcache serve` is sent such a line."""

    def case(n: int) -> Work:
        line = make(n).encode()
        protocol = Protocol(Sessions("/r", store=MemoryStore()))
        return lambda: to_line(protocol.answer(parse(line)))

    return case


def stored(n: int) -> Work:
    """The rows of a session in a Redis store are read for every reader at once."""
    event = Failed("c", Reason.INTERNAL_ERROR.value, "it failed")
    kind, body, _ = encode(event)
    packed = b"=" + json.dumps(body).encode()
    rows = [(k, b" ".join([b"0", kind.encode(), b"main", b"1.0", b"-", packed]), None) for k in range(n // 100)]
    return lambda: read_rows(rows, None)


def _aligned(make: Callable[[int], tuple[list[str], list[str]]]) -> Case:
    def case(n: int) -> Work:
        before, after = make(n // 6)
        return lambda: align(before, after)

    return case


CASES: dict[str, Case] = {
    **{f"shell: {name}": read(make) for name, make in COMMANDS.items()},
    **{f"judging: {name}": judged(make) for name, make in (OUTPUTS | SECRETIVE).items()},
    **{f"numbers: {name}": read_by_a_tool(make) for name, make in NUMBERED.items()},
    "marker: open": lambda n: lambda text=f"[UNCHANGED {TAG}.1: " * (n // 19): find_markers(text, TAG),  # type: ignore[misc]
    "sync: nothing gone": synced(exchange, list),
    "sync: half gone": synced(exchange, lambda messages: messages[len(messages) // 2 :]),
    "sync: clipped": synced(exchange, _clip),
    "sync: no ids, half gone": synced(plainly, lambda messages: messages[len(messages) // 2 :]),
    "sync: no ids, clipped": synced(plainly, _clip),
    "sync: no ids, upside down": synced(plainly, lambda messages: messages[::-1]),
    "sync: no ids, one message": synced(plainly, _join),
    "sync: no ids, equal results clipped": synced(plainly, _clip, different=40),
    "sync: markers": said(lambda n: (MARKER + "\n") * (n // len(MARKER))),
    "sync: markers on one line": said(lambda n: MARKER * (n // len(MARKER))),
    "sync: open markers": said(lambda n: f"[UNCHANGED {TAG}.1: " * (n // 19)),
    "sync: brackets behind markers": said(lambda n: f"[UNCHANGED {TAG}.1: " * (n // 38) + "]" * (n // 2)),
    "settle: lines upside down": _aligned(lambda n: ([str(k) for k in range(n)], [str(k) for k in range(n)][::-1])),
    "settle: equal lines": _aligned(lambda n: (["x"] * n + ["y"], ["z"] + ["x"] * n)),
    "restore: filters": restored(lambda n: "x" + " 2>&1" * (n // 5)),
    "restore: blanks": restored(lambda n: "x" + "\n" * n + "y"),
    "restore: blanks behind a filter": restored(lambda n: "x | head" + " " * n + ";y"),
    "settings: quotes": settled_in(lambda n: '"\\' * (n // 2)),
    "settings: comments": settled_in(lambda n: "/*" * (n // 2)),
    **{f"messages: {name}": normalised(make) for name, make in LISTS.items()},
    **{
        f"messages: {name}, changed": rewritten(LISTS[name])
        for name in ("calls at once", "results far from their calls")
    },
    "messages: in one message, changed": rewritten(_in_one_message),
    "messages: in one message, pruned": pruned,
    "redis: rows of every reader": stored,
    **{f"loaders: {name}": loaded(make) for name, make in TRANSCRIPTS.items()},
    "turns: options that look like a program": sorted_by_kind(lambda n: "npm" + " -npm" * (n // 5)),
    "turns: programs": sorted_by_kind(lambda n: "npm run " * (n // 8)),
    "turns: variables": sorted_by_kind(lambda n: ";a=" * (n // 3)),
    "turns: quotes": sorted_by_kind(lambda n: "'\"" * (n // 2)),
    **{f"hook: {name}": proven(make) for name, make in TRANSCRIPTS.items()},
    **{f"serve: {name}": answered(make) for name, make in REQUESTS.items()},
}
