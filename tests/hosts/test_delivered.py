"""What is counted is what the model was sent, whatever a host does with our answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy, Session, Sessions
from readcache.cli.main import main
from readcache.core.model.reply import Outcome
from readcache.hosts.judged_lists import JudgedLists
from readcache.report.log_check import LogCheck
from readcache.serve.mcp.readers import McpReaders
from readcache.serve.protocol import Protocol
from readcache.testing.conformance import make_project
from readcache.testing.hosts import Bash, Read
from tests.helpers.claude import ClaudeTalk
from tests.helpers.files import text
from tests.real_hosts.delivered import broken_law, figures

OUTPUTS = {name: text(1, last) for name, last in (("a", 30), ("b", 45), ("c", 60))}
CALLS = st.lists(st.tuples(st.sampled_from([*OUTPUTS]), st.booleans()), max_size=12)


def checked(session: Session) -> tuple[int, int]:
    """(markers, proven) as `verify` counts them."""
    check = LogCheck()
    records = list(session.reader.log.store.records(session.session_id, session.agent_id))
    check.begin(session.session_id, session.agent_id, records)
    for record in records:
        check.take(record.event)
    assert check.faults == []
    return check.markers, check.proven


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"conversation": "c", **params}}


def result(protocol: Protocol, asked: object) -> Any:
    answer = protocol.answer(asked)
    assert answer is not None
    return answer["result"]


class Client:
    """A client of `serve` with a list of messages, that may come too late to use a reply."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.sessions = Sessions("/w")
        self.protocol = Protocol(self.sessions)
        self.messages: list[dict[str, Any]] = []
        self.received: dict[str, str] = {}

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        return result(self.protocol, request(method, **params))

    def call(self, name: str, *, is_late: bool) -> None:
        """One command, and the request to the model after it."""
        call_id = f"call_{len(self.received)}"
        reply = self.ask("observe", command=f"cat {name}", output=OUTPUTS[name], call_id=call_id, commit=False)
        shown = OUTPUTS[name] if is_late else reply["text"]
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": shown})
        if self.way == "list":
            repaired = self.ask("mend", messages=self.messages)
            self.messages = repaired.get("messages", self.messages)
        elif is_late:
            self.ask("settle", call_id=call_id, text=shown)
        else:
            self.ask("commit", call_id=call_id)
        self.received[call_id] = self.messages[-1]["content"]


@pytest.mark.parametrize("way", ["list", "messages"])
@given(CALLS)
def test_a_plugin_that_is_late_gets_no_credit(way: str, calls: list[tuple[str, bool]]) -> None:
    client = Client(way)
    for name, is_late in calls:
        client.call(name, is_late=is_late)
    session = client.sessions.get("c")
    records = session.reader.log.store.records("c")
    assert broken_law(records, client.received) == []
    sent = [line for shown in client.received.values() for line in session.markers_in(shown)]
    assert figures(records).markers == len(sent) == checked(session)[0] == checked(session)[1]
    stats = session.stats()
    assert stats.get("shown_chars", 0) == sum(map(len, client.received.values()))
    assert stats.get("unconfirmed", 0) == 0
    assert all(count >= 0 for name, count in stats.items() if name != "tokens_saved")


def test_a_plain_client_has_shown_a_reply_when_it_goes_on() -> None:
    protocol, counts = Protocol(Sessions("/w")), list[int]()
    for number in range(2):
        params = {"command": "cat a", "output": OUTPUTS["a"], "call_id": str(number)}
        reply = result(protocol, request("observe", **params))
        session = protocol._sessions.get("c")
        counts.append(session.stats().get("unconfirmed", 0))
    assert (reply["outcome"], counts) == ("unchanged", [0, 1])
    assert result(protocol, request("stats"))["covered"] == 1


def test_the_next_request_of_another_reader_confirms_nothing() -> None:
    protocol = Protocol(Sessions("/w"))
    for number in range(2):
        params = {"command": "cat a", "output": OUTPUTS["a"], "call_id": str(number)}
        protocol.answer(request("observe", **params))
    protocol.answer(request("stats", agent="other"))
    assert protocol._sessions.get("c").stats()["unconfirmed"] == 1


class DeafTalk(ClaudeTalk):
    """Claude Code, which sometimes does not take a hook's answer: its time was over."""

    deaf = False

    def event(self, name: str, **told: Any) -> Any:
        """See `ClaudeTalk`."""
        answer = super().event(name, **told)
        return None if self.deaf else answer


def test_a_hook_whose_answer_was_not_taken_gets_no_credit(tmp_path: Path) -> None:
    make_project(tmp_path / "p")
    sessions = Sessions(tmp_path / "p", store=tmp_path / "s.db")
    talk = DeafTalk(tmp_path / "p", tmp_path / "home", sessions)
    received = dict[str, str]()
    steps: list[Bash | Read] = [
        Bash("cat shop.py"),
        Bash("head -n 40 shop.py"),
        Read("shop.py"),
        Bash("tail -n 50 shop.py"),
        Bash("ls"),
    ]
    for number, call in enumerate(steps):
        talk.deaf = number == 1
        seen = talk.step((call,))
        received[f"toolu_{number + 1}"] = seen.results[0]
    session = sessions.get("conversation")
    records = list(session.reader.log.store.records("conversation"))
    assert broken_law(records, received, last=["toolu_5"]) == []
    stats = session.stats()
    assert stats["not_sent"] == 1
    markers = [line for shown in received.values() for line in session.markers_in(shown)]
    assert figures(records).markers == len(markers) > 0


def test_the_last_call_of_a_hook_is_unconfirmed_until_the_conversation_goes_on(tmp_path: Path) -> None:
    make_project(tmp_path / "p")
    sessions = Sessions(tmp_path / "p")
    talk = ClaudeTalk(tmp_path / "p", tmp_path / "home", sessions)
    talk.step((Bash("cat shop.py"),))
    talk.step((Bash("head -n 40 shop.py"),))
    session = sessions.get("conversation")
    assert session.stats()["unconfirmed"] == 1
    talk.step((Bash("ls"),))
    assert session.stats().get("unconfirmed", 0) == 0
    assert session.stats()["covered"] == 1


def test_a_source_that_was_not_proven_gives_one_row_that_says_so(tmp_path: Path) -> None:
    make_project(tmp_path / "p")
    sessions = Sessions(tmp_path / "p")
    talk = ClaudeTalk(tmp_path / "p", tmp_path / "home", sessions)
    talk.step((Bash("cat shop.py"),))
    talk.step((Bash("ls"),))
    talk.clear()
    talk.step((Bash("head -n 40 shop.py"),))
    session = sessions.get("conversation")
    rows = [e for e in (record.event for record in session.events()) if getattr(e, "account", None) is not None]
    assert [row.account.reason.value for row in rows if "head" in row.label] == ["not_proven"]  # type: ignore[union-attr]
    assert session.stats()["calls"] == 3
    assert "insisted" not in session.stats()
    assert all(row.account.outcome is Outcome.FULL for row in rows)  # type: ignore[union-attr]


def test_a_result_of_mcp_counts_once_it_is_written() -> None:
    readers = McpReaders("/w", policy=Policy(), one_reader=True)
    session = readers.session_of({})
    session.observe("cat a", OUTPUTS["a"])
    with readers.call({}) as caller:
        reply = session.observe("cat a", OUTPUTS["a"], call_id=caller.call_id, commit=False)
        readers.answered(session, reply)
    readers.written('{"id": 1, "result": {}}\n')
    assert session.stats()["unconfirmed"] == 1
    readers.written(json.dumps({"id": 2, "result": {"structuredContent": {"call_id": caller.call_id}}}) + "\n")
    assert session.stats().get("unconfirmed", 0) == 0
    assert session.stats()["covered"] == 1


def test_a_list_that_is_sent_confirms_what_was_put_into_it() -> None:
    lists = JudgedLists("strands", None, {"root": "/w", "policy": "default"})
    messages: list[dict[str, Any]] = []
    for number in range(2):
        call = {"id": f"c{number}", "type": "function"}
        call |= {"function": {"name": "bash", "arguments": json.dumps({"command": "cat a"})}}  # type: ignore[dict-item]
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": OUTPUTS["a"]})
        sent = lists.messages(messages, "talk")
    assert sent[-1]["content"] != OUTPUTS["a"]
    assert lists.stats()["covered"] == 1
    assert lists.stats().get("unconfirmed", 0) == 0


def test_gain_says_what_is_unconfirmed_and_what_was_not_judged(tmp_path: Path, capsys: Any) -> None:
    store = str(tmp_path / "s.db")
    with Session(tmp_path, session_id="s", store=store) as session:
        session.observe("cat a", OUTPUTS["a"])
        session.observe("cat a", OUTPUTS["a"], commit=False)
        session.missed(3, "the server was late")
    assert main(["gain", "--store", store]) == 0
    said = capsys.readouterr().out
    assert "3 of 5 results were not judged: the server was late" in said
    assert [set(line.split()[-4:]) for line in said.splitlines() if line.startswith("  unconfirmed, ")] == [{"1"}]
    assert "omissions checked: 0 of 0 markers" in said
    main(["gain", "--store", store, "--short"])
    assert capsys.readouterr().out == (
        "readcache: nothing omitted, too few calls to say what it is worth, 2 of 5 calls judged today\n"
    )
    main(["stats", "--store", store, "--json"])
    counts = json.loads(capsys.readouterr().out)
    assert (counts["missed"], counts["unconfirmed"], counts["tokens_saved"]) == (3, 1, 0)
    main(["log", "--store", store])
    rows = [line.split()[4] for line in capsys.readouterr().out.splitlines()]
    assert rows == ["full/not_seen", "full/unconfirmed", "not"]
    assert main(["verify", "--store", store]) == 0
