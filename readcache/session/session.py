"""The one stateful object: a reader's conversation. It runs commands and reads files, and `Reader` judges the results.

Every public method is safe to call from any thread. If anything here fails, the agent's tool still gets the real
output, and the failure is counted.
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
from readcache.core.model.call import BASH, READ, Call, command_call, framed, other_call, read_call, without_reminders
from readcache.core.model.claims import Reading, with_keys, without_first
from readcache.core.model.errors import StoreError
from readcache.core.model.paths import canonical_path
from readcache.core.model.policy import Policy, Rules
from readcache.core.model.reply import Reason, Reply
from readcache.core.model.text import session_tag
from readcache.core.model.tool_call import AskedCommand, AskedRead, Framing, ToolCall
from readcache.core.shell.read import read_command
from readcache.core.sync.recall import UNANSWERED, asked_recall
from readcache.log.log import Instant, Log
from readcache.log.reader import Confirm, Reader
from readcache.log.store import Store, open_store
from readcache.session.conversation import Conversation, new_id
from readcache.session.disk.files import read_lines, without_dots
from readcache.session.limits import first_chars, first_lines
from readcache.session.wrap import wrap, wrap_write

PYTHON = "python"  # the host of a session that a program created and no adapter named


class Session(Conversation):
    """One reader's conversation.

    `store`: None (memory), a path, a URL (`sqlite:///path`, `redis://host`), or a `Store`. `agent_id` distinguishes the
    readers of one session.
    `local`: the files are on this machine, so a restore plan may read them. None: unknown until the session itself runs
    a command or reads a file; then True. `clock` returns seconds since the epoch.
    `host`: the harness that uses the session, for `readcache gain`. `is_off`: called for each call. While it returns
    True, nothing is omitted, and no reply is a source.
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
        self.agent_id, self.host = str(agent_id), str(host)
        self._given = policy
        self._follow(policy.used_by(self.host))
        self.tag = session_tag(self.session_id, self.agent_id)
        self._store, self._is_off = store, is_off
        self.owns_store = store is None or isinstance(store, (str, os.PathLike))  # it closes with the session
        log = Log(self._open_store, self.session_id, self.agent_id, clock)
        log.open()
        self.reader = Reader(log, Rules(self.policy, self.tag, self.host), resumes=True, is_off=is_off)
        self._clock = clock
        self._batch, self._batches = "", 0  # the ID that parallel calls share; how many `batch` contexts are open
        self._is_local, self._sections = local, {}
        self._readers = {self.agent_id}  # the known names of this session's readers
        self.notes: object = None  # an adapter's own data about the reader, while it is open

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
        max_chars: int | None = None,
    ) -> Reply:
        """Run `command` with bash, and return the reply that the agent should see.

        `cwd` is relative to the session's root. `timeout` is in seconds. After it the command is killed, and the exit
        status is 124. `commit`: as for `observe`. `max_chars`: of a longer output, show the first lines up to this
        number of characters, and one line that says how much is not shown.
        """
        return self._run(command, cwd, env, timeout, call_id, batch, commit, max_chars, self.reader.log.now())

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
        max_chars: int | None = None,
    ) -> Reply:
        """Await `run`. If the task is cancelled, the command is killed, and nothing of it counts as shown."""
        from readcache.session.threads import in_thread

        began = self.reader.log.now()  # the thread may start much later
        run = functools.partial(self._run, command, cwd, env, timeout, call_id, batch, commit, max_chars, began)
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
        max_chars: int | None,
        began: Instant,
        stop: threading.Event | None = None,
    ) -> Reply:
        from readcache.session.disk.bash import run_bash  # imports `subprocess`, which `observe` does not need

        if asked_recall(command) is not None:  # nothing is run
            return self.observe(command, UNANSWERED, exit_code=0, call_id=call_id, batch=batch, commit=commit)
        where = os.path.join(self.root, os.fsdecode(cwd)) if cwd is not None else self.root
        self._is_local = self._is_local is not False
        started = self.reader.calls_so_far(began)
        with self._own_call():
            result = run_bash(command, cwd=where, env=env, timeout=timeout, stop=stop)
        output, frame = first_chars(result.text, max_chars)
        call = ToolCall(call_id, BASH, None, output, batch or "", exit_code=result.exit_code, cwd=where, frame=frame)
        call, why = replace(call, complete=frame is None), result.skip_reason
        return self._answer_command(call, AskedCommand(command), started, skip_reason=why, result=True, commit=commit)

    def observe(
        self,
        command: str,
        output: str,
        *,
        exit_code: int | None = None,
        cwd: str | bytes | os.PathLike[str] | None = None,
        call_id: str | None = None,
        batch: str | None = None,
        complete: bool = True,
        skipped: int = 0,
        frame: Framing | None = None,
        commit: bool = True,
    ) -> Reply:
        """Answer a command that ran elsewhere, as `run` would. Use no file system, except to follow links if the
        session is `local` and the policy has `protected` files.

        `exit_code`: None if unknown. `complete`: False if the tool truncated the output or timed out. `skipped`: the
        number of lines that the tool removed from the start of the output. `frame`: the text that the host puts around
        the output.

        `commit`: False if it is not certain that the model gets the reply. A reply that omits lines then counts as
        shown in full, and neither the reply nor its lines are visible until it is confirmed: by `commit(call_id)`, by
        `settle(call_id, text)`, or by `sync` or `mend` with a list that contains it. A reply that omits nothing needs
        no confirmation, because the model gets the same text in any case.
        """
        asked = AskedCommand(command, skipped)
        call = ToolCall(call_id, BASH, None, output, batch or "", complete=complete, frame=frame, asked=asked)
        return self.answer(replace(call, exit_code=exit_code, cwd=cwd), commit=commit)

    def reading(self, command: str, cwd: str) -> Reading:
        """Return what a command should print and may write, from its text alone."""
        return read_command(command, canonical_path(cwd, self.root))

    def answer(self, call: ToolCall, *, commit: bool = True) -> Reply:
        """Answer a call of any tool that ran elsewhere: `observe`, `observe_read` and `observe_tool` in one."""
        started, asked = self.reader.calls_so_far(), call.asked
        if isinstance(asked, AskedCommand):
            return self._answer_command(call, asked, started, commit=commit)
        judged = other_call(call, self._call_id(call.call_id), self.root)
        judged = replace(judged, batch=str(call.batch or self._batch), started=started)
        is_numbered = isinstance(asked, AskedRead) and asked.numbered
        return self._answer(framed(judged, call.frame or (without_reminders if is_numbered else None)), commit=commit)

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
        """Answer a command. `result`: the session ran it on this machine."""
        try:
            where = self.root if call.cwd is None else canonical_path(os.fsdecode(call.cwd), self.root)
        except TypeError:  # `cwd` is not a path: the files that the command meant are unknown
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
        judged = replace(judged, complete=call.complete, started=started, uncut=result and call.complete)
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
        max_lines: int | None = None,
    ) -> Reply:
        """Read a file as a tool does: lines `start` to `end` (1-based, inclusive; None: to the end of the file). A
        range past the end is empty. `numbered` adds numbers as `cat -n` prints them. If the file cannot be read, the
        reply has one line and exit code 1.

        `fresh`: show every byte, even if it was shown before. This is for an agent in doubt, and for programs. No model
        sees text that a program reads, so a fresh read counts as shown only if it has a `call_id`. `commit`: as for
        `observe`. `max_lines`: of a longer read, show the first lines, and one line that says where to read on."""
        started = self.reader.calls_so_far()
        self._is_local = self._is_local is not False
        got = read_lines(os.path.join(self.root, os.fsdecode(path)), start, end, numbered=numbered)
        key = canonical_path(os.fsdecode(path), self.root)
        text, frame = first_lines(got.text, key, start, max_lines) if got.exit_code == 0 else (got.text, None)
        end = end if frame is None else start + (max_lines or 0) - 1
        call = read_call(self._call_id(call_id), key, text, start, end, sep="\t" if numbered else None)
        call = replace(call, exit_code=got.exit_code, skip_reason=got.skip_reason, fresh=fresh, exact=True)
        call = framed(call, frame)
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
        """Answer a read that another tool already did. `numbered`: the lines have numbers in any usual form. Text
        around them is passed on, and never counts as file content. A string is the text that the tool writes after each
        number, such as `": "` for `12: x`, or around it, such as `"[{n}] "` for `[12] x`. If it contradicts visible
        lines of the file, these lines decide. `complete`, `frame`, `commit`: as for `observe`. `failed`: the output is
        the tool's error text. `edges_only`: only the whole, the beginning or the end may be omitted."""
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
        """Answer any other tool, such as a search or a tool of an MCP server. `name`, `arguments`: as the model gave
        them. The output is visible, and may be a source. Its own lines are omitted only as `identical_output` and
        `any_output` allow. `commit`: as for `observe`."""
        return self.answer(ToolCall(call_id, name, arguments, output, batch or "", frame=frame), commit=commit)

    # ------------------------------------------------------------ other readers, parallel calls

    def fork(self, agent_id: str, *, inherit: bool = False) -> Session:
        """Return the session of a new sub-agent, on the same store. If the name `agent_id` was used before, the new
        name is `agent_id-2`, and so on. `inherit`: the sub-agent starts with a copy of the parent's messages."""
        try:
            store: str | os.PathLike[str] | Store | None = self.reader.log.store
        except StoreError:  # counted already; the child opens the store by itself
            store = self._store
        child = Session(
            self.root,
            session_id=self.session_id,
            agent_id=self.reader.log.new_reader(agent_id, self._readers),
            store=store,
            policy=self._given,
            local=self._is_local,
            clock=self._clock,
            host=self.host,
            is_off=self._is_off,
        )
        child.use_model(self.policy.model)
        child._readers = self._readers
        if inherit:
            child.reader.inherit(self.reader)
        return child

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Treat the tool calls within as parallel calls of the model: none of them is a source for another."""
        with self.reader.log.lock:  # overlapping batches, in threads or tasks, are one
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
        """Wrap the harness's own bash tool, sync or async; see `session/wrap.py`.

        The harness may pass its ID for the call and the name of its batch, as `call_id=` and `batch=`, when it calls
        the tool. Otherwise `call_id()` returns the ID. `on_reply` is called with each reply."""
        return wrap(bash, self._answer_command, self.reader.calls_so_far, self._own_call, call_id, on_reply)

    def wrap_write(self, edit: Callable[..., Any], *, path: str = "path") -> Callable[..., Any]:
        """Wrap the harness's own write or edit tool, sync or async: each call calls `wrote`. `path`: the name of the
        parameter for the file's path. Raise UsageError if the tool has no such parameter. The harness may pass
        `call_id=` in each call."""
        return wrap_write(edit, path, self.wrote, self._own_call)

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """Release the store, unless it was passed in. Closing twice is allowed. If a session was not closed, the next
        process shows its last results again, because they may not have reached the conversation."""
        self.end(in_order=True)

    def end(self, *, in_order: bool) -> None:
        """Close the session. `in_order`: False if the last results may not have reached the conversation."""
        self.reader.close(in_order=in_order and self._store is not None)
        if self.owns_store:
            self.reader.log.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.end(in_order=kind is None)

    # ------------------------------------------------------------ inside

    def _answer(self, call: Call, *, local: bool = False, cwd: str = "", commit: bool = True) -> Reply:
        """Judge a call, and report it to the watch. `local`: the session itself ran it, on this machine. `cwd`: the
        directory of the relative names in the call; "" for the root."""
        if self._is_local and ".." in call.label:
            call = replace(call, reading=with_keys(call.reading, without_dots))
        if links := self._links(possible_files(call), cwd or self.root):
            call = replace(call, leads_to=links)
        confirm = Confirm.ALL if commit else Confirm.FULL
        reply = self.reader.judge(call, confirm=confirm, local=bool(self._is_local)).reply
        self._tell_watch(call.call_id, lambda seen, view: seen.saw(view, call, local=local))
        return reply

    def _open_store(self) -> Store:
        store = self._store
        return open_store(store) if store is None or isinstance(store, (str, os.PathLike)) else store
