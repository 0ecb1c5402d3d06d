"""Pruning: results that say nothing new, are out of date, or are too long, give way to a note of one line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from readcache.context.clip import MOST_CHARS
from readcache.context.prune_rules import STRATEGIES, PruneRules, prune_messages
from readcache.context.tool_calls import NOWHERE
from readcache.errors import UsageError
from readcache.messages.messages import Message, Raw, normalise, raw_messages, update
from readcache.policy import Mode

if TYPE_CHECKING:
    from readcache.session import Session

ALL_STRATEGIES = tuple(STRATEGIES)


def prune(
    messages: list[Raw],
    session: Session | None = None,
    *,
    strategies: Collection[str] = ALL_STRATEGIES,
    protect_last_turns: int = 1,
    keep: Literal["newest", "oldest"] = "newest",
    max_chars: int = MOST_CHARS,
    protected: Sequence[str] = (),
) -> list[Raw]:
    """The messages with what is not needed pruned: the very same list when nothing is.

    - `duplicate_outputs`: results whose bytes stand in others that stay. `keep="newest"` leaves them where the agent is
      at work; `"oldest"` leaves the beginning of the conversation as it is, for the provider's prompt cache.
    - `superseded_reads`: reads of a file that was then overwritten as a whole. An edit supersedes nothing.
    - `errored_inputs`: long arguments of calls that failed; what the tool said stays.
    - `oversized_outputs`: results of more than `max_chars` characters keep their head and tail; images become a text.

    The last `protect_last_turns` turns (see `turns`) stay as they are; calls and results are never removed. `protected`
    are globs of files never pruned, beside those of the session's policy. A session is told what is gone, and markers
    that pointed there are mended; with one that only advises, or is off, nothing is pruned. Raises UsageError for an
    unknown strategy.
    """
    if keep not in ("newest", "oldest"):
        raise UsageError(f"cannot keep {keep!r} of equal results: keep 'newest' or 'oldest'")
    check_strategies(strategies)
    rules = PruneRules(
        keeps_newest=keep == "newest",
        max_chars=max_chars,
        protected=tuple(protected),
        protect_last_turns=protect_last_turns,
    )
    normal = normalise(messages)
    if session is None:
        out = prune_messages(normal, strategies, rules)
        return messages if out is normal else raw_messages(out)
    if session.policy.mode is not Mode.ON:
        return messages
    while (out := prune_messages(normal, strategies, session_rules(session, rules))) is not normal:
        normal = mend_list(session, out)  # after which it may know more of the list, and fewer markers name its results
        messages = raw_messages(normal)
    return messages


def check_strategies(strategies: Collection[str]) -> None:
    """Raises UsageError for an unknown strategy."""
    unknown = sorted(set(strategies).difference(STRATEGIES))
    if unknown:
        raise UsageError(f"no strategy {unknown[0]!r} to prune by: there are {', '.join(STRATEGIES)}")


def session_rules(session: Session, rules: PruneRules) -> PruneRules:
    """The rules with what the session knows."""
    view = session.view
    pointed_at = (source for d in view.deliveries for pointer in d.event.pointers for source in pointer.sources)
    return replace(
        rules,
        view=view,
        root=NOWHERE,  # of calls that it does not know, it does not know the directory either
        tag=session.tag,
        min_chars=session.policy.min_chars,
        protected=(*rules.protected, *session.policy.protected),
        pinned=frozenset(pointed_at),
    )


def mend_list(session: Session, messages: Sequence[Message]) -> list[Message]:
    """Tells the session that these are now the messages; they come back with every marker true."""
    raws = session.mend(raw_messages(messages))
    return [update(message, raw) for message, raw in zip(messages, raws, strict=True)]
