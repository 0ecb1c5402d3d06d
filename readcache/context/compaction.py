"""Compact once: split the conversation, summarise its old turns, restore files, and tell the session.

Everything that may have to wait for the model is a coroutine. With a model that is called and not awaited, it runs to
its end without a pause.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from readcache.context import summary
from readcache.context.formed import without_blanks
from readcache.context.notes import clip_messages, clip_text
from readcache.context.pruner import PruneRules, prune_messages, repair_list
from readcache.context.split import Split, split_turns
from readcache.core.messages.blocks import as_mapping, blocks_key
from readcache.core.messages.editing import user_message, with_results, with_texts
from readcache.core.messages.messages import Kind, Message, normalise_one, raw_messages, update_all
from readcache.core.model.errors import UsageError
from readcache.core.model.events import Forgot
from readcache.core.model.policy import Budget, Policy
from readcache.core.sync.sync import Reconciler

if TYPE_CHECKING:
    from readcache.session import Session

# The transcript for the summariser, shorter with each try that overflows: characters of each text, and the share of the
# messages, the newest. The numbers: mini-swe-agent shows 10,000 characters of an output, opencode and Cline show their
# summariser 2,000.
TRIES = ((10_000, 1.0), (2_000, 1.0), (500, 0.5))
MESSAGE_TOKENS = 4  # of a message, besides its text (OpenAI's cookbook: 3, and its role)
IMAGE_TOKENS = 1_600  # of an image, at most, by Anthropic's documentation
# Restored files take at most a quarter of the trigger. Claude Code's take a quarter of its window (50,000 of 200,000).
# In the first try they may take half of the gain, if that is more.
RESTORED_OF_TRIGGER = 0.25
RESTORED_OF_GAIN = 0.5
MOST_RESTORED_OF_GAIN = 0.75
# If no turn is old, the restored text shrinks to this share. It is removed if it has fewer than `LEAST_SHRUNK` tokens.
SHRUNK = 0.25
LEAST_SHRUNK = 1_000

# Characters of each text of the last turn, if nothing else can be shortened. CooperBench clips at 20,000.
LAST_TURN_CHARS = (20_000, 5_000, 1_000)

Request = list[dict[str, str]]
# Raises UsageError if the response must be awaited and may not. None: no model is asked.
AskModel = Callable[[Request], Awaitable[Any]] | None


class How(enum.Enum):
    """The kinds of compaction results."""

    NOTHING = "nothing"
    PRUNED = "pruned"
    SUMMARISED = "summarised"
    MECHANICAL = "mechanical"  # old turns removed without a model's summary
    SHRUNK = "shrunk"  # less of the restored text stays, or none
    CLIPPED = "clipped"  # texts of the last turn, or the summary, were too long and were shortened


def count_tokens(messages: Sequence[Message], policy: Policy) -> int:
    """Return the number of tokens in these messages, by the policy's counter. The host's instructions are not
    included."""
    count = policy.tokens
    parts = [part for message in messages for part in message.parts]
    costs = (IMAGE_TOKENS if part.kind is Kind.IMAGE else count(part.text) + count(part.name) for part in parts)
    return len(messages) * MESSAGE_TOKENS + sum(costs)


@dataclass(frozen=True, slots=True)
class CompactorOptions:
    """The fixed options of a compactor."""

    session: Session
    trigger_tokens: int
    budget: Budget
    strategies: Collection[str]
    is_overflow: Callable[[Exception], bool]
    prompt: str | None = None

    def tokens(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens in these messages, by the session's policy."""
        return count_tokens(messages, self.session.policy)


@dataclass(frozen=True, slots=True)
class Level:
    """The tightness of a try. `keep_turns`: this many of the last turns stay. `most_chars`: the longest text in them,
    in characters."""

    keep_turns: int
    most_chars: int = sys.maxsize
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """The messages after a step, and what was done. `trouble`: why there is no model's summary if one was requested."""

    messages: Sequence[Message]
    how: How
    trouble: str = ""


def levels_of(keep_turns: int) -> list[Level]:
    """Return the levels of a compaction, each tighter than the one before."""
    levels = [Level(keep_turns, is_first=True)]
    # A quarter of the turns at a time keeps the levels few: a client of the server may ask for 2**53 turns.
    while levels[-1].keep_turns > 1:
        levels.append(Level(levels[-1].keep_turns - max(1, levels[-1].keep_turns // 4)))
    return levels + [Level(levels[-1].keep_turns, chars) for chars in LAST_TURN_CHARS]


async def compact_now(
    messages: Sequence[Message], options: CompactorOptions, levels: Sequence[Level], ask: AskModel
) -> CompactionResult:
    """Compact by the first of these levels that gains anything. Return the messages unchanged if none does."""
    for level in levels:
        result = await compact_once(messages, options, level, ask)
        if result.how is not How.NOTHING:
            return result
    return CompactionResult(messages, How.NOTHING)


async def compact_once(
    messages: Sequence[Message], options: CompactorOptions, level: Level, ask: AskModel
) -> CompactionResult:
    """Compact the messages as tightly as `level` says, and return the result."""
    session = options.session
    split = split_turns(messages, level.keep_turns)
    if not split.old and split.restored:
        return CompactionResult(_shrink(messages, split, options), How.SHRUNK)
    if not split.old:
        head = _with_texts(messages[: split.split_at], summary.HEADING, lambda text: clip_text(text, level.most_chars))
        shorter = [*head, *clip_messages(split.kept, level.most_chars, session.tag)]
        if all(a is b for a, b in zip(shorter, messages, strict=True)):
            return CompactionResult(messages, How.NOTHING)
        return CompactionResult(repair_list(session, shorter), How.CLIPPED)
    known = summary.known_lines(session, split.old, split.summaries)
    text, trouble = await _summarise(split, options, known, ask)
    how = How.SUMMARISED if text else How.MECHANICAL
    text = text or summary.mechanical_summary(split.old, split.summaries, known)
    # two messages: the summary, and the restored section
    left = tokens_that_stay(split, options, level) + session.policy.tokens(text) + 2 * MESSAGE_TOKENS
    gain = options.tokens(messages) - left
    if gain <= 0:
        return CompactionResult(messages, How.NOTHING, trouble)
    room = _room(options, level, gain, left)
    if split.summaries and not level.is_first:  # a restored section that shrank before stays small
        room = min(room, session.policy.tokens(split.restored))
    return CompactionResult(_restore(split, text, options, level, room), how, trouble)


async def _summarise(split: Split, options: CompactorOptions, known: Sequence[str], ask: AskModel) -> tuple[str, str]:
    """Return a model's summary and an empty string, or an empty string and why there is no summary.

    If a request is too long, try a shorter one. If a summary has a fault, request another one, once. Raise UsageError
    if the response must be awaited and may not.
    """
    fault = trouble = ""
    count = options.session.policy.tokens
    replaced = options.tokens(split.old) + sum(map(count, split.summaries))
    left = [] if ask is None else list(TRIES)
    while ask is not None and left:
        transcript = transcript_of(split, options.strategies, *left[0])
        try:
            request = summary.request_of(transcript, known, options.prompt, fault)
            text = summary.summary_in(_text_of(await ask(request)))
        except UsageError:
            raise
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
            if not options.is_overflow(error):
                break
            left.pop(0)
            continue
        found = summary.fault_in(text, has_sections=options.prompt is None)
        if not found and count(text) >= replaced:
            found = "the summary was longer than the text that it summarises"
        if not found:
            return summary.written_summary(text, transcript, split.summaries, known), ""
        if fault:
            return "", fault
        fault = found
    return "", trouble


def transcript_of(split: Split, strategies: Collection[str], chars: int, share: float) -> str:
    """Return the task, the earlier summaries and the old turns as the text that the summariser is shown. `chars`: the
    longest text in them, in characters. `share`: the share of the old messages to show, the newest."""
    old = prune_messages(split.old, strategies, PruneRules(max_chars=chars, protect_last_turns=0))
    old = old[len(old) - int(len(old) * share) :]
    earlier = [normalise_one({"role": "user", "content": summary.body_of(text)}) for text in split.summaries]
    task = [message for message in split.head if message.role not in ("system", "developer")]
    return summary.serialize_transcript(clip_messages([*task, *earlier, *old], chars))


def _text_of(response: object) -> str:
    """Return the text of a model's response, which may be a text or a message. Raise TypeError for anything else."""
    if isinstance(response, str):
        return response
    raw = as_mapping(response)
    if raw is None or blocks_key(raw) not in raw:
        raise TypeError(f"`summarize` gave a {type(response).__name__}: give a text or a message")
    return normalise_one({"role": "assistant", blocks_key(raw): raw[blocks_key(raw)]}).text


def _restore(split: Split, text: str, options: CompactorOptions, level: Level, room: int) -> list[Message]:
    """Return the new list, in which the files that were at work are restored, and tell the session. `room`: the most
    tokens that the files may take."""
    session = options.session
    budget = replace(options.budget, max_tokens=min(options.budget.max_tokens, room))
    stays, restored = _restore_files(session, [*split.head, *split.kept], split.old, budget)
    sections = [user_message(each, [*split.head, *split.old]) for each in (text, restored) if each]
    head, kept = stays[: len(split.head)], stays[len(split.head) :]
    new = [*head, *sections, *clip_messages(kept, level.most_chars, session.tag)]
    return repair_list(session, without_blanks(new))


def _shrink(messages: Sequence[Message], split: Split, options: CompactorOptions) -> list[Message]:
    """Return the list with less text restored by an earlier compaction, and tell the session."""
    session = options.session
    had = session.policy.tokens(split.restored)
    budget = replace(options.budget, max_tokens=int(had * SHRUNK) if had >= LEAST_SHRUNK else 0)
    head = _with_texts(messages[: split.split_at], summary.RESTORED_HEADING, lambda _: "")
    stays, restored = _restore_files(session, [*head, *split.kept], [], budget)
    section = [user_message(restored, messages)]
    return repair_list(session, without_blanks([*stays[: split.split_at], *section, *stays[split.split_at :]]))


def _with_texts(messages: Sequence[Message], heading: str, change: Callable[[str], str]) -> list[Message]:
    """Return the messages with `change` applied to each text that starts with this heading."""

    def changed(text: str) -> str:
        return change(text) if text.startswith(heading) else text

    return update_all(messages, [with_texts(message.raw, changed) for message in messages])


def tokens_that_stay(split: Split, options: CompactorOptions, level: Level) -> int:
    """Return the number of tokens in the head and in the kept turns, shortened as `level` says."""
    return options.tokens([*split.head, *clip_messages(split.kept, level.most_chars, options.session.tag)])


def _room(options: CompactorOptions, level: Level, gain: int, left: int) -> int:
    """Return how many tokens the restored files may take: a part of the gain, and less than would reach the trigger.
    Without these files, the compaction gains `gain` tokens, and `left` tokens are left."""
    room = options.trigger_tokens * RESTORED_OF_TRIGGER
    if level.is_first:
        room = max(room, gain * RESTORED_OF_GAIN)
    return max(0, int(min(room, gain * MOST_RESTORED_OF_GAIN, options.trigger_tokens - 1 - left)))


def _restore_files(
    session: Session, messages: Sequence[Message], old: Sequence[Message], budget: Budget
) -> tuple[list[Message], str]:
    """Tell the session that these messages stay, that the `old` ones go, and that the working files are shown again.

    Return the messages and the text of the restored section. Stale markers in the messages now name that section, or
    are retired.
    """
    raws, view, reconciler = raw_messages(messages), session.view, Reconciler()
    keep: frozenset[str] = frozenset()
    try:
        events = reconciler.reconcile(view, raws, tag=session.tag, gives_back=False).events
        gone = [event.call_ids for event in events if isinstance(event, Forgot)]
        keep = frozenset(delivery.event.call_id for delivery in view.deliveries).difference(*gone)
    except Exception as error:  # as in `sync`: an unknown kind of list does not prove that anything is visible
        session.reader.log.fail("", error)
    plan = session.restore_plan(keep=keep, budget=budget, messages=[*old, *messages])
    done = session.compacted(keep=keep, restored=plan)
    repaired = with_results(raws, reconciler.with_replies(done.rewrites))
    return update_all(messages, repaired), plan.render()
