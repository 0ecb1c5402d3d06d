"""What goes in and out between a tool's output and one reader, whatever fails: the small interface that sessions,
shims, servers and adapters share.

    reader = Reader(Log(open_store, session_id, agent_id, time.time), Rules(policy, session_tag(session_id)))
    pending = reader.judge(call)
    print(pending.reply.text)                      # no lock is held, and nothing of the reply counts as seen
    pending.commit()                               # now it does; without this, nothing ever will
    reader.tell("call_7", lambda view: [Rewound("call_7")])

Nothing here runs a command, reads a file or raises: on any failure of ours the real output goes through, and the
failure is counted.
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
from readcache.core.judging.writes import events_after, events_before, wrote_event
from readcache.core.model.call import Call
from readcache.core.model.errors import StoreError, UsageError
from readcache.core.model.events import Closed, Compacted, Delivered, Event, Failed, Forgot, Missed, Origin, Rewound
from readcache.core.model.frame import with_frame
from readcache.core.model.policy import Mode, Rules
from readcache.core.model.reply import Outcome, Reason, Reply
from readcache.core.model.unconfirmed import confirmed, mark_unconfirmed, with_amended, without_text
from readcache.core.model.view import View
from readcache.core.shell.never import is_answer
from readcache.core.sync import resume
from readcache.core.sync.amend import amend, amend_answer, clip_delivery, kept_of_body
from readcache.log.log import Instant, Log, Position
from readcache.log.store import StoreGone
from readcache.log.telemetry import LISTENERS, tell_answered, tell_counted

if TYPE_CHECKING:
    from readcache.core.restore.plan import Compaction, RestorePlan
    from readcache.core.sync.sync import Reconciler, Synced


# The places of the readers that this process has answered and not closed: it is alive, so that they did not crash.
_ANSWERING: set[tuple[str, str, str]] = set()


@dataclass(frozen=True, slots=True)
class Pending:
    """The reply to one call, and the function that logs that it was shown."""

    reply: Reply
    _commit: Callable[[float | None], None] = lambda _: None

    def commit(self, at: float | None = None) -> None:
        """Log that the reply was shown. Do it at most once. `at`: when that was, by the log's clock; None for now."""
        self._commit(at)


class Confirm(Enum):
    """The replies that count as shown as soon as they are logged."""

    ALL = "all"
    FULL = "full"  # those that omit nothing: a host shows the same bytes whatever becomes of our answer
    NONE = "none"


NEWEST_NAMED = 5  # events whose calls are named to a harness that named another one


class Reader:
    """One reader: its log, and the rules by which its calls are answered. `one_call`: this process judges a single
    call, and the view holds only what matters to that. `resumes`: it may go on where a process was killed, so that the
    last results of that one count as shown only when the harness says so. `is_off`: True while the user has switched
    readcache off: replies are in full and no source for later ones, and what the harness tells is logged as always."""

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
        self._answered = False  # has this process answered a call that is not closed?
        self._reconciler: Reconciler | None = None  # what the last `sync` found

    def judge(self, call: Call, *, confirm: Confirm = Confirm.NONE, began: float | None = None) -> Pending:
        """Judge one call; on any failure of ours, the reply is the real output. `began`: when the call started, by the
        log's clock.

        Until the reply is committed, nothing of it counts as seen and every figure counts it as shown in full, unless
        `confirm` says otherwise. Printing does not wait for the store if nothing is omitted from a call that wrote
        nothing: only `Pending.commit` logs such a call.
        """
        if self.rules.policy.mode is Mode.OFF:
            return Pending(with_frame(pass_through(call, Reason.MODE_OFF), call))
        if self._is_off():
            call = replace(call, skip_reason=Reason.MODE_OFF)
        if call.skip_reason is None and is_answer(call.label, self.rules.policy):
            call = replace(call, skip_reason=Reason.NEVER)
        since = time.perf_counter()
        try:
            pending = self._judge(call, began, confirm)
        except Exception as error:  # of the store, or a bug of ours: it must not cost the agent its output
            reason = self.log.fail(call.call_id, error)
            tell_counted(self.rules.host, {reason.value: 1})
            if self.log.view.is_visible(call.call_id):  # the id names the newer text
                self.log.append_later([Forgot(frozenset([call.call_id]))])
        else:
            tell_answered(self.rules.host, pending.reply, time.perf_counter() - since)
            return pending
        writes = call.reading.writes
        if writes:
            number = self.log.view.calls.number_of(call.call_id)
            self.log.append_later([wrote_event(call, number, writes, self.rules.policy)])
        reply = with_frame(pass_through(call, reason), call)
        tell_answered(self.rules.host, reply, time.perf_counter() - since)
        return Pending(reply)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[View]:
        """A transaction of the log. The listeners are told what it changed in the counters once the store took it."""
        changed: dict[str, int] = {}
        with self.log.lock:
            with self.log.transaction() as view:
                self._go_on(view)
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
            if delivered.text and not is_confirmed:  # a text that is no source is logged without it, and is as it is
                logged = mark_unconfirmed(delivered, call.output, judgement.source_map)
            log.append([logged, *events_after(call, delivered.when.call, policy)] if writes else [logged])
        return Pending(reply, partial(self._confirm, logged))

    def _confirm(self, logged: Delivered, at: float | None) -> None:
        """Log that this reply was shown. Do nothing if it has left the conversation."""
        if logged.unconfirmed:
            call_id = logged.call_id
            self.tell(call_id, lambda view: [confirmed(call_id)] if view.waiting.get(call_id) == logged else [], at)

    def _log_shown(self, delivered: Delivered, end: Position, tokens: int, at: float | None) -> None:
        """Log a delivery after those that were logged while it was shown. Log it without its text if anything came in
        between that may have outdated or removed it. `end`, `tokens`: of the log and its calls, as it was judged.
        """
        try:  # if this fails it is not tried later: an event in between might have removed the text
            with self._transaction() as view:
                after = view.calls.tokens + delivered.when.tokens - tokens
                when = replace(delivered.when, call=view.calls.number_of(delivered.call_id), tokens=after)
                is_first = self.log.only_grew_since(end) and not view.of_call(delivered.call_id)
                delivered = replace(delivered, when=when)
                shown = with_amended(delivered, confirmed(delivered.call_id)) if delivered.text else delivered
                self.log.append([shown if is_first else without_text(delivered)], at)
        except StoreError as error:
            self.log.fail(delivered.call_id, error)

    def _go_on(self, view: View) -> None:
        """Before the first event: check whether an earlier process left the session open."""
        in_doubt = self._in_doubt(view)
        self.log.append([Forgot(in_doubt, doubted=True)] if in_doubt else [])

    def _in_doubt(self, view: View) -> frozenset[str]:
        """Return the calls of a killed process that may not be in the conversation, until the store took that."""
        store_key = self.log.store_key()
        return resume.unconfirmed(view) if self._resumes and store_key and store_key not in _ANSWERING else frozenset()

    def _has_gone_on(self) -> None:
        """Remember that the store took it: what is in doubt stays so until then."""
        self._resumes = False
        if not self._answered:
            self._answered = True
            if (store_key := self.log.store_key()) is not None:
                _ANSWERING.add(store_key)

    def calls_so_far(self, began: Instant | None = None) -> int:
        """The number of the last call that was logged when this one began: later ones are not a source for it. `began`:
        see `Log.now`; None: it begins now. A call that waits for the store does not begin later."""
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
        """The process ends. `in_order`: what it answered is in the conversation."""
        if self._answered and in_order and self.log.view.calls.number:
            self.tell("", lambda _: [Closed()])
        self._answered = False
        if (store_key := self.log.store_key()) is not None:
            _ANSWERING.discard(store_key)

    def note_writes(self, call: Call) -> None:
        """Logs what a command wrote whose output went past us."""
        if not call.reading.writes or self.rules.policy.mode is Mode.OFF:
            return
        if self._one_call:
            with contextlib.suppress(StoreError):  # it fails again below, and is counted there
                self.log.begin_about((), ())
        unread = replace(call, reading=replace(call.reading, claims=()))  # nothing was shown that could come before
        self.tell(call.call_id, lambda view: events_before(view, unread, self.rules.policy))

    def tell(self, call_id: str, events: Callable[[View], list[Event]], at: float | None = None) -> None:
        """Logs what the harness told us; what the store will not take now is kept until it does. `at`: when that was,
        by the log's clock; None for now."""
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
        """The reply to this call was never shown."""
        self.tell(call_id, lambda _: [Forgot(frozenset([call_id]))])

    def commit(self, call_id: str) -> None:
        """See `Session.commit`. UsageError for an unknown call; nothing is committed then."""
        is_known = False

        def events(view: View) -> list[Event]:
            nonlocal is_known
            is_known = view.is_visible(call_id)
            return [confirmed(call_id)] if call_id in view.waiting else []

        self.tell(call_id, events)
        if not is_known:
            self._check_call(call_id, "nothing was committed")

    def missed(self, count: int, why: str) -> None:
        """See `Session.missed`."""
        if count > 0 and self.rules.policy.mode is not Mode.OFF:
            self.tell("", lambda _: [Missed(count, why)])

    def settle(self, call_id: str, text: str, reason: Reason | None = None) -> None:
        """See `Session.settle`. UsageError for an unknown call; nothing is settled then. `reason`: why the whole output
        was shown."""

        def events(view: View) -> list[Event]:
            if call_id in view.waiting:
                amended = amend_answer(view.waiting[call_id], text, reason)
                return [replace(amended, erases=not amended.confirms)]
            shown = [d.event for d in view.of_call(call_id) if d.event.origin is not Origin.COMMAND]
            # A text that can never be a source is not kept.
            changed = [event for event in shown if event.text != text and event.credited]
            return [replace(amend(event, text), erases=True) for event in changed]

        self._check_call(call_id, "nothing was settled")
        self.tell(call_id, events)

    def rewind(self, call_id: str) -> None:
        """See `Session.rewind`. UsageError for an unknown call: what came after it is unknown, so everything counts as
        gone."""
        self._resumes = False
        try:
            self._check_call(call_id, "everything now counts as gone")
        finally:
            self.tell(call_id, lambda _: [Rewound(call_id)])

    def _check_call(self, call_id: str, outcome: str) -> None:
        """Raises UsageError for a call that is not in the log. Where that cannot be read, or a call of ours failed and
        may not be in it, none is said to be unknown."""
        log = self.log
        if self.rules.policy.mode is Mode.OFF or self.view.is_visible(call_id) or log.unlogged():
            return
        try:
            known = log.call_ids()
        except StoreError:  # counted where something is to be stored
            return
        if call_id not in known:
            newest = ", ".join(dict.fromkeys(reversed(known[-NEWEST_NAMED:]))) or "none"
            raise UsageError(f"unknown call {call_id!r} (the newest: {newest}); {outcome}")

    def sync(self, messages: Sequence[Mapping[str, Any]], *, gives_back: bool = True, batch: str = "") -> Synced:
        """Makes the view agree with the message list, and says what has to be rewritten in it. See `Session.sync`, and
        `Reconciler.reconcile` for `gives_back`."""
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
            except Exception as error:  # a list that we do not understand proves nothing visible
                self._reconciler = None
                self.log.fail("", error)
                return [Compacted(frozenset())]
            return list(synced.events)

        self.tell("", events)
        return synced

    def inputs(self) -> list[tuple[str, str]]:
        """The calls of the message list as it was last synced: (id, what the agent said in it)."""
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
        """Start with a copy of what another reader sees."""
        from readcache.core.sync.inherit import inherited_events

        self._resumes = False
        events = inherited_events(parent.view, parent.log.own_events)
        in_doubt = parent._in_doubt(parent.log.view)
        events += [Forgot(in_doubt, doubted=True)] if in_doubt else []
        self.tell("", lambda _: events)

    @property
    def view(self) -> View:
        """What is visible now, as far as the store can be read. Read it, do not change it."""
        with contextlib.suppress(StoreError), self.log.transaction():
            pass
        return self.log.view

    def unlogged(self) -> list[Failed]:
        """Failures of ours that the store has not taken."""
        return self.log.unlogged()
