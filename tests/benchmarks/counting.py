"""The counts of tokens beside the providers', and the marks of `clear` at sizes that the providers counted.

    python tests/benchmarks/counting.py [--marks | --held-out] [--check] DIR…

DIR holds the transcripts of one repository, with usage fields. Of copies of a conversation, the longest counts.

Without --marks: our count of each request of more than 30,000 tokens, divided by the provider's. "by usage": from the
request before it. "by model": from the characters alone. With --held-out: the same, but the characters of a token and
the tokens of a host's instructions are measured in all other repositories.

With --marks: what each pair of marks costs and misses in conversations of more than 100,000 tokens, and what the pair
that the other repositories choose does in each one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from readcache.core.model.tokens import LEAST_GROWN, ConversationTokens, chars_per_token, family_of, instructions_of
from readcache.core.model.tool_call import ToolCall
from readcache.report.replay.bills import RATIOS
from readcache.report.replay.conversation_sim import BASE
from readcache.report.replay.conversations import LONG, Conversations, largest_size
from readcache.report.replay.replayer import Choices
from readcache.transcripts.files import find_files, read_content, units_of
from readcache.transcripts.formats import recordings_in
from readcache.transcripts.records import HistoryRemoval, NotUnderstood, Recording, RequestSent

LEAST = 30_000  # tokens: below, most of a request is the host's instructions
NEAR = 0.15
GOALS = {("by usage", ""): 0.95, ("by model", "claude-code"): 0.6, ("by model", "codex"): 0.6}
MARKS = tuple(f"clear:{a}k:{b}k" for a in (120, 130, 140, 150, 160) for b in (60, 80, 100, 120, 140) if b <= a - 20)
BESIDE = ("none", "compact:160k", "compact:200k")
MOST_MISSED = 0.05


def recordings(directory: str) -> list[Recording]:
    """The conversations of a repository, each once."""
    found: dict[str, Recording] = {}
    for unit in (unit for file in find_files([directory]) for unit in units_of(file)):
        try:
            for one in recordings_in(read_content(unit)):
                name = one.first_call or f"{unit.file.path} {one.reader}"
                found[name] = max(one, found.get(name, one), key=lambda each: len(each.items))
        except NotUnderstood as error:
            print(error, file=sys.stderr)
    return list(found.values())


class Facts(NamedTuple):
    """The measured numbers of a model's family and of a host."""

    chars_per_token: float
    instructions: int


def shipped(recording: Recording) -> Facts:
    """The numbers that readcache has."""
    return Facts(chars_per_token(recording.model), instructions_of(recording.agent, BASE))


class Measured:
    """The same numbers, measured in some recordings: medians of turns and of main agents' first requests."""

    def __init__(self, among: Iterable[Recording]) -> None:
        self.chars, self.first = defaultdict[str, list[float]](list), defaultdict[str, list[int]](list)
        for one in among:
            self.chars[family_of(one.model).name] += turns_of(one)
            first = next((item.prompt for item in one.items if isinstance(item, RequestSent)), 0)
            self.first[one.agent] += [first] if first and one.reader == "main" else []

    def facts(self, recording: Recording) -> Facts:
        """The numbers for a recording; what readcache has where nothing was measured."""
        given = shipped(recording)
        chars = median(self.chars[family_of(recording.model).name] or [given.chars_per_token])
        return Facts(chars, round(median(self.first[recording.agent] or [given.instructions])))


def turns_of(recording: Recording) -> Iterator[float]:
    """Yield the characters of a token in each turn that added mostly one large result."""
    before, results, answer = 0, list[int](), 0
    for item in recording.items:
        if isinstance(item, ToolCall):
            results.append(len(item.output))
        elif isinstance(item, HistoryRemoval):
            before = 0
        elif item.prompt:
            added, grown = sum(results) + item.added + answer, item.prompt - before
            if before and grown > 0 and added >= LEAST_GROWN and max(results, default=0) > 0.8 * added:
                yield added / grown
            before, results, answer = item.prompt, [], item.answer


def estimates(recording: Recording, facts: Facts) -> Iterator[tuple[str, int, float, float]]:
    """Yield (how, tokens by the provider, our count, share of the provider's) for each request."""
    chars, base = facts
    size, counted = ConversationTokens(LEAST_GROWN / chars), 0.0
    for item in recording.items:
        if isinstance(item, ToolCall):
            counted += len(item.output) / chars
        elif isinstance(item, HistoryRemoval):
            size.restart()
            counted = 0 if item.compacts else counted
        else:
            counted += item.added / chars
            ways = {"by model": base + counted} | ({"by usage": size.of(counted)} if size.is_known else {})
            yield from ((how, item.prompt, told, told / item.prompt) for how, told in ways.items() if item.prompt)
            size.sent(item.prompt, counted)
            counted += item.answer / chars


def compare(repositories: Iterable[str], *, is_held_out: bool) -> list[str]:
    """Print the shares by host, and return the goals that were missed."""
    shares = defaultdict[tuple[str, str, str], list[float]](list)
    by_repository = {directory: recordings(directory) for directory in repositories}
    for directory, own in by_repository.items():
        others = [one for name, each in by_repository.items() if name != directory for one in each]
        facts_of = Measured(others).facts if is_held_out else shipped
        for recording in own:
            reader = "main" if recording.reader == "main" else "sub-agent"
            for how, prompt, _, share in estimates(recording, facts_of(recording)):
                if prompt > LEAST:
                    shares[how, recording.agent, reader].append(share)
        if is_held_out:
            found = {(one.agent, family_of(one.model).name): facts_of(one) for one in own}
            for (agent, family), facts in found.items():
                numbers = f"{facts.chars_per_token:.2f} characters a token, {facts.instructions:,} of instructions"
                print(f"without {Path(directory).name}: {agent}, {family}: {numbers}")
    missed = []
    for (how, agent, reader), each in sorted(shares.items()):
        near = sum(abs(share - 1) < NEAR for share in each) / len(each)
        print(f"{how:9} {agent:12} {reader:10} {len(each):7,} requests: median {median(each):.2f}, near {near:6.1%}")
        goal = GOALS.get((how, ""), GOALS.get((how, agent), 0.0))
        missed += [f"{how}, {agent}: {near:.1%}"] if reader == "main" and near < goal else []
    return missed


def kept(recording: Recording, read: float) -> dict[str, Counter[str]]:
    """What each way of keeping a conversation costs and misses. `read`: the price of a cached token."""
    prices = Choices().prices(recording) or RATIOS
    prices, chars = replace(prices, read=read * prices.input), chars_per_token(recording.model)
    talk = Conversations((*BESIDE, *MARKS), prices, chars_per_token=chars, host=recording.agent)
    for item in recording.items:
        if isinstance(item, ToolCall):
            talk.call(item, is_read=False)
        elif isinstance(item, RequestSent):
            talk.sent(item)
        else:
            talk.trim(item)
    return {spec: counts for (spec, _), counts in talk.end().items()}


def choose_marks(repositories: Sequence[str], read: float) -> None:
    """Print what each pair of marks costs and misses, and the choice with each repository left out."""
    found: dict[str, list[dict[str, Counter[str]]]] = {}
    for directory in repositories:
        long = [one for one in recordings(directory) if largest_size(one.items, 1.0, one.agent) > LONG]
        long = [one for one in long if any(isinstance(item, RequestSent) for item in one.items)]
        found |= {directory: [kept(one, read) for one in long]} if long else {}

    def sums(spec: str, among: Iterable[str] = found) -> Counter[str]:
        return sum((each[spec] for name in among for each in found[name]), Counter[str]())

    def best(among: Sequence[str]) -> str:
        totals = {spec: sums(spec, among) for spec in MARKS}
        few = [spec for spec, total in totals.items() if total["missed"] <= MOST_MISSED * total["needs"]]
        return min(few, key=lambda spec: totals[spec]["bill"])

    none = sums("none")["bill"]
    for spec, total in ((spec, sums(spec)) for spec in ("recorded", *BESIDE, *MARKS)):
        print(f"{spec:16} bill {total['bill'] / none:6.1%}  needs missed {total['missed'] / total['needs']:5.1%}")
    left_out = {name: best([other for other in found if other != name]) for name in found}
    apart = sum((sums(spec, [name]) for name, spec in left_out.items()), Counter[str]())
    print(f"{len(found)} repositories, {sum(map(len, found.values()))} conversations, cached input at {read}")
    print(
        f"the best: {best(list(found))}; without one repository: {dict(Counter(left_out.values()))}, which in that one"
    )
    print(f"which in that one costs {apart['bill'] / none:.1%} and misses {apart['missed'] / apart['needs']:.1%}")


def main() -> None:
    """Compare, or choose the marks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", metavar="DIR", help="transcripts of one repository")
    parser.add_argument("--marks", action="store_true", help="look for the marks of `clear`")
    parser.add_argument("--held-out", action="store_true", help="measure in the other repositories, and test in each")
    parser.add_argument("--check", action="store_true", help="exit 1 if a count is less often near than it should be")
    chosen = parser.parse_args()
    paths = [str(Path(path)) for path in chosen.repositories]
    if chosen.marks:
        for read in (0.1, 0.05):
            choose_marks(paths, read)
    elif (missed := compare(paths, is_held_out=chosen.held_out)) and chosen.check:
        sys.exit(f"missed: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
