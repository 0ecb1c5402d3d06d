"""The census of what agents do after a stub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import census
import pytest

from readcache.core.model.events import Origin
from readcache.core.model.tool_call import AskedCommand, AskedRead, ToolCall, Written
from readcache.transcripts.records import HistoryRemoval, Recording

NATIVE = "File unchanged since last read. The content from the earlier Read tool result is still current."
OURS = '[FILE_UNCHANGED 4687.4: f lines 1-40, above in "cat f"; repeat to see]\n'
READ = AskedRead("/w/f")
ATTACHED = ToolCall("a", "Read", None, "lines", asked=READ, tool="attachment")
SHELL = AskedCommand("sed -n '1,40p' f")


def call(asked: Any, output: str = "lines", batch: str = "", **more: Any) -> ToolCall:
    is_judged = asked is not None
    return ToolCall("c", "read", {}, output, batch, cwd="/w", asked=asked, is_judged=is_judged, tool="read", **more)


def rows(*items: ToolCall | HistoryRemoval) -> list[dict[str, Any]]:
    return list(census.rows_of(Recording("one", "claude-code", items), "here"))


EDIT = call(None, "done", writes=(Written("/w/f"),))
BEFORE: dict[str, Any] = {
    "read": ((call(READ),), ("read", "stood")),
    "shell": ((call(SHELL),), ("read", "stood")),
    "edit": ((call(READ), EDIT), ("edit", "stood")),
    "attached": (
        (call(READ), ATTACHED),
        ("attached", "stood"),
    ),
    "cleared": ((call(READ), HistoryRemoval()), ("read", "cleared")),
    "nothing": ((call(AskedRead("/w/g")),), (None, "untold")),
}


@pytest.mark.parametrize(("before", "found"), BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("stub", [NATIVE, OURS])
def test_what_showed_the_file_last_is_the_source(before: Any, found: tuple[str | None, str], stub: str) -> None:
    (row,) = rows(*before, call(READ, stub))
    assert (row["src"], row["stood"]) == found
    assert row["stub"] == ("readcache" if stub == OURS else "claude-code")


@pytest.mark.parametrize(
    ("later", "codes"),
    [
        ((call(READ),), ["same-read"]),
        ((call(SHELL),), ["shell-read-same"]),
        ((call(AskedRead("/w/f", 5, 9)), EDIT), ["same-file-other-range", "edit-same"]),
        ((ToolCall("c", "grep", {"pattern": "x"}, "lines"), call(READ)), ["go-on", "same-read"]),
        ((call(READ, batch="b"), call(READ)), ["same-read"]),  # the first was made before the stub was seen
    ],
)
def test_later_calls_are_coded(later: Any, codes: list[str]) -> None:
    row = rows(call(READ), call(READ, NATIVE, "b"), *later)[0]
    assert row["next"] == codes


def test_a_stub_among_other_lines_is_none() -> None:
    assert not rows(call(READ), call(READ, f"{OURS}def f(): pass\n"))


def test_each_session_has_one_vote(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    known = {"source": "s", "host": "h", "stub": "claude-code", "file": "file", "src": "read", "stood": "stood"}
    loop = [{**known, "session": "a", "next": ["same-read"]}] * 30
    others = [{**known, "session": name, "next": ["go-on"]} for name in "bcd"]
    kept = tmp_path / "rows.jsonl"
    kept.write_text("".join(json.dumps(row) + "\n" for row in [*loop, *others]))
    monkeypatch.setattr("sys.argv", ["census.py", "--coded", str(kept)])
    census.main()
    line = next(line for line in capsys.readouterr().out.split("\n") if line.startswith("a read"))
    assert line.split()[2:5] == ["33", "4", "25%"]


def test_every_origin_has_its_share() -> None:
    from readcache.core.judging.compose import ASKED_AGAIN

    assert ASKED_AGAIN.keys() == {*Origin}
