"""What adapters need of a session: ids and replies of wrapped calls, named batches, whose disk it is, mended lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from readcache import Outcome, Reason, Reply, Session
from readcache.core.model.errors import UsageError
from tests.helpers.files import TEXT


def test_a_wrapped_tool_asks_the_harness_for_the_calls_id(session: Session) -> None:
    ids = iter(["c1", "c2"])
    bash = session.wrap(lambda _command: TEXT, call_id=lambda: next(ids))
    bash("cat f")
    assert [delivery.event.call_id for delivery in session.view.deliveries] == ["c1"]
    bash("cat f", call_id="given")
    assert session.view.is_visible("given"), "an id that is given at the call wins"


def test_a_wrapped_tool_tells_each_reply(session: Session) -> None:
    replies: list[Reply] = []
    bash = session.wrap(lambda _command: TEXT, on_reply=replies.append)
    assert [bash("cat f"), bash("cat f")] == [reply.text for reply in replies]
    assert [reply.reason for reply in replies] == [Reason.NOT_SEEN, Reason.COVERED]


def test_calls_of_one_named_batch_do_not_point_at_each_other(session: Session) -> None:
    first, second = (session.observe("cat f", TEXT, batch="turn 1") for _ in range(2))
    assert (first.reason, second.reason) == (Reason.NOT_SEEN, Reason.SAME_BATCH)
    assert session.observe("cat f", TEXT, batch="turn 2").reason is Reason.COVERED


def test_reads_have_batches_too(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT)
    session = Session(tmp_path)
    session.read("f", batch="b")
    assert session.read("f", batch="b").reason is Reason.SAME_BATCH
    assert session.observe_read("f", TEXT, batch="b").reason is Reason.SAME_BATCH
    assert session.run("cat f", batch="b").reason is Reason.SAME_BATCH


def plan_text(session: Session) -> str:
    return session.restore_plan().render()


def test_a_session_of_a_container_restores_what_was_seen_and_not_this_machines_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("another file of that name\n" * 40)
    session = Session(tmp_path, local=False)
    session.observe("cat f", TEXT)
    session.run("true")
    assert "line number 7 " in plan_text(session)
    assert "another file" not in plan_text(session)


def test_a_session_that_is_told_that_its_files_are_here_restores_them_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(TEXT.replace("number 7 ", "number seven "))
    session = Session(tmp_path, local=True)
    session.observe("cat f", TEXT)
    assert "line number seven " in plan_text(session)


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_a_list_whose_marker_lost_its_source_comes_back_mended(session: Session, shape: str) -> None:
    texts = {call_id: session.observe("cat f", TEXT, call_id=call_id).text for call_id in ("c1", "c2")}

    def result(call_id: str, text: str) -> dict[str, Any]:
        if shape == "openai":
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]}

    whole: list[Mapping[str, Any]] = [result(call_id, text) for call_id, text in texts.items()]
    assert session.mend(whole) is whole
    cleared: list[Mapping[str, Any]] = [result("c1", "[cleared]"), whole[1]]
    repaired = session.mend(cleared)
    assert repaired[0] == cleared[0]
    assert "no longer above" in str(repaired[1])
    assert session.mend(repaired) is repaired


def test_an_output_that_holds_one_of_our_markers_says_so_and_is_shown(session: Session) -> None:
    session.observe("cat f", TEXT)
    log = TEXT + session.observe("cat f", TEXT).text
    assert [session.observe("cat agent.log", log).reason for _ in range(2)] == [Reason.HOLDS_A_MARKER] * 2


def test_each_fork_is_a_new_reader_also_under_a_name_that_was_used(session: Session) -> None:
    session.observe("cat f", TEXT)
    first, second, main = session.fork("searcher"), session.fork("searcher"), session.fork("main")
    assert [child.observe("cat f", TEXT).reason for child in (first, second, main)] == [Reason.NOT_SEEN] * 3
    assert [child.agent_id for child in (first, second, main)] == ["searcher", "searcher-2", "main-2"]


def test_a_fork_in_another_process_is_a_new_reader_too(tmp_path: Path) -> None:
    for _ in range(2):
        with Session("/w", session_id="s", store=tmp_path / "log.db") as session:
            assert session.fork("searcher").observe("cat f", TEXT).reason is Reason.NOT_SEEN


def test_a_sub_agent_may_settle_what_it_has_from_its_parent() -> None:
    parent = Session("/w")
    parent.wrote("f", call_id="c1")
    child = parent.fork("helper", inherit=True)
    child.settle("c1", "done")
    with pytest.raises(UsageError, match="nobody's"):
        child.settle("nobody's", "done")


class Result(dict[str, object]):
    """A result with attributes, as harnesses make them."""

    source = "the harness"


@pytest.mark.parametrize("times", [1, 2])
def test_a_wrapped_tools_result_keeps_its_class(session: Session, times: int) -> None:
    given = [Result(output=TEXT, returncode=0) for _ in range(times)]
    tool = session.wrap(lambda _action: given[len(session.view.deliveries)])
    shown = [tool({"command": "cat f"}) for _ in given]
    assert [type(result) for result in shown] == [Result] * times
    assert [result["output"] for result in given] == [TEXT] * times, "the harness's own is not changed"
    assert (shown[-1]["output"] == TEXT) is (times == 1)


def test_a_calls_id_may_be_a_number(session: Session) -> None:
    session.wrap(lambda _command: TEXT, call_id=lambda: 7)("cat f")  # type: ignore[arg-type,return-value]
    assert session.view.is_visible("7")


def test_a_callback_that_raises_costs_no_output(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> str:
        raise ValueError("of the harness")

    assert session.wrap(lambda _command: TEXT, on_reply=broken, call_id=broken)("cat f") == TEXT
    assert len(caplog.records) == 2, "it is not dropped silently"


def test_a_command_need_not_be_the_first_argument(session: Session) -> None:
    def bash(container: str, command: str) -> str:
        assert (container, bool(command)) == ("c1", True)
        return TEXT

    tool = session.wrap(bash)
    tool("c1", "cat f")
    assert "UNCHANGED" in tool("c1", command="cat f")
    assert "cat f" in session.markers_in(tool("c1", "sed -n '1,30p' f"))[0]


def test_a_path_may_be_bytes(session: Session) -> None:
    session.observe_read(b"f", TEXT)  # type: ignore[arg-type]
    session.wrote(b"f")  # type: ignore[arg-type]
    assert session.observe_read("f", TEXT).outcome is Outcome.FULL


def tool_message(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize("wrapped", ["What does {} mean?", "{}"])
def test_a_marker_that_the_user_quotes_stays_as_they_wrote_it(session: Session, wrapped: str) -> None:
    one, two = (session.observe("cat f", TEXT, call_id=call_id).text for call_id in ("c1", "c2"))
    asked = {"role": "user", "content": wrapped.format(two.strip())}
    session.mend([tool_message("c1", one), tool_message("c2", two), asked])
    repaired = session.mend([tool_message("c1", "[cleared]"), tool_message("c2", two), asked])
    assert "no longer above" in repaired[1]["content"]
    assert repaired[2] == asked


def test_a_marker_in_the_json_that_another_tool_printed_stays(session: Session) -> None:
    one, two = (session.observe("cat f", TEXT, call_id=call_id).text for call_id in ("c1", "c2"))
    printed = json.dumps({"note": two.strip(), "status": 0})
    session.observe("show notes", printed, call_id="c3")
    session.mend([tool_message("c1", one), tool_message("c2", two), tool_message("c3", printed)])
    cleared = [tool_message("c1", "[cleared]"), tool_message("c2", two), tool_message("c3", printed)]
    assert session.mend(cleared)[2]["content"] == printed
