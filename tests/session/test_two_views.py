"""Two tools that show one file differently. The file did not change."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache import Outcome, Policy, Reason, Reply, Session

DEFAULT = Policy()
LINES = [f"value_{n} = compute({n})\tand more" for n in range(1, 41)]


def _numbered(lines: list[str]) -> str:
    return "".join(f"{n:6d}\t{line}\n" for n, line in enumerate(lines, 1))


def _with(number: int, line: str) -> list[str]:
    return [*LINES[: number - 1], line, *LINES[number:]]


def _file(lines: list[str], newline: str = "\n") -> str:
    return "".join(line + newline for line in lines)


CELLS = "".join(f'<cell id="{n}">\n{line}\n</cell>\n' for n, line in enumerate(LINES))
# name -> (the file, and what a host's read tool shows of it)
VIEWS = {
    "CR removed": (_file(LINES, "\r\n"), _numbered(LINES)),
    "BOM removed": ("\ufeff" + _file(LINES), _numbered(LINES)),
    "tabs expanded": (_file(LINES), _numbered([line.replace("\t", "    ") for line in LINES])),
    "blanks trimmed": (_file([f"{line} " for line in LINES]), _numbered(LINES)),
    "a long line truncated": (_file(_with(7, "x" * 3_000)), _numbered(_with(7, "x" * 2_000 + "... (truncated)"))),
    "a secret redacted": (_file(_with(7, "mode = one of two")), _numbered(_with(7, "mode = [REDACTED]"))),
    "colours removed": (_file(_with(7, "\x1b[31mred\x1b[0m")), _numbered(_with(7, "red"))),
    "form feeds as line ends": (_file(_with(7, "a\fb")), _numbered([*LINES[:6], "a", "b", *LINES[7:]])),
    "a notebook as cells": ('{"cells": [\n' + _file([f'"{line}",' for line in LINES]) + "]}\n", CELLS),
}


class _Agent:
    """An agent that reads one file with a host's read tool and with the shell."""

    def __init__(self, root: Path, policy: Policy = DEFAULT) -> None:
        self.path = root / "m.txt"
        self.session = Session(root=str(root), policy=policy)

    def write(self, text: str) -> None:
        self.path.write_bytes(text.encode())

    def read(self, shown: str) -> Reply:
        return self.session.observe_read("m.txt", shown, numbered=shown.startswith("     1\t"))

    def cat(self) -> Reply:
        return self.session.run("cat m.txt")


@pytest.fixture(params=VIEWS)
def views(request: pytest.FixtureRequest) -> tuple[str, str]:
    return VIEWS[request.param]


def test_each_tool_repeats_itself(tmp_path: Path, views: tuple[str, str]) -> None:
    agent = _Agent(tmp_path)
    text, shown = views
    agent.write(text)
    agent.read(shown)

    assert agent.cat().reason is Reason.OTHER_VIEW
    for reply in (agent.read(shown), agent.cat()):
        assert reply.outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("policy", [Policy(delta=True), Policy.named("max")], ids=["delta", "max"])
def test_no_marker_says_changed(tmp_path: Path, views: tuple[str, str], policy: Policy) -> None:
    agent = _Agent(tmp_path, policy)
    text, shown = views
    agent.write(text)
    agent.read(shown)
    replies = [agent.cat(), agent.read(shown)]

    assert replies[1].outcome is Outcome.UNCHANGED
    assert not any("changed" in reply.text for reply in replies)


def test_nothing_counts_as_changed(tmp_path: Path, views: tuple[str, str]) -> None:
    agent = _Agent(tmp_path)
    text, shown = views
    agent.write(text)
    agent.read(shown)
    agent.cat()
    with agent.session.watch():
        assert agent.session.changes() == []
        agent.read(shown)
        agent.cat()
        assert agent.session.changes() == []
    assert not any(getattr(record.event, "changed", ()) for record in agent.session.events())


@pytest.mark.parametrize("first", ["read", "cat"])
@pytest.mark.parametrize("second", ["read", "cat"])
def test_a_file_that_really_changed_is_shown_whole(tmp_path: Path, first: str, second: str) -> None:
    agent = _Agent(tmp_path)

    def look(tool: str, lines: list[str]) -> Reply:
        agent.write(_file(lines))
        return agent.cat() if tool == "cat" else agent.read(_numbered(lines))

    changed = _with(20, "another line 20")
    look(first, LINES)

    assert look(second, changed).outcome is Outcome.FULL
    assert look(second, changed).outcome is Outcome.UNCHANGED
    assert look(second, LINES).outcome is Outcome.FULL


def test_the_agents_own_text_is_compared_with_what_every_tool_shows(tmp_path: Path) -> None:
    agent = _Agent(tmp_path)
    agent.session.wrote("m.txt", content=_file(LINES))
    agent.write(_file(_with(20, "formatted")))

    assert agent.cat().reason is Reason.CHANGED
