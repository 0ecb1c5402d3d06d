"""The short way to a re-read's answer comes to what the rules come to."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readcache import Insist, Mode, Policy, Reply, Session
from readcache.judging.compose import compose
from readcache.judging.judge import decide
from readcache.judging.line_index import LineIndex
from readcache.judging.reread import answer_reread
from readcache.model.call import Call, make_request, read_call
from readcache.model.claims import FileLines, Reading
from readcache.model.events import Compacted, Delivered, Wrote
from readcache.model.policy import Rules
from readcache.model.view import View
from tests.helpers.machine import POLICIES, make_text

TAG = "7f3a"
TEXT = make_text(1, "a.py")


def by_rules(view: View, call: Call, policy: Policy) -> tuple[Reply, Delivered]:
    rules = Rules(policy, TAG)
    return compose(view, call, decide(view, call, rules, LineIndex(view.deliveries)), rules)


def read(call_id: str, output: str = TEXT, *, path: str = "/w/a.py", sep: str | None = None, batch: str = "") -> Call:
    reading = Reading((FileLines((path,), ((1, None),), sep),))
    return Call(call_id, f"read {path}", make_request(path, sep), output, reading, batch=batch)


def shown(view: View, call: Call, policy: Policy = Policy()) -> None:  # noqa: B008  frozen
    view.apply(by_rules(view, call, policy)[1])


def short(view: View, call: Call, policy: Policy = Policy()) -> tuple[Reply, Delivered] | None:  # noqa: B008  frozen
    return answer_reread(view, call, Rules(policy, TAG))


def test_a_plain_reread_takes_the_short_way() -> None:
    view = View()
    shown(view, read("c1"))
    assert short(view, read("c2")) == by_rules(view, read("c2"), Policy())


def test_numbered_lines_take_it_too() -> None:
    view, text = View(), "".join(f"{n:6}\t{line}\n" for n, line in enumerate(TEXT.splitlines(), 1))
    shown(view, read("c1", text, sep="\t"))
    assert short(view, read("c2", text, sep="\t")) == by_rules(view, read("c2", text, sep="\t"), Policy())


@pytest.mark.parametrize(
    "policy",
    [
        Policy(mode=Mode.ADVISE),
        Policy(protected=("*.py",)),
        Policy(min_chars=100_000),
        Policy(horizon_tokens=0),
    ],
    ids=["advise", "protected", "min_chars", "horizon"],
)
def test_what_a_policy_says_is_left_to_the_rules(policy: Policy) -> None:
    view = View()
    shown(view, read("c1"))
    shown(view, read("c2", "x" * 400, path="/w/other"))
    assert short(view, read("c3"), policy) is None


def test_the_rules_are_asked_when_anything_is_not_plain() -> None:
    view = View()
    shown(view, read("c1", batch="b"))
    assert short(view, read("c2", batch="b")) is None, "the same batch"
    assert short(view, read("c1")) is None, "the same call"
    assert short(view, read("c2", TEXT + "more\n")) is None, "another text"
    assert short(view, replace(read("c2"), fresh=True)) is None, "asked for afresh"
    view.apply(Wrote("w", ("/w/a.py",), "", 2))
    assert short(view, read("c3")) is None, "written since"


def test_a_reader_who_insists_is_left_to_the_rules() -> None:
    view = View()
    shown(view, read("c1"))
    shown(view, read("c2"))
    assert short(view, read("c3")) is None
    assert short(view, read("c3"), Policy(insist=Insist.STUB)) is not None


def test_an_answer_that_left_the_conversation_is_no_answer() -> None:
    view = View()
    shown(view, read("c1"))
    view.apply(Compacted(frozenset()))
    assert short(view, read("c2")) is None


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    steps=st.lists(st.tuples(st.sampled_from(["read", "part", "edit", "wrote", "compact", "cat"]), st.integers(0, 2))),
    policy=st.sampled_from(sorted(POLICIES)),
)
def test_wherever_it_is_taken_the_rules_leave_out_as_much(seed: int, steps: list[tuple[str, int]], policy: str) -> None:
    rng = random.Random(seed)
    session = Session("/w", policy=POLICIES[policy])
    files = [make_text(seed, name) for name in ("a", "b", "c")]
    for n, (step, which) in enumerate(steps):
        path = f"f{which}"
        if step == "edit":
            files[which] = make_text(rng.randrange(1 << 30), path)
        elif step == "wrote":
            session.wrote(path)
        elif step == "compact":
            session.compacted(keep=[f"c{k}" for k in range(n) if rng.random() < 0.5])
        elif step == "cat":
            session.observe(f"cat {path}", files[which], call_id=f"c{n}")
        else:
            end = 20 if step == "part" else None
            output = "".join(line + "\n" for line in files[which].split("\n")[:end])
            call = read_call(f"c{n}", f"/w/{path}", output, 1, end)
            rules, view = session.reader.rules, session.view
            again = answer_reread(view, call, rules)
            if again is not None:
                assert again == compose(view, call, decide(view, call, rules, LineIndex(view.deliveries)), rules)
            session.observe_read(path, output, end=end, call_id=f"c{n}")
