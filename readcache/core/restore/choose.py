"""Plans the lines to restore after a compaction. It finds the lost results, ranks them, and finds their lines as they
are now.

    score = weight / (x + 2)

For a read of one file, x = sqrt(age * min(age, T)), and the weight falls slowly with the size of the read. T is the
number of calls since the agent wrote or named the file, or SEEN times the number of calls since it was only shown. For
any other command, x = age. The weight is 1 if the command was run more than once, otherwise ONCE.

The formula comes from a study of the rereads after 86 compactions that hosts really made. The study left out whole
repositories in turn, to test the formula on them. tests/benchmarks/README.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import sqrt
from types import MappingProxyType

from readcache.core.model.events import Delivered, Event, MappedSpan, Origin
from readcache.core.model.policy import CHARS_PER_TOKEN, Budget
from readcache.core.model.text import bodies, split_lines
from readcache.core.model.view import View
from readcache.core.restore.evidence import Evidence, Input, Result, gather, is_removed
from readcache.core.restore.fit import Candidate, Counting, LineSource, fit, not_shown, why_not_output, why_not_text
from readcache.core.restore.plan import Bytes, RestorePlan


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
) -> RestorePlan:
    """Return the plan for a compaction in which only the calls in `kept` stay.

    - `log`: every event of this context, and the writes of others.
    - `without`: files that the host restores itself.
    - `inputs`: the agent's texts in the calls of its message list, for tools that the session does not observe.
    - `refuses(paths)` returns the paths that may not be restored, each with the reason.
    - `current(path)` returns a file's lines as they are on disk, or a text that says why they may not be restored.
      None: there is no disk, so the plan uses the lines as last seen.
    """
    evidence = gather(log, inputs)
    keys = evidence.past.known_keys()
    refused = refuses(keys)
    left_out = {key: refused.get(key, "the numbers of its lines are not known") for key in keys}
    files: dict[str, _File | str] = {}
    ranked: list[Candidate] = []
    for result in sorted(evidence.results, key=lambda one: (one.event.call_id not in kept, -score(one), one.age)):
        key = result.key
        if key is None or not result.source_map:
            ranked += _output(result, refused) if result.event.call_id not in kept else ()
        elif key in without:
            left_out[key] = "the host puts it back"
        elif key not in refused:
            if key not in files:
                files[key] = _open(key, evidence, _staying(view, kept, key), current)
            file = files[key]
            left_out[key] = file if isinstance(file, str) else "still visible"
            ranked += file.candidates(result) if isinstance(file, _File) else ()
    ranked = [candidate for candidate in ranked if candidate.numbers]
    paths = list(dict.fromkeys(candidate.source.path for candidate in ranked if candidate.source.path is not None))
    beyond = dict.fromkeys(paths[budget.max_files :], "budget: files")
    items = fit([candidate for candidate in ranked if candidate.source.path not in beyond], budget, count_tokens)
    for path in paths:
        del left_out[path]
        left_out.update(not_shown(path, ranked, items))
    left_out |= beyond
    return RestorePlan(items, tuple(sorted(left_out.items())))


def _staying(view: View, kept: Collection[str], key: str) -> frozenset[tuple[int, str]]:
    """Return the numbered lines of a file that the reader will still see."""
    return frozenset(
        pair
        for visible in view.key(key).visible_spans()
        if visible.mapped.first and visible.event.call_id in kept
        for pair in enumerate(view.bodies(visible), visible.mapped.first)
    )


def _output(result: Result, refused: Collection[str]) -> Iterator[Candidate]:
    """Yield a command's result as a candidate. Yield nothing if the result is empty, has markers, or contains text that
    must not be restored, or if the command was run again."""
    event = result.event
    names = {key for mapped in event.source_map for key in mapped.keys}
    if not result.is_newest or event.markers or not event.text.strip():
        return
    if names.isdisjoint(refused) and why_not_output(event.label, event.text) is None:
        lines = dict(enumerate(split_lines(event.text), 1))
        why = reasons_for(result)
        source_map = tuple(mapped for mapped in event.source_map if not set(mapped.keys) & set(result.changed))
        yield Candidate(LineSource(None, lines, Bytes.SEEN, event.label, source_map), tuple(lines), why)


def _open(
    key: str,
    evidence: Evidence,
    staying: frozenset[tuple[int, str]],
    current: Callable[[str], Sequence[str] | str] | None,
) -> _File | str:
    """Return the file, or the reason why it must not be restored."""
    if current is not None:
        disk = current(key)
        return disk if isinstance(disk, str) else _File(key, dict(enumerate(disk, 1)), staying, disk)
    if is_removed(evidence.past, key):
        return "deleted or moved"
    known: dict[int, str] = {}
    for visible in evidence.past.key(key).current:
        known.update(enumerate(evidence.past.bodies(visible), visible.mapped.first) if visible.mapped.first else ())
    why_not = why_not_text(key, "\n".join(known[n] for n in sorted(known)))
    return _File(key, known, staying, None, _newest(evidence, key)) if why_not is None else why_not


def _newest(evidence: Evidence, key: str) -> dict[int, str]:
    """Return, for each line number that was shown before a write, the ID of the call that showed it last."""
    stale = (
        visible
        for visible in evidence.past.key(key).stale
        if visible.delivery.call >= evidence.replaced.get(key, 0)
        and visible.event.origin is not Origin.RESTORED  # an earlier call showed the lines of a restored section
    )
    return {
        n: visible.event.call_id
        for visible in sorted(stale, key=lambda r: r.delivery.order)
        for n in range(visible.mapped.first, visible.mapped.first + visible.mapped.count)
    }


class _File:
    """The lines of one file that can be restored: as they are on disk or, without a disk, as they were last seen."""

    def __init__(
        self,
        path: str,
        known: Mapping[int, str],
        staying: frozenset[tuple[int, str]],
        disk: Sequence[str] | None,
        newest: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._path, self._known, self._staying, self._disk, self._newest = path, known, staying, disk, newest
        self._now = self._source(known, Bytes.SEEN if disk is None else Bytes.CURRENT)

    def candidates(self, result: Result) -> Iterator[Candidate]:
        """Yield the lines of a result with their current numbers."""
        why = reasons_for(result)
        numbers: set[int] = set()
        before: dict[int, str] = {}
        for mapped in result.source_map:
            shown = _lines_of(result.event, mapped)
            if self._disk is not None:
                shift = _starts_now(shown, self._disk) - mapped.first
                numbers.update(n + shift for n in shown)
            else:
                numbers.update(shown)
                before |= {n: line for n, line in shown.items() if self._is_newest(n, result)}
        yield Candidate(self._now, tuple(n for n in sorted(numbers) if n in self._now.lines), why)
        # Lines from before a write are not combined with others: they may belong to another state of the file.
        if before and why_not_text(self._path, "\n".join(before.values())) is None:
            outdated = self._source(before, Bytes.OUTDATED)
            yield Candidate(outdated, tuple(sorted(outdated.lines)), why)

    def _is_newest(self, number: int, result: Result) -> bool:
        """Return True if no later result showed a line with this number."""
        return number not in self._known and self._newest.get(number) == result.event.call_id

    def _source(self, lines: Mapping[int, str], state: Bytes) -> LineSource:
        left = {n: line for n, line in lines.items() if (n, line) not in self._staying}
        return LineSource(self._path, left, state)


def _lines_of(event: Delivered, mapped: MappedSpan) -> dict[int, str]:
    lines = split_lines(event.text)[mapped.at : mapped.at + mapped.count]
    return dict(enumerate(bodies(lines, mapped.sep), mapped.first))


def _starts_now(seen: Mapping[int, str], disk: Sequence[str]) -> int:
    """Return the current number of the first line in `seen`, because edits above it may have moved these lines. The
    longest line that is still in the file decides. If it occurs several times, the occurrence nearest to its old
    position decides. Return the old number if none of the lines is in the file."""
    start = min(seen)
    if all(disk[n - 1 : n] == [text] for n, text in seen.items()):
        return start
    for line in sorted(seen, key=lambda n: -len(seen[n])):
        now = [n for n, text in enumerate(disk, 1) if text == seen[line]]
        if now:
            return max(1, start + min((n - line for n in now), key=abs))
    return start


# An agent's writes and mentions of a file predict its next reads better than its reads do, by this factor.
SEEN = 4
# The weight of a command that was run once; 0.05 to 0.2 do as well.
ONCE = 0.1
# Calls. Older results of commands predict little and may be out of date. OLD is their weight: they come last.
COMMAND_WITHIN = 25
OLD = 0.01
# The smaller of two reads is slightly more likely to be needed. Tokens, and an exponent; 0 to 0.3 do nearly as well.
SIZE = 200
BY_SIZE = 0.15


def score(result: Result) -> float:
    """Return the score of the result. Only the score of a read depends on its size."""
    if result.key is None:
        weight = (1 if result.is_repeated else ONCE) * (1 if result.age <= COMMAND_WITHIN else OLD)
        return weight / (result.age + 2)
    tokens = len(result.event.text) / CHARS_PER_TOKEN
    touched: int = min(filter(None, (result.age, SEEN * result.shown, result.written, result.named)))
    size: float = (1 + tokens / SIZE) ** BY_SIZE
    return 1 / (size * (sqrt(result.age * touched) + 2))


def reasons_for(result: Result) -> str:
    """Return the evidence in words."""
    if not result.source_map:
        names = " and ".join(key.rsplit("/", 1)[-1] for key in result.changed[:2])
        return f"{_ago(result.age)}{f'; {names} changed since' if names else ''}"
    done = (("shown", result.shown), ("named", result.named), ("written", result.written))
    return ", ".join(f"{what} {_ago(ago)}" for what, ago in done if ago)


def _ago(calls: int) -> str:
    return f"{calls} call{'s' * (calls > 1)} ago"
