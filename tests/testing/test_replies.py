"""`assert_shown`, `assert_omitted` and `reconstruct` pass when they should, and else say what is wrong."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from readcache import Omitted, Outcome, Policy, Reason, Reply, Session, Shown
from readcache.testing import FakeClock, assert_omitted, assert_shown, reconstruct
from tests.helpers.files import TEXT, text, with_numbers


@pytest.fixture
def session() -> Session:
    """`f` was shown up to line 20."""
    session = Session("/w")
    session.observe("head -n 20 f", text(1, 20), call_id="c1")
    return session


@pytest.fixture
def partial(session: Session) -> Reply:
    return session.observe("cat f", TEXT, call_id="c2")


@pytest.mark.parametrize("path", [None, "f", "w/f", "/w/f"])
@pytest.mark.parametrize("lines", [None, (1, 20)])
@pytest.mark.parametrize("source", [None, "c1", ["c1"]])
@pytest.mark.parametrize("reason", [None, Reason.OVERLAP])
def test_what_was_left_out_is_told_as_exactly_as_one_likes(
    partial: Reply,
    path: str | None,
    lines: tuple[int, int] | None,
    source: str | list[str] | None,
    reason: Reason | None,
) -> None:
    assert_omitted(partial, path, lines=lines, source=source, reason=reason)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"path": "g"}, "expected lines of g to be left out"),
        ({"path": "/f"}, "expected lines of /f to be left out"),
        ({"lines": (1, 19)}, "expected lines 1-19 to be left out"),
        ({"lines": (2, 20)}, "expected lines 2-20 to be left out"),
        ({"source": "c2"}, "expected a pointer to 'c2'"),
        ({"source": ["c1", "c2"]}, "expected a pointer to ['c1', 'c2']"),
        ({"reason": Reason.COVERED}, "expected the reason covered"),
    ],
)
def test_a_wrong_expectation_is_answered_with_what_the_reply_did(
    partial: Reply, wrong: dict[str, object], says: str
) -> None:
    did = "but c2 left out lines 1-20 of /w/f (see c1): PARTIAL, overlap"
    with pytest.raises(AssertionError, match=re.escape(f"{says}, {did}")):
        assert_omitted(partial, **wrong)  # type: ignore[arg-type]


def test_lines_left_out_in_several_stretches_count_together() -> None:
    session = Session("/w")
    session.observe("sed -n '1,15p' f", text(1, 15), call_id="c1")
    session.observe("sed -n '16,60p' f", text(16, 60), call_id="c2")
    reply = session.observe("cat f", TEXT)
    assert_omitted(reply, "f", lines=(1, 60), source=("c1", "c2"))
    with pytest.raises(AssertionError):
        assert_omitted(reply, "f", lines=(1, 60), source="c1")


def test_an_identical_output_is_of_no_file() -> None:
    session = Session("/w")
    session.observe("make", TEXT, call_id="c1")
    reply = session.observe("make", TEXT)
    assert_omitted(reply, source="c1", lines=(1, 60), reason=Reason.IDENTICAL)
    with pytest.raises(AssertionError, match=r"expected lines of f to be left out, but .* lines 1-60 of the output"):
        assert_omitted(reply, "f")


def test_a_reply_in_full_left_out_nothing(partial: Reply) -> None:
    reply = Session("/w").observe("cat f", TEXT, call_id="c1")
    assert_shown(reply)
    assert_shown(reply, reason=Reason.NOT_SEEN)
    with pytest.raises(AssertionError, match="but c1 left out nothing: FULL, not_seen"):
        assert_omitted(reply)
    with pytest.raises(AssertionError, match="expected the reason changed, but c1 left out nothing: FULL, not_seen"):
        assert_shown(reply, reason=Reason.CHANGED)
    with pytest.raises(AssertionError, match="expected all of the output, but c2 left out lines 1-20"):
        assert_shown(partial)


# ------------------------------------------------------------ putting together


def test_a_reply_and_its_sources_give_the_real_output(partial: Reply) -> None:
    assert reconstruct(partial, {"c1": text(1, 20)}) == TEXT


def test_a_last_line_without_a_newline_is_a_line_too(session: Session) -> None:
    output = TEXT.removesuffix("\n")
    assert reconstruct(session.observe("cat f", output), {"c1": text(1, 20)}) == output


@pytest.mark.parametrize("numbered", ["cat -n f", "grep -n '' f"])
def test_a_source_with_line_numbers_will_do(numbered: str) -> None:
    session, sep = Session("/w"), "\t" if "cat" in numbered else ":"
    source = with_numbers(form="{}" + sep)
    session.observe(numbered, source, call_id="c1")
    reply = session.observe("cat f", TEXT)
    assert_omitted(reply, "f", lines=(1, 60), source="c1")
    assert reconstruct(reply, {"c1": source}) == TEXT


def test_what_the_agent_wrote_in_its_own_command_is_a_source() -> None:
    session, command = Session("/w"), f"cat > f <<'EOF'\n{TEXT}EOF\n"
    session.observe(command, "", call_id="c1")
    reply = session.observe("cat f", TEXT)
    assert_omitted(reply, "f", lines=(1, 60), source="c1")
    assert reconstruct(reply, {"c1": command}) == TEXT


def test_reconstruct_names_a_line_that_no_source_holds(partial: Reply) -> None:
    shortened = text(1, 6) + "[…]\n" + text(9, 20)
    with pytest.raises(AssertionError, match=r"line 7 of /w/f was left out, but does not stand at c1: 'line number 7 "):
        reconstruct(partial, {"c1": shortened})
    with pytest.raises(AssertionError, match="an omission names c1, which the reader cannot see"):
        reconstruct(partial, {"c0": TEXT})


def test_reconstruct_refuses_segments_that_do_not_give_the_output(partial: Reply) -> None:
    context = {"c1": TEXT}
    omitted, shown = partial.segments
    for segments in ((omitted,), (omitted, Shown("something else\n")), (shown, omitted)):
        with pytest.raises(AssertionError, match=r"segments|no marker"):
            reconstruct(replace(partial, segments=segments), context)


def test_a_number_in_the_text_itself_is_no_line_number() -> None:
    text = "12: twelve\n"
    omitted = Omitted("/w/f", 1, 1, ("c1",))
    reply = Reply("[marker]\n", 0, Outcome.UNCHANGED, Reason.COVERED, (omitted,), "c2", 0, text)
    assert reconstruct(reply, {"c1": text}) == text
    with pytest.raises(AssertionError, match="line 1 of /w/f"):
        reconstruct(reply, {"c1": "twelve\n"})


def test_time_passes_only_when_it_is_told_to() -> None:
    clock = FakeClock(100.0)
    session = Session("/w", clock=clock, policy=Policy(min_chars=0))
    session.observe("cat f", TEXT)
    clock.tick()
    session.observe("cat g", TEXT)
    clock.tick(-50.5)
    session.observe("cat h", TEXT)
    assert [record.at for record in session.events()] == [100.0, 101.0, 50.5]
