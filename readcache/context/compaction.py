"""One compaction, step by step: a generator that yields requests for a summary and is sent the answers, or is thrown
what the model raised, so that it is the same for models that are called and for models that are awaited."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from readcache.context.clipping import clip_messages
from readcache.context.prompt import invented_numbers, known_files, request_of, summary_in
from readcache.context.prune_rules import Rules, pruned
from readcache.context.split import Parted, joined, part
from readcache.context.summary import body_of, mechanical_summary, written_summary
from readcache.context.telling import kept_calls, mended, replies_with_markers
from readcache.messages.messages import Kind, as_mapping, normalise, normalise_one
from readcache.messages.transcript import serialize_transcript
from readcache.policy import Budget

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

Raw = Mapping[str, Any]
Request = list[dict[str, str]]


class How(enum.Enum):
    """What became of a conversation."""

    NOTHING = "nothing"
    PRUNED = "pruned"
    SUMMARISED = "summarised"
    MECHANICAL = "mechanical"  # cut without a summary by a model
    CLIPPED = "clipped"  # the texts of the last turn were too long


@dataclass(frozen=True, slots=True)
class Settings:
    """What a compactor was told once and for all."""

    session: Session
    trigger_tokens: int
    budget: Budget
    strategies: Collection[str]
    is_overflow: Callable[[Exception], bool]

    def tokens(self, messages: Sequence[Raw]) -> int:
        """The tokens of these messages, by the session's policy."""
        count = self.session.policy.tokens
        total = 0
        for message in normalise(messages):
            total += MESSAGE_TOKENS
            for each in message.parts:
                total += IMAGE_TOKENS if each.kind is Kind.IMAGE else count(each.text) + count(each.name)
        return total


@dataclass(frozen=True, slots=True)
class Level:
    """How tight: so many of the last turns stay, with no text in them longer than `most_chars` characters."""

    keep_turns: int
    most_chars: int | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """The messages after a step, what was done, and why there is no summary of a model where one was asked for."""

    messages: list[Raw]
    how: How
    trouble: str = ""


Steps = Generator[Request, Any, Made]


def compact(messages: list[Raw], settings: Settings, level: Level, *, ask: bool) -> Steps:
    """Compacts as tightly as `level` says. `ask`: may the model be asked for a summary?"""
    session = settings.session
    parts = part(messages, level.keep_turns)
    if not parts.old:
        kept = _clipped(parts.kept, session, level)
        if all(a is b for a, b in zip(kept, parts.kept, strict=True)):
            return Made(messages, How.NOTHING)
        return Made(session.mend([*messages[: parts.cut], *kept]), How.CLIPPED)
    files = known_files(session)
    trouble = "the model was not asked: it failed too often"
    text = None
    if ask:
        text, trouble = yield from _ask(parts, settings, files)
    if text is None:
        text = mechanical_summary(normalise(parts.old), parts.summaries, files)
    new = _restored(parts, text, settings, level)
    return Made(new, How.MECHANICAL if trouble else How.SUMMARISED, trouble)


def _ask(parts: Parted, settings: Settings, files: Sequence[str]) -> Generator[Request, Any, tuple[str | None, str]]:
    """The summary of a model, or None and why there is none. A request that is too long is made shorter."""
    trouble = ""
    count = settings.session.policy.tokens
    replaced = settings.tokens(parts.old) + sum(map(count, parts.summaries))
    for chars, share in TRIES:
        transcript = _transcript(parts, settings.strategies, chars, share)
        try:
            answer = yield request_of(transcript, files)
            summary = summary_in(_text_of(answer))
        except Exception as error:
            trouble = f"{type(error).__name__}: {error}"
            if settings.is_overflow(error):
                continue
            return None, trouble
        if not summary:
            return None, "the answer held no summary"
        if count(summary) >= replaced:
            return None, "the summary was longer than what it was of"
        return written_summary(summary, invented_numbers(summary, "\n".join([transcript, *files])), files), ""
    return None, trouble


def _transcript(parts: Parted, strategies: Collection[str], chars: int, share: float) -> str:
    """The task, the earlier summaries and the old turns, as the summariser is shown them."""
    old = pruned(parts.old, strategies, Rules(max_chars=chars, protect_last_turns=0))
    old = old[len(old) - int(len(old) * share) :]
    earlier: list[Raw] = [{"role": "user", "content": body_of(summary)} for summary in parts.summaries]
    task = [message for message in parts.head if message.get("role") not in ("system", "developer")]
    return serialize_transcript(clip_messages([*task, *earlier, *old], chars))


def _text_of(answer: object) -> str:
    """A model's answer, as a text or as a message. Raises TypeError for anything else."""
    if isinstance(answer, str):
        return answer
    raw = as_mapping(answer)
    if raw is None or "content" not in raw:
        raise TypeError(f"`summarize` gave a {type(answer).__name__}: give a text or a message")
    return normalise_one({"role": "assistant", "content": raw["content"]}, 0).text


def _clipped(kept: list[Raw], session: Session, level: Level) -> list[Raw]:
    return kept if level.most_chars is None else clip_messages(kept, level.most_chars, session.tag)


def _restored(parts: Parted, text: str, settings: Settings, level: Level) -> list[Raw]:
    """The new list, with the files that were at work put back; the session knows it."""
    session = settings.session
    view = session.view
    stays = [*parts.head, *parts.kept]
    keep = kept_calls(view, [*stays, *parts.old], stays)
    room = settings.trigger_tokens * RESTORED_OF_TRIGGER
    if level.is_first:
        room = max(room, (settings.tokens(parts.old) - session.policy.tokens(text)) * RESTORED_OF_GAIN)
    budget = replace(settings.budget, max_tokens=min(settings.budget.max_tokens, int(room)))
    plan = session.restore_plan(keep=keep, budget=budget)
    shown = replies_with_markers(view)
    done = session.compacted(keep=keep, restored=plan)
    kept = _clipped(mended(parts.kept, done.rewrites, shown), session, level)
    return session.mend(joined(parts, [text, plan.render()], kept))
