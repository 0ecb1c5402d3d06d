"""The restore plan: lines that a compactor should restore verbatim, and the section that contains them.

`choose` makes the plan, and decides which results are worth their tokens.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from readcache.core.judging.marker import RECALL
from readcache.core.model.errors import UsageError
from readcache.core.model.events import MappedSpan
from readcache.core.model.text import printable

LONGEST_COMMAND = 80  # characters of a title
HEADING = "Files restored after compaction"
NOT_RESTORED = "Not restored; to see one of these outputs as it was, run its command"
NOTHING_RESTORED = "No files needed to be restored after the compaction."


class Bytes(enum.Enum):
    """The way in which a plan knows the lines of an item."""

    CURRENT = "current"  # as they are on disk
    SEEN = "last seen"  # as they were shown; nothing is known to have changed them
    OUTDATED = "last seen, written since"  # as they were shown before a write; never the source of a marker

    @property
    def words(self) -> str:
        """The words of a heading; "" for lines as they are on disk."""
        return {Bytes.SEEN: "as last seen", Bytes.OUTDATED: "as last seen; the file was edited later"}.get(self, "")


@dataclass(frozen=True, slots=True)
class RestoreItem:
    """Verbatim lines, and the reason why they are worth their tokens: the lines start to end of a file, or a command's
    result from its beginning."""

    path: str | None
    start: int | None
    end: int | None
    text: str
    tokens: int
    why: str
    bytes: Bytes = Bytes.CURRENT
    command: str | None = None
    source_map: tuple[MappedSpan, ...] = ()  # spans of a result that are lines of files

    @property
    def kind(self) -> str:
        """`"lines"` of a file, or the `"result"` of a command. For a result, `path`, `start` and `end` are None."""
        return "lines" if self.command is None else "result"


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The items to restore, the best file first, each file's ranges in order. `left_out` lists (path, reason) for
    everything else. `recalls`: for results of commands that are not restored, lines that say how to recall them."""

    items: tuple[RestoreItem, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    heading: str = HEADING
    recalls: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the text to put into the conversation; "" if there is nothing to restore."""
        return self._layout()[0]

    def source_map(self) -> tuple[MappedSpan, ...]:
        """Return the spans of `render()` that are lines of files, without outdated lines."""
        return self._layout()[1]

    def _layout(self) -> tuple[str, tuple[MappedSpan, ...]]:
        if not self.items:
            return "", ()
        lines, source_map = [f"## {self.heading}"], []
        level = "###"  # deep enough that no line of an item looks like a title
        while any(f"\n{level} " in f"\n{item.text}" for item in self.items):
            level += "#"
        before: RestoreItem | None = None
        for item in self.items:
            lines.append(f"{level} {_title(item, before)}")
            before = item
            if item.path is None or item.start is None or item.end is None:
                source_map += [replace(mapped, at=mapped.at + len(lines)) for mapped in item.source_map]
            elif item.bytes is not Bytes.OUTDATED:
                source_map.append(MappedSpan((item.path,), len(lines), item.end - item.start + 1, item.start))
            lines += item.text.split("\n")
        if self.recalls:
            lines += [f"{level} {NOT_RESTORED}", *self.recalls]
        return "\n".join(lines) + "\n", tuple(source_map)

    def to_dict(self) -> dict[str, object]:
        """Return the plan as JSON-compatible data, which `from_dict` reads."""
        items = [
            {name: getattr(item, name) for name in (*_FIELDS, "kind")} | {"bytes": item.bytes.value}
            for item in self.items
        ]
        left_out = [{"path": path, "why": why} for path, why in self.left_out]
        return {"heading": self.heading, "items": items, "left_out": left_out, "recalls": list(self.recalls)}

    @staticmethod
    def from_dict(given: object) -> RestorePlan:
        """Return the plan that `to_dict` wrote. Raise UsageError if the data is not a plan, because the lines of the
        section are credited as the plan says."""
        try:
            return _read_plan(given)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"not a restore plan: {error!r}; give what `readcache restore --json` printed") from error

    def to_message(self, role: str = "user") -> dict[str, str]:
        """Return a chat message with the section, or with a sentence that says that there is none: no API accepts an
        empty message."""
        return {"role": role, "content": self.render() or NOTHING_RESTORED}


@dataclass(frozen=True, slots=True)
class Compaction:
    """The result of a compaction. `restored_id`: the ID of the restored section. `rewrites`: by call ID, the new texts
    of kept replies whose markers lost their source, including the frame that was given to `observe`."""

    restored_id: str | None = None
    rewrites: dict[str, str] = field(default_factory=dict)


def _title(item: RestoreItem, before: RestoreItem | None) -> str:
    """Return the line above an item. Only a file's first range has the whole path and the reasons above it."""
    if item.command is not None:
        return f"Output of `{printable(_shortened(item.command))}` from {item.why}"
    lines = f"line {item.start}" if item.start == item.end else f"lines {item.start}-{item.end}"
    if before is None or item.path != before.path:
        return f"{printable(item.path or '')} {lines}: {item.why}"
    words = "" if item.bytes is before.bytes else f" ({item.bytes.words or 'as on disk now'})"
    return f"{file_names([item.path or ''])} {lines}{words}"


def _shortened(command: str) -> str:
    line = " ".join(command.replace("`", "'").split())
    return line if len(line) <= LONGEST_COMMAND else line[: LONGEST_COMMAND - 1] + "…"


def file_names(paths: Iterable[str]) -> str:
    """Return words for the first two files, such as `a.py or b.py`."""
    return " or ".join(printable(path.rstrip("/").rsplit("/", 1)[-1]) for path in list(paths)[:2])


_FIELDS = ("path", "start", "end", "text", "tokens", "why", "command")


def _read_plan(given: Any) -> RestorePlan:
    items = tuple(_read_item(entry) for entry in given["items"])
    left_out = tuple((str(entry["path"]), str(entry["why"])) for entry in given["left_out"])
    recalls = tuple(printable(str(line)) for line in given.get("recalls", ()))  # earlier builds have none
    return RestorePlan(items, left_out, str(given["heading"]), recalls)


def recall_line(name: str, command: str, count: int) -> str:
    """Return the line that says how to recall the result `name` of a command, `count` lines."""
    return f"{RECALL}{name} ({count} line{'s' if count > 1 else ''}): {printable(_shortened(command))}"


def _read_item(entry: Any) -> RestoreItem:
    text, command, bytes_ = str(entry["text"]), entry.get("command"), Bytes(entry["bytes"])
    known = text, int(entry["tokens"]), str(entry["why"]), bytes_
    if command is not None:
        return RestoreItem(None, None, None, *known, str(command))
    path, start, end = str(entry["path"]), int(entry["start"]), int(entry["end"])
    if start < 1 or text.count("\n") != end - start:
        raise ValueError(f"the text of {path} does not have lines {start}-{end}")
    return RestoreItem(path, start, end, *known)
