"""Clear old results: if a conversation is too long, a one-line note replaces each of its oldest results.

    messages = clear(messages, session, above=160_000, down_to=120_000)  # before each call of the model
    messages = mend_and_clear(messages, session)  # the same, with the policy's marks if it has any

Clear rarely, and much at a time. After each clearing, the prompt cache is written again from the first cleared result
on. A cleared result is never rewritten: the log has the digest of each cleared text, and its note (`Cleared`).
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakSet

from readcache.context.compaction import count_tokens
from readcache.context.formed import prompt_tokens
from readcache.context.notes import has_note, is_note
from readcache.context.pruner import (
    PrunableResult,
    PruneRules,
    Work,
    check_strategies,
    repair_list,
    with_knowledge,
)
from readcache.core.messages.blocks import Raw
from readcache.core.messages.editing import TextKey, with_results
from readcache.core.messages.messages import Kind, Message, Part, normalise, raw_messages
from readcache.core.messages.structure import repair
from readcache.core.model.errors import StoreError
from readcache.core.model.events import Amended, Cleared, Delivered, Event, Origin
from readcache.core.model.policy import Marks
from readcache.core.model.text import digest
from readcache.core.model.tokens import instructions_of

if TYPE_CHECKING:
    from readcache.session import Session

M = TypeVar("M", bound=Mapping[str, Any])  # a message of the harness's list, of any declared type
Shown = tuple[str | None, str]  # a call's ID, and the digest of its result's text in a list

KEPT_TURNS = 2  # the newest turns, as in a compaction
_WARNED: WeakSet[Session] = WeakSet()  # sessions for which a warning was logged


def mend_and_clear(messages: list[M], session: Session, *, tokens: int | None = None) -> list[M]:
    """Repair the markers (`Session.mend`), and clear old results if the policy has marks (`Policy.clear`).

    Return the messages. The given list may be the one that the last call returned, or the host's own list, with every
    cleared result as it was. `tokens`: as for `clear`.
    """
    marks = session.policy.clear
    if marks is None:
        return session.mend(messages)
    return clear(messages, session, above=marks.above, down_to=marks.down_to, tokens=tokens)


def clear(messages: list[M], session: Session, *, above: int, down_to: int, tokens: int | None = None) -> list[M]:
    """Clear the oldest results if the conversation exceeds `above` tokens, until at most `down_to` tokens remain.

    `tokens`: the size of the conversation with these messages, if the model's API reported it. If it is None, the size
    is the one that the API reported for the last request (see `record_answer`), and the session's policy counts what is
    new since then. Without a report, the policy counts the messages, after the instructions of a known host.

    Stop earlier if nothing more can be cleared. Return a list in which every marker is true: the same list object if
    nothing changed. Results that are repeated or out of date go first (`Policy.prune`). A one-line note replaces each
    cleared result and describes it. If the list contains a cleared result again, in this process or another one, the
    same note replaces it again.

    Never cleared:

    - the last two turns, and the results that their markers name
    - everything that is not a result
    - results that are unknown to the session, or too short to be worth a note
    - protected files and instruction files (`Policy.always`)

    Without the last two turns and earlier notes, these may have more than `down_to` tokens already. Then nothing is
    cleared, and a warning is logged once: clearing would remove every result at each request. A `down_to` of 0 cannot
    be reached: then everything is cleared that may be.

    A result that any other marker names is as old as that marker. If it is cleared, the marker says so.

    The session is told, so the next read of these lines is answered in full. Nothing is cleared if the session only
    advises or is off, or if the list is not well formed (see `repair`). Raise UsageError unless 0 <= down_to <= above.
    """
    Marks(above, down_to)
    check_strategies(session.policy.prune)
    if not session.may_shorten:
        return session.mend(messages)
    given, messages = messages, session.mend(_cleared_before(messages, session))
    before: Sequence[Message] = normalise(messages)
    counted, size = count_tokens(before, session.policy), session.size
    size.asked(counted)
    if tokens is None:
        tokens = round(size.of(counted)) if size.is_known else instructions_of(session.host) + counted
    if tokens <= above or repair(messages) is not messages:
        return messages
    normal = before
    # The excess is by our count, because the results are counted so.
    while (excess := round((tokens - down_to) / size.ratio) - counted + count_tokens(normal, session.policy)) > 0:
        shorter, stays = _clear_oldest(normal, session, excess)
        if stays > 0 and down_to > 0 and normal is before:
            _warn(session, round(stays * size.ratio) + down_to, down_to)
            return messages
        if shorter is normal:
            break
        normal = repair_list(session, shorter)  # repaired markers may have become longer
        messages = cast("list[M]", raw_messages(normal))
    if normal is not before:
        size.asked(count_tokens(normal, session.policy))
        _remember(session, normalise(given), before, normal)
    return messages


def record_answer(session: Session, answer: object) -> None:
    """Record the size of the request that `clear` returned last, if the model's answer has it. `answer`: a response of
    the API, or any object with its `usage`."""
    session.size.answered(prompt_tokens(answer) or 0)


def _warn(session: Session, stays: int, down_to: int) -> None:
    """Log once for a session that nothing can be cleared."""
    if session not in _WARNED:
        _WARNED.add(session)
        said = "nothing was cleared: what may not be cleared has %d tokens, more than the lower mark (%d)"
        logging.getLogger("readcache").warning(said, stays, down_to)


def _remember(session: Session, given: Sequence[Message], before: Sequence[Message], after: Sequence[Message]) -> None:
    """Log the texts that notes have replaced. `given`: the host's list, which has its own words around results.
    `before`: the list before this clearing."""
    pairs = zip(_texts(given), _texts(before), _texts(after), strict=True)
    cleared: list[Event] = [
        Cleared(new.call_id or "", digest(host.text), new.text)
        for (_, host), (_, old), (_, new) in pairs
        if new.text != old.text
        if (is_note(new.text, session.tag) if new.kind is Kind.RESULT else has_note(new.text))
    ]
    session.reader.tell("", lambda _: cleared)


def _cleared_before(messages: list[M], session: Session) -> list[M]:
    """Return the messages with the notes of earlier clearings instead of the same texts.

    A host that keeps its results sends them again. If a text occurs more often than it was cleared, the newest ones
    stay, because the agent requested them again.
    """
    cleared = session.view.calls.cleared
    if not cleared:
        return messages
    texts = defaultdict[tuple[str, str], list[TextKey]](list)
    present = Counter[tuple[str, str]]()
    for at, part in _texts(normalise(messages)):
        texts[part.call_id or "", digest(part.text)].append((at, part.call_id, part.text))
        present[part.call_id or "", part.text] += 1
    again: dict[TextKey, str] = {}
    for (call_id, replaced), notes in cleared.items():
        back = texts.get((call_id, replaced), [])
        left = [note for n, note in enumerate(notes) if n >= present[call_id, note]]
        again |= zip(back, left[-len(back) :], strict=False)
    return cast("list[M]", with_results(cast("list[Raw]", messages), again))


def _texts(messages: Sequence[Message]) -> Iterator[tuple[int, Part]]:
    """Yield the results and the plain texts in the messages, each with the index of its message."""
    for at, message in enumerate(messages):
        yield from ((at, part) for part in message.parts if part.kind in (Kind.RESULT, Kind.TEXT))


def _shown(session: Session, calls: Container[str | None]) -> set[Shown]:
    """Return the results that the log has for these calls. Return an empty set if the store cannot be read."""
    try:
        events = [record.event for record in session.events() if record.agent_id == session.agent_id]
    except StoreError:
        return set()
    texts = (event for event in events if isinstance(event, (Delivered, Amended)) and event.call_id in calls)
    results = (event for event in texts if event.origin is Origin.RESULT)
    return {(event.call_id, digest(event.head + event.text + event.tail)) for event in results}


def _clear_oldest(messages: Sequence[Message], session: Session, excess: int) -> tuple[Sequence[Message], int]:
    """Return (messages, stays): the list with its oldest results cleared, until `excess` tokens are saved. It is the
    same list object if no result may be cleared. `stays`: the part of the excess that is neither in the last turns nor
    in notes."""
    rules = PruneRules(protect_last_turns=KEPT_TURNS, protected=session.policy.always)
    work = Work(messages, session.policy.prune, with_knowledge(rules, messages, session))
    count = session.policy.tokens
    work.apply()
    excess -= sum(count(one.call.result.text) - count(one.text) for one in work.results)
    reused = {call.call_id for one in work.results if (call := one.call.result).call_id in session.view.ids.reused}
    shown = _shown(session, reused) if reused else frozenset()
    for one in _oldest_first(work):
        # If the session does not know a result, it may be from a tool that nobody reports.
        is_known = any(known.event.text and known.event.origin is Origin.RESULT for known in one.call.known)
        is_known = is_known or one.call.is_recall or (one.call.result.call_id, digest(one.call.result.text)) in shown
        if excess > 0 and is_known and one.may_go(though_pinned=True):
            before = count(one.text)
            one.note("; cleared to make room", may_be_recalled=True)
            excess -= before - count(one.text)
    passing = (one.text for one in work.results if one.call.result_at >= work.border or is_note(one.text))
    return work.finish(), excess - sum(map(count, passing))


def _oldest_first(work: Work) -> list[PrunableResult]:
    """Return the results, oldest first. A result that a marker names is as old as the marker, because the agent
    requested it then."""
    used: dict[str, int] = {}
    for index, one in enumerate(work.results):
        markers = (marker for delivery in one.call.known for marker in delivery.event.markers)
        used |= dict.fromkeys((*one.names, *(source for marker in markers for source in marker.sources)), index)
    ages = [max([index, *map(used.__getitem__, one.names)]) for index, one in enumerate(work.results)]
    return [work.results[index] for index in sorted(range(len(ages)), key=ages.__getitem__)]
