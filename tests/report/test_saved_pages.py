"""The pages of `readcache gain` and `replay`: the figures of their tables, and nothing that a name could do to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from readcache import Session
from readcache.log.store.protocol import MemoryStore
from readcache.report.net import ENOUGH_CALLS
from readcache.report.page.savings import OPEN_ROWS, gain_page, replay_page
from readcache.report.replay.conversations import StrategyCounts
from readcache.report.replay.replay_totals import Outcomes, PolicyTotals, ReplayTotals, Sum
from readcache.report.totals import Gain
from tests.report.parsed import Node, assert_sound, parse
from tests.report.reported import DAY, Clock, asked, gain_of
from tests.report.told import HOSTILE, TEXT, part


def saving(sessions: Sequence[str], host: str = "codex") -> Gain:
    """One session each day; the first one saves least."""
    store, clock = MemoryStore(), Clock()
    clock.now -= DAY * len(sessions)
    for index, name in enumerate(sessions):
        clock.now += DAY
        with Session("/w", session_id=name, store=store, clock=clock, host=host) as session:
            session.observe("cat f", TEXT)
            session.observe("head -n 90 f", part(1, min(90, 40 + index)))
    return gain_of(store, asked())


def gain_as_page(gain: Gain, price: float | None = None) -> Node:
    page = parse("".join(gain_page(gain, price)))
    assert_sound(page)
    return page


def rows(table: Node) -> list[list[str]]:
    """The texts of its cells, without the heads."""
    found = [[cell.text for cell in row.all() if cell.tag in ("th", "td")] for row in table.all("tr")]
    return found[1:]


def table_below(page: Node, heading: str) -> list[list[str]]:
    """Of all tables up to the next heading."""
    found: list[list[str]] = []
    below = False
    for node in page.all():
        below = node.text == heading if node.tag == "h2" else below
        found += rows(node) if below and node.tag == "table" else []
    return found


# ---------------------------------------------------------------- gain


def test_each_session_and_day_has_a_bar_with_the_figures_of_the_table() -> None:
    gain = saving([f"s{n}" for n in range(OPEN_ROWS + 5)])
    page = gain_as_page(gain)
    sessions = table_below(page, "Each session")
    assert {row[0]: row[2] for row in sessions} == {
        name: f"{totals.counts['tokens_saved']:,}" for name, totals in gain.by["session"].items()
    }
    assert sessions[0][0] == f"s{OPEN_ROWS + 4}"
    bars = [float((bar.attributes["style"] or "").partition(":")[2]) for bar in page.all("i", "bar")]
    assert max(bars) == 1
    assert min(bars) >= 0
    assert len(table_below(page, "Omitted by day")) == len(gain.by["day"]) == OPEN_ROWS + 5
    (drawing,) = page.all("svg")
    assert (drawing.attributes["aria-label"] or "").startswith(
        f"Tokens omitted on each of {OPEN_ROWS + 5} days: at most "
    )
    assert (drawing.all("path", "left")[0].attributes["d"] or "").count("M") == OPEN_ROWS + 5


def test_the_verdict_of_all_sessions_is_in_money_of_the_given_price() -> None:
    gain = saving([f"s{n}" for n in range(ENOUGH_CALLS // 2)])
    (said,) = [p.text for p in gain_as_page(gain, 15.0).all("p", "verdict")]
    net = round(gain.total.sums["priced_net"])
    assert said.startswith(f"The net saving is {net:,} input tokens at full price, ")
    assert said.endswith(f"of the cost of tool output, ${net * 15 / 1e6:.2f}. readcache judged 200 of 200 calls.")
    assert "100 of 100 markers stand for lines" in gain_as_page(gain).text


def test_a_store_that_saved_nothing_has_a_page() -> None:
    store = MemoryStore()
    assert "readcache judged 0 of 0 calls." in gain_as_page(gain_of(store, asked())).text
    Session("/w", session_id="one", store=store).observe("cat f", TEXT)
    assert [row[2] for row in table_below(gain_as_page(gain_of(store, asked())), "Each session")] == ["0"]


@pytest.mark.parametrize("hostile", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text_and_nothing_else(hostile: str) -> None:
    whole = "".join(gain_page(saving([hostile], host=hostile)))
    whole += "".join(replay_page(replayed({hostile: 9}, ["default"]), ["default"]))
    whole.encode("utf-8")
    tags = {node.tag for page in whole.split("<!doctype html>")[1:] for node in parse(page).all()}
    assert not tags & {"script", "img"}
    assert whole.count("<style>") == 2


# ---------------------------------------------------------------- replay


def replayed(
    tools: dict[str, int], policies: Sequence[str], strategies: StrategyCounts | None = None, *, wrong: str = ""
) -> Sum:
    """Two conversations in which each further policy saves less."""
    totals = ReplayTotals(Counter(sessions=2, calls=5, out=1000), Counter(codex=2))
    totals.calls_by_tool.update(tools.keys())
    totals.out_by_tool.update(tools)
    for index, name in enumerate(policies):
        counts = Counter(saved=300 - 600 * index, chars_bounced=100, omissions=3, saved_priced=40, out_priced=80)
        by_tool = Counter(dict.fromkeys(tools, 7))
        totals.policies[name] = PolicyTotals(counts, by_tool, [wrong] if wrong else [])
    totals.strategies = strategies or {}
    found = Sum()
    found.add(Outcomes([totals]))
    return found


def replay_as_page(found: Sum, policies: Sequence[str]) -> Node:
    page = parse("".join(replay_page(found, policies)))
    assert_sound(page)
    return page


def test_the_policies_stand_side_by_side() -> None:
    policies = ["default", "max"]
    page = replay_as_page(replayed({"bash": 900, "read": 100}, policies), policies)
    by_label = {row[0].strip(): row[1:] for row in table_below(page, "Policies side by side")}
    assert by_label["of all tool output"] == ["30.0 %", "-30.0 %"]
    assert by_label["of all tool output, less what bounced"] == ["20.0 %", "-40.0 %"]
    assert by_label["priced while carried, of all tool output"] == ["50.0 %", "50.0 %"]
    assert by_label["bounces: asked for again within 4 calls"] == ["0 (0.0 %)", "0 (0.0 %)"]
    assert by_label["of the bill, by usage fields"] == ["n/a", "n/a"]  # no usage fields
    assert table_below(page, "Saved, by tool") == [["bash", "1", "900", "7", "7"], ["read", "1", "100", "7", "7"]]
    assert [code.text for code in page.all("code")] == ["readcache init codex --policy default"]


def test_ways_of_keeping_a_conversation_are_listed_with_each_policy_beside_them() -> None:
    none, keeps_five = Counter(bill=200, sessions=2, turns=9), Counter(bill=300, missed=4, needs=8)
    ways = {
        ("none", ""): none,
        ("recorded", ""): none,
        ("mask:5", ""): keeps_five,
        ("mask:5", "max"): Counter(bill=100),
    }
    page = replay_as_page(replayed({}, ["max"], ways), ["max"])
    assert [[cell.strip() for cell in row] for row in rows(page.all("table")[1])] == [
        ["none", "100.0 %", "9", "0 (n/a)", "0"],
        ["recorded *", "100.0 %", "9", "0 (n/a)", "0"],
        ["mask:5", "150.0 %", "0", "4 (50.0 %)", "0"],
        ["+ max", "50.0 %", "0", "0 (n/a)", "0"],
    ]


def width_of(bar: Node) -> float:
    return float(str(bar.attributes["style"]).partition(":")[2])


def test_all_bars_of_a_table_have_one_scale_and_a_caption() -> None:
    """Each row had a scale of its own: 0.1 % had a bar as long as 75 %."""
    found = replayed({"bash": 900}, ["default", "max"])
    for name, cut in (("default", 400), ("max", 375)):
        found.conversations[0].policies[name].counts.update(cut=cut, saved=0 if name == "default" else 600)
    ways = {("none", ""): Counter(bill=200, sessions=2), ("recorded", ""): Counter(bill=100)}
    found.conversations[0].strategies = ways
    page = replay_as_page(found, ["default", "max"])
    tables = [table for table in page.all("table") if table.all("i", "bar")]
    assert len(tables) == 3
    assert all(table.all("caption") for table in tables)
    policies = tables[0]
    assert policies.all("caption")[0].text == "Bars: shares. Longest: 100.0 %."
    drawn = {
        cell.text.strip(): width_of(cell.all("i", "bar")[0]) for cell in policies.all("td") if cell.all("i", "bar")
    }
    assert drawn["75.0 %"] == pytest.approx(75 / 100, abs=0.01)
    assert drawn["30.0 %"] == pytest.approx(30 / 100, abs=0.01)
    assert drawn["50.0 %"] == pytest.approx(50 / 100, abs=0.01)


def test_wrong_omissions_are_named_and_an_empty_replay_has_a_page() -> None:
    found = replayed({"bash": 9}, ["max"], wrong="call_7: line 3 <stood> nowhere")
    assert [note.text for note in replay_as_page(found, ["max"]).all("p", "note")] == [
        "Wrong, max: call_7: line 3 <stood> nowhere"
    ]
    assert [h.text for h in replay_as_page(Sum(), ["max"]).all("h2")] == ["What to switch on"]
