"""Ways of keeping a conversation, beside a model that holds the whole conversation as a list and looks at all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readcache.core.model.errors import UsageError
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.bills import ModelPrices
from readcache.report.replay.conversation_sim import ASK, BASE, CALL, NOTE, PREVIEW, RESTORED, SUMMARY
from readcache.report.replay.conversations import Conversations, Sending, parse_strategy
from readcache.transcripts.records import HistoryRemoval, RequestSent

PRICES = ModelPrices("model", 1.0, 0.1, 1.25, 5.0)
LINE = 1000  # tokens
WAYS = ("compact:21k", "compact:30k", "clear:20k:12k", "clear:15k:15k", "mask:2", "mask:1")


def line(number: int) -> str:
    """A line of a thousand tokens, with the break behind it."""
    return f"{f'line {number} ':x<{3 * LINE - 1}}"


@dataclass(frozen=True)
class Did:
    """A call that showed these lines, and edited, or wrote, those."""

    shows: tuple[int, ...] = ()
    edits: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()

    def call(self, number: int, at: float | None = None) -> ToolCall:
        out = "".join(f"{line(n)}\n" for n in self.shows)
        said = "".join(f"{line(n)}\n" for n in (*self.edits, *self.writes))
        replaced = "\n".join(map(line, self.edits))
        return ToolCall(f"c{number}", "edit", None, out, is_judged=False, said=said, replaced=replaced, at=at)


@dataclass
class Block:
    """A call in the conversation, with its result or without."""

    number: int
    did: Did
    is_present: bool = True

    @property
    def said(self) -> int:
        return LINE * (len(self.did.edits) + len(self.did.writes)) + CALL

    @property
    def out(self) -> int:
        return LINE * len(self.did.shows)

    def text(self) -> tuple[object, int]:
        """The call and its result, which stand or go together."""
        is_note = bool(self.did.shows) and not self.is_present
        return (self.number, is_note), self.said + (NOTE if is_note else self.out)


class Model:
    """All of it in a list. A request costs what it has in common with the one before it, from the beginning, and the
    rest. Says nothing of the cost where results were put back."""

    def __init__(self, spec: str) -> None:
        self.kind, *sizes = spec.split(":")
        self.sizes = [int(size.replace("k", "000")) for size in sizes]
        self.blocks: list[Block] = []
        self.all: list[Block] = []
        self.back: list[Block] = []  # asked for again after a compaction
        self.start: list[tuple[object, int]] = [("base", BASE)]
        self.before: list[tuple[object, int]] = []
        self.own: set[int] = set()
        self.bill, self.missed, self.needs = 0.0, 0, 0

    def texts(self) -> list[tuple[object, int]]:
        return [*self.start, *(block.text() for block in self.blocks)]

    def size(self) -> int:
        return sum(size for _, size in self.texts()) + sum(block.out for block in self.back)

    def fixed(self) -> int:
        """Of the instructions and the agent's own text."""
        return BASE + sum(block.said for block in self.blocks)

    def request(self, output: int) -> None:
        texts = self.texts()
        same = 0
        for (name, size), (other, _) in zip(texts, self.before, strict=False):
            if name != other:
                break
            same += size
        total = sum(size for _, size in texts)
        self.bill += 0.1 * same + 1.25 * (total - same) + 5 * output
        self.before = texts

    def turn(self, did: Did) -> None:
        block = Block(len(self.all), did)
        self.request(block.said)
        shown = {n for one in self.all for n in one.did.shows}
        visible = {n for one in (*self.blocks, *self.back) if one.is_present for n in one.did.shows}
        needed = (set(did.edits) & shown) - self.own
        gone = needed - visible
        self.needs += bool(needed)
        self.missed += bool(gone)
        for source in {max(b.number for b in self.all if n in b.did.shows) for n in gone}:
            self.all[source].is_present = True
            self.back += [self.all[source]] if self.all[source] not in self.blocks else []
        self.own |= {*did.edits, *did.writes}
        self.blocks.append(block)
        self.all.append(block)
        self.shorten()

    def shorten(self) -> None:
        if self.kind == "mask":
            for block in self.blocks[: len(self.blocks) - self.sizes[0]]:
                block.is_present = False
        elif self.kind == "clear" and self.size() > self.sizes[0] and self.fixed() <= (self.sizes[1] or 10**9):
            for block in self.blocks[:-2]:
                if self.size() <= self.sizes[1]:
                    break
                block.is_present = False
        elif self.kind == "compact" and self.size() > self.sizes[0]:
            self.request(SUMMARY)
            for block in self.all:
                block.is_present = False
            self.blocks, self.back, self.own = [], [], set()
            self.start = [("base", BASE), (("summary", len(self.all)), SUMMARY + RESTORED)]


def keep(
    ways: Sequence[str], did: Sequence[Did], prices: ModelPrices = PRICES, times: Sequence[float | None] = ()
) -> dict[str, Counter[str]]:
    """What each way comes to."""
    conversations = Conversations(ways, prices)
    for number, one in enumerate(did):
        conversations.call(one.call(number, times[number] if times else None), is_read=not one.edits)
    return {spec: counts for (spec, _), counts in conversations.end().items()}


LINES = st.lists(st.integers(0, 9), max_size=5, unique=True).map(tuple)
DID = st.lists(st.builds(Did, LINES, st.lists(st.integers(0, 9), max_size=2, unique=True).map(tuple)), max_size=14)


@settings(max_examples=50)  # the lines are long
@given(DID, st.sampled_from(WAYS))
def test_what_is_missed_and_what_it_costs_is_what_a_list_of_all_texts_says(did: list[Did], spec: str) -> None:
    found, model = keep([spec], did)[spec], Model(spec)
    for one in did:
        model.turn(one)
        if spec.startswith("clear") and model.missed:
            break  # a result that came back stands twice there, which decides when the next one is cleared
    else:
        assert (found["needs"], found["missed"]) == (model.needs, model.missed)
        assert found["turns"] == len(did) + model.missed
        if not model.missed:
            assert found["bill"] == pytest.approx(model.bill, abs=1)


@given(DID)
def test_a_conversation_from_which_nothing_leaves_misses_nothing_and_neither_do_marks_that_it_never_reaches(
    did: list[Did],
) -> None:
    found = keep(["compact:900k", "clear:900k:900k", "mask:99"], did)
    assert found["none"]["missed"] == found["none"]["shortened"] == found["none"]["names_missed"] == 0
    assert all(counts == found["none"] for counts in found.values())


@given(DID, st.sampled_from(WAYS))
def test_a_bill_follows_its_prices(did: list[Did], spec: str) -> None:
    once = keep([spec], did)
    dollars = keep([spec], did, replace(PRICES, input=7, read=0.7, write=8.75, output=35))
    twice = keep([spec], did, replace(PRICES, read=0.2, write=2.5, output=10))
    for way, counts in once.items():
        assert dollars[way] == counts  # in tokens of input
        assert twice[way]["bill"] == pytest.approx(2 * counts["bill"], abs=2)
        assert counts["bill"] <= 1.25 * counts["carried"] + 5 * (
            sum(Block(0, one).said for one in did) + ASK * counts["missed"] + SUMMARY * counts["shortened"] + 1
        )


@given(DID)
def test_the_earlier_results_go_the_less_is_carried(did: list[Did]) -> None:
    found = keep(["mask:1", "mask:3", "mask:6"], [replace(one, edits=(), writes=one.edits) for one in did])
    carried = [found[way]["carried"] for way in ("mask:1", "mask:3", "mask:6", "none")]
    assert carried == sorted(carried)


def test_an_edit_of_lines_that_were_cleared_costs_a_turn_and_they_come_back() -> None:
    did = [Did(shows=(1, 2)), Did(shows=(3,)), Did(shows=(4,)), Did(edits=(1,)), Did(edits=(2,))]
    masked = keep(["mask:2"], did)
    assert (masked["mask:2"]["needs"], masked["mask:2"]["missed"], masked["mask:2"]["turns"]) == (2, 2, 7)
    assert masked["none"]["missed"] == 0
    own = keep(["mask:2"], [*did[:4], Did(edits=(1,))])
    assert own["mask:2"]["missed"] == 1, "what the agent wrote itself it still sees"


def test_lines_that_are_read_again_after_they_went_are_told_and_cost_nothing() -> None:
    reads = [Did(shows=(1, 2, 3)), Did(shows=(4, 5, 6)), Did(shows=(7, 8, 9)), Did(shows=(1, 2, 3))]
    found = keep(["mask:2"], reads)
    assert (found["none"]["rereads"], found["none"]["rereads_missed"]) == (1, 0)
    assert (found["mask:2"]["rereads"], found["mask:2"]["rereads_missed"]) == (1, 1)
    assert found["mask:2"]["turns"] == 4


@pytest.mark.parametrize(("seconds", "pauses"), [(300.0, 1), (3600.0, 0), (None, 0)])
def test_a_pause_longer_than_the_cache_holds_writes_everything_again(seconds: float | None, pauses: int) -> None:
    did, times = [Did(shows=(n,)) for n in range(4)], [0.0, 100.0, 800.0, None]
    quick = keep(["none"], did)["none"]
    slow = keep(["none"], did, replace(PRICES, seconds=seconds), times)["none"]
    cached = BASE + LINE + CALL  # as the second call was asked for, the last before the pause
    assert slow["expiries"] == pauses
    assert slow["bill_expired"] == pytest.approx(pauses * 1.15 * cached, abs=1)
    assert slow["bill"] - quick["bill"] == pytest.approx(slow["bill_expired"], abs=2)


def test_a_prompt_that_is_too_short_is_not_cached() -> None:
    did = [Did(shows=(1,))] * 3
    short = keep(["none"], did, replace(PRICES, least=100_000))["none"]
    assert short["bill"] == pytest.approx(1.25 * short["carried"] + 3 * 5 * CALL, abs=1)


def test_what_the_host_did_takes_away_what_it_says_and_shows_what_it_restored() -> None:
    conversations = Conversations(["none"], PRICES)
    for number in range(3):
        conversations.call(Did(shows=(number,)).call(number), is_read=True)
    restored = Did(shows=(2,)).call(99)
    conversations.trim(HistoryRemoval(frozenset({"c0"}), (restored,)))
    for number, edited in enumerate((0, 1, 2), start=3):
        conversations.call(Did(edits=(edited,)).call(number), is_read=False)
    found = {spec: counts for (spec, _), counts in conversations.end().items()}
    assert (found["recorded"]["needs"], found["recorded"]["missed"], found["recorded"]["shortened"]) == (3, 1, 1)
    assert (found["none"]["needs"], found["none"]["missed"], found["none"]["shortened"]) == (3, 0, 0)


def test_a_file_that_the_user_showed_stands_in_every_way_until_it_goes() -> None:
    conversations = Conversations(["mask:1"], PRICES)
    conversations.call(Did(writes=(5,)).call(0), is_read=False)
    conversations.trim(HistoryRemoval(frozenset({"c0"}), (Did(shows=(7,)).call(99),), compacts=False))
    for number, did in enumerate((Did(edits=(7,)), Did(shows=(5,)), Did(shows=(1,)), Did(edits=(5,))), start=1):
        conversations.call(did.call(number), is_read=not did.edits)
    found = {spec: counts for (spec, _), counts in conversations.end().items()}
    assert {way: (counts["needs"], counts["missed"]) for way, counts in found.items()} == {
        "none": (1, 0),
        "recorded": (1, 0),
        "mask:1": (1, 0),
    }, "the agent still sees what it wrote itself, and no result had shown that before"
    assert found["none"]["carried"] == found["recorded"]["carried"]


def test_who_goes_back_loses_what_came_after_and_keeps_the_cache() -> None:
    did = [Did(shows=(1,)), Did(shows=(2,))]
    conversations = Conversations(["none"], PRICES)
    for number, one in enumerate(did):
        conversations.call(one.call(number), is_read=True)
    conversations.trim(HistoryRemoval(frozenset({"c0"}), compacts=False))
    conversations.call(Did(edits=(2,)).call(2), is_read=False)
    recorded = conversations.end()["recorded", ""]
    assert (recorded["missed"], recorded["shortened"]) == (1, 0)
    sizes = [BASE, BASE + CALL + LINE, BASE + CALL + LINE, BASE + CALL + LINE]  # the last one asks again
    assert recorded["carried"] == sum(sizes)


# ---------------------------------------------------------------- with a preset


def keep_with(spec: str, did: Sequence[Did], sends: Mapping[int, Did]) -> Counter[str]:
    """What a way comes to with a preset, which sends no more of these results than what is said."""
    conversations = Conversations([spec], PRICES, ("preset",))
    for number, one in enumerate(did):
        call = one.call(number)
        text = sends[number].call(number).output if number in sends else call.output
        conversations.call(call, {"preset": Sending(text, text)}, is_read=not one.edits)
    return conversations.end()[spec, "preset"]


@settings(max_examples=30)
@given(DID, st.sampled_from((*WAYS, "anthropic", "gemini-cli", "none", "recorded")))
def test_a_preset_that_leaves_nothing_out_changes_nothing(did: list[Did], spec: str) -> None:
    assert keep_with(spec, did, {}) == keep([spec], did)[spec]


def test_what_a_preset_leaves_out_is_not_carried_and_misses_nothing_while_its_source_stands() -> None:
    did = [Did(shows=(1, 2)), Did(shows=(1, 2)), Did(edits=(1,))]
    alone, together = keep(["none"], did)["none"], keep_with("none", did, {1: Did()})
    assert alone["carried"] - together["carried"] == 2 * LINE  # in the third request
    assert together["missed"] == 0


def test_a_result_comes_whole_where_the_lines_that_a_preset_left_out_had_gone() -> None:
    did = [Did(shows=(1, 2)), Did(shows=(3,)), Did(shows=(4,)), Did(shows=(1, 2)), Did(edits=(1,))]
    alone, together = keep(["mask:2"], did)["mask:2"], keep_with("mask:2", did, {3: Did()})
    assert alone == together


def test_what_a_marker_pointed_at_is_missed_when_it_has_gone_and_comes_back_whole() -> None:
    did = [Did(shows=(1, 2)), Did(shows=(1, 2)), Did(shows=(3,)), Did(edits=(1,))]
    alone, together = keep(["mask:2"], did)["mask:2"], keep_with("mask:2", did, {1: Did()})
    assert (alone["missed"], together["missed"]) == (0, 1)
    assert together["turns"] == 5


def test_clearing_keeps_what_a_marker_of_the_newest_results_points_at() -> None:
    did = [Did(shows=(1, 2)), *[Did(shows=(n,)) for n in (3, 4, 5, 6, 7)], Did(shows=(1, 2)), Did(edits=(1,))]
    sends = {6: Did()}
    assert keep_with("clear:14k:12k", did, sends)["missed"] == 0
    assert keep_with("mask:2", did, sends)["missed"] == 0, "it had gone, so the preset left nothing out"
    assert keep_with("clear:14k:12k", did, {})["shortened"] > 0


def test_what_stands_with_something_else_in_front_is_not_missed() -> None:
    numbered = replace(Did(shows=(1, 2)).call(0), output=f"a.py:7:{line(1)}\n")
    conversations = Conversations(["none"], PRICES, ("preset",))
    conversations.call(numbered, is_read=True)
    conversations.call(Did(shows=(1,)).call(1), {"preset": Sending("marker\n", "marker\n")}, is_read=True)
    conversations.call(Did(edits=(1,)).call(2), is_read=False)
    found = conversations.end()["none", "preset"]
    assert (found["needs"], found["missed"]) == (1, 0)


# ---------------------------------------------------------------- rules of others


def test_context_editing_leaves_the_last_three_results_of_each_request_from_its_trigger_on() -> None:
    did = [Did(shows=tuple(range(10))) for _ in range(12)]
    found = keep(["anthropic"], did)["anthropic"]
    assert found["shortened"] == 3, "8k + 10 results of 10k are above 100k: before the last three requests"
    cleared = 7 * (10 * LINE - NOTE) + 8 * (10 * LINE - NOTE)
    assert keep(["none"], did)["none"]["carried"] - found["carried"] == cleared


def test_gemini_cli_masks_results_behind_the_newest_50k_tokens_when_they_are_30k() -> None:
    did = [Did(shows=tuple(range(10))) for _ in range(11)]
    found = keep(["gemini-cli"], did)["gemini-cli"]
    assert found["shortened"] == 1, "5 of 10k are protected, the newest is not counted: 3 go before request 10"
    assert keep(["none"], did)["none"]["carried"] - found["carried"] == 2 * 3 * (10 * LINE - PREVIEW)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("antropic", "(did you mean anthropic?)"),
        ("keep:5", "unknown --conversation"),
        ("maks:5", "(did you mean mask?)"),
        ("compact", "unknown --conversation"),
        ("none:5", "unknown --conversation"),
        ("clear:160k", "unknown --conversation"),
        ("mask:0", "leaves no result"),
        ("mask:-3", "unknown --conversation"),
        ("mask:", "unknown --conversation"),
        ("compact:20k", "20,000 tokens stay after a compaction"),
        ("clear:8k:2k", "8,000 tokens of instructions and tools always stand"),
        ("clear:60k:160k", "clears from 60,000 tokens up to 160,000"),
    ],
)
def test_a_way_that_makes_no_sense_is_named(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_strategy(spec)
    assert said in str(error.value)
    assert repr(spec) in str(error.value)


# ---------------------------------------------------------------- sizes that the provider counted


def with_usage(ways: Sequence[str], prompts: Sequence[int | None]) -> dict[str, list[int]]:
    """The sizes of each way after each request, if each call shows a thousand tokens. `prompts`: the tokens of each
    request by the provider; None: the host compacted before it."""
    talk, sizes = Conversations(ways, PRICES, host="claude-code"), dict[str, list[int]]()
    for number, prompt in enumerate(prompts):
        if prompt is None:
            talk.trim(HistoryRemoval())
            continue
        talk.sent(RequestSent(fresh=prompt))
        for (spec, _), kept in talk._sims.items():
            sizes.setdefault(spec, []).append(kept.size)
        talk.call(Did(shows=(number,)).call(number), is_read=True)
    return sizes


def test_a_conversation_has_the_size_that_the_provider_counted() -> None:
    sizes = with_usage(["clear:900k:60k"], prompts := [31_000, 33_500, 34_000, 39_000])
    assert sizes == dict.fromkeys(("none", "recorded", "clear:900k:60k"), prompts)


def test_after_a_compaction_only_what_the_host_did_becomes_smaller() -> None:
    sizes = with_usage(["none"], [31_000, 90_000, None, 45_000, 47_000])
    assert sizes["recorded"] == [31_000, 90_000, 45_000, 47_000]
    assert sizes["none"][:2] == [31_000, 90_000]
    grown = LINE + CALL
    assert sizes["none"][2:] == [90_000 + grown, 92_000 + grown]


def test_a_schedule_acts_at_the_tokens_of_the_provider() -> None:
    prompts = [40_000 + 20_000 * turn for turn in range(8)]
    assert max(with_usage(["none"], prompts)["none"]) == 180_000
    assert max(with_usage(["compact:100k"], prompts)["compact:100k"]) < 120_000
    assert min(with_usage(["compact:100k"], prompts)["compact:100k"][3:]) >= 40_000, "the instructions stay"


def test_without_usage_a_result_has_the_tokens_of_its_model_behind_the_hosts_instructions() -> None:
    for chars_per_token in (2.0, 3.0):
        talk = Conversations(["none"], PRICES, chars_per_token=chars_per_token, host="codex")
        for number in range(2):
            talk.call(Did(shows=(number,)).call(number), is_read=True)
        assert talk.end()["none", ""]["carried"] == 2 * 20_000 + CALL + 3 * LINE / chars_per_token
