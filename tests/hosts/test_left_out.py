"""The lines that markers stand for, kept beside a reply, and put back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from readcache import Frame, Policy, Session
from readcache.hosts.tool_results import lines_left_out, put_back

LINES = [f"line {n} of a file with some words in it\n" for n in range(1, 81)]


def test_each_marker_has_its_lines() -> None:
    session = Session("/repo")
    session.observe("sed -n '20,50p' a.py", "".join(LINES[19:50]), call_id="1")
    reply = session.observe("cat a.py", "".join(LINES), call_id="2")
    ((marker, lines),) = lines_left_out(reply)
    assert session.markers_in(reply.text) == [marker]
    assert lines == "".join(LINES[19:50]).rstrip("\n")
    assert put_back(reply.text, lines_left_out(reply)) == reply.full_text


def test_a_reply_in_full_has_none() -> None:
    reply = Session("/repo").observe("cat a.py", "".join(LINES))
    assert lines_left_out(reply) == []
    assert put_back(reply.text, []) == reply.full_text


def test_what_the_host_changed_around_a_marker_stays_changed() -> None:
    session = Session("/repo")
    session.observe("sed -n '20,50p' a.py", "".join(LINES[19:50]), call_id="1")
    reply = session.observe("cat a.py", "".join(LINES), call_id="2")
    redacted = reply.text.replace("line 3 of", "line [secret] of")
    assert put_back(redacted, lines_left_out(reply)) == reply.full_text.replace("line 3 of", "line [secret] of")
    assert put_back("[cleared]", lines_left_out(reply)) == "[cleared]"


spans = st.tuples(st.integers(1, 80), st.integers(1, 80)).map(sorted)


@given(st.lists(spans, min_size=1, max_size=6), st.booleans(), st.integers(0, 2))
def test_put_back_gives_the_whole_output_again(asked: list[list[int]], ends: bool, around: int) -> None:
    session = Session("/repo", policy=Policy.named("max"))
    frame = Frame(around, around)
    for number, (low, high) in enumerate(asked):
        text = "".join(LINES[low - 1 : high])
        text = "head\n" * around + (text if ends or around else text.rstrip("\n")) + "tail\n" * around
        command = f"sed -n '{low},{high}p' a.py"
        reply = session.observe(command, text, frame=frame, call_id=str(number))
        assert put_back(reply.text, lines_left_out(reply)).rstrip("\n") == text.rstrip("\n")
