from __future__ import annotations

import dataclasses
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from readcache import HeadTail, Mode, Policy, Session
from readcache.core.model.events import Account, Delivered, Moment
from readcache.core.model.policy import Prices
from readcache.core.model.reply import Outcome, Reason
from readcache.log.store import Store, open_store
from readcache.report.gain import gain_json
from readcache.report.net import ENOUGH_CALLS, net_of, short_line
from readcache.report.page.savings import gain_page
from readcache.report.totals import Asked, Gain
from tests.report.parsed import parse
from tests.report.reported import DAY, NOON, Clock, asked, day_of, gain_of, numbered, printed

TEXT = numbered(200)


@pytest.fixture
def store() -> Store:
    return open_store(None)


def session_in(store: Store, clock: Clock | None = None, **options: Any) -> Session:
    given = {"session_id": "s", "local": False, **options}
    return Session("/w", store=store, clock=clock or Clock(), **given)


def read_twice(session: Session, clock: Clock | None = None, apart: float = 0.0) -> int:
    """Tokens that the second read saved."""
    session.observe("cat f", TEXT, call_id=f"{session.session_id}-1")
    if clock is not None:
        clock.now += apart
    return session.observe("head -n 150 f", numbered(150), call_id=f"{session.session_id}-2").tokens_saved


# ------------------------------------------------------------ when, where, what


def test_a_call_belongs_to_the_day_on_which_it_was_answered(store: Store) -> None:
    clock = Clock(NOON - DAY)
    saved = read_twice(session_in(store, clock), clock, DAY)
    gain = gain_of(store)
    assert [gain.windows[name].counts["calls"] for name in ("today", "7 days", "all")] == [1, 2, 2]
    assert gain.windows["today"].saved == gain.total.saved == saved > 0
    assert {day: totals.counts["calls"] for day, totals in gain.by["day"].items()} == {"2026-11-19": 1, "2026-11-20": 1}


@pytest.mark.parametrize(("days", "windows"), [(0, 4), (6, 3), (7, 2), (29, 2), (30, 1)])
def test_seven_days_are_today_and_the_six_before(store: Store, days: int, windows: int) -> None:
    session_in(store, Clock(NOON - days * DAY)).observe("cat f", TEXT)
    assert sum(totals.counts["calls"] for totals in gain_of(store).windows.values()) == windows


def test_since_and_until_leave_one_stretch_of_time(store: Store) -> None:
    clock = Clock(NOON - 3 * DAY)
    session = session_in(store, clock)
    for _ in range(4):
        session.observe("cat f", TEXT)
        clock.now += DAY
    gain = gain_of(store, asked(NOON - 2 * DAY, NOON))
    assert list(gain.windows) == ["all"]
    assert gain.total.counts["calls"] == 2


def test_each_call_is_booked_under_its_host_tool_and_reason(store: Store) -> None:
    read_twice(session_in(store, host="codex"))
    other = session_in(store, session_id="t", host="opencode")
    other.observe_tool("grep", numbered(20, "found"), arguments={"pattern": "x"})
    other.observe_read("f", TEXT)
    by = gain_of(store).by
    assert {host: totals.counts["calls"] for host, totals in by["host"].items()} == {"codex": 2, "opencode": 2}
    assert {tool: totals.counts["calls"] for tool, totals in by["tool"].items()} == {"bash": 2, "grep": 1, "read": 1}
    assert by["reason"]["covered"].saved == by["session"]["s"].saved > 0
    assert by["session"]["t"].saved == 0


def test_a_row_from_before_hosts_were_noted_is_of_an_unknown_one(store: Store) -> None:
    account = Account("r", Outcome.FULL, Reason.NOT_SEEN, 4, 0)
    store.append("s", "main", [Delivered("c", "text", "cat f", when=Moment(1), account=account)], NOON)
    by = gain_of(store).by
    assert list(by["host"]) == list(by["tool"]) == ["unknown"]


def test_sub_agents_count_as_part_of_their_session(store: Store) -> None:
    session = session_in(store)
    read_twice(session)
    read_twice(session.fork("searcher"))
    gain = gain_of(store)
    assert gain.sessions == {"s"}
    assert gain.total.counts["calls"] == 4


# ------------------------------------------------------------ what counts as saved


def test_what_is_saved_is_net_of_markers(store: Store) -> None:
    session = session_in(store)
    read_twice(session)
    (marker,) = [d.event for d in session.view.of_call("s-2")]
    total = gain_of(store).total
    assert total.sums["chars_saved"] == total.sums["results_cut_chars"] - len(marker.text)
    assert total.saved == session.stats()["tokens_saved"]


def test_what_bounced_is_taken_off_where_it_was_saved_and_costs_a_turn(store: Store) -> None:
    clock = Clock(NOON - DAY)
    session = session_in(store, clock)
    saved = read_twice(session)
    clock.now += DAY
    session.observe("head -n 150 f", numbered(150), call_id="again")
    gain = gain_of(store)
    assert gain.windows["today"].counts["tokens_bounced"] == 0
    assert (gain.total.saved, gain.total.counts["tokens_bounced"]) == (saved, saved)
    assert gain.total.counts["tokens_saved"] == gain.total.chars_net == 0
    assert gain.total.sums["priced_net"] == -gain.total.sums["priced_turns"] < 0
    assert net_of(gain.total) is None
    for _ in range(ENOUGH_CALLS):
        session.observe("true", "")
    gain = gain_of(store)
    assert gain.total.sums["priced_net"] == -gain.total.sums["priced_turns"] < 0
    assert printed(gain)[0].startswith(f"The net loss is {round(gain.total.sums['priced_turns']):,} input tokens")
    assert all(re.search(r" -[\d,.]+( %)?$", line) for line in printed(gain) if line.startswith("net, "))


def test_what_would_have_been_saved_is_never_mixed_with_what_was(store: Store) -> None:
    read_twice(session_in(store, policy=Policy(mode=Mode.ADVISE)))
    gain = gain_of(store)
    assert gain.total.saved == 0
    assert [gain.total.sums[name] for name in ("chars_saved", "results_cut", "priced_net")] == [0, 0, 0]
    would = gain.total.counts["tokens_saved_if_on"]
    assert would > 0
    assert next(line for line in printed(gain) if f"{would:,}" in line).startswith("readcache only advises")


def test_advice_in_one_session_does_not_hide_what_another_one_saved(store: Store) -> None:
    """The page said "readcache only advised" of a store in which one of many sessions had only advised."""
    read_twice(session_in(store, policy=Policy(mode=Mode.ADVISE)))
    read_twice(session_in(store, session_id="t"))
    gain = gain_of(store)
    for said in (printed(gain)[0], short_line(gain.total), "".join(gain_page(gain))):
        assert "% of tool output" in said
        assert "readcache only advises:" not in said


def test_the_coverage_is_beside_the_result(store: Store) -> None:
    session = session_in(store)
    session.missed(20, "the server was late")
    assert printed(gain_of(store))[1].startswith("readcache judged 0 of 20 calls in 1 session")
    read_twice(session)
    assert printed(gain_of(store))[1].startswith("readcache judged 2 of 22 calls in 1 session")
    assert short_line(gain_of(store).total).endswith(", 2 of 22 calls judged today")


def test_what_the_host_cuts_anyway_is_not_credited(store: Store) -> None:
    session = session_in(store, policy=Policy(clip=HeadTail(2000, 2000)))
    long = numbered(2000)
    session.observe("cat f", long)
    session.observe("cat f", long)
    total = gain_of(store).total
    assert total.counts["output_chars"] == 8000
    assert total.sums["chars_saved"] <= 4000


def test_nor_is_it_where_the_host_says_so_only_afterwards(store: Store) -> None:
    session = session_in(store)
    long = numbered(2000)
    for number in range(2):
        reply = session.observe("cat f", long, call_id=f"c{number}")
        session.settle(f"c{number}", reply.text[:2000] + "\n[…]\n" + reply.text[-2000:])
    assert reply.tokens_saved > 0
    total = gain_of(store).total
    assert total.saved == total.sums["chars_saved"] == session.stats()["tokens_saved"] == 0


def test_what_is_pruned_later_was_saved_until_then(store: Store) -> None:
    session = session_in(store)
    saved = read_twice(session)
    session.observe("make", "done\n")
    session.settle("s-2", "[old output was pruned]")
    assert gain_of(store).total.saved == saved


def test_what_is_saved_is_priced_for_as_long_as_it_is_carried(store: Store) -> None:
    session, prices = session_in(store), Policy().prices
    saved = read_twice(session)
    for number in range(5):
        session.observe("make", f"{number}\n", call_id=f"m{number}")
    session.compacted()
    for number in range(5):
        session.observe("make", f"{number}\n")
    total = gain_of(store).total
    assert saved == pytest.approx(total.sums["chars_saved"] / prices.chars_per_token, abs=1)
    worth = total.sums["chars_saved"] / prices.chars_per_token * (prices.write + 5 * prices.read)
    assert total.sums["priced_net"] == pytest.approx(total.sums["priced_tokens"]) == pytest.approx(worth)


def test_a_pause_longer_than_the_cache_holds_writes_what_is_carried_again(store: Store) -> None:
    clock, prices = Clock(), Prices(write=1.25, read=0.05, output=5.0, answer=560)
    with session_in(store, clock) as session:
        read_twice(session, clock)
        for wait in (10.0, 400.0, 100.0):
            clock.now += wait
            session.observe("true", "")
    lasting = gain_of(store, replace(asked(), prices=prices))
    expiring = gain_of(store, replace(asked(), prices=prices, seconds=300.0))
    saved = lasting.total.sums["chars_saved"] / prices.chars_per_token
    assert lasting.total.sums["priced_net"] == pytest.approx(saved * (1.25 + 3 * 0.05))
    assert expiring.total.sums["priced_net"] == pytest.approx(saved * (2 * 1.25 + 2 * 0.05))


def test_turns_that_asked_again_are_told_apart_and_come_first(store: Store) -> None:
    with session_in(store) as session:
        for _ in range(3):  # shown, answered by a marker, insisted
            session.observe("cat f", numbered(100))
        plan = session.restore_plan()
        session.compacted(restored=plan)
        session.observe("cat f", numbered(100))
    gain = gain_of(store)
    assert (gain.total.counts["reread_calls"], gain.total.counts["reread_answered"]) == (1, 1)
    assert (gain.total.sums["rereads_in_view"], gain.total.sums["rereads_in_view_answered"]) == (2, 1)
    rows = {line[:36].rstrip(): line[36:].split()[-1] for line in printed(gain) if line[36:].strip()}
    assert rows["  re-read after compaction"] == rows["    answered by the restored section"] == "1"
    assert (rows["  re-reads of visible lines"], rows["    of these, shortened"]) == ("2", "1")
    assert rows["prompt caches broken by a marker"] == "0"
    table = "\n".join(printed(gain))
    assert re.search(r"  shortened, then asked for again .* 1 \(50.0 %\)$", table, re.MULTILINE)
    assert (rows["fault rate, per 1,000 markers"], rows["fault rate, per 1,000 calls"]) == ("500.0", "250.0")
    assert table.index("shortened, then asked") < table.index("tool output, characters")


# ------------------------------------------------------------ proof


def test_every_marker_is_proven_from_the_log(store: Store) -> None:
    session = session_in(store, policy=Policy.named("max"))
    read_twice(session)
    session.observe("cat -n f", "".join(f"{n:6}\t{line}\n" for n, line in enumerate(TEXT.splitlines(), 1)))
    session.compacted(keep=["s-1", "s-2"])
    proof = gain_of(store).proof
    assert proof.proven == proof.markers >= 2
    assert proof.faults == []


@pytest.mark.parametrize("kind", ["other lines", "not visible"])
def test_a_marker_whose_lines_the_log_does_not_have_is_named(store: Store, kind: str) -> None:
    session = session_in(open_store(None))
    read_twice(session)
    events = [record.event for record in session.events()]
    shown, marked = events[0], events[1]
    assert isinstance(shown, Delivered)
    assert isinstance(marked, Delivered)
    if kind == "other lines":
        shown = dataclasses.replace(shown, text=shown.text.replace("7: a line", "7: A line", 1))
    else:
        shown = dataclasses.replace(shown, call_id="another")
    store.append("s", "main", [shown, marked], NOON)
    gain = gain_of(store)
    assert (gain.proof.proven, gain.proof.markers) == (0, 1)
    assert "session s, main, call s-2" in gain.proof.faults[0]
    assert any(line.startswith("NOT PROVEN: session s") for line in printed(gain))


def test_what_run_does_not_record_is_named_beside_the_total(store: Store) -> None:
    read_twice(session_in(store, host="run"))
    assert "not counted: commands that neither read nor write a file: not recorded by run" in "\n".join(
        printed(gain_of(store))
    )


def test_lines_with_other_numbers_are_compared_without_them(store: Store) -> None:
    session = session_in(open_store(None), policy=Policy.named("max"))
    read_twice(session)
    bodies = TEXT.splitlines()
    session.observe("cat -n f", "".join(f"{number:6}\t{body}\n" for number, body in enumerate(bodies, 1)))
    events = [record.event for record in session.events()]
    marked = next(
        event for event in events if isinstance(event, Delivered) and event.markers and event.markers[0].lines
    )
    assert gain_of(session.reader.log.store).proof.faults == []
    wrong = dataclasses.replace(marked.markers[0], lines=marked.markers[0].lines.replace("7: a", "7: A", 1))
    events[events.index(marked)] = dataclasses.replace(marked, markers=(wrong, *marked.markers[1:]))
    store.append("s", "main", events, NOON)
    (fault,) = gain_of(store).proof.faults
    assert "7: A line of some length" in fault


def test_a_text_that_was_taken_out_of_the_store_later_is_looked_for_in_what_took_its_place(store: Store) -> None:
    session = session_in(store)
    read_twice(session)
    session.observe("make", "done\n")
    session.settle("s-1", "the host's own words\n" + TEXT)
    assert gain_of(store).proof.faults == []


def test_a_damaged_row_is_counted_and_said(tmp_path: Path) -> None:
    store = open_store(tmp_path / "log.db")
    read_twice(session_in(store))
    store._open().__enter__().execute("UPDATE events SET body = '{' WHERE seq = 1")  # type: ignore[attr-defined]
    gain = gain_of(store)
    assert len(gain.damaged) == 1
    assert "damaged rows of the store, left aside with what they would have counted: 1" in printed(gain)
    store.close()


# ------------------------------------------------------------ what is printed


def test_a_line_of_blocks_has_the_savings_of_each_day(store: Store) -> None:
    clock = Clock(NOON - 2 * DAY)
    read_twice(session_in(store, session_id="old", clock=clock))
    for name in ("a", "b"):
        read_twice(session_in(store, session_id=name, clock=Clock(NOON)))
    lines = printed(gain := gain_of(store))
    at = next(n for n, line in enumerate(lines) if line.startswith("omitted, last 30 days"))
    assert lines[at] == f"omitted, last 30 days |{' ' * 27}▄ █|"
    most = max(totals.counts["tokens_saved"] for totals in gain.by["day"].values())
    assert lines[at + 1] == f"  Bars: tokens a day. Longest: {most:,}."


def test_no_table_has_bars_without_a_caption(store: Store) -> None:
    session = session_in(store, host="codex")
    read_twice(session)
    gain = gain_of(store)
    saved = gain.total.counts["tokens_saved"]
    lines = [*printed(gain), ""]
    tables = "\n".join(lines).split("\n\n")
    barred = [table for table in tables if "█" in table and table.startswith("by ")]
    assert len(barred) == 4, "by host, tool, reason and session"
    assert all(f"  Bars: tokens omitted. Longest: {saved:,}." in table for table in barred)
    drawn = [table for table in parse("".join(gain_page(gain))).all("table") if table.all("i", "bar")]
    assert len(drawn) >= 5
    assert {table.all("caption")[0].text for table in drawn} == {f"Bars: tokens omitted. Longest: {saved:,}."}


def test_the_table_is_as_wide_as_the_terminal_whatever_things_are_called(store: Store) -> None:
    for name in ("s" * 300, "short"):
        read_twice(session_in(store, session_id=name, host="h" * 200))
    gain = gain_of(store)
    gain.proof.faults = ["a session of many words, " * 9]
    gain.damaged = ["event 7 in the store cannot be read, " * 9]
    for width in (40, 60, 75, 80, 100, 160):
        lines = printed(gain, price=3.0, width=width)
        table = lines[lines.index("") : next(n for n, line in enumerate(lines) if line.startswith("omissions checked"))]
        assert 0.85 * width < max(map(len, table)) <= width
    assert not [line for line in printed(gain, block="#") if not line.isascii()]


def test_money_is_named_only_where_the_user_names_a_price(store: Store) -> None:
    session = session_in(store)
    read_twice(session)
    for _ in range(ENOUGH_CALLS):
        session.observe("true", "")
    gain = gain_of(store)
    assert not [line for line in printed(gain) if "$" in line or "dollars" in line]
    assert "money" not in str(gain_json(gain))
    (line,) = [line for line in printed(gain, price=3.0) if "dollars at 3 a million" in line]
    assert float(line.split()[-1]) == pytest.approx(gain.total.sums["priced_net"] * 3e-6, abs=0.005) != 0
    assert printed(gain, price=3.0)[0].endswith(f", ${line.split()[-1]}.")


def test_json_has_the_counters_of_stats(store: Store) -> None:
    session = session_in(store, host='a, "b"')
    read_twice(session)
    gain = gain_of(store)
    said = gain_json(gain)
    assert list(said["by_host"]) == ['a, "b"']
    counters = said["by_host"]['a, "b"']["counters"]
    assert {name: count for name, count in counters.items() if count} == {k: v for k, v in session.stats().items() if v}
    assert said["checked"] == {"markers": 1, "proven": 1, "faults": []}


def today(store: Store) -> str:
    found = Gain(Asked(day_of, day_of(NOON), by=()), proves=False)
    for session, agent, *_ in store.sessions():
        found.add_reader(session, agent, store.records(session, agent))
    return short_line(found.windows["today"])


def test_the_short_line_tells_no_calls_from_nothing_saved(store: Store) -> None:
    assert short_line(None) == "readcache: no calls yet"
    assert today(store) == "readcache: no calls yet today"
    clock = Clock()
    session = session_in(store, clock)
    session.observe("cat f", TEXT)
    few = "too few calls to say what it is worth, 1 of 1 calls judged today"
    assert today(store) == f"readcache: nothing omitted, {few}"
    read_twice(session)
    assert re.fullmatch(r"readcache: 2\d\.\d % of tool output omitted, too few calls .*, 3 of 3 .*", today(store))
    for _ in range(ENOUGH_CALLS - 4):
        session.observe("true", "")
    assert "too few calls" in today(store)
    session.observe("true", "")
    net = round(gain_of(store).total.sums["priced_net"])
    assert f"readcache: net +{net:,} input tokens at full price, " in today(store)
    assert today(store).endswith(" of the cost of tool output, 200 of 200 calls judged today")


def test_the_short_line_of_one_who_is_only_advised_says_so(store: Store) -> None:
    read_twice(session_in(store, policy=Policy(mode=Mode.ADVISE)))
    assert today(store).startswith("readcache only advises: ")
