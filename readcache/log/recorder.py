"""Judges calls and keeps the log of them: what happens between a tool's output and the reader, whatever fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from readcache.errors import StoreError
from readcache.judging.answer import judge_call, plain_reply, written_first
from readcache.judging.judge import Call
from readcache.log.log import Ledger
from readcache.model.claims import Reading
from readcache.model.events import Event, Wrote
from readcache.model.text import digest
from readcache.model.view import View
from readcache.policy import Mode, Policy
from readcache.reply import Reason, Reply


class Recorder:
    """One reader's calls, judged by `policy` and logged in `ledger`. `one_shot`: this process judges a single call, and
    its view holds only what matters to that."""

    def __init__(self, ledger: Ledger, policy: Policy, tag: str, *, one_shot: bool = False) -> None:
        self.ledger = ledger
        self._policy = policy
        self._tag = tag
        self._one_shot = one_shot

    def answer(self, call: Call, exit_code: int, show: Callable[[Reply], None] | None = None) -> Reply:
        """Judges and logs one call; on any failure of ours, the real output. `show` puts the reply before the reader:
        it is called before the log is sealed, so that whatever happens meanwhile, nothing counts as seen that was not.
        It is not called after a failure of ours."""
        if self._policy.mode is Mode.OFF:
            return plain_reply(call, exit_code, Reason.MODE_OFF)
        try:
            return self._judge(call, exit_code, show)
        except StoreError as error:
            reason = Reason.STORE_FAILED
            self.ledger.fail(call.call_id, reason, error)
        except Exception as error:  # a bug of ours must not cost the agent its output
            reason = Reason.INTERNAL_ERROR
            self.ledger.fail(call.call_id, reason, error)
        keys = tuple(dict.fromkeys(write.key for write in call.reading.writes))
        if keys:
            number = self.ledger.view.number_of(call.call_id)
            self.ledger.append_later([Wrote(call.call_id, keys, call.command, number)])
        return plain_reply(call, exit_code, reason)

    def _judge(self, call: Call, exit_code: int, show: Callable[[Reply], None] | None) -> Reply:
        ledger, policy = self.ledger, self._policy
        if self._one_shot and not policy.any_output:
            ledger.begin_about(call.reading.keys, [digest(call.output)])
        with ledger.transaction() as view:
            if call.reading.writes or call.reading.authored:
                ledger.append(written_first(view, call, policy))
            index = ledger.line_index() if policy.any_output else None
            reply, events = judge_call(view, call, policy, session_tag=self._tag, exit_code=exit_code, index=index)
            ledger.append(events)
            if show is not None:
                show(reply)
        return reply

    def observe_writes(self, call_id: str, command: str, reading: Reading) -> None:
        """Logs what a command wrote whose output went past the session."""
        if not reading.writes:
            return
        call = Call(call_id, command, "", "", Reading(writes=reading.writes, authored=reading.authored))
        with contextlib.suppress(StoreError):  # it fails again below, and is counted there
            if self._one_shot:
                self.ledger.begin_about((), ())
        self.tell(call_id, lambda view: written_first(view, call, self._policy))

    def tell(self, call_id: str, events: Callable[[View], list[Event]]) -> None:
        """Logs what the harness told us; what the store will not take now is kept until it does."""
        ledger = self.ledger
        with ledger.lock:
            made: list[Event] | None = None
            try:
                with ledger.transaction() as view:
                    made = events(view)
                    ledger.append(made)
            except StoreError as error:
                ledger.fail(call_id, Reason.STORE_FAILED, error)
                ledger.append_later(events(ledger.view) if made is None else made)
