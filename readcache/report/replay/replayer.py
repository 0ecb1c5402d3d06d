"""Replay a recording: under several policies, each in its own session, or as the session with all its readers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape, glob

from readcache import Policy, Session
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.answers import answer_recorded, show_restored
from readcache.report.replay.bills import RATIOS, USUAL, Bill, ModelPrices, PriceTable, built_in_prices, find_prices
from readcache.report.replay.conversations import Conversations, Sending, tokens_of
from readcache.report.replay.policy_run import Baseline, PolicyRun
from readcache.report.replay.replay_totals import Replayed, ReplayTotals
from readcache.transcripts.files import find_files, read_content, units_of
from readcache.transcripts.formats import recordings_in
from readcache.transcripts.records import HistoryRemoval, NotUnderstood, Recording, RequestSent


def conversations_in(path: str) -> list[list[Recording]]:
    """Return the conversations of a file or a directory, each with all its readers, in order.

    Raise NotUnderstood if the file is not a transcript. Raise UsageError if it does not exist."""
    found: dict[tuple[str, str], list[Recording]] = {}
    # Claude Code stores the transcripts of sub-agents next to the conversation's own file.
    beside = sorted(glob(f"{escape(os.path.splitext(path)[0])}/subagents/*.jsonl"))
    for file in find_files([path, *beside]):
        try:
            for recording in (one for unit in units_of(file) for one in recordings_in(read_content(unit))):
                found.setdefault((recording.form, recording.name), []).append(recording)
        except NotUnderstood:
            if file.named:
                raise
    return list(found.values())


def replayed_session(readers: Sequence[Recording], policy: Policy) -> Session:
    """Return a session in memory that has received the whole recording. Its `events` has the events of every reader,
    without times, because not every transcript says when a result came."""
    first = Session("/", session_id=readers[0].name, policy=policy, local=False, clock=lambda: 0.0)
    agent = next((recording for recording in readers if recording.reader == first.agent_id), None)
    for recording in readers:
        session = first if recording is agent else first.fork(recording.reader)
        for item in recording.items:
            if isinstance(item, ToolCall):
                answer_recorded(session, item)
            elif isinstance(item, HistoryRemoval):
                session.compacted(keep=item.kept)
                show_restored(session, item.restored)
    return first


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a replay, except its policies. `strategies`: they shorten conversations of `least` tokens or more.
    `model`: the model whose prices count; "" for the model that a transcript names."""

    strategies: tuple[str, ...] = ()
    least: int = 0
    table: PriceTable = field(default_factory=built_in_prices)
    model: str = ""

    def prices(self, recording: Recording) -> ModelPrices | None:
        """Return the prices of the recording's model; None if they are unknown."""
        # If most tokens were written to a cache that lasts an hour, all of them count as written there.
        found = find_prices(self.model or recording.model, self.table)
        sent = [item for item in recording.items if isinstance(item, RequestSent)]
        hour = sum(one.cache_write_hour for one in sent) > sum(one.cache_write for one in sent)
        return found.for_an_hour() if found is not None and hour else found


def replay_recording(recording: Recording, policies: Mapping[str, Policy], choices: Choices | None = None) -> Replayed:
    """Return the totals of one conversation under each policy."""
    choices = Choices() if choices is None else choices
    totals = ReplayTotals(Counter(sessions=1), Counter({recording.form: 1}))
    totals.counts["readers"] += recording.reader != "main"
    prices = choices.prices(recording)
    runs = {name: PolicyRun(policy, prices.ratios if prices else USUAL) for name, policy in policies.items()}
    baseline, bill = Baseline(), Bill(prices)
    size = tokens_of(item for item in recording.items if isinstance(item, ToolCall))
    strategies = choices.strategies if size >= choices.least else ()
    conversations = Conversations(strategies, prices or RATIOS, tuple(policies))
    # If the host removed anything, these runs are not told about it. The simulations remove texts by their own rules.
    has_removals = bool(strategies) and any(isinstance(item, HistoryRemoval) for item in recording.items)
    uncut_runs = {name: PolicyRun(policy) for name, policy in policies.items()} if has_removals else {}
    for item in recording.items:
        if isinstance(item, RequestSent):
            bill.sent(item)
        elif isinstance(item, HistoryRemoval):
            baseline.trim(item)
            bill.trim(item.kept)
            conversations.trim(item)
            for run in runs.values():
                run.trim(item)
            for run in () if item.compacts else uncut_runs.values():
                run.show(item.restored)
        else:
            totals.counts["calls"] += 1
            totals.counts["out"] += len(item.output)
            totals.calls_by_tool[item.tool] += 1
            totals.out_by_tool[item.tool] += len(item.output)
            texts = {name: run.call(item) for name, run in runs.items()}
            sent = {
                name: Sending(text, uncut_runs[name].call(item) if uncut_runs else text) for name, text in texts.items()
            }
            is_read = baseline.call(item)
            bill.call(item, {name: len(item.output) - len(text) for name, text in texts.items()})
            conversations.call(item, sent, is_read=is_read)
    totals.counts.update(baseline.end())
    totals.counts.update(bill.counts())
    if totals.counts["requests"] and prices:
        totals.models[prices.label] += 1
    elif totals.counts["requests"]:
        totals.unpriced[recording.model or "an unnamed model"] += 1
    totals.strategies = conversations.end()
    totals.together = conversations.together()
    for strategy in [
        *totals.strategies.values(),
        *(strategy for pair in totals.together.values() for strategy in pair.values()),
    ]:
        strategy["sessions"] = 1
        strategy["money"] = round(bill.money * strategy["bill"] / max(1, totals.strategies["recorded"]["bill"]))
    for run in uncut_runs.values():
        run.end()
    for name, run in runs.items():
        totals.policies[name] = run.end()
        tokens, money = bill.saved(name)
        totals.policies[name].counts.update(saved_input=round(tokens), saved_bill=round(money))
    return Replayed(totals, recording.first_call)
