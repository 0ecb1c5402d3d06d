"""The half of `Session` without tools: a harness's reports about its conversation, and its questions."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from readcache.core.judging import marker
from readcache.core.judging.writes import pasted_file, tool_write
from readcache.core.model.call import MADE_UP_ID
from readcache.core.model.errors import StoreError, UsageError
from readcache.core.model.events import Delivered, Moment, Record
from readcache.core.model.paths import canonical_path, matches_any
from readcache.core.model.policy import Budget, Mode, Policy
from readcache.core.model.records import events_for
from readcache.core.model.reply import Outcome, Reason, Reply, Shown
from readcache.core.model.text import digest
from readcache.core.model.tokens import LEAST_GROWN, ConversationTokens, usual_model
from readcache.core.model.view import View
from readcache.core.sync.recall import AskedRecall
from readcache.log.reader import Reader
from readcache.session.disk.files import real_paths, without_dots

if TYPE_CHECKING:
    from readcache.core.messages.messages import Message
    from readcache.core.restore.plan import Compaction, RestorePlan
    from readcache.session.disk.changes import Change, SeenFiles
    from readcache.session.disk.shown import ShownFile

M = TypeVar("M", bound=Mapping[str, Any])  # a message of the harness's list, with any declared type


class Conversation:
    """One reader's conversation, as its harness reports it."""

    root: str
    reader: Reader
    agent_id: str
    policy: Policy
    host: str
    size: ConversationTokens
    tag: str
    _given: Policy  # the user's, which may name no model
    _is_local: bool | None
    _is_off: Callable[[], bool]
    _sections: dict[str, str]  # restored section by the name of its compaction
    _watching: SeenFiles | None = None  # while a watch lasts

    # ------------------------------------------------------------ reports of the harness

    def use_model(self, name: str) -> None:
        """Count in the tokens of this model from now on, because the harness named it. Change nothing if the name is
        empty, or if the user's policy names another model than the host's usual ones."""
        if name and name != self.policy.model and self._given.model in ("", usual_model(self.host)):
            self._follow(replace(self._given, model=name))
            self.reader.rules = replace(self.reader.rules, policy=self.policy)

    def _follow(self, policy: Policy) -> None:
        """Use this policy from now on."""
        self.policy, self.size = policy, ConversationTokens(least=LEAST_GROWN / policy.chars_per_token)

    def wrote(self, path: str | os.PathLike[str], *, content: str | None = None, call_id: str | None = None) -> None:
        """Record that the agent's own write or edit tool succeeded on `path`. Earlier deliveries of the file are then
        invalid. `content`: the whole file, if the agent gave it in that call. It counts as visible, except for a
        protected file."""
        key, name = canonical_path(os.fsdecode(path), self.root), self._call_id(call_id)
        key = without_dots(key) if self._is_local else key
        if any(matches_any(path, self.policy.protected) for path in self._links((key,), self.root)):
            content = None
        self.reader.tell(name, lambda view: tool_write(view, self.policy, name, key, content))
        self._tell_watch(name, lambda seen, view: seen.wrote(view, key, name, local=bool(self._is_local)))

    def observe_file(self, path: str | os.PathLike[str], text: str, *, message_id: str | None = None) -> None:
        """Record that the harness put a whole file into a message, such as one that the user attached. Its lines are
        visible. `text`: the file as the message contains it, without line numbers. `message_id`: the ID of the message.
        A compaction keeps the text if its `keep` has this ID, and `sync` if the list has the text."""
        key, name = canonical_path(os.fsdecode(path), self.root), self._call_id(message_id)
        key = without_dots(key) if self._is_local else key
        if not any(matches_any(path, self.policy.protected) for path in self._links((key,), self.root)):
            self.reader.tell(name, lambda view: pasted_file(view, self.policy, name, key, text))

    def settle(self, call_id: str, text: str) -> None:
        """Record the text that the harness finally showed for that call, or for that restored section. Only lines in
        `text` count as seen. Raise UsageError for an unknown call; nothing is recorded then."""
        self.reader.settle(str(call_id), text)

    def commit(self, call_id: str) -> None:
        """Record that the reply to that call was shown unchanged. The call was made with `commit=False`, in this
        process or another. A second commit has no effect. Raise UsageError for an unknown call."""
        self.reader.commit(str(call_id))

    def missed(self, count: int, why: str) -> None:
        """Record that the harness had `count` tool results that nobody judged. `why`: the reason, such as "the server
        was late". Reports then say, for example, "19 of 24 results were not judged"."""
        self.reader.missed(int(count), str(why))

    def sync(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        cleared: int | Collection[str] | None = None,
        excluded: Collection[str] = (),
        batch: str = "",
    ) -> dict[str, str]:
        """Make the view agree with the message list, and return the results to rewrite in it.

        Text that is not verbatim in the list is no longer visible. Any change to the list is allowed. The list may have
        the shape of OpenAI, Anthropic, Bedrock's Converse or Gemini, with IDs or without. Call it when the newest
        results are in the list: results that are not in it yet count as gone.

        `cleared`: the results of this list that the provider clears before the model sees it (Anthropic's
        `clear_tool_uses`). Give the total number of the oldest results, or their IDs, in each call. `excluded`: names
        of tools whose results the provider neither clears nor counts. `batch`: the batch of calls that the host is
        making now. Its results count as visible even if the list lacks them.

        The returned texts are the new results of replies with markers for text that is gone. They are keyed by call ID,
        the list's own if it has one. Each has a note that the text is gone, or the full lines if no list has contained
        the reply yet. For a call that the list does not name, the text is only the reply, and you replace the reply in
        the list. `mend` does that for you.
        """
        return dict(self.reader.sync(_seen(messages, cleared, excluded), batch=batch).by_call)

    def mend(
        self, messages: list[M], *, cleared: int | Collection[str] | None = None, excluded: Collection[str] = ()
    ) -> list[M]:
        """Sync, and return the messages with every marker true. Return the same list object if nothing must change."""
        from readcache.core.messages.editing import with_results

        synced = self.reader.sync(_seen(messages, cleared, excluded))
        return cast("list[M]", with_results(cast("list[Mapping[str, Any]]", messages), synced.by_text_key))

    def restore_plan(
        self,
        *,
        keep: Collection[str] = (),
        budget: Budget = Budget(),  # noqa: B008  frozen
        messages: Sequence[Mapping[str, Any] | Message] | None = None,
        without: Collection[str] = (),
    ) -> RestorePlan:
        """Return a plan of the files and lines that the compactor should restore verbatim.

        `keep`: the calls that stay. `budget`: the size of the plan. `messages`: the list before the compaction, which
        shows the subject of calls of unobserved tools; None: the list of the last `sync`. `without`: absolute paths of
        files that the host restores itself. If the log cannot be read, the plan is empty and the failure is counted.
        Raise UsageError for a budget that is a share of a window: only a `Compactor` knows the window.
        """
        if budget.is_share:
            raise UsageError(f"max_tokens={budget.max_tokens} is a share of a window: use budget.within(window)")
        from readcache.core.messages.messages import inputs_of
        from readcache.core.restore.choose import plan_restore
        from readcache.session.disk.restorable import current_lines, why_not_restored

        view, log, kept, local = self.view, self.reader.log, _ids(keep), bool(self._is_local)
        with log.lock:  # nobody may fold in the meantime
            try:
                return plan_restore(
                    view,
                    kept,
                    budget,
                    events_for(log.records(), self.agent_id),
                    without=without,
                    inputs=self.reader.inputs() if messages is None else inputs_of(messages),
                    count_tokens=self.policy.tokens,
                    refuses=lambda paths: why_not_restored(paths, self.policy.protected, local=local),
                    current=current_lines if local else None,
                    tag=self.tag,
                )
            except Exception as error:  # a harness must be able to compact even if readcache fails
                log.fail("", error)
            from readcache.core.restore.plan import RestorePlan

            return RestorePlan()

    def compacted(self, *, keep: Collection[str] = (), restored: RestorePlan | None = None) -> Compaction:
        """Record that the harness compacted: calls not in `keep` are gone, and `restored`, if given, is visible now. An
        ID that several calls had keeps none of them, because it does not say which one stays (see `mend`). Return the
        texts to rewrite."""
        return self.reader.compacted(_ids(keep), restored, restored_id=f"restored-{new_id(4)}")

    def restored_section(
        self,
        compaction: str,
        *,
        keep: Collection[str] | None = None,
        messages: Sequence[Mapping[str, Any] | Message] | None = None,
    ) -> str:
        """Return the section to put after the summary of a host that compacts by itself, or "" for none.

        `compaction`: the summary, or a name for it. At its first use, calls not in `keep` are gone, and a section of
        the size of `Policy.restore` is planned. The section counts as visible. Each later request returns the same
        text, also in another process with this store. `keep`: all calls in the list. None: unknown, and at the first
        use no call is kept. If `keep` lacks a newer call, the host compacted again, and the summary is the same. The
        call is then gone, and the section stays. `messages`: as for `restore_plan`.
        """
        name = f"restored-{digest(compaction)[:16]}"
        if name not in self._sections:
            self._sections[name] = self._section(name, keep or (), messages)
        if keep is not None and self._lacks_calls(kept := _ids(keep) | {name}):
            self.reader.compacted(kept, None, restored_id=name)
        return self._sections[name]

    def _lacks_calls(self, kept: frozenset[str]) -> bool:
        """Return True if a visible call or section, for which the host has an ID, is not kept."""
        visible = {delivery.event.call_id for delivery in self.view.deliveries if delivery.event.text}
        return any(call_id not in kept for call_id in visible if not call_id.startswith(MADE_UP_ID))

    def _section(self, name: str, keep: Collection[str], messages: Sequence[Mapping[str, Any] | Message] | None) -> str:
        if (known := self._known_section(name, _ids(keep))) is not None:
            return known
        plan = None
        if self.may_shorten:
            plan = self.restore_plan(keep=keep, budget=self.policy.restore, messages=messages)
        self.reader.compacted(_ids(keep), plan, restored_id=name)
        return plan.render() if plan is not None else ""

    def _known_section(self, name: str, kept: frozenset[str]) -> str | None:
        """Return the section of that name in the log, or None. If it was shown to another reader of the session, this
        reader compacts now and is shown it, too. Its files count as changed, because they may have been written
        since."""
        found = list[tuple[str, Delivered]]()
        with contextlib.suppress(StoreError):  # counted when something is stored
            found = [(r.agent_id, r.event) for r in self.events() if isinstance(r.event, Delivered)]
        found = [(agent, event) for agent, event in found if event.call_id == name]
        if not found:
            return None
        agent, section = found[-1]
        if agent != self.agent_id:
            changed = tuple(sorted({key for mapped in section.source_map for key in mapped.keys}))
            copied = replace(section, changed=changed)
            self.reader.compacted(kept, None, restored_id=name)
            self.reader.tell(
                name, lambda view: [replace(copied, when=Moment(view.calls.number + 1, view.calls.tokens))]
            )
        return section.text

    @property
    def may_shorten(self) -> bool:
        """False if an adapter should clear and restore nothing, because the session only advises, or is off."""
        return self.policy.mode is Mode.ON and not self._is_off()

    def rewind(self, call_id: str) -> None:
        """Record that everything after that call is gone from the conversation. If several calls had the ID, everything
        is gone. For an unknown call, everything counts as gone, too; then raise UsageError."""
        self.reader.rewind(str(call_id))

    # ------------------------------------------------------------ what can be read

    @property
    def view(self) -> View:
        """The texts that are visible now. Read it, do not change it."""
        return self.reader.view

    def events(self) -> list[Record]:
        """Return the log of this session, with the records of every reader. Raise StoreError."""
        return self.reader.log.records()

    def stats(self) -> dict[str, int]:
        """Return the counters of this reader: calls, characters, tokens saved, and one counter for each reason. The
        saved tokens are net of markers, and net of bounces: omissions whose bytes the reader requested again right
        after."""
        return dict(sorted(self.view.calls.counts.items()))

    def recall(self, name: str, first: int = 1, last: int | None = None) -> Reply:
        """Return lines `first` to `last` (1-based, inclusive; None: to the end) of a call's result, as this reader was
        shown it, with omitted lines filled in. Run nothing. `name`: as in a marker or a note, such as `7f3a91.12`. The
        first line says if a file has changed since. No marker shortens the reply, and no later marker names it. Raise
        UsageError for a name that is not this reader's, or if the text is not kept. Raise StoreError."""
        from readcache.log.recalling import recalled_text

        asked, local = AskedRecall(str(name), first, last), bool(self._is_local)
        text = recalled_text(self.reader.log, self.reader.rules, asked, local=local)
        return Reply(text, 0, Outcome.FULL, Reason.RECALLED, (Shown(text),), self._call_id(None), 0, text)

    def files(self) -> list[ShownFile]:
        """Return the files with lines that this reader can see, by path. Each has the lines, the call, and whether the
        disk still has them. Each file is read once if the files are on this machine."""
        from readcache.session.disk.shown import shown_files

        view = self.view
        with self.reader.log.lock:  # nobody may fold in the meantime
            return shown_files(view, local=bool(self._is_local))

    def markers_in(self, text: str) -> list[str]:
        """Return this session's markers and pruning notes in `text`, so that a harness can refuse to write one into a
        file. They are also found if they are indented, quoted, in a patch or before CRLF."""
        return marker.find_markers(text, self.tag)

    # ------------------------------------------------------------ changes by others

    @contextlib.contextmanager
    def watch(self) -> Iterator[SeenFiles]:
        """Follow the files that the agent sees or has seen, while the context is open. `changes` lists the changes by
        others. Yield an object with `wait(seconds)`. No omission depends on the watch."""
        from readcache.session.disk.changes import SeenFiles

        if self._watching is not None:
            yield self._watching
            return
        with contextlib.closing(SeenFiles()) as seen:
            with self.reader.log.lock:  # no call may come in between
                seen.begin(self.view, local=bool(self._is_local))
                self._watching = seen
            try:
                yield seen
            finally:
                self._watching = None

    def changes(self) -> list[Change]:
        """Return the files that others changed since the agent saw them, by path. `readcache.notice` writes them as one
        line for the model. Raise UsageError outside of `watch`."""
        if self._watching is None:
            raise UsageError("changes() works only while watching: call it inside `with session.watch():`")
        return self._watching.changes()

    def _own_call(self) -> contextlib.AbstractContextManager[None]:
        """Return a context for a command of the agent. Changes while it runs count as the agent's own."""
        return contextlib.nullcontext() if self._watching is None else self._watching.own_call()

    def _tell_watch(self, call_id: str, tell: Callable[[SeenFiles, View], None]) -> None:
        """Report a call to the watch, if there is one. A bug there must not cost the agent its output."""
        log, seen = self.reader.log, self._watching
        if seen is None:
            return
        try:
            with log.lock:  # no fold may happen in the meantime
                tell(seen, log.view)
        except Exception as error:
            log.fail(call_id, error)

    def _links(self, names: Iterable[str], cwd: str) -> frozenset[str]:
        """Return the real paths of links, which may be protected. Return none if the policy protects no files, or if
        the files are not known to be on this machine."""
        return real_paths(names, cwd) if self.policy.protected and self._is_local else frozenset()

    def _call_id(self, given: str | None) -> str:
        return str(given) if given is not None else MADE_UP_ID + new_id(6)


def _seen(
    messages: Sequence[Mapping[str, Any]], cleared: int | Collection[str] | None, excluded: Collection[str]
) -> Sequence[Mapping[str, Any]]:
    """Return the list as the model sees it, without cleared results. Raise UsageError for an invalid argument."""
    if isinstance(excluded, str):
        raise UsageError(f"excluded={excluded!r} is a string: give a list of names, [{excluded!r}]")
    if isinstance(cleared, (bool, str)) or (isinstance(cleared, int) and cleared < 0):
        raise UsageError(f"cleared={cleared!r}: give how many of the oldest results were cleared, or a list of ids")
    if not cleared:
        return messages
    from readcache.core.messages.editing import without_cleared

    return without_cleared(messages, cleared, excluded)


def _ids(keep: Collection[str]) -> frozenset[str]:
    if isinstance(keep, str):  # a plain string would be read as one ID per character
        raise UsageError(f"keep={keep!r} is a string: give a list of ids, [{keep!r}]")
    return frozenset(map(str, keep))


def new_id(size: int) -> str:
    """Return a random ID with two hex digits for each of `size` bytes."""
    # `uuid` gives no better IDs, and takes milliseconds to import.
    return os.urandom(size).hex()
