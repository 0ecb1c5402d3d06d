"""Messages of a conversation in one shape, whichever API they are written for.

`normalise` reads OpenAI chat messages (`tool_calls`, the older `function_call`, strings or lists of parts), Anthropic
messages (strings or blocks), items of OpenAI's Responses API, messages of Bedrock's Converse, Gemini's contents, and
plain chats without any ids (mini-swe-agent). It is for looking only: what is changed is changed in the message as the
harness wrote it, by `editing`.

Nothing here raises on a message of an unknown shape: what is not understood is `Kind.OTHER`, with its strings.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from readcache.core.messages.blocks import (
    CALLS,
    IMAGES,
    ITEM_RESULTS,
    RESULT_ROLES,
    TEXTS,
    THINKING,
    Raw,
    as_mapping,
    blocks_key,
    result_keys,
    string,
    typed,
)


class Kind(enum.Enum):
    """What a part of a message is."""

    TEXT = "text"
    CALL = "call"  # the model calls a tool
    RESULT = "result"  # what the tool gave back
    THINKING = "thinking"
    IMAGE = "image"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message.

    `text` is what the model reads there. Of a call it is the values of its arguments, each beginning on a line of its
    own and with JSON's escapes decoded, so that the body of a heredoc stands in it verbatim; of a result its text
    blocks, joined by newlines; of an image "". An image inside a result is a part after it, with the result's
    `call_id`.
    """

    kind: Kind
    text: str = ""
    call_id: str | None = None  # None where the harness gave none
    name: str = ""  # the tool's; of `Kind.OTHER` the block's own type
    arguments: Mapping[str, object] | None = None  # of a call; None when they are not a JSON object
    is_error: bool = False  # as the harness says it; OpenAI's shape cannot
    nth: int = 0  # which of the calls, or results, of its message that have no id


@dataclass(frozen=True, slots=True)
class Message:
    """A message: who speaks and what is said. `raw` is the message as the harness wrote it."""

    role: str
    parts: tuple[Part, ...]
    raw: Any = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """What is plainly said, without calls, results and thinking."""
        return "\n".join(part.text for part in self.parts if part.kind is Kind.TEXT)


# Not for the model's eyes: names of things, encodings of things.
UNREAD = (
    *("type", "id", "data", "encrypted_content", "cache_control", "url", "media_type", "mime_type", "mimeType"),
    *("signature", "thoughtSignature", "thought_signature"),
)
_PARTS_ROLES = {"model": "assistant", "": "user", "function": "user", "tool": "user"}  # Gemini's


_EMPTY: Raw = {}


def normalise(messages: Sequence[Raw | Message]) -> list[Message]:
    """Every message of the list in one shape. A `Message` is passed on: no list is read twice."""
    return [message if isinstance(message, Message) else normalise_one(message) for message in messages]


def normalise_one(message: Raw) -> Message:
    """The message in one shape."""
    raw = as_mapping(message)
    if raw is None:
        return Message("", (Part(Kind.OTHER, message if isinstance(message, str) else ""),), message)
    try:
        return _read(raw, message)
    except RecursionError:  # results in results: no API has that
        return Message(string(raw.get("role")), (Part(Kind.OTHER, "\n".join(_leaves(raw, UNREAD))),), message)


def _read(raw: Mapping[str, Any], message: Raw) -> Message:
    role = string(raw.get("role"))
    if blocks_key(raw) == "parts":
        role = _PARTS_ROLES.get(role, role)
    if role:
        return Message(role, _numbered(_parts(raw, role)), message)
    kind = string(raw.get("type"))
    role = "tool" if kind in ITEM_RESULTS else "assistant" if kind in CALLS or kind in THINKING else ""
    return Message(role, tuple(_block(raw)), message)


def _numbered(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts; those without an id know which of their kind they are."""
    found = tuple(parts)
    for kind in (Kind.CALL, Kind.RESULT):
        indexes = (at for at, part in enumerate(found) if part.kind is kind and part.call_id is None)
        nths = {at: nth for nth, at in enumerate(indexes)}
        if len(nths) > 1:
            found = tuple(replace(part, nth=nths.get(at, part.nth)) for at, part in enumerate(found))
    return found


def visible_to_model(messages: Sequence[Raw]) -> Sequence[Raw]:
    """The list with everything before its last server-side compaction emptied, each message in its place; the very same
    list where it has none.

    Clients may keep the whole history, while the API drops what stands before such an item (OpenAI: type "compaction")
    or content block (Anthropic: the same type) before the model sees the list.
    """
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        block = last_compaction(message)
        if block is None:
            continue
        raw = as_mapping(message) if block else None
        left = message if raw is None else {**raw, "content": raw["content"][block:]}
        return [*[_EMPTY] * at, left, *messages[at + 1 :]]
    return messages


def last_compaction(message: object) -> int | None:
    """The index of the content block before which the API drops everything; 0 if the message itself is such an item;
    None if nothing was compacted."""
    content = _field(message, "content")
    if type(content) is list:
        for at in range(len(content) - 1, -1, -1):
            if _is_compaction(content[at]):
                return at
    return 0 if _is_compaction(message) else None


def inputs_of(messages: Sequence[Raw | Message]) -> list[tuple[str, str]]:
    """The calls in the messages, in order: (id, what the model said in it)."""
    said = (message.parts for message in normalise(messages) if message.role == "assistant")
    return [(part.call_id or "", part.text) for parts in said for part in parts if part.kind is Kind.CALL]


def update_all(messages: Iterable[Message], raws: Iterable[Raw]) -> list[Message]:
    """The messages as they are after changes by `editing` that gave `raws`: read anew only where that changed one."""
    pairs = zip(messages, raws, strict=True)
    return [message if raw is message.raw else normalise_one(raw) for message, raw in pairs]


def raw_messages(messages: Iterable[Message]) -> list[Raw]:
    """The messages as the harness wrote them."""
    return [message.raw for message in messages]


def _is_compaction(thing: object) -> bool:
    kind = thing.get("type") if type(thing) is dict else _field(thing, "type")
    return isinstance(kind, str) and kind[:10] == "compaction"


def _field(thing: object, name: str) -> object:
    if type(thing) is dict:  # asking for a Mapping takes five times as long, and each message is looked at each time
        return thing.get(name)
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def plain(value: Any) -> Any:
    """A copy of a message in JSON's types, so that later changes to the message do not reach it. The objects of the
    APIs' packages become dicts; a value without a JSON type stays as it is."""
    if isinstance(value, str):  # nearly all there is
        return value
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    raw = as_mapping(value)
    return value if raw is None else {key: plain(inner) for key, inner in raw.items()}


def _parts(raw: Mapping[str, Any], role: str) -> Iterator[Part]:
    thinking = raw.get("thinking_blocks") or raw.get("reasoning_content") or ()
    yield from [Part(Kind.THINKING, thinking)] if isinstance(thinking, str) else _content(thinking)
    is_result = role in RESULT_ROLES and result_keys(raw) is not None
    yield from _result(raw) if is_result else _content(raw.get(blocks_key(raw)))
    yield from map(_openai_call, _listed(raw.get("tool_calls")))
    if raw.get("function_call"):
        yield _openai_call({"function": raw["function_call"]})


def _content(content: object) -> Iterator[Part]:
    for block in [content] if isinstance(content, str) else _listed(content):
        yield from _block(block)


def _block(block: object) -> Iterator[Part]:
    raw = as_mapping(block)
    if raw is None:
        yield Part(Kind.TEXT, block) if isinstance(block, str) else Part(Kind.OTHER)
        return
    raw = typed(raw)
    kind = string(raw.get("type"))
    if kind in TEXTS and isinstance(raw.get("text"), str):
        yield Part(Kind.TEXT, raw["text"])
    elif kind in CALLS:
        id_key, key = CALLS[kind]
        yield _call(raw.get(id_key), raw.get("name"), raw.get(key))
    elif result_keys(raw) is not None:
        yield from _result(raw)
    elif kind in THINKING:
        yield Part(Kind.THINKING, "\n".join(_leaves(raw.get(THINKING[kind]), UNREAD)))
    elif kind in IMAGES:
        yield Part(Kind.IMAGE)
    else:
        yield Part(Kind.OTHER, "\n".join(_leaves(raw, UNREAD)), name=kind)


def _openai_call(call: object) -> Part:
    raw = as_mapping(call) or {}
    function = as_mapping(raw.get("function")) or as_mapping(raw.get("custom")) or {}
    return _call(raw.get("id"), function.get("name"), function.get("arguments", function.get("input")))


def _call(call_id: object, name: object, given: object) -> Part:
    arguments = parse_arguments(given)
    text = given if isinstance(given, str) and arguments is None else "\n".join(_leaves(arguments))
    return Part(Kind.CALL, text, string(call_id) or None, string(name), arguments)


def parse_arguments(given: object) -> Mapping[str, object] | None:
    """The arguments of a call, which some APIs write as JSON in a string; None when they are not a JSON object."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return None
    return given if isinstance(given, Mapping) else None


def _result(raw: Raw) -> Iterator[Part]:
    id_key, key = result_keys(raw) or ("", "")
    given = raw.get(key)
    inner = list(_content(text_of_response(given) if isinstance(given, Mapping) else given))
    inner += _attached(raw) if key == "response" else ()
    name = string(raw.get(id_key)) or None
    text = "\n".join(part.text for part in inner if part.kind is Kind.TEXT)
    is_error = raw.get("is_error") is True or raw.get("status") == "error" or _is_gemini_error(given)
    yield Part(Kind.RESULT, text, name, string(raw.get("name")), is_error=is_error)
    for part in inner:
        if part.kind is not Kind.TEXT:
            yield Part(part.kind if part.kind is Kind.IMAGE else Kind.OTHER, part.text, name, part.name)


def result_text(raw: Raw) -> str:
    """The text of a result, as its `Part` has it. `raw`: the block, or a message that is a result."""
    return next(_result(raw)).text


def _attached(raw: Raw) -> Iterator[Part]:
    """What Gemini has beside a response: images. Its text is in the response alone."""
    for part in _content(raw.get("parts")):
        yield replace(part, kind=Kind.OTHER) if part.kind is Kind.TEXT else part


def text_of_response(given: Raw) -> str:
    """What the model reads of Gemini's response: the text that is alone in it, or else JSON."""
    if not given:
        return ""
    value = next(iter(given.values()))
    is_text = len(given) == 1 and isinstance(value, str)
    return str(value) if is_text else json.dumps(given, ensure_ascii=False, skipkeys=True, default=str)


def _is_gemini_error(given: object) -> bool:
    return isinstance(given, Mapping) and list(given) == ["error"]


def _leaves(value: object, unread: Sequence[str] = ()) -> Iterator[str]:
    """The strings and numbers inside a value, in order. Not recursive, because arguments may be nested deeply."""
    waiting = [value]
    while waiting:
        this = waiting.pop()
        if isinstance(this, str):
            yield this
        elif isinstance(this, Mapping):
            waiting += reversed([inner for key, inner in this.items() if key not in unread])
        elif isinstance(this, (list, tuple)):
            waiting += reversed(this)
        elif this is not None and not isinstance(this, bytes):
            yield str(this)


def _listed(value: object) -> Iterable[object]:
    return value if isinstance(value, (list, tuple)) else ()
