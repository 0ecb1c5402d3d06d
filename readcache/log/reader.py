"""Judge calls for one reader, and log what its harness reports. Sessions, shims, servers and adapters share this small
interface.

    reader = Reader(Log(open_store, session_id, agent_id, time.time), Rules(policy, session_tag(session_id, agent_id)))
    pending = reader.judge(call)
    print(pending.reply.text)                      # without a lock; the reply does not count as seen yet
    pending.commit()                               # now it counts as seen
    reader.tell("call_7", lambda view: [Rewound("call_7")])

Nothing here runs a command or reads a file. If readcache fails, the real output goes through and the failure is
counted. The only error raised is UsageError, for a call that the log does not have.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from readcache.core.judging.compose import compose, pass_through
from readcache.core.judging.judge import decide
from readcache.core.judging.marker import RECALL
from readcache.core.judging.writes import events_after, events_before, wrote_event
from readcache.core.model.call import Call, with_frame
from readcache.core.model.errors import StoreError, UsageError
from readcache.core.model.events import Closed, Compacted, Delivered, Event, Forgot, Missed, Origin, Rewound
from readcache.core.model.policy import Mode, Rules, is_answer
from readcache.core.model.reply import Outcome, Reason, Reply
from readcache.core.model.unconfirmed import confirmed, mark_unconfirmed, with_amended, without_text
from readcache.core.model.view import View
from readcache.core.sync import resume
from readcache.core.sync.amend import amend, amend_answer, clip_delivery, kept_of_body
from readcache.log.log import Instant, Log, Position
from readcache.log.store import StoreGone
from readcache.log.telemetry import LISTENERS, tell_answered, tell_counted

if TYPE_CHECKING:
    from readcache.core.restore.plan import Compaction, RestorePlan
    from readcache.core.sync.sync import Reconciler, Synced


# The store keys of the readers that this process has answered and not closed. It is alive, so they did not crash.
_ANSWERING: set[tuple[str, str, str]] = set()


@dataclass(frozen=True, slots=True)
class Pending:
    """The reply to one call, and the function that logs that it was shown."""

    reply: Reply
    _commit: Callable[[float | None], None] = lambda _: None

    def commit(self, at: float | None = None) -> None:
        """Log that the reply was shown. Call it at most once. `at`: when it was shown, in seconds by the log's clock;
        None for now."""
        self._commit(at)


class Confirm(Enum):
    """The replies that count as shown as soon as they are logged."""

    ALL = "all"
    FULL = "full"  # replies that omit nothing: a host shows the same bytes even if it discards the reply
    NONE = "none"


NEWEST_NAMED = 5  # newest events whose calls the error for an unknown call names


class Reader:
    """One reader: its log, and the rules that answer its calls.

    `one_call`: this process judges a single call, and the view has only the records that matter to it. `resumes`: the
    process may continue after another one was killed. The last results of that process then count as shown only when
    the harness says so. `is_off`: returns True while the user has switched readcache off. Replies are then in full and
    no source for later ones. Reports of the harness are logged as always.
    """

    def __init__(
        self,
        log: Log,
        rules: Rules,
        *,
        one_call: bool = False,
        resumes: bool = False,
        is_off: Callable[[], bool] = lambda: False,
    ) -> None:
        self.log = log
        self.rules = rules
        self._is_off = is_off
        self._one_call = one_call
        self._resumes = resumes
        self._answered = False  # this process has used the reader since it was last closed
        self.ends_with_result = False  # True in a process of a hook, which answers one event
        self._reconciler: Reconciler | None = None  # the state of the last `sync`

    def judge(
        self, call: Call, *, confirm: Confirm = Confirm.NONE, began: float | None = None, local: bool = False
    ) -> Pending:
        """Judge one call. If readcache fails, the reply is the real output. `began`: when the call started, in seconds
        by the log's clock. `local`: the files are on this machine. This is where a recall is answered for every door,
        whatever the process printed.

        Until the reply is committed, nothing of it counts as seen and every figure counts it as shown in full, unless
        `confirm` says otherwise. If nothing is omitted and the call wrote nothing, only `Pending.commit` logs the call:
        nothing is written before the reply is printed.
        """
        if self.rules.policy.mode is Mode.OFF:
            return Pending(pass_through(call, Reason.MODE_OFF))
        if self._is_off():
            call = replace(call, skip_reason=Reason.MODE_OFF)
        if call.skip_reason is None and is_answer(call.label, self.rules.policy):
            call = replace(call, skip_reason=Reason.NEVER)
        since = time.perf_counter()
        try:
            if RECALL in call.label:
                from readcache.log.recalling import answered_recall

                call = answered_recall(call, self.log, self.rules, local=local)
            pending = self._judge(call, began, confirm)
        except Exception as error:  # a store's failure or a bug in readcache must not cost the agent its output
            reason = self.log.fail(call.call_id, error)
            tell_counted(self.rules.host, {reason.value: 1})
            if self.log.view.is_visible(call.call_id):  # from now on the ID names the newer text
                self.log.append_later([Forgot(frozenset([call.call_id]))])
            if writes := call.reading.writes:
                number = self.log.view.calls.number_of(call.call_id)
                self.log.append_later([wrote_event(call, number, writes, self.rules.policy)])
            pending = Pending(pass_through(call, reason))
        tell_answered(self.rules.host, pending.reply, time.perf_counter() - since)
        return pending

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[View]:
        """Yield the view within a transaction of the log. Then tell the listeners how it changed the counters."""
        changed: dict[str, int] = {}
        with self.log.lock:
            with self.log.transaction() as view:
                if in_doubt := self._in_doubt(view):  # an earlier process left the session open
                    self.log.append([Forgot(in_doubt, doubted=True)])
                before = dict(view.calls.counts) if LISTENERS else None
                yield view
                if before is not None:
                    changed = {name: count - before.get(name, 0) for name, count in view.calls.counts.items()}
            self._has_gone_on()
        if any(changed.values()):
            tell_counted(self.rules.host, {name: count for name, count in changed.items() if count})

    def _judge(self, call: Call, began: float | None, confirm: Confirm) -> Pending:
        log, policy = self.log, self.rules.policy
        if self._one_call and not policy.any_output:
            log.begin_about(call.reading.keys, [call.digest])
        with self._transaction() as view:
            if began is not None and call.started < 0:
                call = replace(call, started=log.calls_at(began))
            writes = call.reading.writes
            if writes:
                log.append(events_before(view, call, policy))
            judgement = decide(view, call, self.rules, log.line_index())
            answered, delivered = compose(view, call, judgement, self.rules)
            reply = with_frame(answered, call)
            if policy.clip is not None:
                delivered = clip_delivery(delivered, kept_of_body(policy.clip, call.head, delivered.text, call.tail))
            if call.head or call.tail:
                delivered = replace(delivered, head=call.head, tail=call.tail)
            is_full = reply.outcome is Outcome.FULL
            is_confirmed = confirm is Confirm.ALL or (confirm is Confirm.FULL and is_full)
            if is_full and not writes and not is_confirmed:
                return Pending(reply, partial(self._log_shown, delivered, log.position(), view.calls.tokens))
            logged = delivered
            if delivered.text and not is_confirmed:  # a delivery without text is never a source: nothing to confirm
                logged = mark_unconfirmed(delivered, call.output, judgement.source_map)
            after = events_after(call, delivered.when.call, policy) if writes else []
            # The processes of parallel calls need not wait for the end of this one: the host shows the bytes anyway.
            ends = [Closed()] if self.ends_with_result and confirm is Confirm.FULL and is_full else []
            log.append([logged, *after, *ends])
        return Pending(reply, partial(self._confirm, logged))

    def _confirm(self, logged: Delivered, at: float | None) -> None:
        """Log that this reply was shown. Do nothing if it no longer waits for that."""
        if logged.unconfirmed:
            call_id = logged.call_id
            self.tell(call_id, lambda view: [confirmed(call_id)] if view.waiting.get(call_id) == logged else [], at)

    def _log_shown(self, delivered: Delivered, end: Position, tokens: int, at: float | None) -> None:
        """Log a delivery after the events that were logged while it was shown. Log it without its text if one of them
        may have outdated or removed it. `end`, `tokens`: the log's end and its calls' tokens when it was judged.
        """
        try:  # a failure is not retried later, because an event in between might have removed the text
            with self._transaction() as view:
                after = view.calls.tokens + delivered.when.tokens - tokens
                when = replace(delivered.when, call=view.calls.number_of(delivered.call_id), tokens=after)
                is_first = self.log.only_grew_since(end) and not view.of_call(delivered.call_id)
                delivered = replace(delivered, when=when)
                shown = with_amended(delivered, confirmed(delivered.call_id)) if delivered.text else delivered
                self.log.append([shown if is_first else without_text(delivered)], at)
        except StoreError as error:
            self.log.fail(delivered.call_id, error)

    def _in_doubt(self, view: View) -> frozenset[str]:
        """Return the calls of a killed process that may not be in the conversation; none once the store took them."""
        store_key = self.log.store_key()
        return resume.unconfirmed(view) if self._resumes and store_key and store_key not in _ANSWERING else frozenset()

    def _has_gone_on(self) -> None:
        """Note that the store took the transaction. Until then, the calls in doubt stay in doubt."""
        self._resumes = False
        if not self._answered:
            self._answered = True
            if (store_key := self.log.store_key()) is not None:
                _ANSWERING.add(store_key)

    def calls_so_far(self, began: Instant | None = None) -> int:
        """Return the number of the last call that was logged when this one began: later calls are not a source for it.
        Return 0 if the mode is off, or the store fails. `began`: see `Log.now`; None: it begins now. The moment is
        taken before waiting for the store."""
        if self.rules.policy.mode is Mode.OFF:
            return 0
        began = began or self.log.now()
        try:
            with self.log.transaction():
                return self.log.calls_at(*began)
        except StoreGone as error:  # the call goes to a new store
            self.log.fail("", error)
        except StoreError:  # counted when the call is logged
            pass
        return 0

    def close(self, *, in_order: bool) -> None:
        """Stop answering, because the process ends. `in_order`: the replies that it gave are in the conversation."""
        calls = self.log.view.calls
        if self._answered and in_order and calls.closed < calls.number:
            self.tell("", lambda _: [Closed()])
        self._answered = False
        if (store_key := self.log.store_key()) is not None:
            _ANSWERING.discard(store_key)

    def note_writes(self, call: Call) -> None:
        """Log the writes of a command whose output readcache did not get."""
        if not call.reading.writes or self.rules.policy.mode is Mode.OFF:
            return
        if self._one_call:
            with contextlib.suppress(StoreError):  # `tell` below fails again, and counts it
                self.log.begin_about((), ())
        unread = replace(call, reading=replace(call.reading, claims=()))  # no lines were shown before the writes
        self.tell(call.call_id, lambda view: events_before(view, unread, self.rules.policy))

    def tell(self, call_id: str, events: Callable[[View], list[Event]], at: float | None = None) -> None:
        """Log the events that `events` makes of the harness's report. Events that the store does not take now are kept
        until it does. `at`: when they happened, in seconds by the log's clock; None for now."""
        log = self.log
        with log.lock:
            made: list[Event] | None = None
            try:
                with self._transaction() as view:
                    made = events(view)
                    log.append(made, at, keep=True)
            except StoreError as error:
                log.fail(call_id, error)
                if made is None:
                    log.append_later(events(log.view))

    def forget(self, call_id: str) -> None:
        """Log that the reply to this call was never shown."""
        self.tell(call_id, lambda _: [Forgot(frozenset([call_id]))])

    def commit(self, call_id: str) -> None:
        """See `Session.commit`. Raise UsageError for an unknown call; nothing is committed then."""
        self.tell(call_id, lambda view: [confirmed(call_id)] if call_id in view.waiting else [])
        if not self.log.view.is_visible(call_id):
            self._check_call(call_id, "nothing was committed")

    def missed(self, count: int, why: str) -> None:
        """See `Session.missed`."""
        if count > 0 and self.rules.policy.mode is not Mode.OFF:
            self.tell("", lambda _: [Missed(count, why)])

    def settle(self, call_id: str, text: str, reason: Reason | None = None) -> None:
        """See `Session.settle`. Raise UsageError for an unknown call; nothing is recorded then. `reason`: why the whole
        output was shown."""

        def events(view: View) -> list[Event]:
            if call_id in view.waiting:
                amended = amend_answer(view.waiting[call_id], text, reason)
                return [replace(amended, erases=not amended.confirms)]
            shown = [d.event for d in view.of_call(call_id) if d.event.origin is not Origin.COMMAND]
            # The replaced text can never be a source again, so the store erases it.
            changed = [event for event in shown if event.text != text and event.credited]
            return [replace(amend(event, text), erases=True) for event in changed]

        self._check_call(call_id, "nothing was settled")
        self.tell(call_id, events)

    def rewind(self, call_id: str) -> None:
        """See `Session.rewind`. Raise UsageError for an unknown call. Nobody knows then which calls came after it, so
        everything counts as gone."""
        self._resumes = False
        try:
            self._check_call(call_id, "everything now counts as gone")
        finally:
            self.tell(call_id, lambda _: [Rewound(call_id)])

    def _check_call(self, call_id: str, outcome: str) -> None:
        """Raise UsageError for a call that is not in the log. Never raise if the log cannot be read, or if a failed
        call may be missing in it."""
        log = self.log
        if self.rules.policy.mode is Mode.OFF or self.view.is_visible(call_id) or log.unlogged():
            return
        try:
            known = log.call_ids()
        except StoreError:  # counted when something is stored
            return
        if call_id not in known:
            newest = ", ".join(dict.fromkeys(reversed(known[-NEWEST_NAMED:]))) or "none"
            raise UsageError(f"unknown call {call_id!r} (the newest: {newest}); {outcome}")

    def sync(self, messages: Sequence[Mapping[str, Any]], *, gives_back: bool = True, batch: str = "") -> Synced:
        """Make the view agree with the message list, and return the texts to rewrite in it. See `Session.sync`. For
        `gives_back`, see `Reconciler.reconcile`."""
        from readcache.core.sync.sync import Reconciler, Synced

        synced = Synced()
        self._resumes = False
        reconciler = self._reconciler = self._reconciler or Reconciler()

        def events(view: View) -> list[Event]:
            nonlocal synced
            try:
                synced = reconciler.reconcile(
                    view, messages, tag=self.rules.tag, log=self.log.texts, gives_back=gives_back, batch=batch
                )
            except Exception as error:  # a list that cannot be understood does not prove any text visible
                self._reconciler = None
                self.log.fail("", error)
                return [Compacted(frozenset())]
            return list(synced.events)

        self.tell("", events)
        return synced

    def inputs(self) -> list[tuple[str, str]]:
        """Return the calls of the message list as it was last synced: (ID, the call's text)."""
        return self._reconciler.inputs() if self._reconciler is not None else []

    def compacted(self, kept: frozenset[str], restored: RestorePlan | None, *, restored_id: str) -> Compaction:
        """See `Session.compacted`. `restored_id` names the restored section."""
        from readcache.core.restore.plan import Compaction
        from readcache.core.sync.compaction import compaction_events

        tokens = self.rules.policy.tokens(restored.render()) if restored is not None else 0
        done = Compaction()
        self._resumes = False

        def events(view: View) -> list[Event]:
            nonlocal done
            known: dict[str, Any] = {"restored_id": restored_id, "tokens": tokens, "log": self.log.own_events}
            done, what = compaction_events(view, kept, restored, **known)
            return what

        self.tell(restored_id, events)
        return done

    def inherit(self, parent: Reader) -> None:
        """Start with a copy of another reader's view."""
        from readcache.core.sync.compaction import inherited_events

        self._resumes = False
        events = inherited_events(parent.view, parent.log.own_events)
        in_doubt = parent._in_doubt(parent.log.view)
        events += [Forgot(in_doubt, doubted=True)] if in_doubt else []
        self.tell("", lambda _: events)

    @property
    def view(self) -> View:
        """The view as it is now, or as it was last if the store cannot be read. Read it, do not change it."""
        with contextlib.suppress(StoreError), self.log.transaction():
            pass
        return self.log.view
