"""Clearing: oldest results first, much at once, and never the same byte twice."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Marks, Mode, Policy, Reason, Session
from readcache.context import clear, mend_and_clear
from readcache.context.clearing import record_answer
from readcache.context.notes import RECALLED_TURNS
from readcache.core.messages.messages import normalise
from readcache.core.model.errors import UsageError
from tests.helpers.chats import APIS, Messages, Step, chat, is_sendable, numbered, results, text, texts, turn_of, user
from tests.helpers.compactor import agent_turns, assert_true_markers, commands, observed_turn, six_reads

each_shape = pytest.mark.parametrize("shape", APIS)
NOW = [("ls", "f\n"), ("true", "")]  # the two turns that stay
ALL = {"above": 0, "down_to": 0}


def tokens(messages: Messages) -> int:
    """As a policy counts them: a third of the characters of each part, its name, and four for each message."""
    parts = [part for message in normalise(messages) for part in message.parts]
    return 4 * len(messages) + sum(-(-len(words) // 3) for part in parts for words in (part.text, part.name))


def changed(before: Messages, after: Messages) -> set[str]:
    old, new = results(before), results(after)
    assert old.keys() == new.keys()
    return {call_id for call_id in old if old[call_id] != new[call_id]}


# ------------------------------------------------------------ lossless first


def repeated(shape: str, session: Session) -> Messages:
    """Three reads, the same three by a tool that nobody reports, and two turns."""
    shown = [("cat f", text(1, 60)), ("cat g", text(1, 60, of="row")), ("cat h", text(1, 60, of="item"))]
    for at, (command, output) in enumerate(shown, 1):
        session.observe(command, output, call_id=f"c{at}")
    return chat(shape, *[Step(command, output) for command, output in [*shown, *shown, ("true", ""), ("true", "")]])


@each_shape
def test_repeated_results_go_before_any_other(shape: str) -> None:
    session = Session("/w")
    messages = repeated(shape, session)
    mark = tokens(messages) * 2 // 3
    after = clear(messages, session, above=mark, down_to=mark)
    assert changed(messages, after) == {"c1", "c2", "c3"}
    assert all("; shown again later, byte for byte" in results(after)[name] for name in ("c1", "c2", "c3"))
    assert tokens(after) <= mark
    assert clear(messages, session, above=mark, down_to=mark) == after


def test_pruning_before_clearing_can_be_switched_off() -> None:
    session = Session("/w", policy=Policy(prune=()))
    messages = repeated("openai", session)
    mark = tokens(messages) * 2 // 3
    after = clear(messages, session, above=mark, down_to=mark)
    assert "cleared to make room" in results(after)["c1"]
    with pytest.raises(UsageError, match="unknown pruning strategy 'all'"):
        clear(messages, Session("/w", policy=Policy(prune=("all",))), above=mark, down_to=mark)


# ------------------------------------------------------------ when, and how much


@each_shape
def test_up_to_the_first_mark_nothing_is_cleared(shape: str) -> None:
    session = Session("/w")
    messages = six_reads(shape, session)
    assert clear(messages, session, above=tokens(messages), down_to=0) is messages
    assert clear(messages, session, above=tokens(messages) - 1, down_to=0) is not messages


@each_shape
def test_the_oldest_results_go_down_to_the_second_mark(shape: str) -> None:
    session = Session("/w")
    messages = six_reads(shape, session)
    size = tokens(messages)
    after = clear(messages, session, above=size - 1, down_to=size - 700)  # a result has 853 tokens
    assert changed(messages, after) == {"c1", "c2"}
    assert tokens(after) <= size - 700
    assert_true_markers(session, after)


@each_shape
def test_the_last_two_turns_stay(shape: str) -> None:
    session = Session("/w")
    messages = six_reads(shape, session)
    after = clear(messages, session, **ALL)
    assert changed(messages, after) == {"c1", "c2", "c3", "c4"}
    assert after[-4:] == messages[-4:]


@each_shape
@pytest.mark.parametrize("command", ["cat f", "cat other", "cat", "deploy --all"])
def test_another_calls_result_with_the_id_of_a_cleared_one_stays(shape: str, command: str) -> None:
    """Some models number their calls anew, and a host need not tell the session of each."""
    session = Session("/w", policy=Policy(clear=Marks(**ALL)))
    session.observe("cat f", text(1, 60), call_id="c1")
    kept = chat(shape, Step("cat f", text(1, 60)), Step("ls", "f\n"), Step("true", "\n"))
    assert changed(kept, mend_and_clear(kept, session)) == {"c1"}
    assert changed(kept, mend_and_clear(kept, session)) == {"c1"}
    other = chat(shape, Step(command, "never shown\n" * 60))
    assert mend_and_clear(other, session) == other


@each_shape
def test_a_hosts_own_words_around_a_result_go_with_it_each_time(shape: str) -> None:
    session = Session("/w", policy=Policy(clear=Marks(**ALL)))
    session.observe("cat f", text(1, 60), call_id="c1")
    kept = chat(shape, Step("cat f", f"<output>\n{text(1, 60)}\n</output>"), Step("ls", "f\n"), Step("true", "\n"))
    first = mend_and_clear(kept, session)
    assert changed(kept, first) == {"c1"}
    assert mend_and_clear(kept, session) == first


@pytest.mark.parametrize(("above", "down_to"), [(10, 20), (10, -1), (-1, -1)])
def test_marks_that_have_no_meaning_are_an_error(above: int, down_to: int) -> None:
    with pytest.raises(UsageError, match=f"above={above} and down_to={down_to}"):
        clear([], Session("/w"), above=above, down_to=down_to)


@pytest.mark.parametrize("mode", [Mode.ADVISE, Mode.OFF])
def test_with_a_session_that_only_advises_nothing_is_cleared(mode: Mode) -> None:
    session = Session("/w", policy=Policy(mode=mode))
    messages = six_reads("openai", session)
    assert clear(messages, session, **ALL) is messages


# ------------------------------------------------------------ what the line says


SAID = {
    "a read": ("cat f", text(), "f lines 1-40; cleared to make room; repeat this call to see"),
    "some lines": ("sed -n 3,20p f", text(3, 20), "f lines 3-20; cleared to make room; repeat this call to see"),
    "a command": ("make", text(), 'output of "make", 40 lines, cleared to make room'),
    "one line": ("make", "x" * 400, 'output of "make", 1 line, cleared to make room'),
    "a command that reads, too": (
        "make; echo ---; cat -n f",
        text(of="made") + "---\n" + numbered(1, 40),
        'output of "make; echo ---; cat -n f", 81 lines (f lines 1-40 among them), cleared to make room',
    ),
    "an output that was cut": (
        "make",
        f"{text(1, 10)}[PRUNED: 100 lines (9,999 characters) omitted here; ask again to see them]\n{text(110, 120)}",
        'output of "make", 22 lines, cleared to make room',
    ),
}  # fmt: skip


@each_shape
@pytest.mark.parametrize(("command", "output", "said"), SAID.values(), ids=SAID)
def test_the_line_says_what_stood_there(shape: str, command: str, output: str, said: str) -> None:
    session = Session("/w")
    after = clear(commands(shape, session, (command, output), *NOW), session, **ALL)
    name = session.tag if command.startswith(("cat", "sed")) else f"{session.tag}.1"
    recall = "" if name == session.tag else f'; to see it as it was, run "readcache recall {name}"'
    note = f"[PRUNED {name}: {said}{recall}]"
    assert results(after)["c1"] == note
    assert session.recall(f"{session.tag}.1").text == output.removesuffix("\n") + "\n"
    assert session.markers_in(f"  > {note}\r\n") == [note]


def test_of_a_reply_with_a_marker_only_the_lines_that_stood_there_are_named() -> None:
    session = Session("/w")
    given = [("sed -n '1,20p' f", text(1, 20)), ("cat f", text()), *NOW]
    messages = commands("openai", session, *given)
    assert session.markers_in(results(messages)["c2"])
    said = "the rest of this output, 21 lines (f lines 21-40 among them); cleared to make room; repeat this call to see"
    assert results(clear(messages, session, **ALL))["c2"] == f"[PRUNED {session.tag}: {said}]"


def test_of_a_result_that_a_host_shows_in_json_the_lines_are_named() -> None:
    session = Session("/w")
    messages = [
        {**each, "content": json.dumps({"returncode": 0, "output": each["content"]}, indent=1)}
        if each["role"] == "tool"
        else each
        for each in commands("openai", session, ("cat f", text()), *NOW)
    ]
    said = "this output, 4 lines (f lines 1-40 among them); cleared to make room; repeat this call to see"
    assert results(clear(messages, session, **ALL))["c1"] == f"[PRUNED {session.tag}: {said}]"


# ------------------------------------------------------------ what stays


@each_shape
@pytest.mark.parametrize(
    ("command", "policy"),
    [
        ("cat .env", Policy()),
        ("cat notes/x", Policy(protected=("notes/*",))),
        ("cat skills/pdf/SKILL.md", Policy()),
        ("awk 1 AGENTS.md", Policy()),
    ],
)
def test_protected_files_and_instructions_stay(shape: str, command: str, policy: Policy) -> None:
    session = Session("/w", policy=policy)
    messages = commands(shape, session, (command, text()), ("cat f", text(of="row")), *NOW)
    assert changed(messages, clear(messages, session, **ALL)) == {"c2"}


@each_shape
def test_words_and_calls_stay(shape: str) -> None:
    session = Session("/w")
    write = f"cat > f <<'EOF'\n{text()}EOF\n"
    steps = [
        Step(command, session.observe(command, output, call_id=f"c{n}").text)
        for n, (command, output) in enumerate([(write, ""), ("make", text(1, 99)), *NOW], 1)
    ]
    messages = chat(shape, steps[0], text(of="the user says"), *steps[1:])
    after = clear(messages, session, **ALL)
    assert changed(messages, after) == {"c2"}
    assert sum(a is not b for a, b in zip(messages, after, strict=True)) == 1
    assert session.view.covers("/w/f", 1, 40)


@each_shape
def test_what_a_marker_of_the_last_turns_points_at_stays(shape: str) -> None:
    session = Session("/w")
    messages = commands(shape, session, ("cat f", text()), ("make", text(of="row")), ("ls", "f\n"), ("cat f", text()))
    assert results(messages)["c4"].startswith("[FILE_UNCHANGED")
    after = clear(messages, session, **ALL)
    assert changed(messages, after) == {"c2"}
    assert_true_markers(session, after)


@each_shape
def test_what_another_marker_points_at_is_as_old_as_the_marker_which_then_says_that_it_is_gone(shape: str) -> None:
    session = Session("/w")
    make, test = (("make", text(of="made")), ("pytest", text(of="passed")))
    messages = commands(shape, session, ("cat f", text()), make, ("cat f", text()), test, *NOW)
    assert results(messages)["c3"].startswith("[FILE_UNCHANGED")
    size = tokens(messages)
    some = clear(messages, session, above=size - 1, down_to=size - 1)
    assert changed(messages, some) == {"c2"}
    more = clear(some, session, above=size - 700, down_to=size - 700)
    assert changed(some, more) == {"c1", "c3"}
    assert results(more)["c3"].startswith(f"[GONE {session.tag}.3: ")
    assert_true_markers(session, more)


BROKEN: dict[str, Any] = {
    "a call without result": [Step("make", None)],
    "a result without call": [{"role": "tool", "tool_call_id": "c9", "content": text()}],
    "a result of no call": [{"role": "tool", "content": text()}],
    "blocks of results without calls": [{"role": "user", "content": [{"type": "tool_result", "content": text()}]}],
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_list_that_is_not_well_formed_is_left_alone(broken: list[Any]) -> None:
    session = Session("/w")
    messages = six_reads("openai", session)
    bad = chat("openai", *broken)[2:] if isinstance(broken[0], Step) else broken
    messages[2:2] = bad
    assert clear(messages, session, **ALL) is messages


def test_a_list_of_anything_is_left_alone() -> None:
    messages: Any = [None, 7, "x" * 999, {"role": 5}, {"content": ["x" * 999]}, {}]
    assert clear(messages, Session("/w"), **ALL) is messages


def test_a_result_with_an_empty_id_stays_because_the_session_does_not_know_it() -> None:
    """Failed: the result was not found, and clearing it was tried for ever."""
    session = Session("/w")
    messages: Any = commands("openai", session, ("make", text()), *NOW)
    messages[2]["tool_calls"][0]["id"] = messages[3]["tool_call_id"] = ""
    assert results(clear(messages, session, **ALL))[""] == text()


def test_without_ids_the_result_goes_and_the_words_around_it_stay() -> None:
    session = Session("/w")
    head: Messages = [user("fix the bug")]
    turns = [observed_turn("no ids", session, 0, [given]) for given in [("cat f", text()), *NOW]]
    messages = [*head, *(message for turn in turns for message in turn)]
    after = clear(messages, session, **ALL)
    note = f"[PRUNED {session.tag}: f lines 1-40; cleared to make room; repeat this call to see]"
    assert after[2] == user(f"<output>\n{note}\n\n</output>")
    assert [a is b for a, b in zip(messages, after, strict=True)].count(False) == 1


# ------------------------------------------------------------ what the session knows


@each_shape
def test_what_was_cleared_is_shown_in_full_when_it_is_asked_for(shape: str) -> None:
    session = Session("/w")
    after = clear(commands(shape, session, ("cat f", text()), *NOW), session, **ALL)
    assert not session.view.covers("/w/f", 1, 1)
    reply = session.observe("cat f", text(), call_id="c4")
    assert (reply.text, reply.reason) == (text(), Reason.NOT_SEEN)
    assert session.mend(after) is after


# ------------------------------------------------------------ bytes that do not move


@each_shape
def test_what_is_cleared_once_is_never_rewritten(shape: str) -> None:
    session = Session("/w")
    messages = chat(shape)
    cleared: dict[str, str] = {}
    for number in range(40):
        command = (f"cat f{number}", text(of=f"row {number}"))
        messages = [*messages, *observed_turn(shape, session, number, [command])]
        before = copy.deepcopy(messages)
        after = clear(messages, session, above=6_000, down_to=3_000)
        assert messages == before
        assert cleared.items() <= results(after).items()
        cleared = {call_id: words for call_id, words in results(after).items() if words.startswith("[PRUNED")}
        messages = after
    assert len(cleared) > 30


MARKS = Marks(8_000, 4_000)


@each_shape
def test_a_host_that_keeps_every_result_sends_the_same_bytes_again(shape: str) -> None:
    """It gives us each time what it keeps, and sends what it is given back."""
    session = Session("/w", policy=Policy(clear=MARKS))
    kept, sent = chat(shape), chat(shape)
    for number in range(40):
        kept = [*kept, *observed_turn(shape, session, number, [(f"cat f{number}", text(of=f"row {number}"))])]
        before, sent = sent, mend_and_clear(kept, session)
        assert tokens(sent) <= MARKS.above
        was, now = results(before), results(sent)
        assert all(now[name] == words for name, words in was.items() if words.startswith("[PRUNED"))
        assert now == was | results(kept[len(before) :]) or len(changed(before, sent[: len(before)])) > 5
        assert_true_markers(session, sent)
    assert mend_and_clear(kept, session) == sent


@each_shape
def test_what_was_cleared_is_cleared_in_the_next_process_too(shape: str, tmp_path: Path) -> None:
    told: dict[str, Any] = {"session_id": "s", "store": tmp_path / "s.db", "policy": Policy(clear=Marks(0, 0))}
    with Session("/w", **told) as session:
        messages = commands(shape, session, ("cat f", text()), *NOW)
        sent = mend_and_clear(messages, session)
    assert changed(messages, sent) == {"c1"}
    with Session("/w", **told) as again:
        assert mend_and_clear(messages, again) == sent
        assert again.observe("cat f", text(), call_id="c4").text == text()
    with Session("/w", **{**told, "policy": Policy()}) as without:
        assert mend_and_clear(messages, without) is messages


@each_shape
def test_an_id_that_is_used_twice_names_no_cleared_result(shape: str) -> None:
    session = Session("/w", policy=Policy(clear=Marks(0, 0)))
    messages = commands(shape, session, ("cat f", text()), *NOW)
    assert changed(messages, mend_and_clear(messages, session)) == {"c1"}
    again = [*messages, *chat(shape, Step("make", text(of="new")))[len(chat(shape)) :]]
    sent = mend_and_clear(again, session)
    assert text(of="new").rstrip("\n") in "\n".join(texts(sent))
    assert_true_markers(session, sent)


@each_shape
def test_without_marks_it_only_mends(shape: str) -> None:
    session = Session("/w")
    messages = six_reads(shape, session)
    assert mend_and_clear(messages, session) is messages


@each_shape
def test_a_result_that_the_session_does_not_know_stays(shape: str) -> None:
    """It would be back in the next list of a host that keeps it."""
    session = Session("/w")
    messages = chat(shape, Step("make", text(of="made")), *[Step(command, output) for command, output in NOW])
    assert clear(messages, session, **ALL) is messages


@each_shape
def test_a_reply_that_was_never_sent_gets_its_lines_back_and_no_note(shape: str) -> None:
    """Failed: its source had left the list, and clearing said that the lines were gone."""
    session = Session("/w")
    given = [("cat f", text()), ("make", text(of="row")), ("pytest", text(of="passed")), ("cat f", text())]
    messages = commands(shape, session, *given)
    assert results(messages)["c4"].startswith("[FILE_UNCHANGED")
    head = len(chat(shape))
    after = clear([*messages[:head], *messages[head + 2 :]], session, **ALL)
    assert results(after)["c4"].rstrip("\n") == text().rstrip("\n")


marks = st.tuples(st.integers(0, 6_000), st.integers(0, 6_000)).map(lambda pair: (max(pair), min(pair)))


@given(st.sampled_from([*APIS, "no ids"]), agent_turns, marks, st.booleans())
def test_at_every_step_lists_are_well_formed_markers_true_and_bytes_stable(
    shape: str, asked: list[list[tuple[str, str]]], chosen: tuple[int, int], delta: bool
) -> None:
    session = Session("/w", policy=Policy(delta=delta))
    above, down_to = chosen
    messages = chat("anthropic" if shape == "anthropic" else "openai")
    cleared: set[str] = set()
    for number, each in enumerate(asked):
        messages = [*messages, *observed_turn(shape, session, number, each)]
        after = clear(messages, session, above=above, down_to=down_to)
        assert is_sendable(list(after))
        assert_true_markers(session, after)
        assert (after is messages) == (after == messages)
        assert after is messages or tokens(messages) > above
        border = _last_turns(messages)
        assert after[border:] == messages[border:]
        first = next((at for at, message in enumerate(after) if message is not messages[at]), None)
        assert first is None or "[PRUNED" in "\n".join(texts(after[first : first + 1]))
        assert clear(after, session, above=above, down_to=down_to) is after
        if after is not messages and tokens(after) > down_to:
            assert not _clearable(session, after)
        notes = {line for words in texts(after) for line in words.split("\n") if line.startswith("[PRUNED")}
        assert cleared <= notes
        messages, cleared = after, notes


def _last_turns(messages: Messages) -> int:
    starts = [at for at, message in enumerate(messages) if message["role"] in ("assistant", "model")]
    return starts[-2] if len(starts) > 2 else 0


def _clearable(session: Session, messages: Messages) -> list[str]:
    """Results that could still be cleared: long, before the last two turns, and needed by no marker there."""
    border = _last_turns(messages)
    late = "\n".join(texts(messages[border:]))
    deliveries = session.view.deliveries
    needed = {
        source
        for delivery in deliveries
        if delivery.event.markers and delivery.event.text.split("\n")[0] in late
        for marker in delivery.event.markers
        for source in marker.sources
    }
    early = results(messages[:border])
    return [call_id for call_id, words in early.items() if len(words) > 500 and call_id not in needed]


# ------------------------------------------------------------ words above the mark, IDs that do not name one call


def test_nothing_is_cleared_if_words_exceed_the_lower_mark_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = Session("/w", policy=Policy(clear=Marks(3_000, 1_000)))
    messages: Messages = [user("word " * 1_000)]
    for number in range(12):
        messages += observed_turn("openai", session, number, [(f"cat f{number}", text(of=f"row {number}"))])
        assert mend_and_clear(messages, session) is messages
    assert [record.getMessage()[:19] for record in caplog.records] == ["nothing was cleared"]


def _kept_without_ids(session: Session, number: int) -> Messages:
    return observed_turn("no ids", session, number, [(f"cat f{number}", text(of=f"row {number}"))])


def _kept_with_ids_of_each_turn(session: Session, number: int) -> Messages:
    """Failed: the newer call with the ID took the place of the older one, and nothing was cleared."""
    output = text(of=f"row {number}")
    shown = session.observe(f"cat f{number}", output, call_id="c1").text
    return chat("openai", Step(f"cat f{number}", shown))[len(chat("openai")) :]


@pytest.mark.parametrize("turn", [_kept_without_ids, _kept_with_ids_of_each_turn])
def test_clearing_lasts_in_a_list_that_the_host_keeps(turn: Any, tmp_path: Path) -> None:
    told: dict[str, Any] = {"session_id": "s", "store": tmp_path / "s.db", "policy": Policy(clear=Marks(4_000, 1_500))}
    kept: Messages = [user("fix the bug")]
    noted: dict[int, str] = {}
    session = Session("/w", **told)
    for number in range(24):
        if number % 7 == 6:  # another process continues
            session.close()
            session = Session("/w", **told)
        kept += turn(session, number)
        sent = mend_and_clear(kept, session)
        assert tokens(sent) <= 4_000
        contents = [str(message.get("content")) for message in sent]
        assert noted.items() <= dict(enumerate(contents)).items()
        noted = {at: words for at, words in enumerate(contents) if "[PRUNED" in words}
    assert len(noted) > 15


def test_a_text_that_was_shown_again_stays() -> None:
    session = Session("/w", policy=Policy(clear=Marks(0, 0)))
    given = [("cat f", text()), ("ls", "f\n"), ("true", "")]
    kept = [message for number, one in enumerate(given) for message in observed_turn("no ids", session, number, [one])]
    sent = mend_and_clear(kept, session)
    assert "[PRUNED" in sent[1]["content"]
    again = observed_turn("no ids", session, 4, [("cat f", text())])

    for messages in ([*kept, *again], [*sent, *again]):
        now = mend_and_clear(messages, session)
        assert (now[1]["content"], now[-1]["content"]) == (sent[1]["content"], again[-1]["content"])


def test_an_unknown_result_with_an_id_that_is_used_again_stays() -> None:
    session = Session("/w", policy=Policy(clear=Marks(0, 0)))
    unknown = chat("openai", Step("deploy", text(of="deployed")))
    turns = [_kept_with_ids_of_each_turn(session, number) for number in range(4)]
    sent = mend_and_clear([*unknown, *(message for turn in turns for message in turn)], session)
    assert "deployed" in str(sent)
    assert str(sent).count("[PRUNED") == 2


# ------------------------------------------------------------ in the model's tokens


def long_conversation(session: Session, calls: int) -> Messages:
    """Reads of 115 lines of Go, 10,000 characters each."""
    line = "    {:6d}\tfunc (s *GitStore) ReadCommitted(ctx context.Context, id string) (*Result, error) {{\n"
    outputs = ["".join(line.format(i + 1000 * n) for i in range(115)) for n in range(calls)]
    return commands("openai", session, *((f"cat f{n}.go", output) for n, output in enumerate(outputs)))


@pytest.mark.parametrize(
    ("model", "calls"), [("claude-opus-4-6", 48), ("claude-opus-5", 35), ("gpt-5.4", 56), ("", 51)]
)
def test_the_default_marks_of_a_window_act_before_the_window_is_full(model: str, calls: int) -> None:
    """They never acted in a window of 200,000 tokens, because four characters counted as one token."""
    session, marks = Session("/w", policy=Policy(model=model)), Marks.of_window(200_000)
    messages = long_conversation(session, calls)

    def size(of: Messages) -> float:
        return sum(len(message["content"] or "") for message in of) / session.policy.chars_per_token

    assert 0.8 * 200_000 < size(messages) < 200_000
    after = clear(messages, session, above=marks.above, down_to=marks.down_to)
    assert after is not messages
    assert size(after) <= marks.down_to


def test_the_providers_count_decides_when_and_how_much_is_cleared() -> None:
    session = Session("/w")
    messages = six_reads("openai", session)
    size = tokens(messages)
    assert clear(messages, session, above=50_000, down_to=40_000, tokens=50_000) is messages
    after = clear(messages, session, above=50_000, down_to=49_401, tokens=50_001)
    assert changed(messages, after) == {"c1"}
    assert size - tokens(after) >= 600


def test_the_size_of_the_last_request_decides_if_the_host_passes_it() -> None:
    session = Session("/w", policy=Policy(clear=Marks(50_000, 49_401)))
    messages = six_reads("openai", session)
    record_answer(session, {"usage": {"prompt_tokens": 60_000}})
    assert mend_and_clear(messages, session) is messages, "no request was made before that answer"
    record_answer(session, {"choices": []})
    assert mend_and_clear(messages, session) is messages, "the answer has no usage"
    record_answer(session, {"usage": {"prompt_tokens": 50_001}})
    after = mend_and_clear(messages, session)
    assert changed(messages, after) == {"c1"}
    record_answer(session, {"usage": {"prompt_tokens": 49_300}})
    assert mend_and_clear(after, session) is after
    longer = [*after, user("go on " * 350)]  # 700 tokens
    assert changed(longer, mend_and_clear(longer, session)) == {"c2"}


def test_a_models_name_from_the_host_counts_unless_the_user_names_one() -> None:
    session = Session("/w", host="claude-code", policy=Policy(min_worth=0.5))
    assert session.policy.tokens("x" * 84) == 30
    session.use_model("")
    assert session.policy.tokens("x" * 84) == 30
    session.use_model("claude-opus-5")
    assert session.policy.tokens("x" * 84) == session.fork("worker").policy.tokens("x" * 84) == 42
    assert session.reader.rules.policy is session.policy
    assert session.policy.min_worth == 0.5
    named = Session("/w", policy=Policy(model="gpt-5.4"))
    named.use_model("claude-opus-5")
    assert named.policy.model == "gpt-5.4"


def test_the_instructions_of_a_host_are_a_part_of_the_conversation() -> None:
    session, other = (Session("/w", host=host) for host in ("codex", ""))
    messages, same = (six_reads("openai", one) for one in (session, other))
    marks = {"above": 23_000, "down_to": 22_000}
    assert clear(messages, session, **marks) is not messages
    assert clear(same, other, **marks) is same


def test_what_was_recalled_is_not_cleared_again_for_some_turns() -> None:
    session = Session("/w")
    messages = commands("openai", session, ("make", text()), *NOW)
    recall = f"readcache recall {session.tag}.1"
    for n in range(RECALLED_TURNS + 1):
        command = recall if n == 0 else f"echo {n}"
        reply = session.observe(command, "no\n", call_id=f"r{n}")
        messages += turn_of("openai", (f"r{n}", Step(command, reply.text)))
        left = [one for one in results(clear(messages, session, **ALL)).values() if one == text()]
        assert len(left) == (n < RECALLED_TURNS)
    note = next(one for one in results(clear(messages, session, **ALL)).values() if recall in one)
    assert note.endswith(f'cleared to make room; to see it as it was, run "{recall}"]')
