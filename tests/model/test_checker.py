"""The checker of a replay proves omissions by the texts that the reader was shown, and finds each kind of fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from readcache import Omitted, Outcome, Reason, Reply, Shown
from readcache.model.checker import Checker, Wrong, possible_bodies

TEXT = "alpha\nbeta\ngamma\ndelta\n"


def reply_of(text: str, *segments: Shown | Omitted, output: str = TEXT) -> Reply:
    return Reply(text, 0, Outcome.PARTIAL, Reason.OVERLAP, segments, "c9", 1, output)


def middle_left_out(marker: str = "[UNCHANGED x: f lines 2-3, shown above]\n", source: str = "c1") -> Reply:
    return reply_of(f"alpha\n{marker}delta\n", Shown("alpha\n"), Omitted("/w/f", 2, 3, (source,)), Shown("delta\n"))


def checker(shown: str = TEXT, said: str = "cat f") -> Checker:
    made = Checker()
    made.add("c1", shown, said)
    return made


def test_lines_that_stand_at_the_source_are_proven() -> None:
    (proof,) = checker().check(middle_left_out(), TEXT)
    assert (proof.chars, proof.of_file, proof.own) == (len("beta\ngamma\n"), True, False)


def test_lines_that_the_agent_wrote_itself_are_proven_as_its_own() -> None:
    (proof,) = checker("", f"cat >f <<E\n{TEXT}E").check(middle_left_out(), TEXT)
    assert proof.own


@pytest.mark.parametrize(
    "shown",
    ["alpha\nbeta\ndelta\n", "gamma\nBETA\n", "  beta\n  gamma\n", "beta gamma\n", "beta\ngamm\n"],
    ids=["a line is missing", "case differs", "white space differs", "no lines of their own", "a line was cut"],
)
def test_lines_that_do_not_stand_there_are_wrong(shown: str) -> None:
    with pytest.raises(Wrong, match=r"line [23] of /w/f was left out, but does not stand at c1: .(beta|gamma)."):
        checker(shown).check(middle_left_out(), TEXT)


def test_a_source_that_the_reader_cannot_see_is_wrong() -> None:
    with pytest.raises(Wrong, match="names c2, which the reader cannot see"):
        checker().check(middle_left_out(source="c2"), TEXT)
    gone = checker()
    gone.cut(frozenset(), {})
    with pytest.raises(Wrong, match="cannot see"):
        gone.check(middle_left_out(), TEXT)


def test_a_source_of_the_same_batch_is_wrong() -> None:
    made = Checker()
    made.add("c1", TEXT, "", batch="b")
    assert made.check(middle_left_out(), TEXT, batch="other")
    with pytest.raises(Wrong, match="at the same time"):
        made.check(middle_left_out(), TEXT, batch="b")


def test_several_sources_may_hold_the_lines_together() -> None:
    made = checker("beta\n")
    made.add("c2", "gamma\n", "")
    assert made.check(reply_of("[m]\n", Omitted("/w/f", 2, 3, ("c1", "c2")), output="beta\ngamma\n"), "beta\ngamma\n")


def test_numbers_in_front_are_looked_through_where_the_reader_knows_them() -> None:
    numbered = "     2→beta\n     3→gamma\n"
    whole = Omitted("/w/f", 2, 3, ("c1",))
    assert checker("2\tbeta\n3\tgamma\n").check(reply_of("[m]\n", whole, output=numbered), numbered)
    assert checker(numbered).check(reply_of("[m]\n", whole, output="beta\ngamma\n"), "beta\ngamma\n")
    assert checker("f:2:beta\nf:3:gamma\n").check(reply_of("[m]\n", whole, output="beta\ngamma\n"), "beta\ngamma\n")
    raw = checker("beta\ngamma\n")
    assert raw.check(reply_of("[m: f lines 2-3, shown above without numbers]\n", whole, output=numbered), numbered)
    with pytest.raises(Wrong):
        raw.check(reply_of("[m: f lines 4-5, shown above]\n", whole, output=numbered), numbered)


def test_what_a_diff_puts_in_front_is_looked_through_at_the_source_alone() -> None:
    diff = "@@ -1,2 +1,2 @@\n beta\n+gamma\n"
    whole = reply_of("[m]\n", Omitted("/w/f", 2, 3, ("c1",)), output="beta\ngamma\n")
    assert checker(diff).check(whole, "beta\ngamma\n")
    with pytest.raises(Wrong, match="does not stand"):
        checker("beta\ngamma\n").check(replace(whole, full_text=" beta\n+gamma\n"), " beta\n+gamma\n")


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
    with pytest.raises(Wrong):
        checker().check(reply, TEXT)


def test_after_a_compaction_a_marker_without_its_source_is_wrong_unless_it_was_rewritten() -> None:
    made = checker()
    made.add("c2", "[m]\n", "", sources=frozenset({"c1"}))
    assert made.cut(frozenset({"c1", "c2"}), {}) == []
    (fault,) = made.cut(frozenset({"c2"}), {})
    assert "c1, which is gone" in fault
    assert made.cut(frozenset({"c2"}), {"c2": "[gone]\n"}) == []


def test_a_line_that_begins_with_very_many_digits_is_a_line() -> None:
    assert [number for _, number in possible_bodies("1" * 5000 + ": x")] == [None]
