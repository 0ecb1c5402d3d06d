"""A model's answer is a summary only if it has its sections and makes no call."""

from __future__ import annotations

import pytest

from readcache import Session
from readcache.context import Compactor, How
from tests.helpers.chats import texts
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
