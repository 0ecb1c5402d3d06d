"""Replay a recording: under several policies, each in its own session, or as the session with all its readers.

Files are replayed on all cores. A process takes a file, or a line of a file whose lines are conversations.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from glob import escape, glob

from readcache import Policy, Session
from readcache.core.model.tokens import chars_per_token
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.bills import RATIOS, USUAL, Bill, ModelPrices, PriceTable, built_in_prices, find_prices
from readcache.report.replay.conversations import LONG, Conversations, Sending, largest_size
from readcache.report.replay.policy_run import Baseline, PolicyRun, answer_recorded, show_restored
from readcache.report.replay.replay_totals import Outcomes, ReplayTotals, Sum
from readcache.report.replay.turns import ALL, TurnKinds
from readcache.transcripts.files import Found, Unit, find_files, read_content, units_of
from readcache.transcripts.formats import FORMS, Form, recordings_in
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
    policy = replace(policy, model=policy.model or readers[0].model)  # so that `replay` judges alike
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
        return find_prices(self.model or recording.model, self.table)

    def chars_per_token(self, recording: Recording) -> float:
        """Return how many characters make a token of the recording's model."""
        found = find_prices(self.model or recording.model, self.table)
        return (found and found.chars_per_token) or chars_per_token(self.model or recording.model)


def replay_recording(
    recording: Recording, policies: Mapping[str, Policy], choices: Choices | None = None
) -> ReplayTotals:
    """Return the totals of one conversation under each policy."""
    choices = Choices() if choices is None else choices
    totals = ReplayTotals(forms=Counter({recording.form: 1}), first_call=recording.first_call)
    totals.name, totals.directory, totals.since = recording.name, recording.directory, recording.since
    totals.counts.update(sessions=1, readers=recording.reader != "main")
    prices, chars, host = choices.prices(recording), choices.chars_per_token(recording), recording.agent
    simulated = prices and simulation_prices(prices, recording)
    policies = {name: replace(policy, model=choices.model or recording.model) for name, policy in policies.items()}
    runs = {name: PolicyRun(policy, simulated.ratios if simulated else USUAL) for name, policy in policies.items()}
    baseline, bill, turns = Baseline(), Bill(prices, chars), TurnKinds(prices)
    size = largest_size(recording.items, chars, host)
    strategies = choices.strategies if size >= choices.least else ()
    conversations = Conversations(strategies, simulated or RATIOS, tuple(policies), chars_per_token=chars, host=host)
    # If the host removed anything, these runs are not told about it. The simulations remove texts by their own rules.
    has_removals = bool(strategies) and any(isinstance(item, HistoryRemoval) for item in recording.items)
    uncut_runs = {name: PolicyRun(policy) for name, policy in policies.items()} if has_removals else {}
    for item in recording.items:
        if isinstance(item, RequestSent):
            bill.sent(item)
            turns.sent(item)
            conversations.sent(item)
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
            shown = baseline.call(item)
            turns.call(item, shown)
            bill.call(item, {name: len(item.output) - len(text) for name, text in texts.items()})
            conversations.call(item, sent, is_read=shown.lines > 0)
    turns.end()
    totals.turns[recording.form].update(turns.turns)
    totals.turn_bills[recording.form].update(turns.bills + Counter({ALL: round(bill.money)}))
    totals.counts.update(baseline.end())
    totals.counts.update(bill.counts())
    totals.counts.update(long=size > LONG, long_bill=round(bill.money) if size > LONG else 0)
    if totals.counts["requests"] and prices:
        totals.models[prices.label] += 1
    elif totals.counts["requests"]:
        totals.unpriced[recording.model or "an unnamed model"] += 1
    totals.strategies = conversations.end()
    for strategy in totals.strategies.values():
        strategy["sessions"] = 1
        strategy["money"] = round(bill.money * strategy["bill"] / max(1, totals.strategies["recorded", ""]["bill"]))
    for run in uncut_runs.values():
        run.end()
    for name, run in runs.items():
        totals.policies[name] = run.end()
        tokens, money = bill.saved(name)
        totals.policies[name].counts.update(saved_input=round(tokens), saved_bill=round(money))
    return totals


def simulation_prices(prices: ModelPrices, recording: Recording) -> ModelPrices:
    """Return the prices of simulated requests. If most tokens were written to a cache that lasts an hour, all of them
    count as written there."""
    sent = [item for item in recording.items if isinstance(item, RequestSent)]
    hour = sum(one.cache_write_hour for one in sent) > sum(one.cache_write for one in sent)
    return prices.for_an_hour() if hour else prices


SMALL = 200_000  # bytes on disk: replaying fewer takes less time than starting processes
AHEAD = 4  # units that wait for each process: more would use memory, fewer would let it idle


def replay_files(
    files: Sequence[Found],
    policies: Sequence[str],
    choices: Choices,
    since: float | None,
    progress: Callable[[int], object],
) -> Sum:
    """Return the totals. `since` (seconds since the epoch): conversations that began earlier do not count. `progress`
    is called with the number of bytes on disk that were read."""
    found = Sum()
    work = partial(replay_unit, policies=tuple(policies), choices=choices, since=since, forms=tuple(FORMS))
    units = (unit for file in files for unit in units_of(file))
    processes = 1 if sum(file.size for file in files) < SMALL else _cores()
    ended: dict[int, tuple[bool, Outcomes]] = {}
    with contextlib.closing(_each(work, units, processes)) as done:
        for number, unit, outcomes in done:
            ended[number] = unit.file.named, outcomes
            progress(unit.size)
    for _, (named, outcomes) in sorted(ended.items()):  # so that the figures do not depend on which process ends first
        found.add(outcomes)
        if outcomes.not_understood:
            (found.not_understood if named else found.strangers).append(outcomes.not_understood)
    return found


def replay_unit(
    unit: Unit, policies: Sequence[str], choices: Choices, since: float | None, forms: Sequence[Form]
) -> Outcomes:
    """Replay one file, or one line of a file. Return the outcomes."""
    outcomes = Outcomes()
    try:
        content = read_content(unit)
        outcomes.damage = content.damage
        presets = {name: Policy.named(name) for name in policies}
        for recording in recordings_in(content, forms):
            began = recording.since if recording.since is not None else os.path.getmtime(unit.file.path)
            if since is not None and began < since:
                outcomes.too_old += 1
            else:
                outcomes.replayed.append(replay_recording(replace(recording, since=began), presets, choices))
    except NotUnderstood as error:
        outcomes.not_understood = str(error)
    return outcomes


Done = tuple[int, Unit, Outcomes]  # a unit with its number, from 0


def _each(work: Callable[[Unit], Outcomes], units: Iterable[Unit], processes: int) -> Generator[Done, None, None]:
    """Yield each unit and its outcomes, in the order in which they finish. No process outlives the generator."""
    if processes == 1:
        yield from ((number, unit, work(unit)) for number, unit in enumerate(units))
        return
    context = multiprocessing.get_context("spawn")  # the only method that works on every system and in every thread
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent)
    running: dict[Future[Outcomes], tuple[int, Unit]] = {}
    try:
        for number, unit in enumerate(units):
            running[pool.submit(work, unit)] = number, unit
            if len(running) >= AHEAD * processes:
                yield from _done(running)
        while running:
            yield from _done(running)
    except BaseException:  # the user ends this process: a worker would first finish its unit, which takes seconds
        for worker in multiprocessing.active_children():
            worker.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Make this worker end when its parent ends, even if the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    parent = multiprocessing.parent_process()
    assert parent is not None

    # Without this, the worker waits for work indefinitely, and a reader of the parent's output waits for the worker.
    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _done(running: dict[Future[Outcomes], tuple[int, Unit]]) -> Iterator[Done]:
    ready, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in ready:
        yield *running.pop(future), future.result()


def _cores() -> int:
    """Return the number of cores that this process may use."""
    with contextlib.suppress(AttributeError):  # some systems do not have it
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
