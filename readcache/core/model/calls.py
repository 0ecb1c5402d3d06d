"""The calls of one reader so far: their numbers, the counters, and repeated requests. No omission depends on them.

`CallIds` finds the call IDs that do not name one call. Some models number their calls from 0 in each response.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from readcache.core.model.call import shown_label
from readcache.core.model.events import (
    Account,
    Amended,
    Cleared,
    Closed,
    Compacted,
    Delivered,
    Event,
    Failed,
    Forgot,
    Missed,
    Origin,
    Wrote,
)
from readcache.core.model.key_view import Delivery, Invalidation
from readcache.core.model.reply import Outcome, Reason
from readcache.core.model.rereads import LostLines, RereadDetector
from readcache.core.model.unconfirmed import counted, lacks_text, shown_chars

# Answers remembered to recognise a retry. Only the last few calls matter for that.
MOST_REPEATS = 64
# Commands that may put other files into the tree. They do not count as writes: the next read shows what they did.
_CHANGES_THE_TREE = re.compile(
    r"\bgit\s+(?:-[Cc]\s+\S+\s+|-(?![Cc]\s)\S+\s+){0,8}"  # few and disjoint, so that no command takes long
    r"(?:checkout|switch|restore|stash|reset|pull|merge|rebase|revert|cherry-pick|apply|am|clean)\b"
)
MISSED = "missed"  # the counter of tool results that were not judged


class Calls:
    """A fold of the log, next to the view. It numbers and counts the calls."""

    def __init__(self) -> None:
        self.number = 0  # calls so far, including forgotten ones
        self.tokens = 0  # tokens delivered so far
        self.closed = 0  # number of the newest call when a process last closed its session
        self.counts: Counter[str] = Counter()  # the counters that `Session.stats` shows
        self.reread_detector = RereadDetector()
        self._lost = LostLines()
        # Number of a call with an omission -> tokens that no longer count as saved, because they were read again.
        self.immediate_rereads: dict[int, int] = {}
        self._saved: dict[int, int] = {}  # number of such a call -> tokens that count as saved
        self._at_once, self._batch = 0, ""  # the first of the newest parallel calls, and their batch
        self._newest: dict[str, int] = {}  # label as markers show it -> number of the newest such call
        self._under_way = ""  # the ID of the newest call
        self._answered = 0  # the number of the newest call that was answered
        self.replaced: dict[int, int] = {}  # number of a call that was judged again -> number of the replaced answer
        # True if the model was asked after the last removal: then the provider has cached everything that is visible.
        self._is_cached = False
        # request -> the number of its last call, if that omitted lines, and how many such answers came in a row;
        # a partial reply counts half
        self._omitted: dict[str, tuple[int, float]] = {}
        self.cleared: defaultdict[tuple[str, str], list[str]] = defaultdict(list)  # (call ID, digest) -> notes
        self._repeats: list[int] = []  # numbers of calls that had an omission or were retries, ascending
        self._writes = (0, 0)  # the last two calls that wrote; two, because a call's own write comes before its read

    def number_of(self, call_id: str) -> int:
        """Return the number for the next event of this call: the current call's number, or the next number if the
        current call was answered or has another ID."""
        # Some models number their calls from 0 in each response, so the ID of an answered call may name a new call.
        is_current = self.number > self._answered and call_id == self._under_way
        return self.number if is_current else self.number + 1

    def repeats(self, before: Delivered, event: Delivered | Wrote) -> bool:
        """Return True if `event` belongs to the call that `before` answered: the call was judged again before any other
        call."""
        number = event.call if isinstance(event, Wrote) else event.when.call
        if before.when.call == number:
            return True
        # The numbers tell it, not the newest answer: a log may be folded without the calls about other files.
        if before.when.call != number - 1 or before.account is None:
            return False
        if isinstance(event, Wrote) or event.account is None:  # an event that is logged before the result
            return before.label == event.label
        return (before.account.request, before.when.batch) == (event.account.request, event.when.batch)

    def newest_of(self, label: str) -> int:
        """Return the number of the newest call whose label looks the same in a marker; 0 if there is none."""
        return self._newest.get(shown_label(label), 0)

    def since_omission(self, request: str, number: int) -> int | None:
        """Return the number of calls between the last answer to `request` and call `number`. Return None if that answer
        had no omission, or if the agent wrote in between: a read after a write asks for news.

        Other answers with omissions, and retries, do not count.
        """
        at, _ = self._omitted.get(request, (None, 0))
        if at is None or any(at < write < number for write in self._writes):
            return None
        return number - 1 - at - (len(self._repeats) - bisect_right(self._repeats, at))

    def omissions_of(self, request: str) -> float:
        """Return how many of the last consecutive answers to `request` omitted everything. An answer that omitted a
        part counts half."""
        return self._omitted.get(request, (0, 0))[1]

    def deliver(self, event: Delivered) -> None:
        """Record a delivery."""
        self.number, self._under_way = event.when.call, event.call_id
        if event.origin is not Origin.COMMAND:
            self._answered = self.number
        self.tokens = event.when.tokens
        self._newest[shown_label(event.label)] = event.when.call
        if event.account is not None and _CHANGES_THE_TREE.search(event.label):
            self._expect_news()
        if not event.when.batch or event.when.batch != self._batch:
            self._at_once, self._batch = event.when.call, event.when.batch
        if event.account is not None:
            self._count_rereads(self.reread_detector.deliver(event, event.account))
            self._read(event)
            self._is_cached = True
            self._count(event)
            self._note(event.account, event.when.call)
        elif event.origin is Origin.RESTORED:
            self._lost.put_back(event)

    def take_back(self, answers: Iterable[Delivered], number: int) -> None:
        """Record that the call is answered again, with this number. Nobody was shown the earlier answers."""
        for event in answers:
            if event.account is not None:
                self.replaced[number] = event.when.call
            self._uncount(event)

    def amend(self, before: Delivered, after: Delivered, *, lost: bool) -> None:
        """Record a new text of a reply, or the first text of a reply that was unconfirmed or logged without its text.
        `lost`: as in `Amended`.

        Nothing was saved if the new text is the whole output. Nothing was saved either if the harness truncates the
        reply immediately, because it would have truncated the longer output too.
        """
        is_new = before.unconfirmed or lacks_text(before)  # if False, its lines were recorded before
        if is_new and before.account is not None:
            self._count_rereads(self.reread_detector.show(after))
            self._read(after)
        self._recount(before, after)
        repaired = {marker.wording for marker in after.markers} - {marker.wording for marker in before.markers}
        if repaired and not is_new and self._is_cached and before.when.call < self._at_once:
            self.counts["cache_writes"] += 1  # only a cached marker changed: readcache causes this write
        self._is_cached = self._is_cached and before.unconfirmed
        if lost and len(after.text) < len(before.text):
            self._remove(len(before.text) - len(after.text))
            if before.when.call >= self._at_once:
                self._save_nothing(before.when.call)

    def write(self, event: Wrote, *, is_news: bool) -> Invalidation:
        """Record a write. Return what makes older deliveries of its files stale. `is_news`: the call wrote a file, or
        may have written a file that was shown."""
        if event.call_id:  # if empty, another reader of the session wrote
            self.number, self._under_way = event.call, event.call_id
        if self._lost.write(event.keys) and event.call_id:
            self.counts["turns_avoided"] += 1
        if is_news:
            self._expect_news()
        return Invalidation(written=True, label=event.label)

    def _expect_news(self) -> None:
        """Record that the current call may have changed files: a later repeat is a check, not a retry."""
        if self.number != self._writes[1]:
            self._writes = (self._writes[1], self.number)
            self.reread_detector.clear()

    def note(self, event: Event) -> None:
        """Record an event that changes nothing in the conversation."""
        if isinstance(event, Closed):
            self.closed = self.number
        elif isinstance(event, Failed):
            self.counts[event.cause] += 1
        elif isinstance(event, Missed):
            self.counts[MISSED] += event.count
        elif isinstance(event, Cleared):
            self.cleared[event.call_id, event.replaced].append(event.note)

    def lose(self, texts: Sequence[Delivered]) -> None:
        """Record that these texts left the conversation."""
        self._lost.lose((mapped for event in texts for mapped in event.source_map), self.number)
        self._remove(sum(len(event.text) for event in texts))

    def _remove(self, chars: int) -> None:
        if chars > 0:
            self.counts["removed_chars"] += chars

    def keep(self, stays: Callable[[str], bool]) -> None:
        """Record that the calls for which `stays(call_id)` is False left the conversation."""
        self.reread_detector.clear()
        self._is_cached = False
        if not stays(self._under_way):
            self._under_way = ""

    def rewind(self, number: int) -> None:
        """Forget the omissions after call `number`."""
        self._omitted = {request: last for request, last in self._omitted.items() if last[0] <= number}

    def _read(self, event: Delivered) -> None:
        reread = self._lost.read(event)
        if reread.is_one:
            self.counts["reread_calls"] += 1
            self.counts["reread_answered"] += reread.is_answered

    def _count_rereads(self, calls: Iterable[int]) -> None:
        for call in calls:
            self.immediate_rereads[call] = tokens = self._save_nothing(call)
            self.counts["bounces"] += 1
            self.counts["tokens_bounced"] += tokens

    def _save_nothing(self, call: int) -> int:
        """Stop counting the tokens that the call saved. Return their number."""
        tokens = self._saved.pop(call, 0)
        self.counts["tokens_saved"] -= tokens
        return tokens

    def _count(self, event: Delivered) -> None:
        account = counted(event)
        if account is not None:
            if account.outcome is not Outcome.FULL:
                self._saved[event.when.call] = account.tokens_saved
            self._add(account, shown_chars(event))

    def _uncount(self, event: Delivered) -> None:
        account = counted(event)
        if account is not None:
            if account.outcome is not Outcome.FULL:
                self.reread_detector.take_back(event.when.call)
                self.counts["tokens_saved"] += account.tokens_saved - self._saved.pop(event.when.call, 0)
            self._add(account, shown_chars(event), times=-1)
            if not self.counts[account.reason.value]:
                del self.counts[account.reason.value]

    def _add(self, account: Account, shown_chars: int, *, times: int = 1) -> None:
        saved = "tokens_saved" if account.outcome is not Outcome.FULL else "tokens_saved_if_on"
        self.counts["calls"] += times
        self.counts[account.reason.value] += times
        self.counts["output_chars"] += times * account.output_chars
        self.counts["shown_chars"] += times * shown_chars
        self.counts[saved] += times * account.tokens_saved

    def _note(self, account: Account, call: int) -> None:
        left_out = account.outcome is not Outcome.FULL
        _, in_a_row = self._omitted.pop(account.request, (0, 0))
        if left_out:
            self._omitted[account.request] = (call, in_a_row + (0.5 if account.outcome is Outcome.PARTIAL else 1))
        if left_out or account.reason is Reason.INSISTED:
            self._repeats.append(call)
            del self._repeats[:-MOST_REPEATS]

    def _recount(self, before: Delivered, after: Delivered) -> None:
        """Count the text that was finally shown instead of the text that was counted before."""
        account = counted(after)
        if account is None or account == counted(before):
            return
        self._uncount(before)
        self._count(after)
        if account.outcome is Outcome.FULL and self._omitted.get(account.request, (0, 0))[0] == before.when.call:
            del self._omitted[account.request]  # nobody has to request the omitted lines again: they were shown


class CallIds:
    """A fold of the log, next to the view. It follows which calls each ID has named."""

    def __init__(self) -> None:
        self.reused: set[str] = set()  # IDs of more than one call: such an ID does not say which call is meant
        self.doubted: set[str] = set()  # calls that are not visible but may still be in the conversation
        self.marked = 0  # number of texts with markers in the log so far
        self._numbers: dict[str, int] = {}  # call ID -> number of the newest call with this ID

    def name(self, event: Delivered | Wrote, texts: Sequence[Delivery], calls: Calls) -> tuple[bool, list[Delivered]]:
        """Record an event of a call. `texts`: the visible texts under its ID. Return (is_shared, again): `is_shared` is
        True if `texts` contains a text of another call, and `again` lists the earlier answers of this call."""
        number = event.call if isinstance(event, Wrote) else event.when.call
        again = [text.event for text in texts if calls.repeats(text.event, event)]
        is_shared = not isinstance(event, Wrote) and any(
            text.call != number or text.event.label != event.label for text in texts
        )
        if not again and (is_shared or self._numbers.get(event.call_id, number) != number):
            self.reused.add(event.call_id)
        self._numbers[event.call_id] = number
        return is_shared, again

    def known(self, is_visible: Callable[[str], bool]) -> frozenset[str]:
        """Return the IDs that name, or may name, a call that is not visible: IDs of more than one call, and IDs of
        calls that are no longer in the conversation."""
        return frozenset(self.reused.union(call_id for call_id in self._numbers if not is_visible(call_id)))

    def apply(self, event: Event) -> None:
        """Record an event: which calls are in doubt, and whether a text has markers."""
        if isinstance(event, (Delivered, Amended)):
            self.marked += bool(event.markers)
        if isinstance(event, Delivered):
            self.doubted.discard(event.call_id)
        elif isinstance(event, Forgot):
            for call_id in event.call_ids:  # if the ID comes again, it names another call, even if the log begins here
                self._numbers.setdefault(call_id, 0)
            self.doubted = (self.doubted | event.call_ids) if event.doubted else (self.doubted - event.call_ids)
        elif isinstance(event, Compacted):
            self.doubted.clear()
            if not event.kept:  # no store looks up what was forgotten before
                self._numbers = {call_id: number for call_id, number in self._numbers.items() if number}
