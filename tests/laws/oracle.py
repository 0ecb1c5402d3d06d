"""The agent's side of a session, kept by the tests themselves: what each reader was really shown and still has.

Nothing here asks the package what is visible. A `Reader` holds texts by call id, drops them when the conversation
drops them, and holds every reply against the real output and those texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from readcache import Omitted, Policy, Reply, Session, Shown
from readcache.core.restore.plan import Compaction, RestorePlan
from tests.helpers.chats import WORDS_IN_FRONT

_NUMBERED = re.compile(r"[ \t]*(\d+)(\t|→|: |\| |\. |:|\||-)")
_LINES = re.compile(r" lines? (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)(?= |,|$)")
_THERE = re.compile(r" as (?:\S+ )?lines? (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)")
_WHERE = re.compile(r", (?:\d[\d, -]* )?(?:shown|in) ")
TRUNCATED_BY_HARNESS = "\n[cut by the harness]\n"


@dataclass
class Mark:
    """A marker line that the reader sees, what it stands for, and where that stands."""

    line: str
    omitted_lines: list[str]
    numbered: bool
    sources: tuple[str, ...]

    def names(self, number: int) -> bool:
        """True if the marker says that the line of this number is among those that stand there without numbers."""
        what = _WHERE.split(self.line)[0]
        spans = [span.partition("-") for lines in _LINES.findall(what) for span in lines.split(", ")]
        return " without numbers" in self.line and any(int(a) <= number <= int(b or a) for a, _, b in spans)

    def names_there(self, number: int) -> bool:
        """True if the marker says that lines of this number stand at a source."""
        spans = [span.partition("-") for lines in _THERE.findall(self.line) for span in lines.split(", ")]
        return any(int(a) <= number <= int(b or a) for a, _, b in spans)


def _is_between(mark: Mark, before: str, after: str) -> bool:
    """True if the mark alone was rewritten in a line, and the harness's words around it were left."""
    in_front, found, behind = before.partition(mark.line)
    return found != "" and after.startswith(f"{in_front}[") and after.endswith(f"]{behind}")


def _without_given_back(old: list[str], new: list[str], marks: Sequence[Mark]) -> tuple[list[str], list[str]]:
    """The lines before and after a rewrite, less the marks that gave way to the very lines that they stood for, between
    the harness's words."""
    kept: list[str] = []
    rest: list[str] = []
    at = 0
    for line in old:
        mark = next((mark for mark in marks if mark.line in line), None)
        lines = list(mark.omitted_lines) if mark is not None else []
        if mark is not None and line != mark.line:
            in_front, _, behind = line.partition(mark.line)
            lines[0], lines[-1] = in_front + lines[0], lines[-1] + behind
        there = new[at : at + len(lines)]
        if lines and len(there) == len(lines) and all(map(str.endswith, there, lines)):
            at += len(lines)
            continue
        kept.append(line)
        rest += new[at : at + 1]
        at += 1
    return kept, rest + new[at:]


@dataclass
class Reader:
    """What one agent can see."""

    session: Session
    policy: Policy
    texts: dict[str, str] = field(default_factory=dict)  # call id -> what the harness shows for it, oldest first
    commands: dict[str, str] = field(default_factory=dict)  # call id -> what the agent sent
    marks: dict[str, list[Mark]] = field(default_factory=dict)
    marker_lines: set[str] = field(default_factory=set)
    outdated: dict[str, set[str]] = field(default_factory=dict)  # path -> ids from before a write that was reported
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)  # call id -> the files whose lines it shows
    changed: set[str] = field(default_factory=set)  # ids of calls whose text changed after the fact
    results: set[str] = field(default_factory=set)  # ids of calls that had a result
    reused: set[str] = field(default_factory=set)  # ids that more than one call had: the session trusts none of them
    anonymous: bool = False  # a list without ids was synced: of equal texts nobody can tell which is whose
    tokens: int = 0
    tokens_at: dict[str, int] = field(default_factory=dict)

    def copy_for(self, session: Session) -> Reader:
        """A sub-agent that starts with the same messages."""
        return Reader(
            session,
            self.policy,
            dict(self.texts),
            dict(self.commands),
            {k: list(v) for k, v in self.marks.items()},
            set(self.marker_lines),
            {k: set(v) for k, v in self.outdated.items()},
            dict(self.paths),
            set(self.changed),
            set(self.results),
            set(self.reused),
            self.anonymous,
            self.tokens,
            dict(self.tokens_at),
        )

    # ------------------------------------------------------------ what happens to the conversation

    def take(
        self,
        command: str,
        reply: Reply,
        output: str,
        numbered: bool,
        *,
        paths: Sequence[str] = (),
        shown: str | None = None,
    ) -> None:
        """The harness shows the reply, clipped as the policy says or as `shown` says."""
        text = reply.text
        if shown is None and self.policy.clip is not None:
            shown = TRUNCATED_BY_HARNESS.join(self.policy.clip.kept(text))
        if reply.call_id in self.results:
            self.changed.add(reply.call_id)
            self.reused.add(reply.call_id)
        self.forget([reply.call_id])
        self.results.add(reply.call_id)
        self.texts[reply.call_id] = text if shown is None else shown
        self.commands[reply.call_id], self.paths[reply.call_id] = command, tuple(paths)
        self.marks[reply.call_id] = marks_of(reply, output, numbered)
        self.marker_lines.update(mark.line for mark in self.marks[reply.call_id])
        self._count(reply.call_id, text)

    def settle(self, call_id: str, shown: str) -> None:
        """The harness shows something else after all."""
        self.changed.add(call_id)
        self.texts[call_id] = shown

    def wrote_itself(self, call_id: str, text: str, path: str) -> None:
        """A call whose own text alone is to be seen: the write tool."""
        self.forget([call_id])
        self.texts[call_id], self.commands[call_id], self.marks[call_id] = "", text, []
        self.tokens_at[call_id], self.paths[call_id] = self.tokens, (path,)

    def forget(self, call_ids: Iterable[str]) -> None:
        for call_id in list(call_ids):
            for table in (self.texts, self.commands, self.marks, self.paths, self.tokens_at):
                table.pop(call_id, None)
            for ids in self.outdated.values():
                ids.discard(call_id)

    def rewind(self, call_id: str) -> None:
        ids = list(self.texts)
        self.forget(ids[ids.index(call_id) + 1 :] if call_id in ids else ids)
        if call_id in self.reused:  # the session cannot tell where the host went back to, and takes nothing for seen
            self.changed.update(self.texts)

    def path_written(self, path: str, *, by: str = "") -> None:
        self.outdated[path] = {call for call in self.texts if path in self.paths.get(call, ())} - {by}

    def compacted(self, kept: Sequence[str], plan: RestorePlan | None, done: Compaction) -> None:
        """Takes the new history over, and demands that none of its markers dangles."""
        self.forget(set(self.texts) - set(kept))
        if done.restored_id is not None:
            assert plan is not None
            self.texts[done.restored_id] = plan.render()
            self.commands[done.restored_id], self.marks[done.restored_id] = "", []
            self._count(done.restored_id, plan.render())
        self._take_rewrites(done.rewrites, plan, done)

    def synced(self, left: Mapping[str, tuple[str, str]], rewrites: Mapping[str, str]) -> None:
        """The message list now holds these (command, text) by call id, oldest first, and nothing else."""
        self.forget(set(self.texts) - set(left))
        for call_id, (command, text) in left.items():
            if (command, text) != (self.commands[call_id], self.texts[call_id]):
                self.changed.add(call_id)
            self.commands[call_id], self.texts[call_id] = command, text
        self._take_rewrites(rewrites, None, Compaction())

    def _take_rewrites(self, rewrites: Mapping[str, str], plan: RestorePlan | None, done: Compaction) -> None:
        for call_id, text in rewrites.items():
            if not self.anonymous or call_id in self.texts:
                assert call_id in self.texts, "a reply that is gone was rewritten"
                self._rewrite(call_id, text, plan, done)
        for call_id in self.texts:
            for mark in self._visible_marks(call_id):
                wrong = self.find_fault(mark, whatever_the_horizon=True)
                assert wrong is None, f"the marker in {call_id} dangles: {wrong}"

    def _rewrite(self, call_id: str, text: str, plan: RestorePlan | None, done: Compaction) -> None:
        text = text.removeprefix(WORDS_IN_FRONT)
        if not self.texts[call_id].endswith("\n"):  # a harness may take that away unnoticed
            text = text.removesuffix("\n")
        old, new = self.texts[call_id].split("\n"), text.split("\n")
        marks = {mark.line: mark for mark in self._visible_marks(call_id)}
        known = self.marks[call_id]
        plain = {*(mark.line for mark in known), *old}
        lost = [found for found in self.session.markers_in(self.texts[call_id]) if found not in plain]
        if any(
            not found.startswith("[GONE ") for found in lost
        ):  # amid the harness's words, and taken for content since
            self.texts[call_id] = text
            return
        old, new = _without_given_back(old, new, known)
        assert len(old) == len(new), "a reply was rewritten to another number of lines"
        self.texts[call_id], self.marks[call_id] = text, [mark for mark in known if mark.line not in marks]
        for before, after in zip(old, new, strict=True):
            mark = marks.get(before)
            if mark is None:  # how the session thinks of the harness's own words does not matter
                parts_of = [mark for mark in known if before and mark.line.startswith(before)]
                parts_of += [mark for mark in known if _is_between(mark, before, after)]
                kept = before in (after, TRUNCATED_BY_HARNESS.strip())
                assert kept or parts_of, f"a line that is no marker was rewritten: {before!r}"
                if not kept:
                    self._retire(parts_of[0], call_id, after, plan, done)
            elif before == after and set(mark.sources) <= set(self.texts):
                self.marks[call_id].append(mark)
            elif (
                call_id not in self.reused
                and set(mark.sources) <= set(self.texts) - self.changed
                and not self.anonymous
            ):
                raise AssertionError("a marker that was in order was rewritten")
            else:
                self._retire(mark, call_id, after, plan, done)

    def _retire(self, mark: Mark, call_id: str, after: str, plan: RestorePlan | None, done: Compaction) -> None:
        """`after` stands where the mark stood: it points at the restored section or says that the lines are gone."""
        self.marker_lines.add(after)
        if plan is None or not plan.items or plan.heading not in after:
            assert after != mark.line, "a marker whose source is gone was left as it was"
            return
        assert done.restored_id is not None
        moved = Mark(after, mark.omitted_lines, mark.numbered, (done.restored_id,))
        wrong = self.find_fault(moved)
        assert wrong is None, f"the rewritten marker in {call_id}: {wrong}"
        self.marks[call_id].append(moved)

    def _visible_marks(self, call_id: str) -> list[Mark]:
        lines = set(self.texts[call_id].split("\n"))
        return [mark for mark in self.marks[call_id] if mark.line in lines]

    def _count(self, call_id: str, text: str) -> None:
        self.tokens += self.policy.count_tokens(text)
        self.tokens_at[call_id] = self.tokens

    # ------------------------------------------------------------ what must hold of a reply

    def check(self, reply: Reply, output: str, numbered: bool, *, paths: Sequence[str] = ()) -> None:
        """Every byte of `output` is shown, or stands at a place that the reply names and the reader still has."""
        assert reply.full_text == output
        for mark in marks_of(reply, output, numbered):
            wrong = self.find_fault(mark)
            assert wrong is None, wrong
            if not self.policy.delta and len(paths) == 1:
                old = self.outdated.get(paths[0], set()).intersection(mark.sources)
                assert not old, f"{paths[0]} was written since {old}"

    def check_insisted(
        self, reply: Reply, again: Reply, output: str, numbered: bool, *, paths: Sequence[str] = ()
    ) -> None:
        """Every line that `reply` left out is shown by the answer to the same request right after it."""
        self.check(again, output, numbered, paths=paths)
        assert again.text == output or any(isinstance(segment, Shown) for segment in reply.segments)
        both = lines_left_out_of(reply) & lines_left_out_of(again)
        assert not both, f"lines {sorted(both)} were left out again"

    def find_fault(self, mark: Mark, *, whatever_the_horizon: bool = False) -> str | None:
        """Why the mark is wrong; None when all of its lines stand at its sources."""
        if not mark.sources:
            return "an omission without a source"
        for source in mark.sources:
            if source not in self.texts and not self.anonymous:
                return f"{source} is not in the conversation (any more)"
            horizon = self.policy.horizon_tokens
            at = self.tokens_at.get(source, self.tokens)
            if horizon is not None and not whatever_the_horizon and self.tokens - at > horizon:
                return f"{source} is beyond the horizon"
        sources = [self._lines(source) for source in (self.texts if self.anonymous else mark.sources)]
        at = 0
        while at < len(mark.omitted_lines):
            run = max((self._run(mark, at, lines) for lines in sources), default=0)
            if not run:
                return f"{mark.omitted_lines[at]!r} does not stand at {mark.sources}"
            at += run
        return None

    def _lines(self, call_id: str) -> list[str | None]:
        lines = (self.commands[call_id] + "\n" + self.texts[call_id]).split("\n")
        return [None if line in self.marker_lines else line for line in lines]

    def _run(self, mark: Mark, at: int, theirs: list[str | None]) -> int:
        """The longest stretch from `at` on that stands in one piece."""
        best = 0
        for low in range(len(theirs)):
            k = 0
            while at + k < len(mark.omitted_lines) and low + k < len(theirs):
                line = theirs[low + k]
                if line is None or not self._equal(mark.omitted_lines[at + k], line, mark):
                    break
                k += 1
            best = max(best, k)
        return best

    def _equal(self, ours: str, theirs: str, mark: Mark) -> bool:
        if ours == theirs:
            return True
        if not mark.numbered:
            return any(body == ours for _, body in _split(theirs))
        if any(body == theirs and mark.names(number) for number, body in _split(ours)):
            return True
        return any(b == d and (a == c or mark.names_there(c)) for a, b in _split(ours) for c, d in _split(theirs))


def _split(line: str) -> list[tuple[int, str]]:
    """(number, body) for each way to read the line as a numbered one."""
    found = _NUMBERED.match(line)
    if found is None:
        return []
    out = [(int(found.group(1)), line[found.end() :])]
    if found.group(2) in (": ", "| "):
        out.append((int(found.group(1)), line[found.end() - 1 :]))
    return out


def lines_left_out_of(reply: Reply) -> set[int]:
    """The indexes of the output lines that a reply does not show."""
    out: set[int] = set()
    at = 0
    for segment in reply.segments:
        if isinstance(segment, Shown):
            at += segment.text.count("\n") + (not segment.text.endswith("\n"))
            continue
        count = segment.end - segment.start + 1
        out.update(range(at, at + count))
        at += count
    return out


def marks_of(reply: Reply, output: str, numbered: bool) -> list[Mark]:
    """The reply's markers, each with the output lines that it stands for; asserts that the rest is shown as it is."""
    marks: list[Mark] = []
    rest, text = output, reply.text
    for segment in reply.segments:
        if isinstance(segment, Shown):
            assert rest.startswith(segment.text), "a shown segment is not what the output says next"
            assert text.startswith(segment.text), "a shown segment is not in the reply's text"
            rest, text = rest[len(segment.text) :], text[len(segment.text) :]
        else:
            assert isinstance(segment, Omitted)
            assert segment.end >= segment.start >= 1
            marker, _, text = text.partition("\n")
            lines: list[str] = []
            for _ in range(segment.end - segment.start + 1):
                assert rest, "an omission runs past the end of the output"
                line, _, rest = rest.partition("\n")
                lines.append(line)
            marks.append(Mark(marker, lines, numbered, segment.sources))
    assert (rest, text) == ("", ""), "something is neither shown nor left out"
    return marks
