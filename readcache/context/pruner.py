"""Pruning: results that say nothing new, are out of date, or are too long, give way to a note of one line.

Calls and results are never removed, so that a list stays well formed. Pruning a list twice is pruning it once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from readcache.context import notes
from readcache.context.duplicates import KeptResults
from readcache.context.notes import MOST_CHARS, clip_text
from readcache.context.tool_calls import (
    NOWHERE,
    failed_and_wrote_nothing,
    file_of,
    name_pieces,
    overwritten,
    pieces_of,
    shell_command,
    tool_calls,
)
from readcache.errors import UsageError
from readcache.messages.editing import with_arguments, with_result_text, with_results, without_images
from readcache.messages.messages import Message, Raw, normalise, raw_messages, update_all
from readcache.messages.turns import last_turns, turn_starts
from readcache.model.events import Piece
from readcache.model.paths import matches
from readcache.model.text import count_lines
from readcache.model.view import View
from readcache.policy import MIN_CHARS, Mode

if TYPE_CHECKING:
    from readcache.session import Session

# A note must save this many times its own characters, as a marker must.
GAIN = 2


@dataclass(frozen=True, slots=True)
class PruneRules:
    """How to prune. `view` is what a session knows of the calls; `pinned` are calls that a visible marker names."""

    max_chars: int = MOST_CHARS
    min_chars: int = MIN_CHARS  # shorter results and arguments are never touched
    protected: tuple[str, ...] = ()
    protect_last_turns: int = 1
    tag: str = ""
    root: str = "/"
    view: View | None = None
    pinned: frozenset[str] = frozenset()


def prune_messages(messages: Sequence[Message], strategies: Collection[str], rules: PruneRules) -> Sequence[Message]:
    """The list pruned by these of `STRATEGIES`; the very same list when nothing is."""
    shown = _without_images(messages, rules) if "oversized_outputs" in strategies else messages
    work = _Work(shown, rules)
    for name, strategy in STRATEGIES.items():
        if name in strategies:
            strategy(work)
    out = update_all(shown, work.raws)
    return messages if all(a is b for a, b in zip(out, messages, strict=True)) else out


def _without_images(messages: Sequence[Message], rules: PruneRules) -> list[Message]:
    """The messages with notes for the images that are neither in the task nor in the last turns."""
    first = next(iter(turn_starts(messages)), len(messages))
    border = last_turns(messages, rules.protect_last_turns)
    note = notes.note_line(rules.tag, "an image was shown here")
    raws = raw_messages(messages)
    for at in range(first, border):
        raws[at] = without_images(raws[at], note)
    return update_all(messages, raws)


class _Work:
    """The changes gathered so far. A result is named by its place among the calls."""

    def __init__(self, messages: Sequence[Message], rules: PruneRules) -> None:
        self.rules = rules
        self.calls = tool_calls(messages, rules.root)
        self.border = last_turns(messages, rules.protect_last_turns)
        self.raws = raw_messages(messages)  # with the changes that were made
        self.replaced: set[int] = set()  # results that gave way

    @cached_property
    def pieces(self) -> list[tuple[Piece, ...]]:
        """Which lines of which files each result shows."""
        view, tag = self.rules.view, self.rules.tag
        return [() if notes.is_note(e.result.text) else pieces_of(e, view, tag) for e in self.calls]

    def may_go(self, place: int, *, though_pinned: bool = False) -> bool:
        """May the result give way? Not in the last turns, not of a protected file, not when it is short."""
        tool_call = self.calls[place]
        is_pinned = tool_call.result.call_id in self.rules.pinned and not though_pinned
        if tool_call.result_at >= self.border or place in self.replaced or is_pinned:
            return False
        return len(tool_call.result.text) >= self.rules.min_chars and not self.is_protected(place)

    def is_protected(self, place: int) -> bool:
        """True if it is about a file that a glob protects."""
        paths = {key for piece in self.pieces[place] for key in piece.keys}
        paths.add(file_of(self.calls[place]) or "")
        return any(matches(path, self.rules.protected) for path in paths if path)

    def what(self, place: int) -> str:
        """The result in words."""
        stretches = name_pieces(self.pieces[place])
        if stretches:
            return notes.name_stretches(stretches)
        lines = count_lines(self.calls[place].result.text)
        return f"this output, {lines} line{'s' if lines > 1 else ''}"

    def replace(self, place: int, text: str) -> None:
        """Lets the result give way to another text."""
        at = self.calls[place].result_at
        self.raws[at] = with_result_text(self.raws[at], self.calls[place].result.call_id, text)
        self.replaced.add(place)

    def note(self, place: int, why: str) -> None:
        """Lets the result give way to a note, if that is worth it."""
        note = notes.note_line(self.rules.tag, f"{self.what(place)}{why}")
        if len(self.calls[place].result.text) >= GAIN * len(note):
            self.replace(place, note)


# ---------------------------------------------------------------- strategies


def _errored_inputs(work: _Work) -> None:
    """Long arguments of calls that failed. A command that failed may have written a file before that, and what it wrote
    may be nowhere else in view: its text stays."""
    for place, tool_call in enumerate(work.calls):
        is_late = tool_call.result_at >= work.border or tool_call.call_at >= work.border
        if is_late or tool_call.call.call_id in work.rules.pinned:
            continue
        if not failed_and_wrote_nothing(tool_call) or work.is_protected(place):
            continue
        given = dict(tool_call.call.arguments or {})
        short = {
            key: notes.note_line(work.rules.tag, f"{len(value):,} characters of the input of a call that failed")
            for key, value in given.items()
            if isinstance(value, str) and len(value) >= work.rules.min_chars
        }
        if short:
            at = tool_call.call_at
            work.raws[at] = with_arguments(work.raws[at], tool_call.call.call_id, {**given, **short})


def _superseded_reads(work: _Work) -> None:
    """Reads of nothing but files that a later call overwrote as a whole."""
    gone: set[str] = set()
    for place in reversed(range(len(work.calls))):
        gone |= overwritten(work.calls[place], work.rules.view)
        if not gone or not work.may_go(place, though_pinned=True):  # a marker that names it is mended: it is old, too
            continue
        pieces = work.pieces[place]
        is_of_them = bool(name_pieces(pieces)) and gone.issuperset(piece.keys[0] for piece in pieces)
        # headers that read tools add ("Here's the result of running `cat -n` on …") do not count as other content
        is_tool = shell_command(work.calls[place].call) is None
        lines = count_lines(work.calls[place].result.text)
        if is_of_them and (is_tool or sum(piece.count for piece in pieces) == lines):
            why = " as read before the file was overwritten as a whole; read the file to see it as it is"
            work.note(place, why)


def _duplicate_outputs(work: _Work) -> None:
    """Results that later ones hold, as a whole or line for line. What an error says stays. What goes is never what
    another one goes for."""
    kept = KeptResults()
    for place in reversed(range(len(work.calls))):
        if place in work.replaced:
            continue
        result, pieces = work.calls[place].result, work.pieces[place]
        if not result.is_error and work.may_go(place) and kept.holds(result.text, pieces):
            work.note(place, ", the same bytes were shown again later; repeat the request to see")
        else:
            kept.add(result.text, pieces)


def _oversized_outputs(work: _Work) -> None:
    """The middle of long results."""
    for place, tool_call in enumerate(work.calls):
        text = tool_call.result.text
        if len(text) > work.rules.max_chars and not notes.is_note(text) and work.may_go(place):
            work.replace(place, clip_text(text, work.rules.max_chars, work.rules.tag))


# In the order in which they are applied: what goes for one reason is not looked at for the next.
STRATEGIES: dict[str, Callable[[_Work], None]] = {
    "errored_inputs": _errored_inputs,
    "superseded_reads": _superseded_reads,
    "duplicate_outputs": _duplicate_outputs,
    "oversized_outputs": _oversized_outputs,
}
ALL_STRATEGIES = tuple(STRATEGIES)


# ---------------------------------------------------------------- with a session


def prune(
    messages: list[Raw],
    session: Session | None = None,
    *,
    strategies: Collection[str] = ALL_STRATEGIES,
    protect_last_turns: int = 1,
    max_chars: int = MOST_CHARS,
    protected: Sequence[str] = (),
) -> list[Raw]:
    """The messages with what is not needed pruned: the very same list when nothing is.

    - `duplicate_outputs`: results whose bytes stand in later ones, where the agent is at work.
    - `superseded_reads`: reads of a file that was then overwritten as a whole. An edit supersedes nothing.
    - `errored_inputs`: long arguments of calls that failed; what the tool said stays.
    - `oversized_outputs`: results of more than `max_chars` characters keep their head and tail; images become a text.

    The last `protect_last_turns` turns (see `turns`) stay as they are; calls and results are never removed. `protected`
    are globs of files never pruned, beside those of the session's policy. A session is told what is gone, and markers
    that pointed there are mended; with one that only advises, or is off, nothing is pruned. Raises UsageError for an
    unknown strategy.
    """
    check_strategies(strategies)
    rules = PruneRules(max_chars=max_chars, protected=tuple(protected), protect_last_turns=protect_last_turns)
    normal = normalise(messages)
    if session is None:
        out = prune_messages(normal, strategies, rules)
        return messages if out is normal else raw_messages(out)
    while (out := prune_known(normal, session, strategies, rules)) is not normal:
        normal = mend_list(session, out)  # after which it may know more of the list, and fewer markers name its results
        messages = raw_messages(normal)
    return messages


def check_strategies(strategies: Collection[str]) -> None:
    """Raises UsageError for an unknown strategy."""
    unknown = sorted(set(strategies).difference(STRATEGIES))
    if unknown:
        raise UsageError(f"no strategy {unknown[0]!r} to prune by: there are {', '.join(STRATEGIES)}")


def prune_known(
    messages: Sequence[Message], session: Session, strategies: Collection[str], rules: PruneRules
) -> Sequence[Message]:
    """`prune_messages` with what the session knows of the calls; it is not told. With one that only advises, or is off,
    nothing is pruned."""
    if session.policy.mode is not Mode.ON:
        return messages
    view = session.view
    pointed_at = (source for d in view.deliveries for pointer in d.event.pointers for source in pointer.sources)
    rules = replace(
        rules,
        view=view,
        root=NOWHERE,  # of calls that it does not know, it does not know the directory either
        tag=session.tag,
        min_chars=session.policy.min_chars,
        protected=(*rules.protected, *session.policy.protected),
        pinned=frozenset(pointed_at),
    )
    return prune_messages(messages, strategies, rules)


def mend_list(session: Session, messages: Sequence[Message]) -> list[Message]:
    """Tells the session that these are now the messages, of which the model has been shown every reply; they come back
    with every marker true."""
    raws = raw_messages(messages)
    synced = session.reader.sync(raws, gives_back=False)
    return update_all(messages, with_results(raws, synced.by_place))
