"""Clearing: when a conversation has grown too long, its oldest results give way to a note of one line each.

    messages = clear(messages, session, above=160_000, down_to=60_000)  # before each call of the model
    messages = mend_and_clear(messages, session)  # the same by the policy's marks, if it has any

Rarely and much at once: each clearing has the prompt cache written again from the first cleared result on. What is
cleared once is never rewritten.
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

M = TypeVar("M", bound=Mapping[str, Any])  # a message of the harness's list, whatever it is declared as
Shown = tuple[str | None, str]  # a call, and the digest of its result's text in a list

KEPT_TURNS = 2  # the newest, as in a compaction
_CLEARED: WeakKeyDictionary[Session, set[Shown]] = WeakKeyDictionary()  # what stood where this process put notes


def mend_and_clear(messages: list[M], session: Session) -> list[M]:
    """`Session.mend`, and `clear` where the policy has marks for it (`Policy.clear`). The messages may be those of the
    last call, or again those that the host keeps, with every result as it was."""
    marks = session.policy.clear
    if marks is None:
        return session.mend(messages)
    return clear(messages, session, above=marks.above, down_to=marks.down_to)


def clear(messages: list[M], session: Session, *, above: int, down_to: int) -> list[M]:
    """The messages with results cleared, if they have more than `above` tokens: oldest first, until they have no more
    than `down_to`, or nothing is left to clear. The very same list when nothing is cleared, and every marker is true.

    These stay: the last two turns and what a marker in them points at, all that is not a result, results too short to
    be worth a note or that the session does not know, protected files and files of instructions (`Policy.always`). What
    any other marker points at is as old as that marker; when it goes, the marker says so. Each cleared result leaves a
    line that says what stood there. Where the list has the result again, by its call, that line takes its place.

    The session is told: the next read of these lines is answered in full. With one that only advises, or is off,
    nothing is cleared, nor in a list that is not well formed (see `repair`). Raises UsageError for marks that have no
    meaning.
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
        normal = repair_list(session, shorter)  # the markers that it mends may have become longer
        messages = cast("list[M]", raw_messages(normal))
    _remember(session, normalise(given), normal)
    return messages


def _remember(session: Session, before: Sequence[Message], after: Sequence[Message]) -> None:
    """Keep what the host had where notes are now. It may have words of its own around a result, which the log lacks."""
    lists = ((part for message in one for part in message.parts if part.kind is Kind.RESULT) for one in (before, after))
    stood, texts = ({part.call_id: part.text for part in results} for results in lists)
    noted = {name for name, text in texts.items() if name in stood and is_note(text, session.tag)}
    _CLEARED.setdefault(session, set()).update((name, digest(stood[name])) for name in noted)


def _cleared_before(messages: list[M], session: Session) -> list[M]:
    """The messages with notes for the results that were cleared. They come back only from a host that keeps them, with
    the very text that stood there: a result that was never shown may have the id of one that was cleared."""
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
    """What these calls have had for a result, by the log. Nothing is known where the store cannot be read."""
    try:
        events = [record.event for record in session.events() if record.agent_id == session.agent_id]
    except StoreError:
        return set()
    texts = (event for event in events if isinstance(event, (Delivered, Amended)) and event.call_id in calls)
    results = (event for event in texts if event.origin is Origin.RESULT)
    return {(event.call_id, digest(event.head + event.text + event.tail)) for event in results}


def _clear_oldest(messages: Sequence[Message], session: Session, excess: int) -> Sequence[Message]:
    """The list without its oldest results, until `excess` tokens are saved; the very same list if none may go."""
    rules = PruneRules(protect_last_turns=KEPT_TURNS, protected=session.policy.always)
    work = Work(messages, (), with_knowledge(rules, messages, session))
    count = session.policy.tokens
    for one in _oldest_first(work):
        # What is not known to be there is not known to have been cleared, either, once the host shows it again.
        is_known = any(known.event.text and known.event.origin is Origin.RESULT for known in one.call.known)
        if excess > 0 and is_known and one.may_go(though_pinned=True):
            before = count(one.text)
            one.note("; cleared to make room")
            excess -= before - count(one.text)
    return work.finish()


def _oldest_first(work: Work) -> list[PrunableResult]:
    """The results. One that a marker names is as old as the marker: the agent asked for it then."""
    used: dict[str, int] = {}
    for index, one in enumerate(work.results):
        markers = (marker for delivery in one.call.known for marker in delivery.event.markers)
        used |= dict.fromkeys((*one.names, *(source for marker in markers for source in marker.sources)), index)
    ages = [max([index, *map(used.__getitem__, one.names)]) for index, one in enumerate(work.results)]
    return [work.results[index] for index in sorted(range(len(ages)), key=ages.__getitem__)]
