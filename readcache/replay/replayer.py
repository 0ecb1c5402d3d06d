"""Replays one recording under several policies, each in a session of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from readcache import Policy
from readcache.model.tool_call import ToolCall
from readcache.replay.arm import Arm
from readcache.replay.bills import Bill
from readcache.replay.conversations import Conversations, Sending, tokens_of
from readcache.replay.onlooker import Onlooker
from readcache.replay.prices import RATIOS, USUAL, ModelPrices, PriceTable, built_in_prices, find_prices
from readcache.replay.tally import Replayed, Tally
from readcache.transcripts.records import HistoryCut, Recording, RequestSent


@dataclass(frozen=True, slots=True)
class Choices:
    """What a replay goes by besides its policies. `ways` to keep conversations of `least` tokens or more. `model`: ""
    for the one that a transcript names."""

    ways: tuple[str, ...] = ()
    least: int = 0
    table: PriceTable = field(default_factory=built_in_prices)
    model: str = ""

    def prices(self, recording: Recording) -> ModelPrices | None:
        """Of its model; None where they are not known. Where most was written to a cache that holds for an hour, so is
        the rest."""
        found = find_prices(self.model or recording.model, self.table)
        sent = [item for item in recording.items if isinstance(item, RequestSent)]
        hour = sum(one.cache_write_hour for one in sent) > sum(one.cache_write for one in sent)
        return found.for_an_hour() if found is not None and hour else found


def replay_recording(recording: Recording, policies: Mapping[str, Policy], choices: Choices | None = None) -> Replayed:
    """The tally of one conversation."""
    choices = Choices() if choices is None else choices
    tally = Tally(Counter(sessions=1), Counter({recording.form: 1}))
    tally.counts["readers"] += recording.reader != "main"
    prices = choices.prices(recording)
    arms = {name: Arm(policy, prices.ratios if prices else USUAL) for name, policy in policies.items()}
    onlooker, bill = Onlooker(), Bill(prices)
    size = tokens_of(item for item in recording.items if isinstance(item, ToolCall))
    ways = choices.ways if size >= choices.least else ()
    conversations = Conversations(ways, prices or RATIOS, tuple(policies))
    # Not told that the host took anything out, where it did.
    is_cut = bool(ways) and any(isinstance(item, HistoryCut) for item in recording.items)
    whole = {name: Arm(policy) for name, policy in policies.items()} if is_cut else {}
    for item in recording.items:
        if isinstance(item, RequestSent):
            bill.sent(item)
        elif isinstance(item, HistoryCut):
            onlooker.trim(item)
            bill.trim(item.kept)
            conversations.trim(item)
            for arm in arms.values():
                arm.trim(item)
            for arm in () if item.compacts else whole.values():
                arm.show(item.restored)
        else:
            tally.counts["calls"] += 1
            tally.counts["out"] += len(item.output)
            tally.calls_by_tool[item.tool] += 1
            tally.out_by_tool[item.tool] += len(item.output)
            texts = {name: arm.call(item) for name, arm in arms.items()}
            sent = {name: Sending(text, whole[name].call(item) if whole else text) for name, text in texts.items()}
            is_read = onlooker.call(item)
            bill.call(item, {name: len(item.output) - len(text) for name, text in texts.items()})
            conversations.call(item, sent, is_read=is_read)
    tally.counts.update(onlooker.end())
    tally.counts.update(bill.counts())
    if tally.counts["requests"] and prices:
        tally.models[prices.label] += 1
    elif tally.counts["requests"]:
        tally.unpriced[recording.model or "an unnamed model"] += 1
    tally.ways = conversations.end()
    tally.together = conversations.together()
    for way in [*tally.ways.values(), *(way for pair in tally.together.values() for way in pair.values())]:
        way["sessions"] = 1
        way["money"] = round(bill.money * way["bill"] / max(1, tally.ways["recorded"]["bill"]))
    for arm in whole.values():
        arm.end()
    for name, arm in arms.items():
        tally.policies[name] = arm.end()
        tokens, money = bill.saved(name)
        tally.policies[name].counts.update(saved_input=round(tokens), saved_bill=round(money))
    return Replayed(tally, recording.first_call)
