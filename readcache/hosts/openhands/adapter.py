"""OpenHands SDK: a condenser around the user's own.

    agent = Agent(..., condenser=ReadcacheCondenser(inner=...))

Before each call of the model, a condenser gets the events for the model, and the events that it returns are sent. So
the tools do not change, and the conversation keeps every real output. Texts are judged as they would be sent: with
masked secrets, with call IDs, and with the response that made each call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from openhands.sdk.context.condenser.base import CondenserBase, RollingCondenser
from openhands.sdk.context.view import View
from openhands.sdk.event import ActionEvent, ObservationEvent
from openhands.sdk.event.condenser import Condensation, CondensationSummaryEvent
from openhands.sdk.llm import LLM
from pydantic import ConfigDict, Field, PrivateAttr

from readcache import Budget, Marks, Reply, Session, Sessions
from readcache.context import mend_and_clear
from readcache.context.formed import prompt_tokens
from readcache.core.restore.plan import HEADING
from readcache.hosts.adapter_settings import AdapterSettings, adapter_settings, fallback, model_name
from readcache.hosts.openhands.results import as_told, reply_to, shown_text, with_complete_lines, with_text

_AS_SENT = {
    "cache_enabled": False,
    "vision_enabled": False,
    "function_calling_enabled": True,
    "force_string_serializer": False,
    "send_reasoning_content": False,
}


class ReadcacheCondenser(CondenserBase):  # type: ignore[misc]  # not typed where this is checked
    """A condenser that omits visible lines, around another condenser. Raise ValidationError for an invalid value.

    `inner`: the condenser that you had. `root`: the workspace, for commands before the first `cd`. `on_reply`: called
    with each Reply; it is not saved with the agent. `policy`, `mode` and `store`: as in `adapter_settings`.

    `restore`: how much to restore with the summary of a condensation: a Budget, a number of tokens, True for the
    default budget, or False for nothing. `clear`: when to clear old results: (above, down to) in tokens, Marks, True
    for the default marks, or None for READCACHE_CLEAR.
    """

    model_config = ConfigDict(extra="forbid")

    inner: CondenserBase | None = None
    root: str | None = None
    policy: str | None = None
    mode: str | None = None
    store: str | None = None
    restore: bool | int | Budget = True
    clear: bool | tuple[int, int] | Marks | None = None
    on_reply: Any = Field(default=None, exclude=True)
    _settings: AdapterSettings = PrivateAttr()
    _sessions: Sessions = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check the settings, and make the sessions."""
        super().model_post_init(context)
        names = ("root", "policy", "mode", "store", "restore", "clear", "on_reply")
        settings = adapter_settings({name: getattr(self, name) for name in names})
        policy, limit = settings.policy, getattr(self.inner, "max_tokens", None)
        if limit is not None:  # a longer section would start the next condensation
            most = min(policy.restore.max_tokens, limit // 4)
            settings = replace(settings, policy=replace(policy, restore=replace(policy.restore, max_tokens=most)))
        self._settings, self._sessions = settings, settings.sessions("openhands", local=True)

    def condense(self, view: View, agent_llm: LLM | None = None) -> View | Condensation:
        """Return the view as the model will see it, or the result of the inner condenser if that has to run. A
        condensation's summary gets a restored section."""
        shown, inner = self._begun(view, agent_llm)
        return shown if inner is None else self._after(view, shown, inner.condense(view, agent_llm=agent_llm))

    async def acondense(self, view: View, agent_llm: LLM | None = None) -> View | Condensation:
        """Do the same as `condense`, asynchronously."""
        shown, inner = await asyncio.to_thread(self._begun, view, agent_llm)
        if inner is None:
            return shown
        return await asyncio.to_thread(self._after, view, shown, await inner.acondense(view, agent_llm=agent_llm))

    def stats(self) -> dict[str, int]:
        """Return the counters of `Session.stats`, summed over all conversations."""
        return self._sessions.stats()

    def get_llm(self) -> LLM | None:
        """Return the model of the inner condenser, or None."""
        return self.inner.get_llm() if self.inner else None

    def handles_condensation_requests(self) -> bool:
        """Return True if the inner condenser does."""
        return self.inner is not None and bool(self.inner.handles_condensation_requests())

    def _begun(self, view: View, llm: LLM | None) -> tuple[View, Any]:
        """Return the view as the model will see it, and the inner condenser, or None if that need not run.

        Give the real events to the inner condenser: a summariser has not seen the text that a marker names.
        """
        shown, inner = self._shown(view, llm), cast("Any", self.inner)
        is_rolling = isinstance(inner, RollingCondenser)
        return shown, None if is_rolling and inner.condensation_requirement(shown, agent_llm=llm) is None else inner

    def _shown(self, view: View, llm: LLM | None) -> View:
        return fallback(lambda: self._reader(view).shown(view, llm), view)

    def _after(self, view: View, shown: View, result: View | Condensation) -> View | Condensation:
        if isinstance(result, Condensation):
            return fallback(lambda: self._restored(view, result), result)
        return shown if result is view else self._shown(result, None)

    def _restored(self, view: View, done: Condensation) -> Condensation:
        """Return the condensation with the lines that the model is likely to need in its summary, so that the model
        need not read them again."""
        session, left = self._reader(view).session, [e for e in view.events if e.id not in done.forgotten_event_ids]
        kept = [event.tool_call_id for event in left if isinstance(event, ObservationEvent)]
        if not done.has_summary_metadata:
            return done
        section = session.restored_section(str(done.summary), keep=kept)
        return done.model_copy(update={"summary": f"{done.summary}\n\n{section}"}) if section else done

    def _reader(self, view: View) -> _Reader:
        """Return the reader of the conversation. Its first event, the system prompt, identifies it, because that is
        never condensed away."""
        first = str(view.events[0].id) if view.events else ""
        with self._sessions.lock:
            session = self._sessions.get(first, is_new=True)
            if not isinstance(session.notes, _Reader):
                session.notes = _Reader(session, self._settings)
            return session.notes


class _Reader:
    """The reader of one conversation."""

    def __init__(self, session: Session, settings: AdapterSettings) -> None:
        self.session, self._told = session, settings.told
        self._replacements: dict[
            str, Any
        ] = {}  # ID of an event that was judged -> the event that is sent instead of it, or itself
        self._sent: dict[str, dict[str, Any]] = {}  # ID of an event -> its message
        self._cwd: str | None = None  # directory in which the next command starts, if known

    def shown(self, view: View, llm: LLM | None) -> View:
        """Return the view without the omitted lines, and with every marker true. Return the same object if nothing
        changed. `llm`: the agent's model, if known."""
        if llm is not None:
            self._take_size(view.events, llm)
        self._take_up_sections(view.events)
        new = [e for e in view.events if isinstance(e, ObservationEvent) and e.id not in self._replacements]
        if new:
            mend_and_clear(self._messages(view.events[: view.events.index(new[0])]), self.session)
        calls = {event.id: event for event in view.events if isinstance(event, ActionEvent)}
        for event in new:
            self._replacements[event.id] = event  # also if judging fails
            judge = partial(reply_to, self.session, calls.get(event.action_id), event, self._cwd)
            nothing: tuple[Reply | None, str | None] = (None, self._cwd)
            reply, self._cwd = fallback(judge, nothing)
            text = shown_text(self._told(reply), event.observation.text)
            if text != event.observation.text:
                self._replacements[event.id] = with_text(event, text)
        messages = self._messages(view.events)
        repaired = mend_and_clear(messages, self.session)
        told = [self._replacements.get(event.id, event) for event in view.events]
        if repaired is not messages:
            told = [as_told(*each) for each in zip(told, messages, repaired, strict=True)]
        same = all(a is b for a, b in zip(told, view.events, strict=True))
        return view if same else view.model_copy(update={"events": told})

    def _take_size(self, events: Sequence[Any], llm: LLM) -> None:
        """Record the model's name, and the size of the request that the newest action answers."""
        self.session.use_model(model_name(llm))
        answer = next((event.llm_response_id for event in reversed(events) if isinstance(event, ActionEvent)), "")
        usages = (usage for usage in reversed(llm.metrics.token_usages) if usage.response_id == answer)
        self.session.size.answered(prompt_tokens({"usage": next(usages, None)}) or 0, answer)

    def _take_up_sections(self, events: Sequence[Any]) -> None:
        """Record the sections that an earlier process put into summaries, if the store has them."""
        ids = [event.tool_call_id for event in events if isinstance(event, ObservationEvent)]
        for event in events:
            if isinstance(event, CondensationSummaryEvent):
                summary, has_section, _ = event.summary.rpartition(f"\n\n## {HEADING}\n")
                if has_section:
                    self.session.restored_section(summary, keep=ids)

    def _messages(self, events: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the events as messages, as they are sent, and truncated if sending truncates them."""
        for event in events:
            if event.id not in self._sent:
                replacement = self._replacements.get(event.id, event)
                self._sent[event.id] = with_complete_lines(replacement.to_llm_message().to_chat_dict(**_AS_SENT))
        return [self._sent[event.id] for event in events]
