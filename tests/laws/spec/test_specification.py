"""The specification proves omissions by the texts that the reader was shown, and finds each kind of fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from readcache import Omitted, Outcome, Reason, Reply, Shown
from readcache.core.model.spec.lines import possible_bodies
from readcache.core.model.spec.marker import Finding, Untrue, demand
from readcache.core.model.spec.world import World

TEXT = "alpha\nbeta\ngamma\ndelta\n"


def reply_of(text: str, *segments: Shown | Omitted, output: str = TEXT) -> Reply:
    return Reply(text, 0, Outcome.PARTIAL, Reason.OVERLAP, segments, "c9", 1, output)


def middle_left_out(marker: str = "[UNCHANGED x: f lines 2-3, shown above]\n", source: str = "c1") -> Reply:
    return reply_of(f"alpha\n{marker}delta\n", Shown("alpha\n"), Omitted("/w/f", 2, 3, (source,)), Shown("delta\n"))


def world(shown: str = TEXT, said: str = "cat f", batch: str = "") -> World:
    made = World()
    made.shown("main", "c1", shown, said=said, batch=batch)
    return made


def check(world: World, reply: Reply, output: str = TEXT, batch: str = "") -> list[Finding]:
    return demand(world.answered("main", reply, output, batch=batch))


def test_lines_that_stand_at_the_source_are_proven() -> None:
    (found,) = check(world(), middle_left_out())
    assert found.marker is not None
    assert (found.marker.lines, found.marker.file) == (("beta", "gamma"), "/w/f")


def test_lines_that_the_agent_wrote_itself_are_proven() -> None:
    (found,) = check(world("", f"cat >f <<E\n{TEXT}E"), middle_left_out())
    assert found.marker is not None


@pytest.mark.parametrize(
    "shown",
    ["alpha\nbeta\ndelta\n", "gamma\nBETA\n", "  beta\n  gamma\n", "beta gamma\n", "beta\ngamm\n"],
    ids=["a line is missing", "case differs", "white space differs", "no lines of their own", "a line was cut"],
)
def test_lines_that_do_not_stand_there_are_wrong(shown: str) -> None:
    with pytest.raises(Untrue, match=r"line [23] of /w/f was left out, but does not stand at c1: .(beta|gamma)."):
        check(world(shown), middle_left_out())


def test_a_source_that_the_reader_cannot_see_is_wrong() -> None:
    with pytest.raises(Untrue, match="names c2, which the reader cannot see"):
        check(world(), middle_left_out(source="c2"))
    gone = world()
    gone.compacted("main", [])
    with pytest.raises(Untrue, match="cannot see"):
        check(gone, middle_left_out())


def test_a_source_of_the_same_batch_is_wrong() -> None:
    made = world(batch="b")
    assert check(made, middle_left_out(), batch="other")
    with pytest.raises(Untrue, match="at the same time"):
        check(made, middle_left_out(), batch="b")


def test_several_sources_may_hold_the_lines_together() -> None:
    made = world("beta\n")
    made.shown("main", "c2", "gamma\n")
    assert check(made, reply_of("[m]\n", Omitted("/w/f", 2, 3, ("c1", "c2")), output="beta\ngamma\n"), "beta\ngamma\n")


def test_numbers_in_front_are_looked_through_where_the_reader_knows_them() -> None:
    numbered = "     2→beta\n     3→gamma\n"
    whole = Omitted("/w/f", 2, 3, ("c1",))
    assert check(world("2\tbeta\n3\tgamma\n"), reply_of("[m]\n", whole, output=numbered), numbered)
    assert check(world(numbered), reply_of("[m]\n", whole, output="beta\ngamma\n"), "beta\ngamma\n")
    assert check(world("f:2:beta\nf:3:gamma\n"), reply_of("[m]\n", whole, output="beta\ngamma\n"), "beta\ngamma\n")
    raw = world("beta\ngamma\n")
    assert check(raw, reply_of("[m: f lines 2-3, shown above without numbers]\n", whole, output=numbered), numbered)
    with pytest.raises(Untrue):
        check(raw, reply_of("[m: f lines 4-5, shown above]\n", whole, output=numbered), numbered)


def test_what_a_diff_puts_in_front_is_looked_through_at_the_source_alone() -> None:
    diff = "@@ -1,2 +1,2 @@\n beta\n+gamma\n"
    whole = reply_of("[m]\n", Omitted("/w/f", 2, 3, ("c1",)), output="beta\ngamma\n")
    assert check(world(diff), whole, "beta\ngamma\n")
    with pytest.raises(Untrue, match="does not stand"):
        check(world("beta\ngamma\n"), replace(whole, full_text=" beta\n+gamma\n"), " beta\n+gamma\n")


@pytest.mark.parametrize(
    "reply",
    [
        reply_of("alpha\n[m]\n", Shown("alpha\n"), Omitted("/w/f", 2, 3, ("c1",))),
        reply_of("alpha\n[m]\ndelta\nmore\n", *middle_left_out().segments),
        reply_of("alpha\ndelta\n", *middle_left_out().segments),
        reply_of("[m]\n", Omitted("/w/f", 1, 9, ("c1",))),
        replace(middle_left_out(), full_text="alpha\ndelta\n"),
        replace(middle_left_out(), text="ALPHA\n[m]\ndelta\n"),
        reply_of("something else\n", Shown("something else\n")),
        reply_of("[m]\n", Omitted("/w/f", 1, 4, ())),
    ],
    ids=[
        "the end is missing",
        "more is said",
        "no marker",
        "too long",
        "another output",
        "other text",
        "not the output",
        "no source",
    ],
)
def test_a_reply_that_is_not_the_output_is_wrong(reply: Reply) -> None:
    with pytest.raises(Untrue):
        check(world(), reply)


def test_after_a_compaction_a_marker_without_its_source_is_wrong_unless_it_was_rewritten() -> None:
    made = world()
    check(made, replace(middle_left_out(), call_id="c2"))
    made.compacted("main", ["c1", "c2"])
    demand(made.repaired("main", {}))
    made.compacted("main", ["c2"])
    (found,) = made.check_markers("main")
    assert "c1, which the reader cannot see" in found.fault
    demand(made.repaired("main", {"c2": "alpha\n[GONE x: f lines 2-3 omitted here]\ndelta\n"}))
    assert made.check_markers("main") == []


def test_a_line_that_begins_with_very_many_digits_is_a_line() -> None:
    assert [number for _, number in possible_bodies("1" * 5000 + ": x")] == [None]


def test_a_reader_who_was_given_everything_has_nothing_to_insist_on() -> None:
    """The package then leaves the same lines out again, and rightly: they were shown a moment ago."""
    made, whole = World(), replace(reply_of(TEXT, Shown(TEXT)), call_id="c1")
    left_out = middle_left_out(source="c1")
    demand(made.answered("main", whole, TEXT, request="cat f"))
    demand(made.answered("main", left_out, TEXT, request="cat f"))
    demand(made.answered("main", replace(whole, call_id="c3"), TEXT, request="cat f"))
    demand(made.answered("main", replace(left_out, call_id="c4"), TEXT, request="cat f"))
    with pytest.raises(Untrue, match="left out again, and the reader had insisted"):
        demand(made.answered("main", replace(left_out, call_id="c5"), TEXT, request="cat f"))
