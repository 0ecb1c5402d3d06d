"""Clearing: when a conversation has grown too long, its oldest results give way to a note of one line each.

    messages = clear(messages, session, above=160_000, down_to=60_000)  # before each call of the model

Rarely and much at once: each clearing has the prompt cache written again from the first cleared result on. What is
cleared once is never rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from readcache.context.compaction import count_tokens
from readcache.context.pruner import PrunableResult, PruneRules, Work, mend_list, with_knowledge
from readcache.messages.messages import Message, Raw, normalise, raw_messages
from readcache.messages.structure import repair
from readcache.model.errors import UsageError
from readcache.model.policy import Mode

if TYPE_CHECKING:
    from readcache.session import Session

KEPT_TURNS = 2  # the newest, as in a compaction


def clear(messages: list[Raw], session: Session, *, above: int, down_to: int) -> list[Raw]:
    """The messages with results cleared, if they have more than `above` tokens: oldest first, until they have no more
    than `down_to`, or nothing is left to clear. The very same list when nothing is cleared.

    These stay: the last two turns and what a marker in them points at, all that is not a result, results too short to
    be worth a note, protected files and files of instructions (`Policy.always`). What any other marker points at is as
    old as that marker; when it goes, the marker says so. Each cleared result leaves a line that says what stood there.

    The session is told: the next read of these lines is answered in full. With one that only advises, or is off,
    nothing is cleared, nor in a list that is not well formed (see `repair`). Raises UsageError for marks that have no
    meaning.
    """
    if not 0 <= down_to <= above:
        raise UsageError(f"above={above} and down_to={down_to}: give 0 <= down_to <= above")
    policy = session.policy
    normal: Sequence[Message] = normalise(messages)
    if policy.mode is not Mode.ON or count_tokens(normal, policy) <= above or repair(messages) is not messages:
        return messages
    while (excess := count_tokens(normal, policy) - down_to) > 0:
        shorter = _clear_oldest(normal, session, excess)
        if shorter is normal:
            break
        normal = mend_list(session, shorter)  # the markers that it mends may have become longer
        messages = raw_messages(normal)
    return messages


def _clear_oldest(messages: Sequence[Message], session: Session, excess: int) -> Sequence[Message]:
    """The list without the results that have `excess` tokens, as far as there are such; the very same list if none."""
    rules = PruneRules(protect_last_turns=KEPT_TURNS, protected=session.policy.always)
    work = Work(messages, (), with_knowledge(rules, messages, session))
    count = session.policy.tokens
    for one in _oldest_first(work):
        if excess > 0 and one.may_go(though_pinned=True):
            before = count(one.text)
            one.note("; cleared to make room")
            excess -= before - count(one.text)
    return work.finish()


def _oldest_first(work: Work) -> list[PrunableResult]:
    """The results. One that a marker names is as old as the marker: the agent asked for it then."""
    used: dict[str, int] = {}
    for place, one in enumerate(work.results):
        pointers = (pointer for delivery in one.call.known for pointer in delivery.event.pointers)
        used |= dict.fromkeys((*one.names, *(source for pointer in pointers for source in pointer.sources)), place)
    ages = [max([place, *map(used.__getitem__, one.names)]) for place, one in enumerate(work.results)]
    return [work.results[place] for place in sorted(range(len(ages)), key=ages.__getitem__)]
