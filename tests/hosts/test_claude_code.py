"""Claude Code's hooks, answered in this process for a stand-in that writes transcripts as Claude Code does."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from readcache import Insist, Policy, Session, Sessions
from readcache.core.model.events import Delivered
from readcache.core.model.policy import PRESETS
from readcache.core.sync.recall import UNANSWERED
from readcache.hosts.claude_code import proof
from readcache.hosts.claude_code.adapter import claude_hook
from readcache.hosts.hooks import hook_answer
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Delegate, Edit, Read
from readcache.testing.requests import markers
from tests.helpers.adversaries import beside_a_loop
from tests.helpers.claude import ClaudeTalk, QuickClaude

CAT, HEAD = Bash("cat shop.py"), Bash("sed -n '1,40p' shop.py")


class TestQuickClaude(Conformance):
    """What is left out by default."""

    host = QuickClaude()


@pytest.mark.slow  # the quick suite has it with the default policy
class TestQuickClaudeWithAllPolicies(Conformance):
    """The same with everything that may be left out."""

    host = QuickClaude("max")

    @pytest.mark.slow  # two commands of two seconds, as for the other policy
    def test_a_command_that_ran_out_of_time_is_no_source_for_what_it_did_not_show(self, tmp_path: Path) -> None:
        super().test_a_command_that_ran_out_of_time_is_no_source_for_what_it_did_not_show(tmp_path)


@pytest.fixture
def talk(tmp_path: Path) -> ClaudeTalk:
    """A conversation in the project of the suite."""
    make_project(tmp_path / "p")
    return ClaudeTalk(tmp_path / "p", tmp_path / "home", Sessions(tmp_path / "p"))


def shown(talk: ClaudeTalk, *calls: Bash | Read | Edit) -> list[str]:
    """The results of calls made at once."""
    return list(talk.step(calls).results)


def test_the_numbers_after_a_marker_are_those_of_the_lines(talk: ClaudeTalk) -> None:
    shown(talk, Read("shop.py", 11, 40))
    lines = shown(talk, Read("shop.py", 21, 60))[0].split("\n")
    assert markers(lines[0])
    assert [line.split("\t")[0] for line in lines] == [str(number) for number in range(40, 61)]


def test_the_numbers_before_a_marker_are_those_of_the_lines(talk: ClaudeTalk) -> None:
    shown(talk, Read("shop.py", 41, 60))
    lines = shown(talk, Read("shop.py", 11, 60))[0].split("\n")
    assert markers(lines[-1])
    assert [line.split("\t")[0] for line in lines] == [str(number) for number in range(11, 42)]


def test_what_is_in_the_middle_of_a_read_is_shown_so_that_the_numbers_are_right(talk: ClaudeTalk) -> None:
    shown(talk, Read("shop.py", 21, 45))
    lines = shown(talk, Read("shop.py", 1, 60))[0].split("\n")
    assert [line.split("\t")[0] for line in lines] == [str(number) for number in range(1, 61)]


def test_a_marker_that_nothing_goes_with_has_the_number_of_the_first_line(talk: ClaudeTalk) -> None:
    shown(talk, CAT)
    (text,) = shown(talk, Read("shop.py", 5, 30))
    assert text.startswith("5\t[UNCHANGED")


@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.parametrize("seen", [[(1, 20)], [(21, 45)], [(1, 15), (30, 44)], [(1, 20), (41, 60)]])
def test_each_line_that_is_shown_has_its_number_under_each_policy(
    tmp_path: Path, policy: str, seen: list[tuple[int, int]]
) -> None:
    make_project(tmp_path / "p")
    sessions = Sessions(tmp_path / "p", policy=Policy.named(policy))
    talk = ClaudeTalk(tmp_path / "p", tmp_path / "home", sessions)
    for first, last in seen:
        shown(talk, Read("shop.py", first, last))
    file = (tmp_path / "p" / "shop.py").read_text().split("\n")
    lines = [line.partition("\t") for line in shown(talk, Read("shop.py"))[0].split("\n")]
    assert [text for number, _, text in lines if not markers(text) and file[int(number) - 1] != text] == []
    assert any(markers(text) for _, _, text in lines) == any(1 in lines or 60 in lines for lines in seen)


@pytest.mark.parametrize("policy", PRESETS)
def test_of_a_failing_command_only_what_the_model_was_given_is_a_source_and_its_writes_are_known(
    tmp_path: Path, policy: str
) -> None:
    """The hook of a failing command is not given what it printed; what the model gets is told with the batch."""
    make_project(tmp_path / "p")
    sessions = Sessions(tmp_path / "p", policy=Policy.named(policy))
    talk = ClaudeTalk(tmp_path / "p", tmp_path / "home", sessions)
    real = (tmp_path / "p" / "shop.py").read_text().rstrip()
    shown(talk, Bash("cat shop.py; false"))
    (again,) = shown(talk, CAT)
    assert again == real or 'above in "cat shop.py; false"' in again
    shown(talk, Bash("sed -i 's/number 9 of/number nine of/' shop.py; false"))
    (after,) = shown(talk, CAT)
    assert "number nine of" in after
    assert "UNCHANGED" not in after


@pytest.mark.parametrize("was_sent", [True, False])
def test_what_was_cleared_is_no_source(talk: ClaudeTalk, was_sent: bool) -> None:
    shown(talk, CAT)
    if was_sent:
        shown(talk, Bash("ls"))
    talk.clear()
    (text,) = shown(talk, HEAD)
    assert not markers(text)
    assert talk.sessions is not None
    assert not talk.sessions.get("conversation").stats().get("tokens_saved"), "a marker that no model saw saved nothing"
    assert markers(shown(talk, Bash("sed -n '1,39p' shop.py"))[0]), "what was shown instead is one"


def test_an_answer_that_would_be_no_json_is_none(talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[str] = []

    def answer(event: dict[str, Any], sessions: Sessions) -> Any:
        said = json.dumps(event).replace('"isImage": false', '"isImage": false, "seconds": 1e999')
        answers.append("")
        with contextlib.suppress(ValueError):  # the program notes it, and prints nothing
            answers[-1] = hook_answer("claude-code", said.encode(), sessions)
        return json.loads(answers[-1] or "null")

    monkeypatch.setattr("tests.helpers.claude.claude_hook", answer)
    assert shown(talk, CAT) == shown(talk, CAT)
    assert not any("Infinity" in text for text in answers)


def test_what_was_gone_back_on_is_no_source_also_when_the_call_is_known(talk: ClaudeTalk) -> None:
    shown(talk, Bash("ls"))
    shown(talk, CAT)
    talk.go_back(1)
    assert not markers(shown(talk, HEAD)[0])


def test_what_claude_code_restored_is_a_source(talk: ClaudeTalk) -> None:
    shown(talk, CAT)
    talk.compact("shop.py")
    (text,) = shown(talk, HEAD)
    assert markers(text)
    assert "above in the read" in text


IN_THE_SECTION = 'in the section "Files restored after compaction"'


def make_older(root: Path, *names: str) -> None:
    for age, name in enumerate(names):
        (root / name).write_text("".join(f"line {n} of {name}, which is read\n" for n in range(40)))
        os.utime(root / name, (1_700_000_000 - age, 1_700_000_000 - age))


def test_what_claude_code_does_not_restore_is_put_back_and_is_a_source(talk: ClaudeTalk) -> None:
    make_older(talk.root, *"abcdef")
    for name in "abcdef":
        shown(talk, Bash(f"cat {name}"))
    talk.compact(*"abcde")  # the five that were modified last
    assert [text for text in talk.step((Bash("true"),)).texts if "line 7 of f," in text and "line 7 of e," not in text]
    assert f"lines 1-40, {IN_THE_SECTION}" in shown(talk, Bash("cat f"))[0]
    assert "above in the read" in shown(talk, Bash("cat e"))[0]


def test_a_section_that_claude_code_cut_is_no_source(talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch) -> None:
    make_older(talk.root, *"abcdef")
    for name in "abcdef":
        shown(talk, Bash(f"cat {name}"))
    attach = talk.attach
    monkeypatch.setattr(talk, "attach", lambda added: attach(added[:500] + "… the rest is in a file"))
    talk.compact(*"abcde")
    assert not markers(shown(talk, Bash("cat f"))[0])


def test_a_transcript_that_tells_of_a_compaction_late_is_waited_for(
    talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_older(talk.root, *"abcdef")
    for name in "abcdef":
        shown(talk, Bash(f"cat {name}"))
    late, tail = [talk.path.read_bytes()], proof.tail
    talk.compact(*"abcde")
    monkeypatch.setattr(proof, "tail", lambda *given: late.pop() if late else tail(*given))
    assert "above in the read" in shown(talk, Bash("cat e"))[0]


def test_a_section_is_no_source_after_the_next_compaction(talk: ClaudeTalk) -> None:
    make_older(talk.root, *"abcdef")
    for name in "abcdef":
        shown(talk, Bash(f"cat {name}"))
    talk.compact(*"abcde")
    sessions, talk.sessions = talk.sessions, None
    talk.compact()  # no hook told of it
    talk.sessions = sessions
    assert not markers(shown(talk, Bash("cat f"))[0])


def test_what_is_put_back_fits_what_claude_code_takes_from_a_hook(talk: ClaudeTalk) -> None:
    (talk.root / "ä.txt").write_text("".join(f"Zeile {n}: " + "ä" * 60 + "\n" for n in range(150)))
    shown(talk, Bash("cat ä.txt crlf.txt"))
    (section,) = [e["attachment"]["content"][0] for e in _compacted(talk) if "hook_additional" in json.dumps(e)]
    assert 5_000 < len(section.encode()) <= 10_000


def _compacted(talk: ClaudeTalk) -> list[dict[str, Any]]:
    """The entries that a compaction adds."""
    before = len(talk.path.read_text().splitlines())
    talk.compact()
    return [json.loads(line) for line in talk.path.read_text().splitlines()[before:]]


def test_a_compaction_that_no_hook_told_of_is_seen_all_the_same(talk: ClaudeTalk) -> None:
    """A hook's catch-all swallowed the compaction event."""
    shown(talk, CAT)
    sessions, talk.sessions = talk.sessions, None
    talk.compact()
    talk.sessions = sessions
    assert not markers(shown(talk, HEAD)[0])


def test_older_results_are_no_sources_after_a_line_that_says_they_were_cleared(talk: ClaudeTalk) -> None:
    shown(talk, CAT)
    talk._entry("system", None, subtype="microcompact_boundary")
    assert not markers(shown(talk, HEAD)[0])


def test_a_sub_agent_has_a_conversation_of_its_own(talk: ClaudeTalk) -> None:
    first, second = talk.step((Delegate((CAT, HEAD)),)).inner
    assert not markers(first.results[0])
    assert markers(second.results[0])
    assert talk.sessions is not None
    assert not talk.sessions.get("conversation").view.covers(str(talk.root / "shop.py"), 1, 60)


def test_the_model_is_the_one_that_the_transcript_names_last(talk: ClaudeTalk) -> None:
    talk.model = "claude-opus-4-6"
    shown(talk, CAT)
    talk.model = "us.anthropic.claude-opus-5-v1[1m]"
    talk.say('a text with "message":{"model":"gpt-5"} in it')
    shown(talk, HEAD)
    talk.model = "<synthetic>"
    shown(talk, Bash("ls"))
    assert talk.sessions is not None
    session = talk.sessions.get("conversation")
    events = [record.event for record in session.events()]
    named = [event.account.model for event in events if isinstance(event, Delivered) and event.account]
    assert named == ["claude-opus-4-6", "us.anthropic.claude-opus-5-v1[1m]", "us.anthropic.claude-opus-5-v1[1m]"]
    assert session.policy.chars_per_token == 2.0


def test_an_edit_and_its_undoing_are_not_taken_for_nothing(talk: ClaudeTalk) -> None:
    shown(talk, CAT)
    shown(talk, Edit("shop.py", "number 9 of", "number nine of"))
    shown(talk, Edit("shop.py", "number nine of", "number 9 of"))
    assert not markers(shown(talk, CAT)[0])


@pytest.mark.parametrize(
    ("told", "is_shortened"), [({"changedFiles": ["shop.py"]}, False), ({"changedFiles": 3}, True), (3, True)]
)
def test_a_file_that_the_host_says_a_command_changed_is_shown_again(
    talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch, told: Any, is_shortened: bool
) -> None:
    shown(talk, CAT)
    run = talk.run

    def run_and_tell(call: Any) -> Any:
        response, error = run(call)
        return {**response, "bashEditDiff": told}, error

    monkeypatch.setattr(talk, "run", run_and_tell)
    shown(talk, Bash("true"))  # of which no parser would think it
    monkeypatch.setattr(talk, "run", run)
    assert bool(markers(shown(talk, HEAD)[0])) == is_shortened


def test_a_request_that_lets_the_server_clear_results_proves_nothing(
    talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown(talk, CAT)
    write = talk.write

    def write_edits(entry: dict[str, Any]) -> None:
        text = json.dumps(entry).replace("clear_thinking_20251015", "clear_tool_uses_20250919")
        write(json.loads(text))

    monkeypatch.setattr(talk, "write", write_edits)
    assert not markers(shown(talk, HEAD)[0])


def test_a_transcript_without_requests_proves_nothing(talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch) -> None:
    write = talk.write
    monkeypatch.setattr(talk, "write", lambda entry: None if entry["type"] == "api-request" else write(entry))
    shown(talk, CAT)
    assert not markers(shown(talk, HEAD)[0])


def test_lines_that_the_transcript_has_not_got_are_not_left_out(
    talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = talk.rendered
    monkeypatch.setattr(talk, "rendered", lambda response: rendered(response).replace("number 7 ", "XXX "))
    shown(talk, CAT)
    monkeypatch.setattr(talk, "rendered", rendered)
    (text,) = shown(talk, HEAD)
    assert "number 7 " in text


@pytest.mark.parametrize(
    "damage", [b"\x00\xff\n", b'{"type":"assistant"', b"[" * 100_000 + b"\n", b'"text"\n[]\nnull\n']
)
def test_a_damaged_transcript_does_no_harm(talk: ClaudeTalk, damage: bytes) -> None:
    shown(talk, CAT)
    with talk.path.open("ab") as file:
        file.write(damage)
    (text,) = shown(talk, HEAD)
    assert markers(text) or text.count("\n") == 39


def test_what_is_not_proven_is_shown_also_where_a_repeat_would_not_be(tmp_path: Path) -> None:
    make_project(tmp_path / "p")
    stubborn = Sessions(tmp_path / "p", policy=Policy(insist=Insist.STUB))
    talk = ClaudeTalk(tmp_path / "p", tmp_path / "home", stubborn)
    shown(talk, CAT)
    assert markers(shown(talk, HEAD)[0])
    talk.go_back(2)
    assert not markers(shown(talk, HEAD)[0])


def test_a_transcript_that_is_gone_does_no_harm(talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch) -> None:
    shown(talk, CAT)
    talk.path.unlink()
    monkeypatch.setattr(talk, "write", lambda _: None)
    assert not markers(shown(talk, HEAD)[0])


def test_a_transcript_that_is_late_is_waited_for(talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch) -> None:
    shown(talk, CAT)
    write, waiting = talk.write, list[dict[str, Any]]()
    monkeypatch.setattr(talk, "write", waiting.append)
    monkeypatch.setattr(proof, "PATIENCE", 30.0)  # this machine may be busy
    is_over = threading.Event()

    def write_late() -> None:
        while not is_over.wait(0.15):
            while waiting:
                write(waiting.pop(0))

    late = threading.Thread(target=write_late)
    late.start()
    try:
        assert markers(shown(talk, HEAD)[0])
    finally:
        is_over.set()
        late.join()


@pytest.mark.parametrize("requests", [300, pytest.param(1_500, marks=pytest.mark.slow)])  # 6 MB, and 30
def test_a_long_transcript_costs_little(talk: ClaudeTalk, requests: int) -> None:
    shown(talk, CAT)
    filler = "x" * 20_000
    for number in range(requests):
        talk.request()
        talk._entry(
            "assistant", {"id": f"m{number}", "role": "assistant", "content": [{"type": "text", "text": filler}]}
        )
    replies = list[str]()
    assert beside_a_loop(lambda: replies.append(shown(talk, HEAD)[0])) < 60
    assert markers(replies[0])
    assert beside_a_loop(lambda: shown(talk, Bash("head -30 shop.py"))) < 60


def test_a_command_is_of_the_directory_that_it_began_in(talk: ClaudeTalk) -> None:
    (talk.root / "src").mkdir()
    (talk.root / "src/shop.py").write_text((talk.root / "shop.py").read_text().replace("shop", "other shop"))
    shown(talk, Bash("cd src && cat shop.py"))
    assert markers(shown(talk, HEAD)[0]), "these are lines of the file that was shown"
    (text,) = shown(talk, Bash("cd .. && cat shop.py"))
    assert "number 7 of the shop" in text


def numbers(talk: ClaudeTalk, name: str) -> list[tuple[int, int]]:
    """The (first, last) numbers of the file's lines in view."""
    assert talk.sessions is not None
    view = talk.sessions.get("conversation").view
    return [(first, last) for first, last, _ in view.key(str(talk.root / name)).numbered.overlaps(1, 1_000)]


BLANK_FIRST = "\n \n\n" + "".join(f"    line number {n}, which says something\n" for n in range(4, 61))


@pytest.mark.parametrize(
    ("command", "seen"),
    [
        ("sed -n 2,30p blank.py", (4, 30)),
        ("cat blank.py", (4, 60)),
        ("head -n 30 blank.py", (4, 30)),
        ("sed -n 2,30p blank.py; head -n 9 shop.py", (4, 30)),
        ("sed -n 2,30p blank.py; echo ----; cat shop.py", (4, 30)),
        ("sed -n 4,30p blank.py", (4, 30)),
    ],
)
def test_lines_have_their_numbers_where_blank_ones_were_taken_away(
    talk: ClaudeTalk, command: str, seen: tuple[int, int]
) -> None:
    (talk.root / "blank.py").write_text(BLANK_FIRST)
    shown(talk, Bash(command))
    assert seen in numbers(talk, "blank.py")
    (text,) = shown(talk, Read("blank.py", 4, 30))
    assert "lines 4-30" in markers(text)[0]


def test_lines_have_no_numbers_if_the_file_is_not_as_it_was_printed(talk: ClaudeTalk) -> None:
    (talk.root / "blank.py").write_text(BLANK_FIRST)
    shown(talk, Bash("sed -n 2,30p blank.py; sed -i 's/line number 4,/line number four,/' blank.py"))
    assert numbers(talk, "blank.py") == []


def test_a_file_is_not_read_for_an_output_that_has_all_its_lines(
    talk: ClaudeTalk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (talk.root / "blank.py").write_text(BLANK_FIRST)
    asked, read = list[str](), Session.read
    monkeypatch.setattr(Session, "read", lambda self, path, **more: asked.append(path) or read(self, path, **more))  # type: ignore[func-returns-value]
    for command in (
        "sed -n 4,30p blank.py",
        "sed -i s/q/r/ crlf.txt",
        "head -n 5 shop.py",
        "grep -n line crlf.txt",
        "cat -n like.txt",
        "ls",
    ):
        shown(talk, Bash(command))
    assert asked == []
    assert talk.sessions is not None
    assert talk.sessions.get("conversation").view.calls.number == 6, "each is judged"
    shown(talk, Bash("sed -n 2,30p blank.py"))
    assert asked


@pytest.mark.parametrize(
    "response",
    [
        {"stdout": "x\n" * 400, "stderr": "", "interrupted": True},
        {"stdout": "x\n" * 400, "stderr": "", "isImage": True},
        {"stdout": "x\n" * 15_000, "stderr": ""},
        {"stdout": "x\n" * 400, "stderr": "", "persistedOutputPath": "/x"},
        {"stdout": "x\n" * 400, "stderr": "", "backgroundTaskId": "b1"},
        {"stdout": None},
        "not what was expected",
    ],
)
def test_what_is_not_shown_as_it_is_is_left_alone(talk: ClaudeTalk, response: object) -> None:
    told = {"tool_name": "Bash", "tool_input": {"command": "cat x"}, "tool_response": response}
    assert talk.event("PostToolUse", **told, tool_use_id="a") is None
    assert talk.sessions is not None
    assert not talk.sessions.get("conversation").view.covers(str(talk.root / "x"), 1, 1)


@pytest.mark.parametrize("kind", ["image", "pdf", "notebook", "file_unchanged"])
def test_what_a_read_gives_that_is_no_text_is_left_alone(talk: ClaudeTalk, kind: str) -> None:
    told = {"tool_name": "Read", "tool_input": {"file_path": "/x"}, "tool_response": {"type": kind, "file": {}}}
    assert talk.event("PostToolUse", **told, tool_use_id="a") is None


def test_the_answer_has_all_that_the_tools_own_response_has(talk: ClaudeTalk) -> None:
    """The native read was replaced, and edits failed. Another path was registered as read."""
    shown(talk, CAT)
    answers = []
    event = talk.event
    talk.event = lambda name, **told: answers.append(event(name, **told)) or answers[-1]  # type: ignore[method-assign,func-returns-value]
    shown(talk, CAT)
    shown(talk, Read("shop.py", 2, 30))
    bash, read = (answer["hookSpecificOutput"] for answer in answers if answer)
    assert bash["hookEventName"] == "PostToolUse"
    assert bash["updatedToolOutput"].keys() == {"stdout", "stderr", "interrupted", "isImage"}
    assert read["updatedToolOutput"]["file"].keys() == {"filePath", "content", "numLines", "startLine", "totalLines"}
    assert not any("decision" in json.dumps(answer) for answer in answers), "nothing is ever refused"


def test_events_of_other_kinds_change_nothing(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path, policy=Policy())
    for name in (
        "PreToolUse",
        "Stop",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "UserPromptSubmit",
        "Unheard",
        None,
    ):
        assert claude_hook({"hook_event_name": name, "session_id": "s"}, sessions) is None


def test_a_recall_is_answered_by_the_hook(talk: ClaudeTalk) -> None:
    """The process prints one line, as it does not know whose conversation this is."""
    full = shown(talk, CAT)[0]
    assert talk.sessions is not None
    name = f"{talk.sessions.get('conversation').tag}.1"
    talk.compact()
    event = {"tool_name": "Bash", "tool_input": {"command": f"readcache recall {name}"}, "tool_use_id": "toolu_recall"}
    response = {"stdout": UNANSWERED, "stderr": "", "interrupted": False, "isImage": False}
    answer = talk.event("PostToolUse", **event, tool_response=response)
    assert answer["hookSpecificOutput"]["updatedToolOutput"] == {**response, "stdout": f"{full}\n"}
