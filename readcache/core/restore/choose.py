"""Plans the lines to restore after a compaction. It finds the lost results, ranks them, and finds their lines as they
are now.

    score = weight / (x + SOFTENING)

For a read of one file, x = sqrt(age * min(age, T)), and the weight falls slowly with the size of the read. T is the
number of calls since the agent wrote or named the file, or SEEN times the number of calls since it was only shown. For
any other result, x = age. Its weight is REPEATED if the command was run more than once. Otherwise it is between ONCE
and 1, by the share of its lines that are lines of files. Earlier results of a command come last.

The formula comes from a study of the rereads after 86 compactions that hosts really made. The study left out whole
repositories in turn, to test the formula on them. tests/benchmarks/README.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from types import MappingProxyType

from readcache.core.model.call import BASH
from readcache.core.model.events import Event, Origin
from readcache.core.model.policy import MIN_CHARS, Budget
from readcache.core.model.text import count_lines
from readcache.core.model.view import View
from readcache.core.restore.evidence import Evidence, Input, Result, gather, is_removed
from readcache.core.restore.fit import Candidate, Counting, LineSource, fit, not_shown, why_not_output, why_not_text
from readcache.core.restore.located import CurrentFile
from readcache.core.restore.parts import Parts, take_apart
from readcache.core.restore.plan import NOT_RESTORED, Bytes, RestorePlan, file_names, recall_line

MOST_RECALLS = 8  # lines at the end of the section
MOST_FOR_RECALLS = 0.1  # of the budget; a small section has room only for lines of files


def plan_restore(
    view: View,
    kept: Collection[str],
    budget: Budget,
    log: Iterable[Event],
    *,
    without: Collection[str] = (),
    inputs: Iterable[Input] = (),
    count_tokens: Counting,
    refuses: Callable[[Sequence[str]], Mapping[str, str]],
    current: Callable[[str], Sequence[str] | str] | None,
    tag: str = "",
) -> RestorePlan:
    """Return the plan for a compaction in which only the calls in `kept` stay.

    - `log`: every event of this context, and the writes of others.
    - `without`: files that the host restores itself.
    - `inputs`: the agent's texts in the calls of its message list, for tools that the session does not observe.
    - `refuses(paths)` returns the paths that may not be restored, each with the reason.
    - `current(path)` returns a file's lines as they are on disk, or a text that says why they may not be restored.
      None: there is no disk, so the plan uses the lines as last seen.
    - `tag`: of the reader's names, for the results that it may recall. "": it can recall nothing.
    """
    evidence = gather(log, inputs)
    keys = evidence.past.known_keys()
    refused = refuses(keys)
    left_out = {key: refused.get(key, "the numbers of its lines are not known") for key in keys}
    files: dict[str, RestorableFile | str] = dict(refused)

    def open_file(key: str) -> RestorableFile | str:
        if key not in files:
            files[key] = _open(key, evidence, _staying(view, kept, key), current)
        return files[key]

    found: list[tuple[bool, float, int, Candidate]] = []  # the first three rank it: the lowest first
    for result in evidence.results:
        is_kept = result.event.call_id in kept
        parts = take_apart(result, open_file)
        for key, numbers in parts.numbers.items():
            left_out[key] = "the host puts it back" if key in without else "still visible"
            file = open_file(key)
            if key not in without and isinstance(file, RestorableFile):
                why, rank = reasons_for_file(result, key), (not is_kept, -score(result, [key]), result.age)
                found += [(*rank, one) for one in file.candidates(result, numbers, parts.printed.get(key, {}), why)]
        rest = None if is_kept else _rest(result, parts, refused)
        if rest is not None and (result.is_newest or not rest.is_short(count_tokens)):
            found.append((True, -score_of_rest(result, parts), result.age, rest))
    for key in keys:
        reason = files.get(key)
        left_out[key] = reason if isinstance(reason, str) and key not in without else left_out[key]
    ranked = [one for *_, one in sorted(found, key=lambda each: each[:3]) if one.numbers]
    paths = list(dict.fromkeys(candidate.source.path for candidate in ranked if candidate.source.path is not None))
    beyond = dict.fromkeys(paths[budget.max_files :], "budget: files")
    recalls = _recalls(evidence, kept, refused, tag)
    reserved = count_tokens("\n".join((NOT_RESTORED, *recalls.values()))) if recalls else 0
    if reserved > budget.max_tokens * MOST_FOR_RECALLS:
        recalls, reserved = {}, 0
    left = replace(budget, max_tokens=budget.max_tokens - reserved)
    items = fit([candidate for candidate in ranked if candidate.source.path not in beyond], left, count_tokens)
    for path in paths:
        del left_out[path]
        left_out.update(not_shown(path, ranked, items))
    left_out |= beyond
    plan = RestorePlan(items, tuple(sorted(left_out.items())))
    restored = {item.command for item in items}
    ended = replace(plan, recalls=tuple(line for command, line in recalls.items() if command not in restored))
    return ended if count_tokens(ended.render()) <= budget.max_tokens else plan


def _recalls(evidence: Evidence, kept: Collection[str], refused: Collection[str], tag: str) -> dict[str, str]:
    """Return a line for each of the newest results that a recall shows: command -> line. Reads are better repeated."""
    found = dict[str, str]()
    for result in evidence.results if tag else ():
        event, count = result.event, count_lines(result.event.text)
        is_command = event.account is not None and event.account.tool == BASH and result.is_newest
        if not is_command or event.call_id in kept or sum(mapped.count for mapped in event.source_map) == count:
            continue
        if len(event.text) < MIN_CHARS or why_not_output(event.label, event.text) is not None:
            continue
        if result.traces.keys().isdisjoint(refused) and len(found) < MOST_RECALLS:
            found[event.label] = recall_line(f"{tag}.{event.when.call}", event.label, count)
    return found


def _staying(view: View, kept: Collection[str], key: str) -> frozenset[tuple[int, str]]:
    """Return the numbered lines of a file that the reader will still see."""
    return frozenset(
        pair
        for visible in view.key(key).visible_spans()
        if visible.mapped.first and visible.event.call_id in kept
        for pair in enumerate(view.bodies(visible), visible.mapped.first)
    )


def _rest(result: Result, parts: Parts, refused: Collection[str]) -> Candidate | None:
    """Return the part of a result that is restored as it was. Return None if there is none, if it has markers or text
    that must not be restored."""
    event = result.event
    if event.markers or not any(line.strip() for line in parts.rest):
        return None
    if not result.traces.keys().isdisjoint(refused) or why_not_output(event.label, event.text) is not None:
        return None
    lines = dict(enumerate(parts.rest, 1))
    source = LineSource(None, lines, Bytes.SEEN, event.label, parts.source_map)
    return Candidate(source, tuple(lines), reasons_for_rest(result, parts))


def _open(
    key: str,
    evidence: Evidence,
    staying: frozenset[tuple[int, str]],
    current: Callable[[str], Sequence[str] | str] | None,
) -> RestorableFile | str:
    """Return the file, or the reason why it must not be restored."""
    if current is not None:
        disk = current(key)
        if isinstance(disk, str):
            return disk
        return RestorableFile(key, dict(enumerate(disk, 1)), len(disk), staying, on_disk=True)
    if is_removed(evidence.past, key):
        return "deleted or moved"
    known: dict[int, str] = {}
    for visible in evidence.past.key(key).current:
        known.update(enumerate(evidence.past.bodies(visible), visible.mapped.first) if visible.mapped.first else ())
    why_not = why_not_text(key, "\n".join(known[n] for n in sorted(known)))
    if why_not is not None:
        return why_not
    return RestorableFile(key, known, evidence.past.key(key).total, staying, _newest(evidence, key))


def _newest(evidence: Evidence, key: str) -> dict[int, str]:
    """Return, for each line number that was shown before a write, the ID of the call that showed it last."""
    stale = (
        visible
        for visible in evidence.past.key(key).stale
        if visible.mapped.first
        and visible.delivery.call >= evidence.replaced.get(key, 0)
        and visible.event.origin is not Origin.RESTORED  # an earlier call showed the lines of a restored section
    )
    return {
        n: visible.event.call_id
        for visible in sorted(stale, key=lambda r: r.delivery.order)
        for n in range(visible.mapped.first, visible.mapped.first + visible.mapped.count)
    }


class RestorableFile(CurrentFile):
    """The lines of one file that can be restored: as they are on disk or, without a disk, as they were last seen.

    `staying`: lines that the reader will still see. `newest`: see `_newest`."""

    def __init__(
        self,
        path: str,
        lines: Mapping[int, str],
        last: int | None,
        staying: Collection[tuple[int, str]],
        newest: Mapping[int, str] = MappingProxyType({}),
        *,
        on_disk: bool = False,
    ) -> None:
        super().__init__(path, lines, last, is_on_disk=on_disk)
        self._staying, self._newest = staying, newest
        self._now = self._source(lines, Bytes.CURRENT if on_disk else Bytes.SEEN)

    def candidates(
        self, result: Result, numbers: Collection[int], printed: Mapping[int, str], why: str
    ) -> Iterator[Candidate]:
        """Yield the lines of a result. `numbers`: as they are now. `printed`: the lines as they were, by their numbers
        then."""
        yield Candidate(self._now, tuple(n for n in sorted(numbers) if n in self._now.lines), why)
        # Lines from before a write are not combined with others: they may belong to another state of the file.
        before = {n: line for n, line in printed.items() if self._is_newest(n, result)}
        if before and why_not_text(self.path, "\n".join(before.values())) is None:
            outdated = self._source(before, Bytes.OUTDATED)
            yield Candidate(outdated, tuple(sorted(outdated.lines)), why)

    def _is_newest(self, number: int, result: Result) -> bool:
        """Return True if the line is outdated, and no later result showed a line with this number."""
        return number not in self.lines and self._newest.get(number) == result.event.call_id

    def _source(self, lines: Mapping[int, str], state: Bytes) -> LineSource:
        left = {n: line for n, line in lines.items() if (n, line) not in self._staying}
        return LineSource(self.path, left, state)


# An agent's writes and mentions of a file predict its next reads better than its reads do, by this factor.
SEEN = 4
# Calls. With 1.5, 2 or 4, 0.5 to 1.5 turns fewer in 100 are answered at 10,000 tokens.
SOFTENING = 3
# The weights of a command that was run once, and of one that was run again, beside a read of files. With 0.1 for ONCE,
# 3 turns fewer in 100 are answered; with 1 for REPEATED, 1 turn fewer.
ONCE = 0.07
REPEATED = 1.4
# Calls. Older results of commands predict little and may be out of date.
COMMAND_WITHIN = 25
# The weight of such a result, and of one whose command was run again: they come last.
LAST = 0.01
# The smaller of two reads is slightly more likely to be needed. Characters, and an exponent; 0.1 to 0.2 do as well.
SIZE = 800
BY_SIZE = 0.15


def score(result: Result, paths: Sequence[str]) -> float:
    """Return the score of lines of these files that a result showed. Only for one file does it depend on the result's
    size, and on when the file was shown, written and named."""
    if len(paths) != 1:
        return 1 / (result.age + SOFTENING)
    trace = result.traces[paths[0]]
    touched: int = min(filter(None, (result.age, SEEN * trace.shown, trace.written, trace.named)))
    size: float = (1 + len(result.event.text) / SIZE) ** BY_SIZE
    return 1 / (size * (sqrt(result.age * touched) + SOFTENING))


def score_of_rest(result: Result, parts: Parts) -> float:
    """Return the score of the part of a result that is restored as it was."""
    weight = REPEATED if result.is_repeated else ONCE + (1 - ONCE) * parts.share_of_files
    is_last = not result.is_newest or (result.age > COMMAND_WITHIN and not parts.of_files)
    return weight * (LAST if is_last else 1) * score(result, parts.of_files)


def reasons_for_file(result: Result, path: str) -> str:
    """Return the evidence in words, for lines of a file."""
    trace = result.traces[path]
    done = (("last read", trace.shown), ("mentioned", trace.named), ("edited", trace.written))
    return ", ".join(f"{what} {_ago(ago)}" for what, ago in done if ago)


def reasons_for_rest(result: Result, parts: Parts) -> str:
    """Return the evidence in words, for the other lines."""
    does = "do" if len(parts.absent) > 1 else "does"
    absent = f"; {file_names(parts.absent)} {does} not have these lines now" if parts.absent else ""
    has = "have" if len(result.changed) > 1 else "has"
    changed = f"; {file_names(result.changed)} {has} changed since" if result.changed else ""
    count = result.written_since
    written = f"; {count} file{'s were' if count > 1 else ' was'} edited since" if count else ""
    return _ago(result.age) + (absent or changed or written)


def _ago(calls: int) -> str:
    return f"{calls} call{'s' * (calls > 1)} ago"
