"""`prune` and `compact`: what a harness in another language does with its message list, a process for each step."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readcache import Session
from readcache.context import Compactor
from readcache.context.compaction import count_tokens
from readcache.core.messages.messages import normalise
from tests.helpers.chats import Messages, Step, chat, each_api, is_sendable, results, roles_alternate, texts
from tests.helpers.compactor import Model
from tests.helpers.files import WATCHDOG

TOP = Path(__file__).resolve().parents[2]
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]
SUMMARY = "TASK: the first lines of f are fine\nNEXT STEP: read on"


@pytest.fixture
def agent(run: Run, work: Path) -> Callable[[str], Messages]:
    """The conversation of an agent that ran six commands through `readcache run`: the second read repeats the first."""
    for name in "gh":
        (work / name).write_text("".join(f"line {n} of the file {name}\n" for n in range(1, 301)))
    commands = ("head -200 f", "cat -n f", "cat g", "cat h", "tail -50 g", "ls")

    def talk(shape: str) -> Messages:
        done = [run("run", "--call-id", f"c{n}", "-c", each).stdout.decode() for n, each in enumerate(commands, 1)]
        return chat(shape, *map(Step, commands, done))

    return talk


def save(work: Path, messages: object) -> str:
    (work / "list.json").write_text(json.dumps(messages))
    return "list.json"


def printed(run: Run, *words: str, **options: Any) -> Any:
    done = run(*words, **options)
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout)


def shows_all(run: Run, command: str) -> bool:
    plain = subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout
    return run("run", "-c", command).stdout == plain


# ------------------------------------------------------------ prune


@each_api
def test_prune_cuts_a_long_result_and_tells_the_session(shape: str, run: Run, work: Path) -> None:
    (work / "long").write_text("".join(f"line {n} of a long file\n" for n in range(1, 2001)))
    shown = run("run", "--call-id", "c1", "-c", "cat long").stdout.decode()
    messages = chat(shape, Step("cat long", shown), Step("ls", "long"))
    pruned = printed(run, "prune", save(work, messages))
    assert len(results(pruned)["c1"]) < len(shown)
    assert pruned[-2:] == messages[-2:]
    assert shows_all(run, "sed -n '901,1000p' long")
    assert not shows_all(run, "head -100 long")
    assert printed(run, "prune", "-", stdin=json.dumps(pruned).encode()) == pruned


@each_api
def test_what_need_not_be_pruned_comes_out_as_it_went_in(shape: str, run: Run, work: Path) -> None:
    messages = [*chat(shape, Step("ls", "f")), {"role": "user", "content": "ä \ud800", "x": [1.5, None, 10**40]}]
    assert printed(run, "prune", save(work, messages)) == messages


# ------------------------------------------------------------ compact


@each_api
def test_two_processes_compact_as_a_compactor_does(
    shape: str, run: Run, work: Path, agent: Callable[[str], Messages]
) -> None:
    messages = agent(shape)
    copy = work.parent / "copy.db"
    with closing(sqlite3.connect(work.parent / "state/readcache/readcache.db")) as store:
        store.execute("VACUUM INTO ?", (str(copy),))
    model = Model(SUMMARY)
    with Session(os.getcwd(), session_id="s", store=str(copy), local=True) as session:
        counted = count_tokens(normalise(messages), session.policy)
        expected = Compactor(session, model, trigger_tokens=counted).compact(list(messages))
    request = printed(run, "compact", save(work, messages), "--request")
    assert [message["content"] for message in request] == model.asked
    (work / "summary").write_text(SUMMARY)
    shorter = printed(run, "compact", "list.json", "--summary", "summary")
    assert shorter == expected
    assert len(json.dumps(shorter)) < len(json.dumps(messages))
    assert is_sendable(shorter)
    assert shape == "openai" or roles_alternate(shorter)


@each_api
def test_after_it_only_what_is_in_the_list_is_left_out(
    shape: str, run: Run, work: Path, agent: Callable[[str], Messages]
) -> None:
    for name in "gh":  # more than a restored section has room for
        (work / name).write_text("".join(f"line {n} of the file {name}\n" for n in range(1, 1501)))
    save(work, agent(shape))
    assert not shows_all(run, "sed -n '1,40p' h")
    shorter = "\n".join(texts(printed(run, "compact", "list.json")))
    assert "No summary could be made" in shorter
    lost = [n for n in range(1, 1501) if f"line {n} of the file h" not in shorter]
    there = [n for n in range(1, 1501) if f"line {n} of the file g" in shorter]
    assert lost
    assert there
    assert shows_all(run, f"sed -n '{lost[0]},{lost[-1]}p' h")
    assert not shows_all(run, f"sed -n '{there[-40]},{there[-1]}p' g")


@each_api
def test_the_commands_of_the_document_do_what_it_says(shape: str, work: Path, agent: Callable[[str], Messages]) -> None:
    page = (TOP / "docs/compaction.md").read_text(encoding="utf-8").partition("## In any language")[2]
    (block,) = re.findall(r"^```\n(.*?)^```$", page.partition("\n## ")[0], re.MULTILINE | re.DOTALL)
    save(work, agent(shape))
    (work / "answer.txt").write_text(SUMMARY)
    program = f'set -e; readcache() {{ "{sys.executable}" -m readcache "$@"; }}\n{block}'
    subprocess.run(["bash", "-c", program.replace("chat-17", "s")], check=True, timeout=WATCHDOG)
    request, new = (json.loads((work / name).read_text()) for name in ("request.json", "new.json"))
    assert "line 3 of the file h" in request[0]["content"]
    assert any(SUMMARY in each for each in texts(new))
    assert is_sendable(new)


def test_the_store_keeps_no_copy_of_the_list(run: Run, work: Path) -> None:
    turns = [(role, f"a thing that {role} says {n}") for n in range(9) for role in ("user", "assistant")]
    said = [{"role": role, "content": words} for role, words in [("user", "go"), *turns]]
    assert len(printed(run, "compact", save(work, said))) < len(said)
    stored = b"".join(path.read_bytes() for path in (work.parent / "state").rglob("*") if path.is_file())
    assert stored
    assert b"a thing that" not in stored


@pytest.mark.parametrize("mode", ["off", "advise", "a mistake"])
@each_api
def test_switched_off_prune_prints_what_it_was_given(
    shape: str, mode: str, run: Run, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("READCACHE", mode)
    messages = chat(shape, Step("cat long", "a line\n" * 9_000), Step("ls", "long"))
    assert printed(run, "prune", save(work, messages)) == messages


def test_without_turns_to_summarise_the_request_is_empty(run: Run, work: Path) -> None:
    list_file = save(work, chat("openai", Step("ls", "f")))
    assert printed(run, "compact", list_file, "--request") == []


def test_a_summary_that_is_not_used_is_said(run: Run, work: Path, agent: Callable[[str], Messages]) -> None:
    save(work, agent("openai"))
    done = run("compact", "list.json", "--summary", "-", stdin=b"<analysis>hm</analysis>")
    said = b"readcache: the summary was not used: the response held no summary\n"
    assert (done.returncode, done.stderr) == (0, said)
    assert "No summary could be made" in done.stdout.decode()


# ------------------------------------------------------------ mistakes


@pytest.mark.parametrize("command", ["prune", "compact"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"{oops", b"list.json is not JSON: "),
        (b'[{"role": "user", "content": NaN}]', b"list.json is not JSON: NaN is not a JSON number"),
        (b'[{"role": "user", "content": "\xff"}]', b"list.json is not JSON: 'utf-8' codec"),
        (b'{"messages": []}', b"list.json is not a list of message objects: give the list itself as JSON"),
        (b'["hello"]', b"list.json is not a list of message objects: give the list itself as JSON"),
        (b"[" * 100_000, b"list.json is not JSON: "),
        (None, b"cannot read list.json: No such file or directory; give a file, or - for stdin"),
    ],
)
def test_what_is_not_a_message_list_is_an_error_of_one_line(
    command: str, given: bytes | None, said: bytes, run: Run, work: Path
) -> None:
    if given is not None:
        (work / "list.json").write_bytes(given)
    assert_refused(run(command, "list.json"), said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--request", "--summary", "list.json"), b"argument --summary: not allowed with argument --request"),
        (("--summary", "gone"), b"cannot read gone: No such file or directory"),
    ],
)
def test_options_that_make_no_sense_are_an_error_of_one_line(
    words: tuple[str, ...], said: bytes, run: Run, work: Path
) -> None:
    save(work, [])
    assert_refused(run("compact", "list.json", *words), said)


def test_stdin_is_read_once(run: Run) -> None:
    said = b"FILE and --summary are both stdin: give one of them as a file"
    assert_refused(run("compact", "-", "--summary", "-", stdin=b"[]"), said)


def test_a_session_has_to_be_named(run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("READCACHE_SESSION")
    for command in ("prune", "compact"):
        assert_refused(run(command, save(work, [])), b"no session is named: use --session or READCACHE_SESSION")


def assert_refused(done: subprocess.CompletedProcess[bytes], said: bytes) -> None:
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert done.stderr.startswith(b"readcache: " + said)


MALFORMED: dict[str, Messages] = {
    "nothing": [],
    "no role": [{}, {"foo": 1.5}],
    "content of another kind": [{"role": "user", "content": 5}, {"role": "assistant", "content": [3, None]}] * 4,
    "results without calls": [{"role": "tool", "tool_call_id": "x", "content": "y" * 5_000}] * 6,
    "calls without results": chat("openai", *[Step("ls", None)] * 6),
}


@pytest.mark.parametrize("command", ["prune", "compact"])
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_list_loses_nothing(command: str, name: str, run: Run, work: Path) -> None:
    assert printed(run, command, save(work, MALFORMED[name])) == MALFORMED[name]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_what_was_put_back_into_a_list_that_never_arrived_is_shown(
    run: Run, work: Path, agent: Callable[[str], Messages]
) -> None:
    save(work, agent("openai"))
    (work / "g").write_text("".join(f"line {n} as somebody else wrote it\n" for n in range(1, 301)))
    with open("/dev/full", "wb") as full:
        assert run("compact", "list.json", stdout=full).returncode == 1
    assert shows_all(run, "cat g")
    assert not shows_all(run, "tail -n +2 g")
