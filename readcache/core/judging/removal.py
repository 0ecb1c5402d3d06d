"""Find the stored texts that must leave a log: texts of named calls, and texts that today's rules would not store.

Links are not followed: a log does not say where a name led to when the call was made.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property

from readcache.core.judging.protect import concerns_protected, kept_label, may_keep, shows_lines_of, shows_secrets
from readcache.core.model.call import BASH, Call, split_tool
from readcache.core.model.claims import FileLines, Reading, Write
from readcache.core.model.events import NOT_STORED, Amended, Cleared, Condensed, Delivered, Event, Origin, Record, Wrote
from readcache.core.model.paths import matches_any
from readcache.core.model.policy import Policy
from readcache.core.model.secrets import contains_secret, quotable_in, secrets_given, without_secrets
from readcache.core.model.unconfirmed import without_text

# The version of the rules in `protect` and `secrets`. Raise it when they learn a secret: each store is then searched
# once more.
RULES = 1
FORGOTTEN = "(removed by `readcache forget`)"

Change = tuple[Record, Event]  # a stored record, and the event to store instead


class _Removal:
    """The texts of one reader's log that must leave it. `named`: IDs of calls to remove in any case."""

    def __init__(self, events: Sequence[Event], policy: Policy, named: AbstractSet[str]) -> None:
        self._events, self._policy, self._named, self._gone = events, policy, named, set(named)
        self._labels = {event.call_id: event.label for event in events if isinstance(event, (Delivered, Wrote))}
        self._writes: defaultdict[str, list[Write]] = defaultdict(list)
        for event in events:
            if isinstance(event, Wrote):
                self._writes[event.call_id] += [Write(key, 0) for key in (*event.keys, *event.possible_writes)]
        # Values that commands were given. Markers may quote these commands.
        self._given = {value for label in self._labels.values() for value in secrets_given(label)}
        for event in events:  # oldest first, because a marker copies lines of older texts
            if isinstance(event, (Delivered, Amended)) and event.text and self._must_go(event):
                self._gone.add(event.call_id)

    def left(self, event: Event) -> Event:
        """Return the event without everything that must go."""
        if isinstance(event, Cleared) and self._policy.protected:
            return replace(event, note=without_secrets(event.note))
        if isinstance(event, Condensed):
            return self._without_summary(event)
        left = event
        if isinstance(event, (Delivered, Amended)) and event.call_id in self._gone:
            left = self._only_markers(event)
        if isinstance(event, (Delivered, Wrote)) and isinstance(left, (Delivered, Wrote)):
            is_named = event.call_id in self._named
            left = replace(left, label=FORGOTTEN if is_named else kept_label(self._call_of(event), self._policy))
        return left

    def _without_summary(self, event: Condensed) -> Condensed:
        """Return a condensation without its texts if one of them quotes removed text."""
        try:
            data = json.loads(event.data)
        except ValueError:  # of another version
            data = event.data
        texts, policy = list(_strings_in(data)), self._policy
        is_secret = policy.protected and any(self._has_secret(t) or shows_lines_of(policy.protected, t) for t in texts)
        if not is_secret and not any(part in text for text in texts for part in self._removed):
            return event
        known = data.get("id", "") if isinstance(data, dict) else ""
        return replace(event, data=json.dumps({"id": known, "version": NOT_STORED}))

    @cached_property
    def _removed(self) -> set[str]:
        """The parts of texts and commands that leave the log, without the ones that another event keeps."""
        shown = [event for event in self._events if isinstance(event, (Delivered, Amended, Wrote))]
        before, after = (set().union(*map(_quotable_of, events)) for events in (shown, map(self.left, shown)))
        return before - after

    def _must_go(self, event: Delivered | Amended) -> bool:
        call, policy = self._call_of(event), self._policy
        if any(marker.lines and not self._gone.isdisjoint(marker.sources) for marker in event.markers):
            return True  # the marker's record has a copy of removed lines
        if not policy.protected:
            return False
        if any(map(self._has_secret, (event.text, *(marker.lines for marker in event.markers)))):
            return True
        if event.origin is Origin.RESULT:
            return concerns_protected(call, policy) or shows_secrets(call, policy)
        shown = (key for mapped in event.source_map for key in mapped.keys)
        return any(matches_any(key, policy.protected) for key in shown) or not may_keep(event.text, call.label, policy)

    def _has_secret(self, text: str) -> bool:
        return contains_secret(text) or any(value in text for value in self._given)

    def _call_of(self, event: Delivered | Amended | Wrote) -> Call:
        """Return the call as the log has it. Its claims name the files that it showed, omitted or asked for."""
        label, writes = self._labels.get(event.call_id, ""), tuple(self._writes[event.call_id])
        if isinstance(event, Wrote):
            return Call(event.call_id, label, "", "", Reading((), writes))
        keys = {key for mapped in event.source_map for key in mapped.keys}
        keys.update(marker.path for marker in event.markers if marker.path is not None)
        if isinstance(event, Delivered) and event.account is not None:
            keys.update(event.account.asked)
        is_exact = isinstance(event, Delivered) and event.rendering == BASH and split_tool(label)[0] != ""
        reading = Reading((FileLines(tuple(keys)),), writes)
        return Call(event.call_id, label, "", event.text, reading, exact=is_exact, head=event.head, tail=event.tail)

    def _only_markers(self, event: Delivered | Amended) -> Delivered | Amended:
        """Return the event with its markers and no other text. The conversation may still show them, and they are
        retired when their lines leave it."""
        kept = [one for one in event.markers if one.line >= 0 and not self._has_secret(one.wording)]
        markers = tuple(replace(one, line=at, lines="") for at, one in enumerate(kept))
        text = "".join(f"{one.wording}\n" for one in markers)
        return event if text == event.text else replace(without_text(event), text=text, markers=markers)


def _strings_in(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings_in(inner)


def _quotable_of(event: Event) -> set[str]:
    return quotable_in(f"{getattr(event, 'label', '')}\n{getattr(event, 'text', '')}")


def removals(records: Sequence[Record], policy: Policy, named: AbstractSet[str] = frozenset()) -> list[Change]:
    """Return the changes of one reader's log that remove the texts of the calls `named` and, by today's rules, certain
    secrets and lines of protected files. `records`: the reader's own records, oldest first."""
    found = _Removal([record.event for record in records], policy, named)
    changes = [(record, found.left(record.event)) for record in records]
    return [(record, event) for record, event in changes if event != record.event]
