"""The page of a session: what stands in it, and that nothing else can."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from readcache import Mode, Policy, Reason, RestoreItem, RestorePlan, Session
from readcache.core.model.events import Event, Failed, Record
from readcache.report.page.page import session_page
from tests.helpers.strategies import histories
from tests.report.parsed import Node, assert_sound, page_of, parse
from tests.report.reported import gain_of
from tests.report.told import HOSTILE, TEXT, hostile_session, part, told


@pytest.fixture(scope="module")
def page() -> Node:
    return parse(page_of(told().events()))


def steps(page: Node, reader: int = 0) -> list[Node]:
    return [child for child in page.all("ol", "calls")[reader].children if isinstance(child, Node)]


def test_ids_are_unique_and_links_lead_somewhere(page: Node) -> None:
    assert_sound(page)


def test_each_call_says_what_was_done_and_why(page: Node) -> None:
    said = [step.all("span", "why")[0].text for step in steps(page)]
    assert said == [
        "not seen",
        "overlap, asked for again",
        "covered, asked for again",
        "insisted",
        "wrote",
        "changed",
        "settled",
        "compacted",
    ]
    assert Reason.COVERED.why in steps(page)[2].text
    assert [step.all("span", "n")[0].text for step in steps(page)] == [str(n) for n in range(1, 9)]


def test_insisted_and_bounced_calls_are_recognisable_and_name_each_other(page: Node) -> None:
    bounced, insisted = steps(page)[2], steps(page)[3]
    assert "bounced" in bounced.classes
    assert "again" in insisted.classes
    assert [a.attributes["href"] for a in bounced.all("p", "note")[0].all("a")] == [f"#{insisted.attributes['id']}"]
    assert [a.attributes["href"] for a in insisted.all("p", "note")[0].all("a")] == [f"#{bounced.attributes['id']}"]


def test_the_end_of_a_long_command_is_kept_apart_for_a_narrow_line() -> None:
    session = Session("/w")
    for command in ("cat short", f"cat {'a/' * 40}the-file.py"):
        session.observe(command, TEXT)
    short, long = [step.all("code", "what")[0] for step in steps(parse(page_of(session.events())))]
    assert short.text == short.all("span")[0].text == "cat short"
    assert long.text.removeprefix(long.all("span")[0].text).endswith("/the-file.py")


def test_a_marker_leads_to_its_lines_at_the_source(page: Node) -> None:
    first, second = steps(page)[:2]
    gap = second.all("div", "gap")[0]
    (link,) = gap.all("a", "jump")
    assert link.text == "lines 1–50 of #1"
    (band,) = first.all("i", "band")
    assert link.attributes["href"] == f"#{band.attributes['id']}"
    assert band.attributes["style"] == "--at:0;--n:50"
    text = first.all("section", "text")[0]
    assert gap.all("details")[0].attributes["data-from"] == f"{text.attributes['id']}:0:50"
    assert text.all("pre")[0].text == part(1, 50).rstrip("\n")


def test_the_source_names_the_calls_that_point_at_it(page: Node) -> None:
    first = steps(page)[0]
    assert "markers point here from #2" in first.all("p", "facts")[0].text


def test_lines_around_a_marker_keep_their_places_in_the_text() -> None:
    session = Session("/w")
    session.observe("sed -n '31,60p' f", part(31, 60), call_id="c1")
    session.observe("cat f", TEXT, call_id="c2")
    page = parse(page_of(session.events()))
    blocks = steps(page)[1].all("section", "text")[0].all("pre")
    assert [block.attributes["data-at"] for block in blocks] == ["0", "31"]
    assert blocks[1].text == part(61, 100).rstrip("\n")


def test_a_text_that_stands_twice_is_embedded_once() -> None:
    session = Session("/w", policy=Policy(mode=Mode.ADVISE))
    for n in range(3):
        session.observe("cat f", TEXT, call_id=f"c{n}")
    whole = page_of(session.events())
    assert whole.count("line 77 of a file") == 1
    page = parse(whole)
    assert_sound(page)
    assert [len(step.all("pre")) for step in steps(page)] == [1, 1, 1]
    assert "The very text of #1" in steps(page)[2].text


def test_each_reader_has_a_time_line_of_its_own(page: Node) -> None:
    assert [h.text for h in page.all("h2")] == ["Totals", "Reader main", "Reader searcher"]
    assert [step.all("code", "what")[0].text for step in steps(page, 1)] == ["cat g"]


def test_another_readers_write_is_in_the_time_line_and_says_whose_it_was() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    session.fork("searcher").wrote("f", call_id="d1")
    session.observe("cat f", TEXT, call_id="c2")
    session.observe("ls", "f\n", call_id="c3")
    middle = steps(parse(page_of(session.events())))[1]
    assert "Written by reader searcher: /w/f" in middle.text


def test_the_totals_are_the_sessions(page: Node) -> None:
    session = told()
    stats = session.stats()
    totals = dict(zip([d.text for d in page.all("dt")], [d.text for d in page.all("dd")], strict=True))
    theirs = 1  # the other reader's call
    assert totals["calls judged"] == str(stats["calls"] + theirs)
    assert totals["tokens omitted, not asked for again, about"] == f"{stats['tokens_saved']:,}"
    assert totals["shortened, then asked for again"] == str(stats["bounces"]) == "2"
    gain = gain_of(session.reader.log.store).total
    assert totals["characters omitted, not asked for again"].split(" · ") == [
        f"{gain.chars_net:,}",
        f"{100 * gain.chars_net / gain.counts['output_chars']:.1f}\xa0%",
    ]
    assert totals["compactions"] == "1"
    assert totals["failures of readcache"] == "0"


def test_the_verdict_of_a_short_session_says_that_it_is_too_short(page: Node) -> None:
    (said,) = [p.text for p in page.all("p", "verdict")]
    assert said == (
        "There are too few calls to say what it is worth. readcache omitted 0.0 % of tool output. "
        "readcache judged 6 of 6 calls."
    )


@pytest.mark.parametrize(("mode", "said"), [(Mode.ON, "omitted nothing."), (Mode.ADVISE, "only advises")])
def test_where_nothing_was_left_out_the_verdict_says_so(mode: Mode, said: str) -> None:
    session = Session("/w", policy=Policy(mode=mode))
    for command in ("cat f", "cat f" if mode is Mode.ADVISE else "cat g"):
        session.observe(command, TEXT.replace("line", command))
    (verdict,) = [p.text for p in parse(page_of(session.events())).all("p", "verdict")]
    assert said in verdict


def test_failures_and_restored_sections_are_shown() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    session.compacted(restored=RestorePlan((RestoreItem("/w/f", 1, 1, "line 1 of a file with some words", 8, "test"),)))
    failed = Record(99, "main", 0.0, Failed("c2", "store_failed", "StoreError: the disk is <full>"))
    page = parse(page_of([*session.events(), failed]))
    assert_sound(page)
    removal, restored, failure = steps(page)[1:]
    assert "1 call left the conversation" in removal.text
    assert "host" in restored.classes
    assert "line 1 of a file with some words" in restored.all("pre")[0].text
    assert "failed" in failure.classes
    assert "StoreError: the disk is <full>" in failure.text


def test_a_text_that_the_harness_replaced_before_it_was_shown_is_not_in_the_page() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    session.observe("sed -n '40,60p' f", part(40, 60), call_id="c2")
    session.settle("c1", TEXT.replace("line 77 of", "*** of"))
    whole = page_of(session.events())
    assert "line 77 of" not in whole
    page = parse(whole)
    assert_sound(page)
    assert "It never reached the agent" in steps(page)[0].text
    assert "*** of a file" in steps(page)[2].text


def test_a_text_whose_first_place_was_replaced_is_embedded_at_the_next() -> None:
    session = Session("/w", policy=Policy(mode=Mode.ADVISE))
    session.observe("cat f", TEXT, call_id="c1")
    session.observe("cat f", TEXT, call_id="c2")
    session.settle("c1", "nothing any more")
    whole = page_of(session.events())
    assert whole.count("line 77 of a file") == 1
    assert "line 77 of a file" in steps(parse(whole))[1].text


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_contents_are_text_and_nothing_else(hostile: str) -> None:
    session = hostile_session(hostile)
    whole = page_of(session.events(), hostile)
    page = parse(whole)
    assert_sound(page)
    assert len(page.all("script")) == len(page.all("style")) == 1
    assert not page.all("img")
    body = whole.partition("</style>")[2]
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e\u200b\u2066\ufeff\ud800-\udfff\U000e0041]", body)
    whole.encode("utf-8")
    tags = {node.tag for node in page.all()}
    assert tags <= {node.tag for node in parse(page_of(told().events())).all()} | {"b"}


def test_what_stands_for_a_hidden_character_is_told_from_text_that_looks_like_it() -> None:
    session = Session("/w")
    session.observe("cat f", "\u202e is not \\u202e\n", call_id="c1")
    block = steps(parse(page_of(session.events())))[0].all("pre")[0]
    assert [b.text for b in block.all("b")] == ["\\u202e"]
    assert block.text == "\\u202e is not \\u202e"


def test_nothing_is_loaded_and_nothing_runs_but_our_own_script() -> None:
    whole = page_of(told().events())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', whole)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src 'sha256-" in policy
    assert "http" not in re.sub(r"<pre.*?</pre>", "", whole, flags=re.DOTALL).replace("http-equiv", "")


@given(histories())
def test_whatever_the_log_holds_the_page_is_sound(log: list[Event]) -> None:
    records = [Record(seq, "main", 0.0, event) for seq, event in enumerate(log, 1)]
    if records:
        assert_sound(parse(page_of(records)))


def test_the_page_of_one_reader_knows_what_the_others_wrote() -> None:
    session = Session("/w")
    session.observe("cat f", TEXT, call_id="c1")
    session.fork("searcher").wrote("f", call_id="d1")
    session.observe("ls", "f\n", call_id="c2")
    parts = [*session_page(session.events(), "One", {}, "main")]
    page = parse("".join(parts))
    assert len(page.all("ol", "calls")) == 1
    assert "Written by reader searcher" in steps(page)[1].text
    assert page.all("path", "wrote")
    with pytest.raises(LookupError, match="nothing was recorded of agent nobody"):
        next(session_page(session.events(), "None", {}, "nobody"))


def test_a_list_without_events_has_no_page() -> None:
    with pytest.raises(LookupError, match="nothing was recorded"):
        page_of([])
