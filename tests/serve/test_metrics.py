"""`readcache serve --metrics`: real servers, scraped as Prometheus scrapes them; and the dashboard that shows it."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from readcache import __version__
from readcache.cli.main import main
from readcache.hosts import MODULES
from readcache.log.telemetry import HOST, HOSTS, METRICS, SECONDS
from readcache.serve import address, frames
from tests.helpers import forks
from tests.helpers.files import WATCHDOG, wait_until
from tests.serve.conftest import TOP, ServerUnderTest
from tests.serve.test_hooks import ask, events_of

TEXT = "".join(f"line {number} of a file\n" for number in range(60))
Samples = dict[str, float]
SAMPLE = re.compile(r'^(\w+)(\{(?:\w+="(?:[^"\\\n]|\\.)*",?)*\})? (\S+)$')


class Server:
    """A server that is scraped."""

    def __init__(self, process: forks.Process) -> None:
        assert process.stderr is not None
        self.url = process.stderr.readline().decode().split()[-1]
        self.errors = b""  # what else it prints
        self.process, self.port = process, int(re.findall(r":(\d+)/", self.url)[0])

    def scrape(self) -> Samples:
        """Every sample, by its name and labels as they are written."""
        with urllib.request.urlopen(self.url, timeout=WATCHDOG) as answer:
            lines = answer.read().decode().splitlines()
        found = [SAMPLE.match(line) for line in lines if not line.startswith("#")]
        return {match[1] + (match[2] or ""): float(match[3]) for match in found if match is not None}

    def ask(self, method: str, agent: str = "main", **params: Any) -> Any:
        """A request in JSON."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            "params": {"conversation": "c", "agent": agent, **params},
        }
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def read(self, name: str) -> str:
        """The reply to a read of a file."""
        reply = self.ask("observe", command=f"cat {name}", output=name + TEXT * (9 if name == "g" else 1))
        return str(reply["text"])


@contextmanager
def serving(at: ServerUnderTest, *words: str, stdin: int = subprocess.PIPE, **env: str) -> Iterator[Server]:
    pipe = subprocess.PIPE
    with forks.start(
        ("serve", "--metrics", "127.0.0.1:0", *words), stdin=stdin, stdout=pipe, stderr=pipe, env={**at.env, **env}
    ) as process:
        server = Server(process)
        yield server
        if process.stdin is not None:
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(WATCHDOG) == 0
        assert process.stderr is not None
        server.errors = process.stderr.read()


def test_a_scrape_says_what_the_session_counted(at: ServerUnderTest) -> None:
    with serving(at, READCACHE_HOST="opencode") as server:
        assert server.read("f") == "f" + TEXT
        assert "UNCHANGED" in server.read("f")
        assert server.read("f") == "f" + TEXT, "the reader insists"
        server.read("g")
        server.read("h")
        assert "UNCHANGED" in server.read("g")
        server.ask("compacted", restored=server.ask("restore_plan"))
        server.ask("wrote", path="g")
        stats, found = server.ask("stats"), server.scrape()
    of = '{host="opencode"}'
    assert found[f"readcache_calls_total{of}"] == stats["calls"] == 6
    assert found['readcache_omissions_total{host="opencode",reason="covered"}'] == stats["covered"] == 2
    assert found[f"readcache_bounces_total{of}"] == stats["bounces"] == 1
    assert found[f"readcache_asked_again_tokens_total{of}"] == stats["tokens_bounced"] > 0
    assert found[f"readcache_left_out_tokens_total{of}"] == stats["tokens_saved"] + stats["tokens_bounced"]
    assert found[f"readcache_turns_avoided_total{of}"] == stats["turns_avoided"] == 1
    assert found[f"readcache_judging_seconds_count{of}"] == 6
    assert 0 < found[f"readcache_judging_seconds_sum{of}"] < WATCHDOG


def after_codex(event: bytes, shown: str) -> bytes:
    """Codex' next event: its session's file has what the model was sent."""
    told = json.loads(event)
    with Path(told["transcript_path"]).open("a") as file:
        result = {"type": "function_call_output", "call_id": told["tool_use_id"], "output": shown}
        call = {"type": "function_call", "name": "exec_command", "call_id": "three", "arguments": '{"cmd": "ls"}'}
        ended = {"type": "item_completed", "item": {"type": "CommandExecution", "id": "three", "exit_code": 0}}
        for kind, payload in (("response_item", result), ("response_item", call), ("event_msg", ended)):
            file.write(json.dumps({"type": kind, "payload": payload}) + "\n")
    more = {"tool_use_id": "three", "tool_input": {"command": "ls"}, "tool_response": "file"}
    return json.dumps({**told, **more}).encode()


def test_hooks_and_shims_that_a_server_answers_count_for_their_hosts(at: ServerUnderTest, tmp_path: Path) -> None:
    hostile = 'x"} 1\nreadcache_calls_total{host="codex'
    with serving(at, "--on-demand", stdin=subprocess.DEVNULL) as server:
        at.wait()
        for event in events_of("codex", tmp_path / "codex") + events_of("gemini", tmp_path / "gemini")[:1]:
            answer = ask(at, "codex" if b"codex" in event else "gemini", event)
            if b"decision" in answer:
                ask(at, "codex", after_codex(event, json.loads(answer[1:])["reason"]))
        ask(at, "codex", b'["no event"]')
        for number in range(20):
            in_sandbox(at, "shims" if number < 2 else f"{hostile}{number}")
        wait_until(lambda: sum(of_name(server.scrape(), "readcache_calls_total").values()) == 24)
        found = server.scrape()
    calls = of_name(found, "readcache_calls_total")
    assert calls == {'{host="codex"}': 3, '{host="gemini"}': 1, '{host="shims"}': 2, '{host="other"}': 18}
    failures = of_name(found, "readcache_failures_total")
    assert [labels for labels, count in failures.items() if count] == ['{cause="internal_error",host="codex"}']
    omissions = of_name(found, "readcache_omissions_total")
    assert {labels for labels, count in omissions.items() if count} == {'{host="codex",reason="covered"}'}
    assert len(omissions) == 5 * len(calls), "all of a host begin at 0"


def of_name(found: Samples, name: str) -> Samples:
    return {key.removeprefix(name): value for key, value in found.items() if key.startswith(name + "{")}


def in_sandbox(at: ServerUnderTest, host: str) -> None:
    """A whole command of the short way, which names its host itself."""
    environ = ("READCACHE=on", "READCACHE_SESSION=s", f"READCACHE_HOST={host}")
    head = frames.head_texts((__version__, "run", at.store, "/", ""), environ, ("cat f",), ())
    with closing(address.reach(at.path, WATCHDOG)) as connection:
        connection.sendall(frames.frame(frames.FIRST, head))
        assert frames.read_frame(connection, 1 << 16)[0] == b"H"
        connection.sendall(frames.frame(b"O", b"0\0" + os.urandom(20).hex().encode() + b"\n"))
        assert frames.read_frame(connection, 1 << 16)[0] == b"A"
        connection.sendall(frames.frame(b"S", b"0\0"))
        assert connection.recv(1) == b""


def test_a_failure_counts_where_no_store_takes_it(at: ServerUnderTest) -> None:
    with serving(at, "--store", "redis://127.0.0.1:1/0") as server:
        assert server.read("f") == server.read("f") == "f" + TEXT
        found = server.scrape()
    assert found['readcache_failures_total{cause="store_failed",host="serve"}'] == 2
    assert found['readcache_judging_seconds_count{host="serve"}'] == 2
    assert found['readcache_calls_total{host="serve"}'] == 0


def test_scrapers_that_fail_cost_nobody_anything(at: ServerUnderTest) -> None:
    with serving(at) as server:
        hanging = socket.create_connection(("127.0.0.1", server.port))
        for sent in (
            b"",
            b"GET /metrics HTTP/1.1\r\n\r\n",
            b"\xff\0" * 999,
            b"GET " + b"a" * 70_000,
            b"POST / HTTP/9\r\n\r\n",
        ):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(sent)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # ends with a reset
        server.read("f")
        assert server.scrape()['readcache_calls_total{host="serve"}'] == 1
        hanging.close()
    assert server.errors == b""


@pytest.mark.parametrize(
    "address",
    ["", "9464", "0.0.0.0:9464", "[::]:9464", "example.org:9464", "10.0.0.1:1", "127.0.0.1:", "127.0.0.1:65536"],
)
def test_an_address_that_others_reach_is_refused(address: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--metrics", address]) == 2
    assert "is not an address of this machine alone: give 127.0.0.1:9464" in capfd.readouterr().err


def test_one_that_is_taken_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        assert main(["serve", "--metrics", address]) == 1
    assert f"cannot serve metrics at {address}: Address already in use" in capfd.readouterr().err


def test_without_the_package_it_says_what_to_install(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert main(["serve", "--metrics", "127.0.0.1:0"]) == 1
    assert "pip install 'readcache[metrics]'" in capfd.readouterr().err


def test_a_server_that_is_there_already_is_told_of(at: ServerUnderTest) -> None:
    at.start()
    done = at.readcache("serve", "--on-demand", "--metrics", "127.0.0.1:0")
    assert (done.returncode, done.stderr.count(b"serve --stop")) == (1, 1)


def test_every_way_in_that_names_itself_is_a_label() -> None:
    page = (TOP / "docs/measuring.md").read_text(encoding="utf-8")
    text = page.partition("## Hosts")[2].partition("Rows of earlier")[0]
    named = set(re.findall(r"`([a-z-]+)`", text))
    assert named == HOSTS >= set(MODULES)


def queries(panel: dict[str, Any]) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


def test_the_dashboard_asks_for_metrics_that_there_are_and_for_all() -> None:
    board = json.loads((TOP / "docs/dashboard.json").read_text(encoding="utf-8"))
    labels = {f"{metric.name}_total": {HOST, metric.label} - {""} for metric in METRICS}
    labels |= {f"{SECONDS.name}_{part}": {HOST} for part in ("count", "sum")} | {f"{SECONDS.name}_bucket": {HOST, "le"}}
    asked = set[str]()
    for panel in board["panels"]:
        for query in queries(panel):
            names = set(re.findall(r"\breadcache_\w+", query))
            asked |= names
            assert names, panel["title"]
            assert names <= labels.keys(), panel["title"]
            used = {label for some in re.findall(r"by \(([^)]*)\)", query) for label in re.findall(r"\w+", some)}
            used |= {label for some in re.findall(r"\{([^}]*)\}", query) for label in re.findall(r"(\w+)\s*=~?", some)}
            assert all(used <= labels[name] for name in names), panel["title"]
            assert query.count("(") == query.count(")")
    assert labels.keys() - asked <= {f"{SECONDS.name}_count", f"{SECONDS.name}_sum"}
    page = (TOP / "docs/stores.md").read_text(encoding="utf-8")
    assert {f"{metric.name}_total" for metric in METRICS} | {SECONDS.name} == set(
        re.findall(r"`(readcache_\w+)`", page)
    )
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
