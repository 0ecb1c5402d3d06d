"""Prune message lists: a one-line note replaces repeated or outdated results; oversized results are shortened.

Calls and results are never removed, so a list stays well formed. Pruning a list again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from readcache.context import notes
from readcache.context import tool_calls as listed
from readcache.context.notes import MOST_CHARS, clip_text
from readcache.context.superseded import KeptResults, LaterReads, first_that_pays
from readcache.context.tool_calls import Links, ListedCall, PlainResult, name_spans, tool_calls
from readcache.core.judging.compose import GAIN
from readcache.core.judging.marker import ASK_AGAIN, find_markers
from readcache.core.judging.protect import shows_lines_of
from readcache.core.messages.blocks import Raw
from readcache.core.messages.editing import with_arguments, with_parts, with_results, with_texts, without_images
from readcache.core.messages.messages import Message, normalise, raw_messages, update_all
from readcache.core.messages.structure import last_turns, turn_starts
from readcache.core.model.call import shown_label
from readcache.core.model.errors import UsageError
from readcache.core.model.events import MappedSpan
from readcache.core.model.paths import matches_any, may_name
from readcache.core.model.policy import MIN_CHARS, Prices
from readcache.core.model.secrets import contains_secret
from readcache.core.model.text import count_lines

if TYPE_CHECKING:
    from readcache.session import Session


@dataclass(frozen=True, slots=True)
class PruneRules:
    """The options of a pruning. `links`: the session's deliveries in the list. `pinned`: the calls that visible markers
    name."""

    max_chars: int = MOST_CHARS
    min_chars: int = MIN_CHARS  # shorter results and arguments stay unchanged
    protected: tuple[str, ...] = ()
    protect_last_turns: int = 1
    tag: str = ""
    root: str = "/"
    links: Links = field(default_factory=Links)
    pinned: frozenset[str] = frozenset()
    prices: Prices | None = None  # None: ignore the cost of the prompt cache


def prune_messages(messages: Sequence[Message], strategies: Collection[str], rules: PruneRules) -> Sequence[Message]:
    """Return the list pruned by the given ones of `STRATEGIES`; the same list object if nothing changed."""
    work = Work(messages, strategies, rules)
    work.apply()
    return work.finish()


def _without_images(messages: Sequence[Message], rules: PruneRules) -> list[Message]:
    """Return the messages with notes instead of images. Images in the task and in the last turns stay."""
    first = next(iter(turn_starts(messages)), len(messages))
    border = last_turns(messages, rules.protect_last_turns)
    note = notes.note_line(rules.tag, "an image was shown here")
    raws = raw_messages(messages)
    for at in range(first, border):
        raws[at] = without_images(raws[at], note)
    return update_all(messages, raws)


class Work:
    """A pruning in progress: the results of a list, and the changes gathered until now."""

    def __init__(self, messages: Sequence[Message], strategies: Collection[str], rules: PruneRules) -> None:
        self.rules, self._given, self._strategies = rules, messages, strategies
        self.truncates = "oversized_outputs" in strategies
        if self.truncates:
            messages = _without_images(messages, rules)
        self._shown = messages
        self.border = last_turns(messages, rules.protect_last_turns)
        self.needed = rules.links.named_from(self.border)  # calls that markers in the last turns name
        self.recent = last_turns(messages, notes.RECALLED_TURNS)
        self.raws = raw_messages(messages)  # with the arguments that were changed
        self.results = [PrunableResult(self, tool_call) for tool_call in tool_calls(messages, rules.root, rules.links)]

    def first_worth(self, saved: Mapping[int, int]) -> int:
        """Return the index of the first message at which a change costs no more than it saves.

        `saved`: characters that would be saved, by message. Return 0 if the rules have no prices.
        """
        prices = self.rules.prices
        if prices is None:
            return 0
        changed = [at for at, message in enumerate(self._given) if self.raws[at] is not message.raw]
        changed += [one.call.result_at for one in self.results if one.text != one.call.result.text]
        sizes = [sum(len(part.text) for part in message.parts) for message in self._given]
        return first_that_pays(sizes, saved, min(changed, default=len(sizes)), prices)

    def apply(self) -> None:
        """Apply the strategies, in their order."""
        for name, strategy in STRATEGIES.items():
            if name in self._strategies:
                strategy(self)

    def finish(self) -> Sequence[Message]:
        """Return the messages with all changes; the same list object if there are none."""
        changed = [one for one in self.results if one.text != one.call.result.text]
        linked = [(one.call.result_at, one.call.result, one.text) for one in changed if one.call.plain is None]
        texts = {(at, result.call_id, result.nth, result.text): text for at, result, text in linked}
        self.raws = with_parts(self.raws, texts)
        for one in reversed(changed):  # from the end of a text: the spans of earlier results stay valid
            if one.call.plain is not None:
                raw = self.raws[one.call.result_at]
                self.raws[one.call.result_at] = with_texts(raw, partial(_spliced, one.call.plain, one.text))
        out = update_all(self._shown, self.raws)
        return self._given if all(a is b for a, b in zip(out, self._given, strict=True)) else out


class PrunableResult:
    """A result, and the `text` that replaces it."""

    def __init__(self, work: Work, tool_call: ListedCall) -> None:
        self.call, self.text = tool_call, tool_call.result.text
        self.names = {delivery.event.call_id for delivery in tool_call.known}
        self.is_noted = False  # a note replaced it
        self._work, self._rules = work, work.rules

    @cached_property
    def source_map(self) -> tuple[MappedSpan, ...]:
        """The lines of files in the result; empty if the result is a note."""
        return () if notes.is_note(self.call.result.text) else listed.source_map_of(self.call, self._rules.tag)

    @cached_property
    def named(self) -> list[tuple[str, int, int]]:
        """(path, first, last) of the spans of file lines that a note names."""
        return name_spans(self.source_map or listed.source_map_in_json(self.call))

    @cached_property
    def is_protected(self) -> bool:
        """True if the result may concern a file that a glob protects, or certainly contains a secret."""
        globs, command, text = self._rules.protected, self.call.use.command, self.call.result.text
        paths = {self.call.file, *(key for mapped in self.source_map for key in mapped.keys)}
        if (
            any(matches_any(path, globs) for path in paths if path)
            or shows_lines_of(globs, text)
            or contains_secret(text)
        ):
            return True
        return command is not None and may_name(command, globs)

    def may_go(self, *, though_pinned: bool = False) -> bool:
        """Return True if the result may be pruned.

        Return False if it is in the last turns or their markers name it, if a note already replaced it, or if it is
        short or protected. Also return False for a recall in the last `RECALLED_TURNS` turns. Unless `though_pinned`,
        also return False if any visible marker names it.
        """
        if self.call.result_at >= self._work.border or self.is_noted or not self.names.isdisjoint(self._work.needed):
            return False
        if self.call.is_recall and self.call.result_at >= self._work.recent:
            return False
        if not though_pinned and not self.names.isdisjoint(self._rules.pinned):
            return False
        return len(self.text) >= self._rules.min_chars and not self.is_protected

    def will_be_truncated(self) -> bool:
        """Return True if only the two ends of the result will stay."""
        is_long = len(self.text) > self._rules.max_chars and not notes.is_note(self.text)
        return self._work.truncates and is_long and self.may_go()

    def shows_only_files(self) -> bool:
        """Return True if all lines of the result are known lines of files.

        Headers of read tools do not count ("Here's the result of running `cat -n` on …").
        """
        is_complete = sum(mapped.count for mapped in self.source_map) == count_lines(self.call.result.text)
        return (is_complete or self.call.use.kind == "read") and bool(name_spans(self.source_map))

    @cached_property
    def only_file(self) -> str | None:
        """The path of the only file that the result shows. None if it is no read, or may show several files."""
        keys = {key for mapped in self.source_map for key in mapped.keys}
        if len(keys) == 1 and self.shows_only_files():
            return keys.pop()
        return self.call.file if self.call.use.kind == "read" else None

    def note(self, why: str, *, may_be_asked_again: bool = True, may_be_recalled: bool = False) -> None:
        """Replace the result with a note, if the result is at least `GAIN` times as long.

        `why`: the end of the note. `may_be_asked_again`: it may suggest repeating the call. `may_be_recalled`: it may
        suggest `readcache recall`.
        """
        if may_be_recalled and (recall := self.call.recall(self._rules.tag)):
            what = self._what(f'output of "{shown_label(self.call.use.command or "")}"')
            self._replace(notes.recall_note(recall, f"{what}{why.replace(';', ',', 1)}"))
        if self.is_noted:
            return
        # A call that may do more than read must not be repeated.
        asks = may_be_asked_again and self.call.is_read and self.named
        self._replace(notes.note_line(self._rules.tag, f"{self._what()}{why}{f'; {ASK_AGAIN}' if asks else ''}"))

    def _replace(self, note: str) -> None:
        if len(self.text) >= GAIN * len(note):
            self.text, self.is_noted = note, True

    def _what(self, output: str = "") -> str:
        """Describe the result in the words of a note. `output`: the words for the whole output."""
        named = notes.spell_file_lines(self.named)
        if self.shows_only_files():
            return named
        is_part = notes.has_note(self.text) or find_markers(self.text, self._rules.tag)
        output = output or ("the rest of this output" if is_part else "this output")
        lines = count_lines(self.text)
        among = f" ({named} among them)" if named else ""
        return f"{output}, {lines} line{'s' if lines > 1 else ''}{among}"


def _spliced(plain: PlainResult, new: str, text: str) -> str:
    """Return `text` with `new` instead of the result in it. The text after the result may already be changed."""
    start, end = plain.char_span
    is_it = text.startswith(plain.text[:end])
    return text[:start] + new + text[end:] if is_it else text


# ---------------------------------------------------------------- strategies


def _errored_inputs(work: Work) -> None:
    """Replace long arguments of calls that failed."""
    for one in work.results:
        call, at = one.call.call, one.call.call_at
        is_late = max(one.call.result_at, at) >= work.border
        if is_late or not one.names.isdisjoint(work.rules.pinned):
            continue
        # A command may have written a file before it failed. Its text stays, as it may be visible nowhere else.
        if not listed.failed_and_wrote_nothing(one.call) or one.is_protected:
            continue
        given = dict(call.arguments or {})
        short = {
            key: notes.note_line(work.rules.tag, f"{len(value):,} characters of input of a failed call")
            for key, value in given.items()
            if isinstance(value, str) and len(value) >= work.rules.min_chars
        }
        if short:
            work.raws[at] = with_arguments(work.raws[at], call.call_id, {**given, **short}, call.nth)


def _superseded_reads(work: Work) -> None:
    """Prune reads that show only files that a later call overwrote completely."""
    gone: set[str] = set()
    for one in reversed(work.results):
        # A marker that names it is old, too, and is repaired.
        may_go = gone and one.may_go(though_pinned=True) and one.shows_only_files()
        if may_go and gone.issuperset(mapped.keys[0] for mapped in one.source_map):
            why = " as they were before the file was overwritten; read the file for its current content"
            one.note(why, may_be_asked_again=False)
        gone |= listed.overwritten(one.call)  # last, because a call may show what it wrote itself


def _duplicate_outputs(work: Work) -> None:
    """Prune results that later results contain, as a whole or line by line. Results that report an error stay."""
    kept, truncated = KeptResults(), set[str]()
    for one in reversed(work.results):
        text = one.text
        if notes.has_note(text):
            continue
        # Every comparison is with results that stay, so that no result is dropped for one that is dropped, too.
        if not one.call.result.is_error and one.may_go():
            file = one.only_file
            if kept.contains(text, one.source_map) or (file is not None and kept.contains_part(file, text)):
                one.note("; shown again later, byte for byte")
            elif text in truncated:
                one.note("; a later copy was kept in shortened form")
        if one.will_be_truncated():  # only its two ends stay
            truncated.add(text)
        elif not one.is_noted:
            kept.add(text, one.source_map, one.only_file)


def _oversized_outputs(work: Work) -> None:
    """Remove the middle of long results."""
    for one in work.results:
        if one.will_be_truncated():
            one.text = clip_text(one.text, work.rules.max_chars, work.rules.tag, one.call.recall(work.rules.tag))


def _outdated_reads(work: Work) -> None:
    """Prune reads of one file whose lines were read again after it changed, if that costs no more than it saves."""
    outdated = list(_outdated(work))
    first = work.first_worth({one.call.result_at: len(one.call.result.text) for one, _ in outdated})
    for one, what in outdated:
        if one.call.result_at >= first:
            one.text = one.call.result.text  # without the shortening by another strategy
            one.note(f" as they were before the file changed; {what} read again later", may_be_asked_again=False)


def _outdated(work: Work) -> Iterator[tuple[PrunableResult, str]]:
    """Yield each outdated read, and the words for the lines that were read again."""
    later = LaterReads()
    noted_spans = {one.call.result.text: name_spans(one.source_map) for one in work.results if one.is_noted}
    for one in reversed(work.results):
        text, named = one.call.result.text, name_spans(one.source_map)
        path = named[0][0] if len({path for path, _, _ in named}) == 1 else None
        is_read = one.shows_only_files() and not one.call.result.is_error and noted_spans.get(text, named) == named
        if path and is_read and one.may_go() and later.outdate(path, text, one.source_map):
            yield one, "the whole file was" if path in later.complete_files else "these lines were"
        elif one.text == text:
            later.add(text, one.source_map)


# In the order of application: the next strategies skip a result that one of them replaced.
STRATEGIES: dict[str, Callable[[Work], None]] = {
    "errored_inputs": _errored_inputs,
    "superseded_reads": _superseded_reads,
    "duplicate_outputs": _duplicate_outputs,
    "oversized_outputs": _oversized_outputs,
    "outdated_reads": _outdated_reads,  # last, because its cost depends on the other changes
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
    """Return the messages without unneeded texts; the same list object if nothing changed.

    - `duplicate_outputs`: results whose bytes also occur in later results, closer to the agent's current work.
    - `superseded_reads`: reads of a file that was then overwritten completely. An edit supersedes nothing.
    - `errored_inputs`: long arguments of calls that failed. The tool's answer stays.
    - `oversized_outputs`: results of more than `max_chars` characters keep their head and tail. A text replaces images.
    - `outdated_reads`: reads of a file that was read again after it changed, completely or in the same lines. They are
      pruned if something before them is pruned anyway. They are also pruned if, by the policy's prices, writing the
      prompt cache again costs less than carrying them.

    The last `protect_last_turns` turns (see `structure`) stay unchanged. Calls and results are never removed.
    `protected`: globs of files that are never pruned, in addition to the globs of the session's policy. The session is
    told which texts are gone, and markers that named them are repaired. Nothing is pruned if the session only advises
    or is off. Raise UsageError for an unknown strategy.
    """
    check_strategies(strategies)
    prices = Prices() if session is None else session.policy.prices
    rules = PruneRules(max_chars, protected=tuple(protected), protect_last_turns=protect_last_turns, prices=prices)
    normal = normalise(messages)
    if session is None:
        out = prune_messages(normal, strategies, rules)
        return messages if out is normal else raw_messages(out)
    while (out := prune_known(normal, session, strategies, rules)) is not normal:
        # Now the session may know more of the list, and fewer markers may name its results.
        normal = repair_list(session, out)
        messages = raw_messages(normal)
    return messages


def check_strategies(strategies: Collection[str]) -> None:
    """Raise UsageError for an unknown strategy."""
    unknown = sorted(set(strategies).difference(STRATEGIES))
    if unknown:
        raise UsageError(f"unknown pruning strategy {unknown[0]!r}: choose from {', '.join(STRATEGIES)}")


def prune_known(
    messages: Sequence[Message], session: Session, strategies: Collection[str], rules: PruneRules
) -> Sequence[Message]:
    """Return the messages pruned by `prune_messages`, with the session's knowledge of the calls. The session is not
    told. Nothing is pruned if it only advises or is off."""
    if not session.may_shorten:
        return messages
    return prune_messages(messages, strategies, with_knowledge(rules, messages, session))


def with_knowledge(rules: PruneRules, messages: Sequence[Message], session: Session) -> PruneRules:
    """Return the rules, extended with the session's knowledge of the list and with its policy."""
    view = session.view
    pointed_at = (source for d in view.deliveries for marker in d.event.markers for source in marker.sources)
    return replace(
        rules,
        links=Links(view, messages, session.tag),
        root=listed.NOWHERE,  # for calls that the session does not know: their directory is unknown, too
        tag=session.tag,
        min_chars=session.policy.min_chars,
        protected=(*rules.protected, *session.policy.protected),
        pinned=frozenset(pointed_at),
    )


def repair_list(session: Session, messages: Sequence[Message]) -> list[Message]:
    """Tell the session that these are now the messages, and that the model was shown every reply in them. Return them
    with every marker true."""
    raws = raw_messages(messages)
    synced = session.reader.sync(raws, gives_back=False)
    return update_all(messages, with_results(raws, synced.by_text_key))
