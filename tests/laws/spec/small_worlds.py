"""Every sequence of events in a small world, up to a depth: through `Session`, each reply checked by the specification.

The world: up to three readers (the agent, a fresh sub-agent, one that starts with its parent's messages), two files of
three lines, one of them in two versions. Sequences that lead to the same world and the same views are gone on with
once. `python -m tests.laws.spec.small_worlds --depth 5` tries them all, and says how many there were.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from readcache import Policy, Reply, Session
from readcache.core.model.spec.marker import Untrue, demand
from readcache.core.model.spec.world import World
from readcache.core.model.text import digest
from readcache.log.reader import _ANSWERING
from readcache.log.store.protocol import MemoryStore
from tests.helpers.chats import as_host_knows_it, changed_results, id_of, message_list
from tests.laws.machine import known

POLICIES = {
    "default": Policy(min_chars=0, min_worth=0),
    "max": Policy(min_chars=0, min_worth=0, delta=True, any_output=True),
}
MOST_CALLS = 4
_LONG = "and words enough to be worth a marker, " * 4
VERSIONS = {
    "f": tuple("".join(f"f{n}{change if n == 2 else ''} {_LONG}\n" for n in (1, 2, 3)) for change in ("", "x")),
    "g": ("".join(f"g{n} {_LONG}\n" for n in (1, 2, 3)),),
}
COMMANDS = ("cat f", "cat g", "sed -n '1,2p' f", "sed -n '2,3p' f", "cat -n f", "cat f g")


class Kept(MemoryStore):
    """A store that outlives a process."""

    path = "a store"


class Event(NamedTuple):
    """`what`: the method of `SmallWorld`; `who`: the reader; `given`: a command, a file, the place of a call."""

    what: str
    who: str
    given: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


class SmallWorld:
    """The package and the specification, told of the same events."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.store = policy, Kept()
        _ANSWERING.clear()
        self.sessions = {"main": self._session("main")}
        self.spec = World()
        self.versions = dict.fromkeys(VERSIONS, 0)
        self.texts: dict[str, dict[str, tuple[str, str]]] = {"main": {}}  # reader -> call -> (command, text)
        self.calls = 0
        self.omissions = 0

    def _session(self, who: str) -> Session:
        given: dict[str, Any] = {"store": self.store, "policy": self.policy, "clock": lambda: 0.0}
        return Session("/w", session_id="s", agent_id=who, **given)

    def possible(self) -> Iterator[Event]:
        """The events that may come next and are not without effect."""
        for who, texts in self.texts.items():
            for command in COMMANDS if self.calls < MOST_CALLS else ():
                yield Event("shown", who, command)
            for command in COMMANDS[:3:2] if self.calls < MOST_CALLS else ():
                yield Event("by_number", who, command)
            if self.calls + 1 < MOST_CALLS:
                yield Event("at_once", who)
            yield Event("written", who, "f")
            for at, (_, text) in enumerate(texts.values()):
                if text.count("\n") > 1 and "#" not in list(texts)[at]:
                    yield Event("clipped", who, str(at))
                yield Event("cleared", who, str(at))
            if texts:
                yield Event("compacted", who)
                yield Event("restored", who)
                yield Event("summarised", who)
            for at, call in enumerate(list(texts)[:-1]):
                if not call.startswith("restored-") and "#" not in call:  # no host goes back to a section
                    yield Event("rewound", who, str(at))
                yield Event("kept", who, str(at))
        yield Event("changed", "", "f")
        if self.calls < MOST_CALLS and any(self.texts.values()):
            yield Event("killed", "main")
        for child, how in (("fresh", ""), ("copy", "inherits")):
            if child not in self.texts:
                yield Event("forked", child, how)

    def happen(self, event: Event) -> None:
        """Raises Untrue if the promise does not hold then."""
        getattr(self, f"_{event.what}")(event.who, event.given)

    # ------------------------------------------------------------ the events

    def _output(self, command: str) -> str:
        def lines(name: str) -> list[str]:
            return VERSIONS[name][self.versions[name]].splitlines(keepends=True)

        words = command.split()
        if words == ["true"]:
            return ""
        if words[0] == "sed":
            return "".join(lines("f")[:2] if "1,2p" in command else lines("f")[1:])
        if words[1] == "-n":
            return "".join(f"{n:6}\t{line}" for n, line in enumerate(lines("f"), 1))
        return "".join(line for name in words[1:] for line in lines(name))

    def _new_call(self, who: str) -> str:
        self.calls += 1
        return f"{who}-{sum(call.startswith(who) for call in self.texts[who]) + self.calls}"

    def _ask(self, who: str, command: str) -> tuple[Reply, str]:
        return self._answer(who, command, self._new_call(who))

    def _answer(self, who: str, command: str, call: str) -> tuple[Reply, str]:
        output = self._output(command)
        reply = self.sessions[who].observe(command, output, cwd="/w", call_id=id_of(call))
        self.omissions += len(reply.omissions())
        return as_host_knows_it(reply, self.texts[who], call), output

    def _take(self, who: str, command: str, reply: Reply, output: str, batch: str = "") -> None:
        demand(self.spec.answered(who, reply, output, said=command, batch=batch, request="" if batch else command))
        self.texts[who][reply.call_id] = command, reply.text

    def _shown(self, who: str, command: str) -> None:
        self._take(who, command, *self._ask(who, command))

    def _by_number(self, who: str, command: str) -> None:
        """By a model that counts its calls from 0 in each response."""
        self.calls += 1
        self._take(who, command, *self._answer(who, command, f"call_0#{self.calls}"))

    def _killed(self, who: str, _: str) -> None:
        """The process ends; the next one answers a call before it is told of anything."""
        _ANSWERING.clear()
        self.sessions = {reader: self._session(reader) for reader in self.sessions}
        self._shown(who, "true")

    def _summarised(self, who: str, _: str) -> None:
        """By a host with one text for every summary. Nothing else stays."""
        text = self.sessions[who].restored_section("earlier messages were removed", keep=())
        name = f"restored-{digest('earlier messages were removed')[:16]}"
        self.spec.compacted(who, ())
        self.texts[who] = {name: ("", text)} if text else {}
        if text:
            self.spec.restored(who, name, text)
        demand(self.spec.check_markers(who))

    def _at_once(self, who: str, _: str) -> None:
        with self.sessions[who].batch():
            asked = [(command, *self._ask(who, command)) for command in ("cat f", "cat f")]
        for command, reply, output in asked:
            self._take(who, command, reply, output, batch=f"batch {self.calls}")

    def _written(self, who: str, name: str) -> None:
        self._changed(who, name)
        self.sessions[who].wrote(name)
        self.spec.written([f"/w/{name}"])

    def _changed(self, _: str, name: str) -> None:
        """By somebody who tells nobody."""
        self.versions[name] = (self.versions[name] + 1) % len(VERSIONS[name])

    def _call(self, who: str, at: str) -> str:
        return list(self.texts[who])[int(at)]

    def _clipped(self, who: str, at: str) -> None:
        call = self._call(who, at)
        command, text = self.texts[who][call]
        left = text.splitlines(keepends=True)[0]
        self.texts[who][call] = command, left
        self.sessions[who].settle(call, left)
        self.spec.clipped(who, call, left)
        self._list(who)

    def _cleared(self, who: str, at: str) -> None:
        """Of two calls that are equal in the list, nobody can say which one is gone: the older one."""
        turns, call = self.texts[who], self._call(who, at)
        call = next(twin for twin in turns if id_of(twin) == id_of(call) and turns[twin] == turns[call])
        del self.texts[who][call]
        self.spec.cleared(who, [call])
        self._list(who)

    def _list(self, who: str, restored: str = "") -> None:
        """The host hands over its messages, as it does before each request."""
        turns = self.texts[who]
        messages = message_list("openai", [(id_of(call), *turn) for call, turn in turns.items()])
        if any("#" in call for call in turns):  # an id says nothing of which one is to be rewritten
            self._repaired(who, changed_results(messages, self.sessions[who].mend(messages), turns), restored)
        else:
            self._repaired(who, self.sessions[who].sync(messages), restored)

    def _compacted(self, who: str, _: str) -> None:
        self._keep(who, (), restores=False)

    def _kept(self, who: str, at: str) -> None:
        self._keep(who, (self._call(who, at),), restores=True)

    def _restored(self, who: str, _: str) -> None:
        self._keep(who, (), restores=True)

    def _keep(self, who: str, kept: tuple[str, ...], *, restores: bool) -> None:
        session = self.sessions[who]
        ids = list(map(id_of, kept))
        plan = session.restore_plan(keep=ids) if restores else None
        done = session.compacted(keep=ids, restored=plan)
        self.spec.compacted(who, kept)
        self.texts[who] = {call: turn for call, turn in self.texts[who].items() if call in kept}
        if plan is not None and done.restored_id is not None:
            self.spec.restored(who, done.restored_id, plan.render())
            self.texts[who] = {done.restored_id: ("", plan.render()), **self.texts[who]}
        if any("#" in call for call in kept):
            self._list(who, done.restored_id or "")
        else:
            self._repaired(who, done.rewrites, done.restored_id or "")

    def _repaired(self, who: str, rewrites: dict[str, str], restored: str = "") -> None:
        for call, text in rewrites.items():
            self.texts[who][call] = self.texts[who][call][0], text
        demand(self.spec.repaired(who, rewrites, restored))

    def _rewound(self, who: str, at: str) -> None:
        call = self._call(who, at)
        self.sessions[who].rewind(call)
        calls = list(self.texts[who])
        gone = calls[calls.index(call) + 1 :]
        if calls[0].startswith("restored-"):  # it stands first, although it came later than the calls that were kept
            self.spec.cleared(who, gone)
        else:
            self.spec.rewound(who, call)
        for name in gone:
            del self.texts[who][name]
        demand(self.spec.check_markers(who))

    def _forked(self, child: str, how: str) -> None:
        self.sessions[child] = self.sessions["main"].fork(child, inherit=bool(how))
        self.spec.forked("main", child, inherits=bool(how))
        self.texts[child] = dict(self.texts["main"]) if how else {}

    # ------------------------------------------------------------ which worlds are one

    def key(self) -> str:
        """Equal for worlds in which the same can happen: the disk, what each model is sent, what each view knows, what
        the specification waits for. Random ids of restored sections are numbered."""
        views = {who: known(session.view) for who, session in self.sessions.items()}
        unclear = {who: (sorted(s.view.ids.reused), sorted(s.view.ids.doubted)) for who, s in self.sessions.items()}
        text = repr((self.versions, self.calls, self.texts, views, unclear, _plain(self.spec)))
        ids = [call for texts in self.texts.values() for call in texts if call.startswith("restored-")]
        for number, name in enumerate(ids):
            text = text.replace(name, f"section {number}")
        return text


def _plain(spec: World) -> Any:
    """What the specification will judge by. Of the moments of writes and calls only their order counts."""
    written, asked = spec._written, spec._asked
    calls = [
        (reader, name, call.batch, [file for file, at in written.items() if at > call.since])
        for reader, sent in spec._sent.items()
        for name, call in sent.items()
    ]
    return calls, [(reader, replace(one, output="")) for reader, one in asked.items()]


class Tried(NamedTuple):
    """What an exploration came to. `sequences`: of events, each checked; `worlds`: those that differ; `events`: how
    often each kind happened; `omitting`: sequences after which something had been left out."""

    sequences: int
    worlds: int
    omitting: int
    events: Counter[str]


def explore(policy: Policy, depth: int) -> Tried:
    """Tries every sequence of at most `depth` events. Raises Untrue with the shortest sequence that breaks the
    promise."""
    paths: list[tuple[Event, ...]] = [()]
    seen, events, sequences, omitting = {SmallWorld(policy).key()}, Counter[str](), 0, 0
    for level in range(depth):
        following = list[tuple[Event, ...]]()
        for path in paths:
            for event in list(_after(policy, path).possible()):
                world = _after(policy, path)
                sequences += 1
                events[event.what] += 1
                try:
                    world.happen(event)
                except Untrue as wrong:
                    raise Untrue(f"{wrong} after: {'; '.join(map(str, (*path, event)))}") from None
                omitting += world.omissions > 0
                if level + 1 < depth and (key := world.key()) not in seen:
                    seen.add(key)
                    following.append((*path, event))
        paths = following
    return Tried(sequences, len(seen), omitting, events)


def _after(policy: Policy, path: tuple[Event, ...]) -> SmallWorld:
    world = SmallWorld(policy)
    for event in path:
        world.happen(event)
    return world


def main() -> None:
    """Prints a line for each policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--policy", choices=POLICIES, action="append")
    given = parser.parse_args()
    for name in given.policy or POLICIES:
        began = time.monotonic()
        tried = explore(POLICIES[name], given.depth)
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(tried.events.items()))
        print(
            f"{name}: {tried.sequences:,} sequences to depth {given.depth} in {time.monotonic() - began:.0f} s, ",
            end="",
        )
        print(f"{tried.worlds:,} worlds gone on with, {tried.omitting:,} with omissions; {kinds}")


if __name__ == "__main__":
    main()
