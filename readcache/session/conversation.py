"""What a harness tells a session of its conversation, and what it may ask: the half of `Session` without tools."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from readcache.core.judging import marker
from readcache.core.judging.writes import tool_write
from readcache.core.model.errors import StoreError, UsageError
from readcache.core.model.events import MADE_UP_ID, Delivered, Moment, Record
from readcache.core.model.paths import canonical_path, matches_any
from readcache.core.model.policy import Budget, Mode, Policy
from readcache.core.model.records import events_for
from readcache.core.model.text import digest
from readcache.core.model.view import View
from readcache.log.reader import Reader
from readcache.session.disk.files import real_paths

if TYPE_CHECKING:
    from readcache.core.messages.messages import Message
    from readcache.core.restore.plan import Compaction, RestorePlan
    from readcache.session.disk.changes import Change, SeenFiles

M = TypeVar("M", bound=Mapping[str, Any])  # a message of the harness's list, whatever it is declared as


class Conversation:
    """One reader's conversation, as far as its harness tells of it."""

    root: str
    reader: Reader
    agent_id: str
    policy: Policy
    tag: str
    _is_local: bool | None
    _is_off: Callable[[], bool]
    _sections: dict[str, str]  # by the name of a compaction
    _watching: SeenFiles | None = None  # while a watch lasts

    # ------------------------------------------------------------ what the harness tells

    def wrote(self, path: str | os.PathLike[str], *, content: str | None = None, call_id: str | None = None) -> None:
        """The agent's own write or edit tool succeeded on `path`: earlier deliveries of it are invalid. `content`: the
        whole file as the agent gave it in that call, where it did; it counts as visible."""
        key, name = canonical_path(os.fsdecode(path), self.root), self._call_id(call_id)
        if any(matches_any(path, self.policy.protected) for path in self._links((key,), self.root)):
            content = None
        self.reader.tell(name, lambda view: tool_write(view, self.policy, name, key, content))
        self._tell_watch(name, lambda seen, view: seen.wrote(view, key, name, local=bool(self._is_local)))

    def settle(self, call_id: str, text: str) -> None:
        """What the harness finally showed for that call, or as that restored section. Only what is left in `text`
        counts as seen. UsageError for an unknown call: nothing is settled then."""
        self.reader.settle(str(call_id), text)

    def commit(self, call_id: str) -> None:
        """The reply to that call, which was made with `commit=False` in this process or another, was shown as it was
        answered. It has no effect on one that was committed before. UsageError for an unknown call."""
        self.reader.commit(str(call_id))

    def missed(self, count: int, why: str) -> None:
        """The harness had `count` tool results that nobody judged, because of `why`: "the server was late". Reports say
        so: "19 of 24 results were not judged"."""
        self.reader.missed(int(count), str(why))

    def sync(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        cleared: int | Collection[str] | None = None,
        excluded: Collection[str] = (),
        batch: str = "",
    ) -> dict[str, str]:
        """The message list is the truth: what does not stand verbatim in it is no longer visible, whatever was done to
        it. Shapes of OpenAI, Anthropic, Bedrock's Converse and Gemini, with ids or without. Call it when the newest
        results are in the list: what is not in it yet counts as gone.

        `cleared`: the results of this list that the provider clears before the model sees it (Anthropic's
        `clear_tool_uses`): how many of the oldest, in all, or their ids. Say it at each call. `excluded`: names of
        tools whose results it leaves alone and does not count. `batch`: the batch of calls that the host is making now:
        its results count as visible even if the list lacks them.

        Gives, by call id, the list's own where it has one, what is to stand as the result of replies whose markers name
        what is gone: a note that it is gone, or the full text where no list has held the reply yet. For a call that the
        list does not name, it is the reply alone, which you put in its place; `mend` does that.
        """
        return dict(self.reader.sync(_seen(messages, cleared, excluded), batch=batch).by_call)

    def mend(
        self, messages: list[M], *, cleared: int | Collection[str] | None = None, excluded: Collection[str] = ()
    ) -> list[M]:
        """`sync`, and the messages with every marker true: the very same list where nothing has to be rewritten."""
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
        """Which files and lines the compactor should put back verbatim, given the calls that stay. Where the log cannot
        be read there is nothing to go by: an empty plan, and the failure is counted. `messages`: the list before the
        compaction, which shows what calls of unobserved tools were about; None: as `sync` was given it last.
        `without`: absolute paths of files that the host puts back by itself. UsageError for a budget that is a share of
        a window: only a `Compactor` knows one.
        """
        if budget.is_share:
            raise UsageError(f"max_tokens={budget.max_tokens} is a share of a window: use budget.within(window)")
        from readcache.core.messages.messages import inputs_of
        from readcache.core.restore.choose import plan_restore
        from readcache.session.disk.restorable import current_lines, why_not_restored

        view, log, kept, local = self.view, self.reader.log, _ids(keep), bool(self._is_local)
        with log.lock:  # nobody folds meanwhile
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
                )
            except Exception as error:  # a harness must be able to compact, whatever we cannot do
                log.fail("", error)
            from readcache.core.restore.plan import RestorePlan

            return RestorePlan()

    def compacted(self, *, keep: Collection[str] = (), restored: RestorePlan | None = None) -> Compaction:
        """The harness compacted: calls not in `keep` are gone; `restored`, if given, is now visible. An id that several
        calls had says nothing of which of them stays: it keeps none (see `mend`)."""
        return self.reader.compacted(_ids(keep), restored, restored_id=f"restored-{new_id(4)}")

    def restored_section(
        self,
        compaction: str,
        *,
        keep: Collection[str] | None = None,
        messages: Sequence[Mapping[str, Any] | Message] | None = None,
    ) -> str:
        """What to put behind the summary of a host that compacts by itself; "" for nothing.

        `compaction`: the summary, or a name for it. When it is first told, calls not in `keep` are gone, and a section
        of the size of `Policy.restore` is planned. It counts as visible, and is the same text at each later request, in
        another process with this store too. `keep`: all calls in the list; None: not known, none at first. If a call
        that came since is not in it, the host compacted again, and its summary says the same: that call is gone, and
        the section stays. `messages`: as for `restore_plan`.
        """
        name = f"restored-{digest(compaction)[:16]}"
        if name not in self._sections:
            self._sections[name] = self._section(name, keep or (), messages)
        if keep is not None and self._lacks_calls(kept := _ids(keep) | {name}):
            self.reader.compacted(kept, None, restored_id=name)
        return self._sections[name]

    def _lacks_calls(self, kept: frozenset[str]) -> bool:
        """Check whether a call or section that counts as visible, and that the host has an id for, is not kept."""
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
        """The section of that name in the log. If another reader of the session was shown it, this one compacts now and
        is shown it, too; the files may have been written since."""
        found = None
        with contextlib.suppress(StoreError):  # counted where something is to be stored
            for record in self.events():
                if isinstance(record.event, Delivered) and record.event.call_id == name:
                    found = record
        if found is None or not isinstance(found.event, Delivered):
            return None
        section = found.event
        if found.agent_id != self.agent_id:
            changed = tuple(sorted({key for mapped in section.source_map for key in mapped.keys}))
            copied = replace(section, changed=changed)
            self.reader.compacted(kept, None, restored_id=name)
            self.reader.tell(
                name, lambda view: [replace(copied, when=Moment(view.calls.number + 1, view.calls.tokens))]
            )
        return section.text

    @property
    def may_shorten(self) -> bool:
        """False where an adapter should clear nothing and put nothing back: the session only advises, or is off."""
        return self.policy.mode is Mode.ON and not self._is_off()

    def rewind(self, call_id: str) -> None:
        """Everything after that call is gone from the conversation. After an unknown call everything is; UsageError. So
        is it after an id that several calls had."""
        self.reader.rewind(str(call_id))

    # ------------------------------------------------------------ what there is to see

    @property
    def view(self) -> View:
        """What is visible now. Read it, do not change it."""
        return self.reader.view

    def events(self) -> list[Record]:
        """The log of this session, every reader's. Raises StoreError."""
        return self.reader.log.records()

    def stats(self) -> dict[str, int]:
        """Counters of this reader: calls, characters, tokens saved (net of markers, and of omissions that bounced: the
        reader asked for the same bytes again right after), and one counter for each reason."""
        return dict(sorted(self.view.calls.counts.items()))

    def markers_in(self, text: str) -> list[str]:
        """This session's markers and pruning notes that stand in `text`, also indented, quoted, in a patch or before
        CRLF, so that a harness can refuse to write one into a file."""
        return marker.find_markers(text, self.tag)

    # ------------------------------------------------------------ what others do

    @contextlib.contextmanager
    def watch(self) -> Iterator[SeenFiles]:
        """While it lasts, follow the files that the agent sees or has seen: `changes` lists what others did to them. It
        yields an object with `wait(seconds)`. No omission depends on it."""
        from readcache.session.disk.changes import SeenFiles

        if self._watching is not None:
            yield self._watching
            return
        with contextlib.closing(SeenFiles()) as seen:
            with self.reader.log.lock:  # no call comes between
                seen.begin(self.view, local=bool(self._is_local))
                self._watching = seen
            try:
                yield seen
            finally:
                self._watching = None

    def changes(self) -> list[Change]:
        """The files that others changed since the agent saw them, by path; `readcache.notice` makes one line of them
        for the model. UsageError outside of `watch`."""
        if self._watching is None:
            raise UsageError("changes() works only while watching: call it inside `with session.watch():`")
        return self._watching.changes()

    def _own_call(self) -> contextlib.AbstractContextManager[None]:
        """While a command of the agent runs, what changes is its own doing."""
        return contextlib.nullcontext() if self._watching is None else self._watching.own_call()

    def _tell_watch(self, call_id: str, tell: Callable[[SeenFiles, View], None]) -> None:
        """Tells the watch, if there is one, of a call. A bug there must not cost the agent its output."""
        log, seen = self.reader.log, self._watching
        if seen is None:
            return
        try:
            with log.lock:  # no fold happens meanwhile
                tell(seen, log.view)
        except Exception as error:
            log.fail(call_id, error)

    def _links(self, names: Iterable[str], cwd: str) -> frozenset[str]:
        """The real paths of links, which may be protected."""
        return real_paths(names, cwd) if self.policy.protected and self._is_local else frozenset()

    def _call_id(self, given: str | None) -> str:
        return str(given) if given is not None else MADE_UP_ID + new_id(6)


def _seen(
    messages: Sequence[Mapping[str, Any]], cleared: int | Collection[str] | None, excluded: Collection[str]
) -> Sequence[Mapping[str, Any]]:
    """The list as the model sees it."""
    if isinstance(excluded, str):
        raise UsageError(f"excluded={excluded!r} is a string: give a list of names, [{excluded!r}]")
    if isinstance(cleared, (bool, str)) or (isinstance(cleared, int) and cleared < 0):
        raise UsageError(f"cleared={cleared!r}: give how many of the oldest results were cleared, or a list of ids")
    if not cleared:
        return messages
    from readcache.core.messages.editing import without_cleared

    return without_cleared(messages, cleared, excluded)


def _ids(keep: Collection[str]) -> frozenset[str]:
    if isinstance(keep, str):  # else each of its characters would be one
        raise UsageError(f"keep={keep!r} is a string: give a list of ids, [{keep!r}]")
    return frozenset(map(str, keep))


def new_id(size: int) -> str:
    """Twice as many hex digits; `uuid` gives no better ones and takes milliseconds to import."""
    return os.urandom(size).hex()
