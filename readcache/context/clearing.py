"""Clear old results: if a conversation is too long, a one-line note replaces each of its oldest results.

    messages = clear(messages, session, above=160_000, down_to=60_000)  # before each call of the model
    messages = mend_and_clear(messages, session)  # the same, with the policy's marks if it has any

Clear rarely, and much at a time. After each clearing, the prompt cache is written again from the first cleared result
on. A cleared result is never rewritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

from readcache.context.compaction import count_tokens
from readcache.context.notes import is_note
from readcache.context.pruner import PrunableResult, PruneRules, Work, repair_list, with_knowledge
from readcache.core.messages.blocks import Raw
from readcache.core.messages.editing import with_results
from readcache.core.messages.messages import Kind, Message, normalise, raw_messages
from readcache.core.messages.structure import answered, repair
from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Delivered, Origin
from readcache.core.model.policy import Marks
from readcache.core.model.text import digest

if TYPE_CHECKING:
    from readcache.session import Session

M = TypeVar("M", bound=Mapping[str, Any])  # a message of the harness's list, of any declared type
Shown = tuple[str | None, str]  # a call's ID, and the digest of its result's text in a list

KEPT_TURNS = 2  # the newest turns, as in a compaction
_CLEARED: WeakKeyDictionary[Session, set[Shown]] = WeakKeyDictionary()  # texts that this process replaced


def mend_and_clear(messages: list[M], session: Session) -> list[M]:
    """Repair the markers (`Session.mend`), and clear old results if the policy has marks (`Policy.clear`).

    Return the messages. The given list may be the one that the last call returned, or the host's own list, with every
    cleared result as it was.
    """
    marks = session.policy.clear
    if marks is None:
        return session.mend(messages)
    return clear(messages, session, above=marks.above, down_to=marks.down_to)


def clear(messages: list[M], session: Session, *, above: int, down_to: int) -> list[M]:
    """Clear the oldest results if the messages exceed `above` tokens, until at most `down_to` tokens remain.

    Stop earlier if nothing more can be cleared. Return a list in which every marker is true: the same list object if
    nothing changed. A one-line note replaces each cleared result and describes it. If the list contains a cleared
    result again, with the same call ID, the same note replaces it again.

    Never cleared:

    - the last two turns, and the results that their markers name
    - everything that is not a result
    - results that are unknown to the session, or too short to be worth a note
    - protected files and instruction files (`Policy.always`)

    A result that any other marker names is as old as that marker. If it is cleared, the marker says so.

    The session is told, so the next read of these lines is answered in full. Nothing is cleared if the session only
    advises or is off, or if the list is not well formed (see `repair`). Raise UsageError unless 0 <= down_to <= above.
    """
    Marks(above, down_to)
    if not session.may_shorten:
        return session.mend(messages)
    given, messages = messages, session.mend(_cleared_before(messages, session))
    normal: Sequence[Message] = normalise(messages)
    if count_tokens(normal, session.policy) <= above or repair(messages) is not messages:
        return messages
    while (excess := count_tokens(normal, session.policy) - down_to) > 0:
        shorter = _clear_oldest(normal, session, excess)
        if shorter is normal:
            break
        normal = repair_list(session, shorter)  # repaired markers may have become longer
        messages = cast("list[M]", raw_messages(normal))
    _remember(session, normalise(given), normal)
    return messages


def _remember(session: Session, before: Sequence[Message], after: Sequence[Message]) -> None:
    """Remember the texts of the host that notes have now replaced. The log lacks the words that a host puts around a
    result."""
    lists = ((part for message in one for part in message.parts if part.kind is Kind.RESULT) for one in (before, after))
    stood, texts = ({part.call_id: part.text for part in results} for results in lists)
    noted = {name for name, text in texts.items() if name in stood and is_note(text, session.tag)}
    _CLEARED.setdefault(session, set()).update((name, digest(stood[name])) for name in noted)


def _cleared_before(messages: list[M], session: Session) -> list[M]:
    """Return the messages with notes for the results that were cleared before.

    A host that keeps its results sends them again. Replace a result only if its text is exactly the cleared one,
    because a result that was never shown may have the ID of a cleared one.
    """
    events = [delivery.event for delivery in session.view.deliveries if delivery.event.origin is Origin.RESULT]
    cleared = {event.call_id: event.text for event in events if is_note(event.text, session.tag)}
    found = [(at, part) for _, _, at, part in answered(normalise(messages)) if part.call_id in cleared]
    times = Counter(part.call_id for _, part in found)
    back = [(at, part) for at, part in found if times[part.call_id] == 1 and part.text != cleared[part.call_id or ""]]
    if not back:
        return messages
    texts = {(part.call_id, digest(part.text)) for _, part in back}
    known = _CLEARED.setdefault(session, set())
    if not texts <= known:  # another process cleared it
        known |= texts & _shown(session, {part.call_id for _, part in back})
    again = {
        (at, part.call_id, part.text): cleared[part.call_id or ""]
        for at, part in back
        if (part.call_id, digest(part.text)) in known
    }
    return cast("list[M]", with_results(cast("list[Raw]", messages), again))


def _shown(session: Session, calls: Container[str | None]) -> set[Shown]:
    """Return the results that the log has for these calls. Return an empty set if the store cannot be read."""
    try:
        events = [record.event for record in session.events() if record.agent_id == session.agent_id]
    except StoreError:
        return set()
    texts = (event for event in events if isinstance(event, (Delivered, Amended)) and event.call_id in calls)
    results = (event for event in texts if event.origin is Origin.RESULT)
    return {(event.call_id, digest(event.head + event.text + event.tail)) for event in results}


def _clear_oldest(messages: Sequence[Message], session: Session, excess: int) -> Sequence[Message]:
    """Return the list with its oldest results cleared, until `excess` tokens are saved. Return the same list object if
    no result may be cleared."""
    rules = PruneRules(protect_last_turns=KEPT_TURNS, protected=session.policy.always)
    work = Work(messages, (), with_knowledge(rules, messages, session))
    count = session.policy.tokens
    for one in _oldest_first(work):
        # If the session does not know a result, it cannot recognise it later, when the host sends the text again.
        is_known = any(known.event.text and known.event.origin is Origin.RESULT for known in one.call.known)
        if excess > 0 and is_known and one.may_go(though_pinned=True):
            before = count(one.text)
            one.note("; cleared to make room")
            excess -= before - count(one.text)
    return work.finish()


def _oldest_first(work: Work) -> list[PrunableResult]:
    """Return the results, oldest first. A result that a marker names is as old as the marker, because the agent
    requested it then."""
    used: dict[str, int] = {}
    for index, one in enumerate(work.results):
        markers = (marker for delivery in one.call.known for marker in delivery.event.markers)
        used |= dict.fromkeys((*one.names, *(source for marker in markers for source in marker.sources)), index)
    ages = [max([index, *map(used.__getitem__, one.names)]) for index, one in enumerate(work.results)]
    return [work.results[index] for index in sorted(range(len(ages)), key=ages.__getitem__)]
