"""An API on localhost for one model that follows a script, whatever the API is: of Codex and of the Gemini CLI."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from readcache.testing.hosts import Seen, Step, Worker

Look = Callable[[list[Seen], str, dict[str, str]], object]


class Api(http.server.ThreadingHTTPServer):
    """Answers from `model`, which is what a handler makes of it, until it is closed."""

    daemon_threads = True

    def __init__(self, model: Any, handler: type[ApiHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.model, self.delay = model, 0.0  # seconds for an answer
        threading.Thread(target=self.serve_forever, daemon=True).start()


class ApiHandler(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: Api

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def body(self) -> Any:
        """What it says."""
        time.sleep(self.server.delay)
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def begin(self, kind: str = "text/event-stream") -> None:
        """The answer's head."""
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()


def by_process(steps: Sequence[Step]) -> list[Sequence[Step]]:
    """The steps of each process, of hosts that resume a conversation: a `Worker` is the first step of its process."""
    starts = [0, *(at for at, step in enumerate(steps) if isinstance(step, Worker)), len(steps)]
    return [steps[low:high] for low, high in pairwise(starts)]
