"""A model's answer is a summary only if it has its sections and makes no call."""

from __future__ import annotations

import pytest

from readcache import Session
from readcache.context import Compactor, How
from tests.helpers.chats import Messages, Step, chat, each_api, texts, user
from tests.helpers.chats import text as lines
from tests.helpers.compactor import SUMMARY, Model, six_reads

NO_SUMMARIES = {
    "Let me run the tests next.": "lacks TASK and NEXT STEP",
    "I cannot help": "lacks TASK and NEXT STEP",
    "TASK: go on": "lacks NEXT STEP",
    "": "held no summary",
    "TASK: go on\nNEXT STEP: read on\n<tool_call>": "contains a tool call",
    'TASK: go on\nNEXT STEP:\n{"name": "bash", "arguments": {"command": "ls"}}': "contains a tool call",
    'TASK: go on\nNEXT STEP:\n-> tool_call bash({"command": "ls"})': "contains a tool call",
    'TASK: go on\nNEXT STEP:\n<invoke name="bash">': "contains a tool call",
    'TASK: go on\nNEXT STEP:\n[TOOL_CALLS] [{"name": "bash"}]': "contains a tool call",
}
SUMMARIES = (
    "TASK: go on\nNEXT STEP: none",
    "## Task\ngo on\n\n## Next step\nnone",
    "1. **TASK**: x\n9. **NEXT STEP**: y",
)


@pytest.mark.parametrize("answer", NO_SUMMARIES)
def test_a_faulty_answer_is_asked_for_once_more(answer: str) -> None:
    session, model = Session("/w"), Model(answer, SUMMARY)
    compactor = Compactor(session, model, trigger_tokens=100_000)
    messages = compactor.compact(six_reads("openai", session))
    assert (compactor.report.how, compactor.report.trouble) == (How.SUMMARISED, "")
    assert "TASK: go on\nNEXT STEP: read on" in "\n".join(texts(messages))
    assert NO_SUMMARIES[answer] in model.asked[1]
    assert NO_SUMMARIES[answer] not in model.asked[0]


@pytest.mark.parametrize("answer", NO_SUMMARIES)
def test_after_two_faulty_answers_the_turns_go_without_a_summary(answer: str) -> None:
    session, model = Session("/w"), Model(answer)
    compactor = Compactor(session, model, trigger_tokens=100_000)
    messages = compactor.compact(six_reads("openai", session))
    assert (compactor.report.how, len(model.asked), compactor.failures) == (How.MECHANICAL, 2, 1)
    assert NO_SUMMARIES[answer] in compactor.report.trouble
    assert not answer or answer not in "\n".join(texts(messages))


@pytest.mark.parametrize("answer", SUMMARIES)
def test_sections_may_be_written_in_any_usual_form(answer: str) -> None:
    session, model = Session("/w"), Model(answer)
    compactor = Compactor(session, model, trigger_tokens=100_000)
    compactor.compact(six_reads("openai", session))
    assert (compactor.report.how, len(model.asked)) == (How.SUMMARISED, 1)


def test_a_prompt_of_ones_own_needs_no_sections() -> None:
    session, model = Session("/w"), Model("All is well.")
    compactor = Compactor(session, model, trigger_tokens=100_000, prompt="Sum up.")
    compactor.compact(six_reads("openai", session))
    assert compactor.report.how is How.SUMMARISED


def test_without_a_model_a_compaction_is_no_failure() -> None:
    session = Session("/w")
    compactor = Compactor(session, None, trigger_tokens=100_000)
    compactor.compact(six_reads("openai", session))
    assert (compactor.report.how, compactor.report.trouble, compactor.failures) == (How.MECHANICAL, "", 0)


# ------------------------------------------------------------ without a model

LONG = "please keep parse() as it is, because shop.py calls it. " * 60
FROM_OTHERS = (
    f"[Message from agent2]: {LONG}",  # as harnesses of agents that collaborate write it
    f'<teammate-message teammate_id="lead">\n{LONG}\n</teammate-message>',  # Claude Code's teams
    f'Another session sent a message:\n<teammate-message teammate_id="lead">\n{LONG}\n</teammate-message>',
)


def without_a_model(messages: Messages) -> str:
    """Return the summary of these messages when no model is asked."""
    kept = Compactor(Session("/w"), None, trigger_tokens=100_000).compact(messages)
    (summary,) = (text for text in texts(kept) if text.startswith("## Summary"))
    return summary


@each_api
@pytest.mark.parametrize("message", FROM_OTHERS)
def test_messages_of_other_agents_have_a_section_of_their_own(shape: str, message: str) -> None:
    reads = [Step(f"cat {name}", lines(of=name)) for name in "abcd"]
    turns: list[Step | str] = [reads[0], "also run the tests", reads[1], message, *reads[2:]]
    users, _, others = without_a_model(chat(shape, *turns)).partition("Messages of colleagues and other agents:")
    assert message in others
    assert "also run the tests" in users
    assert "keep parse()" not in users


def test_a_colleague_is_known_by_the_name_of_the_message() -> None:
    messages = chat("openai", *[Step(f"cat {n}", lines(of=n)) for n in "abcd"])
    messages[4:4] = [{**user(LONG), "name": "ann"}, {**user("go on"), "name": "user"}]
    users, _, others = without_a_model(messages).partition("Messages of colleagues and other agents:")
    assert f"ann: {LONG}" in others
    assert "go on" in users
    assert "ann" not in users


def test_a_chat_without_calls_has_that_section_too() -> None:
    messages: Messages = [user("fix it")]
    for name in "abcd":
        messages.append({"role": "assistant", "content": f"```bash\ncat {name}\n```"})
        messages.append(user(f"<output>\n{lines(of=name)}</output>"))
    messages[3:3] = [user(FROM_OTHERS[0])]
    assert FROM_OTHERS[0] in without_a_model(messages).partition("Messages of colleagues and other agents:")[2]
