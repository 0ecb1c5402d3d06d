"""A loop that leaves all to the compactor: what it sends is sendable, below the trigger and true."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from readcache import Budget, Session, UsageError
from readcache.context import Compactor, How
from readcache.context.formed import prompt_tokens
from readcache.core.messages.messages import Kind, normalise_one
from tests.helpers.chats import (
    APIS,
    Messages,
    Step,
    call_message,
    chat,
    is_sendable,
    result_messages,
    results,
    said,
    text,
    texts,
)
from tests.helpers.compactor import SUMMARY, Model, TooLong, assert_true_markers, six_reads

PAGE = Path(__file__).parents[2] / "docs" / "compaction.md"

each_shape = pytest.mark.parametrize("shape", APIS)


# ------------------------------------------------------------ ready


@each_shape
def test_what_is_ready_is_the_very_same_list(shape: str) -> None:
    session = Session("/w")
    messages = six_reads(shape, session)
    assert Compactor(session, Model(), window=200_000).ready(messages) is messages


@each_shape
def test_a_call_without_its_result_is_taken_out(shape: str) -> None:
    messages = chat(shape, Step("ls", "f\n"), Step("cat f", None))
    ready = Compactor(Session("/w"), Model(), window=200_000).ready(messages)
    assert ready[:-1] == messages[:-1]
    assert "cat f" not in str(ready), "the words stay, the call goes"
    assert is_sendable(ready)


@each_shape
def test_what_is_too_long_is_compacted_and_the_rest_is_mended(shape: str) -> None:
    session = Session("/w")
    messages = six_reads(shape, session)
    compactor = Compactor(session, Model(), trigger_tokens=2_000)
    ready = compactor.ready(messages)
    assert compactor.report.how is How.SUMMARISED
    assert compactor.report.tokens_after < 2_000
    assert_true_markers(session, ready)


def test_a_marker_whose_source_the_harness_took_is_mended() -> None:
    session = Session("/w")
    session.observe("cat f", text(), call_id="c1")
    shown = session.observe("cat f", text(), call_id="c2").text
    messages = chat("openai", Step("cat f", "[cleared]"), Step("cat f", shown))
    ready = Compactor(session, Model(), window=200_000).ready(messages)
    assert "left the conversation" in results(ready)["c2"] or results(ready)["c2"] == text()
    assert results(ready)["c2"] != shown


def test_the_apis_count_of_tokens_comes_before_ours() -> None:
    session = Session("/w")
    messages = six_reads("openai", session)
    compactor = Compactor(session, Model(), window=100_000)
    assert compactor.ready(messages, tokens=79_999) is messages
    assert len(compactor.ready(messages, tokens=80_000)) < len(messages)


# ------------------------------------------------------------ the window


def test_without_a_window_or_a_trigger_nothing_is_known() -> None:
    with pytest.raises(UsageError, match="give the model's window="):
        Compactor(Session("/w"), Model())


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_a_share_of_the_window_comes_back(share: float) -> None:
    session = Session("/w")
    for name in "abcdef":
        session.observe(f"cat {name}", text(1, 400, of=name), call_id=name)
    messages = chat("openai", *[Step(f"cat {name}", text(1, 400, of=name)) for name in "abcdef"])
    compactor = Compactor(session, Model(), window=40_000, keep_turns=0, budget=Budget(max_tokens=share))
    after = compactor.compact(messages)
    (section,) = [m["content"] for m in after if "Files restored after compaction" in str(m["content"])]
    assert 0.8 * share * 40_000 < session.policy.tokens(section) <= share * 40_000


# ------------------------------------------------------------ ask


class Api:
    """A model with a limit of messages; its answers tell the tokens of the request, if `tells` gives them."""

    def __init__(self, most: int = 1000, tells: Callable[[Messages], dict[str, Any]] = lambda _: {}) -> None:
        self.most, self.tells = most, tells
        self.tried: list[int] = []

    def __call__(self, messages: Messages) -> dict[str, Any]:
        self.tried.append(len(messages))
        if len(messages) > self.most:
            raise TooLong
        return {"role": "assistant", "content": "done", **self.tells(messages)}


@each_shape
def test_a_request_that_was_too_long_is_compacted_and_sent_again(shape: str) -> None:
    session = Session("/w")
    messages, api = six_reads(shape, session), Api(most=9)
    answer, sent = Compactor(session, Model(), window=1_000_000).ask(api, messages)
    assert answer["content"] == "done"
    assert api.tried == [len(messages), len(sent)]
    assert is_sendable(sent)
    assert_true_markers(session, sent)


def test_what_no_compaction_makes_short_enough_is_the_models_error() -> None:
    session, api = Session("/w"), Api(most=0)
    with pytest.raises(TooLong):
        Compactor(session, Model(), window=1_000_000).ask(api, six_reads("openai", session))
    assert 1 < len(api.tried) < 10


def test_another_error_is_raised_at_once() -> None:
    def model(_: Messages) -> None:
        raise ConnectionError("refused")

    session = Session("/w")
    messages = six_reads("openai", session)
    with pytest.raises(ConnectionError, match="refused"):
        Compactor(session, Model(), window=1_000_000).ask(model, messages)
    assert len(session.view.deliveries) == 6


def test_tokens_that_only_the_api_counts_count_at_the_next_request() -> None:
    """The tools' descriptions, say: 75,000 tokens of them leave little of 80,000."""
    session = Session("/w")
    messages, tools = six_reads("openai", session), 75_000
    own = len(json.dumps(messages)) // 4

    def usage(_: Messages) -> dict[str, Any]:
        return {"usage": {"prompt_tokens": tools + own}}

    compactor, api = Compactor(session, Model(), window=100_000), Api(tells=usage)
    _, messages = compactor.ask(api, messages)
    assert compactor.report.how is How.NOTHING
    grown = [*messages, {"role": "user", "content": "x" * 4 * 5_000}]
    compactor.ask(api, grown)
    assert compactor.report.how is not How.NOTHING


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        ({"usage": {"prompt_tokens": 7, "completion_tokens": 2}}, 7),
        ({"usage": {"input_tokens": 7, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 5}}}, 7),
        ({"usage": {"input_tokens": 1, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}}, 7),
        ({"usage": {"input_tokens": 7, "cache_read_input_tokens": None}}, 7),
        (SimpleNamespace(usage={"prompt_tokens": 7}), 7),
        ({"usage": {"inputTokens": 1, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 2, "outputTokens": 3}}, 7),
        ({"usage": {"inputTokens": 7, "cacheReadInputTokens": 4, "outputTokens": 3, "totalTokens": 10}}, 7),
        ({"usage": {"inputTokens": 3, "cacheReadInputTokens": 4, "outputTokens": 3, "totalTokens": 10}}, 7),
        ({"usageMetadata": {"promptTokenCount": 7, "cachedContentTokenCount": 5}}, 7),
        (SimpleNamespace(usage_metadata={"prompt_token_count": 7}), 7),
        ({"usage": None}, None),
        ({"content": "done"}, None),
        ("done", None),
        (None, None),
    ],
)
def test_the_usage_of_every_api_is_understood(answer: object, tokens: int | None) -> None:
    assert prompt_tokens(answer) == tokens


def test_an_asynchronous_loop_does_the_same() -> None:
    session, api = Session("/w"), Api(most=9)
    messages = six_reads("openai", session)

    async def model(given: Messages) -> dict[str, Any]:
        await asyncio.sleep(0)
        return api(given)

    async def summarize(_: Any) -> str:
        await asyncio.sleep(0)
        return SUMMARY

    compactor = Compactor(session, summarize, window=1_000_000)
    answer, sent = asyncio.run(compactor.aask(model, messages))
    assert (answer["content"], api.tried) == ("done", [len(messages), len(sent)])
    assert asyncio.run(compactor.aready(sent)) is sent
    with pytest.raises(UsageError, match="model is asynchronous: await aask"):
        compactor.ask(model, sent)


# ------------------------------------------------------------ the whole loop


class Agent:
    """A scripted model that works on some files, and all that it was sent."""

    def __init__(self, shape: str, steps: int) -> None:
        self.shape, self.steps = shape, steps
        self.requests: list[Messages] = []

    def __call__(self, messages: Messages) -> Mapping[str, Any]:
        self.requests.append(list(messages))
        n = len(self.requests)
        if n > self.steps:
            return said(self.shape, "done", "assistant")
        if n % 7 == 0:
            given = {"path": f"f{n % 5}", "content": text(1, 120, of=f"new{n}")}
            return call_message(self.shape, [(f"call_{n}", "write", given)])
        reads = [(f"call_{n}_{at}", "bash", {"command": f"cat f{(n + at) % 5}"}) for at in range(1 + n % 2)]
        return call_message(self.shape, reads)


class Tools:
    """A shell that knows `cat`, and a write tool."""

    window = 16_000

    def bash(self, command: str) -> str:
        return Path(command.removeprefix("cat ")).read_text()

    def write(self, path: str, content: str) -> str:
        Path(path).write_text(content)
        return "written"


def loop_of_the_page() -> Callable[..., Messages]:
    first = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert first is not None
    ours = [line for line in first[1].splitlines() if re.search(r"readcache|[Ss]ession|[Cc]ompactor", line)]
    assert len(ours) == 8, "the whole loop names readcache in eight lines"
    given: dict[str, Any] = {}
    exec(first[1], given)
    loop: Callable[..., Messages] = given["agent"]
    return loop


def loop_of_blocks(api: str, model: Any, summarize: Any, tools: Any, messages: Messages) -> Messages:
    """The page's loop for another API."""
    session = Session(root=".")
    known = {"bash": session.wrap(tools.bash), "write": session.wrap_write(tools.write)}
    compactor = Compactor(session, summarize, window=tools.window)
    while True:
        answer, messages = compactor.ask(model, messages)
        messages = [*messages, answer]
        calls = [part for part in normalise_one(answer).parts if part.kind is Kind.CALL]
        if not calls:
            return messages
        with session.batch():
            done = [(c.call_id or "", known[c.name](**(c.arguments or {}), call_id=c.call_id), False) for c in calls]
        messages += result_messages(api, done)


@each_shape
def test_the_whole_loop_of_the_page(shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for n in range(5):
        Path(f"f{n}").write_text(text(1, 120, of=f"old{n}"))
    model, summarize = Agent(shape, 60), Model()
    loop = loop_of_the_page() if shape == "openai" else partial(loop_of_blocks, shape)
    messages = loop(model, summarize, Tools(), chat(shape))
    assert texts(messages[-1:]) == ["done"]
    assert len(model.requests) == 61
    assert len(summarize.asked) >= 3
    assert all(is_sendable(request) for request in model.requests)
    assert all(len(json.dumps(request)) / 4 < Tools.window for request in model.requests)
    assert any("FILE_UNCHANGED" in json.dumps(request) for request in model.requests)
    assert any("Files restored after compaction" in json.dumps(request) for request in model.requests)
