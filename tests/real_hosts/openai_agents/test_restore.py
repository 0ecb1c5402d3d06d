"""What is put back behind a compaction, and what stays as it was sent, with the real SDK and its scripted model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agents import Agent, OpenAIResponsesCompactionSession, RunConfig, Runner, SQLiteSession
from agents.run import CallModelData, ModelInputData
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseCompactionItem

from readcache import Budget, Reply
from readcache.hosts.openai_agents import ReadcacheFilter
from readcache.testing.requests import markers
from tests.real_hosts.openai_agents.agents_host import make_tools
from tests.real_hosts.user_tools import check_settings

SHOP = "".join(f"def item_{n}(count: int) -> float:  # number {n} of the shop\n" for n in range(1, 61))
HEADING = "Files restored after compaction"
DONE = [assistant_message("done")]
Items = list[dict[str, Any]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two files in it."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "other.py").write_text(SHOP.replace("item", "thing"))
    return tmp_path


def bash(command: str, call_id: str) -> Any:
    return function_call("bash", {"command": command}, call_id=call_id)


def compaction(name: str = "cmp_1") -> Any:
    return ResponseCompactionItem(id=name, encrypted_content=f"what {name} left", type="compaction")


def run(
    ours: ReadcacheFilter, root: Path, steps: Sequence[Any], given: Any = "the task", **more: Any
) -> tuple[Any, Any]:
    """(the requests of a run, what it gives); the model says what stands in `steps`."""
    model = ScriptedModel([*steps, DONE])
    agent = Agent(name="coder", model=model, tools=make_tools(root))
    config = RunConfig(call_model_input_filter=ours, tracing_disabled=True)
    result = asyncio.run(Runner.run(agent, given, run_config=config, **more))
    return [list(call.input) for call in model.calls], result


def results(request: Items) -> dict[str, str]:
    return {item["call_id"]: item["output"] for item in request if item.get("type") == "function_call_output"}


def sections(request: Items) -> list[str]:
    return [str(item["content"]) for item in request if HEADING in str(item.get("content"))]


def in_one_run(ours: ReadcacheFilter, root: Path) -> list[Items]:
    """The server compacts in the middle of a run; the SDK keeps what stands before that in its list."""
    steps = [
        [bash("cat shop.py", "a")],
        [compaction(), bash("echo x", "b")],
        [bash("head -50 shop.py", "c")],
        [bash("cat other.py", "d")],
    ]
    requests, _ = run(ours, root, steps)
    return cast("list[Items]", requests)


def test_behind_the_servers_compaction_stands_what_was_read_and_later_reads_point_at_it(root: Path) -> None:
    requests = in_one_run(ReadcacheFilter(str(root)), root)
    assert not any(map(sections, requests[:2]))
    found = [sections(request) for request in requests[2:]]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 1, "nothing stands twice"
    assert SHOP.rstrip() in found[0][0]
    at = [item.get("type") for item in requests[-1]].index("compaction")
    assert requests[-1][at + 1]["content"] == found[0][0]
    (marker,) = markers(results(requests[-1])["c"])
    assert f'"{found[0][0].splitlines()[0].removeprefix("## ")}"' in marker, "it names the section"


def test_without_restore_nothing_is_put_back(root: Path) -> None:
    requests = in_one_run(ReadcacheFilter(str(root), restore=False), root)
    assert not any(map(sections, requests))
    assert results(requests[-1])["c"] == "".join(SHOP.splitlines(True)[:50]) + "\nExit code: 0"


def test_a_result_like_one_that_a_compaction_took_is_no_source_for_itself(root: Path) -> None:
    steps = [[bash("cat shop.py", "a")], [compaction(), bash("cat shop.py", "b")]]
    requests, _ = run(ReadcacheFilter(str(root), restore=False), root, steps)
    assert results(requests[-1])["b"] == f"{SHOP}\nExit code: 0"


def test_a_filter_that_takes_a_list_up_again_sends_the_same(root: Path) -> None:
    """A new process, which knows nothing of the list, and of its compaction."""
    requests = in_one_run(ReadcacheFilter(str(root)), root)
    given: Items = []
    real = ReadcacheFilter(str(root), first=lambda data: note(given, data))
    in_one_run(real, root)
    again = ReadcacheFilter(str(root))
    assert shown(again, given) == requests[-1]
    later = [*given, {"role": "user", "content": "go on"}]
    assert shown(again, later)[:-1] == requests[-1]


def note(given: Items, data: Any) -> Any:
    given[:] = data.model_data.input
    return data.model_data


def shown(ours: ReadcacheFilter, items: Items) -> Items:
    """What the filter makes of a list."""
    data = ModelInputData(input=cast("list[Any]", items), instructions=None)
    sent = asyncio.run(ours(CallModelData(model_data=data, agent=cast("Any", None), context=None)))
    return list(sent.input)


@pytest.mark.parametrize("store", [False, True])
def test_a_new_filter_for_each_turn_changes_no_older_result(root: Path, tmp_path: Path, store: bool) -> None:
    kept = str(tmp_path / "log.db") if store else None
    given: Any = "the task"
    before: Items = []
    edit = "sed -i 's/number 7 /number seven /' shop.py"
    for n, command in enumerate(("cat shop.py", "cat shop.py", edit, "head -50 shop.py", "cat shop.py")):
        ours = ReadcacheFilter(str(root), store=kept)
        requests, result = run(ours, root, [[bash(command, f"c{n}")]], given)
        ours.close()
        assert requests[-1][: len(before)] == before
        before, given = requests[-1], [*result.to_input_list(), {"role": "user", "content": "go on"}]
    assert markers(str(before))


class Compacts:
    """The API's `responses.compact`: the user's messages stay, all else is one item."""

    def __init__(self) -> None:
        self.responses = self

    async def compact(self, **given: Any) -> Any:
        kept = [item for item in given["input"] if item.get("role") == "user"]
        return SimpleNamespace(output=[*kept, compaction().model_dump()], usage=None)


def compacted(ours: ReadcacheFilter, root: Path, session: Any) -> list[Items]:
    """Three turns in a session of the SDK's that compacts after the first."""
    out = run(ours, root, [[bash("cat shop.py", "a")]], session=session)[0]
    asyncio.run(session.run_compaction({"force": True, "compaction_mode": "input"}))
    out += run(ours, root, [[bash("head -50 shop.py", "b")]], "go on", session=session)[0]
    return cast("list[Items]", out + run(ours, root, [[bash("echo x", "c")]], "go on", session=session)[0])


def compacting(path: Path) -> Any:
    return OpenAIResponsesCompactionSession(
        "one",
        SQLiteSession("one", path),
        client=cast("Any", Compacts()),
        should_trigger_compaction=lambda _: False,
    )


@pytest.mark.parametrize("named", ["one", lambda _: "one"])
def test_a_session_that_compacts_everything_is_known_by_its_name(root: Path, tmp_path: Path, named: Any) -> None:
    requests = compacted(ReadcacheFilter(str(root), session=named), root, compacting(tmp_path / "s.db"))
    found = [sections(request) for request in requests[2:]]
    assert found == [found[0]] * 4
    assert len(found[0]) == 1
    assert SHOP.rstrip() in found[0][0]
    assert HEADING in markers(results(requests[-1])["b"])[0]


def test_a_session_without_a_name_is_put_back_nothing(root: Path, tmp_path: Path) -> None:
    """Two conversations may begin with the same words: what one was shown must not be put into the other."""
    requests = compacted(ReadcacheFilter(str(root)), root, compacting(tmp_path / "s.db"))
    assert not any(map(sections, requests))


def test_another_process_on_the_same_store_puts_back_the_same(root: Path, tmp_path: Path) -> None:
    session, store = compacting(tmp_path / "s.db"), str(tmp_path / "log.db")
    ours = ReadcacheFilter(str(root), session="one", store=store)
    before = compacted(ours, root, session)
    ours.close()
    (root / "shop.py").write_text("changed\n")
    later = ReadcacheFilter(str(root), session="one", store=store)
    steps = [[bash("git --version; cat other.py", "d")]]
    requests, _ = run(later, root, steps, "go on", session=session)
    later.close()
    assert [sections(request) for request in requests] == [sections(before[-1])] * 2


def summarised(items: Items, keep: int) -> Items:
    """As users do it themselves: a summary of theirs, and the last items."""
    return [{"role": "user", "content": "A summary of what came before."}, *items[-keep:]]


def test_behind_a_summary_of_the_users_own_stands_what_it_took(root: Path) -> None:
    ours = ReadcacheFilter(str(root))
    _, result = run(ours, root, [[bash("cat shop.py", "a")], [bash("cat other.py", "b")]])
    later = summarised(result.to_input_list(), 3)  # the last call, its result, and what the model said
    steps = [[bash("head -50 shop.py", "c")], [bash("head -50 other.py", "d")]]
    requests, result = run(ours, root, steps, [*later, {"role": "user", "content": "go on"}])
    found = [sections(request) for request in requests]
    assert found == [found[0]] * 3
    assert "def item_60(" in found[0][0]
    assert "def thing_60(" not in found[0][0], "that is still there"
    assert HEADING in markers(results(requests[-1])["c"])[0]
    assert HEADING not in markers(results(requests[-1])["d"])[0]
    assert requests[-1][1]["content"] == found[0][0]


def test_a_list_whose_oldest_items_fall_off_is_no_compaction(root: Path) -> None:
    ours = ReadcacheFilter(str(root))
    _, result = run(ours, root, [[bash("cat shop.py", "a")], [bash("cat other.py", "b")]])
    requests, _ = run(ours, root, [], [*result.to_input_list()[3:], {"role": "user", "content": "go on"}])
    assert not any(map(sections, requests))


def test_counters_and_replies_are_told(root: Path) -> None:
    heard = list[Reply]()
    ours = ReadcacheFilter(str(root), on_reply=heard.append)
    for task in ("one", "two"):
        run(ours, root, [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")]], task)
    stats = ours.stats()
    assert stats["calls"] == len(heard) == 4
    assert [reply.tokens_saved > 0 for reply in heard] == [False, True] * 2
    assert stats["tokens_saved"] == sum(reply.tokens_saved for reply in heard)
    ours.close()
    assert ours.stats() == stats, "those of conversations that ended count"


def test_settings_are_checked_and_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = lambda ours: (ours._lists._settings.policy, ours._lists._settings.store)  # noqa: E731
    check_settings(partial(ReadcacheFilter, str(tmp_path)), kept, monkeypatch, tmp_path)


def test_the_store_is_named_in_the_environment(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READCACHE_STORE", str(tmp_path / "log.db"))
    ours = ReadcacheFilter(str(root), restore=Budget(max_tokens=100))
    run(ours, root, [[bash("cat shop.py", "a")]])
    ours.close()
    assert (tmp_path / "log.db").is_file()


def test_no_result_is_judged_in_the_thread_of_the_event_loop(root: Path) -> None:
    """A list that is taken up again may have hundreds of new results."""
    threads = set[int]()
    ours = ReadcacheFilter(str(root), on_reply=lambda _: threads.add(threading.get_ident()))
    run(ours, root, [[bash("cat shop.py", "a")], [bash("cat shop.py", "b")]])
    assert threads
    assert threading.get_ident() not in threads
