"""Message lists that are judged before each request: what the model is sent follows from the list alone."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy, Reply, Session
from readcache.core.messages.messages import Kind, normalise
from readcache.core.model.tool_call import ToolCall
from readcache.hosts.judged_lists import JudgedLists
from readcache.testing.requests import markers
from tests.helpers.chats import APIS, Messages, Step, chat, said, server_compaction, text, texts, turn_of

SHAPES = (*APIS, "gemini without ids")
CHEAP = Policy(min_worth=0)  # a pointer to a restored section, too
each_shape = pytest.mark.parametrize("shape", SHAPES)
HEADING = "## Files restored after compaction"
CAT, HEAD, LS = Step("cat f", text()), Step("head -30 f", text(1, 30)), Step("ls", "f\n")


def lists(**given: Any) -> JudgedLists:
    return JudgedLists("tests", None, {"root": "/w", **given})


def shown(messages: Any) -> list[str]:
    """The text of each result."""
    return [part.text for message in normalise(messages) for part in message.parts if part.kind is Kind.RESULT]


@each_shape
def test_a_second_read_is_a_marker_and_the_hosts_list_stays(shape: str) -> None:
    ours, messages = lists(), chat(shape, CAT, HEAD)
    before = copy.deepcopy(messages)
    sent = ours.messages(messages, "one")
    assert messages == before
    assert shown(sent)[0] == text()
    assert markers(shown(sent)[1])
    assert [new is old for new, old in zip(sent, messages, strict=True)].count(False) == 1
    longer = [*messages, *turn_of(shape, ("c3", LS))]
    assert ours.messages(longer, "one")[: len(sent)] == sent, "older results keep their bytes"
    assert ours.stats()["calls"] == 3


@each_shape
def test_a_tool_is_what_the_user_says_it_is(shape: str) -> None:
    messages = chat(shape, CAT, HEAD)
    (name,) = {part.name for message in normalise(messages) for part in message.parts if part.kind is Kind.CALL}

    def answer(session: Session, result: ToolCall) -> Reply:
        return session.observe("cat f", result.output.upper(), call_id=result.call_id)

    assert shown(JudgedLists("tests", {name: "ignore"}, {"root": "/w"}).messages(messages, "one")) == shown(messages)
    assert shown(JudgedLists("tests", {name: answer}, {"root": "/w"}).messages(messages, "one"))[0] == text().upper()


@each_shape
def test_another_process_sends_the_same_bytes(shape: str) -> None:
    messages = chat(shape, CAT, HEAD, LS, CAT, LS, HEAD)
    one, other, turns = lists(), lists(), []
    for end in range(1, len(messages) + 1):
        turns.append(one.messages(messages[:end], "one"))
        if end % 3 == 0:  # in turn
            assert other.messages(messages[:end], "elsewhere") == turns[-1]
    assert all(sent == turns[-1][: len(sent)] for sent in turns)
    assert lists().messages(messages, "later") == turns[-1]


@each_shape
def test_a_fork_and_one_that_goes_back_are_readers_of_their_own(shape: str) -> None:
    ours, other = lists(), Step("cat g", text(of="row"))
    parent = chat(shape, CAT, LS)
    ours.messages(parent, "one")
    one, two = ([*parent, *turn_of(shape, (name, other))] for name in ("c3", "d3"))
    assert not markers(shown(ours.messages(one, "one"))[2])
    assert not markers(shown(ours.messages(two, "one"))[2]), "only the first fork has seen it"
    again = [*two, *turn_of(shape, ("d4", HEAD))]
    assert markers(shown(ours.messages(again, "one"))[3]), "what the parent saw stands in the fork, too"
    back = [*parent[:-2], *turn_of(shape, ("e3", other))]
    assert not markers(shown(ours.messages(back, "one"))[1])


@each_shape
def test_old_results_are_cleared_at_the_marks_and_stay_so(shape: str) -> None:
    ours, messages = lists(clear=(2_000, 1_200)), chat(shape, Step("cat f0", text(of="row 0")))
    notes: list[str] = []
    for n in range(1, 8):
        pair = [(f"{name}{n}", Step(f"cat {name}{n}", text(1, 20, of=f"{name} {n}"))) for name in ("f", "g")]
        messages += turn_of(shape, *pair)
        now = shown(ours.messages(messages, "one"))
        assert [old for old, new in zip(notes, now, strict=False) if old.startswith("[PRUNED") and new != old] == []
        notes = now
    assert len([note for note in notes if note.startswith("[PRUNED")]) > 3
    assert not any(note.startswith("[PRUNED") for note in notes[-4:]), "the last two turns stay"
    again = shown(ours.messages([*messages, *turn_of(shape, ("f9", Step("cat f0", text(of="row 0"))))], "one"))
    assert again[-1] == text(of="row 0"), "what was cleared is shown in full"
    resumed = lists(clear=(2_000, 1_200)).messages(messages, "elsewhere")
    assert sum(map(len, shown(resumed))) < sum(map(len, shown(messages))) / 2, "another process clears at once"


@each_shape
def test_who_begins_with_no_messages_has_seen_nothing(shape: str) -> None:
    ours = lists()
    ours.messages(chat(shape, CAT), "one")
    assert not markers(shown(ours.messages(chat(shape, HEAD), "two"))[0])


@each_shape
def test_calls_made_at_once_do_not_point_at_each_other(shape: str) -> None:
    first, second, third = shown(lists().messages(chat(shape, [CAT, CAT], HEAD), "one"))
    assert not markers(first + second)
    assert markers(third)


def test_calls_of_one_response_are_at_once_also_in_messages_of_their_own() -> None:
    """As items of the Responses API are."""
    (call_c, result_c), (call_d, result_d) = (turn_of("openai", (name, CAT)) for name in "cd")
    messages = [said("openai", "go"), call_c, call_d, result_c, result_d, *turn_of("openai", ("e", HEAD))]
    assert [bool(markers(each)) for each in shown(lists().messages(messages, "one"))] == [False, False, True]


@each_shape
def test_a_source_that_is_gone_is_not_pointed_at(shape: str) -> None:
    ours, messages = lists(), chat(shape, LS, CAT, LS, HEAD, LS)
    assert markers(shown(ours.messages(messages, "one"))[3])
    left = [*messages[: -4 * 2], *messages[-3 * 2 :]] if shape != "openai" else [*messages[:4], *messages[6:]]
    for marker in markers("".join(shown(ours.messages(left, "one")))):
        assert marker.startswith("[GONE")
    assert not markers("".join(shown(lists().messages(left, "two"))))


def test_an_id_that_is_used_again_is_another_call() -> None:
    ours = lists()
    messages: Messages = [said("openai", "go")]
    for step in (CAT, HEAD, Step("cat g", text(of="row"))):
        messages += turn_of("openai", ("call_0", step))
        sent = shown(ours.messages(messages, "one"))
    assert [bool(markers(each)) for each in sent] == [False, True, False]


def test_what_an_error_says_is_no_content() -> None:
    failed = Step({"path": "f"}, text(), tool="read_file", error=True)
    read = Step({"path": "f"}, f"Error: {text()}", tool="read_file")
    assert not markers("".join(shown(lists(policy="max").messages(chat("anthropic", failed, read), "one"))[1:]))


@each_shape
def test_behind_a_servers_compaction_stands_what_was_read(shape: str) -> None:
    ours, messages = lists(policy=CHEAP), chat(shape, CAT, LS)
    ours.messages(messages, "one")
    compacted = [*messages, server_compaction(shape), said(shape, "go on"), *turn_of(shape, ("c3", HEAD))]
    sent = ours.messages(compacted, "one")
    (section,) = [each for each in texts(sent) if each.startswith(HEADING)]
    assert text() in section
    assert "the section" in markers(shown(sent)[-1])[0]
    assert shown(ours.messages([*compacted, *turn_of(shape, ("c4", LS))], "one"))[2] == shown(sent)[2]
    assert [each.startswith(HEADING) for each in texts(lists().messages(compacted, "two"))].count(True) == 1, (
        "also read anew"
    )


@pytest.mark.parametrize("name", ["", "one"])
def test_a_compaction_that_leaves_no_result_goes_on_in_a_named_conversation_only(name: str) -> None:
    """Two conversations may begin with the same words."""
    ours, messages = lists(), chat("openai", CAT)
    ours.messages(messages, name)
    left = [*messages[:2], server_compaction("openai"), said("openai", "go on")]
    assert any(each.startswith(HEADING) for each in texts(ours.messages(left, name))) is bool(name)


def test_another_process_puts_back_what_the_log_of_that_name_has(tmp_path: Path) -> None:
    messages, store = chat("openai", CAT), str(tmp_path / "log.db")
    left = [*messages[:2], server_compaction("openai"), said("openai", "go on")]
    sections = list[Any]()
    for requests in ([messages, left], [left]):
        ours = lists(store=store)
        sections.append([ours.judged(normalise(each), "one", log="mine").sections for each in requests][-1])
        ours.close()
    assert sections[0] == sections[1] != {}


@each_shape
def test_behind_a_summary_in_the_place_of_results_stands_what_was_read(shape: str) -> None:
    ours, messages = lists(policy=CHEAP), chat(shape, CAT, LS, Step("date", "today\n"))
    ours.messages(messages, "one")
    newest = messages[-2:]
    summed_up = [*messages[: -len(turn_of(shape, ("c", LS))) * 3], said(shape, "A summary.", "assistant")]
    summed_up += [said(shape, "go on"), *newest, *turn_of(shape, ("c9", HEAD))]
    sent = ours.messages(summed_up, "one")
    assert [each.startswith(HEADING) for each in texts(sent)].count(True) == 1
    assert markers(shown(sent)[-1])
    assert ours.messages(summed_up, "one") == sent


def test_off_and_replies_are_as_for_every_adapter(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    ours, messages = lists(on_reply=heard.append), chat("converse", CAT, HEAD)
    assert ours.messages(messages, "one") != messages
    assert [bool(reply.omissions()) for reply in heard] == [False, True]
    assert lists(mode="off").messages(messages, "one") == messages
    monkeypatch.setenv("READCACHE", "off")
    assert ours.messages(messages, "one") == messages


@given(st.integers(0, 10_000), st.sampled_from(SHAPES))
def test_whatever_a_host_does_to_its_list_each_omitted_line_stands_in_the_request(seed: int, shape: str) -> None:
    """Taken out, cleared, gone back, forked, taken up by another process: in any order."""
    rng, workers = random.Random(seed), [lists(), lists()]
    turns: list[tuple[str, Step]] = []
    for number in range(12):
        first, path = rng.choice((1, 1, 20)), rng.choice("fg")
        turns.append((f"c{number}", Step(f"tail -n +{first} {path}", text(first, 60, of=f"line of {path}"))))
        what, at = rng.choice(("go on",) * 4 + ("drop", "clear", "back")), rng.randrange(len(turns))
        if what == "drop":
            turns = turns[:at] + turns[at + 1 :]
        elif what == "clear":
            turns[at] = turns[at][0], Step(turns[at][1].given, "[cleared]")
        elif what == "back":
            turns = turns[: at + 1]
        messages = [said(shape, "go"), *(each for turn in turns for each in turn_of(shape, turn))]
        sent = shown(rng.choice(workers).messages(messages, "one"))
        lines: set[str] = set()
        for real, ours in zip(shown(messages), sent, strict=True):
            missing = set(real.split("\n")) - set(ours.split("\n"))
            assert missing <= lines or "[GONE" in ours, "a line is neither there nor above"
            lines |= set(ours.split("\n"))


# ------------------------------------------------------------ results that are objects


def _objects(*given: tuple[str, dict[str, Any]]) -> Messages:
    """A conversation of Google ADK: each tool returned a dict."""
    out: Messages = [{"role": "user", "parts": [{"text": "task"}]}]
    for n, (command, response) in enumerate(given):
        call = {"id": f"c{n}", "name": "bash", "args": {"command": command}}
        result = {"id": f"c{n}", "name": "bash", "response": response}
        out.append({"role": "model", "parts": [{"functionCall": call}]})
        out.append({"role": "user", "parts": [{"functionResponse": result}]})
    return out


def _responses(messages: Any) -> list[dict[str, Any]]:
    parts = [part for message in messages for part in message["parts"]]
    return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]


def _sent(ours: JudgedLists, *given: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The results in the last request, if each turn is sent when it is made."""
    messages = _objects(*given)
    requests = [ours.messages(messages[:end], "one") for end in range(1, len(messages) + 1, 2)]
    return _responses(requests[-1])


def test_an_object_keeps_its_keys_and_its_text_is_judged() -> None:
    whole = {"status": "success", "exit_code": 0, "stdout": text()}
    part = {"status": "success", "exit_code": 0, "stdout": text(5, 38)}
    first, second = _sent(lists(), ("cat f", whole), ("sed -n 5,38p f", part))

    assert first == whole
    assert list(second) == list(part)
    assert (second["status"], second["exit_code"]) == ("success", 0)
    assert "f lines 5-38" in markers(second["stdout"])[0]


LOOKED = ("ls", {"stdout": "f\n"})


def test_each_text_of_an_object_is_judged_for_itself() -> None:
    warnings = "".join(f"warning {n}: this was deprecated a long time ago\n" for n in range(40))
    built = {"stdout": text(), "stderr": warnings, "exit_code": 1}
    *_, last = _sent(lists(policy=Policy.named("max")), ("make f", built), LOOKED, ("make -k f", built))

    assert [len(markers(last[key])) for key in ("stdout", "stderr")] == [1, 1]
    assert "40 lines" in last["stderr"]
    assert last["exit_code"] == 1


def test_an_error_text_is_no_line_of_the_file_that_was_read() -> None:
    *_, last = _sent(lists(), *[("cat f", {"stdout": "", "stderr": text()}), LOOKED] * 2, ("cat f", {"stdout": text()}))

    assert " f line" not in str(last)


def test_a_text_inside_an_inner_object_is_judged() -> None:
    given = {"result": {"ok": True, "output": text()}, "n": [1, 2]}
    *_, last = _sent(lists(), ("cat f", given), LOOKED, ("cat f", given))

    assert markers(last["result"]["output"])
    assert last == {"result": {"ok": True, "output": last["result"]["output"]}, "n": [1, 2]}


def test_an_object_without_a_long_text_is_no_line_of_a_file() -> None:
    given = {"lines": [f"line {n} of the file" for n in range(60)]}
    *_, last = _sent(lists(), ("cat f.py", given), LOOKED, ("cat f.py", given))

    assert "f.py line" not in str(last)


def test_old_objects_are_cleared_and_keep_their_keys() -> None:
    calls = [(f"cat f{n}", {"exit_code": 0, "stdout": text(of=f"f{n}"), "stderr": "a\nb\n"}) for n in range(12)]
    first, *_ = _sent(lists(clear=(2_000, 1_200)), *calls)

    assert list(first) == ["exit_code", "stdout", "stderr"]
    assert first["stdout"].startswith("[PRUNED")


def test_a_users_function_gets_the_whole_object() -> None:
    given = {"stdout": text(), "exit_code": 0}
    seen: list[str] = []
    ours = JudgedLists("tests", {"bash": lambda _, result: seen.append(result.output)}, {"root": "/w"})
    ours.messages(_objects(("cat f", given)), "one")

    assert json.loads(seen[0]) == given
