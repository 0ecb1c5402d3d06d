"""The protocol of `readcache serve`: a line of JSON in, a line of JSON out. The streams are in `server.py`.

    protocol = Protocol(Sessions("/repo"))
    protocol.answer({"id": 1, "method": "observe", "conversation": "c", "params": {"command": "cat f", "output": "…"}})

protocol.md describes the fields and the result of each method. A wrong request never raises: the answer is an error.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from readcache import (
    Budget,
    Frame,
    Omitted,
    Outcome,
    ReadcacheError,
    Reply,
    RestorePlan,
    Session,
    Sessions,
    UsageError,
    __version__,
)
from readcache.context.clearing import mend_and_clear
from readcache.context.pruner import prune
from readcache.context.steps import compact_with, compaction_request
from readcache.log.store.codec import kind_of, stored_name
from readcache.process import failures
from readcache.serve.fields import (
    COUNT_OR_IDS,
    FLAG,
    FLAG_OR_TEXT,
    IDS,
    LINE,
    MESSAGES,
    NAMES,
    OBJECT,
    SECONDS,
    STATUS,
    TEXT,
    Field,
    checked,
    strict_json,
)
from readcache.serve.open_replies import OpenReplies

VERSION = 1
MOST_BYTES = 32 * 1024 * 1024  # of one request; a conversation of a million tokens has 4 MB
MOST_EVENTS = 1000  # in one answer to `events`
MOST_READERS = 100  # kept in memory, for all conversations together; each keeps two files open

Cancelling = Callable[[Callable[[], None]], AbstractContextManager[object]]


class RequestError(Exception):
    """A request that is not carried out. `code` is for programs, the text is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Method(NamedTuple):
    """A method: its fields, and how to call it.

    `call`: the function to call, or None for the method of `Session` with the same name. `give`: turns the result into
    the value that the client gets.
    """

    fields: Mapping[str, Field]
    needed: tuple[str, ...] = ()
    give: Callable[[Any], object] = lambda result: result
    call: Callable[..., object] | None = None
    runs: bool = False  # it uses commands or files of this machine, so it must be allowed


class Protocol:
    """Answer requests. `may_run`: True to offer `run` and `read`. Safe to call from any thread."""

    def __init__(self, sessions: Sessions, *, may_run: bool = False) -> None:
        self._sessions, self._replies = sessions, OpenReplies()
        self.methods = {name: method for name, method in METHODS.items() if may_run or not method.runs}

    def answer(
        self, request: object, cancelling: Cancelling = nullcontext, replies: OpenReplies | None = None
    ) -> dict[str, Any]:
        """Return the answer to one request. An invalid request gets an error as its answer.

        `cancelling(stop)` is entered while a command runs. Calling `stop` kills the command. `replies`: the unconfirmed
        replies of the client's connection, or None if all requests come from one client.
        """
        call_id: object = None
        try:
            if isinstance(request, RequestError):
                raise request
            if not isinstance(request, dict):
                raise RequestError("bad_request", 'a request is an object: give {"id", "method", "params"}')
            if (found := request.get("id")) is not None and (type(found) not in (str, int)):
                raise RequestError("bad_request", "id must be a string, an integer or absent")
            call_id = found
            return {"id": call_id, "result": self._result(request, cancelling, replies or self._replies)}
        except RequestError as error:
            return _error(call_id, error.code, str(error))
        except UsageError as error:
            return _error(call_id, "usage", str(error))
        except ReadcacheError as error:
            return _error(call_id, "failed", str(error))
        except Exception as error:  # a bug in readcache ends one request, never the server
            return _error(call_id, "bug", f"{type(error).__name__}: {error}; the real output stands; please report it")

    def is_long(self, request: object) -> bool:
        """Return True for a request that may take as long as a command does."""
        return isinstance(request, dict) and request.get("method") == "run" and "run" in self.methods

    def close(self) -> None:
        """End every conversation."""
        self._sessions.close_all()

    def _result(self, request: Mapping[str, Any], cancelling: Cancelling, replies: OpenReplies) -> object:
        head = {name: value for name, value in request.items() if name not in ("id", "params")}
        name = checked("a request", head, _HEAD, ("method",)).get("method")
        given = request.get("params", {})
        if not isinstance(given, dict):
            raise UsageError("params is not an object: give the method's fields by name")
        if name == "hello":
            return self._hello(checked("hello", given, {"protocol": LINE}, ()))
        if name not in (*self.methods, "close"):
            raise _unknown(str(name), self.methods)
        conversation, agent = head.get("conversation"), head.get("agent") or "main"
        if not conversation:
            raise UsageError(f'{name} needs a conversation: set "conversation" beside "method"')
        if name == "close":
            checked("close", given, {}, ())
            for reader in replies.readers(conversation):
                replies.confirm(conversation, reader, self._sessions.get(conversation, reader))
            self._sessions.close(conversation)
            return {}
        method = self.methods[name]
        params = checked(name, given, method.fields, method.needed)
        params |= {field: make(params[field]) for field, make in _MADE.items() if field in params}
        session = self._sessions.get(conversation, agent)
        if name in _SHOWS_A_LIST:
            replies.drop(conversation, agent)
        elif name not in _SAYS_WHAT_WAS_SHOWN:
            replies.confirm(conversation, agent, session)
        if name == "fork":
            return self._fork(conversation, agent, **params)
        if "commit" not in method.fields:
            return method.give((method.call or getattr(Session, name))(session, **params))
        is_silent = "commit" not in params
        params["commit"] = params.get("commit", False)
        reply = _run(session, params, cancelling) if name == "run" else getattr(Session, name)(session, **params)
        if is_silent:
            replies.add(conversation, agent, reply)
        return method.give(reply)

    def _hello(self, given: Mapping[str, Any]) -> object:
        if given.get("protocol", VERSION) != VERSION:
            raise RequestError("protocol", f"this server speaks protocol {VERSION} (readcache {__version__}): use that")
        limits = {"request_bytes": MOST_BYTES, "events": MOST_EVENTS, "readers": MOST_READERS}
        mode = self._sessions.policy.mode.value
        methods = sorted((*self.methods, "hello", "close"))
        return {"protocol": VERSION, "readcache": __version__, "mode": mode, "methods": methods, "limits": limits}

    def _fork(self, conversation: str, parent: str, name: str, inherit: bool = False) -> object:
        if not name:  # without a name, its requests would belong to the main reader
            raise UsageError("fork: name is empty: give the sub-agent one")
        return {"agent": self._sessions.fork(conversation, name, parent=parent, inherit=inherit).agent_id}


def parse(line: bytes | bytearray | None) -> object:
    """Return the JSON value of a line, or an error for `answer` to report. `line`: None if it was too long."""
    if line is None:
        return RequestError("too_long", f"a request has at most {MOST_BYTES} bytes: this line was skipped")
    try:
        return strict_json(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return RequestError("not_json", f"the line is not JSON in UTF-8: {error}; send one object per line")


def as_json(value: object) -> Any:
    """Return a value of the package as a JSON value: members of enums as their values, sets as lists, records as
    objects."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {stored_name(field.name): as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(as_json, value), key=str)
    return [as_json(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def to_line(answer: Mapping[str, Any]) -> bytes:
    """Return an answer as a line to send. It contains only ASCII."""
    return json.dumps(answer).encode("ascii") + b"\n"


def _error(call_id: object, code: str, message: str) -> dict[str, Any]:
    return {"id": call_id, "error": {"code": code, "message": message}}


def _unknown(name: str, offered: Mapping[str, Method]) -> RequestError:
    if name in METHODS:
        return RequestError("not_offered", f"{name} acts on this machine, but this server only judges text: see --run")
    return RequestError("unknown_method", f"unknown method {name!r}: choose from hello, {', '.join(offered)}, close")


# ------------------------------------------------------------ the methods of `Session`


def _reply(reply: Reply, *, executed: bool = False) -> dict[str, Any]:
    """Return a reply as a JSON object. `executed`: True if the client does not have the real output."""
    omitted = [as_json(segment) for segment in reply.segments if isinstance(segment, Omitted)]
    answer = {name: as_json(getattr(reply, name)) for name in _REPLY_FIELDS} | {"omitted": omitted}
    return answer | ({"full_text": reply.full_text} if executed and reply.outcome is not Outcome.FULL else {})


def _own_reply(reply: Reply) -> object:
    return _reply(reply, executed=True)


def _run(session: Session, given: dict[str, Any], cancelling: Cancelling) -> Reply:
    async def wait() -> Reply:
        task = asyncio.ensure_future(session.arun(**given))
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.call_soon_threadsafe(task.cancel)

        with cancelling(stop):
            return await task

    try:
        return asyncio.run(wait())
    except asyncio.CancelledError:
        raise RequestError("cancelled", "the command was killed: its client left, or the server is stopping") from None


def _plan(plan: RestorePlan) -> object:
    return {**plan.to_dict(), "text": plan.render()}


def _events(session: Session, after: int = 0) -> object:
    records = [record for record in session.events() if record.seq > after]
    found = []
    for record in records[:MOST_EVENTS]:
        found.append(
            {**as_json(record), "event": {"kind": kind_of(record.event).capitalize(), **as_json(record.event)}}
        )
    return {"events": found, "more": len(records) > MOST_EVENTS}


def _failed(session: Session, why: str) -> None:
    """Note a failure of the client, for `readcache doctor`."""
    failures.note(session.session_id, f"plugin of {session.reader.rules.host or 'a host'}", why)


def _mend(session: Session, messages: list[Any], **given: Any) -> object:
    return _changed(messages, session.mend(messages, **given) if given else mend_and_clear(messages, session))


def _prune(session: Session, messages: list[Any], **given: Any) -> object:
    return _changed(messages, prune(messages, session, **given))


def _compact(session: Session, messages: list[Any], **given: Any) -> object:
    shorter, report = compact_with(messages, session, **given)
    return {**_changed(messages, shorter), **as_json(report)}


def _request(session: Session, messages: list[Any], **given: Any) -> object:
    return compaction_request(messages, session, **given)


def _changed(before: object, after: object) -> dict[str, Any]:
    """Return the result for the client. It has the messages only if one changed, because the client has the old
    ones."""
    return {"changed": False} if after is before else {"changed": True, "messages": after}


def _nothing(_: object) -> object:
    return {}


def _as(name: str) -> Callable[[object], object]:
    return lambda result: {name: result}


_REPLY_FIELDS = ("text", "exit_code", "outcome", "reason", "call_id", "tokens_saved")
_HEAD = {"method": TEXT, "conversation": TEXT, "agent": TEXT}
_FRAME = {"head": LINE, "tail": LINE}
_BUDGET = {"max_files": LINE, "max_tokens": LINE, "max_tokens_per_file": LINE}
_LIST = {"messages": MESSAGES, "cleared": COUNT_OR_IDS, "excluded": IDS}
_CALL = {"call_id": TEXT, "batch": TEXT, "commit": FLAG}
_LINES = {"start": LINE, "end": LINE, "numbered": FLAG}
_TOOL = {**_CALL, "output": TEXT, "frame": OBJECT}
_OUTPUT = {**_TOOL, "complete": FLAG}

# Fields whose values become objects of this package.
_MADE: Mapping[str, Callable[[Any], object]] = {
    "frame": lambda given: Frame(**checked("frame", given, _FRAME, ())),
    "budget": lambda given: Budget(**checked("budget", given, _BUDGET, ())),
    "restored": RestorePlan.from_dict,
}

# Any other request confirms that the replies before it were shown.
_SHOWS_A_LIST = ("mend", "prune", "sync")
_SAYS_WHAT_WAS_SHOWN = ("commit", "failed", "missed", "rewind", "settle")

METHODS: dict[str, Method] = {
    "observe": Method(
        {"command": TEXT, **_OUTPUT, "exit_code": STATUS, "cwd": TEXT}, ("command", "output"), give=_reply
    ),
    "observe_read": Method(
        {"path": TEXT, **_OUTPUT, **_LINES, "numbered": FLAG_OR_TEXT, "failed": FLAG, "edges_only": FLAG},
        ("path", "output"),
        give=_reply,
    ),
    "observe_tool": Method({"name": TEXT, "arguments": OBJECT, **_TOOL}, ("name", "output"), give=_reply),
    "read": Method({"path": TEXT, **_CALL, **_LINES, "fresh": FLAG}, ("path",), give=_own_reply, runs=True),
    "run": Method(
        {"command": TEXT, **_CALL, "cwd": TEXT, "env": NAMES, "timeout": SECONDS},
        ("command",),
        give=_own_reply,
        runs=True,
    ),
    "wrote": Method({"path": TEXT, "content": TEXT, "call_id": TEXT}, ("path",), give=_nothing),
    "settle": Method({"call_id": TEXT, "text": TEXT}, ("call_id", "text"), give=_nothing),
    "commit": Method({"call_id": TEXT}, ("call_id",), give=_nothing),
    "missed": Method({"count": LINE, "why": TEXT}, ("count", "why"), give=_nothing),
    "failed": Method({"why": TEXT}, ("why",), call=_failed, give=_nothing),
    "sync": Method(_LIST, ("messages",), give=_as("rewrites")),
    "mend": Method(_LIST, ("messages",), call=_mend),
    "restore_plan": Method({"keep": IDS, "budget": OBJECT, "messages": MESSAGES}, give=_plan),
    "prune": Method(
        {"messages": MESSAGES, "strategies": IDS, "protect_last_turns": LINE, "max_chars": LINE, "protected": IDS},
        ("messages",),
        call=_prune,
    ),
    "compaction_request": Method(
        {"messages": MESSAGES, "keep_turns": LINE, "attempt": LINE}, ("messages",), give=_as("request"), call=_request
    ),
    "compact": Method(
        {"messages": MESSAGES, "summary": TEXT, "keep_turns": LINE, "trigger_tokens": LINE, "budget": OBJECT},
        ("messages",),
        call=_compact,
    ),
    "compacted": Method({"keep": IDS, "restored": OBJECT}, give=as_json),
    "restored_section": Method({"compaction": TEXT, "keep": IDS}, ("compaction",), give=_as("section")),
    "rewind": Method({"call_id": TEXT}, ("call_id",), give=_nothing),
    "fork": Method({"name": TEXT, "inherit": FLAG}, ("name",)),
    "events": Method({"after": LINE}, call=_events),
    "stats": Method({}),
    "markers_in": Method({"text": TEXT}, ("text",), give=_as("markers")),
}
