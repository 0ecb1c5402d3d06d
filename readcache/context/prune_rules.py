"""What pruning changes in a message list, and why. Pure; `prune` adds the session.

Calls and results are never removed, so that a list stays well formed. Pruning a list twice is pruning it once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from readcache.context import notes
from readcache.context.clipping import MOST_CHARS, clip
from readcache.context.duplicates import Shown, duplicates
from readcache.context.tool_calls import (
    Exchange,
    command_of,
    exchanges,
    file_of,
    is_failed,
    may_have_written,
    name_pieces,
    overwritten,
    pieces_of,
)
from readcache.messages.editing import with_arguments, with_result_text, without_images
from readcache.messages.messages import Kind, Message, normalise
from readcache.messages.turns import last_turns, turn_starts
from readcache.model.claims import path_of
from readcache.model.events import Piece
from readcache.model.paths import matches
from readcache.model.text import count_lines
from readcache.model.view import View
from readcache.policy import MIN_CHARS

# A note must save this many times its own characters, as a marker must.
GAIN = 2

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rules:
    """How to prune. `view` is what a session knows of the calls; `pinned` are calls that a visible marker names."""

    keeps_newest: bool = True
    max_chars: int = MOST_CHARS
    min_chars: int = MIN_CHARS  # shorter results and arguments are never touched
    protected: tuple[str, ...] = ()
    protect_last_turns: int = 1
    tag: str = ""
    root: str = "/"
    view: View | None = None
    pinned: frozenset[str] = frozenset()


def pruned(messages: list[Raw], strategies: Collection[str], rules: Rules) -> list[Raw]:
    """The list pruned by these of `STRATEGIES`; the very same list when nothing is."""
    shown = _without_images(messages, rules) if "oversized_outputs" in strategies else messages
    work = _Pruning(normalise(shown), rules)
    for name, strategy in STRATEGIES.items():
        if name in strategies:
            strategy(work)
    out = work.applied(shown)
    return messages if all(a is b for a, b in zip(out, messages, strict=True)) else out


def _without_images(messages: list[Raw], rules: Rules) -> list[Raw]:
    """Images outside of the task and the last turns give way to a note."""
    normal = normalise(messages)
    first = next(iter(turn_starts(normal)), len(normal))
    border = last_turns(normal, rules.protect_last_turns)
    note = notes.image(rules.tag)
    return [
        without_images(message, note) if first <= index < border and _has_image(normal[index]) else message
        for index, message in enumerate(messages)
    ]


def _has_image(message: Message) -> bool:
    return any(part.kind is Kind.IMAGE for part in message.parts)


class _Pruning:
    """The changes gathered so far. A result is named by its place among the exchanges."""

    def __init__(self, messages: Sequence[Message], rules: Rules) -> None:
        self.rules = rules
        self.exchanges = exchanges(messages, rules.root)
        self.border = last_turns(messages, rules.protect_last_turns)
        self.texts: dict[int, str] = {}  # the results that changed
        self.inputs: dict[int, dict[str, object]] = {}  # the calls whose arguments changed

    @cached_property
    def pieces(self) -> list[tuple[Piece, ...]]:
        """Which lines of which files each result shows."""
        view, tag = self.rules.view, self.rules.tag
        return [() if notes.is_note(e.result.text) else pieces_of(e, view, tag) for e in self.exchanges]

    def may_go(self, place: int, *, pinned: frozenset[str]) -> bool:
        """May the result give way? Not in the last turns, not of a protected file, not when it is short."""
        exchange = self.exchanges[place]
        if exchange.answered >= self.border or place in self.texts or exchange.result.call_id in pinned:
            return False
        is_long = len(exchange.result.text) >= self.rules.min_chars
        return is_long and not self.is_protected(place)

    def is_protected(self, place: int) -> bool:
        """Is it about a file that a glob protects?"""
        paths = {path_of(key) for piece in self.pieces[place] for key in piece.keys}
        paths |= {path for path in [file_of(self.exchanges[place])] if path is not None}
        return any(matches(path, self.rules.protected) for path in paths)

    def what(self, place: int) -> str:
        """The result in words."""
        stretches = name_pieces(self.pieces[place])
        if stretches:
            return notes.name_stretches(stretches)
        lines = count_lines(self.exchanges[place].result.text)
        return f"this output, {lines} line{'s' if lines > 1 else ''}"

    def replace(self, place: int, note: str) -> None:
        """Let the result give way to a note, if that is worth it."""
        if len(self.exchanges[place].result.text) >= GAIN * len(note):
            self.texts[place] = note

    def applied(self, messages: list[Raw]) -> list[Raw]:
        """The messages with all changes made."""
        out = list(messages)
        for place, text in self.texts.items():
            at, call_id = self.exchanges[place].answered, self.exchanges[place].result.call_id
            out[at] = with_result_text(out[at], call_id, text)
        for place, arguments in self.inputs.items():
            at, call_id = self.exchanges[place].asked, self.exchanges[place].call.call_id
            out[at] = with_arguments(out[at], call_id, arguments)
        return out


# ---------------------------------------------------------------- strategies


def _errored_inputs(work: _Pruning) -> None:
    """Long arguments of calls that failed. A command that failed may have written a file before that, and what it wrote
    may be nowhere else in view: its text stays."""
    for place, exchange in enumerate(work.exchanges):
        is_late = exchange.answered >= work.border or exchange.asked >= work.border
        if is_late or not is_failed(exchange) or exchange.call.call_id in work.rules.pinned:
            continue
        if may_have_written(exchange) or work.is_protected(place):
            continue
        given = dict(exchange.call.arguments or {})
        long = {key: v for key, v in given.items() if isinstance(v, str) and len(v) >= work.rules.min_chars}
        if long:
            short = {key: notes.failed_input(work.rules.tag, len(value)) for key, value in long.items()}
            work.inputs[place] = {**given, **short}


def _superseded_reads(work: _Pruning) -> None:
    """Reads of nothing but files that a later call overwrote as a whole."""
    gone: set[str] = set()
    for place in reversed(range(len(work.exchanges))):
        gone |= overwritten(work.exchanges[place], work.rules.view)
        if not gone or not work.may_go(place, pinned=frozenset()):  # a marker that names it is mended: it is old, too
            continue
        pieces = work.pieces[place]
        is_of_them = bool(name_pieces(pieces)) and gone.issuperset(piece.keys[0] for piece in pieces)
        if is_of_them and _shows_nothing_else(work.exchanges[place], pieces):
            work.replace(place, notes.superseded(work.rules.tag, work.what(place)))


def _shows_nothing_else(exchange: Exchange, pieces: Sequence[Piece]) -> bool:
    """What a tool that reads files puts around them ("Here's the result of running `cat -n` on …") is nothing else."""
    is_tool = command_of(exchange.call) is None
    return is_tool or sum(piece.count for piece in pieces) == count_lines(exchange.result.text)


def _duplicate_outputs(work: _Pruning) -> None:
    """Results that others hold, as a whole or line for line. What an error says stays."""
    pinned = work.rules.pinned
    shown = [
        Shown(place, e.result.text, work.pieces[place], not e.result.is_error and work.may_go(place, pinned=pinned))
        for place, e in enumerate(work.exchanges)
        if place not in work.texts
    ]
    for item in duplicates(shown, newest=work.rules.keeps_newest):
        note = notes.duplicate(work.rules.tag, work.what(item.place), later=work.rules.keeps_newest)
        work.replace(item.place, note)


def _oversized_outputs(work: _Pruning) -> None:
    """The middle of long results."""
    for place, exchange in enumerate(work.exchanges):
        text = exchange.result.text
        is_long = len(text) > work.rules.max_chars and not notes.is_note(text)
        if is_long and work.may_go(place, pinned=work.rules.pinned):
            work.texts[place] = clip(text, work.rules.max_chars, work.rules.tag)


# In the order in which they are applied: what goes for one reason is not looked at for the next.
STRATEGIES: dict[str, Callable[[_Pruning], None]] = {
    "errored_inputs": _errored_inputs,
    "superseded_reads": _superseded_reads,
    "duplicate_outputs": _duplicate_outputs,
    "oversized_outputs": _oversized_outputs,
}
