"""The protocol of `readcache serve`: JSON-RPC 2.0. No streams here; `server.py` has them.

    protocol = Protocol(Sessions("/repo"))
    params = {"conversation": "c", "command": "cat f", "output": "…"}
    protocol.answer({"jsonrpc": "2.0", "id": 1, "method": "observe", "params": params})

protocol.md describes the fields and the result of each method. A wrong request never raises: the answer is an error.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
from collections.abc import Callable, Mapping
from functools import partial
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
    __version__,
)
from readcache.context.clearing import mend_and_clear
from readcache.context.condensation import Condensation
from readcache.context.condensed_log import readable, resume_list
from readcache.context.pruner import prune
from readcache.context.recording import RecordedList
from readcache.context.two_steps import compact_with, compaction_request
from readcache.log.store.codec import kind_of, stored_name
from readcache.process import failures
from readcache.serve import fields
from readcache.serve.fields import (
    FLAG,
    IDS,
    LINE,
    MESSAGES,
    NAME,
    OBJECT,
    STATUS,
    TEXT,
    RequestError,
    Schema,
    checked,
    record,
)
from readcache.serve.open_replies import OpenReplies

MOST_BYTES = 32 * 1024 * 1024  # of one request: a conversation of a million tokens has 4 MB
MOST_EVENTS = 1000  # in one answer to `events`
MOST_READERS = 100  # kept in memory, for all conversations together; each keeps two files open

Answer = dict[str, Any]
CanStop = Callable[[Callable[[], object]], object]


class Method(NamedTuple):
    """A method: its fields, and how to call it.

    `call`: the function to call, or None for the method of `Session` with the same name. `give`: turns the result into
    the value that the client gets.
    """

    params: Schema
    give: Callable[[Any], object]
    call: Callable[..., object] | None = None


class Protocol:
    """Answer requests. `may_run`: True to offer `run` and `read`. Safe to call from any thread."""

    def __init__(self, sessions: Sessions, *, may_run: bool = False) -> None:
        self._sessions, self._replies = sessions, OpenReplies()
        self.methods = {name: method for name, method in METHODS.items() if may_run or name not in _RUNS}

    def answer(
        self, request: object, can_stop: CanStop = lambda _: None, replies: OpenReplies | None = None
    ) -> Answer | None:
        """Return the answer to one request, or None if nobody waits for it.

        `can_stop(stop)` is called when a command begins: `stop` kills the command, or raises RuntimeError if it has
        ended. `replies`: the open replies of the client's connection; None: all requests come from one client.
        """
        answer: Answer = {"jsonrpc": "2.0", "id": None}
        is_awaited = True
        try:
            if isinstance(request, RequestError):
                raise request
            if isinstance(request, dict) and type(request.get("id")) in (str, int):
                answer["id"] = request["id"]
            given = checked("a request", request, _REQUEST, fields.INVALID_REQUEST)
            is_awaited = "id" in given or "jsonrpc" not in given
            answer["result"] = self._result(given, can_stop, replies or self._replies)
        except RequestError as error:
            answer["error"] = {"code": error.code, "message": str(error)}
        except ReadcacheError as error:
            answer["error"] = {"code": fields.NOT_DONE, "message": str(error)}
        except Exception as error:  # a bug in readcache ends one request, and no server
            said = f"{type(error).__name__}: {error}; the real output stands; please report it"
            answer["error"] = {"code": fields.INTERNAL_ERROR, "message": said}
        return answer if is_awaited else None

    def is_long(self, request: object) -> bool:
        """Return True for a request that may take as long as a command does."""
        return isinstance(request, dict) and request.get("method") == "run" and "run" in self.methods

    def close(self) -> None:
        """End every conversation."""
        self._sessions.close_all()

    def _result(self, request: Mapping[str, Any], can_stop: CanStop, replies: OpenReplies) -> object:
        name = request["method"]
        method = self.methods.get(name)
        if method is None:
            raise _unknown(name, self.methods)
        beside = {field: request[field] for field in _READER if field in request}  # as the first builds sent them
        params = checked(name, beside | request.get("params", {}), method.params)
        params |= {field: make(params[field]) for field, make in _MADE.items() if field in params}
        if name == "hello":
            return self._hello()
        conversation, agent = params.pop("conversation"), params.pop("agent", "") or "main"
        if name == "close":
            for reader in replies.readers(conversation):
                replies.confirm(conversation, reader, self._sessions.get(conversation, reader))
            self._sessions.close(conversation)
            return {}
        session = self._sessions.get(conversation, agent)
        if name in _SHOWS_A_LIST:
            replies.take(conversation, agent)
        elif name not in _SAYS_WHAT_WAS_SHOWN:
            replies.confirm(conversation, agent, session)
        if name == "fork":
            fork = self._sessions.fork(conversation, params.pop("name"), parent=agent, **params)
            return {"agent": fork.agent_id}
        if "commit" not in method.params["properties"]:
            return method.give((method.call or getattr(Session, name))(session, **params))
        is_silent = "commit" not in params
        params["commit"] = params.get("commit", False)
        reply = _run(session, params, can_stop) if name == "run" else getattr(Session, name)(session, **params)
        if is_silent:
            replies.add(conversation, agent, reply)
        return method.give(reply)

    def _hello(self) -> object:
        limits = {"request_bytes": MOST_BYTES, "events": MOST_EVENTS, "readers": MOST_READERS}
        mode = self._sessions.policy.mode.value
        return {"readcache": __version__, "mode": mode, "methods": sorted(self.methods), "limits": limits}


def parse(line: bytes | bytearray | None) -> object:
    """Return the JSON value of a line, or an error for `answer` to report. `line`: None if it was too long."""
    if line is None:
        return RequestError(fields.INVALID_REQUEST, f"a request has at most {MOST_BYTES} bytes: this line was skipped")
    try:
        return fields.strict_json(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return RequestError(fields.NO_JSON, f"the line is not JSON in UTF-8: {error}; send one object per line")


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


def to_line(answer: Answer | None) -> bytes:
    """Return an answer as it is sent, in ASCII, or b"" for no answer."""
    return b"" if answer is None else json.dumps(answer).encode("ascii") + b"\n"


def _unknown(name: str, offered: Mapping[str, Method]) -> RequestError:
    why = f"unknown method {name!r}: choose from {', '.join(offered)}"
    if name in METHODS:
        why = f"{name} acts on this machine, but this server only judges text: see --run"
    return RequestError(fields.UNKNOWN_METHOD, why)


# ------------------------------------------------------------ the methods of `Session`


def _reply(reply: Reply, *, executed: bool = False) -> dict[str, Any]:
    """Return a reply as a JSON object. `executed`: True if the client does not have the real output."""
    omitted = [as_json(segment) for segment in reply.segments if isinstance(segment, Omitted)]
    answer = {name: as_json(getattr(reply, name)) for name in _REPLY_FIELDS} | {"omitted": omitted}
    return answer | ({"full_text": reply.full_text} if executed and reply.outcome is not Outcome.FULL else {})


_executed = partial(_reply, executed=True)


def _run(session: Session, given: dict[str, Any], can_stop: CanStop) -> Reply:
    async def wait() -> Reply:
        task = asyncio.ensure_future(session.arun(**given))
        can_stop(partial(asyncio.get_running_loop().call_soon_threadsafe, task.cancel))
        return await task

    try:
        return asyncio.run(wait())
    except asyncio.CancelledError:
        raise RequestError(
            fields.NOT_DONE, "the command was killed: its client left, or the server is stopping"
        ) from None


def _plan(plan: RestorePlan) -> object:
    return {**plan.to_dict(), "text": plan.render()}


def _events(session: Session, after: int = 0) -> object:
    records = [each for each in session.events() if each.seq > after]
    found = [
        {**as_json(each), "event": {"kind": kind_of(each.event).capitalize(), **as_json(each.event)}}
        for each in records[:MOST_EVENTS]
    ]
    return {"events": found, "more": len(records) > MOST_EVENTS}


def _failed(session: Session, why: str) -> None:
    """Note a failure of the client, for `readcache doctor`."""
    failures.note(session.session_id, f"plugin of {session.reader.rules.host or 'a host'}", why)


def _mend(
    session: Session, messages: list[Any], *, model: str = "", prompt_tokens: int = 0, answer: str = "", **given: Any
) -> object:
    session.use_model(model)
    session.size.answered(prompt_tokens, answer)
    return _changed(messages, session.mend(messages, **given) if given else mend_and_clear(messages, session))


def _prune(session: Session, messages: list[Any], **given: Any) -> object:
    return _changed(messages, prune(messages, session, **given))


def _compact(session: Session, messages: list[Any], **given: Any) -> object:
    shorter, report, made = compact_with(messages, session, **given)
    return {**_changed(messages, shorter), **as_json(report), "condensations": [each.to_dict() for each in made]}


def _view(session: Session, messages: list[Any], condensations: list[Condensation] | None = None) -> object:
    listed = RecordedList()
    resume_list(listed, session, messages, condensations)
    applied = [each.to_dict() for each in listed.condensations]
    return {**_changed(messages, listed.returned(messages)), "condensations": applied, "trouble": listed.trouble}


def _request(session: Session, messages: list[Any], **given: Any) -> object:
    return compaction_request(messages, session, **given)


def _condensation(given: Any) -> Condensation:
    known = checked("a condensation", given, _CONDENSATION)
    return readable(known | {"changes": [checked("a change", each, _CHANGE) for each in known.get("changes", ())]})


def _changed(before: object, after: object) -> dict[str, Any]:
    """Return the result for the client. It has the messages only if one changed, because the client has the old
    ones."""
    return {"changed": False} if after is before else {"changed": True, "messages": after}


def _same(result: Any) -> object:
    return result


def _nothing(_: object) -> object:
    return {}


def _as(name: str) -> Callable[[object], object]:
    return lambda result: {name: result}


_REPLY_FIELDS = ("text", "exit_code", "outcome", "reason", "call_id", "tokens_saved")
_READER = {"conversation": NAME, "agent": TEXT}
_REQUEST = record({"jsonrpc": fields.VERSION, "id": fields.ID, "method": TEXT, "params": OBJECT, **_READER}, "method")
_FRAME = record({"head": LINE, "tail": LINE})
BUDGET = record({"max_files": LINE, "max_tokens": LINE, "max_tokens_per_file": LINE})
_LIST = {"messages": MESSAGES, "cleared": fields.COUNT_OR_IDS, "excluded": IDS}
_CALL = {"call_id": TEXT, "batch": TEXT, "commit": FLAG}
_LINES = {"start": LINE, "end": LINE}
_TOOL = {**_CALL, "output": TEXT, "frame": _FRAME}
_OUTPUT = {**_TOOL, "complete": FLAG}
_PRUNE = {"strategies": IDS, "protect_last_turns": LINE, "max_chars": LINE, "protected": IDS}
_CHANGE = record(
    {**dict.fromkeys(("name", "note", "digest", "key"), TEXT), "part": STATUS, "first": LINE, "last": LINE}
)
_CONDENSATION = record(
    {
        **dict.fromkeys(("id", "why", "summary", "after", "restored", "section", "replaced"), TEXT),
        **{"version": STATUS, "forgotten": IDS, "changes": MESSAGES, "tokens_saved": LINE},
    },
    "id",
)
_COMPACT = {"condensations": MESSAGES, "summary": TEXT, "keep_turns": LINE, "trigger_tokens": LINE, "budget": BUDGET}

# Parameters that a method takes as an object of this package.
_MADE: Mapping[str, Callable[[Any], object]] = {
    "frame": lambda given: Frame(**checked("frame", given, _FRAME)),
    "budget": lambda given: Budget(**checked("budget", given, BUDGET)),
    "restored": RestorePlan.from_dict,
    "condensations": lambda given: list(map(_condensation, given)),
}

_RUNS = ("read", "run")  # they use commands or files of this machine, so they must be allowed
# Any other request confirms that the replies before it were shown.
_SHOWS_A_LIST = ("mend", "prune", "sync")
_SAYS_WHAT_WAS_SHOWN = ("commit", "failed", "missed", "rewind", "settle")


def _method(
    required: str = "",
    give: Callable[[Any], object] = _same,
    call: Callable[..., object] | None = None,
    /,
    **takes: Schema,
) -> Method:
    """Return a method of one reader. `required`: the names, separated by blanks, of the parameters that a request must
    have besides `conversation`. `takes`: the schema of each parameter. `give`, `call`: see `Method`."""
    return Method(record({**takes, **_READER}, *required.split(), "conversation"), give, call)


METHODS: dict[str, Method] = {
    "hello": Method(record(_READER), _same),
    "observe": _method("command output", _reply, command=TEXT, **_OUTPUT, exit_code=STATUS, cwd=TEXT),
    "observe_read": _method(
        "path output",
        _reply,
        path=TEXT,
        **_OUTPUT,
        **_LINES,
        numbered=fields.FLAG_OR_TEXT,
        failed=FLAG,
        edges_only=FLAG,
    ),
    "observe_tool": _method("name output", _reply, name=TEXT, arguments=OBJECT, **_TOOL),
    "run": _method(
        "command", _executed, command=TEXT, **_CALL, cwd=TEXT, env=fields.NAMES, timeout=fields.SECONDS, max_chars=LINE
    ),
    "read": _method("path", _executed, path=TEXT, **_CALL, **_LINES, numbered=FLAG, fresh=FLAG, max_lines=LINE),
    "wrote": _method("path", _nothing, path=TEXT, content=TEXT, call_id=TEXT),
    "observe_file": _method("path text", _nothing, path=TEXT, text=TEXT, message_id=TEXT),
    "recall": _method("name", _reply, name=TEXT, first=LINE, last=LINE),
    "settle": _method("call_id text", _nothing, call_id=TEXT, text=TEXT),
    "commit": _method("call_id", _nothing, call_id=TEXT),
    "missed": _method("count why", _nothing, count=LINE, why=TEXT),
    "failed": _method("why", _nothing, _failed, why=TEXT),
    "sync": _method("messages", _as("rewrites"), **_LIST),
    "mend": _method("messages", _same, _mend, **_LIST, model=TEXT, prompt_tokens=LINE, answer=TEXT),
    "restore_plan": _method("", _plan, keep=IDS, budget=BUDGET, messages=MESSAGES),
    "prune": _method("messages", _same, _prune, messages=MESSAGES, **_PRUNE),
    "compaction_request": _method(
        "messages",
        _as("request"),
        _request,
        messages=MESSAGES,
        condensations=MESSAGES,
        keep_turns=LINE,
        attempt=LINE,
    ),
    "view": _method("messages", _same, _view, messages=MESSAGES, condensations=MESSAGES),
    "compact": _method("messages", _same, _compact, messages=MESSAGES, **_COMPACT),
    "compacted": _method("", as_json, keep=IDS, restored=OBJECT),
    "restored_section": _method("compaction", _as("section"), compaction=TEXT, keep=IDS),
    "rewind": _method("call_id", _nothing, call_id=TEXT),
    "fork": _method("name", name=NAME, inherit=FLAG),
    "events": _method("", _same, _events, after=LINE),
    "stats": _method(),
    "files": _method("", lambda files: {"files": as_json(files)}),
    "markers_in": _method("text", _as("markers"), text=TEXT),
    "close": _method(),
}
