"""The view: everything that this reader can still see. A fold over the session's log, one event at a time.

    view = View()
    for event in events_for(store.records(session_id), agent_id):
        view.apply(event)

A *visible span* is a span of file lines in a delivery that is still visible. For each key (see `claims`) the view keeps
the spans of the current version (`numbered`, `loose`), and the spans from before a write or an observed change
(`stale`).
"""

from __future__ import annotations

from collections.abc import Iterable

from readcache.core.model.calls import CallIds, Calls
from readcache.core.model.events import Amended, Compacted, Delivered, Event, Forgot, Rewound, Wrote
from readcache.core.model.key_view import Delivery, Invalidation, KeyView, LineCache, VisibleSpan
from readcache.core.model.spans import subtract
from readcache.core.model.unconfirmed import with_amended, without_text
from readcache.core.model.view_indexes import IdenticalOutputs, KeyNames, Steps


class View:
    """Everything that one reader can see now."""

    def __init__(self) -> None:
        self.calls = Calls()  # bookkeeping: numbers of calls, counters, retries
        self.carried = 0  # characters of all visible texts
        self.waiting: dict[str, Delivered] = {}  # call ID -> its unconfirmed reply (see `unconfirmed`)
        self.lost_at: dict[str, int] = {}  # call ID -> number of the newest call when its text last lost lines
        self.ids = CallIds()
        self._deliveries: dict[str, list[Delivery]] = {}
        self._call_of: dict[str, int] = {}
        self._keys: dict[str, KeyView] = {}
        self._names = KeyNames()
        self._identical_outputs = IdenticalOutputs()
        self._lines = LineCache()
        self._order = 0  # events folded so far
        self._steps = Steps()

    def covers(self, path: str, start: int, end: int) -> bool:
        """Return True if the lines start to end of the file's current version, as last seen, are all visible."""
        spans = tuple((s, e) for s, e, _ in self.key(path).numbered.overlaps(start, end))
        return not subtract(((start, end),), spans)

    @property
    def deliveries(self) -> list[Delivery]:
        """The visible deliveries, oldest first."""
        return sorted((d for ds in self._deliveries.values() for d in ds), key=lambda d: d.call)

    def key(self, key: str) -> KeyView:
        """Return the view of a key; an empty `KeyView` if the key was never seen."""
        return self._keys.get(key) or KeyView()

    def was_written_since(self, key: str, delivery: Delivery) -> bool:
        """Return True if the file was written or changed after the delivery, even if no span of the file is known any
        more."""
        return self.key(key).is_stale(delivery) or any(self._steps.since(delivery.order, key))

    def known_keys(self) -> list[str]:
        """Return the keys that were seen, sorted."""
        return self._names.beginning_with("")

    def namesakes(self, key: str) -> list[str]:
        """Return the newest few keys that end in the same file name, including `key`."""
        return self._names.namesakes(key)

    def identical(self, digest: str) -> Delivery | None:
        """Return the newest visible result whose text has this digest; None if there is none."""
        return self._identical_outputs.find(digest)

    def is_visible(self, call_id: str) -> bool:
        """Return True while any text of this call is visible."""
        return call_id in self._deliveries

    def contains(self, delivery: Delivery) -> bool:
        """Return True while this delivery is visible. An equal delivery does not count."""
        return any(d is delivery for d in self.of_call(delivery.event.call_id))

    def of_call(self, call_id: str) -> list[Delivery]:
        """Return the visible texts of one call: its result, its own command."""
        return self._deliveries.get(call_id, [])

    def answer_of(self, delivery: Delivery) -> Delivered:
        """Return the delivery's event. For an unconfirmed reply, return the event with the text, which the view hides
        otherwise."""
        return self.waiting[delivery.event.call_id] if delivery.event.unconfirmed else delivery.event

    def bodies(self, visible: VisibleSpan) -> list[str]:
        """Return the lines of the span without the numbers before them."""
        return self._lines.bodies(visible)

    def apply(self, event: Event) -> None:
        """Fold one more event of the log. The cost depends only on what the event changes, not on the length of the
        log."""
        self._order += 1
        self.ids.apply(event)
        if isinstance(event, Delivered):
            self._deliver(event)
        elif isinstance(event, Wrote):
            self._write(event)
        elif isinstance(event, Amended):
            self._amend(event)
        elif isinstance(event, Compacted):
            kept = event.kept - self.ids.reused
            self.calls.keep(kept.__contains__)
            self._forget([c for c in self._deliveries if c not in kept], is_lost=True)
        elif isinstance(event, Forgot):
            self.calls.keep(lambda call_id: call_id not in event.call_ids)
            self._forget([c for c in event.call_ids if c in self._deliveries], is_lost=True)
        elif isinstance(event, Rewound):
            after = -1 if event.call_id in self.ids.reused else self._call_of.get(event.call_id, -1)
            self.calls.keep(event.call_id.__eq__)
            self.calls.rewind(after)
            gone = [c for c in self._deliveries if self._call_of[c] > after]
            self.ids.doubted.update(gone if after < 0 else ())  # the host may know the call to which it went back
            self._forget(gone)
        else:
            self.calls.note(event)

    def _deliver(self, event: Delivered) -> None:
        earlier = self.of_call(event.call_id)
        is_shared, again = self.ids.name(event, earlier, self.calls)
        if is_shared or any(d.event.origin is event.origin for d in earlier):
            self.calls.take_back(again, event.when.call)
            self._forget([event.call_id])  # an ID that was used twice names only the newer text
            self.lost_at[event.call_id] = self.calls.number
        if event.unconfirmed:
            self.waiting[event.call_id], event = event, without_text(event)
        self.calls.deliver(event)
        self._call_of[event.call_id] = event.when.call
        self.carried += len(event.text)
        delivery = Delivery(event, self._order)
        self._deliveries.setdefault(event.call_id, []).append(delivery)
        for key in event.changed:
            self._invalidate((key,), self._names.concerned_by(key), Invalidation(written=False))
        for mapped in event.source_map:
            for key in mapped.keys:
                self._key(key).add(VisibleSpan(delivery, mapped))
        self._identical_outputs.add(delivery)

    def _key(self, key: str) -> KeyView:
        if key not in self._keys:
            self._keys[key] = KeyView()
            self._names.add(key)
        return self._keys[key]

    def _write(self, event: Wrote) -> None:
        written = (*event.keys, *event.possible_writes)
        concerned = {key for one in written for key in self._names.concerned_by(one)}
        step = self.calls.write(event, is_news=bool(event.keys or concerned))
        if event.call_id:
            self.ids.name(event, self.of_call(event.call_id), self.calls)
            self._call_of[event.call_id] = event.call
        self._invalidate(written, concerned, step)

    def _invalidate(self, written: tuple[str, ...], concerned: Iterable[str], step: Invalidation) -> None:
        """Make the spans of all keys in `concerned` stale, because of a write to `written`."""
        self._steps.add(written, step, self._order)
        for key in concerned:
            self._keys[key].invalidate(step, self._order)

    def _amend(self, event: Amended) -> None:
        texts = [text for text in self.of_call(event.call_id) if text.event.origin is event.origin]
        for old in (text for text in texts if text.event.unconfirmed or not event.confirms):
            before = self.waiting.pop(event.call_id) if old.event.unconfirmed else old.event
            if event.lost and not before.unconfirmed:
                self.lost_at[event.call_id] = self.calls.number
            now = with_amended(before, event)
            self.calls.amend(before, now, lost=event.lost)
            self._replace(old, Delivery(now, old.order))

    def _replace(self, old: Delivery, new: Delivery) -> None:
        texts = self._deliveries[old.event.call_id]
        texts[texts.index(old)] = new
        self._identical_outputs.drop(old)
        self.carried += len(new.event.text) - len(old.event.text)
        known = {key for mapped in old.event.source_map for key in mapped.keys}
        for key in known:
            left = [VisibleSpan(new, mapped) for mapped in new.event.source_map if key in mapped.keys]
            self._keys[key] = self._keys[key].replaced(old, left)
        late = [(key, mapped) for mapped in new.event.source_map for key in mapped.keys if key not in known]
        for key, mapped in late:  # spans of a text that the view did not have until now
            self._add_late(key, VisibleSpan(new, mapped))
        self._drop_empty(known)
        self._identical_outputs.add(new)

    def _add_late(self, key: str, visible: VisibleSpan) -> None:
        if key not in self._keys:
            for step, order in self._steps.since(visible.delivery.order, key):
                self._key(key).invalidate(step, order)
        self._key(key).add_late(visible)

    def _forget(self, call_ids: Iterable[str], *, is_lost: bool = False) -> None:
        gone = {delivery for call_id in call_ids for delivery in self._deliveries.pop(call_id)}
        if is_lost:
            self.calls.lose([delivery.event for delivery in gone])
        for delivery in gone:
            self._call_of.pop(delivery.event.call_id, None)
            self.waiting.pop(delivery.event.call_id, None)
            self._identical_outputs.drop(delivery)
            self.carried -= len(delivery.event.text)
        keys = {key for delivery in gone for mapped in delivery.event.source_map for key in mapped.keys}
        for key in keys:
            self._keys[key] = self._keys[key].changed(lambda known: [r for r in known if r.delivery not in gone])
        self._drop_empty(keys)
        self._lines.clear()

    def _drop_empty(self, keys: Iterable[str]) -> None:
        """Delete the keys without spans. Nothing is known of such a key, not even the time when its file was
        written."""
        empty = [key for key in keys if not any(True for _ in self._keys[key].visible_spans())]
        for key in empty:
            del self._keys[key]
        self._names.remove(empty)
