"""One random world: agents, their host, its files and its store, played against the package and the specification.

Nothing in it is real but the package: time is a number, a process ends where its store raises `Died`, and a store that
survives is taken up by the next one. Whatever happens, no call may raise, and the specification must find no fault in
any reply, nor in any message list after it was handed over.
"""

from __future__ import annotations

import contextlib
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest import mock

from readcache import Head, HeadTail, Insist, Policy, Session, UsageError
from readcache.context import clear
from readcache.core.model.spec.marker import demand
from readcache.core.model.spec.world import COMMAND, World
from readcache.core.model.text import digest
from readcache.log.reader import _ANSWERING
from readcache.log.store.protocol import MemoryStore
from tests.helpers.chats import (
    SHAPES_WITH_IDS,
    WORDS_IN_FRONT,
    as_host_knows_it,
    changed_results,
    id_of,
    message_list,
    server_compaction,
)
from tests.laws.machine import SHAPES, Request, lines_of, number
from tests.laws.oracle import TRUNCATED_BY_HARNESS
from tests.laws.worlds.files import NAMES, edited, make_text
from tests.laws.worlds.script import Script, Step
from tests.laws.worlds.stores import Died, FailingStore, Operations

ROOT = "/w"
POLICIES = (
    Policy(),
    Policy(min_chars=0, min_worth=0),
    Policy(min_chars=0, min_worth=0, delta=True, any_output=True),
    Policy(min_chars=0, min_worth=0, partial=False),
    Policy(min_chars=0, clip=HeadTail(500, 400)),
    Policy(min_chars=0, clip=Head(900)),
    Policy(min_chars=0, horizon_tokens=700),
    Policy(min_chars=0, insist=Insist.STUB),
)
MOST_READERS = 4
# A marker that a host cut in two, or put a number in front of.
_CHANGED_MARKER = re.compile(r"\[[A-Z_]{4,}[^]\n]*$|→\[[A-Z_]+ \w+\.\d+: ", re.MULTILINE)


class Raised(Exception):
    """A call of ours raised, where the agent's tool must never see that."""


@dataclass
class Reader:
    """An agent as its host knows it. `turns`: by call id, (what the agent said, what its model is sent)."""

    name: str
    turns: dict[str, tuple[str, str]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)  # calls in whose results the host changed something
    others: set[str] = field(default_factory=set)  # calls that the host knows by other ids

    def calls(self) -> list[str]:
        """Without restored sections, and without those whose ids may name other calls."""
        return [call for call in self.turns if not call.startswith("restored-") and "#" not in call]

    def ids(self) -> list[str]:
        """The ids in its list."""
        return list(map(id_of, self.turns))


class RandomWorld:
    """Plays the steps of a script. Raises Untrue or Raised where the promise does not hold."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"world {seed}")
        self.policy, self.shape = rng.choice(POLICIES), rng.choice(SHAPES_WITH_IDS)
        self.is_odd = rng.random() < 0.3  # files may hold what no store takes
        self.files = {name: self._storable(make_text(rng, name)) for name in NAMES}
        self.operations, self.kept = Operations(), MemoryStore()
        self.now, self.calls = 1_000.0, 0
        self.spec = World()
        self.readers = [Reader("main")]
        self.asked: list[Request] = []
        self.stays = False  # the store and the process do
        self.told = Counter[str]()  # what happened, and how often
        self.sent: list[str] = []  # every text that a model was sent
        self.path = f"world {seed}"
        self.keeps_store = False  # the store does
        self.failed = False  # did this process's store ever fail it?
        self.summaries: list[str] = []
        self._end_process()
        self.sessions = {"main": self._session("main")}

    def play(self, step: Step) -> None:
        """One step; does nothing where it is not possible now."""
        reader, rng = self.readers[step.who % len(self.readers)], random.Random(step.seed)
        try:
            getattr(self, f"_{step.what}")(reader, rng)
        except Died:
            self._dies(reader, rng)
        self.told[step.what] += 1

    def _session(self, name: str) -> Session:
        store = FailingStore(self.kept, self.operations, self.path)
        return Session(
            ROOT, session_id="s", agent_id=name, store=store, policy=self.policy, clock=lambda: self.now, local=False
        )

    def _of(self, reader: Reader) -> Session:
        return self.sessions[reader.name]

    def _new_call(self) -> str:
        self.calls += 1
        self.now += 1
        return f"c{self.calls}"

    # ------------------------------------------------------------ reading

    def _request(self, rng: random.Random) -> Request:
        start, count = rng.choice((1, 1, 5, 12, 20)), rng.choice((14, 25, 40, 80))
        return Request(rng.choice(SHAPES), rng.choice(NAMES[:2]), rng.choice(NAMES[:2]), start, start + count)

    def _reads(self, reader: Reader, rng: random.Random) -> None:
        self.asked.append(self._request(rng))
        self._asks(reader, self.asked[-1])

    def _reads_again(self, reader: Reader, rng: random.Random) -> None:
        if self.asked:
            request = rng.choice(self.asked[-4:])
            for _ in range(rng.choice((1, 1, 1, 3))):
                self._asks(reader, request)

    def _reads_at_once(self, reader: Reader, rng: random.Random) -> None:
        requests = [self._request(rng), *self.asked[-1:]]
        with self._of(reader).batch():
            answers = [(one, self._answer(reader, one)) for one in (*requests, requests[0])]
        for request, reply in answers:
            self._takes(reader, request, reply, batch=f"batch {self.calls}")

    def _reads_by_an_old_id(self, reader: Reader, rng: random.Random) -> None:
        """The host uses an id twice: it names the newer text."""
        if reader.calls() and self.asked:
            call, request = rng.choice(reader.calls()), rng.choice(self.asked[-4:])
            session, output = self._of(reader), request.output(self.files)
            reply = self._never_raises(lambda: request.ask(session, output, call))
            self.spec.cleared(reader.name, [call])
            del reader.turns[call]
            reader.changed.discard(call)
            self._takes(reader, request, reply)

    def _counts_its_calls_from_0(self, reader: Reader, rng: random.Random) -> None:
        """The model names its calls by their places in its response. The host keeps the older ones, too. Known gap: of
        these the log alone knows the markers, so that no store is lost in such a world."""
        if self.failed or self.operations.dies_at is not None:
            return
        self.keeps_store = True
        session, answers = self._of(reader), []
        with session.batch():
            for index in range(rng.choice((1, 1, 2))):
                self.asked.append(self._request(rng) if rng.random() < 0.5 or not self.asked else self.asked[-1])
                request, number = self.asked[-1], self._new_call()
                asked = partial(request.ask, session, request.output(self.files), f"call_{index}")
                answers.append((request, self._never_raises(asked), f"call_{index}#{number}"))
        for request, reply, call in answers:
            self._takes(reader, request, reply, batch=f"batch {self.calls}", call=call)

    def _reads_with_the_hosts_numbers(self, reader: Reader, rng: random.Random) -> None:
        """The host puts numbers in front of what we answered, and knows of no marker: some are wrong."""
        request = replace(self._request(rng), shape="read")
        reply = self._answer(reader, request)
        self._takes(reader, request, reply)
        shown = number(lines_of(reply.text), request.start - rng.choice((0, 0, 1)), "{:5}→")
        self._never_raises(lambda: self._of(reader).settle(reply.call_id, shown))
        self._change(reader, reply.call_id, request.command, shown)

    def _reads_unconfirmed(self, reader: Reader, rng: random.Random) -> None:
        """The host says later whether it showed the reply, or not at all; or it shows the output, or nothing."""
        requests = [self._request(rng) if rng.random() < 0.4 or not self.asked else rng.choice(self.asked[-4:])]
        requests = requests * rng.choice((1, 1, 2))
        session = self._of(reader)
        answers = []
        for request in requests:
            output, call = request.output(self.files), self._new_call()
            reply = self._never_raises(partial(request.ask, session, output, call, commit=False))
            reply = as_host_knows_it(reply, reader.turns)
            demand(self.spec.answered(reader.name, reply, output, said=request.command, request=""))
            self.told["omissions"] += len(reply.omissions())
            self._sees(reader, call, request.command, reply.text)
            answers.append((request.command, call, output, reply))
        for said, call, output, reply in rng.sample(answers, len(answers)):
            what = rng.choice(("commits", "settles", "shows all", "tells nothing", "drops it"))
            with contextlib.suppress(UsageError):  # it was never logged
                if what == "commits":
                    session.commit(call)
                elif what == "settles" and call not in reader.changed:
                    session.settle(call, reply.text)
                elif what == "shows all" and self.policy.clip is None:
                    session.settle(call, output)
                    self._change(reader, call, said, output)
                    self.told["shown in full instead"] += bool(reply.omissions())
            if what == "drops it" and reply.omissions():
                del reader.turns[call]
                reader.changed.discard(call)
                self.spec.cleared(reader.name, [call])

    def _asks(self, reader: Reader, request: Request) -> None:
        self._takes(reader, request, self._answer(reader, request))

    def _answer(self, reader: Reader, request: Request) -> Any:
        session, call = self._of(reader), self._new_call()
        return self._never_raises(lambda: request.ask(session, request.output(self.files), call))

    def _takes(self, reader: Reader, request: Request, reply: Any, batch: str = "", call: str = "") -> None:
        reply = as_host_knows_it(reply, reader.turns, call)
        output, repeated = request.output(self.files), "" if batch or self._is_deaf() else request.command
        said = request.command
        demand(self.spec.answered(reader.name, reply, output, said=said, batch=batch, request=repeated))
        self.told["omissions"] += len(reply.omissions())
        self._sees(reader, reply.call_id, said, reply.text)

    def _is_deaf(self) -> bool:
        """True where an agent that insists may be given a marker again: the policy says so, or what it was given before
        could not be stored."""
        return self.policy.insist is Insist.STUB or self.operations.fail

    def _sees(self, reader: Reader, call: str, said: str, text: str) -> None:
        """The host shows the text, cut as the policy was told that it does."""
        self.sent.append(text)
        reader.turns[call] = said, text
        if self.policy.clip is not None and (kept := TRUNCATED_BY_HARNESS.join(self.policy.clip.kept(text))) != text:
            self._change(reader, call, said, kept)

    def _never_raises(self, ask: Any) -> Any:
        try:
            return ask()
        except (Exception, AssertionError) as error:
            raise Raised(f"{type(error).__name__}: {error}") from error

    # ------------------------------------------------------------ writing

    def _edited(self, rng: random.Random) -> str:
        name = rng.choice(NAMES[:2])
        self.files[name] = self._storable(edited(rng, self.files[name], name))
        return name

    def _storable(self, text: str) -> str:
        return text if self.is_odd else text.replace("\udcff", "?").replace("\0", "?")

    def _runs(self, reader: Reader, command: str, output: str, written: str) -> None:
        session, call = self._of(reader), self._new_call()
        reply = self._never_raises(lambda: session.observe(command, output, cwd=ROOT, call_id=call))
        reply = as_host_knows_it(reply, reader.turns)
        self._wrote(written)
        demand(self.spec.answered(reader.name, reply, output, said=command))
        self._sees(reader, call, command, reply.text)

    def _wrote(self, name: str) -> None:
        """The session knows of it, unless it could not be stored: then other readers hear of it later."""
        if not self.operations.fail:
            self.spec.written([f"{ROOT}/{name}"])

    def _writes(self, reader: Reader, rng: random.Random) -> None:
        name = self._edited(rng)
        self._runs(reader, f"sed -i 's/x{rng.randrange(99)}/y/' {name}", "", name)

    def _writes_and_shows(self, reader: Reader, rng: random.Random) -> None:
        name = self._edited(rng)
        text = self.files[name] = self.files[name].replace("EOF\n", "").replace("\0", "0").rstrip("\n") + "\n"
        shows = rng.random() < 0.5
        command = f"cat > {name} <<'EOF'\n{text}EOF" + (f"\ncat {name}" if shows else "")
        self._runs(reader, command, text if shows else "", name)

    def _told_of_a_write(self, reader: Reader, rng: random.Random) -> None:
        name, session = self._edited(rng), self._of(reader)
        self._never_raises(lambda: session.wrote(name, call_id=self._new_call()))
        self._wrote(name)

    def _somebody_writes(self, _: Reader, rng: random.Random) -> None:
        """And tells nobody."""
        self._edited(rng)

    def _saves_a_reply(self, reader: Reader, rng: random.Random) -> None:
        """A file that holds what we wrote, markers included. If a call that prints it cannot be stored, nothing tells
        these lines from markers of ours: so no store is lost in such a world, and all can be stored."""
        texts = [text for _, text in reader.turns.values() if "[" in text]
        if texts and not (self.is_odd or self.operations.fail or self.operations.dies_at is not None):
            self.stays = True
            name = rng.choice(NAMES[:2])
            self.files[name] = rng.choice(texts)
            self._never_raises(lambda: self._of(reader).wrote(name, call_id=self._new_call()))
            self._wrote(name)
            for _ in range(2):
                self._asks(reader, Request("cat", name))

    # ------------------------------------------------------------ what the host does to its messages

    def _settles(self, reader: Reader, rng: random.Random) -> None:
        if calls := [call for call in reader.turns if "#" not in call]:
            call = rng.choice(calls)
            said, text = reader.turns[call]
            left = _something_gone(text, rng)
            with contextlib.suppress(UsageError):  # it was never shown by us, or is not known any more
                self._of(reader).settle(call, left)
            self._change(reader, call, said, left)

    def _changes_its_list(self, reader: Reader, rng: random.Random) -> None:
        for call, (said, text) in list(reader.turns.items()):
            what = rng.choices(("left", "gone", "cleared", "clipped", "clipped call"), (8, 1, 1, 2, 1))[0]
            if what == "gone":
                del reader.turns[call]
                self.spec.cleared(reader.name, [call])
            elif what == "cleared":
                self._change(reader, call, said, "[Old tool result content cleared]")
            elif what == "clipped":
                self._change(reader, call, said, _something_gone(text, rng))
            elif what == "clipped call" and said:
                shorter = said[: len(said) // 2] + " [clipped]"
                self.spec.clipped(reader.name, call, shorter, kind=COMMAND)
                reader.turns[call] = shorter, text
        self._hands_over(reader, compacted=rng.random() < 0.2 and rng.randint(0, len(reader.turns)))
        if rng.random() < 0.3 and self.shape in SHAPES_WITH_IDS:
            self._has_results_cleared(reader, rng.choice((0, 100, 400)))

    def _has_results_cleared(self, reader: Reader, above: int) -> None:
        """We clear them, and every marker that is left is true."""
        messages = message_list(self.shape, [(id_of(call), *turn) for call, turn in reader.turns.items()])
        left = self._never_raises(lambda: clear(messages, self._of(reader), above=above, down_to=above // 2))
        self._known_by_lines(reader)
        changed = changed_results(messages, left, reader.turns)
        rewrites = {call: text for call, text in changed.items() if not text.startswith("[PRUNED")}
        for call, text in changed.items():
            if text.startswith("[PRUNED"):
                self._change(reader, call, reader.turns[call][0], text)
                self.told["results cleared"] += 1
        self._rewritten(reader, rewrites)

    def _change(self, reader: Reader, call: str, said: str, left: str) -> None:
        reader.turns[call] = said, left
        reader.changed.add(call)
        self.spec.clipped(reader.name, call, left)

    def _hands_over(self, reader: Reader, compacted: int | bool = False, section: str = "") -> None:
        """Its list, before a request. `compacted`: so many turns stand before a compaction by the API. `section`: that
        markers may name now."""
        before_it, turns = dict(reader.turns), [(id_of(call), *turn) for call, turn in reader.turns.items()]
        messages = message_list(self.shape, turns)
        if compacted:
            before, after = turns[:compacted], turns[compacted:]
            messages = [
                *message_list(self.shape, before),
                server_compaction(self.shape),
                *message_list(self.shape, after),
            ]
            gone = list(reader.turns)[:compacted]
            self.spec.cleared(reader.name, gone)
            for call in gone:
                del reader.turns[call]
        if any("#" in call for call in before_it):  # an id says nothing of which one is to be rewritten
            repaired = self._never_raises(lambda: self._of(reader).mend(messages))
            rewrites = changed_results(messages, repaired, before_it)
        else:
            rewrites = self._never_raises(lambda: self._of(reader).sync(messages))
        self._known_by_lines(reader)
        sections = [name for name in (*reader.others, *reader.turns) if name.startswith("restored-")]
        self._rewritten(reader, rewrites, section or "".join(sections[:1]))

    def _known_by_lines(self, reader: Reader) -> None:
        """Where no call of the list could be stored, the package knows the list by its lines: they stand there, in a
        call of another id."""
        self.spec.cleared(reader.name, reader.others)
        texts = [text for _, text in reader.turns.values()]
        known = [delivery.event for delivery in self._of(reader).view.deliveries]
        reader.others = set[str]()
        for event in known:
            lines = event.text.removesuffix("\n")
            if event.call_id not in reader.ids() and lines and any(lines in text for text in texts):
                reader.others.add(event.call_id)
                self.spec.shown(reader.name, event.call_id, event.text)

    def _rewritten(self, reader: Reader, rewrites: dict[str, str], section: str = "") -> None:
        front = WORDS_IN_FRONT if self.shape == "blocks" else ""
        known = {call: text.removeprefix(front) for call, text in rewrites.items() if call in reader.turns}
        for call, text in known.items():
            said, before = reader.turns[call]
            reader.turns[call] = said, text
            self.sent.append(text)
            if _CHANGED_MARKER.search(before):  # it gives way to a note, too
                self.spec.clipped(reader.name, call, text)
        demand(self.spec.repaired(reader.name, known, section))

    def _compacts(self, reader: Reader, rng: random.Random) -> None:
        if self.operations.fail and reader.changed:  # known gap: as below
            return
        session, kept = self._of(reader), [call for call in reader.turns if rng.random() < 0.5]
        ids = list(map(id_of, kept))
        plan = self._never_raises(lambda: session.restore_plan(keep=ids)) if rng.random() < 0.7 else None
        done = self._never_raises(lambda: session.compacted(keep=ids, restored=plan))
        self._keeps(reader, kept)
        section = done.restored_id or ""
        if section and plan is not None:
            self._section(reader, section, plan.render())
        if reader.changed.isdisjoint(kept) and not any("#" in call for call in kept):
            self._rewritten(reader, done.rewrites, section)
        else:  # the new texts lack the host's own lines: they are asked for by the list
            if self.asked and rng.random() < 0.5:
                self._asks(reader, rng.choice(self.asked[-4:]))
            self._hands_over(reader, section=section)

    def _takes_a_section(self, reader: Reader, rng: random.Random) -> None:
        if self.operations.fail:  # known gap: the log tells which markers the kept replies had
            return
        is_old = bool(self.summaries) and rng.random() < 0.4  # a text that says the same of each compaction
        summary = rng.choice(self.summaries) if is_old else f"summary {self._new_call()}"
        self._compacts_by_itself(reader, rng, summary)
        if rng.random() < 0.5:
            self._asks(reader, self._request(rng))
            self._compacts_by_itself(reader, rng, summary)

    def _compacts_by_itself(self, reader: Reader, rng: random.Random, summary: str) -> None:
        kept, session = [call for call in reader.turns if rng.random() < 0.3], self._of(reader)
        text = self._never_raises(lambda: session.restored_section(summary, keep=list(map(id_of, kept))))
        self.told["compactions with the same summary"] += summary in self.summaries
        self.summaries.append(summary)
        self._keeps(reader, kept)
        name = f"restored-{digest(summary)[:16]}" if text else ""
        if name:
            self._section(reader, name, text)
        if self.asked and rng.random() < 0.5:  # before any list is handed over
            self._asks(reader, rng.choice(self.asked[-4:]))
        self._hands_over(reader, section=name)

    def _known_calls(self, reader: Reader) -> list[str]:
        return [delivery.event.call_id for delivery in self._of(reader).view.deliveries]

    def _keeps(self, reader: Reader, kept: list[str]) -> None:
        self.spec.compacted(reader.name, kept)
        reader.turns = {call: turn for call, turn in reader.turns.items() if call in kept}

    def _section(self, reader: Reader, name: str, text: str) -> None:
        self.sent.append(text)
        self.spec.restored(reader.name, name, text)
        reader.turns = {name: ("", text), **reader.turns}

    def _rewinds(self, reader: Reader, rng: random.Random) -> None:
        # known gap: of a call that could not be stored nothing is known
        known = [call for call in reader.calls() if self._of(reader).view.is_visible(call)]
        if known and not self.operations.fail:
            call = rng.choice(known)
            with contextlib.suppress(UsageError):
                self._of(reader).rewind(call)
            calls = list(reader.turns)
            gone = calls[calls.index(call) + 1 :]
            self.spec.cleared(reader.name, gone)
            for name in gone:
                del reader.turns[name]
            if rng.random() < 0.5:
                self._hands_over(reader)

    # ------------------------------------------------------------ readers, processes, the store

    def _forks(self, reader: Reader, rng: random.Random) -> None:
        if len(self.readers) < MOST_READERS:
            name, inherits = f"agent {len(self.readers)}", rng.random() < 0.6
            session = self._of(reader)
            self.sessions[name] = self._never_raises(lambda: session.fork(name, inherit=inherits))
            self.spec.forked(reader.name, name, inherits=inherits)
            self.readers.append(Reader(name, dict(reader.turns) if inherits else {}, set(reader.changed)))
            if self.operations.fail:
                self._hands_over(self.readers[-1])

    def _dies(self, _: Reader, __: random.Random) -> None:
        """The process ends. The next one takes the conversations up from what their host kept."""
        if self.stays:
            return
        self._next_process()
        for reader in self.readers:
            self._hands_over(reader)

    def _next_process(self) -> None:
        self._end_process()
        self.operations = Operations()
        self.failed = False
        self.sessions = {reader.name: self._session(reader.name) for reader in self.readers}
        self.told["deaths"] += 1

    def _end_process(self) -> None:
        """A process that is killed closes nothing."""
        _ANSWERING.difference_update([key for key in _ANSWERING if key[0] == self.path])

    def _dies_and_goes_on(self, reader: Reader, rng: random.Random) -> None:
        """The process ends after an answer. The next one answers a call before it is told of anything, and then that
        the host compacted. Known gap: a compaction that could not be stored is lost with its process."""
        if self.stays or self.failed or self.operations.dies_at is not None:
            return
        self._next_process()
        for _ in range(rng.choice((0, 1, 1, 2))):
            self._asks(reader, rng.choice(self.asked[-4:]) if self.asked else self._request(rng))
        self._compacts(reader, rng)

    def _dies_soon(self, _: Reader, rng: random.Random) -> None:
        if not self.stays:
            self.operations.dies_at = rng.randrange(12)

    def _loses_the_store(self, _: Reader, __: random.Random) -> None:
        self.operations.is_gone = not (self.stays or self.keeps_store)
        self.failed |= self.operations.fail

    def _has_a_bad_connection(self, _: Reader, rng: random.Random) -> None:
        self.operations.every = 0 if self.stays or self.keeps_store else rng.choice((2, 3, 5, 7))
        self.failed |= self.operations.fail

    def _finds_the_store(self, _: Reader, __: random.Random) -> None:
        self.operations.is_gone, self.operations.every = False, 0
        for reader in self.readers:  # what was not stored while it was gone does not count as asked
            self.spec.cleared(reader.name, ())

    def _clock_jumps(self, _: Reader, rng: random.Random) -> None:
        self.now += rng.choice((-500.0, -1.0, 0.0, 3_600.0))


def _something_gone(text: str, rng: random.Random) -> str:
    """The text after a host took lines out of its middle, or its end."""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    if rng.random() < 0.5:
        return "\n".join([*lines[:at], "[cut by the host]"])
    return "\n".join([*lines[:at], "[...]", *lines[at + rng.randint(1, 9) :]])


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Random names are the same each time."""
    with mock.patch("os.urandom", random.Random(f"names {seed}").randbytes):
        yield


def play(script: Script) -> RandomWorld:
    """The world after its script. Raises Untrue or Raised."""
    with _seeded(script.seed):
        world = RandomWorld(script.seed)
        for step in script.steps:
            world.play(step)
    return world
