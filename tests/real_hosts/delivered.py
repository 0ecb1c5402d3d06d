"""The law of what is counted: never more markers, and never more saved characters, than a model received.

    received = {"call_1": "…", "call_2": "[UNCHANGED …]"}     # by call id: the result as a request first had it
    assert broken_law(store.records("session"), received) == []

It reads the log and what a scripted model was sent, and knows nothing of how a host confirms a reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from readcache.core.model.events import Delivered, Record
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.unconfirmed import as_counted, shown_chars


class Figures(NamedTuple):
    """What one session's log counts, or what a model received. `chars`: saved."""

    markers: int
    chars: int


def broken_law(
    records: Iterable[Record], received: Mapping[str, str], *, last: Iterable[str] = (), agent: str = "main"
) -> list[str]:
    """Return what breaks the law, a sentence each; [] if it holds.

    `received`: by call id, the text of the result in the first request that had it. A call that is missing there was
    never sent. `last`: the calls after which the host told nothing more; only they may be unconfirmed, although the
    model received their markers.
    """
    faults, last = list[str](), set(last)
    for event in answers(records, agent):
        account = event.account
        assert account is not None
        text = received.get(event.call_id, "")
        if account.outcome is Outcome.FULL:
            if account.reason is Reason.UNCONFIRMED and event.call_id in received and event.call_id not in last:
                faults.append(f"{event.call_id} is unconfirmed, and the host told more after it")
            continue
        missing = [marker.wording for marker in event.markers if marker.wording not in text]
        if missing:
            faults.append(f"{event.call_id} is counted with a marker that no model received: {missing[0]}")
        saved = account.output_chars - shown_chars(event)
        if saved > max(0, account.output_chars - _chars_of_reply(event, text)):
            faults.append(f"{event.call_id} counts {saved} characters as saved, and the model received {len(text)}")
    return faults


def figures(records: Iterable[Record], agent: str = "main") -> Figures:
    """Return what the log counts."""
    shortened = [e for e in answers(records, agent) if e.account is not None and e.account.outcome is not Outcome.FULL]
    chars = sum(event.account.output_chars - shown_chars(event) for event in shortened if event.account is not None)
    return Figures(sum(len(event.markers) for event in shortened), chars)


def answers(records: Iterable[Record], agent: str) -> list[Delivered]:
    """Return one event for each call that was answered, as it counts."""
    events = (record.event for record in as_counted(records) if record.agent_id == agent)
    return [event for event in events if isinstance(event, Delivered) and event.account is not None]


def _chars_of_reply(event: Delivered, text: str) -> int:
    """Return the characters of the reply in a text, without what the host put around it or its numbers."""
    return len(event.text) if all(line in text for line in event.text.split("\n")) else len(text)
