"""The reader who asks again right after a reply of which something was left out gets everything."""

from __future__ import annotations

import pytest

from readcache import Insist, Outcome, Policy, Reason, Reply, Session
from tests.helpers.files import TEXT, text, with_numbers
from tests.helpers.replies import omits

HEAD = text(1, 25)


def after_a_part(session: Session, command: str = "cat f", output: str = TEXT) -> Reply:
    """Asked again right after a reply without the first 25 lines."""
    session.observe("head -n 25 f", HEAD, call_id="head")
    assert session.observe(command, output, call_id="part").outcome is Outcome.PARTIAL
    return session.observe(command, output, call_id="again")


@pytest.mark.parametrize("command", ["cat f", "cat -n f"])
def test_who_insists_on_a_part_gets_everything(session: Session, command: str) -> None:
    output = with_numbers() if "-n" in command else TEXT
    reply = after_a_part(session, command, output)
    assert (reply.text, reply.reason) == (output, Reason.INSISTED)
    assert session.observe(command, output).outcome is Outcome.UNCHANGED


def test_who_insists_on_all_of_it_gets_everything(session: Session) -> None:
    for expected in (Outcome.FULL, Outcome.UNCHANGED, Outcome.FULL):
        assert session.observe("cat f", TEXT).outcome is expected


def test_who_insists_on_a_part_of_what_has_changed_meanwhile_gets_everything(session: Session) -> None:
    session.observe("head -n 25 f", HEAD)
    session.observe("cat f", TEXT)
    assert not omits(session.observe("cat f", TEXT.replace("number 50", "number fifty")))


def test_in_a_batch_nobody_points_at_the_reply_of_a_neighbour(session: Session) -> None:
    session.observe("head -n 25 f", HEAD)
    with session.batch():
        session.observe("cat f", TEXT)
        assert session.observe("cat f", TEXT).text == TEXT


def test_who_is_answered_with_markers_however_often_is_so_here_too() -> None:
    session = Session("/w", policy=Policy(insist=Insist.STUB))
    assert after_a_part(session).reason is Reason.COVERED


@pytest.mark.parametrize("between", [[], ["ls", "pwd", "date"]])
def test_no_loop_of_requests_goes_without_a_line(session: Session, between: list[str]) -> None:
    session.observe("head -n 25 f", HEAD)
    replies: list[Reply] = []
    for _ in range(12):
        replies.append(session.observe("cat f", TEXT))
        for command in between:
            session.observe(command, "x\n")
    assert all(any(line in reply.text for reply in replies[n : n + 6]) for n in range(6) for line in TEXT.splitlines())
    assert all(any(reply.text == TEXT for reply in replies[n : n + 6]) for n in range(6))


@pytest.mark.parametrize(
    "command", ["git checkout f", "git stash", "git -C /w restore f && ls", "cd x; git pull --rebase"]
)
def test_a_command_that_may_change_the_tree_makes_the_second_run_a_check(command: str) -> None:
    """Failed: the second run of the tests counted as a retry, and its output was shown whole."""
    session = Session("/w", policy=Policy.named("max"))
    other = text(1, 60, of="test")
    session.observe("pytest -q", other)
    session.observe("ls", "x\n")
    assert session.observe("pytest", other).outcome is Outcome.IDENTICAL_OUTPUT
    session.observe(command, "")
    assert session.observe("pytest", other).outcome is Outcome.IDENTICAL_OUTPUT


@pytest.mark.parametrize("command", ["git status", "git log --oneline", "git diff checkout.py"])
def test_a_command_that_only_looks_leaves_the_second_run_a_retry(command: str) -> None:
    session = Session("/w", policy=Policy.named("max"))
    other = text(1, 60, of="test")
    session.observe("pytest -q", other)
    session.observe("pytest", other)
    session.observe(command, "")
    assert session.observe("pytest", other).reason is Reason.INSISTED
