"""deepagents passes the suite, and what breaks there without care."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import ContextEditingMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from readcache import Budget
from readcache.hosts.langchain import ReadcacheMiddleware
from readcache.testing.conformance import Conformance, make_project
from readcache.testing.hosts import Bash, Compact
from readcache.testing.requests import markers
from tests.real_hosts.langchain.agents import Clearing, Script, ask, results, run_steps, says, thread
from tests.real_hosts.measured_script import STEPS, measure

pytest.importorskip("deepagents")
from deepagents import create_deep_agent
from deepagents.backends import LocalShellBackend

from tests.real_hosts.langchain.deep_agents import DeepHost

READ = ("read_file", {"file_path": "/shop.py"})


class TestDeepagents(Conformance):
    host = DeepHost(restore=Budget())


def test_real_paths_and_everything_switched_on_are_sound(tmp_path: Path) -> None:
    suite = Conformance()
    suite.host = DeepHost("max", virtual=False)  # type: ignore[misc]  # for this instance
    suite.run_steps(tmp_path, *STEPS[1:])  # without a listing of the directory above


def test_what_a_summary_took_is_put_behind_it_in_each_request(tmp_path: Path) -> None:
    suite = Conformance()
    suite.host = DeepHost(restore=Budget())  # type: ignore[misc]  # for this instance
    cat, head = Bash("cat shop.py"), Bash("head -40 shop.py")
    seen = suite.run_steps(tmp_path, (cat,), Compact(), (head,), (Bash("cat crlf.txt"),))
    assert "Files restored after compaction" in markers(seen[2].results[0])[0]
    summaries = [next(text for text in one.texts if "has been summarized" in text) for one in seen[1:]]
    assert len(set(summaries)) == 1
    assert "def item_60(count: int)" in summaries[0]


def test_what_it_saves_is_measured(tmp_path: Path) -> None:
    measure("deepagents", "deepagents", lambda root, on: run_steps(DeepHost(), root, on=on), tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_project(tmp_path / "project")
    return tmp_path / "project"


def deep_agent_of(root: Path, model: Script, ours: Any, **more: Any) -> Any:
    backend = LocalShellBackend(root_dir=root, virtual_mode=True, inherit_env=True)
    return create_deep_agent(model, backend=backend, middleware=[ours], **more)


def test_a_forked_sub_agent_knows_what_its_parent_saw_and_not_the_other_way_round(root: Path) -> None:
    model = Script()
    ours = ReadcacheMiddleware(str(root))
    fork = {"name": "twin", "description": "Works.", "system_prompt": "Work.", "model": model, "mode": "fork"}
    agent = deep_agent_of(root, model, ours, subagents=[fork], checkpointer=InMemorySaver())
    execute = ("execute", {"command": "cat shop.py"})
    crlf = ("execute", {"command": "cat crlf.txt"})
    model.answers = [
        says(execute),
        says(("task", {"description": "look", "subagent_type": "twin"})),
        says(execute),
        says(crlf),
        AIMessage("the twin is done"),
        says(crlf),
    ]
    ask(agent, thread())
    in_fork = [request for request in model.requests if "the subagent that was just invoked" in str(request)]
    assert [len(results(request)) for request in in_fork] == [1, 2, 3]
    assert markers(results(in_fork[1])[1]), "it has its parent's messages"
    assert not markers(results(model.requests[-1])[-1]), "its parent has not got its own"


def test_of_a_middleware_behind_ours_that_clears_results_is_warned(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    execute, clearing, model = ("execute", {"command": "cat shop.py"}), Clearing(), Script()
    backend = LocalShellBackend(root_dir=root, virtual_mode=True, inherit_env=True)
    listed = [ReadcacheMiddleware(str(root)), ContextEditingMiddleware(edits=[clearing])]
    agent = create_deep_agent(model, backend=backend, middleware=listed, checkpointer=InMemorySaver())
    model.answers = [says(execute), says(execute)]
    ask(agent, thread())
    assert markers(results(model.requests[-1])[1])
    clearing.cleared = 1
    ask(agent, thread())
    assert results(model.requests[-1])[0] == "[cleared]"
    assert "def item_60(count: int)" in results(model.requests[-1])[1]
    assert "list ReadcacheMiddleware last" in caplog.text


def test_what_a_parent_knows_stays_while_a_sub_agent_works(root: Path) -> None:
    ours, execute = ReadcacheMiddleware(str(root)), ("execute", {"command": "cat shop.py"})
    worker = Script(answers=[says(("execute", {"command": "cat crlf.txt"}))])
    spec = {"name": "w", "description": "Works.", "system_prompt": "Work.", "model": worker, "middleware": [ours]}
    task = ("task", {"description": "look", "subagent_type": "w"})
    tail = ("execute", {"command": "tail -40 shop.py"})
    model = Script(answers=[says(execute), says(tail), says(task), says(execute)])
    ask(deep_agent_of(root, model, ours, subagents=[spec], checkpointer=InMemorySaver()), thread())
    shown = results(model.requests[-1])
    assert shown[1] == results(model.requests[2])[1], "the prompt begins as it was"
    assert [bool(markers(text)) for text in shown] == [False, True, False, True]


def test_sub_agents_at_work_at_once_are_readers_of_their_own(root: Path) -> None:
    ours = ReadcacheMiddleware(str(root))
    workers = [Script(answers=[says(("execute", {"command": "cat shop.py"}))]) for _ in range(2)]
    specs = [
        {"name": f"worker{n}", "description": "Works.", "system_prompt": "Work.", "model": model, "middleware": [ours]}
        for n, model in enumerate(workers)
    ]
    tasks = [("task", {"description": "look", "subagent_type": spec["name"]}) for spec in specs]
    model = Script(answers=[says(*tasks)])
    ask(deep_agent_of(root, model, ours, subagents=specs, checkpointer=InMemorySaver()), thread())
    for worker in workers:
        assert not markers(results(worker.requests[-1])[0])


def test_a_text_that_the_agent_wrote_itself_is_visible(root: Path) -> None:
    text = "".join(f"line {n} of a new file, with some words\n" for n in range(40))
    write = ("write_file", {"file_path": "/new.txt", "content": text})
    calls = [write, ("read_file", {"file_path": "/new.txt"}), ("execute", {"command": "cat new.txt"})]
    model = Script(answers=[says(call) for call in calls])
    ask(deep_agent_of(root, model, ReadcacheMiddleware(str(root))))
    shown = results(model.requests[-1])
    assert shown[1].startswith("@@ lines 1-40 of 40 @@\n[")
    assert [len(markers(one)) for one in shown] == [0, 1, 1]
    assert "[Command succeeded with exit code 0]" in shown[2]


def test_lines_of_deepagents_reads_are_the_files(root: Path) -> None:
    window = ("read_file", {"file_path": "/shop.py", "offset": 9, "limit": 30})
    model = Script(answers=[says(READ), says(window)])
    ask(deep_agent_of(root, model, ReadcacheMiddleware(str(root))))
    header, marker = results(model.requests[-1])[1].strip().split("\n")
    assert header == "@@ lines 10-39 of 60 | next offset 39 @@"
    assert "shop.py lines 10-39," in marker


def test_searches_and_listings_are_left_out_when_they_are_the_same_again(root: Path) -> None:
    grep = ("grep", {"pattern": "item_", "output_mode": "content"})
    model = Script(answers=[says(grep), says(grep)])
    ask(deep_agent_of(root, model, ReadcacheMiddleware(str(root))))
    assert [len(markers(one)) for one in results(model.requests[-1])] == [0, 1]


def test_a_result_that_is_long_enough_for_a_file_has_no_marker(root: Path) -> None:
    model = Script(answers=[says(("execute", {"command": f"head -{n} long.txt"})) for n in (1000, 1100, 4000)])
    backend = LocalShellBackend(root_dir=root, inherit_env=True, max_output_bytes=1_000_000)
    ask(create_deep_agent(model, backend=backend, middleware=[ReadcacheMiddleware(str(root))]))
    assert markers(results(model.requests[-1])[1])
    (offloaded,) = (path.read_text() for path in (root / "large_tool_results").iterdir())
    assert not markers(offloaded)
    assert "00000 a line" in offloaded


def test_what_the_shell_cut_is_not_said_to_be_a_file(root: Path) -> None:
    thirty = len("".join((root / "shop.py").read_text().splitlines(True)[:30]))
    model = Script(answers=[says(("execute", {"command": "cat shop.py"})) for _ in range(2)])
    backend = LocalShellBackend(root_dir=root, inherit_env=True, max_output_bytes=thirty)
    ask(create_deep_agent(model, backend=backend, middleware=[ReadcacheMiddleware(str(root))]))
    first, second = results(model.requests[-1])
    assert f"Output truncated at {thirty} bytes" in first
    assert not [marker for marker in markers(second) if "shop.py lines" in marker]
