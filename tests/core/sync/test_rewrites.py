"""What `sync` and `mend` rewrite in a list: markers, only those whose lines no longer stand where they say, and nothing
else; and that they find the replies in lists that name no call of the session."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from readcache import Frame, Mode, Policy, Session, UsageError
from tests.helpers.chats import APIS, message_list, numbered, text, texts

Turns = list[tuple[str, str, str]]
CLEARED = "[Old tool result content cleared]"


def unlinked(*turns: tuple[str, str], shape: str = "openai") -> list[dict[str, Any]]:
    """A list whose ids, where it has any, are the API's own."""
    return message_list(shape, [(f"api_{n}", command, shown) for n, (command, shown) in enumerate(turns)])


def is_gone(shown: str) -> bool:
    return "[GONE" in shown


# ------------------------------------------------------------ what the host puts around an output


STATUS, END = "== exit status 0 ==\n", "== 12 ms ==\n"


def framed_twice(session: Session) -> list[str]:
    """Two reads of a file, c1 and c2, as they are shown between two lines of the host."""
    frame = Frame(1, 1)
    return [session.observe("cat f", STATUS + text() + END, frame=frame, call_id=call).text for call in ("c1", "c2")]


def test_a_compaction_keeps_the_hosts_lines_around_a_reply(tmp_path: Path) -> None:
    store = str(tmp_path / "log.db")
    with Session("/w", store=store, session_id="s") as session:
        framed_twice(session)
    again = Session("/w", store=store, session_id="s")
    child = again.fork("child", inherit=True)
    for reader in (again, child):
        gone = reader.compacted(keep=["c2"]).rewrites["c2"]
        assert gone.startswith(STATUS + "[GONE")
        assert gone.endswith("]\n" + END)


def test_a_compaction_after_a_mend_keeps_the_hosts_lines_once(session: Session) -> None:
    one, two = framed_twice(session)
    third = session.observe("head -30 f", STATUS + text(1, 30) + END, frame=Frame(1, 1), call_id="c3").text
    messages = message_list("openai", [("c1", "cat f", one), ("c2", "cat f", two), ("c3", "head -30 f", third)])
    assert session.mend(messages) is messages
    gone = session.compacted(keep=["c2", "c3"]).rewrites
    assert [shown.count(line) for shown in gone.values() for line in (STATUS, END)] == [1, 1, 1, 1]


def test_a_compaction_leaves_a_reply_as_the_host_settled_it(session: Session) -> None:
    _, shown = framed_twice(session)
    session.settle("c2", "OK\n" + shown.removeprefix(STATUS))
    gone = session.compacted(keep=["c2"]).rewrites["c2"]
    assert gone.startswith("OK\n[GONE")
    assert gone.endswith("]\n" + END)


# ------------------------------------------------------------ nothing but markers


def without_middle(shown: str, most: int = 1_500) -> str:
    return f"{shown[: most // 2]}\n[... {len(shown) - most} characters elided ...]\n{shown[-most // 2 :]}"


@pytest.mark.parametrize("lines", [200, 174])
def test_two_replies_that_begin_alike_and_were_cut_lose_no_line(session: Session, lines: int) -> None:
    whole = text(1, 210)
    whole_list = message_list("plain", [("", "cat a", without_middle(session.observe("cat a", whole).text))])
    session.sync(whole_list)
    with session.batch():
        first = session.observe(f"head -n {lines} a", text(1, lines)).text
        session.observe("cat ./a", whole)
    shown = without_middle(first)
    left = message_list("plain", [("", f"head -n {lines} a", shown)])
    (rewritten,) = session.sync(left).values()
    markers = session.markers_in(shown)
    rest = iter(rewritten.split("\n"))
    assert all(line in rest for line in shown.rstrip("\n").split("\n") if line not in markers)
    assert "\0" not in rewritten
    repaired = session.mend(left)
    assert str(repaired[-1]["content"]).count("elided") == 1
    assert session.mend(repaired) is repaired


@pytest.mark.parametrize("shape", APIS)
@pytest.mark.parametrize("template", ["Observation: {}", "  {}", "> {}", "{} [exit 0]", "{}\r"])
def test_a_marker_between_words_of_the_harness_in_its_line_is_rewritten(
    session: Session, shape: str, template: str
) -> None:
    source = ("c1", "cat f", session.observe("cat f", text(), call_id="c1").text)
    reply = session.observe("sed -n '5,30p' f", text(5, 30), call_id="c2").text.rstrip("\n")
    shown = ("c2", "sed f", template.format(reply))
    assert session.sync(message_list(shape, [source, shown])) == {}
    rewrites = session.sync(message_list(shape, [("c1", "cat f", CLEARED), shown]))
    front, back = template.split("{}")
    assert rewrites["c2"].startswith(front + "[GONE")
    assert rewrites["c2"].endswith("]" + back)
    assert session.sync(message_list(shape, [("c1", "cat f", CLEARED), ("c2", "sed f", rewrites["c2"])])) == {}


def test_a_marker_between_words_is_rewritten_in_a_chat_without_ids(session: Session) -> None:
    first = session.observe("cat f", text()).text
    marker = session.observe("sed -n '5,30p' f", text(5, 30)).text.rstrip("\n")
    messages = [{"role": "user", "content": "task"}]
    for shown in (f"Observation: {first}", f"Observation: {marker}"):
        messages += [{"role": "assistant", "content": "so"}, {"role": "user", "content": shown}]
    session.sync(messages)
    messages[2] = {"role": "user", "content": CLEARED}
    assert session.mend(messages)[-1]["content"].startswith("Observation: [GONE")


def test_a_marker_in_json_that_was_broken_off_is_rewritten(session: Session) -> None:
    session.observe("cat f", text(), call_id="c1")
    reply = session.observe("cat 'f'", text(), call_id="c2").text
    shown = json.dumps({"output": reply}) + "\n<system-reminder>be careful</system-reminder>"
    assert '\\"' in shown
    (repaired,) = session.mend([{"role": "tool", "tool_call_id": "c2", "content": shown}])
    rest, _, reminder = str(repaired["content"]).partition("\n")
    assert json.loads(rest)["output"].rstrip("\n") == text().rstrip("\n")
    assert reminder.startswith("<system-reminder>")


# ------------------------------------------------------------ what no list has held


@pytest.mark.parametrize("shape", [*APIS, "plain"])
@pytest.mark.parametrize("output", [text(), text() + "one more line\n"], ids=["all left out", "a part"])
def test_a_reply_that_no_list_has_held_gets_its_full_text_when_its_source_is_gone(
    session: Session, shape: str, output: str
) -> None:
    session.sync(message_list(shape, [("c1", "cat f", session.observe("cat f", text(), call_id="c1").text)]))
    reply = session.observe("cat f; cat g", output, call_id="c2")
    assert session.markers_in(reply.text)
    left = message_list(shape, [("c1", "cat f", CLEARED), ("c2", "cat f; cat g", reply.text)])
    for _ in range(2):  # until the list has it
        (rewritten,) = session.sync(left).values()
        assert rewritten.rstrip("\n") == output.rstrip("\n")
    repaired = session.mend(left)
    assert output.rstrip("\n") in texts(repaired)[-1]
    assert session.sync(repaired) == {}
    assert session.mend(repaired) is repaired


def test_a_numbered_reply_comes_back_with_its_own_numbers(session: Session) -> None:
    session.observe_read("f", numbered(1, 40), numbered=True)
    reply = session.observe("cat f", text(), call_id="c2")
    assert session.markers_in(reply.text)
    assert session.sync(message_list("openai", [("c2", "cat f", reply.text)]))["c2"].rstrip("\n") == text().rstrip("\n")


def test_another_process_gives_a_reply_back_that_no_list_held(tmp_path: Any) -> None:
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        session.observe("cat f", text(), call_id="c1")
        reply = session.observe("cat f", text(), call_id="c2")
    with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
        rewrites = session.sync(message_list("openai", [("c1", "cat f", CLEARED), ("c2", "cat f", reply.text)]))
        assert rewrites["c2"].rstrip("\n") == text().rstrip("\n")


# ------------------------------------------------------------ what still stands


@pytest.mark.parametrize("shape", [*APIS, "plain"])
def test_a_marker_stays_when_its_source_was_cut_elsewhere(session: Session, shape: str) -> None:
    whole = session.observe("cat f", text(1, 60), call_id="c1").text
    marker = session.observe("sed -n '5,30p' f", text(5, 30), call_id="c2").text
    for lines in (40, 35):  # and again, in other places
        shortened = "[cut]\n" * (40 - lines) + "".join(whole.splitlines(True)[:lines]) + "[truncated]\n"
        assert session.sync(message_list(shape, [("c1", "cat f", shortened), ("c2", "sed f", marker)])) == {}
    shortened = "".join(whole.splitlines(True)[10:])
    (rewritten,) = session.sync(message_list(shape, [("c1", "cat f", shortened), ("c2", "sed f", marker)])).values()
    assert is_gone(rewritten)


def test_a_compaction_and_a_copy_keep_a_marker_whose_lines_still_stand(session: Session) -> None:
    session.observe("cat f", text(1, 60), call_id="c1")
    session.observe("sed -n '5,30p' f", text(5, 30), call_id="c2")
    session.settle("c1", text(1, 40) + "[cut]\n")
    assert session.fork("twin", inherit=True).compacted(keep=["c1", "c2"]).rewrites == {}
    assert session.compacted(keep=["c1", "c2"]).rewrites == {}
    session.settle("c1", text(1, 20) + "[cut]\n")
    assert list(session.compacted(keep=["c1", "c2"]).rewrites) == ["c2"]


def test_a_result_whose_last_blanks_are_stripped_retires_no_marker_twice(session: Session) -> None:
    whole = text(1, 39) + "last line with two blanks  \n"
    turns: Turns = []
    for n in range(4):
        turns.append((f"c{n}", "cat f", session.observe("cat f", whole, call_id=f"c{n}").text.rstrip()))
        assert session.sync(message_list("openai", turns)) == {}


def test_a_template_that_joins_the_last_line_to_its_own_makes_no_list_unstable(session: Session) -> None:
    turns: Turns = []
    for n, command in enumerate(("cat /w/a", "cat a", "cat a", "cat /w/a")):
        shown = session.observe(command, text(1, 40).rstrip("\n"), call_id=f"c{n}").text
        turns.append((f"c{n}", command, f"<output>\n{shown}</output>"))
        for _ in range(2):
            assert session.sync(message_list("openai", turns)) == {}


def test_old_turns_as_one_text_keep_their_markers_while_the_lines_stand_there(session: Session) -> None:
    first = session.observe("cat f", text(1, 60), call_id="c1").text
    marker = session.observe("sed -n '5,30p' f", text(5, 30), call_id="c2").text
    last = ("c3", "ls", session.observe("ls", "x\n", call_id="c3").text)
    session.sync(message_list("openai", [("c1", "cat f", first), ("c2", "sed f", marker), last]))
    whole = message_list("openai", [("", "", f"Earlier:\n{first}{marker}"), last])
    assert session.mend(whole) is whole
    shortened = "".join(first.splitlines(True)[:2]) + "[cut]\n"
    repaired = session.mend(message_list("openai", [("", "", f"Earlier:\n{shortened}{marker}"), last]))
    assert is_gone(str(repaired[1]["content"]))
    assert str(repaired[1]["content"]).startswith(f"Earlier:\n{shortened}")


# ------------------------------------------------------------ which of equal results


@pytest.mark.parametrize("shape", ["openai", "plain"])
def test_of_equal_results_the_one_that_was_cleared_is_gone(session: Session, shape: str) -> None:
    shown = [("cat a", session.observe("cat a", text()).text) for _ in range(3)]
    shown += [("ls", session.observe("ls", "x\n").text), ("cat a", session.observe("cat a", text()).text)]
    assert [bool(session.markers_in(each)) for _, each in shown] == [False, True, False, False, True]
    session.sync(unlinked(*shown, shape=shape))
    shown[2] = ("cat a", CLEARED)
    repaired = [str(message["content"]) for message in session.mend(unlinked(*shown, shape=shape))]
    assert sum(map(is_gone, repaired)) == 1
    assert is_gone(repaired[-1]), "of the two markers that whose source was cleared"


def test_equal_results_are_told_apart_though_no_list_was_seen_before(session: Session) -> None:
    shown = [("cat a", session.observe("cat a", text()).text) for _ in range(3)]
    shown += [("ls", session.observe("ls", "x\n").text)]
    shown[2] = ("cat a", CLEARED)
    messages = unlinked(*shown, shape="plain")
    assert session.mend(messages) is messages
    first, *_ = sorted(session.view.deliveries, key=lambda delivery: delivery.call)
    assert first.call == 1


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_a_rewrite_is_named_by_the_id_that_the_list_has(session: Session, shape: str) -> None:
    shown = [
        ("cat a", session.observe("cat a", text()).text),
        ("sed a", session.observe("sed -n 5,30p a", text(5, 30)).text),
    ]
    session.sync(unlinked(*shown, shape=shape))
    rewrites = session.sync(unlinked(("cat a", CLEARED), shown[1], shape=shape))
    assert list(rewrites) == ["api_1"]
    assert is_gone(rewrites["api_1"])
    assert session.sync(unlinked(("cat a", CLEARED), ("sed a", rewrites["api_1"]), shape=shape)) == {}


@pytest.mark.parametrize("few", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_a_first_sync_of_results_that_were_cut_and_begin_alike_takes_linear_time(few: int) -> None:
    took = {few: 9e9, 4 * few: 9e9}
    for count in [few, 4 * few] * 3:
        session = Session("/w", policy=Policy(partial=False))
        header = text(1, 20, of="licence")
        shown = []
        for n in range(count):
            whole = session.observe(f"cat f{n}", header + text(1, 60, of=f"f{n}")).text
            shown.append((f"cat f{n}", without_middle(whole)))
        messages = unlinked(*shown, shape="plain")
        began = time.process_time()
        session.sync(messages)
        took[count] = min(took[count], time.process_time() - began)
        assert len(session.view.deliveries) == count
    assert took[4 * few] < 10 * took[few], "four times as many results"


# ------------------------------------------------------------ what the harness mistypes


def test_to_settle_a_call_that_nobody_told_of_is_an_error_and_changes_nothing(session: Session) -> None:
    session.observe("cat f", text(), call_id="c1")
    with pytest.raises(UsageError, match=r"'typo'.*c1"):
        session.settle("typo", "")
    assert session.view.covers("/w/f", 1, 40)
    session.compacted()
    session.settle("c1", "")  # gone, but known


def test_to_rewind_to_a_call_that_nobody_told_of_forgets_everything_and_is_an_error(session: Session) -> None:
    session.observe("cat f", text(), call_id="c1")
    with pytest.raises(UsageError, match=r"'typo'.*c1"):
        session.rewind("typo")
    assert session.view.deliveries == []


def test_a_session_that_is_off_knows_no_call_and_raises_nothing() -> None:
    session = Session("/w", policy=Policy(mode=Mode.OFF))
    session.observe("cat f", text(), call_id="c1")
    session.settle("c1", "")
    session.rewind("c1")


def test_a_result_that_was_emptied_and_given_a_note_is_not_blanked_by_a_compaction(session: Session) -> None:
    source = ("c1", "cat f", session.observe("cat f", text(), call_id="c1").text)
    session.observe("cat f", text(), call_id="c2")
    for shown in ("", CLEARED):
        session.sync(message_list("openai", [source, ("c2", "cat f", shown)]))
    assert session.compacted(keep=["c2"]).rewrites == {}


def test_a_plan_with_nothing_in_it_makes_a_message_that_an_api_takes(session: Session) -> None:
    message = session.restore_plan().to_message()
    assert message["role"] == "user"
    assert message["content"].strip()


def test_replies_that_look_alike_but_for_their_markers_are_not_taken_for_each_other(session: Session) -> None:
    header = "{{{\n"  # too little to be found
    files = {name: header + text(1, 30, of=name) for name in "ab"}
    shown = [(f"cat {name}", session.observe(f"tail -n +2 {name}", text(1, 30, of=name)).text) for name in "ab"]
    shown += [(f"cat ./{name}", session.observe(f"cat ./{name}", files[name]).text) for name in "ab"]
    assert all(len(session.markers_in(each)) == 1 for _, each in shown[2:])
    session.sync(unlinked(*shown))
    repaired = session.mend(unlinked(("cat a", CLEARED), *shown[1:3], ("cat ./b", shown[3][1])))
    told = [part for part in texts(repaired) if header in part]
    assert [is_gone(each) for each in told] == [True, False]
    assert told[1] == shown[3][1]


def test_a_marker_amid_the_lines_of_another_reply_is_not_taken_for_one_of_them(session: Session) -> None:
    source = session.observe("sed -n '1,40p' g", text(1, 40, of="g")).text
    marker = session.observe("cat f g", text(1, 30, of="f") + text(1, 40, of="g")).text
    (line,) = session.markers_in(marker)
    session.compacted()
    shown = session.observe("cat f", text(1, 60, of="f")).text  # a rewind of the list brings the older reply back
    older = marker + text(31, 60, of="f")
    messages = unlinked(("sed g", source), ("cat f g", older))
    assert line not in str(session.mend(messages))
    assert shown


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
@pytest.mark.parametrize("edited", [False, True])
def test_a_marker_in_a_file_stays_there_when_a_compaction_restores_the_file(
    session: Session, shape: str, edited: bool
) -> None:
    session.observe("cat f", text(), call_id="c1")
    reply = session.observe("cat f", text(), call_id="c2").text
    saved = reply + text(100, 160)  # the agent wrote it into a file of its own
    shown = session.observe("cat g", saved, call_id="c3").text
    assert shown == saved
    session.sync(message_list(shape, [("c3", "cat g", shown)]))
    section = "## Files restored after compaction\n" + saved + ("and a remark of the harness\n" if edited else "")
    after = [{"role": "user", "content": section}, *message_list(shape, [("c3", "cat g", shown)])]
    assert session.sync(after) == {}
    assert session.mend(after) is after
