"""Replays one recording under several policies, each in a session of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from readcache import Policy
from readcache.replay.arm import Arm
from readcache.replay.onlooker import Onlooker
from readcache.replay.request_log import RequestLog
from readcache.replay.tally import Replayed, Tally
from readcache.transcripts.records import HistoryCut, Recording, RequestSent


def replay_recording(recording: Recording, policies: Mapping[str, Policy]) -> Replayed:
    """The tally of one conversation."""
    tally = Tally(Counter(sessions=1), Counter({recording.form: 1}))
    tally.counts["readers"] += recording.reader != "main"
    arms = {name: Arm(policy) for name, policy in policies.items()}
    onlooker, requests = Onlooker(recording.name), RequestLog()
    for item in recording.items:
        if isinstance(item, RequestSent):
            requests.sent(item)
        elif isinstance(item, HistoryCut):
            onlooker.cut(item)
            requests.cut(item.kept)
            for arm in arms.values():
                arm.cut(item)
        else:
            tally.counts["calls"] += 1
            tally.counts["out"] += len(item.output)
            tally.calls_by_tool[item.tool] += 1
            tally.out_by_tool[item.tool] += len(item.output)
            saved = {name: arm.call(item) for name, arm in arms.items()}
            is_read = onlooker.call(item, saved)
            requests.call(item, saved)
            for name, arm in arms.items():
                arm.credit(item, saved[name], is_read=is_read)
    bill = requests.bill()
    tally.counts.update(onlooker.end())
    tally.counts.update(bill.counts())
    tally.counts.update(billed_sessions=bill.known, unpriced_sessions=bill.known and not bill.holds)
    tally.dearest = onlooker.dearest
    for name, arm in arms.items():
        tally.policies[name] = arm.end()
        if bill.known:
            tokens, cost = bill.saved(requests.stays(name))
            tally.policies[name].counts.update(saved_input=round(tokens), saved_bill=round(cost) if bill.holds else 0)
    return Replayed(tally, recording.first_call)
