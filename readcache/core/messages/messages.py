"""Messages of a conversation in one shape, for any API.

`normalise` reads these shapes:
- OpenAI chat messages (`tool_calls`, the older `function_call`, strings or lists of parts);
- Anthropic messages (strings or blocks);
- items of OpenAI's Responses API;
- messages of Bedrock's Converse and Gemini's contents;
- plain chats without any IDs (mini-swe-agent).

The result is only for reading. `editing` makes changes, in the message as the harness wrote it.

Nothing here raises an error for a message of an unknown shape. A part of an unknown form is `Kind.OTHER`, with its
strings.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from readcache.core.messages import blocks
from readcache.core.messages.blocks import CALLS, THINKING, Raw, as_mapping, blocks_key, result_keys, string, typed


class Kind(enum.Enum):
    """The kind of a part of a message."""

    TEXT = "text"
    CALL = "call"  # the model calls a tool
    RESULT = "result"  # the tool's answer
    THINKING = "thinking"
    IMAGE = "image"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message.

    `text` is the text that the model reads there:
    - For a call, it contains the values of the arguments. Each value begins on its own line, and JSON's escapes are
      decoded, so that the body of a heredoc appears verbatim.
    - For a result, it contains the text blocks, joined by newlines.
    - For an image, it is "".

    An image inside a result is a separate part after the result, with the result's `call_id`.
    """

    kind: Kind
    text: str = ""
    call_id: str | None = None  # None if the harness gave none
    name: str = ""  # the tool's name; for `Kind.OTHER`, the block's own type
    arguments: Mapping[str, object] | None = None  # the arguments of a call; None if they are not a JSON object
    is_error: bool = False  # True if the harness says so; OpenAI's shape cannot say it
    is_object: bool = False  # the result is an object, and `text` is its JSON
    nth: int = 0  # its index among the calls, or the results, of its message that have no ID


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its role and its parts. `raw` is the message as the harness wrote it. `name`: its name in a kept
    conversation (see `context.MessageView`), which it keeps when it is changed."""

    role: str
    parts: tuple[Part, ...]
    raw: Any = field(default=None, compare=False, repr=False)
    name: str = field(default="", compare=False, repr=False)

    def with_raw(self, raw: Raw) -> Message:
        """Return the message as it is after `editing` returned `raw` for it. Only a changed message is read again."""
        return self if raw is self.raw else replace(normalise_one(raw), name=self.name)

    @property
    def text(self) -> str:
        """The plain text of the message, without calls, results and thinking."""
        return "\n".join(part.text for part in self.parts if part.kind is Kind.TEXT)


# Keys whose values the model does not read as text: names and encodings.
UNREAD = (
    *("type", "id", "data", "encrypted_content", "cache_control", "url", "media_type", "mime_type", "mimeType"),
    *("signature", "thoughtSignature", "thought_signature"),
)
_PARTS_ROLES = {"model": "assistant", "": "user", "function": "user", "tool": "user"}  # Gemini's roles


_EMPTY: Raw = {}


def normalise(messages: Sequence[Raw | Message]) -> list[Message]:
    """Return every message of the list in one shape. A `Message` is passed on, so no list is read twice."""
    return [message if isinstance(message, Message) else normalise_one(message) for message in messages]


def normalise_one(message: Raw) -> Message:
    """Return the message in one shape."""
    raw = as_mapping(message)
    if raw is None:
        return Message("", (Part(Kind.OTHER, message if isinstance(message, str) else ""),), message)
    try:
        return _read(raw, message)
    except RecursionError:  # deeply nested results, which no API has
        return Message(string(raw.get("role")), (Part(Kind.OTHER, "\n".join(_leaves(raw, UNREAD))),), message)


def _read(raw: Mapping[str, Any], message: Raw) -> Message:
    role = string(raw.get("role"))
    if blocks_key(raw) == "parts":
        role = _PARTS_ROLES.get(role, role)
    if role:
        return Message(role, _numbered(_parts(raw, role)), message)
    kind = string(raw.get("type"))
    role = "tool" if kind in blocks.ITEM_RESULTS else "assistant" if kind in CALLS or kind in THINKING else ""
    return Message(role, tuple(_block(raw)), message)


def _numbered(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts. Each call or result without an ID gets its index among the parts of its kind without an ID."""
    found = tuple(parts)
    for kind in (Kind.CALL, Kind.RESULT):
        indexes = (at for at, part in enumerate(found) if part.kind is kind and part.call_id is None)
        nths = {at: nth for nth, at in enumerate(indexes)}
        if len(nths) > 1:
            found = tuple(replace(part, nth=nths.get(at, part.nth)) for at, part in enumerate(found))
    return found


def visible_to_model(messages: Sequence[Raw]) -> Sequence[Raw]:
    """Return the list with everything before its last server-side compaction emptied; each message keeps its index.
    Return the same list object if there is no compaction.

    Clients may keep the whole history. The API drops everything before such an item (OpenAI: type "compaction") or
    content block (Anthropic: the same type) before the model sees the list.
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
    """Return the index of the content block before which the API drops everything. Return 0 if the message itself is
    such an item, and None if nothing was compacted."""
    content = _field(message, "content")
    if type(content) is list:
        for at in range(len(content) - 1, -1, -1):
            if _is_compaction(content[at]):
                return at
    return 0 if _is_compaction(message) else None


def inputs_of(messages: Sequence[Raw | Message]) -> list[tuple[str, str]]:
    """Return the calls in the messages, in order, each as (ID, the model's text in it)."""
    said = (message.parts for message in normalise(messages) if message.role == "assistant")
    return [(part.call_id or "", part.text) for parts in said for part in parts if part.kind is Kind.CALL]


def update_all(messages: Iterable[Message], raws: Iterable[Raw]) -> list[Message]:
    """Return the messages as they are after `editing` returned `raws` for them. Only changed messages are read
    again."""
    pairs = zip(messages, raws, strict=True)
    return [message.with_raw(raw) for message, raw in pairs]


def raw_messages(messages: Iterable[Message]) -> list[Raw]:
    """Return the messages as the harness wrote them."""
    return [message.raw for message in messages]


def _is_compaction(thing: object) -> bool:
    kind = thing.get("type") if type(thing) is dict else _field(thing, "type")
    return isinstance(kind, str) and kind[:10] == "compaction"


def _field(thing: object, name: str) -> object:
    if type(thing) is dict:  # testing for a Mapping takes five times as long, and this runs for every message
        return thing.get(name)
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def plain(value: Any) -> Any:
    """Return a copy of a message in JSON's types, so that later changes to the message do not reach the copy. The
    objects of the APIs' packages become dicts. A value without a JSON type stays as it is."""
    if isinstance(value, str):  # first, because nearly all values are strings
        return value
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    raw = as_mapping(value)
    return value if raw is None else {key: plain(inner) for key, inner in raw.items()}


def _parts(raw: Mapping[str, Any], role: str) -> Iterator[Part]:
    thinking = raw.get("thinking_blocks") or raw.get("reasoning_content") or ()
    yield from [Part(Kind.THINKING, thinking)] if isinstance(thinking, str) else _content(thinking)
    is_result = role in blocks.RESULT_ROLES and result_keys(raw) is not None
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
    if kind in blocks.TEXTS and isinstance(raw.get("text"), str):
        yield Part(Kind.TEXT, raw["text"])
    elif kind in CALLS:
        id_key, key = CALLS[kind]
        yield _call(raw.get(id_key), raw.get("name"), raw.get(key))
    elif result_keys(raw) is not None:
        yield from _result(raw)
    elif kind in THINKING:
        yield Part(Kind.THINKING, "\n".join(_leaves(raw.get(THINKING[kind]), UNREAD)))
    elif kind in blocks.IMAGES:
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
    """Return the arguments of a call, which some APIs write as JSON in a string. Return None if they are not a JSON
    object."""
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
    is_geminis_error = isinstance(given, Mapping) and list(given) == ["error"]
    is_error = raw.get("is_error") is True or raw.get("status") == "error" or is_geminis_error
    is_object = isinstance(given, Mapping) and text not in given.values()
    yield Part(Kind.RESULT, text, name, string(raw.get("name")), is_error=is_error, is_object=is_object)
    for part in inner:
        if part.kind is not Kind.TEXT:
            yield Part(part.kind if part.kind is Kind.IMAGE else Kind.OTHER, part.text, name, part.name)


def result_text(raw: Raw) -> str:
    """Return the text of a result, equal to the text of its `Part`. `raw`: the block, or a message that is a result."""
    return next(_result(raw)).text


def _attached(raw: Raw) -> Iterator[Part]:
    """Yield the parts that Gemini has next to a response: images. Text next to it becomes `Kind.OTHER`, because the
    result's text is only in the response."""
    for part in _content(raw.get("parts")):
        yield replace(part, kind=Kind.OTHER) if part.kind is Kind.TEXT else part


def text_of_response(given: Raw) -> str:
    """Return the text that the model reads of Gemini's response: its only value if that is a string, otherwise JSON."""
    if not given:
        return ""
    value = next(iter(given.values()))
    is_text = len(given) == 1 and isinstance(value, str)
    return str(value) if is_text else json.dumps(given, ensure_ascii=False, skipkeys=True, default=str)


def _leaves(value: object, unread: Sequence[str] = ()) -> Iterator[str]:
    """Yield the strings and numbers inside a value, in order."""
    waiting = [value]  # a stack instead of recursion, because arguments may be nested deeply
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
