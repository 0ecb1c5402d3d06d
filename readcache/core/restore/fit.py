"""Fits lines into a budget: the best first, with neighbouring lines joined to ranges. The budget limits the rendered
section, including titles. Rules say which lines must not be restored, by a path's name and by a file's text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from math import ceil

from readcache.core.model.events import MappedSpan
from readcache.core.model.paths import matches_any, may_name
from readcache.core.model.policy import INSTRUCTIONS, Budget
from readcache.core.model.secrets import SECRET_NAMES, contains_secret
from readcache.core.model.spans import Spans, merge_spans
from readcache.core.restore.plan import Bytes, RestoreItem, RestorePlan

# Tokens. A smaller part of lines that do not all fit is not worth its title.
LEAST = 100
# Tokens. A shorter result is not worth its title while others are left, so it comes last.
SHORTEST_OUTPUT = 60
# Lines that are not blank. A run of at least three is not restored a second time.
SHORTEST_REPEAT = 3

Counting = Callable[[str], int]


@dataclass(frozen=True, slots=True, eq=False)
class LineSource:
    """One state of a file: its known lines by number, without the lines that are visible already. Or a command's
    result: its lines from 1, and the spans of lines of files in it."""

    path: str | None
    lines: Mapping[int, str]
    bytes: Bytes
    command: str | None = None
    source_map: tuple[MappedSpan, ...] = ()

    @property
    def name(self) -> str:
        """The name under which its tokens are counted."""
        return self.path or f"output of {self.command}"


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """Lines that one result showed, in their current state, and the reason why they are worth their tokens."""

    source: LineSource
    numbers: tuple[int, ...]
    why: str

    def is_short(self, count_tokens: Counting) -> bool:
        """Return True if this is the result of a command, and too short to come before others."""
        source = self.source
        return source.path is None and count_tokens("\n".join(source.lines.values())) < SHORTEST_OUTPUT


def fit(ranked: Sequence[Candidate], budget: Budget, count_tokens: Counting) -> tuple[RestoreItem, ...]:
    """Return the items that fit."""
    chosen = _choose(ranked, budget, count_tokens)
    # The total is only known once the items are laid out. While it is too large, drop lines at the end.
    while True:
        items = _items(ranked, chosen, count_tokens)
        taken = Counter[str]()
        for item, name in items:
            taken[name] += item.tokens
        most = budget.max_tokens_per_file
        over = {name: most / tokens for name, tokens in taken.items() if tokens > most}
        found = tuple(item for item, _ in items)
        total = count_tokens(RestorePlan(found).render()) if items and not over else 0
        if not over and total <= budget.max_tokens:
            return found
        chosen = _shortened(chosen, over, min(over.values(), default=budget.max_tokens / max(1, total)))


def _shortened(chosen: Sequence[Candidate], over: Collection[str], share: float) -> list[Candidate]:
    """Return the candidates without their last lines, so that about `share` of the lines remains. If `over` is not
    empty, only candidates with these names are shortened. At least one line is dropped."""
    of = {candidate for candidate in chosen if not over or candidate.source.name in over}
    drop = max(1, ceil((1 - share) * sum(len(candidate.numbers) for candidate in of)))
    out: list[Candidate] = []
    for candidate in reversed(chosen):
        if candidate in of:
            left = max(0, len(candidate.numbers) - drop)
            drop -= len(candidate.numbers) - left
            candidate = replace(candidate, numbers=candidate.numbers[:left])
        out += [candidate] if candidate.numbers else []
    return out[::-1]


def _choose(ranked: Sequence[Candidate], budget: Budget, count_tokens: Counting) -> list[Candidate]:
    """Return as much of each candidate as fits into the remaining budget, the best first; each line once."""
    chosen: list[Candidate] = []
    taken = Counter[str]()
    chosen_numbers: dict[LineSource, set[int]] = {}
    titles = 0
    shown: set[str] = set()
    short = [one for one in ranked if one.is_short(count_tokens)]
    for one in chain((one for one in ranked if not one.is_short(count_tokens)), short):
        candidate = _without_repeats(one, shown) if one.source.command is not None else one
        if candidate is not one and candidate.is_short(count_tokens):
            continue  # what is left without repeats says too little
        source, lines = candidate.source, candidate.source.lines
        has = chosen_numbers.setdefault(source, set())
        numbers = [n for n in candidate.numbers if n not in has]
        if not numbers:
            continue
        title = count_tokens(_title(candidate, numbers)) if source.name not in taken else 0
        room = min(budget.max_tokens_per_file - taken[source.name], budget.max_tokens - taken.total() - titles - title)

        def cost(count: int, lines: Mapping[int, str] = lines, numbers: Sequence[int] = numbers) -> int:
            return count_tokens("\n".join(lines[n] for n in numbers[:count]))

        fitting = bisect_right(range(1, len(numbers) + 1), room, key=cost)
        is_worth = fitting == len(numbers) or cost(fitting) >= LEAST
        if is_worth and any(lines[n].strip() for n in numbers[:fitting]):
            chosen.append(replace(candidate, numbers=tuple(numbers[:fitting])))
            has.update(numbers[:fitting])
            shown.update(lines[n] for n in numbers[:fitting])
            taken[source.name] += cost(fitting)
            titles += title
    return chosen


def _without_repeats(candidate: Candidate, shown: Container[str]) -> Candidate:
    """Return a result with notes instead of lines that other parts of the section have. It has no numbers if nothing
    else is left."""
    lines: list[str] = []
    is_new = False
    for is_shown, group in groupby(candidate.source.lines.values(), lambda line: line in shown or not line.strip()):
        block = list(group)
        count = sum(bool(line.strip()) for line in block)
        is_repeat = is_shown and count >= SHORTEST_REPEAT
        lines += [f"[{len(block)} lines that another part has]"] if is_repeat else block
        is_new |= not is_shown
    if len(lines) == len(candidate.source.lines):
        return candidate
    source = replace(candidate.source, lines=dict(enumerate(lines, 1)), source_map=())
    return replace(candidate, source=source, numbers=tuple(source.lines) if is_new else ())


def _title(candidate: Candidate, numbers: Sequence[int]) -> str:
    return RestorePlan((_item(candidate, numbers[0], numbers[-1], ""),)).render()


def _item(candidate: Candidate, start: int, end: int, body: str, tokens: int = 0) -> RestoreItem:
    source = candidate.source
    if source.command is not None:
        source_map = tuple(mapped for mapped in source.source_map if mapped.at + mapped.count <= end)
        return RestoreItem(None, None, None, body, tokens, candidate.why, source.bytes, source.command, source_map)
    why = candidate.why + (f"; {source.bytes.words}" if source.bytes.words else "")
    return RestoreItem(source.path, start, end, body, tokens, why, source.bytes)


def _items(
    ranked: Sequence[Candidate], chosen: Sequence[Candidate], count_tokens: Counting
) -> list[tuple[RestoreItem, str]]:
    """Return the items of the chosen lines, each with the name of its source: the best source first, a file's ranges in
    order."""
    there: dict[LineSource, list[Candidate]] = {}
    for candidate in chosen:
        there.setdefault(candidate.source, []).append(candidate)
    rank_of = {name: n for n, name in enumerate(dict.fromkeys(candidate.source.name for candidate in ranked))}
    out: list[tuple[RestoreItem, str]] = []
    for source, candidates in there.items():
        for start, end in _ranges(source, candidates):
            best = next(
                (candidate for candidate in candidates if any(start <= n <= end for n in candidate.numbers)), None
            )
            if best is None:  # not expected: each range begins with a line of a candidate
                continue
            body = "\n".join(source.lines[n] for n in range(start, end + 1))
            out.append((_item(best, start, end, body, count_tokens(body)), source.name))
    return sorted(out, key=lambda pair: (rank_of[pair[1]], pair[0].start or 0, pair[0].end or 0))


def _ranges(source: LineSource, candidates: Sequence[Candidate]) -> Spans:
    """Return the lines of the candidates as ranges, without blank lines at the ends. For a result, return all chosen
    lines."""
    chosen = merge_spans((n, n) for candidate in candidates for n in candidate.numbers)
    if source.command is not None:
        return chosen
    solid = ([n for n in range(start, end + 1) if source.lines[n].strip()] for start, end in chosen)
    return tuple((numbers[0], numbers[-1]) for numbers in solid if numbers)


def not_shown(path: str, ranked: Sequence[Candidate], items: Sequence[RestoreItem]) -> dict[str, str]:
    """Return the lines of a file that did not fit into the budget, as {path: reason}; {} if all fit."""
    shown = {n for item in items if item.path == path for n in range(item.start or 0, (item.end or 0) + 1)}
    candidates = [candidate for candidate in ranked if candidate.source.path == path]
    solid = {n for candidate in candidates for n in candidate.numbers if candidate.source.lines[n].strip()} - shown
    spans = ", ".join(f"{a}-{b}" if a < b else str(a) for a, b in merge_spans((n, n) for n in solid))
    return {path: f"budget: lines {spans}"} if spans else {}


# Lock files and build products: names that GitHub's linguist recognises as generated files.
GENERATED_NAMES = (
    *("*.lock", "*.lockb", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.sum"),
    *("*.min.js", "*.min.css", "*.js.map", "*.css.map", "*.designer.cs"),
    *("*.pb.go", "*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*.pb.h", "*.pb.cc"),
)
# Notes in the first lines of generated files: Go's and Facebook's conventions, and the notes of other generators.
_GENERATED = re.compile(r"@generated\b|(?:code |auto-?)generated\b.{0,80}\bdo not (?:edit|modify)\b", re.IGNORECASE)
HEAD_LINES = 10
# Characters per line, on average. Linguist regards scripts and style sheets with longer lines as minified.
MINIFIED = 110


def why_not_name(path: str, protected: Sequence[str] = ()) -> str | None:
    """Return the reason why a file of this name must not be restored; None if it may be. `protected`: globs of paths or
    of names."""
    name = path.rsplit("/", 1)[-1]
    if path.startswith("git:"):
        return "not a file of the work tree"
    if matches_any(path, protected):
        return "protected"
    if matches_any(path, SECRET_NAMES):
        return "looks like a secret"
    if name != "SKILL.md" and matches_any(name, INSTRUCTIONS):  # harnesses attach all of these except SKILL.md
        return "memory file, harnesses attach it themselves"
    if matches_any(name, GENERATED_NAMES):
        return "generated"
    return None


def why_not_text(path: str, text: str) -> str | None:
    """Return the reason why a file with this text must not be restored; None if it may be."""
    if "\0" in text:
        return "binary"
    if contains_secret(text):
        return "looks like a secret"
    lines = text.split("\n")
    minified = path.endswith((".js", ".css")) and len(text) > MINIFIED * len(lines)
    if minified or any(map(_GENERATED.search, lines[:HEAD_LINES])):
        return "generated"
    return None


def why_not_output(command: str, text: str) -> str | None:
    """Return the reason why a command's result must not be restored; None if it may be."""
    if may_name(command, SECRET_NAMES):
        return "looks like a secret"
    return "binary" if "\0" in text else "looks like a secret" if contains_secret(text) else None
