from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from readcache import Budget, Frame, Marks, Mode, Policy, Session
from readcache.context import Compactor, How
from readcache.context.compaction import count_tokens
from readcache.context.formed import is_overflow
from readcache.core.messages.messages import normalise
from readcache.core.model.errors import UsageError
from tests.helpers.chats import (
    APIS,
    Messages,
    Step,
    arguments,
    chat,
    is_sendable,
    results,
    roles_alternate,
    text,
    texts,
    turn_of,
    write,
)
from tests.helpers.compactor import SUMMARY, Model, TooLong, assert_true_markers, commands, observed_turn, six_reads

HEADING = "## Summary of the conversation so far"

each_shape = pytest.mark.parametrize("shape", APIS)


def summary_of(messages: Messages) -> str:
    (found,) = [text for text in texts(messages) if text.startswith(HEADING)]
    return found


def has_bare_texts(shape: str) -> bool:
    return shape in ("converse", "gemini")


def section_of(messages: Messages) -> str:
    found = [text for text in texts(messages) if text.startswith("## Files restored after compaction")]
    return "".join(found)


# ------------------------------------------------------------ when


@each_shape
def test_below_the_trigger_the_very_same_list_comes_back(shape: str) -> None:
    session, model = Session("/w"), Model()
    messages = six_reads(shape, session)
    assert Compactor(session, model, trigger_tokens=100_000).maybe_compact(messages) is messages
    assert model.asked == []
    assert len(session.view.deliveries) == 6


@each_shape
@pytest.mark.parametrize(("told", "cleared"), [(None, 3), (5_300, 4)])
def test_results_are_cleared_before_a_summary_is_asked_for(shape: str, told: int | None, cleared: int) -> None:
    """By the policy's marks, and by the API's count if it is told. That goes down by what was cleared."""
    session, model = Session("/w", policy=Policy(clear=Marks(4_000, 2_700))), Model()
    messages = six_reads(shape, session)
    sent = Compactor(session, model, trigger_tokens=4_700).ready(messages, tokens=told)
    assert model.asked == []
    assert [words.startswith("[PRUNED") for words in results(sent).values()] == [n < cleared for n in range(6)]
    assert_true_markers(session, sent)
    assert Compactor(session, model, trigger_tokens=4_700).ready(sent) is sent


@each_shape
def test_without_old_turns_the_very_same_list_comes_back(shape: str) -> None:
    session, model = Session("/w"), Model()
    messages = commands(shape, session, ("cat a", text()), ("cat b", text(of="row")))
    assert Compactor(session, model, trigger_tokens=1).maybe_compact(messages) is messages
    assert model.asked == []


def test_the_harness_may_say_how_many_tokens_there_are() -> None:
    session, model = Session("/w"), Model()
    messages = six_reads("openai", session)
    compactor = Compactor(session, model, trigger_tokens=28_000)
    assert compactor.maybe_compact(messages, tokens=27_999) is messages
    assert compactor.maybe_compact(messages, tokens=28_000) is not messages


def test_what_the_api_counts_is_believed_though_the_policy_counts_less() -> None:
    session = Session("/w")
    messages = commands("openai", session, ("cat a", text()), ("cat b", text(of="row")))
    compactor = Compactor(session, Model(), trigger_tokens=28_000)
    assert compactor.maybe_compact(messages, tokens=20_000) is messages
    assert set(results(compactor.maybe_compact(messages, tokens=30_000))) == {"c2"}


def test_where_pruning_is_enough_no_model_is_asked() -> None:
    session, model = Session("/w", policy=Policy(mode=Mode.ON, identical_output=False)), Model()
    same = [(f"pytest # {n}", text(1, 200)) for n in range(6)]
    messages = commands("openai", session, *same, ("true", ""), ("true", ""))
    compactor = Compactor(session, model, trigger_tokens=10_000)
    after = compactor.maybe_compact(messages)
    assert len(after) == len(messages)
    assert (model.asked, compactor.report.how) == ([], How.PRUNED)
    assert compactor.report.tokens_after < 10_000 * 0.7
    assert_true_markers(session, after)


# ------------------------------------------------------------ what


@each_shape
def test_what_a_compaction_adds_has_the_shape_of_the_other_messages(shape: str) -> None:
    session = Session("/w")
    messages = six_reads(shape, session)
    after = Compactor(session, Model(), trigger_tokens=100_000).compact(messages)
    added = [message for message in after if not any(message is old for old in messages)]
    key = "parts" if shape == "gemini" else "content"
    blocks = [block for message in added for block in (message[key] if isinstance(message[key], list) else [])]
    assert summary_of(added)
    assert {*added[0]} == {"role", key}
    assert {frozenset(block) for block in blocks} <= {
        frozenset(("text",) if has_bare_texts(shape) else ("type", "text"))
    }
    assert bool(blocks) or not has_bare_texts(shape)


@each_shape
def test_the_last_turns_stay_and_the_rest_is_summarised(shape: str) -> None:
    session, model = Session("/w"), Model()
    messages = six_reads(shape, session)
    before = copy.deepcopy(messages)
    compactor = Compactor(session, model, trigger_tokens=1)
    after = compactor.maybe_compact(messages)
    assert messages == before
    assert after[-4:] == messages[-4:]
    assert set(results(after)) == {"c5", "c6"}
    assert texts(after)[: len(texts(chat(shape)))] == texts(chat(shape))
    assert "TASK: go on\nNEXT STEP: read on" in summary_of(after)
    assert "analysis" not in summary_of(after)
    assert is_sendable(list(after))
    assert compactor.report.how is How.SUMMARISED
    assert compactor.report.tokens_after < compactor.report.tokens_before


def test_roles_alternate_where_anthropic_needs_it() -> None:
    session = Session("/w")
    messages = six_reads("anthropic", session)
    after = Compactor(session, Model(), trigger_tokens=1).compact(messages)
    assert roles_alternate(after)
    assert normalise(after)[0].parts[0].text == "fix the bug"


@each_shape
def test_the_summariser_sees_the_old_turns_and_the_files_from_the_log(shape: str) -> None:
    session, model = Session("/w"), Model()
    Compactor(session, model, trigger_tokens=1).compact(six_reads(shape, session))
    (asked,) = model.asked
    assert "fix the bug" in asked
    assert text(of="d") in asked
    assert text(of="e") not in asked
    assert "you are an agent" not in asked
    assert "a: read lines 1-40 of 40\n" in asked


def test_the_file_map_stands_below_the_summary() -> None:
    session = Session("/w")
    after = Compactor(session, Model(), trigger_tokens=1).compact(six_reads("openai", session))
    assert summary_of(after).endswith("b: read lines 1-40 of 40\na: read lines 1-40 of 40\n")


def test_numbers_that_nobody_showed_are_named() -> None:
    """Evidence was dropped and its narration kept, and the model made reports up."""
    session = Session("/w")
    model = Model("<summary>TASK: go on\nTESTS: 4711 passed, 40 lines read\nNEXT STEP: none</summary>")
    after = Compactor(session, model, trigger_tokens=1).compact(six_reads("openai", session))
    assert "Numbers in this summary that do not occur in the conversation: 4711." in summary_of(after)


@each_shape
def test_the_files_at_work_are_put_back_and_count_as_seen(shape: str) -> None:
    session = Session("/w")
    after = Compactor(session, Model(), trigger_tokens=20_000).compact(six_reads(shape, session))
    section = section_of(after)
    assert text(of="d").rstrip("\n") in section
    assert text(of="f").rstrip("\n") not in section
    assert_true_markers(session, after)
    assert "the section" in session.observe("cat d", text(of="d")).text
    assert session.observe("cat f", text(of="f"), call_id="c7").segments[0].sources == ("c6",)  # type: ignore[union-attr]


@each_shape
def test_what_a_tool_was_asked_that_the_session_never_saw_says_which_files_are_at_work(shape: str) -> None:
    session = Session("/w")
    messages = six_reads(shape, session)
    task = turn_of(shape, ("t1", Step({"prompt": "who calls total() of /w/a?"}, "nobody", tool="Task")))
    after = Compactor(session, Model(), trigger_tokens=20_000).compact([*messages[:-4], *task, *messages[-4:]])
    (title,) = (line for line in section_of(after).split("\n") if line.startswith("### /w/a "))
    assert title.endswith(": last read 6 calls ago, mentioned 3 calls ago; as last seen")


@each_shape
def test_markers_point_at_the_restored_section(shape: str) -> None:
    session = Session("/w")
    given = [("cat a", text()), ("cat b", text(of="row")), ("cat c", text(of="col")), ("sed -n 1,30p a", text(1, 30))]
    messages = commands(shape, session, *given)
    assert "above" in results(messages)["c4"]
    after = Compactor(session, Model(), trigger_tokens=20_000).compact(messages)
    assert 'the section "Files restored after compaction' in results(after)["c4"]
    assert_true_markers(session, after)


@each_shape
def test_a_marker_whose_lines_are_not_put_back_says_that_they_are_gone(shape: str) -> None:
    session = Session("/w")
    given = [("cat a", text()), ("cat b", text(of="row")), ("cat c", text(of="col")), ("sed -n 1,30p a", text(1, 30))]
    messages = commands(shape, session, *given)
    after = Compactor(session, Model(), trigger_tokens=20_000, budget=Budget(max_files=0)).compact(messages)
    assert results(after)["c4"].startswith("[GONE ")
    assert section_of(after) == ""
    assert_true_markers(session, after)


TEMPLATES: dict[str, Callable[[str], str]] = {
    "tags": lambda shown: f"<returncode>0</returncode>\n<output>\n{shown}</output>",
    "JSON": lambda shown: json.dumps({"returncode": 0, "output": shown}, indent=2),
    "nothing": lambda shown: shown,
}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_chat_without_ids_is_compacted_too(template: Callable[[str], str]) -> None:
    session = Session("/w")
    given = [("cat a", text()), ("cat b", text(of="row")), ("cat c", text(of="col")), ("sed -n 1,30p a", text(1, 30))]
    messages: Messages = [{"role": "system", "content": "you are"}, {"role": "user", "content": "task"}]
    for command, output in given:
        shown = session.observe(command, output).text
        messages.append({"role": "assistant", "content": f"THOUGHT: so\n\n```bash\n{command}\n```"})
        messages.append({"role": "user", "content": template(shown)})
    after = Compactor(session, Model(), trigger_tokens=20_000).compact(messages)
    assert after[:2] == messages[:2]
    assert after[-4:-1] == messages[-4:-1]
    (marker,) = {line for d in session.view.deliveries for line in session.markers_in(d.event.text)}
    assert 'the section "Files restored after compaction' in marker
    assert after[-1]["content"] == template(marker + "\n")


@each_shape
@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_what_a_harness_puts_around_a_reply_stays_there(shape: str, template: Callable[[str], str]) -> None:
    session = Session("/w")
    given = [("cat a", text()), ("cat b", text(of="row")), ("cat c", text(of="col")), ("sed -n 1,30p a", text(1, 30))]
    steps = [Step(c, template(session.observe(c, out, call_id=f"c{n}").text)) for n, (c, out) in enumerate(given, 1)]
    after = Compactor(session, Model(), trigger_tokens=20_000).compact(chat(shape, *steps))
    (marker,) = {line for d in session.view.deliveries for line in session.markers_in(d.event.text)}
    assert results(after)["c4"] == template(marker + "\n")


@each_shape
def test_a_frame_that_the_session_knows_stays_there_once(shape: str) -> None:
    session = Session("/w")
    given = [("cat a", text()), ("cat b", text(of="row")), ("cat c", text(of="col")), ("sed -n 1,30p a", text(1, 30))]
    steps = list[Step]()
    for n, (command, output) in enumerate(given, 1):
        reply = session.observe(command, f"<out>\n{output}</out>\n", frame=Frame(1, 1), call_id=f"c{n}")
        steps.append(Step(command, reply.text))
    after = Compactor(session, Model(), trigger_tokens=20_000).compact(chat(shape, *steps))
    (marker,) = {line for d in session.view.deliveries for line in session.markers_in(d.event.text)}
    assert 'the section "Files restored after compaction' in marker
    assert results(after)["c4"] == f"<out>\n{marker}\n</out>\n"


@each_shape
def test_the_second_compaction_takes_the_first_summary_in(shape: str) -> None:
    session, model = Session("/w"), Model(SUMMARY, "<summary>TASK: second\nNEXT STEP: none</summary>")
    compactor = Compactor(session, model, trigger_tokens=20_000)
    first = compactor.compact(six_reads(shape, session))
    messages = list(first)
    for name in "ghi":
        shown = session.observe(f"cat {name}", text(of=name), call_id=name).text
        messages += turn_of(shape, (name, Step(f"cat {name}", shown)))
    after = compactor.compact(messages)
    assert "TASK: go on" in model.asked[1]
    assert "Files restored" not in model.asked[1]
    assert "TASK: second" in summary_of(after)
    assert texts(after)[: len(texts(chat(shape)))] == texts(chat(shape))
    assert section_of(after).count("## Files restored after compaction") == 1
    assert is_sendable(list(after))
    assert_true_markers(session, after)


def test_what_the_user_said_last_is_never_summarised() -> None:
    session = Session("/w")
    messages = [*six_reads("anthropic", session), {"role": "assistant", "content": "done"}]
    messages.append({"role": "user", "content": "now the docs"})
    after = Compactor(session, Model(), trigger_tokens=1, keep_turns=0).compact(messages)
    assert texts(after)[-1] == "now the docs"
    assert roles_alternate(after)


@each_shape
def test_in_the_middle_of_a_batch_calls_stay_with_the_results_to_come(shape: str) -> None:
    session = Session("/w")
    messages = six_reads(shape, session)
    messages += turn_of(shape, ("b1", Step("cat g", text(of="g"))), ("b2", Step("cat h", None)))
    after = Compactor(session, Model(), trigger_tokens=1, keep_turns=1).compact(messages)
    assert after[-2:] == messages[-2:]


@pytest.mark.parametrize("keep_turns", [1, 2, 3])
def test_a_thinking_loop_is_never_cut(keep_turns: int) -> None:
    session = Session("/w")
    messages = six_reads("anthropic", session)
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    loop = messages[-6]  # the first of the last three answers; the others go on from its results
    messages[-6] = {"role": "assistant", "content": [thinking, *loop["content"]]}
    after = Compactor(session, Model(), trigger_tokens=1, keep_turns=keep_turns).compact(messages)
    assert after[1:] == messages[-6:]


# ------------------------------------------------------------ when the model fails


@each_shape
def test_a_request_that_is_too_long_is_made_shorter(shape: str) -> None:
    session, model = Session("/w"), Model(TooLong(), TooLong(), SUMMARY)
    messages = commands(shape, session, *[(f"cat {name}", text(1, 300, of=name)) for name in "abcdef"])
    compactor = Compactor(session, model, trigger_tokens=1)
    after = compactor.compact(messages)
    lengths = list(map(len, model.asked))
    assert lengths[0] > 3 * lengths[1] > 3 * lengths[2]
    assert "TASK: go on" in summary_of(after)
    assert compactor.failures == 0
    assert "TooLong" not in compactor.report.trouble


@each_shape
@pytest.mark.parametrize("answer", [TooLong(), RuntimeError("no key"), 7, "", "<think>hm", "x" * 100_000])
def test_without_a_summary_the_agent_still_gets_what_is_known(shape: str, answer: Any) -> None:
    session, model = Session("/w"), Model(answer)
    messages = [*six_reads(shape, session)]
    messages.insert(len(chat(shape)) + 4, {"role": "user", "content": "and mind the tests"})
    compactor = Compactor(session, model, trigger_tokens=20_000)
    after = compactor.compact(messages)
    summary = summary_of(after)
    assert "No summary could be made" in summary
    assert "and mind the tests" in summary
    assert "a: read lines 1-40" in summary
    assert after[-4:] == messages[-4:]
    assert compactor.report.how is How.MECHANICAL
    assert compactor.report.trouble
    assert is_sendable(list(after))
    assert_true_markers(session, after)


def test_reasoning_is_no_summary() -> None:
    session, model = Session("/w"), Model("<think>I should now run the tests")
    after = Compactor(session, model, trigger_tokens=1).compact(six_reads("openai", session))
    assert "I should now" not in "\n".join(texts(after))


def test_an_earlier_summary_outlives_a_model_that_fails() -> None:
    session, model = Session("/w"), Model(SUMMARY, RuntimeError("down"))
    compactor = Compactor(session, model, trigger_tokens=1)
    messages = [*compactor.compact(six_reads("openai", session)), *six_reads("openai", Session("/w"))[2:]]
    after = compactor.compact(messages)
    assert "TASK: go on" in summary_of(after)


def another_chat(number: int) -> Messages:
    """A conversation that no compactor has seen."""
    return commands("openai", Session("/w"), *[(f"cat {name}", text(of=f"{name}{number}")) for name in "abcdef"])[1:]


def test_after_three_failures_in_a_row_the_model_is_not_asked() -> None:
    session, model = Session("/w"), Model(RuntimeError("down"))
    compactor = Compactor(session, model, trigger_tokens=1)
    for n in range(5):
        compactor.compact(another_chat(n))
    assert len(model.asked) == 3
    compactor.failures = 0
    model.answers = [SUMMARY]
    compactor.compact(another_chat(5))
    assert (len(model.asked), compactor.failures) == (4, 0)


def test_a_failure_before_a_success_counts_no_more() -> None:
    session, model = Session("/w"), Model(RuntimeError("down"), RuntimeError("down"), SUMMARY, RuntimeError("down"))
    compactor = Compactor(session, model, trigger_tokens=1)
    for n in range(5):
        compactor.compact(another_chat(n))
    assert len(model.asked) == 5


def test_one_compaction_gets_below_the_trigger_where_that_can_be_had() -> None:
    session = Session("/w")
    messages = commands("openai", session, ("cat a", text(1, 900)), ("cat b", text(1, 900, of="row")))
    compactor = Compactor(session, Model(), trigger_tokens=4_000)
    kept_one = compactor.maybe_compact(messages)
    assert set(results(kept_one)) == {"c2"}
    assert 1_000 < len(results(kept_one)["c2"]) <= 5_000
    assert compactor.report.tokens_after < 4_000
    assert_true_markers(session, kept_one)
    assert compactor.maybe_compact(kept_one) is kept_one


def test_each_compaction_gains_something_until_nothing_is_left() -> None:
    session = Session("/w")
    messages = six_reads("anthropic", session)
    compactor = Compactor(session, Model(), trigger_tokens=100_000)
    sizes = [len(json.dumps(messages))]
    for _ in range(6):
        after = compactor.compact(messages)
        if after is messages:
            break
        messages = after
        sizes.append(len(json.dumps(messages)))
        assert is_sendable(list(messages))
        assert_true_markers(session, messages)
    assert sizes == sorted(sizes, reverse=True)
    assert compactor.compact(messages) is messages


def test_a_reply_is_mended_before_it_is_clipped() -> None:
    session = Session("/w")
    given = [("sed -n 1,9p a", text(1, 9)), ("sed -n 30,39p a", text(30, 39)), ("cat a", text())]
    messages: Messages = [{"role": "user", "content": "task"}]
    for command, output in given:
        messages.append({"role": "assistant", "content": f"so\n\n```bash\n{command}\n```"})
        messages.append({"role": "user", "content": f"<output>\n{session.observe(command, output).text}\n</output>"})
    compactor = Compactor(session, Model(), trigger_tokens=1, keep_turns=1, budget=Budget(max_files=0))
    assert len(session.markers_in(messages[-1]["content"])) == 2
    for _ in range(3):  # nothing to gain here: from now on texts of 1,000 characters at most
        compactor.maybe_compact(messages[:1])
    after = compactor.maybe_compact(messages)
    assert "omitted here; ask" in after[-1]["content"]
    assert all(marker.startswith(("[GONE ", "[PRUNED ")) for marker in session.markers_in(after[-1]["content"]))


@each_shape
def test_a_giant_argument_is_clipped_inside_valid_json(shape: str) -> None:
    session = Session("/w")
    messages = chat(shape, Step("ls", "f\n"), write("/w/f", text(1, 1000)))
    compactor = Compactor(session, Model(), trigger_tokens=2_000, keep_turns=1)
    for _ in range(4):
        messages = compactor.maybe_compact(messages)
    given = arguments(messages)["c2"]
    assert given is not None
    assert given["path"] == "/w/f"
    assert len(str(given["content"])) <= 5_000
    assert compactor.report.tokens_after < 2_000


# ------------------------------------------------------------ how the model is called


def test_any_awaitable_will_do() -> None:
    async def summarize(_: list[dict[str, str]]) -> str:
        await asyncio.sleep(0)
        return SUMMARY

    async def run(given: Callable[..., Any], messages: Messages) -> Messages:
        return await Compactor(Session("/w"), given, trigger_tokens=1).amaybe_compact(messages)

    messages = six_reads("openai", Session("/w"))
    for given in (summarize, Model()):
        assert "TASK: go on" in summary_of(asyncio.run(run(given, messages)))


def test_an_asynchronous_failure_is_one_too() -> None:
    async def summarize(_: list[dict[str, str]]) -> str:
        raise TooLong

    compactor = Compactor(Session("/w"), summarize, trigger_tokens=1)
    after = asyncio.run(compactor.acompact(six_reads("openai", Session("/w"))))
    assert "No summary could be made" in summary_of(after)


def test_an_asynchronous_model_called_synchronously_is_an_error() -> None:
    async def summarize(_: list[dict[str, str]]) -> str:
        return SUMMARY

    session = Session("/w")
    messages = six_reads("openai", session)
    with pytest.raises(UsageError, match=r"summarize is asynchronous: await .* acompact"):
        Compactor(session, summarize, trigger_tokens=1).compact(messages)
    assert len(session.view.deliveries) == 6


@pytest.mark.parametrize(
    "answer", [{"role": "assistant", "content": SUMMARY}, {"content": [{"type": "text", "text": SUMMARY}]}]
)
def test_the_answer_may_be_a_message(answer: Any) -> None:
    after = Compactor(Session("/w"), Model(answer), trigger_tokens=1).compact(six_reads("openai", Session("/w")))
    assert "TASK: go on" in summary_of(after)


def test_an_interrupt_is_no_failure_of_the_model() -> None:
    def summarize(_: list[dict[str, str]]) -> str:
        raise KeyboardInterrupt

    session = Session("/w")
    messages = six_reads("openai", session)
    with pytest.raises(KeyboardInterrupt):
        Compactor(session, summarize, trigger_tokens=1).compact(messages)
    assert len(session.view.deliveries) == 6


@pytest.mark.parametrize(("trigger_tokens", "keep_turns"), [(0, 2), (9, -1)])
def test_settings_without_a_meaning_are_errors(trigger_tokens: int, keep_turns: int) -> None:
    with pytest.raises(UsageError):
        Compactor(Session("/w"), Model(), trigger_tokens=trigger_tokens, keep_turns=keep_turns)
    with pytest.raises(UsageError):
        Compactor(Session("/w"), Model(), trigger_tokens=1, strategies=["all"])


SAYINGS = {
    "OpenAI": "Error code: 400 - {'error': {'message': \"This model's maximum context length is 8192 tokens.\"}}",
    "OpenAI's code": "Error code: 400 - {'error': {'code': 'context_length_exceeded'}}",
    "Anthropic": "prompt is too long: 212345 tokens > 200000 maximum",
    "Anthropic, with the answer": "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    "Gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Bedrock": "ValidationException: Input is too long for requested model.",
    "Groq": "Please reduce the length of the messages or completion.",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
}


@pytest.mark.parametrize("saying", SAYINGS.values(), ids=SAYINGS)
def test_providers_say_overflow_in_their_ways(saying: str) -> None:
    assert is_overflow(ValueError(saying))


def test_an_overflow_is_known_by_what_it_was_raised_from() -> None:
    error = RuntimeError("request failed")
    error.__cause__ = TooLong()
    assert is_overflow(error)


@pytest.mark.parametrize("saying", ["Rate limit reached: 30000 tokens per min", "401 invalid key", "timed out"])
def test_other_errors_are_no_overflow(saying: str) -> None:
    assert not is_overflow(ValueError(saying))


# ------------------------------------------------------------ sizes that the API counted


def counted_by(api: float, session: Session, messages: Messages) -> int:
    """The tokens of a request by an API whose tokens are shorter than ours, with 30,000 for tools."""
    return round(30_000 + api * count_tokens(normalise(messages), session.policy))


def test_what_the_api_counted_decides_when_results_are_cleared() -> None:
    """The list has 5,000 tokens by our own count, and 35,000 with the tools that the API counts."""
    session = Session("/w", policy=Policy(clear=Marks(34_000, 33_000)))
    compactor, messages = Compactor(session, Model(), window=200_000), six_reads("openai", session)
    assert compactor.ready(messages) is messages
    answer = {"role": "assistant", "content": "so", "usage": {"prompt_tokens": counted_by(1, session, messages)}}
    compactor.ask(lambda _: answer, messages)
    sent = compactor.ready(messages)
    assert sent is not messages
    assert counted_by(1, session, sent) <= 33_000


def test_turns_that_the_api_counted_correct_our_count_of_what_is_new() -> None:
    session, messages = Session("/w"), chat("openai")
    compactor = Compactor(session, Model(), trigger_tokens=100_000)
    for number in range(5):
        step = (f"cat f{number}", text(1, 400, of=f"row {number}"))
        messages = [*messages, *observed_turn("openai", session, number, [step])]
        usage = {"prompt_tokens": counted_by(1.5, session, messages)}
        compactor.ask(lambda _, usage=usage: {"role": "assistant", "content": "so", "usage": usage}, messages)  # type: ignore[misc]
    messages = [*messages, *observed_turn("openai", session, 5, [("cat f5", text(1, 400, of="row 5"))])]
    compactor.ready(messages)
    assert compactor.report.tokens_before == pytest.approx(counted_by(1.5, session, messages), rel=0.01)
