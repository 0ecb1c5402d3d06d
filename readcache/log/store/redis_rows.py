"""Write and read events as fields of a Redis hash, with the names that find them. Pure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from urllib.parse import quote, unquote_to_bytes

from readcache.core.model.errors import StoreError
from readcache.core.model.events import Event, Failed, Record
from readcache.core.model.reply import Reason
from readcache.core.model.text import digest
from readcache.log.store.codec import TEXT, decode, encode, names, unreadable
from readcache.log.store.protocol import NOTHING_LEFT

TAG_BITS = 30  # with 23 bits for the number, a seq stays below 2 ** 53, which JSON readers in all languages can read
_COMPRESSED, _PLAIN = b"z", b"="
_LEAST = 200  # bytes; compression hardly shrinks a shorter text
LOST = (
    "the store's server was restarted, or another took its place: what it had taken last may be lost, and what was "
    "shown before is shown again"
)
Row = tuple[int, bytes, bytes | None]  # number, record, text
Step = list[str | bytes]  # the arguments of one change, see `redis_scripts.COMMIT`


def quoted(name: str) -> str:
    """Return `name` quoted as in a URL, so that it contains no blanks or braces."""
    return quote(name.encode("utf-8", "surrogatepass"), safe="/:=,+@")


def unquoted(name: bytes) -> str:
    """Return the string that `quoted` was given."""
    return unquote_to_bytes(name).decode("utf-8", "surrogatepass")


def seq_of(number: int, tag: int) -> int:
    """Return the seq of an event, made of its number in the session and the tag of its commit."""
    return number << TAG_BITS | tag


def parts_of(seq: int) -> tuple[int, int]:
    """Return the (number, tag) that a seq is made of."""
    return seq >> TAG_BITS, seq & ((1 << TAG_BITS) - 1)


def field_of(agent_id: str, what: str, name: str) -> str:
    """Return the index field that lists the calls with this name."""
    return f"i{quoted(agent_id)} {what} {quoted(name)}"


def step_append(agent_id: str, at: float, event: Event) -> Step:
    """Return the arguments that append an event."""
    kind, body, text = encode(event)
    name = "-" if text is None else "+" if text else "0"
    call, stays = quoted(getattr(event, "call_id", "")), "1" if event == NOTHING_LEFT else "0"
    fields = [field_of(agent_id, what, name) for what, name in names(event)]
    row: Step = ["E", quoted(agent_id), kind, repr(float(at)), call, _packed_body(body), name, _packed(text or "")]
    return [*row, stays, str(len(fields)), *fields]


def step_rewrite(number: int, record: Record, new: Event) -> Step:
    """Return the arguments that store an event instead of the record's."""
    kind, body, text = encode(new)
    found_by = field_of(record.agent_id, TEXT, digest(getattr(record.event, "text", "")))
    return ["R", str(number), kind, _packed_body(body), _packed(text) if text else "", found_by]


def read_row(row: Row, agents: Iterable[str]) -> list[Record]:
    """Return the records of one row. For a loss, return a record for each of `agents` that says that nothing is
    visible any more. For an event that makes no sense, see `unreadable`."""
    number, stored, text = row
    tag, kind, agent, at, name, body = stored.split(b" ", 5)
    seq, moment = seq_of(number, int(tag)), float(at)
    if kind == b"lost":
        lost: tuple[Event, ...] = (Failed("", Reason.STORE_FAILED.value, LOST), NOTHING_LEFT)
        return [Record(seq, reader, moment, event) for reader in agents for event in lost]
    reader = unquoted(agent)
    try:
        plain = json.loads(_unpacked(body))
        return [Record(seq, reader, moment, decode(kind.decode(), plain, _text(name, text)))]
    except (StoreError, ValueError, TypeError, AttributeError, zlib.error) as error:
        return unreadable(seq, reader, moment, error)


def read_rows(rows: Iterable[Row], agent_id: str | None) -> list[Record]:
    """Return the records of these rows, for one reader, or for all readers (None)."""
    records: list[Record] = []
    agents = dict.fromkeys(() if agent_id is None else (agent_id,))
    for row in rows:
        found = read_row(row, agents)
        if agent_id is None:
            agents |= dict.fromkeys(record.agent_id for record in found)
        records += found
    return records


def _packed_body(body: object) -> bytes:
    return _packed(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def _packed(text: str) -> bytes:
    plain = text.encode("utf-8", "surrogatepass")
    if len(plain) < _LEAST:
        return _PLAIN + plain
    return min(_COMPRESSED + zlib.compress(plain, 1), _PLAIN + plain, key=len)


def _text(name: bytes, text: bytes | None) -> str | None:
    if name in (b"-", b"0"):
        return None if name == b"-" else ""
    if not text:
        raise StoreError("its text is missing; the store is damaged")
    return _unpacked(text)


def _unpacked(stored: bytes) -> str:
    plain = zlib.decompress(stored[1:]) if stored[:1] == _COMPRESSED else stored[1:]
    return plain.decode("utf-8", "surrogatepass")
