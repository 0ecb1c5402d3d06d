"""Which files and lines the compactor should put back, and the section that holds them.

Plain recency: the files read last, their newest lines first, within the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from readcache.claims import path_of
from readcache.events import Piece
from readcache.marker import name_lines
from readcache.policy import Budget
from readcache.spans import Spans, normalise, subtract
from readcache.view import KeyView, View

HEADING = "Files restored after compaction"


@dataclass(frozen=True, slots=True)
class RestoreItem:
    """Lines start to end of a file, verbatim, and why they are worth their tokens."""

    path: str
    start: int
    end: int
    text: str
    tokens: int
    why: str


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What to put back, best first, and what did not make it: (path, why)."""

    items: tuple[RestoreItem, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    heading: str = HEADING

    def render(self) -> str:
        """The one text to put into the conversation; "" when there is nothing to restore."""
        return self._layout()[0]

    def pieces(self) -> tuple[Piece, ...]:
        """Where in `render()` which lines of which files stand."""
        return self._layout()[1]

    def _layout(self) -> tuple[str, tuple[Piece, ...]]:
        if not self.items:
            return "", ()
        lines, pieces = [f"## {self.heading}"], []
        for item in self.items:
            lines += ["", f"### {name_lines(item.path, [(item.start, item.end)])}"]
            pieces.append(Piece((item.path,), len(lines), item.end - item.start + 1, item.start))
            lines += item.text.split("\n")
        return "\n".join(lines) + "\n", tuple(pieces)

    def to_dict(self) -> dict[str, object]:
        """JSON-able."""
        return {
            "heading": self.heading,
            "items": [
                {"path": i.path, "start": i.start, "end": i.end, "text": i.text, "tokens": i.tokens, "why": i.why}
                for i in self.items
            ],
            "left_out": [{"path": path, "why": why} for path, why in self.left_out],
        }

    def to_message(self, role: str = "user") -> dict[str, str]:
        """A chat message that holds the section."""
        return {"role": role, "content": self.render()}


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did: the id of the restored section, and new texts for kept replies whose markers lost their
    source, by call id."""

    restored_id: str | None = None
    rewrites: dict[str, str] = field(default_factory=dict)


def plan_restore(
    view: View,
    kept: frozenset[str],
    budget: Budget,
    *,
    count_tokens: Callable[[str], int],
    refuses: Callable[[str], str | None],
    current: Callable[[str, int, int], list[str] | None],
) -> RestorePlan:
    """The plan. `refuses(path)` says why a path may not be restored, or None; `current(path, start, end)` gives the
    lines as they are on disk, or None where there is no disk."""
    items: list[RestoreItem] = []
    left_out: list[tuple[str, str]] = []
    files, total = 0, 0
    for key, last_read in _by_recency(view):
        path = path_of(key)
        wanted = _lost_spans(view.key(key), kept)
        why_not = refuses(path) if wanted else "still visible"
        if why_not is None and key != path:
            why_not = "not plain lines of a file"
        if why_not is None and files >= budget.max_files:
            why_not = "budget: files"
        if why_not is not None:
            left_out.append((path, why_not))
            continue
        taken = 0
        for start, end in wanted:
            limit = min(budget.max_tokens_per_file - taken, budget.max_tokens - total)
            item = _item(view, path, start, end, limit, count_tokens, current, f"read {last_read}")
            if item is None:
                left_out.append((path, f"budget: lines {start}-{end}"))
                continue
            items.append(item)
            taken += item.tokens
            total += item.tokens
        files += taken > 0
    return RestorePlan(tuple(items), tuple(left_out))


def _by_recency(view: View) -> list[tuple[str, str]]:
    """(key, when it was read last), newest first; keys with lines that are current."""
    newest: list[tuple[int, str]] = []
    for key in view.known_keys():
        calls = [r.delivery.call for r in view.key(key).references() if not view.key(key).is_stale(r.delivery)]
        if calls and len(view.key(key).numbered):
            newest.append((max(calls), key))
    newest.sort(key=lambda pair: (-pair[0], pair[1]))
    return [(key, f"{view.calls - call + 1} calls ago") for call, key in newest]


def _lost_spans(known: KeyView, kept: frozenset[str]) -> Spans:
    """Lines that are visible now and will not be when only `kept` stays; newest first would split files needlessly."""
    shown: list[tuple[int, int]] = []
    staying: list[tuple[int, int]] = []
    for start, end, reference in known.numbered.overlaps(1, 1 << 60):
        (staying if reference.delivery.event.call_id in kept else shown).append((start, end))
    return subtract(normalise(shown), normalise(staying))


def _item(
    view: View,
    path: str,
    start: int,
    end: int,
    limit: int,
    count_tokens: Callable[[str], int],
    current: Callable[[str, int, int], list[str] | None],
    why: str,
) -> RestoreItem | None:
    """As many of the lines, from the first on, as `limit` tokens allow."""
    lines = current(path, start, end)
    if lines is None:
        lines = list(_last_seen(view, path, start, end))
        why += "; last seen bytes"
    lines = lines[: max(0, limit)]  # a line costs a token at least
    while lines and count_tokens("\n".join(lines)) > limit:
        lines = lines[: len(lines) * 3 // 4]
    if not lines:
        return None
    text = "\n".join(lines)
    return RestoreItem(path, start, start + len(lines) - 1, text, count_tokens(text), why)


def _last_seen(view: View, path: str, start: int, end: int) -> Iterable[str]:
    for a, b, reference in view.key(path).numbered.overlaps(start, end):
        shift = reference.piece.first
        yield from view.bodies(reference)[a - shift : b - shift + 1]
