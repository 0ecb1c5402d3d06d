"""One compaction: the conversation is split, its old turns are summarised, files are put back, the session is told.

Everything that may have to wait for the model is a coroutine; with a model that is called and not awaited it runs
through at once.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from readcache.context.formed import sendable
from readcache.context.notes import clip_messages, clip_text
from readcache.context.prompt import known_lines, request_of, summary_in
from readcache.context.pruner import PruneRules, prune_messages, repair_list
from readcache.context.split import Split, split_turns
from readcache.context.summary import HEADING, RESTORED_HEADING, body_of, mechanical_summary, written_summary
from readcache.core.messages.blocks import as_mapping, blocks_key
from readcache.core.messages.editing import user_message, with_results, with_texts
from readcache.core.messages.messages import Kind, Message, normalise_one, raw_messages, update_all
from readcache.core.messages.transcript import serialize_transcript
from readcache.core.model.errors import UsageError
from readcache.core.model.events import Forgot
from readcache.core.model.policy import Budget, Policy
from readcache.core.sync.sync import Reconciler

if TYPE_CHECKING:
    from readcache.session import Session

# What the summariser is shown, try after try when it overflows: characters of each text, and the share of the messages,
# the newest. 10,000 is what mini-swe-agent shows of an output, 2,000 what opencode and Cline show their summariser.
TRIES = ((10_000, 1.0), (2_000, 1.0), (500, 0.5))
MESSAGE_TOKENS = 4  # what a message costs beside its text (OpenAI's cookbook: 3, and its role)
IMAGE_TOKENS = 1_600  # the most that an image costs, by Anthropic's documentation
# The restored files take at most a quarter of the trigger, as Claude Code's do of its window (50,000 of 200,000); at
# first half of what is gained, where that is more.
RESTORED_OF_TRIGGER = 0.25
RESTORED_OF_GAIN = 0.5
MOST_RESTORED_OF_GAIN = 0.75
# Where nothing is old, what was put back shrinks to this share, and goes when it has fewer tokens.
SHRUNK = 0.25
LEAST_SHRUNK = 1_000

Request = list[dict[str, str]]
# Raises UsageError when the response must be awaited and may not. None: the model failed too often to be asked.
AskModel = Callable[[Request], Awaitable[Any]] | None


class How(enum.Enum):
    """What became of a conversation."""

    NOTHING = "nothing"
    PRUNED = "pruned"
    SUMMARISED = "summarised"
    MECHANICAL = "mechanical"  # cut without a summary by a model
    SHRUNK = "shrunk"  # less of what was put back, or nothing, stays
    CLIPPED = "clipped"  # the texts of the last turn, or the summary, were too long


def count_tokens(messages: Sequence[Message], policy: Policy) -> int:
    """The tokens of these messages."""
    count = policy.tokens
    parts = [part for message in messages for part in message.parts]
    costs = (IMAGE_TOKENS if part.kind is Kind.IMAGE else count(part.text) + count(part.name) for part in parts)
    return len(messages) * MESSAGE_TOKENS + sum(costs)


@dataclass(frozen=True, slots=True)
class CompactorOptions:
    """What a compactor was told once and for all."""

    session: Session
    trigger_tokens: int
    budget: Budget
    strategies: Collection[str]
    is_overflow: Callable[[Exception], bool]
    prompt: str | None = None

    def tokens(self, messages: Sequence[Message]) -> int:
        """The tokens of these messages, by the session's policy."""
        return count_tokens(messages, self.session.policy)


@dataclass(frozen=True, slots=True)
class Level:
    """How tight a try is: how many of the last turns stay, and the longest text in them, `most_chars` characters."""

    keep_turns: int
    most_chars: int = sys.maxsize
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The messages after a step, what was done, and why there is no model's summary if one was requested."""

    messages: Sequence[Message]
    how: How
    trouble: str = ""


async def compact_once(
    messages: Sequence[Message], options: CompactorOptions, level: Level, ask: AskModel
) -> CompactionResult:
    """Compacts as tightly as `level` says."""
    session = options.session
    split = split_turns(messages, level.keep_turns)
    if not split.old and split.restored:
        return CompactionResult(_shrink(messages, split, options), How.SHRUNK)
    if not split.old:
        head = _with_texts(messages[: split.split_at], HEADING, lambda text: clip_text(text, level.most_chars))
        shorter = [*head, *clip_messages(split.kept, level.most_chars, session.tag)]
        if all(a is b for a, b in zip(shorter, messages, strict=True)):
            return CompactionResult(messages, How.NOTHING)
        return CompactionResult(repair_list(session, shorter), How.CLIPPED)
    known = known_lines(session, split.old, split.summaries)
    text, trouble = await _summarise(split, options, known, ask)
    how = How.SUMMARISED if text else How.MECHANICAL
    text = text or mechanical_summary(split.old, split.summaries, known)
    # two messages: the summary, and what is put back
    left = tokens_that_stay(split, options, level) + session.policy.tokens(text) + 2 * MESSAGE_TOKENS
    gain = options.tokens(messages) - left
    if gain <= 0:
        return CompactionResult(messages, How.NOTHING, trouble)
    room = _room(options, level, gain, left)
    if split.summaries and not level.is_first:  # what shrank before stays small
        room = min(room, session.policy.tokens(split.restored))
    return CompactionResult(_restore(split, text, options, level, room), how, trouble)


async def _summarise(split: Split, options: CompactorOptions, known: Sequence[str], ask: AskModel) -> tuple[str, str]:
    """A model's summary, or "" and why there is none. A request that is too long is made shorter."""
    if ask is None:
        return "", "the model was not asked: it failed too often"
    trouble = ""
    count = options.session.policy.tokens
    replaced = options.tokens(split.old) + sum(map(count, split.summaries))
    for chars, share in TRIES:
        transcript = transcript_of(split, options.strategies, chars, share)
        try:
            summary = summary_in(_text_of(await ask(request_of(transcript, known, options.prompt))))
        except UsageError:
            raise
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
            if options.is_overflow(error):
                continue
            break
        if not summary:
            return "", "the response held no summary"
        if count(summary) >= replaced:
            return "", "the summary was longer than what it was of"
        return written_summary(summary, transcript, split.summaries, known), ""
    return "", trouble


def transcript_of(split: Split, strategies: Collection[str], chars: int, share: float) -> str:
    """The task, the earlier summaries and the old turns, as the summariser is shown them."""
    old = prune_messages(split.old, strategies, PruneRules(max_chars=chars, protect_last_turns=0))
    old = old[len(old) - int(len(old) * share) :]
    earlier = [normalise_one({"role": "user", "content": body_of(summary)}) for summary in split.summaries]
    task = [message for message in split.head if message.role not in ("system", "developer")]
    return serialize_transcript(clip_messages([*task, *earlier, *old], chars))


def _text_of(response: object) -> str:
    """A model's response, as a text or as a message. Raises TypeError for anything else."""
    if isinstance(response, str):
        return response
    raw = as_mapping(response)
    if raw is None or blocks_key(raw) not in raw:
        raise TypeError(f"`summarize` gave a {type(response).__name__}: give a text or a message")
    return normalise_one({"role": "assistant", blocks_key(raw): raw[blocks_key(raw)]}).text


def _restore(split: Split, text: str, options: CompactorOptions, level: Level, room: int) -> list[Message]:
    """The new list, with the files that were at work put back; the session knows it."""
    session = options.session
    budget = replace(options.budget, max_tokens=min(options.budget.max_tokens, room))
    stays, restored = _restore_files(session, [*split.head, *split.kept], split.old, budget)
    sections = [user_message(each, [*split.head, *split.old]) for each in (text, restored) if each]
    head, kept = stays[: len(split.head)], stays[len(split.head) :]
    new = [*head, *sections, *clip_messages(kept, level.most_chars, session.tag)]
    return repair_list(session, sendable(new, split.old))


def _shrink(messages: Sequence[Message], split: Split, options: CompactorOptions) -> list[Message]:
    """The list with less of what an earlier compaction put back; the session knows it."""
    session = options.session
    had = session.policy.tokens(split.restored)
    budget = replace(options.budget, max_tokens=int(had * SHRUNK) if had >= LEAST_SHRUNK else 0)
    head = _with_texts(messages[: split.split_at], RESTORED_HEADING, lambda _: "")
    stays, restored = _restore_files(session, [*head, *split.kept], [], budget)
    section = [user_message(restored, messages)]
    return repair_list(session, sendable([*stays[: split.split_at], *section, *stays[split.split_at :]]))


def _with_texts(messages: Sequence[Message], heading: str, change: Callable[[str], str]) -> list[Message]:
    """The messages with their texts under this heading changed."""

    def changed(text: str) -> str:
        return change(text) if text.startswith(heading) else text

    return update_all(messages, [with_texts(message.raw, changed) for message in messages])


def tokens_that_stay(split: Split, options: CompactorOptions, level: Level) -> int:
    """The tokens of the head and of what is kept of the turns."""
    return options.tokens([*split.head, *clip_messages(split.kept, level.most_chars, options.session.tag)])


def _room(options: CompactorOptions, level: Level, gain: int, left: int) -> int:
    """The tokens that restored files may take. Without them, `gain` are gained and `left` are left: a part of the gain,
    and less than would reach the trigger."""
    room = options.trigger_tokens * RESTORED_OF_TRIGGER
    if level.is_first:
        room = max(room, gain * RESTORED_OF_GAIN)
    return max(0, int(min(room, gain * MOST_RESTORED_OF_GAIN, options.trigger_tokens - 1 - left)))


def _restore_files(
    session: Session, messages: Sequence[Message], old: Sequence[Message], budget: Budget
) -> tuple[list[Message], str]:
    """Tell the session that these messages stay, that the `old` ones go, and that the working files are shown again.
    Returns the messages, their markers pointed at that section or retired, and the section's text."""
    raws, view, reconciler = raw_messages(messages), session.view, Reconciler()
    keep: frozenset[str] = frozenset()
    try:
        events = reconciler.reconcile(view, raws, tag=session.tag, gives_back=False).events
        gone = [event.call_ids for event in events if isinstance(event, Forgot)]
        keep = frozenset(delivery.event.call_id for delivery in view.deliveries).difference(*gone)
    except Exception as error:  # as in `sync`: a list that we do not understand proves nothing visible
        session.reader.log.fail("", error)
    plan = session.restore_plan(keep=keep, budget=budget, messages=[*old, *messages])
    done = session.compacted(keep=keep, restored=plan)
    repaired = with_results(raws, reconciler.with_replies(done.rewrites))
    return update_all(messages, repaired), plan.render()
