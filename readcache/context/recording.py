"""Follow the list that a harness gives at each step, and record as condensations how it was shortened.

The harness may give its whole list each time, or the list that it was returned last. Both are the same conversation, so
nothing is summarised twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from readcache.context import summary
from readcache.context.changes import changes_between
from readcache.context.condensation import Condensation, MessageView
from readcache.context.formed import repaired_each, sendable, without_blanks
from readcache.context.split import OWN_HEADINGS
from readcache.core.messages.blocks import Raw
from readcache.core.messages.messages import Kind, Message, normalise, normalise_one, plain
from readcache.core.model.text import digest

NOT_RECORDED = "a change of the list could not be recorded: continue with the returned list"


class RecordedList:
    """The conversation of a compactor. `follow` comes first at each step, then `record` after each change, then
    `returned`.

    `trouble`: why condensations are not applied to the given list, or "". `may_wait`: calls at the end that wait for
    their results are part of the list. `may_store`: the log has every condensation before the next one.
    """

    def __init__(self) -> None:
        self.condensations: list[Condensation] = []
        self.requested = False
        self.trouble = ""
        self.may_wait = self.may_store = True
        self._view = MessageView()
        self._whole: list[Message] = []  # copies, because harnesses change their messages in place
        self._returned: list[Message] = []
        self._given: Sequence[Message] = []
        self._left: Sequence[Message] | None = None  # a cache

    def follow(self, given: Sequence[Raw], *, may_wait: bool = True) -> None:
        """Take the list that the harness gives. Only new messages are read, unless it changed other messages."""
        self.trouble, self.may_wait, self._left = "", may_wait, None
        for known in (self._whole, self._returned):
            if _starts_with(given, known):
                new = [normalise_one(plain(raw)) for raw in given[len(known) :]]
                self._given = [*known, *new]
                self._extend(new)
                return
        self._given = normalise([plain(raw) for raw in given])
        known = self._returned
        if known and self._given[: len(known)] == known:  # the same texts: the marks for the prompt cache have moved
            self._view.renew({id(old.raw): new for old, new in zip(known, self._given, strict=False)})
            self._extend(self._given[len(known) :])
        else:
            texts = (part.text for message in self._given for part in message.parts if part.kind is Kind.TEXT)
            is_shortened = any(text.startswith(OWN_HEADINGS) for text in texts)
            self.apply(self._given, [] if is_shortened else self.condensations)

    def resume(self, given: Sequence[Raw], condensations: Sequence[Condensation]) -> None:
        """Take the whole list, and the condensations that an earlier process made of it."""
        self.trouble, self.may_wait = "", True
        self._given = normalise([plain(raw) for raw in given])
        self.condensations = list(condensations)
        self.apply(self._given, condensations)

    def apply(self, given: Sequence[Message], condensations: Iterable[Condensation]) -> None:
        """Start again with these messages and the condensations that can be applied to them."""
        told = list(condensations)
        self._view, self._whole, self._left = MessageView(given, told), list(given), None
        left_out = told[len(self._view.condensations) :]
        if left_out:
            ids = ", ".join(each.id for each in left_out)
            self.trouble = f"not applied, because the list differs: condensation {ids}"
            self._view = MessageView(given, self._view.condensations)  # without the ones that wait
            self.condensations = self._view.condensations[:]

    def restart(self, given: Sequence[Message]) -> None:
        """Start again with messages that cannot be compared."""
        self._given, self._whole, self._returned = given, [], []
        self._view, self._left = MessageView(given), None

    def _extend(self, new: Sequence[Message]) -> None:
        self._view.extend(new)
        self._whole += new

    @property
    def left(self) -> Sequence[Message]:
        """The messages that are left, each with its name, before messages of one speaker are joined."""
        if self._left is None:
            left = self._view.left
            self._left = left if self.may_wait else [m for m in repaired_each(left, may_wait=False) if m is not None]
            if self._view.condensations or not _are_same(self._left, self._given):
                self._left = without_blanks(self._left)
        return self._left

    def record(
        self, after: Sequence[Message], why: str, *, saved: int = 0, sections: Mapping[str, str]
    ) -> Condensation | None:
        """Record that the messages are now `after`. Return the condensation, or None if nothing changed or it could not
        be recorded. `saved`: in tokens. `sections`: the ID of each restored section, by its text."""
        before = self.left
        if _are_same(before, after):
            return None
        made = condensation(before, after, why, f"{len(self.condensations) + 1}", sections, saved)
        made = replace(made, replaced=self._view.digest_of(made.forgotten) if made.texts() else "")
        self._view.condense(made)
        self._left = None
        if self._view.waiting or not _are_same(self.left, without_blanks(after)):
            self._view, self._whole, self._left = MessageView(after), list(after), None
            self.trouble = joined(self.trouble, NOT_RECORDED)
            return None
        self.condensations.append(made)
        return made

    def returned(self, given: list[Any]) -> list[Any]:
        """Return the list for the harness: its own list if nothing changed, otherwise its own object for each unchanged
        message, and copies of the others."""
        is_given = not self._view.condensations and _are_same(self.left, self._given)
        sent = self._given if is_given else sendable(self.left, self._view.samples)
        self._returned = list(sent)
        if is_given or _are_same(sent, self._given):
            return given
        own = {id(message.raw): raw for message, raw in zip(self._given, given, strict=True)}
        return [own[id(m.raw)] if id(m.raw) in own else plain(m.raw) for m in sent]


def joined(*texts: str) -> str:
    """Return these texts as one, without the empty ones."""
    return "; ".join(filter(None, texts))


def condensation(
    before: Sequence[Message],
    after: Sequence[Message],
    why: str,
    number: str,
    sections: Mapping[str, str],
    saved: int,
) -> Condensation:
    """Return the condensation that makes the list `after` of the list `before`. Messages without a name are new."""
    old = {message.name: message for message in before}
    named = {message.name for message in after if message.name}
    new = [at for at, message in enumerate(after) if not message.name]
    texts = [after[at].text for at in new]
    written = next((text for text in texts if text.startswith(summary.HEADING)), None)
    restored = next((text for text in texts if text.startswith(summary.RESTORED_HEADING)), None)
    follows = (after[new[0] - 1].name if new[0] else "") if new else None
    pairs = [(old[message.name], message) for message in after if message.name in old]
    changes = tuple(change for pair in pairs for change in changes_between(*pair))
    forgotten = frozenset(old) - named
    seen = repr((why, sorted(forgotten), written, follows, restored, changes))
    return Condensation(
        id=f"{number}-{digest(seen)[:8]}",
        why=why,
        forgotten=forgotten,
        summary=written,
        after=follows,
        restored=None if restored is None else sections.get(restored, ""),  # "": the log does not have it
        section=restored,
        changes=changes,
        tokens_saved=saved,
    )


def _starts_with(given: Sequence[Raw], known: Sequence[Message]) -> bool:
    if len(given) < len(known):
        return False
    return all(m.raw == raw or m.raw == plain(raw) for m, raw in zip(known, given, strict=False))


def _are_same(one: Sequence[Message], other: Sequence[Message]) -> bool:
    same = len(one) == len(other)
    return same and all(a is b or (a == b and a.raw == b.raw) for a, b in zip(one, other, strict=True))
