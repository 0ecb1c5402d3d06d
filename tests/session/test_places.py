"""Places that a marker names: true of what the reader sees, with the host's own words around and between them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from readcache import Frame, HeadTail, Policy, Session
from readcache.core.model.text import ELISION

OPEN = Policy(min_worth=0, min_chars=100, any_output=True)
LINES_NAMED = re.compile(r"as lines? ([\d, -]+) of that output")


def text(count: int, word: str = "line") -> str:
    return "".join(f"{word} number {n} of the text, with some words\n" for n in range(1, count + 1))


def result_of(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def told_lines(marker: str, shown: str) -> list[str]:
    """The lines at the places that a marker names, of the source as the reader sees it."""
    found, lines = LINES_NAMED.search(marker), shown.split("\n")
    assert found is not None, marker
    spans = [span.partition("-") for span in found[1].split(", ")]
    return [line for low, _, high in spans for line in lines[int(low) - 1 : int(high or low)]]


def test_places_count_the_hosts_lines_in_front() -> None:
    session = Session("/r", policy=OPEN)
    alpha, beta = text(30, "alpha"), text(30, "beta")
    frame = Frame(3, 0)
    shown = session.observe("make test", "== 1\n== 2\n== 3\n" + alpha + beta, frame=frame).text
    again = beta + "".join(alpha.splitlines(True)[:20])
    assert told_lines(session.observe("make other", again).text, shown) == again.splitlines()


def test_no_place_is_named_behind_what_the_host_cut() -> None:
    session = Session("/r", policy=Policy(min_worth=0, min_chars=100, any_output=True, clip=HeadTail(2000, 2000)))
    rows = text(300).splitlines(True)
    session.observe("make test", "".join(rows))
    reply = session.observe("make other", "".join(rows[270:295] + rows[5:25]))
    assert reply.tokens_saved > 0
    assert not LINES_NAMED.search(reply.text)


@pytest.mark.parametrize("lost", ["before", "behind"])
def test_places_that_a_cut_made_false_are_named_no_more(lost: str) -> None:
    session = Session("/r", policy=OPEN)
    rows = text(90).splitlines(True)
    one = session.observe("make test", "".join(rows), call_id="c1").text
    two = session.observe("make other", "".join(rows[20:30] + rows[70:80]), call_id="c2").text
    assert told_lines(two, one) == [row.rstrip() for row in rows[20:30] + rows[70:80]]
    session.mend([result_of("c1", one), result_of("c2", two)])
    left = ["[cut]\n", *rows[10:]] if lost == "before" else [*rows[:85], "[cut]\n"]
    for _ in range(2):  # the same at the next sync
        messages = session.mend([result_of("c1", "".join(left)), result_of("c2", two)])
        two = str(messages[1]["content"])
        assert two.startswith("[GONE") is (lost == "before")


def test_the_parts_of_several_sources_are_told_apart() -> None:
    session = Session("/r", policy=Policy(min_worth=0, min_chars=100, delta=True))
    a, b = text(20, "alpha"), text(30, "beta")
    session.observe("cat a.py", a)
    session.observe("sed -n '1,15p' b.py", "".join(b.splitlines(True)[:15]))
    session.observe("sed -n '16,30p' b.py", "".join(b.splitlines(True)[15:]))
    assert 'above: output 1-20 in "cat a.py"; output 21-35 in "sed' in session.observe("cat a.py b.py", a + b).text


def test_an_earlier_write_of_a_file_is_called_that() -> None:
    session = Session("/r", policy=Policy(min_worth=0, min_chars=100, delta=True))
    for word in ("alpha", "beta"):
        session.wrote("a.py", content=text(40, word))
    assert "above in your own earlier write of a.py" in session.observe("cat old.py", text(40, "alpha")).text
    assert "above in your own write of a.py" in session.observe("cat new.py", text(40, "beta")).text


def test_what_stands_for_lines_that_a_host_cut_is_not_a_line_of_the_file() -> None:
    """The host has words of its own in that place. A file may hold such a line, too."""
    policy = Policy(min_chars=0, min_worth=0, any_output=True, clip=HeadTail(500, 400))
    session = Session("/w", policy=policy)
    lines = [f"line {n:2} of a file that is longer than is shown".ljust(49) + "\n" for n in range(60)]
    session.observe("./show f", "".join(lines), call_id="c1")
    output = "".join([*lines[5:10], f"{ELISION}\n", *lines[52:57]])
    whole = "".join([*lines[:10], f"{ELISION}\n", *lines[52:]])
    for name, printed in (("g", output), ("h", whole)):
        reply = session.observe(f"./show {name}", printed, call_id=name)
        assert reply.omissions(), "the lines around it are left out"
        assert not any(ELISION in lines for *_, lines in reply.omissions())
        session.rewind("c1")


@pytest.mark.parametrize("commands", [("make a", "make b"), ("make", "make")])
@pytest.mark.parametrize("truncated", [0, 1])
def test_of_two_equal_results_without_ids_the_one_that_was_not_truncated_is_named(
    commands: tuple[str, str], truncated: int
) -> None:
    session, output = Session("/w", policy=OPEN), text(100)
    lines = output.splitlines(True)
    shown = [output, output]
    shown[truncated] = "".join([*lines[:20], "... [60 lines truncated] ...\n", *lines[80:]])
    for call_id, command in enumerate(commands):
        session.observe(command, output, call_id=str(call_id), batch="b")
    contents = [{"role": "user", "content": f"result:\n{each}"} for each in shown]
    asked = {"role": "assistant", "content": " and ".join(commands)}
    session.mend([{"role": "user", "content": "task"}, asked, *contents])
    marker = session.observe("make all", "".join(lines[30:70])).text
    earlier = "an earlier " if commands[0] == commands[1] and truncated else ""
    assert f'above in {earlier}"{commands[1 - truncated]}"' in marker
