"""What the model saw with each request, by the tree of entries of a Claude Code transcript."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from readcache import Frame
from readcache.core.model.tool_call import AskedRead
from readcache.transcripts.records import Recording, RequestSent
from tests.replay.loaded import calls, load, load_rows, removals, replay, requests
from tests.replay.sessions import lines

Row = dict[str, Any]


class Chain:
    """Entries, each below the one before unless `under` names another."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, name: str, under: str | None = "", **fields: Any) -> None:
        parent = (self.rows[-1]["uuid"] if self.rows else None) if under == "" else under
        self.rows.append({"uuid": name, "parentUuid": parent, "sessionId": "s", "cwd": "/w", **fields})

    def ask(self, name: str, command: str, *, answer: str = "", under: str | None = "", tokens: int = 0) -> None:
        block = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}
        usage = {"input_tokens": tokens, "output_tokens": 7, "cache_creation_input_tokens": 0}
        message = {"id": answer or f"answer to {name}", "content": [block], "usage": usage}
        self.add(f"a-{name}", under, type="assistant", message=message)

    def result(self, name: str, output: str, under: str | None = "", **more: Any) -> None:
        block = {"type": "tool_result", "tool_use_id": name, "content": output, **more}
        self.add(f"r-{name}", under, type="user", message={"content": [block]})

    def load(self, directory: Path) -> Recording:
        (found,) = load_rows(directory, self.rows)
        return found


def names(recording: Recording) -> list[str]:
    return [call.call_id for call in calls(recording)]


def test_calls_made_at_once_stay_visible_though_the_chain_passes_one_result_alone(tmp_path: Path) -> None:
    chain = Chain()
    chain.ask("one", "cat a", answer="m1")
    chain.ask("two", "cat b", answer="m1")
    chain.result("two", "b\n", under="a-two")
    chain.result("one", "a\n", under="a-one")
    chain.ask("three", "cat c", under="r-one")
    chain.result("three", "c\n")
    found = chain.load(tmp_path)
    assert names(found) == ["two", "one", "three"]
    assert removals(found) == []
    assert [call.batch for call in calls(found)] == ["m1", "m1", "answer to three"]


def test_a_result_that_comes_before_its_call_is_kept_for_it(tmp_path: Path) -> None:
    """Claude Code 2.1.112 wrote parallel calls so. 5 of 133 calls of one session were lost, three edits among them."""
    chain = Chain()
    chain.ask("one", "cat a", answer="m1")
    chain.result("two", "b\n")
    chain.ask("two", "cat b", answer="m1")
    chain.result("one", "a\n")
    chain.ask("three", "cat c")
    chain.result("three", "c\n")
    found = chain.load(tmp_path)
    assert names(found) == ["two", "one", "three"]
    assert [call.batch for call in calls(found)] == ["m1", "m1", "answer to three"]
    assert removals(found) == []


def test_who_goes_back_takes_what_came_after_out_of_the_conversation(tmp_path: Path) -> None:
    chain = Chain()
    chain.ask("one", "cat a")
    chain.result("one", "a\n")
    chain.ask("two", "cat b")
    chain.result("two", "b\n")
    chain.add("u", under="r-one", type="user", message={"content": "No, the other file"})
    chain.ask("three", "cat c")
    chain.result("three", "c\n")
    (removal,) = removals(chain.load(tmp_path))
    assert removal.kept == {"one"}
    assert not removal.compacts


def test_a_compaction_takes_all_but_what_it_says_it_kept(tmp_path: Path) -> None:
    chain = Chain()
    chain.ask("one", "cat a")
    chain.result("one", "a\n")
    chain.ask("two", "cat b")
    chain.result("two", "b\n")
    kept = {"preservedMessages": {"uuids": ["a-two", "r-two"]}}
    chain.add("c", under=None, type="system", subtype="compact_boundary", compactMetadata=kept)
    chain.add("u", type="user", isCompactSummary=True, message={"content": "Summary"})
    chain.ask("three", "cat c")
    chain.result("three", "c\n")
    (removal,) = removals(chain.load(tmp_path))
    assert removal.kept == {"two"}
    assert removal.compacts


def test_a_missing_entry_breaks_no_chain(tmp_path: Path) -> None:
    chain = Chain()
    chain.ask("one", "cat a")
    chain.result("one", "a\n")
    chain.ask("two", "cat b", under="an entry in a damaged line")
    chain.result("two", "b\n")
    assert removals(chain.load(tmp_path)) == []


def test_files_that_the_host_showed_again_are_visible_and_no_calls(tmp_path: Path) -> None:
    chain = Chain()
    chain.ask("one", "cat app.py")
    chain.result("one", lines(1, 60))
    chain.add("c", under=None, type="system", subtype="compact_boundary")
    file = {"filePath": "/w/app.py", "content": lines(1, 60), "startLine": 1}
    chain.add("f", type="attachment", attachment={"type": "file", "content": {"type": "text", "file": file}})
    chain.ask("two", "sed -n '1,60p' app.py")
    chain.result("two", lines(1, 60))
    found = chain.load(tmp_path)
    (removal,) = removals(found)
    assert [call.call_id for call in removal.restored] == ["f"]
    totals = replay(found)
    assert totals.counts["restored"] == 1
    assert totals.policies["default"].counts["saved"] > 1000
    assert totals.policies["default"].counts["wrong"] == 0


def test_the_real_transcript_of_the_hosts_tests_is_understood() -> None:
    (found,) = load(Path(__file__).parents[1] / "hosts/claude-code-2.1.330.jsonl")
    assert [len(removal.restored) for removal in removals(found)] == [1, 0]


def test_side_chains_are_readers_of_their_own(tmp_path: Path) -> None:
    chain = Chain()
    chain.ask("one", "cat a")
    chain.result("one", "a\n")
    own = [{**row, "isSidechain": True, "uuid": f"s-{row['uuid']}"} for row in chain.rows]
    own[0]["parentUuid"], own[1]["parentUuid"] = None, own[0]["uuid"]
    own[0]["message"] = {"id": "other", "content": [{**chain.rows[0]["message"]["content"][0], "id": "side"}]}
    own[1]["message"] = {"content": [{"type": "tool_result", "tool_use_id": "side", "content": "a\n"}]}
    found = load_rows(tmp_path, chain.rows + own)
    assert [(recording.reader, names(recording)) for recording in found] == [("main", ["one"]), ("s-a-one", ["side"])]


def test_the_last_entry_of_an_answer_has_its_usage(tmp_path: Path) -> None:
    chain = Chain()
    chain.ask("one", "cat a", answer="m", tokens=100)
    chain.ask("two", "cat b", answer="m", tokens=120)
    (request,) = requests(chain.load(tmp_path))
    assert isinstance(request, RequestSent)
    assert (request.prompt, request.output) == (120, 7)


def test_a_command_that_failed_shows_and_is_no_source_of_lines(tmp_path: Path) -> None:
    chain = Chain()
    chain.ask("one", "cat a; false")
    chain.result("one", "Exit code 1\na\n", is_error=True)
    chain.ask("two", "cat b")
    chain.result("two", "b\nShell cwd was reset to /w")
    one, two = calls(chain.load(tmp_path))
    assert (one.exit_code, one.frame, one.complete) == (1, Frame(1), False)
    assert (two.exit_code, two.frame, two.complete) == (0, Frame(0, 1), True)


def test_reads_leave_out_edges_alone_as_the_adapter_can(tmp_path: Path) -> None:
    chain = Chain()
    chain.ask("one", "")
    chain.rows[0]["message"]["content"][0] |= {"name": "Read", "input": {"file_path": "/w/a", "offset": 5, "limit": 10}}
    chain.result("one", "     5→x\n")
    (call,) = calls(chain.load(tmp_path))
    assert call.asked == AskedRead("/w/a", 5, 14, numbered=True, edges_only=True)
