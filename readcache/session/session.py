"""The one stateful object: a reader's conversation. Commands and files are run and read here, and handed to `Reader`.

Every public method is safe to call from any thread. What the agent's tool gets never depends on us being in order: when
anything here fails, the real output goes through and the failure is counted.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from readcache.core.judging.compose import pass_through
from readcache.core.judging.protect import possible_files
from readcache.core.model.call import BASH, READ, Call, command_call, other_call, read_call
from readcache.core.model.claims import Reading, without_first
from readcache.core.model.errors import StoreError
from readcache.core.model.frame import framed
from readcache.core.model.paths import canonical_path
from readcache.core.model.policy import Policy, Rules
from readcache.core.model.reply import Reason, Reply
from readcache.core.model.text import session_tag
from readcache.core.model.tool_call import AskedCommand, AskedRead, Framing, ToolCall
from readcache.core.shell.read import read_command
from readcache.log.log import Instant, Log
from readcache.log.reader import Confirm, Reader
from readcache.log.store import Store, open_store
from readcache.session.conversation import Conversation, new_id
from readcache.session.disk.files import read_lines
from readcache.session.wrap import wrap, wrap_write

PYTHON = "python"  # the host of a session that a program made and that no adapter named


class Session(Conversation):
    """One reader's conversation.

    `store`: None (memory), a path, a URL (`sqlite:///path`, `redis://host`), or a `Store`. `agent_id` tells the readers
    of one session apart.
    `local`: the files are on this machine, so that a restore plan may read them; None: that is so as soon as the
    session ran or read something itself. `clock` gives seconds since the epoch.
    `host`: the harness that it is in, for `readcache gain`. `is_off`: asked at each call; while it is true nothing is
    omitted, and no reply is a source.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] = ".",
        *,
        session_id: str | None = None,
        agent_id: str = "main",
        store: str | os.PathLike[str] | Store | None = None,
        policy: Policy = Policy(),  # noqa: B008  frozen
        local: bool | None = None,
        clock: Callable[[], float] = time.time,
        host: str = PYTHON,
        is_off: Callable[[], bool] = lambda: False,
    ) -> None:
        self.root = os.path.abspath(root)
        self.session_id = str(session_id or new_id(16))
        self.agent_id = str(agent_id)
        self.policy = policy
        self.tag = session_tag(self.session_id)
        self.host = str(host)
        self._store, self._is_off = store, is_off
        self.owns_store = store is None or isinstance(store, (str, os.PathLike))  # it ends with the session
        log = Log(self._open_store, self.session_id, self.agent_id, clock)
        log.open()
        self.reader = Reader(log, Rules(policy, self.tag, self.host), resumes=True, is_off=is_off)
        self._clock = clock
        self._batch, self._batches = "", 0  # the id that calls made at once share; how many are being made
        self._is_local = local
        self._sections = {}
        self._readers = {self.agent_id}  # names of this session's readers, as far as they are known
        self.notes: object = None  # what an adapter keeps of the reader while it is open

    # ------------------------------------------------------------ commands

    def run(
        self,
        command: str,
        *,
        cwd: str | bytes | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        call_id: str | None = None,
        batch: str | None = None,
        commit: bool = True,
    ) -> Reply:
        """Runs `command` with bash and answers with what the agent should see.

        `cwd` is relative to the session's root. `timeout` is in seconds; after it the command is killed and the exit
        status is 124. `commit`: as for `observe`.
        """
        return self._run(command, cwd, env, timeout, call_id, batch, commit, self.reader.log.now())

    async def arun(
        self,
        command: str,
        *,
        cwd: str | bytes | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        call_id: str | None = None,
        batch: str | None = None,
        commit: bool = True,
    ) -> Reply:
        """`run`, awaited. When the task is cancelled the command is killed, and nothing of it counts as shown."""
        from readcache.session.threads import in_thread

        began = self.reader.log.now()  # the thread may begin much later
        run = functools.partial(self._run, command, cwd, env, timeout, call_id, batch, commit, began)
        return await in_thread(run, undo=lambda reply: self.reader.forget(reply.call_id))

    def _run(
        self,
        command: str,
        cwd: str | bytes | os.PathLike[str] | None,
        env: Mapping[str, str] | None,
        timeout: float | None,
        call_id: str | None,
        batch: str | None,
        commit: bool,
        began: Instant,
        stop: threading.Event | None = None,
    ) -> Reply:
        from readcache.session.disk.bash import run_bash  # with `subprocess`: who only observes does without

        where = os.path.join(self.root, os.fsdecode(cwd)) if cwd is not None else self.root
        self._is_local = self._is_local is not False
        started = self.reader.calls_so_far(began)
        with self._own_call():
            result = run_bash(command, cwd=where, env=env, timeout=timeout, stop=stop)
        call = ToolCall(call_id, BASH, None, result.output, batch or "", exit_code=result.exit_code, cwd=where)
        return self._answer_command(
            call, AskedCommand(command), started, skip_reason=result.skip_reason, result=True, commit=commit
        )

    def observe(
        self,
        command: str,
        output: str,
        *,
        exit_code: int | None = 0,
        cwd: str | bytes | os.PathLike[str] | None = None,
        call_id: str | None = None,
        batch: str | None = None,
        complete: bool = True,
        skipped: int = 0,
        frame: Framing | None = None,
        commit: bool = True,
    ) -> Reply:
        """Answers a command that ran elsewhere, as `run` would. Touches no file system, unless the session is `local`
        and some are `protected`: then links are followed. `exit_code`: None when it is not known. Not `complete`: the
        tool cut the output or ran out of time. `skipped`: number of lines that the tool removed from the start of what
        the command printed. `frame`: what the host puts around it.

        `commit`: False if it is not certain that the model gets the reply. A reply that omits lines then counts as
        shown in full, and neither it nor its lines can be seen, until `commit(call_id)`, `settle(call_id, text)`, or
        `sync` or `mend` with a list that has it. One that omits nothing is what the model gets in any case.
        """
        asked = AskedCommand(command, skipped)
        call = ToolCall(call_id, BASH, None, output, batch or "", complete=complete, frame=frame, asked=asked)
        return self.answer(replace(call, exit_code=exit_code, cwd=cwd), commit=commit)

    def reading(self, command: str, cwd: str) -> Reading:
        """Return what a command is believed to print and write, from its text alone; nothing is run or read."""
        return read_command(command, canonical_path(cwd, self.root))

    def answer(self, call: ToolCall, *, commit: bool = True) -> Reply:
        """Answer a call that ran elsewhere, of whatever tool: `observe`, `observe_read` and `observe_tool` in one."""
        started, asked = self.reader.calls_so_far(), call.asked
        if isinstance(asked, AskedCommand):
            return self._answer_command(call, asked, started, commit=commit)
        judged = other_call(call, self._call_id(call.call_id), self.root)
        judged = replace(judged, batch=str(call.batch or self._batch), started=started)
        return self._answer(framed(judged, call.frame), commit=commit)

    def _answer_command(
        self,
        call: ToolCall,
        asked: AskedCommand,
        started: int,
        *,
        skip_reason: Reason | None = None,
        result: bool = False,
        commit: bool = True,
    ) -> Reply:
        """`result`: we ran it on this machine."""
        try:
            where = self.root if call.cwd is None else canonical_path(os.fsdecode(call.cwd), self.root)
        except TypeError:  # no directory at all: the files that the command meant are unknown
            where, skip_reason = self.root, skip_reason or Reason.INTERNAL_ERROR
        reading = read_command(asked.command, where)
        judged = command_call(
            self._call_id(call.call_id),
            asked.command,
            where,
            call.output,
            without_first(reading, asked.skipped) if asked.skipped else reading,
            exit_code=call.exit_code,
            batch=call.batch or self._batch,
            skip_reason=skip_reason,
        )
        judged = replace(judged, complete=call.complete, started=started, uncut=result)
        return self._answer(framed(judged, call.frame), local=result, cwd=where, commit=commit)

    # ------------------------------------------------------------ reads and other tools

    def read(
        self,
        path: str | os.PathLike[str],
        *,
        start: int = 1,
        end: int | None = None,
        numbered: bool = False,
        fresh: bool = False,
        call_id: str | None = None,
        batch: str | None = None,
        commit: bool = True,
    ) -> Reply:
        """A file-read tool: lines `start` to `end` (1-based, inclusive; None: to the end of the file; past the end
        there are none). `numbered` prints `cat -n` numbers. A file that cannot be read is answered with one line and
        exit code 1.

        `fresh`: every byte, whatever was shown before; for an agent in doubt, and for a program. What a program reads
        no model sees: a fresh read counts as shown only if it has a `call_id`. `commit`: as for `observe`."""
        started = self.reader.calls_so_far()
        self._is_local = self._is_local is not False
        got = read_lines(os.path.join(self.root, os.fsdecode(path)), start, end, numbered=numbered)
        call = read_call(
            self._call_id(call_id),
            canonical_path(os.fsdecode(path), self.root),
            got.text,
            start,
            end,
            sep="\t" if numbered else None,
        )
        call = replace(call, exit_code=got.exit_code, skip_reason=got.skip_reason, fresh=fresh, exact=True)
        if fresh and call_id is None:
            return pass_through(call, got.skip_reason or Reason.FRESH)
        call = replace(call, batch=str(batch or self._batch), started=started)
        return self._answer(call, local=True, commit=commit)

    def observe_read(
        self,
        path: str | os.PathLike[str],
        output: str,
        *,
        start: int = 1,
        end: int | None = None,
        numbered: bool | str = False,
        call_id: str | None = None,
        batch: str | None = None,
        complete: bool = True,
        failed: bool = False,
        frame: Framing | None = None,
        edges_only: bool = False,
        commit: bool = True,
    ) -> Reply:
        """Answers a read that another tool already did. `numbered`: the lines carry numbers in any usual form; text
        around them is passed on and never counts as file content. A text says what the tool writes after each number,
        `": "` for `12: x`, or around it, `"[{n}] "` for `[12] x`; the lines of the file that are in view count more.
        `complete`, `frame`, `commit`: as for `observe`. `failed`: the tool gave an error text. `edges_only`: only the
        whole, the beginning or the end may be omitted."""
        asked = AskedRead(os.fsdecode(path), start, end, numbered, edges_only)
        call = ToolCall(call_id, READ, None, output, batch or "", complete=complete, frame=frame, asked=asked)
        return self.answer(replace(call, is_error=failed), commit=commit)

    def observe_tool(
        self,
        name: str,
        output: str,
        *,
        arguments: Mapping[str, Any] | str | None = None,
        call_id: str | None = None,
        batch: str | None = None,
        frame: Framing | None = None,
        commit: bool = True,
    ) -> Reply:
        """Answers any other tool, a search or one of an MCP server: `name` and `arguments` as the model gave them. What
        it shows is visible and may be a source; it is itself left out as `identical_output` and `any_output` allow.
        `commit`: as for `observe`."""
        return self.answer(ToolCall(call_id, name, arguments, output, batch or "", frame=frame), commit=commit)

    # ------------------------------------------------------------ other readers, calls made at once

    def fork(self, agent_id: str, *, inherit: bool = False) -> Session:
        """The session of a new sub-agent, on the same store; under a name that was used before it is `agent_id-2`, and
        so on. `inherit`: it starts with a copy of the parent's messages."""
        try:
            store: str | os.PathLike[str] | Store | None = self.reader.log.store
        except StoreError:  # counted already; the child tries again by itself
            store = self._store
        child = Session(
            self.root,
            session_id=self.session_id,
            agent_id=self.reader.log.new_reader(agent_id, self._readers),
            store=store,
            policy=self.policy,
            local=self._is_local,
            clock=self._clock,
            host=self.host,
            is_off=self._is_off,
        )
        child._readers = self._readers
        if inherit:
            child.reader.inherit(self.reader)
        return child

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """For tool calls that the model made at once: none of them may point at another one's result."""
        with self.reader.log.lock:  # batches that overlap, in threads or tasks, are one
            self._batch, self._batches = self._batch or new_id(4), self._batches + 1
        try:
            yield
        finally:
            with self.reader.log.lock:
                self._batches -= 1
                self._batch = self._batch if self._batches else ""

    def wrap(
        self,
        bash: Callable[..., Any],
        *,
        call_id: Callable[[], str | None] | None = None,
        on_reply: Callable[[Reply], object] | None = None,
    ) -> Callable[..., Any]:
        """Wraps the harness's own bash tool, sync or async; see `session/wrap.py`.

        The harness gives its id for a call, and the name of its batch, as `call_id=` and `batch=` when it calls the
        tool; or `call_id()` gives the id. `on_reply` is told each reply."""
        return wrap(bash, self._answer_command, self.reader.calls_so_far, self._own_call, call_id, on_reply)

    def wrap_write(self, edit: Callable[..., Any], *, path: str = "path") -> Callable[..., Any]:
        """Wraps the harness's own write or edit tool, sync or async: each call tells `wrote`. `path`: the name of the
        parameter that gives the file. `call_id=` may be given at each call. Raises UsageError if there is none."""
        return wrap_write(edit, path, self.wrote, self._own_call)

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """Releases the store, unless it was handed in. Closing twice is allowed. If a session was not closed, the next
        process shows its last results again: they may never have reached the conversation."""
        self.end(in_order=True)

    def end(self, *, in_order: bool) -> None:
        """`close`. `in_order`: False where the last results may not have reached the conversation."""
        self.reader.close(in_order=in_order and self._store is not None)
        if self.owns_store:
            self.reader.log.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.end(in_order=kind is None)

    # ------------------------------------------------------------ inside

    def _answer(self, call: Call, *, local: bool = False, cwd: str = "", commit: bool = True) -> Reply:
        """`local`: the file that was read is one of this machine. `cwd`: where the names in the call are of."""
        if links := self._links(possible_files(call), cwd or self.root):
            call = replace(call, leads_to=links)
        reply = self.reader.judge(call, confirm=Confirm.ALL if commit else Confirm.FULL).reply
        self._tell_watch(call.call_id, lambda seen, view: seen.saw(view, call, local=local))
        return reply

    def _open_store(self) -> Store:
        store = self._store
        return open_store(store) if store is None or isinstance(store, (str, os.PathLike)) else store
