"""Harnesses that cut, strip, quote, forget and bring back: pruning and compaction leave every marker true."""

from __future__ import annotations

import pytest

from readcache import Budget, Policy, Session
from readcache.context import Compactor, How, prune
from tests.helpers.chats import APIS, Messages, Step, chat, results, roles_alternate, text, texts
from tests.helpers.compactor import SUMMARY, Model, assert_true_markers

each_shape = pytest.mark.parametrize("shape", APIS)
WRITE = f"cat > f <<'EOF'\n{text(1, 40, of='new')}EOF\n"


def observed(session: Session, call_id: str, command: str, output: str) -> Step:
    return Step(command, session.observe(command, output, call_id=call_id).text)


@each_shape
def test_a_result_without_its_last_newline_is_known_to_the_session(shape: str) -> None:
    session = Session("/w")
    read = Step("cat f", observed(session, "c1", "cat f", text()).output.strip())  # type: ignore[union-attr]
    written = observed(session, "c2", WRITE, "")
    after = prune(chat(shape, read, written, observed(session, "c3", "ls", "f\n")), session)
    assert "as they were before the file was overwritten" in results(after)["c1"]


@each_shape
def test_what_a_harness_cut_is_pruned_at_once(shape: str) -> None:
    session = Session("/w")
    read = observed(session, "c1", "cat f", text(1, 60))
    shortened = Step("cat f", "\n".join(str(read.output).split("\n")[:40]))
    written = observed(session, "c2", WRITE, "")
    messages = chat(shape, shortened, written, observed(session, "c3", "make", text(1, 300, of="log")))
    after = prune(messages, session, protect_last_turns=0)
    assert "as they were before the file was overwritten" in results(after)["c1"]
    assert prune(after, session, protect_last_turns=0) is after


@each_shape
def test_the_task_may_quote_a_file_that_is_compacted_away(shape: str) -> None:
    session = Session("/w")
    messages = chat(shape, observed(session, "c1", "cat f", text()))
    messages[-3] = {"role": "user", "content": f"Fix this:\n{text()}"}
    compactor = Compactor(session, Model(SUMMARY), trigger_tokens=10, keep_turns=0)
    after = compactor.compact(messages)
    assert compactor.report.how is How.SUMMARISED
    assert "c1" not in [delivery.event.call_id for delivery in session.view.deliveries]
    assert_true_markers(session, after)


def plain(*turns: tuple[str, str]) -> Messages:
    messages: Messages = [{"role": "user", "content": "fix the bug"}]
    for command, shown in turns:
        messages.append({"role": "assistant", "content": f"so\n\n```bash\n{command}\n```"})
        messages.append({"role": "user", "content": f"<output>\n{shown}</output>"})
    return messages


def test_without_ids_only_the_marker_that_is_retired_changes() -> None:
    session = Session("/w")
    session.observe("cat f", text(1, 60))
    whole = text(1, 60, of="other")
    shown = session.observe("cat g f", whole + text(1, 60)).text
    assert session.markers_in(shown)
    shortened = shown.split("\n", 5)[-1]  # nobody told the session
    messages = plain(("cat f", text(1, 60)), ("cat g f", f"before\n{shortened}after\n"), ("true", ""))
    after = Compactor(session, Model(SUMMARY), trigger_tokens=10, keep_turns=2).compact(messages)
    kept = "\n".join(texts(after))
    assert session.markers_in(kept) == [line for line in session.markers_in(kept) if line.startswith("[GONE")] != []
    assert "<output>\nbefore\n" in kept
    assert "\nafter\n</output>" in kept


@each_shape
def test_a_reply_that_stays_though_it_was_said_to_be_gone_loses_its_markers(shape: str) -> None:
    session = Session("/w")
    steps = [observed(session, f"c{n}", "cat f", text(1, 60)) for n in (1, 2)]
    steps.append(observed(session, "c3", "make", text(1, 300, of="log")))
    session.compacted(keep=["c1", "c3"])
    after = Compactor(session, Model(SUMMARY), trigger_tokens=10, keep_turns=2).compact(chat(shape, *steps))
    assert results(after)["c2"].startswith(f"[GONE {session.tag}.2: ")
    assert_true_markers(session, after)
    assert shape == "openai" or roles_alternate(after)


@each_shape
def test_a_reply_that_a_harness_cleared_is_no_obstacle_to_a_compaction(shape: str) -> None:
    session = Session("/w")
    steps = [observed(session, f"c{n}", "cat f", text(1, 60)) for n in (1, 2)]
    steps = [steps[0], Step("cat f", ""), observed(session, "c3", "make", text(1, 300, of="log"))]
    session.sync(chat(shape, *steps))
    after = Compactor(session, Model(SUMMARY), trigger_tokens=10, keep_turns=2).compact(chat(shape, *steps))
    assert results(after)["c2"] == ""
    assert_true_markers(session, after)


def test_an_old_marker_is_retired_also_where_a_newer_result_has_its_id() -> None:
    session = Session("/w")
    session.observe("cat f", text(), call_id="c1")
    marked = session.observe("head -n 40 f", text(1, 40), call_id="c2").text
    session.compacted(keep=["c1"])
    newer = session.observe("cat g", text(of="g"), call_id="c2").text
    told = session.mend([{"role": "tool", "tool_call_id": "c2", "content": content} for content in (marked, newer)])
    assert [message["content"] for message in told[1:]] == [newer]
    assert session.markers_in(marked)[0] not in str(told[0]["content"])
    assert session.view.covers("/w/g", 1, newer.count("\n"))


# ------------------------------------------------------------ what pruning says is true


def shell_calls(shape: str, *given: tuple[str, str]) -> Messages:
    return chat(shape, *[Step(command, output) for command, output in given])


@each_shape
@pytest.mark.parametrize("with_session", [True, False])
def test_what_a_call_shows_of_the_file_that_it_wrote_itself_stays(shape: str, with_session: bool) -> None:
    session = Session("/w")
    command = "cat > f <<EOF\n$(generate)\nEOF\ncat f"
    steps = [observed(session, "c1", command, text()), observed(session, "c2", "ls", "f\n"), Step("pwd", "/w\n")]
    messages = chat(shape, *steps)
    assert prune(messages, session if with_session else None) is messages


@each_shape
@pytest.mark.parametrize("with_session", [True, False])
@pytest.mark.parametrize(
    ("command", "output", "exit_code"),
    [
        ("[ -d nope ] && " + WRITE, "", 1),
        ("if [ -d nope ]; then\n" + WRITE + "fi", "", 0),
        ("false || true && " + WRITE, "", 0),
        (WRITE, "bash: f: Permission denied\n", 1),
        (WRITE, "bash: f: Read-only file system\n", 1),
    ],
)
def test_a_write_that_may_not_have_been_supersedes_nothing(
    shape: str, with_session: bool, command: str, output: str, exit_code: int
) -> None:
    session = Session("/w")
    steps = [observed(session, "c1", "cat f", text(of="old"))]
    steps.append(Step(command, session.observe(command, output, exit_code=exit_code, call_id="c2").text))
    steps += [observed(session, "c3", "ls", "f\n"), observed(session, "c4", "pwd", "/w\n")]
    after = prune(chat(shape, *steps), session if with_session else None)
    assert "overwritten" not in results(after)["c1"]


@each_shape
def test_of_a_copy_that_is_cut_no_note_says_that_all_of_it_stands_there(shape: str) -> None:
    big = text(1, 300)
    messages = shell_calls(shape, ("cat f", big), ("cat f", big), ("ls", "f\n"))
    first, copy = list(results(prune(messages)).values())[:2]
    assert len(copy) < len(big)
    assert "shown again" not in first
    assert first.startswith("[PRUNED")


def unlinked_chat(shape: str, session: Session, *given: tuple[str, str]) -> Messages:
    """A list whose ids, where it has any, the session does not know."""
    steps = [(command, session.observe(command, output).text) for command, output in given]
    return plain(*steps) if shape == "plain" else shell_calls(shape, *steps)


@pytest.mark.parametrize("shape", [*APIS, "plain"])
def test_the_source_of_a_marker_in_the_last_turns_stays_whatever_ids_the_list_has(shape: str) -> None:
    session = Session("/w")
    messages = unlinked_chat(shape, session, ("cat b", text(1, 300)), ("sed -n '5,90p' b", text(5, 90)))
    assert prune(messages, session) is messages
    assert session.markers_in(texts(messages)[-1])


@pytest.mark.parametrize("shape", [*APIS, "plain"])
def test_duplicates_are_pruned_whatever_ids_the_list_has(shape: str) -> None:
    session = Session("/w", policy=Policy(identical_output=False))
    given = [("make", text(1, 60)), ("make", text(1, 60)), ("ls", "b\n"), ("pwd", "/w\n")]
    after = prune(unlinked_chat(shape, session, *given), session)
    assert sum("shown again later, byte for byte" in shown for shown in texts(after)) == 1
    assert sum(text(1, 60).rstrip("\n") in shown for shown in texts(after)) == 1
    if shape == "plain":
        assert any(shown.startswith("<output>\n[PRUNED") and shown.endswith("\n</output>") for shown in texts(after))
    assert prune(after, session) is after


# ------------------------------------------------------------ what a compaction leaves


@each_shape
def test_a_compaction_ends_below_its_trigger_with_files_put_back(shape: str) -> None:
    session = Session("/w")
    steps = [observed(session, f"c{n}", f"cat f{n}", text(1, 60, of=f"f{n}")) for n in range(1, 11)]
    compactor = Compactor(session, Model(SUMMARY), trigger_tokens=2_000)
    after = compactor.maybe_compact(chat(shape, *steps))
    assert compactor.report.tokens_after < 2_000
    assert compactor.maybe_compact(after) is after
    assert_true_markers(session, after)


@each_shape
def test_a_compaction_restores_no_more_than_it_gained(shape: str) -> None:
    session = Session("/w")
    steps = [observed(session, f"c{n}", f"cat f{n}", text(1, 100, of=f"f{n}")) for n in range(1, 7)]
    first = Compactor(session, Model(SUMMARY), trigger_tokens=200, budget=Budget(max_tokens=200))
    messages = [
        *first.compact(chat(shape, *steps)),
        *chat(shape, *[Step(f"seq {n}", f"{n}\n" * 90) for n in range(5)])[2:],
    ]
    compactor = Compactor(session, Model(SUMMARY), trigger_tokens=100_000)
    compactor.compact(messages)
    assert compactor.report.how is How.SUMMARISED
    assert compactor.report.tokens_after < compactor.report.tokens_before
