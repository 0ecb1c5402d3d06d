"""The restore plan: lines that a compactor should put back verbatim, and the section that holds them.

`choose` makes the plan; `rank` says what is worth its tokens.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import Any

from readcache.core.model.errors import UsageError
from readcache.core.model.events import MappedSpan

LONGEST_COMMAND = 80  # characters of a title
HEADING = "Files restored after compaction"
NOTHING_RESTORED = "No file had to be restored after the compaction."


class Bytes(enum.Enum):
    """How a plan knows the lines of an item."""

    CURRENT = "current"  # as they are on disk
    SEEN = "last seen"  # as they were shown; nothing is known to have changed them
    OUTDATED = "last seen, written since"  # as they were shown before a write: they are not a source for a marker


@dataclass(frozen=True, slots=True)
class RestoreItem:
    """Verbatim lines, and why they are worth their tokens: lines start to end of a file, or a command's result from its
    beginning."""

    path: str | None
    start: int | None
    end: int | None
    text: str
    tokens: int
    why: str
    bytes: Bytes = Bytes.CURRENT
    command: str | None = None
    source_map: tuple[MappedSpan, ...] = ()  # of files in a result, by its lines

    @property
    def kind(self) -> str:
        """`"lines"` of a file, or the `"result"` of a command; then `path`, `start` and `end` are None."""
        return "lines" if self.command is None else "result"


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What to put back, best file first, each file's ranges in order; and what did not make it: (path, why)."""

    items: tuple[RestoreItem, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    heading: str = HEADING

    def render(self) -> str:
        """The one text to put into the conversation; "" when there is nothing to restore."""
        return self._layout()[0]

    def source_map(self) -> tuple[MappedSpan, ...]:
        """Where in `render()` the lines of each file stand, without outdated lines."""
        return self._layout()[1]

    def _layout(self) -> tuple[str, tuple[MappedSpan, ...]]:
        if not self.items:
            return "", ()
        lines, source_map = [f"## {self.heading}"], []
        level = "###"  # no line of an item can begin another one
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
        return "\n".join(lines) + "\n", tuple(source_map)

    def to_dict(self) -> dict[str, object]:
        """JSON-able; `from_dict` takes it back."""
        items = [
            {name: getattr(item, name) for name in (*_FIELDS, "kind")} | {"bytes": item.bytes.value}
            for item in self.items
        ]
        left_out = [{"path": path, "why": why} for path, why in self.left_out]
        return {"heading": self.heading, "items": items, "left_out": left_out}

    @staticmethod
    def from_dict(given: object) -> RestorePlan:
        """The plan that `to_dict` wrote. UsageError if it is not a plan: its section is credited by what the plan
        says."""
        try:
            return _read_plan(given)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"not a restore plan: {error!r}; give what `readcache restore --json` printed") from error

    def to_message(self, role: str = "user") -> dict[str, str]:
        """A chat message with the section, or a sentence saying that there is none: no API accepts an empty message."""
        return {"role": role, "content": self.render() or NOTHING_RESTORED}


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did: the id of the restored section, and by call id the new texts of kept replies whose markers
    lost their source, with the frame given to `observe`."""

    restored_id: str | None = None
    rewrites: dict[str, str] = field(default_factory=dict)


def _title(item: RestoreItem, before: RestoreItem | None) -> str:
    """The line above an item. The path and the reasons stand above a file's first range alone."""
    if item.command is not None:
        return f"Output of `{printable(_shortened(item.command))}`, {item.why}"
    lines = f"line {item.start}" if item.start == item.end else f"lines {item.start}-{item.end}"
    if before is None or item.path != before.path:
        return f"{printable(item.path or '')} {lines}: {item.why}"
    return lines + ("" if item.bytes is before.bytes else f" ({item.bytes.value})")


def _shortened(command: str) -> str:
    line = " ".join(command.replace("`", "'").split())
    return line if len(line) <= LONGEST_COMMAND else line[: LONGEST_COMMAND - 1] + "…"


def printable(name: str) -> str:
    """The name on one line, whatever characters a file's name has."""
    return "".join(c if c.isprintable() else "?" for c in name)


_FIELDS = ("path", "start", "end", "text", "tokens", "why", "command")


def _read_plan(given: Any) -> RestorePlan:
    items = tuple(_read_item(entry) for entry in given["items"])
    left_out = tuple((str(entry["path"]), str(entry["why"])) for entry in given["left_out"])
    return RestorePlan(items, left_out, str(given["heading"]))


def _read_item(entry: Any) -> RestoreItem:
    text, command, bytes_ = str(entry["text"]), entry.get("command"), Bytes(entry["bytes"])
    known = text, int(entry["tokens"]), str(entry["why"]), bytes_
    if command is not None:
        return RestoreItem(None, None, None, *known, str(command))
    path, start, end = str(entry["path"]), int(entry["start"]), int(entry["end"])
    if start < 1 or text.count("\n") != end - start:
        raise ValueError(f"the text of {path} does not have lines {start}-{end}")
    return RestoreItem(path, start, end, *known)
