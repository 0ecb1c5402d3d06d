"""mini-swe-agent 2: a model class and an environment class around the user's own, enabled only by its YAML.

Use the model class if possible. It gets each batch of results with the IDs of their calls, before the observation
template truncates them. It also gets the whole message list before each call of the model. The environment class gets
neither. It is for programs that create their own model. mini's batch runs name an image only for mini's own environment
classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count, zip_longest
from typing import Any, cast

from readcache import Mode, Session
from readcache.context import Compactor, mend_and_clear
from readcache.context.clearing import record_answer
from readcache.hosts.adapter_settings import LOG, adapter_settings, fallback, model_name
from readcache.hosts.tool_results import lines_left_out, put_back

Message = dict[str, Any]
# Characters. mini's own templates show an output of 10,000 or more as two halves of 5,000, each starting on a line of
# its own. At exactly 10,000 no character is lost, but the line in the middle is split in two.
CLIP = (4999, 5000)
_TEXTS = ("content", "output", "text")


class _Wrapper:
    """The common part of both classes. `inner`: the user's own model or environment."""

    def __init__(self, inner: Any, given: Mapping[str, Any], window: int | None = None) -> None:
        self._inner, self._settings = inner, adapter_settings(given, window=window)
        self._session = self._settings.new_session("mini-swe-agent")
        self._left_out: list[list[str]] = []  # [marker, omitted lines] of all replies

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__.get("_inner"), name)

    def stats(self) -> dict[str, int]:
        """Return the counters, see `Session.stats`."""
        return self._session.stats()

    def _shown(self, action: Message, output: Message, cwd: object, batch: str, *, commit: bool) -> Message:
        """Return the output as the model will see it. The real output is kept for the trajectory.

        `commit`: confirm the reply immediately, because no message list will show if the model was sent it.
        """
        text: Any = output.get("output")

        def judged() -> Message:
            reply = self._session.observe(
                action["command"],
                text,
                exit_code=output.get("returncode"),
                cwd=cwd if isinstance(cwd, str) and cwd else None,
                call_id=action.get("tool_call_id"),
                batch=batch,
                complete=not output.get("exception_info"),  # it timed out, or could not be started
                commit=commit,
            )
            self._settings.told(reply)
            self._left_out.extend(lines_left_out(reply))
            extra = {**output.get("extra", {}), "full_output": text}
            return output if reply.text == text else {**output, "output": reply.text, "extra": extra}

        return fallback(judged, output) if isinstance(text, str) else output


class ReadcacheModel(_Wrapper):
    """mini's `Model` around the one that `readcache: {model_class: …}` names. All settings except `readcache` belong to
    that one."""

    def __init__(self, *, readcache: Mapping[str, Any] | None = None, **settings: Any) -> None:
        from minisweagent.models import get_model

        given = dict(readcache or {})
        window = given.pop("window", None)
        inner = get_model(config={**settings, "model_class": given.pop("model_class", "")})
        super().__init__(inner, given, window)
        self._session.use_model(model_name(getattr(inner, "config", None)))
        self._compacted = None if window is None else _Compacted(self._session, inner, window)
        self._cleared = _Sent()
        self._batches = count(1)

    def query(self, messages: list[Message], **kwargs: Any) -> Message:
        """Ask the model, with every marker in the messages true.

        With a `window` (tokens), a conversation that is too long is compacted first. mini's own list, and so its
        trajectory, stays complete.
        """
        is_chat = not any(message.get("object") == "response" for message in messages)
        if self._compacted is not None and is_chat and self._session.policy.mode is not Mode.OFF:
            answer = self._compacted.query(messages, kwargs)
            if answer is not None:
                return answer
        repaired = fallback(lambda: self._repaired(messages), None)
        if repaired is None:  # a marker that may be untrue must not stay
            repaired = fallback(lambda: [_in_full(message, self._left_out) for message in messages], messages)
        answer = cast("Message", self._inner.query(repaired, **kwargs))
        fallback(lambda: record_answer(self._session, _response_in(answer)), None)
        return answer

    def _repaired(self, messages: list[Message]) -> list[Message]:
        # The Responses API's calls are inside the answers that made them.
        items = [item for m in messages for item in (m["output"] if m.get("object") == "response" else [m])]
        if self._session.policy.clear is None:
            repaired = self._session.mend(items)
        else:
            repaired = self._cleared.after(items, lambda sent: mend_and_clear(sent, self._session))
        is_same = len(repaired) == len(items) and all(a is b for a, b in zip(repaired, items, strict=True))
        return messages if is_same else repaired

    def format_observation_messages(
        self, message: Message, outputs: list[Message], template_vars: dict[str, Any] | None = None
    ) -> list[Message]:
        """Return the messages of one batch of results."""
        batch, cwd = str(next(self._batches)), (template_vars or {}).get("cwd")
        actions = message.get("extra", {}).get("actions", [])
        # There are fewer outputs than actions if the last action submitted, or was interrupted.
        pairs = zip(actions, outputs, strict=False)
        shown = [self._shown(*pair, cwd, batch, commit=False) for pair in pairs]
        messages: list[Message] = self._inner.format_observation_messages(message, shown, template_vars)
        return messages

    def serialize(self) -> dict[str, Any]:
        """Return the data that mini keeps in the trajectory, with the session's counters."""
        kept: dict[str, Any] = self._inner.serialize()
        counters: dict[str, int] = fallback(self._session.stats, {})
        return {**kept, "info": {**kept.get("info", {}), "readcache": counters}}


class _Sent:
    """The conversation as the model is sent it: the part that was kept, and the messages that mini's list got since."""

    def __init__(self) -> None:
        self._given: list[Message] = []
        self._sent: list[Message] = []

    def after(self, given: list[Message], send: Callable[[list[Message]], list[Message]]) -> list[Message]:
        """Return the list that `send` makes of the messages for the model: the list sent last, and the messages that
        are new in `given`. If `given` does not continue the last list, `send` gets all of `given`."""
        goes_on = all(old is new for old, new in zip_longest(self._given, given[: len(self._given)]))
        self._sent = send([*self._sent, *given[len(self._given) :]] if goes_on else list(given))
        self._given = list(given)
        return self._sent


class _Compacted:
    """The model, asked through a compactor."""

    def __init__(self, session: Session, inner: Any, window: int) -> None:
        self._inner = inner
        self._compactor = Compactor(session, self._summarize, window=window, budget=session.policy.restore)
        self._list = _Sent()
        self._cost = 0.0  # of summaries, in dollars; added to an answer's cost, because mini limits the total
        self._error: Exception | None = None  # the last error of the model

    def query(self, given: list[Message], kwargs: Mapping[str, Any]) -> Message | None:
        """Return the model's answer to the messages of mini's list, or None if readcache fails. The model's own errors
        are raised."""

        def ask(sent: list[Message]) -> dict[str, Any]:
            try:
                answer = self._inner.query(sent, **kwargs)
            except Exception as error:
                self._error = error
                raise
            return {"answer": answer, "usage": _response_in(answer).get("usage")}

        asked: dict[str, Any] = {}

        def send(messages: list[Message]) -> list[Message]:
            answered, sent = self._compactor.ask(ask, messages)
            asked.update(answered)
            return sent

        try:
            self._list.after(given, send)
        except Exception as error:
            if error is self._error:
                raise
            LOG.warning("readcache failed; the conversation is sent whole", exc_info=True)
            return None
        answer: Message = asked["answer"]
        if self._cost:
            extra = answer.get("extra", {})
            answer["extra"] = {**extra, "cost": extra.get("cost", 0.0) + self._cost}
            self._cost = 0.0
        return answer

    def _summarize(self, request: list[dict[str, str]]) -> str:
        """Return the text of the model's answer to a request for a summary."""
        from minisweagent.exceptions import FormatError

        try:
            message = self._inner.query(request)
        except FormatError as error:
            # mini treats an answer without a command as an error, and keeps the response in it.
            message = error.messages[0]
        self._cost += message.get("extra", {}).get("cost", 0.0)
        choices = _response_in(message).get("choices") or [{}]
        return str(choices[0].get("message", {}).get("content") or "")


def _response_in(message: Message) -> Mapping[str, Any]:
    """Return the API's response, which mini keeps in the message that it made of it."""
    response = message.get("extra", {}).get("response")
    return response if isinstance(response, Mapping) else {}


class ReadcacheEnvironment(_Wrapper):
    """mini's `Environment` around the one that `readcache: {environment_class: …}` names ("local" by default).

    A process has one conversation. The number of the model's calls so far identifies the answer to which an action
    belongs, and so the parallel actions.
    """

    def __init__(self, *, readcache: Mapping[str, Any] | None = None, **settings: Any) -> None:
        from minisweagent.environments import get_environment

        given: dict[str, Any] = {"clip": CLIP, **(readcache or {})}
        inner = get_environment({**settings, "environment_class": given.pop("environment_class", "local")})
        super().__init__(inner, given)

    def execute(self, action: Message, cwd: str = "", **kwargs: Any) -> Message:
        """Run an action. The inner environment raises an exception for a submission, which is passed on."""
        from minisweagent.models import GLOBAL_MODEL_STATS

        output: Message = self._inner.execute(action, cwd, **kwargs)
        cwd = cwd or getattr(self._inner.config, "cwd", "")
        return self._shown(action, output, cwd, str(GLOBAL_MODEL_STATS.n_calls), commit=True)


def _in_full(value: Any, left_out: Sequence[Sequence[str]]) -> Any:
    """Return a message, or a part of one, with the omitted lines instead of their markers. All forms of texts are
    handled. The model's own texts stay."""
    if isinstance(value, str):
        return put_back(value, left_out)
    if isinstance(value, list):
        return [_in_full(each, left_out) for each in value]
    if not isinstance(value, dict) or value.get("role") == "assistant" or value.get("object") == "response":
        return value
    return {key: _in_full(each, left_out) if key in _TEXTS else each for key, each in value.items()}
