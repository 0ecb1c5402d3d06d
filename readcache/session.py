"""The one stateful object: a reader's conversation. Log, view, store and policy meet here; the deciding is `judge`'s.

Every public method is safe to call from any thread. What the agent's tool gets never depends on us being in order: when
anything here fails, the real output goes through and the failure is counted.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from readcache.conversation.compact import compact
from readcache.conversation.inherit import inherited
from readcache.conversation.settle import settle
from readcache.disk import lines as files
from readcache.disk.bash import run_bash
from readcache.errors import StoreError, UsageError
from readcache.judging import marker
from readcache.judging.answer import plain_reply, tool_write
from readcache.judging.judge import Call
from readcache.log.calls import command_call, other_read_call, read_call
from readcache.log.log import Ledger
from readcache.log.recorder import Recorder
from readcache.log.store import Store, open_store
from readcache.model.claims import Reading
from readcache.model.events import MADE_UP_ID, Compacted, Event, Origin, Record, Rewound
from readcache.model.paths import canonical_path
from readcache.model.view import View
from readcache.policy import Budget, Mode, Policy
from readcache.reply import Reason, Reply
from readcache.restore.plan import Compaction, RestorePlan
from readcache.shell.read import read_command
from readcache.wrap import wrap

if TYPE_CHECKING:
    from readcache.conversation.sync import Standing
    from readcache.disk.changes import Change, Follower
    from readcache.log.history_log import HistoryLog


class Session:
    """One reader's conversation.

    `store`: None (memory), a path or `sqlite:///path`, or a `Store`. `agent_id` separates contexts inside a session.
    `clock` gives seconds since the epoch. `one_shot`: this process judges a single call, and its view holds only what
    matters to that.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] = ".",
        *,
        session_id: str | None = None,
        agent_id: str = "main",
        store: str | os.PathLike[str] | Store | None = None,
        policy: Policy = Policy(),  # noqa: B008  frozen
        clock: Callable[[], float] = time.time,
        one_shot: bool = False,
    ) -> None:
        self.root = os.path.abspath(root)
        self.session_id = session_id or _new_id(16)
        self.agent_id = agent_id
        self.policy = policy
        self.tag = marker.tag(self.session_id)
        self._store = store
        self._ledger = Ledger(self._open_store, self.session_id, agent_id, clock)
        try:
            _ = self._ledger.store
        except StoreError as error:  # every call tries again; until one succeeds, everything is shown
            self._ledger.fail("", Reason.STORE_FAILED, error)
        self._clock = clock
        self._batch = ""
        self._is_local = False  # has this session run or read anything itself?
        self._recorder = Recorder(self._ledger, policy, self.tag, one_shot=one_shot)
        self._lines = files.LineReader()
        self._follower: Follower | None = None  # while `watch` lasts
        self._standing: Standing | None = None  # what the last `sync` found

    # ------------------------------------------------------------ commands

    def run(
        self,
        command: str,
        *,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        call_id: str | None = None,
    ) -> Reply:
        """Runs `command` with bash and answers with what the agent should see. `timeout` is in seconds; after it the
        command is killed and the exit status is 124."""
        where = os.path.join(self.root, os.fspath(cwd)) if cwd is not None else self.root
        self._is_local = True
        with self._own_call():
            ran = run_bash(command, cwd=where, env=env, timeout=timeout)
        return self._answer_command(command, ran.output, ran.exit_code, where, call_id, ran.trouble, here=True)

    def observe(
        self,
        command: str,
        output: str,
        *,
        exit_code: int = 0,
        cwd: str | os.PathLike[str] | None = None,
        call_id: str | None = None,
    ) -> Reply:
        """The same judgement for a command that ran elsewhere. Touches no file system."""
        where = canonical_path(os.fspath(cwd), self.root) if cwd is not None else self.root
        return self._answer_command(command, output, exit_code, where, call_id)

    def _answer_command(
        self,
        command: str,
        output: str,
        exit_code: int,
        cwd: str,
        call_id: str | None,
        trouble: Reason | None = None,
        show: Callable[[Reply], None] | None = None,
        *,
        here: bool = False,
    ) -> Reply:
        name = self._call_id(call_id)
        if self.policy.mode is Mode.OFF:
            return plain_reply(Call(name, command, "", output, Reading()), exit_code, Reason.MODE_OFF)
        call = command_call(name, command, cwd, output, exit_code, batch=self._batch, trouble=trouble)
        return self._answer(call, exit_code, show, here=here)

    def _observe_writes(self, command: str, *, exit_code: int, cwd: str, call_id: str | None) -> None:
        """Logs what a command wrote whose output went past the session."""
        self._recorder.observe_writes(self._call_id(call_id), command, read_command(command, cwd, exit_code))

    # ------------------------------------------------------------ reads and writes by tools

    def read(
        self,
        path: str | os.PathLike[str],
        *,
        start: int = 1,
        end: int | None = None,
        numbered: bool = False,
        fresh: bool = False,
        call_id: str | None = None,
    ) -> Reply:
        """A file-read tool: lines `start` to `end` (1-based, inclusive; None: to the end of the file; past the end
        there are none). `numbered` prints `cat -n` numbers. A file that cannot be read is answered with one line and
        exit code 1.

        `fresh`: every byte, whatever was shown before; for an agent in doubt, and for a program. What a program reads
        no model sees: a fresh read counts as shown only if it has a `call_id`."""
        self._is_local = True
        got = self._lines.read(os.path.join(self.root, os.fspath(path)), start, end, numbered=numbered)
        call = read_call(
            self._call_id(call_id),
            canonical_path(os.fspath(path), self.root),
            got.text,
            start,
            end,
            sep="\t" if numbered else None,
            batch=self._batch,
            trouble=got.trouble,
            fresh=fresh,
        )
        if fresh and call_id is None:
            return plain_reply(call, got.exit_code, got.trouble or Reason.FRESH)
        return self._answer(call, got.exit_code, here=True)

    def observe_read(
        self,
        path: str | os.PathLike[str],
        output: str,
        *,
        start: int = 1,
        end: int | None = None,
        numbered: bool = False,
        call_id: str | None = None,
    ) -> Reply:
        """The same for a read that another tool already did. `numbered`: the lines carry numbers in any usual form;
        text around them is passed on and never counts as file content."""
        key, name = canonical_path(os.fspath(path), self.root), self._call_id(call_id)
        call = other_read_call(name, key, output, start, end, numbered=numbered, batch=self._batch)
        return self._answer(call, 0)

    def wrote(self, path: str | os.PathLike[str], *, content: str | None = None, call_id: str | None = None) -> None:
        """The agent's own write or edit tool succeeded on `path`: earlier deliveries of it are invalid. `content`: the
        whole file as the agent gave it in that call, where it did; it counts as visible."""
        key, name = canonical_path(os.fspath(path), self.root), self._call_id(call_id)
        self._recorder.tell(name, lambda view: tool_write(view, self.policy, name, key, content))
        self._tell_follower(name, lambda follower, view: follower.wrote(view, key, name, here=self._is_local))

    # ------------------------------------------------------------ what others do

    @contextlib.contextmanager
    def watch(self) -> Iterator[Follower]:
        """While it lasts, the files that the agent sees, and those that it has seen, are followed: `changes` lists what
        somebody else did to them. Nothing that is left out of a reply rests on it."""
        from readcache.disk.changes import Follower

        outer = self._follower
        if outer is not None:
            yield outer
            return
        with contextlib.closing(Follower()) as follower:
            view = self.view
            with self._ledger.lock:  # no call comes between
                follower.begin(view, here=self._is_local)
                self._follower = follower
            try:
                yield follower
            finally:
                self._follower = None

    def changes(self) -> list[Change]:
        """The files that somebody else changed since the agent saw them, by path; `readcache.changes.notice` makes one
        line of them for the model. UsageError when nobody is watching."""
        if self._follower is None:
            raise UsageError("changes are known while watching: call it inside `with session.watch():`")
        return self._follower.changes()

    # ------------------------------------------------------------ what the harness tells

    def settle(self, call_id: str, text: str) -> None:
        """What the harness finally showed for that call, or as that restored section. Only what is left in `text`
        counts as seen."""

        def events(view: View) -> list[Event]:
            shown = [d.event for d in view.of_call(call_id) if d.event.origin is not Origin.COMMAND]
            return [settle(event, text) for event in shown if event.text != text]

        self._recorder.tell(call_id, events)

    def restore_plan(self, *, keep: Collection[str] = (), budget: Budget = Budget()) -> RestorePlan:  # noqa: B008  frozen
        """Which files and lines the compactor should put back verbatim, given the calls that stay."""
        return self._plan(keep, budget, on_disk=self._is_local)

    def _plan(self, keep: Collection[str], budget: Budget, *, on_disk: bool) -> RestorePlan:
        """`on_disk`: the session's files are on this machine."""
        from readcache.disk.restorable import make_plan

        with contextlib.suppress(StoreError), self._ledger.transaction():  # folds in what is new
            pass
        return make_plan(self._ledger, self.policy, self.agent_id, frozenset(keep), budget, on_disk=on_disk)

    def sync(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """The message list is the truth: what does not stand verbatim in it is no longer visible, whatever was done to
        it. OpenAI's and Anthropic's shapes, with ids or without. Call it when the newest results are in the list: what
        is not in it yet counts as gone. Gives, by call id, what is to stand as the result of replies that stay and
        whose markers name what is gone."""
        from readcache.conversation.sync import Standing

        rewrites: dict[str, str] = {}
        standing = self._standing = self._standing or Standing()

        def log() -> list[Event]:
            try:
                return [record.event for record in self._ledger.records()]
            except StoreError:  # counted where something is to be stored
                return []

        def events(view: View) -> list[Event]:
            nonlocal rewrites
            try:
                rewrites, what = standing.reconcile(view, messages, session_tag=self.tag, log=log)
            except Exception as error:  # a list that nobody understands proves nothing visible
                self._standing = None
                self._ledger.fail("", Reason.INTERNAL_ERROR, error)
                return [Compacted(frozenset())]
            return what

        self._recorder.tell("", events)
        return rewrites

    def compacted(self, *, keep: Collection[str] = (), restored: RestorePlan | None = None) -> Compaction:
        """The harness compacted: calls not in `keep` are gone; `restored`, if given, is now visible."""
        restored_id = f"restored-{_new_id(4)}"
        tokens = self.policy.tokens(restored.render()) if restored is not None else 0
        done = Compaction()

        def events(view: View) -> list[Event]:
            nonlocal done
            done, what = compact(
                view, frozenset(keep), restored, restored_id=restored_id, session_tag=self.tag, tokens=tokens
            )
            return what

        self._recorder.tell(restored_id, events)
        return done

    def rewind(self, call_id: str) -> None:
        """Everything after that call is gone from the conversation; after an unknown call, everything."""
        self._recorder.tell(call_id, lambda _: [Rewound(call_id)])

    def fork(self, agent_id: str, *, inherit: bool = False) -> Session:
        """A sub-agent's context on the same store; `inherit` when it starts with a copy of the parent's messages."""
        try:
            store: str | os.PathLike[str] | Store | None = self._ledger.store
        except StoreError:  # counted already; the child tries again by itself
            store = self._store
        child = Session(
            self.root,
            session_id=self.session_id,
            agent_id=agent_id,
            store=store,
            policy=self.policy,
            clock=self._clock,
        )
        if inherit:
            events = inherited(self.view)
            child._recorder.tell("", lambda _: events)
        return child

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """For tool calls that the model made at once: none of them may point at another one's result."""
        with self._ledger.lock:
            outer, self._batch = self._batch, self._batch or _new_id(4)
        try:
            yield
        finally:
            with self._ledger.lock:
                self._batch = outer

    def wrap(self, bash: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps the harness's own bash tool, sync or async; see `readcache.wrap`."""
        return wrap(self, bash)

    def history_log(self) -> HistoryLog:
        """Where a compactor keeps the events of this conversation's messages: in the session's store."""
        from readcache.log.history_log import HistoryLog

        ledger = self._ledger
        return HistoryLog(lambda: ledger.store, self.session_id, self.agent_id, self._clock, ledger.fail)

    # ------------------------------------------------------------ what there is to see

    @property
    def view(self) -> View:
        """What is visible now. Read it, do not change it."""
        with contextlib.suppress(StoreError), self._ledger.transaction():
            pass
        return self._ledger.view

    def events(self) -> list[Record]:
        """The log of this session, every context's. Raises StoreError."""
        return self._ledger.records()

    def stats(self) -> dict[str, int]:
        """Counters of this context: calls, characters, tokens saved (net), and one counter for each reason."""
        counts = Counter(self.view.counts)
        counts.update(self._ledger.failures)
        return dict(sorted(counts.items()))

    def markers_in(self, text: str) -> list[str]:
        """This session's markers that stand in `text`, so that a harness can refuse to write one into a file."""
        return marker.find_markers(text, self.tag)

    def close(self) -> None:
        """Releases the store, unless it was handed in. Closing twice is allowed."""
        if self._store is None or isinstance(self._store, (str, os.PathLike)):
            self._ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ inside

    def _answer(
        self, call: Call, exit_code: int, show: Callable[[Reply], None] | None = None, *, here: bool = False
    ) -> Reply:
        """`here`: the file that was read is one of this machine."""
        reply = self._recorder.answer(call, exit_code, show)
        self._tell_follower(call.call_id, lambda follower, view: follower.saw(view, call, here=here))
        return reply

    def _own_call(self) -> contextlib.AbstractContextManager[None]:
        """While a command of the agent runs."""
        return contextlib.nullcontext() if self._follower is None else self._follower.own_call()

    def _tell_follower(self, call_id: str, tell: Callable[[Follower, View], None]) -> None:
        if self._follower is None:
            return
        try:
            with self._ledger.lock:  # nobody folds meanwhile
                tell(self._follower, self._ledger.view)
        except Exception as error:  # a bug of ours must not cost the agent its output
            self._ledger.fail(call_id, Reason.INTERNAL_ERROR, error)

    def _open_store(self) -> Store:
        store = self._store
        return open_store(store) if store is None or isinstance(store, (str, os.PathLike)) else store

    def _call_id(self, given: str | None) -> str:
        return given if given is not None else MADE_UP_ID + _new_id(6)


def _new_id(size: int) -> str:
    """Twice as many hex digits; `uuid` gives no better ones and takes milliseconds to import."""
    return os.urandom(size).hex()
