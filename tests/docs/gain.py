"""What the documents show of `readcache gain`: three made-up conversations whose commands really ran."""

from __future__ import annotations

import tempfile
from pathlib import Path

from readcache import Session
from readcache.log.store import Store, open_store
from readcache.report.net import short_line
from tests.report.reported import DAY, NOON, Clock, gain_of, numbered, printed

FILES = {"app.py": numbered(700), "shop.py": numbered(400, "another line, of the shop")}
MEANWHILE = ("ls", "wc -l app.py", "grep -c words shop.py", "sha1sum app.py")
ROUNDS = 6  # two days apart: more than 200 calls
# (host, days ago, commands)
TALKS = (
    ("claude-code", 0, ("cat app.py", *MEANWHILE, "sed -n '300,600p' app.py", *MEANWHILE, "cat app.py", *MEANWHILE)),
    ("codex", 3, ("cat app.py", *MEANWHILE, "sed -n '100,400p' app.py", "sed -n '100,400p' app.py", "cat shop.py")),
    ("opencode", 12, ("head -n 200 shop.py", *MEANWHILE, "cat shop.py", *MEANWHILE, "tail -n 250 shop.py", "ls")),
)


def gain_block() -> str:
    """The commands and what they print, as a fenced block."""
    store = open_store(None)
    with tempfile.TemporaryDirectory() as directory:
        for name, text in FILES.items():
            Path(directory, name).write_text(text)
        for number, (host, days, commands) in enumerate(TALKS * ROUNDS):
            _record(directory, store, f"talk-{number}", host, days + 2 * (number // len(TALKS)), commands)
    gain = gain_of(store)
    gain.by = {name: gain.by[name] for name in ("day", "host", "tool", "reason")}
    lines = [
        "$ readcache gain --price 3",
        *printed(gain, price=3.0),
        "",
        "$ readcache gain --short",
        short_line(gain.windows["today"]),
        "",
        "$ readcache gain --short --since 30d",
        short_line(gain.windows["30 days"], ""),
    ]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def _record(directory: str, store: Store, name: str, host: str, days: int, commands: tuple[str, ...]) -> None:
    clock = Clock(NOON - days * DAY)
    session = Session(directory, session_id=name, store=store, clock=clock, host=host)
    for number, command in enumerate(commands):
        session.run(command, call_id=f"{name}-{number}")
        clock.now += 20
