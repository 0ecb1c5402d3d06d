"""Model classes that mini-swe-agent is given by name. They import it only when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from readcache import Omitted, Reply, Session
from readcache.hosts.mini_swe_agent.wrappers import ReadcacheModel

from .trajectory import tokens_of

Message = dict[str, Any]


class MeteredModel:
    """The user's model class with a limit of tokens for the run. Each arm has it, that without readcache too."""

    def __init__(self, *, metered: Mapping[str, Any], **settings: Any) -> None:
        from minisweagent.models import get_model

        self._limit, self._used = int(metered["tokens"]), 0
        self._inner = get_model(config={**settings, "model_class": metered["model_class"]})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__.get("_inner"), name)

    def query(self, messages: list[Message], **kwargs: Any) -> Message:
        """What the model answers. LimitsExceeded, as of mini's own limits, when the tokens are used up."""
        from minisweagent.exceptions import FormatError, LimitsExceeded

        if 0 < self._limit <= self._used:
            told = {"exit_status": "LimitsExceeded", "submission": ""}
            raise LimitsExceeded({"role": "exit", "content": "LimitsExceeded", "extra": told})
        try:
            answer: Message = self._inner.query(messages, **kwargs)
        except FormatError as error:  # it was billed all the same
            self._used += sum(tokens_of(error.messages[0]).values())
            raise
        self._used += sum(tokens_of(answer).values())
        return answer


class _Witness:
    """A session whose replies are noted: one for each result, None where it failed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.replies: list[Reply | None] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__.get("_session"), name)

    def observe(self, *args: Any, **kwargs: Any) -> Reply:
        self.replies.append(None)
        reply = self._session.observe(*args, **kwargs)
        self.replies[-1] = reply
        return reply


class WitnessedModel(ReadcacheModel):
    """readcache's model class, which also keeps the account of each reply in the trajectory, in `extra.account` of the
    result: what was left out and where it is said to stand, so that it can be proven later."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._witness = _Witness(self._session)
        self._session = cast(Session, self._witness)
        self._batch = 0

    def format_observation_messages(
        self, message: Message, outputs: list[Message], template_vars: dict[str, Any] | None = None
    ) -> list[Message]:
        """The messages of one batch of results, with their accounts."""
        before = len(self._witness.replies)
        self._batch += 1
        messages = super().format_observation_messages(message, outputs, template_vars)
        # There are more messages than replies where the last calls were not run.
        for each, reply in zip(messages, self._witness.replies[before:], strict=False):
            if reply is not None:
                each.setdefault("extra", {})["account"] = account_of(reply, str(self._batch))
        return messages


def account_of(reply: Reply, batch: str) -> Message:
    """What `omissions.py` needs of a reply to prove it, as JSON."""
    parts = [
        {"path": each.path, "start": each.start, "end": each.end, "sources": list(each.sources)}
        if isinstance(each, Omitted)
        else {"shown": each.text}
        for each in reply.segments
    ]
    return {"call_id": reply.call_id, "batch": batch, "segments": parts}
