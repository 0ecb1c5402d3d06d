"""Tools that are neither bash nor a read: searches, listings, tools of an MCP server."""

from __future__ import annotations

from readcache import Frame, Outcome, Policy, Reason, Session
from tests.helpers.files import TEXT


def test_the_same_result_is_left_out_once_and_then_served() -> None:
    session = Session("/w")
    first = session.observe_tool("grep", TEXT, arguments={"pattern": "line"}, call_id="c1")
    second = session.observe_tool("grep", TEXT, arguments={"pattern": "line"}, call_id="c2")
    third = session.observe_tool("grep", TEXT, arguments={"pattern": "line"}, call_id="c3")
    assert (first.text, third.text) == (TEXT, TEXT)
    assert (second.outcome, second.reason) == (Outcome.IDENTICAL_OUTPUT, Reason.IDENTICAL)
    assert 'above in "grep {"pattern": "line"}"' in second.text


def test_a_tool_may_do_more_than_read_so_that_nobody_is_told_to_repeat_it() -> None:
    session = Session("/w")
    session.observe_tool("deploy", TEXT)
    assert session.observe_tool("deploy", TEXT).text.endswith("; ran now]\n")


def test_what_a_tool_shows_is_a_source_for_commands_and_the_other_way_round() -> None:
    session = Session("/w", policy=Policy.named("max"))
    session.observe_tool("search", TEXT, call_id="c1")
    assert session.observe("cat f", TEXT, call_id="c2").outcome is not Outcome.FULL
    session.observe("pytest -q", "".join(f"passed {n}\n" for n in range(90)), call_id="c3")
    later = session.observe_tool("logs", "".join(f"passed {n}\n" for n in range(90)) + "done\n")
    assert later.text.endswith("done\n")
    assert later.outcome is Outcome.PARTIAL


def test_other_arguments_are_another_request() -> None:
    session = Session("/w")
    session.observe_tool("grep", TEXT, arguments={"pattern": "a"})
    assert session.observe_tool("grep", TEXT, arguments={"pattern": "a"}).outcome is Outcome.IDENTICAL_OUTPUT
    assert session.observe_tool("grep", TEXT, arguments={"pattern": "b"}).reason is not Reason.INSISTED


def test_a_frame_is_passed_on_and_the_rest_is_judged() -> None:
    session = Session("/w")
    session.observe_tool("list", f"took 3 ms\n{TEXT}", frame=Frame(head=1))
    again = session.observe_tool("list", f"took 4 ms\n{TEXT}", frame=Frame(head=1))
    assert again.text.startswith("took 4 ms\n[")
    assert again.outcome is Outcome.IDENTICAL_OUTPUT


def test_calls_made_at_once_do_not_point_at_each_other() -> None:
    session = Session("/w")
    session.observe_tool("list", TEXT, batch="b")
    assert session.observe_tool("list", TEXT, batch="b").text == TEXT


def test_a_tool_whose_output_the_harness_parses_is_never_touched() -> None:
    session = Session("/w")
    session.observe_tool("submit", TEXT)
    assert session.observe_tool("submit", TEXT).reason is Reason.NEVER
