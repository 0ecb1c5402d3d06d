"""What agents do after a stub: does the next call ask for the lines that it kept back?

    python tests/benchmarks/census.py                            # the transcripts of the hosts on this machine
    python tests/benchmarks/census.py PATH… [--rows FILE]        # these; keep the rows, which hold no contents
    python tests/benchmarks/census.py --coded FILE… [--without NAME]   # rows that were kept, or the published ones

A stub is a result in which nothing but "you have that" stands, by Claude Code, hermes or others, or by our own markers.
Each has one vote in its session, and each session has one vote: single users have long loops. Intervals are of a
bootstrap over sessions. By where the lines stood: the last call before that showed or wrote the file decides.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from readcache.core.messages.tools import tool_use
from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall
from readcache.core.shell.read import read_command
from readcache.testing.requests import markers
from readcache.transcripts.files import find_files, kept_transcripts, read_content, units_of
from readcache.transcripts.formats import recordings_in
from readcache.transcripts.records import HistoryRemoval, NotUnderstood, Recording
from tests.replay.plain_form import register

Row = dict[str, Any]

LONGEST = 900  # characters of a stub
STUBS = {
    "claude-code": r"File unchanged since last read\. The content|Wasted call . file unchanged since your last Read"
    r"|<system-reminder>This file is already in your context",
    "hermes": r"\{[^\0]{0,400}(?:\"dedup\": ?true|File unchanged since last read\.)",
    "other": r"\[?File (?:previously read|unchanged)|\[File [^\n]{0,200}unchanged since|Unchanged since last read"
    r"|\[cachebro: unchanged|\[unchanged, \d+ lines|\[↑?\d+L? same as msg",
}
POLLED = re.compile(r"/tasks/[^/]*\.output$|\.log$|\.output$")  # the agent wants the end of it, as it is now
SAME = {"same-read", "shell-read-same"}  # as the published rows have it
# What a source is called -> the rows with it. `untold`: nothing in the transcript showed or wrote the file.
KINDS: dict[str, Callable[[Row], bool]] = {
    "a read": lambda row: (row["stood"], row["src"]) == ("stood", "read") and row["file"] != "log/output",
    "the agent's own edit": lambda row: (row["stood"], row["src"]) == ("stood", "edit") and row["file"] != "log/output",
    "an attachment": lambda row: (row["stood"], row["src"]) == ("stood", "attached") and row["file"] != "log/output",
    "cleared or compacted away": lambda row: row["stood"] in ("cleared", "micro"),
    "nothing that is told": lambda row: row["stood"] == "untold" and row.get("via") != "excerpt",
    "logs and task outputs": lambda row: row["file"] == "log/output",
}


def stub_of(text: str) -> str:
    """Whose stub the whole result is; "" if it is none."""
    text = text.strip()
    if len(text) > LONGEST:
        return ""
    if found := markers(text):
        return "readcache" if all(line in found for line in text.split("\n")) else ""
    return next((name for name, pattern in STUBS.items() if re.match(pattern, text)), "")


def file_of(call: ToolCall) -> str:
    """The file that a call of a tool reads or writes; "" for none, and for commands."""
    if call.writes:
        return call.writes[0].path
    if isinstance(call.asked, AskedRead):
        return call.asked.path
    if call.asked is None and call.is_judged:
        return tool_use(call.name, call.arguments).path or ""
    return ""


def files_of(call: ToolCall) -> list[str]:
    """The files whose lines a command prints."""
    if not isinstance(call.asked, AskedCommand):
        return []
    reading = read_command(call.asked.command, str(call.cwd))
    return [key for claim in reading.claims for key in getattr(claim, "keys", ())]


def is_same(one: str, other: str) -> bool:
    """True if two names may be of one file."""
    return bool(one and other) and (one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}"))


def code_of(call: ToolCall, path: str, asked: object) -> str:
    """What a later call is, seen from the stub."""
    if any(is_same(file, path) for file in files_of(call)):
        return "shell-read-same"
    if not is_same(file_of(call), path):
        return "go-on"
    if call.writes:
        return "edit-same"
    return "same-read" if call.asked == asked else "same-file-other-range"


def source_of(before: Sequence[ToolCall | HistoryRemoval], path: str, asked: object) -> tuple[str | None, str]:
    """(what showed or wrote the file last, whether that stood)."""
    stood = "stood"
    for item in reversed(before):
        if isinstance(item, HistoryRemoval):
            stood = "cleared"
        elif stub_of(item.output) or item.is_error:
            continue
        elif any(is_same(file, path) for file in files_of(item)):
            return "read", stood
        elif is_same(file_of(item), path):
            if item.writes:
                return "edit", stood
            if item.tool == "attachment":
                return "attached", stood
            if item.asked == asked or not isinstance(asked, AskedRead):
                return "read", stood
    return None, "untold"


def rows_of(recording: Recording, source: str) -> Iterator[Row]:
    """A row for each stub of a conversation."""
    items = [item for item in recording.items if isinstance(item, (ToolCall, HistoryRemoval))]
    session = hashlib.sha1(f"{recording.name} {recording.reader}".encode()).hexdigest()[:10]
    for at, call in enumerate(items):
        if not isinstance(call, ToolCall) or not (stub := stub_of(call.output)):
            continue
        path, asked = file_of(call) or next(iter(files_of(call)), ""), call.asked
        if not path:
            continue
        src, stood = source_of(items[:at], path, asked)
        later = [one for one in items[at + 1 :] if isinstance(one, ToolCall) and one.tool != "attachment"]
        later = [one for one in later if not call.batch or one.batch != call.batch][:3]
        codes = [code_of(one, path, asked) for one in later]
        file = "log/output" if POLLED.search(path) else "file"
        known = {"source": source, "session": session, "host": recording.agent or recording.form, "stub": stub}
        yield {**known, "file": file, "src": src, "stood": stood, "next": codes, "via": "parsed"}


def rows_in(paths: Iterable[str]) -> Iterator[Row]:
    """The rows of these transcripts; each conversation once, by its first call."""
    seen = set[tuple[str, str]]()
    for file in find_files(paths):
        for unit in units_of(file):
            try:
                for recording in recordings_in(read_content(unit)):
                    key = recording.first_call or recording.name, recording.reader
                    if key not in seen:
                        seen.add(key)
                        yield from rows_of(recording, Path(file.path).name)
            except NotUnderstood as error:
                print(f"left aside: {error}", file=sys.stderr)


def votes(rows: Sequence[Row], calls: int) -> dict[tuple[str, str], float]:
    """The share of a session's stubs after which the same lines were asked for within so many calls."""
    asked = defaultdict[tuple[str, str], list[bool]](list)
    for row in rows:
        asked[row["source"], row["session"]].append(bool(SAME.intersection(row["next"][:calls])))
    return {session: sum(found) / len(found) for session, found in asked.items()}


def mean_and_interval(shares: Iterable[float], draws: int = 4_000) -> tuple[float, float, float]:
    """The mean, and 95 % of the means of samples of as many sessions."""
    values, rng = sorted(shares), random.Random(7)
    means = sorted(sum(rng.choices(values, k=len(values))) / len(values) for _ in range(draws))
    return sum(values) / len(values), means[draws // 40], means[-draws // 40]


def told(rows: Sequence[Row]) -> Iterator[str]:
    """The table."""
    yield f"{'the lines stood in':28}{'stubs':>7}{'sessions':>10}   the next call asks for them, one vote a session"
    groups: dict[str, Sequence[Row]] = {
        name: [row for row in rows if is_of_kind(row)] for name, is_of_kind in KINDS.items()
    }
    groups |= {f"stubs of {name}": [r for r in rows if r["stub"] == name] for name in ["readcache"]}
    for name, some in {**groups, "all": rows}.items():
        if not some:
            continue
        shares = votes(some, 1)
        mean, low, high = mean_and_interval(shares.values())
        within = mean_and_interval(votes(some, 3).values())[0]
        sizes = f"{name:28}{len(some):7,}{len(shares):10,}"
        yield f"{sizes}   {mean:4.0%} [{low:.0%}-{high:.0%}]; within three {within:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "paths", nargs="*", help="transcripts, or directories of them; default: where hosts keep theirs"
    )
    parser.add_argument("--rows", type=Path, metavar="FILE", help="keep the rows here")
    parser.add_argument("--coded", type=Path, nargs="+", default=[], metavar="FILE", help="rows that were kept")
    parser.add_argument("--without", default="", metavar="NAME", help="leave out sources with this in their names")
    chosen = parser.parse_args()
    register()
    coded: list[Mapping[str, Any]] = [
        json.loads(line) for file in chosen.coded for line in file.read_text(encoding="utf-8").splitlines()
    ]
    rows: list[Row] = [dict(row) for row in coded if row.get("stub", "cleared") != "cleared"]
    if chosen.paths or not chosen.coded:
        rows += rows_in(chosen.paths or [path for _, path in kept_transcripts() if Path(path).is_dir()])
    if chosen.without:
        rows = [row for row in rows if chosen.without not in row["source"]]
    if chosen.rows:
        chosen.rows.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(*(told(rows) if rows else ["no stub was found"]), sep="\n")


if __name__ == "__main__":
    main()
