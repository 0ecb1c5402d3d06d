"""`doctor --fire`: run a host on this machine with a scripted model that has it read one file twice.

If the host works, it sends the model a marker of readcache instead of the second copy. The host's own transcript of a
conversation proves the same without a run.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from glob import escape, glob
from pathlib import Path
from typing import Any

from readcache.cli.sessions import contexts
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.events import Delivered
from readcache.hosts.host import Host, InstallTarget, Scripted
from readcache.hosts.settings_files.switch import Switch
from readcache.log.store import Store, open_store
from readcache.process.settings import Settings
from readcache.process.state import is_missing
from readcache.transcripts.files import kept_transcripts

NEWEST = 100  # conversations that are checked, newest first
SECONDS = 90.0  # for the whole conversation; a host that starts for the first time takes 10
PAUSE = 0.1  # seconds between two checks if the host has ended
LINES = 60  # lines of the canary file
_KEPT_VARIABLES = ("LANG", "PATH", "PYTHONPATH", "TERM", "TMPDIR")  # no keys, no proxies, nothing of the host's


def recorded_proof(host: str, settings: Settings) -> str:
    """Return the path of a transcript that proves that a marker reached this host's model, or "" if there is none."""
    folder, spec = dict(kept_transcripts()).get(host), settings.store_spec()
    if folder is not None and not is_missing(spec):
        with closing(open_store(spec)) as store:
            for session, agent, *_ in contexts(store)[:NEWEST]:
                markers = markers_in(store, session, agent, host)
                named = f"{escape(folder)}/**/*{escape(session[:8])}*.jsonl"  # Gemini's names have no more
                for path in glob(named, recursive=True) if markers else ():
                    if _has_one(path, markers):
                        return path
    return ""


def markers_in(store: Store, session: str, agent: str, host: str) -> set[str]:
    """Return the markers in the replies that this host got from a reader."""
    events = [record.event for record in store.records(session, agent)]
    replies = [e for e in events if isinstance(e, Delivered) and e.account and e.account.host == host]
    return {marker.wording for reply in replies for marker in reply.markers if marker.wording}


def _has_one(path: str, markers: Collection[str]) -> bool:
    """Return True if a result that the model got contains one of the markers."""
    from readcache.core.model.tool_call import ToolCall
    from readcache.report.replay.replayer import conversations_in

    with contextlib.suppress(ReadcacheError):
        items = (item for readers in conversations_in(path) for reader in readers for item in reader.items)
        return any(marker in item.output for item in items if isinstance(item, ToolCall) for marker in markers)
    return False


class NotFired(Exception):
    """Raised if the host could not be tried. The message says why."""


def say_proof(host: Host, target: InstallTarget, settings: Settings) -> str:
    """Return the proof that the model's copy changed, or the reason why there is none. Raise ReadcacheError if the
    trial failed, even if an older transcript is a proof."""
    try:
        is_changed = fire(host, target)
    except NotFired as error:
        if path := recorded_proof(host.name, settings):
            return f"proven by {path} ({error})"
        can_be_read = host.name in dict(kept_transcripts())
        todo = "have it read a file twice, then run this again" if can_be_read else "no transcripts of it can be read"
        return f"not proven ({error}): {todo}"
    if not is_changed:
        what = "tried and failed: a scripted model was sent both reads of a file in full"
        again = f"update {host.name} and readcache, then run `readcache init {host.name} {target.scope_option()}`"
        raise ReadcacheError(f"{what}, so nothing is omitted here; {again}")
    advised = "" if target.mode == "on" else ", had it been on"
    return f"proven by a scripted model, which was sent a marker for its second read{advised}"


def fire(host: Host, target: InstallTarget) -> bool:
    """Return True if the model got a marker of readcache instead of the canary's lines.

    The host gets a home directory of its own, without the user's settings, conversations and keys. Raise NotFired if
    nothing was tried, or if the host did not make both calls.
    """
    scripted, canary = host.scripted, f"canary {secrets.token_hex(8)}"
    if scripted is None:
        raise NotFired("no scripted model is known for it")
    if limit := host.only_advises(target):
        raise NotFired(limit)
    name = scripted.words[0]
    if (program := shutil.which(name)) is None:
        raise NotFired(f"{name} is not on PATH")
    near = "/tmp" if os.path.isdir("/tmp") else None  # macOS's own directory has a name that is too long for a socket
    with tempfile.TemporaryDirectory(prefix="readcache-fire-", dir=near, ignore_cleanup_errors=True) as directory:
        project, store = Path(directory, "project"), str(Path(directory, "fire.db"))
        project.mkdir()
        (project / "canary.txt").write_text("".join(f"{canary}, line {number}\n" for number in range(LINES)))
        with _model(scripted) as model:
            env = _switch_on(host, target, Path(directory, "home"), model) | {"READCACHE_STORE": store}
            said = _run([program, *scripted.words[1:]], str(project), env, model.is_done)
        if model.last is None:
            raise NotFired(f"{name} read no file twice, and {said}")
        with closing(open_store(store)) as opened:
            markers = set[str]().union(*(markers_in(opened, *each[:2], host.name) for each in opened.sessions()))
    texts = "\n".join(_texts(model.last))
    return texts.count(f"{canary}, line {LINES - 1}") == 1 and any(marker in texts for marker in markers)


def _switch_on(host: Host, target: InstallTarget, home: Path, model: _Model) -> dict[str, str]:
    """Switch the host on in that home directory, as a user does. Return the environment to run it in."""
    for path, text in model.scripted.files(model.url).items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    programs = {name: value for name, value in target.environment.items() if name == "PATH"}
    there = target._replace(home=str(home), is_user=True, mode="on", environment=programs)
    if set(map(type, host.changes(there))) != set(map(type, host.changes(target))):
        there = there._replace(environment={})  # use hooks, as in a project whose plugins Claude Code does not load
    switch = Switch(host, there, str(home / "remembered"))
    switch.write(switch.plan_on())
    env = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    ours = {"READCACHE": "on", "READCACHE_SERVER": "off", "XDG_STATE_HOME": str(home / "state")}
    return env | ours | {"HOME": str(home), "NO_PROXY": "127.0.0.1"} | {**model.scripted.environment(model.url)}


class _Model(http.server.ThreadingHTTPServer):
    """The scripted model. It asks for the canary until a request has two results, and keeps that request."""

    daemon_threads = True

    def __init__(self, scripted: Scripted) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scripted, self.url = scripted, f"http://127.0.0.1:{self.server_port}"
        self.last: Any = None
        self.is_done = threading.Event()

    def handle_error(self, *_: object) -> None:
        """Print nothing, because a host may hang up."""

    def answer(self, path: str, request: Any) -> str:
        """Return the body of the answer to a request."""
        # A request without tools asks for a title or the like.
        time.sleep(self.scripted.seconds)
        number = json.dumps(request).count(self.scripted.result)
        if number >= 2:
            self.last = request
            self.is_done.set()
        command = "cat canary.txt" if number < 2 and request.get("tools") else ""
        return self.scripted.answer(path, number, command)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Model

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer a request for the list of models, or a check that the server is up."""
        self._send('{"object": "list", "data": [], "models": []}')

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Answer a request to the model."""
        request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        self._send(self.server.answer(self.path, request))

    def _send(self, text: str) -> None:
        is_json = text.startswith("{")
        self.send_response(200)
        self.send_header("content-type", "application/json" if is_json else "text/event-stream")
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


@contextmanager
def _model(scripted: Scripted) -> Iterator[_Model]:
    with _Model(scripted) as model:
        threading.Thread(target=model.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield model
        finally:
            model.shutdown()


def _run(words: list[str], cwd: str, env: dict[str, str], is_done: threading.Event) -> str:
    """Run the host until the model has its last request, or for `SECONDS`. Return a text about how it ended, with the
    end of its output."""
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=True
        )
        try:
            until = time.monotonic() + SECONDS
            while not is_done.wait(PAUSE) and process.poll() is None and time.monotonic() < until:
                pass
            status = process.poll()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        printed.seek(0)
        end = " ".join(printed.read().decode("utf-8", "replace").split())[-200:]
    how = f"ran for {SECONDS:.0f} seconds" if status is None else f"ended with status {status}"
    return f"{how}: {end}" if end else how


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)
