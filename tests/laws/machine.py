"""Random sessions of several readers over a small world, held against what the readers were really shown.

The machine plays the agents, the harness and somebody else who edits files; `oracle.Reader` decides what each agent can
still see. `tests/session` runs it over the package, `tests/laws/mutants` over a broken one, to prove that it would
notice.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, precondition, rule

from readcache import Budget, Head, HeadTail, Insist, Policy, Session, UsageError
from readcache.core.model.view import View
from readcache.log.store.protocol import MemoryStore
from tests.helpers.chats import SHAPES_WITH_IDS, message_list, server_compaction
from tests.laws.oracle import TRUNCATED_BY_HARNESS, Reader

ROOT = "/w"
FILES = ("a.py", "b.py", "c.txt")
POLICIES = {
    "default": Policy(),
    "eager": Policy(min_chars=0),
    "whole reads only": Policy(partial=False),
    "delta": Policy(delta=True),
    "any output": Policy(any_output=True, delta=True),
    "head and tail": Policy(clip=HeadTail(500, 400)),
    "head": Policy(clip=Head(900), min_chars=0),
    "horizon": Policy(horizon_tokens=700),
    "stubborn": Policy(insist=Insist.STUB),
}


def make_line(rng: random.Random, name: str) -> str:
    """Mostly lines that can be told apart; some that cannot; some that look numbered."""
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(["", "}", "    return None", "pass"])
    word = "".join(rng.choices("abcdefgh", k=rng.randint(6, 30)))
    if kind < 0.2:
        return f"{rng.randint(1, 60):6}\t{word}"
    return f"    {word} = {name}[{rng.randint(0, 999)}]"


def make_text(seed: int, name: str) -> str:
    rng = random.Random(f"{seed} {name}")
    lines = [make_line(rng, name) for _ in range(rng.randint(35, 75))]
    return "\n".join(lines) + ("\n" if rng.random() < 0.8 else "")


def lines_of(text: str) -> list[str]:
    """With their newlines."""
    return text.split("\n")[:-1] and [line + "\n" for line in text.split("\n")[:-1]] + (
        [text.rsplit("\n", 1)[1]] if not text.endswith("\n") else []
    )


def number(lines: list[str], first: int, form: str) -> str:
    return "".join(form.format(n) + line for n, line in enumerate(lines, first))


@dataclass(frozen=True)
class Request:
    """Something to read, in one of the ways in which agents do."""

    shape: str
    file: str
    other: str = ""
    start: int = 1
    end: int = 1

    @property
    def numbered(self) -> bool:
        return self.shape in ("cat -n", "nl", "read →", "read :")

    @property
    def paths(self) -> tuple[str, ...]:
        """The files whose lines a session can know these to be."""
        if self.shape in ("opaque", "tool"):
            return ()
        both = self.shape in ("cat two", "cat and cat")
        return (self.file, self.other) if both and self.other != self.file else (self.file,)

    @property
    def command(self) -> str:
        f, g, a, b = self.file, self.other, self.start, self.end
        return {
            "cat": f"cat {f}",
            "sed": f"sed -n '{a},{b}p' {f}",
            "head": f"head -n {b} {f}",
            "tail": f"tail -n +{a} {f}",
            "cat -n": f"cat -n {f}",
            "nl": f"nl -ba {f} | sed -n '{a},{b}p'",
            "cat two": f"cat {f} {g}",
            "cat and cat": f"cat {f}; echo ---; cat {g}",
            "opaque": f"./show {f}",
        }.get(self.shape, f"{self.shape} {f} {a}-{b}")

    def output(self, world: dict[str, str]) -> str:
        lines = lines_of(world[self.file])
        part = lines[self.start - 1 : self.end]
        shape = self.shape
        if shape in ("cat", "opaque", "tool"):
            return world[self.file]
        if shape == "head":
            return "".join(lines[: self.end])
        if shape == "tail":
            return "".join(lines[self.start - 1 :])
        if shape == "cat -n":
            return number(lines, 1, "{:6}\t")
        if shape == "cat two":
            return world[self.file] + world[self.other]
        if shape == "cat and cat":
            return world[self.file] + "---\n" + world[self.other]
        form = {"nl": "{:6}\t", "read →": "{:5}→", "read :": "{}: "}.get(shape)
        return "".join(part) if form is None else number(part, self.start, form)

    def ask(self, session: Session, output: str, call_id: str, *, commit: bool = True) -> Any:
        known: dict[str, Any] = {"call_id": call_id, "commit": commit}
        if self.shape == "tool":
            return session.observe_tool("show", output, arguments={"file": self.file}, **known)
        if not self.shape.startswith("read"):
            return session.observe(self.command, output, cwd=ROOT, **known)
        return session.observe_read(self.file, output, start=self.start, end=self.end, numbered=self.numbered, **known)


SHAPES = (
    "cat",
    "sed",
    "head",
    "tail",
    "cat -n",
    "nl",
    "cat two",
    "cat and cat",
    "opaque",
    "tool",
    "read",
    "read →",
    "read :",
)
REQUESTS = st.builds(
    lambda shape, file, other, start, count: Request(shape, file, other, start, start + count),
    st.sampled_from(SHAPES),
    st.sampled_from(FILES),
    st.sampled_from(FILES),
    st.sampled_from((1, 1, 5, 12, 20)),
    st.sampled_from((14, 25, 40, 80)),
)
HOW = st.sampled_from(
    ("plain",) * 6 + ("insist", "insist", "settle", "settle", "same id", "same id", "numbered", "numbered")
)
WHO = st.integers(0, 2)
SEEDS = st.integers(0, 5000)


class Sessions(RuleBasedStateMachine):
    """Readers of one session, their world, and what must hold."""

    asked: Bundle[Request] = Bundle("asked")
    policies = POLICIES

    @initialize(seed=SEEDS, policy=st.data())
    def begin(self, seed: int, policy: Any) -> None:
        self.policy = policy.draw(st.sampled_from(list(self.policies.values())))
        self.shape = policy.draw(st.sampled_from(SHAPES_WITH_IDS))
        self.has_ids: dict[str, bool] = {}  # by agent
        self.world = {name: make_text(seed, name) for name in FILES}
        self.store = MemoryStore()
        session = Session(ROOT, session_id="s", store=self.store, policy=self.policy, clock=lambda: 0.0)
        self.readers = [Reader(session, self.policy)]
        self.count = 0

    def reader(self, who: int) -> Reader:
        return self.readers[who % len(self.readers)]

    def new_id(self) -> str:
        self.count += 1
        return f"c{self.count}"

    # ------------------------------------------------------------ reading

    @rule(target=asked, request=REQUESTS, who=WHO, how=HOW)
    def read(self, request: Request, who: int, how: str) -> Request:
        self._read(self.reader(who), request, how)
        return request

    @rule(request=asked, who=WHO, how=HOW)
    def read_again(self, request: Request, who: int, how: str) -> None:
        self._read(self.reader(who), request, how)

    @rule(request=asked, who=WHO, how=HOW)
    def read_again_and_again(self, request: Request, who: int, how: str) -> None:
        self._read(self.reader(who), request, how)

    def _read(self, reader: Reader, request: Request, how: str) -> None:
        if how == "numbered":
            request = replace(request, shape="read")
        output = request.output(self.world)
        used = [call for call in reader.texts if call in reader.results]
        call_id = used[-1] if how == "same id" and used else self.new_id()
        reply = request.ask(reader.session, output, call_id)
        if how == "same id":
            reader.forget([call_id])  # an id that is used twice names the newer text only
        reader.check(reply, output, request.numbered, paths=request.paths)
        shown = None
        if how == "settle":
            third = len(reply.text) // 3
            shown = reply.text[:third] + TRUNCATED_BY_HARNESS + reply.text[len(reply.text) - third :]
        elif how == "numbered":  # by the host, which knows of no marker
            shown = number(lines_of(reply.text), request.start - (len(output) % 3 == 0), "{:5}→")  # some begin with 0
        reader.take(request.command, reply, output, request.numbered, paths=request.paths, shown=shown)
        if shown is not None:
            reader.session.settle(call_id, shown)
            assert not wrongly_numbered(reader.session.view, call_id), (
                "a line is known by a number that it does not show"
            )
        elif how == "insist" and len(reply.segments) and reply.text != output and self.policy.insist is Insist.SERVE:
            again = request.ask(reader.session, output, self.new_id())
            reader.check_insisted(reply, again, output, request.numbered, paths=request.paths)
            reader.take(request.command, again, output, request.numbered, paths=request.paths)
            if again.text != output:
                once_more = request.ask(reader.session, output, self.new_id())
                assert once_more.text == output, "a reader who insisted once more did not get the bytes"
                reader.take(request.command, once_more, output, request.numbered, paths=request.paths)

    @rule(requests=st.lists(st.one_of(asked, REQUESTS), min_size=1, max_size=2), who=WHO, twice=st.booleans())
    def read_several_at_once(self, requests: list[Request], who: int, twice: bool) -> None:
        reader = self.reader(who)
        got = []
        with reader.session.batch():
            for request in [*requests, requests[0]] if twice else requests:
                output = request.output(self.world)
                reply = request.ask(reader.session, output, self.new_id())
                reader.check(reply, output, request.numbered, paths=request.paths)  # none of the batch is in it yet
                got.append((request, reply, output))
        for request, reply, output in got:
            reader.take(request.command, reply, output, request.numbered, paths=request.paths)

    # ------------------------------------------------------------ writing

    @rule(file=st.sampled_from(FILES), seed=SEEDS)
    def somebody_else_edits(self, file: str, seed: int) -> None:
        self.world[file] = self._edited(file, seed)

    @rule(file=st.sampled_from(FILES), seed=SEEDS, who=WHO, same=st.booleans())
    def edit_by_command(self, file: str, seed: int, who: int, same: bool) -> None:
        if not same:
            self.world[file] = self._edited(file, seed)
        self._write(who, file, f"sed -i 's/x{seed}/y/' {file}")

    @rule(file=st.sampled_from(FILES), seed=SEEDS, who=WHO, shows=st.booleans())
    def write_a_heredoc(self, file: str, seed: int, who: int, shows: bool) -> None:
        self.world[file] = text = self._edited(file, seed).rstrip("\n") + "\n"
        command = f"cat > {file} <<'EOF'\n{text}EOF"
        self._write(who, file, f"{command}\ncat {file}" if shows else command, text if shows else "")

    def _write(self, who: int, file: str, command: str, output: str = "") -> None:
        reader, call_id = self.reader(who), self.new_id()
        reply = reader.session.observe(command, output, cwd=ROOT, call_id=call_id)
        for each in self.readers:
            each.path_written(file)
        sees = reader.texts.setdefault(call_id, "")
        reader.commands[call_id], reader.tokens_at[call_id] = command, reader.tokens
        reader.check(reply, output, numbered=False, paths=[file])
        assert sees == ""
        reader.take(command, reply, output, numbered=False, paths=[file])

    @rule(file=st.sampled_from(FILES), seed=SEEDS, who=WHO, tells=st.booleans())
    def write_by_tool(self, file: str, seed: int, who: int, tells: bool) -> None:
        self.world[file] = text = self._edited(file, seed)
        call_id, reader = self.new_id(), self.reader(who)
        reader.session.wrote(file, content=text if tells else None, call_id=call_id)
        for each in self.readers:
            each.path_written(file)
        reader.wrote_itself(call_id, text if tells else "", file)

    @precondition(lambda self: any(reader.marker_lines for reader in self.readers))
    @rule(file=st.sampled_from(FILES), who=WHO)
    def save_a_reply_with_its_markers(self, file: str, who: int) -> None:
        texts = [t for r in self.readers for t in r.texts.values() if r.marker_lines.intersection(t.split("\n"))]
        if texts:
            self.world[file] = texts[who % len(texts)]
            for _ in range(2):
                self._read(self.reader(who), Request("cat", file), "plain")

    def _edited(self, file: str, seed: int) -> str:
        rng = random.Random(seed)
        lines = lines_of(self.world[file])
        at = rng.randrange(len(lines) + 1)
        line = make_line(rng, file) + "\n"
        what = rng.choice(["insert", "delete", "replace", "replace", "one character", "rewrite", "copy"])
        if what == "rewrite" or not lines:
            return make_text(seed, file)
        if what == "copy":
            return self.world[rng.choice(FILES)]
        if what == "one character":
            k = min(at, len(lines) - 1)
            lines[k] = "X" + lines[k][1:] if lines[k] != "\n" else "x\n"
        else:
            lines[at : at + (what != "insert")] = [] if what == "delete" else [line]
        return "".join(lines)

    # ------------------------------------------------------------ history

    @rule(who=WHO, seed=SEEDS, restores=st.booleans(), few=st.booleans())
    def compact(self, who: int, seed: int, restores: bool, few: bool) -> None:
        reader, rng = self.reader(who), random.Random(seed)
        kept = [call for call in reader.texts if rng.random() < 0.6]
        budget = Budget(max_files=1, max_tokens=200, max_tokens_per_file=120) if few else Budget()
        plan = reader.session.restore_plan(keep=kept, budget=budget) if restores else None
        done = reader.session.compacted(keep=kept, restored=plan)
        reader.compacted(kept, plan, done)

    @rule(who=WHO, seed=SEEDS, has_ids=st.booleans())
    def sync(self, who: int, seed: int, has_ids: bool) -> None:
        """The harness did something to its messages and hands over what is left of them."""
        reader, rng = self.reader(who), random.Random(seed)
        # nobody could tell what was clipped of which text; and a harness has ids from the first list on, or never
        has_ids = self.has_ids.setdefault(reader.session.agent_id, has_ids or self.policy.clip is not None)
        shape = self.shape if has_ids else "plain"
        turns = {call: (reader.commands[call], text) for call, text in reader.texts.items()}
        if shape == "plain":  # of equal texts the oldest go, since nobody could tell otherwise
            left = dict(list(turns.items())[rng.randint(0, len(turns)) :])
        else:
            changed = {call: self._something_done_to(turn, rng) for call, turn in turns.items()}
            left = {call: turn for call, turn in changed.items() if turn is not None}
        shown = [(call, command, text) for call, (command, text) in left.items()]
        if rng.random() < 0.2 and shape != "plain":
            rng.shuffle(shown)
        messages = message_list(shape, shown)
        if rng.random() < 0.2:  # the API compacts: the list has it all, the model sees the end
            at = rng.randint(0, len(shown))
            messages = [*message_list(shape, shown[:at]), server_compaction(shape), *message_list(shape, shown[at:])]
            left = {call: left[call] for call, _, _ in shown[at:]}
        rewrites = reader.session.sync(messages)
        reader.anonymous |= shape == "plain"
        reader.synced(left, rewrites)

    def _something_done_to(self, turn: tuple[str, str], rng: random.Random) -> tuple[str, str] | None:
        """A call and its result after a harness that prunes, clears, clips or edits; None: gone."""
        command, text = turn
        lines = text.split("\n")
        at = rng.randrange(max(1, len(lines) - 1))
        whats = ("left alone",) * 6 + ("gone", "cleared", "clipped", "edited", "taken out", "clipped call")
        what = rng.choice(whats)
        if what == "gone":
            return None
        if what == "cleared":
            return command, "[Old tool result content cleared]"
        if what == "clipped" and len(lines) > 8:
            return command, "\n".join([*lines[: at // 2], "[cut by the harness]", *lines[-at // 2 - 1 :]])
        if what == "edited":
            return command, "\n".join([*lines[:at], lines[at] + " (redacted)", *lines[at + 1 :]])
        if what == "taken out":
            return command, "\n".join([*lines[:at], *lines[at + rng.randint(1, 9) :]])
        if what == "clipped call" and command:
            return command[: len(command) // 2] + " [clipped]", text
        return turn

    @rule(who=WHO, seed=SEEDS)
    def take_something_out_of_an_older_result(self, who: int, seed: int) -> None:
        reader, rng = self.reader(who), random.Random(seed)
        calls = [call for call in reader.texts if call in reader.results and reader.texts[call]]
        if calls:
            call = rng.choice(calls)
            lines = reader.texts[call].split("\n")
            at = rng.randrange(len(lines))
            shown = "\n".join([*lines[:at], "[taken out]", *lines[at + rng.randint(1, 9) :]])
            reader.session.settle(call, shown)
            reader.settle(call, shown)

    @rule(who=WHO, seed=SEEDS)
    def rewind(self, who: int, seed: int) -> None:
        reader = self.reader(who)
        if reader.texts:
            to = random.Random(seed).choice([*reader.texts, "never heard of"])
            with contextlib.suppress(UsageError):
                reader.session.rewind(to)
            reader.rewind(to)

    @precondition(lambda self: len(self.readers) < 3)
    @rule(who=WHO, inherit=st.booleans())
    def fork(self, who: int, inherit: bool) -> None:
        parent = self.reader(who)
        session = parent.session.fork(f"agent {len(self.readers)}", inherit=inherit)
        self.readers.append(parent.copy_for(session) if inherit else Reader(session, self.policy))

    def teardown(self) -> None:
        for reader in getattr(self, "readers", []):
            if "internal_error" in reader.session.stats():
                raise RuntimeError("the session failed inside")  # no AssertionError: that is what mutants must die of
            agent = reader.session.agent_id
            again = Session(ROOT, session_id="s", agent_id=agent, store=self.store, policy=self.policy)
            assert known(again.view) == known(reader.session.view), "after a restart the view is another"


def wrongly_numbered(view: View, call_id: str) -> list[str]:
    """Lines of a call's result that show another number than that by which the view knows them."""
    return [
        line
        for delivery in view.of_call(call_id)
        for mapped in delivery.event.source_map
        if mapped.sep == "→" and mapped.first
        for n, line in enumerate(delivery.event.text.split("\n")[mapped.at : mapped.at + mapped.count], mapped.first)
        if line.strip().partition("→")[0] != str(n + mapped.shift)
    ]


def known(view: View) -> Any:
    """All that a view answers with, as plain data."""
    visible_spans = {
        key: [(r.delivery.event, r.mapped, view.key(key).is_stale(r.delivery)) for r in view.key(key).visible_spans()]
        for key in view.known_keys()
    }
    return [d.event for d in view.deliveries], visible_spans, view.calls.counts, view.calls.number, view.calls.tokens


def machine_with(policy: str) -> type[Sessions]:
    """The machine under one policy."""

    class Machine(Sessions):
        policies = {policy: POLICIES[policy]}  # noqa: RUF012

    return Machine
