"""The law of numbers: a line number that was derived from a command is stored and printed only if it is proven.

The files are shorter and longer than the numbers in the commands, and nobody changes them.
"""

from __future__ import annotations

import random
import re
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import event, given
from hypothesis import strategies as st

from readcache import Omitted, Policy, Reply, Session
from readcache.core.model.events import Delivered
from readcache.core.model.text import bodies, split_lines, split_number

COMMANDS = (
    "cat {f}",
    "cat -n {f}",
    "cat {f} {g}",
    "cat -n {f} {g}",
    "nl -ba {f} {g}",
    "nl -ba -v{n} {f}",
    "cat -n {f} - <{g}",
    "cat {f} && cat {g}",
    "cat nope; cat {f}",
    "cat {f} nope {g}",
    "cat {f}; tac {g}; cat {f}",
    "cat -n {f}; cat -n {g}",
    "cat -n {f}; cat {g}",
    "cat -n {f}; cat -n {g} | tail -n +{n}",
    "cat -n {g} 2>&1; awk '{{print NR \"\\t\" $0}}' {f}",
    "awk '{{print NR \"\\t\" $0}}' {f}; cat -n {g}",
    "awk '{{print NR \"\\t\" $0}}' {f}; cat -n nope 2>/dev/null; true",
    "(cat {f}; cat {g}) | cat -n",
    "(cat -n {f}; cat -n {g}) | tail -{n}",
    "(cat {f}; echo; cat {g}) | nl -ba | tail -{n}",
    "head -{m} {f}",
    "tail -{n} {f}",
    "tail -n +{n} {f} | head -{m}",
    "head -{m} {f} | tail -{n}",
    "head -{m} {f} | tail -{n} | head -{o}",
    "head -{m} {f} | tail -{n} | cat -n",
    "cat -n {f} | head -{m} | tail -{n}",
    "sed -n '{n},{m}p' {f}",
    "sed -n '{n},{m}p' {f} {g}",
    "sed -n '{n},{m}p' {f} | tail -n {o}",
    "sed -n '{n},{m}p' {f} | cat -n",
    "sed -n '{n},{m}p' {f}; sed -n '{o},{m}p' {g}",
    "sed -n '{n},{m}p' {f}; echo ---; head -{m} {g} | tail -{o}",
    "head -{m} {f} | tail -{n}; cat {g}",
    "head -{n} {f} {g}",
    "grep -n o {f}",
    "cat {f} | grep -n o",
)
NAMES = ("a", "b", "c")
_NUMBERS = re.compile(r"\b([abc]) lines? ([\d, -]+)")


def contents(rng: random.Random) -> list[str]:
    """Return the lines of a file; some files consist of a few different lines."""
    words, unique = ("one more line", "another one", "word for word", "", "}"), rng.random() < 0.6
    lines = (rng.choice(words) for _ in range(rng.choice((0, 1, 2, 9, 20, 33, 40))))
    name = rng.choice("xyz")
    return [f"{line} {name} {n}" if unique else line for n, line in enumerate(lines, 1)]


def numbers_of(spec: str) -> list[int]:
    """Return the numbers in `1-3, 5`."""
    spans = (span.partition("-") for span in spec.strip(" ,").split(", "))
    return [n for low, _, high in spans for n in range(int(low), int(high or low) + 1)]


class Story:
    """A conversation about files that nobody changes."""

    def __init__(self, root: str, seed: int) -> None:
        self.rng, self.root = random.Random(seed), root
        self.files = {name: contents(self.rng) for name in NAMES}
        if self.rng.random() < 0.3:
            self.files["b"] = self.files["a"][self.rng.randrange(3) :]
        for name, lines in self.files.items():
            end = self.rng.choice(("\n", "\n", ""))
            Path(root, name).write_text("\n".join(lines) + end * bool(lines), encoding="utf-8")
            self.files[name] = split_lines(Path(root, name).read_text(encoding="utf-8"))
        policy = Policy.named(self.rng.choice(("default", "delta", "max")))
        self.session = Session(root, policy=replace(policy, min_chars=0, min_worth=0))
        self.omitted = 0

    def command(self) -> str:
        """Return a command about some of the files."""
        f, g = self.rng.choices(NAMES, k=2)
        n, o, m = sorted(self.rng.choice((1, 2, 5, 15, 25, 30, 36, 45)) for _ in range(3))
        return self.rng.choice(COMMANDS).format(f=f, g=g, n=n, o=o, m=m)

    def check_reply(self, reply: Reply) -> None:
        """Check the numbers in the words of each marker, and of each omission."""
        lines, at = split_lines(reply.full_text), 0
        for segment in reply.segments:
            if isinstance(segment, Omitted):
                count = segment.end - segment.start + 1
                self.omitted += count
                if segment.path is not None:
                    self.check_lines(segment.path, segment.start, lines[at : at + count])
                at += count
            else:
                at += len(split_lines(segment.text))
        for marker in self.session.markers_in(reply.text):
            words = re.sub(r'"[^"]*"', "", marker)
            for name, spec in _NUMBERS.findall(words):
                there = self.files[name]
                assert max(numbers_of(spec)) <= len(there), f"{marker}: {name} has {len(there)} lines"

    def check_lines(self, path: str, first: int, shown: list[str]) -> None:
        """Check that the file has these lines, perhaps with a number before each when they were shown."""
        there = self.files[Path(path).name][first - 1 : first - 1 + len(shown)]
        plain = [(split_number(line, "\t") or split_number(line, ":") or (0, line))[1] for line in shown]
        assert there in (shown, plain), f"{path} lines {first}-{first + len(shown) - 1} are not {shown[:3]}"

    def check_log(self) -> None:
        """Check that each line that is stored with a number is this line of its file."""
        for stored in self.session.events():
            if isinstance(stored.event, Delivered):
                lines = split_lines(stored.event.text)
                for mapped in stored.event.source_map:
                    if mapped.first:
                        (key,) = mapped.keys
                        text = bodies(lines[mapped.at : mapped.at + mapped.count], mapped.sep)
                        self.check_lines(key, mapped.first, text)
                        assert not mapped.eof or mapped.first + mapped.count - 1 == len(self.files[Path(key).name])
        for name, there in self.files.items():
            covered = [n for n in range(1, 100) if self.session.view.covers(f"{self.root}/{name}", n, n)]
            assert not covered or covered[-1] <= len(there)


@given(st.integers(0, 2**40))
def test_each_number_is_a_line_of_that_file_with_those_bytes(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        story = Story(str(Path(folder).resolve()), seed)
        with story.session as session, session.watch():
            for _ in range(story.rng.randrange(2, 7)):
                command = story.command()
                story.check_reply(session.run(command))
                assert [change.path for change in session.changes()] == [], command
            story.check_log()
        event(f"omitted: {story.omitted > 0}")


def test_each_marker_names_the_numbers_of_one_file(tmp_path: Path) -> None:
    """One marker named the numbers of two files, and where each of them stands as lines of this output."""
    for name in "ab":
        (tmp_path / name).write_text("".join(f"line {n} of the file {name} here\n" for n in range(1, 31)))
    session = Session(tmp_path)
    session.run("cat a")
    session.run("cat b")
    assert session.run("nl -ba a; nl -ba b").text == (
        f'[LEFT_OUT {session.tag}.3: a lines 1-30, same as above in "cat a" without numbers; repeat this call to see]\n'
        f'[LEFT_OUT {session.tag}.3: b lines 1-30, same as above in "cat b" without numbers; repeat this call to see]\n'
    )
