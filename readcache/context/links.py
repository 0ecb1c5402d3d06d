"""Link a session's deliveries to the results of a message list, with or without call IDs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readcache.core.messages.editing import TextKey
from readcache.core.messages.messages import Kind, Message, Part, raw_messages
from readcache.core.model.events import Origin
from readcache.core.model.key_view import Delivery
from readcache.core.model.view import View
from readcache.core.sync.locate import CharSpan
from readcache.core.sync.sync import Reconciler


@dataclass(frozen=True, slots=True)
class PlainResult:
    """A reply inside the plain text of the message at index `at`: the characters `char_span` of `text`."""

    at: int
    text: str
    char_span: CharSpan
    delivery: Delivery


class Links:
    """The links between a view and a message list."""

    def __init__(self, view: View | None = None, messages: Sequence[Message] = (), tag: str = "") -> None:
        self.plain: list[PlainResult] = []
        self._view = view or View()
        self._at: defaultdict[TextKey, list[Delivery]] = defaultdict(list)
        results = {
            part.call_id: (at, part.call_id, part.text)
            for at, message in enumerate(messages)
            for part in message.parts
            if part.kind is Kind.RESULT and part.call_id is not None
        }
        deliveries = [d for d in self._view.deliveries if d.event.origin is Origin.RESULT]
        for delivery in deliveries:
            if delivery.event.call_id in results:
                self._at[results[delivery.event.call_id]].append(delivery)
        if not all(delivery.event.call_id in results for delivery in deliveries):
            self._find_others(results, messages, tag)

    def _find_others(self, results: Mapping[str, TextKey], messages: Sequence[Message], tag: str) -> None:
        """Link the deliveries whose call IDs do not occur in the list."""
        reconciler = Reconciler()
        reconciler.reconcile(self._view, raw_messages(messages), tag=tag, gives_back=False)
        for delivery, location in reconciler.located():
            if delivery.event.call_id in results or location.text is None:
                continue
            text, at = location.text, reconciler.message_of(location.text)
            if text.kind is Kind.RESULT:
                self._at[at, text.call_id, text.raw].append(delivery)
            elif text.content == text.raw:
                self.plain.append(PlainResult(at, text.raw, location.char_span, delivery))
        self.plain.sort(key=lambda plain: (plain.at, plain.char_span))

    def deliveries_in(self, at: int, result: Part) -> list[Delivery]:
        """Return the replies in this result of the message at `at`, and the agent's own texts in the same calls."""
        key = at, result.call_id, result.text
        return [each for delivery in self._at.get(key, ()) for each in self.of_call(delivery)]

    def of_call(self, delivery: Delivery) -> list[Delivery]:
        """Return the visible texts of the delivery's call."""
        return self._view.of_call(delivery.event.call_id)

    def named_from(self, border: int) -> frozenset[str]:
        """Return the calls that markers in message `border` or later messages name."""
        late = [d for (at, _, _), found in self._at.items() if at >= border for d in found]
        late += [plain.delivery for plain in self.plain if plain.at >= border]
        return frozenset(source for d in late for marker in d.event.markers for source in marker.sources)
