"""Omissions are proven from a trajectory alone, against the texts as the model was sent them."""

from __future__ import annotations

import copy
import json
from typing import Any

from ab.models import account_of
from ab.omissions import check_omissions
from readcache import Policy, Session

BODY = "".join(f"line {n} of a file that is long enough to be left out\n" for n in range(40))
PART = "".join(BODY.splitlines(keepends=True)[10:35])
Message = dict[str, Any]


def conversation(*calls: tuple[str, str], template: str = "<output>\n{}</output>") -> list[Message]:
    """The messages of a trajectory in which each command gave that output, one call in each answer."""
    session, messages = Session("/w", policy=Policy.named("max"), local=False), list[Message]()
    for number, (command, output) in enumerate(calls):
        reply = session.observe(command, output, call_id=f"call_{number}", batch=str(number))
        messages.append({"role": "assistant", "extra": {"actions": [{"command": command}]}})
        extra = {"raw_output": reply.text, "full_output": output, "account": account_of(reply, str(number))}
        messages.append({"role": "tool", "content": template.format(reply.text), "extra": extra})
    return messages


def test_what_was_shown_before_is_proven() -> None:
    found = check_omissions(conversation(("cat a", BODY), ("sed -n '11,35p' a", PART), ("cat a", BODY)))
    assert (found.accounts, found.markers, found.wrong) == (3, 2, [])


def test_what_the_agent_wrote_itself_is_proven() -> None:
    found = check_omissions(conversation((f"cat >a <<'EOF'\n{BODY}EOF", ""), ("cat a", BODY)))
    assert (found.markers, found.wrong) == (1, [])


def test_observations_in_json_are_read() -> None:
    messages = conversation(("cat a", BODY), ("cat a", BODY))
    for message in messages[1::2]:
        message["content"] = json.dumps({"returncode": 0, "output": message["extra"]["raw_output"]})
    assert check_omissions(messages).wrong == []


def test_lines_that_the_template_cut_away_are_no_source() -> None:
    messages = conversation(("cat a", BODY), ("sed -n '11,35p' a", PART))
    messages[1]["content"] = messages[1]["content"].replace(PART, "1300 characters elided\n")
    (wrong,) = check_omissions(messages).wrong
    assert wrong.startswith("call_1: line 11 of /w/a was left out, but does not stand at call_0")


def test_a_source_that_was_shown_something_else_is_found() -> None:
    messages = conversation(("cat a", BODY), ("cat a", BODY))
    for key in ("raw_output", "full_output"):
        messages[1]["extra"][key] = messages[1]["extra"][key].replace("line 20", "line xx")
    messages[1]["content"] = messages[1]["content"].replace("line 20", "line xx")
    messages[1]["extra"]["account"]["segments"] = [{"shown": messages[1]["extra"]["raw_output"]}]
    assert len(check_omissions(messages).wrong) == 1


def test_an_account_that_names_another_source_is_found() -> None:
    messages = conversation(("cat a", BODY), ("cat b", "something else\n" * 40), ("cat a", BODY))
    segment = messages[5]["extra"]["account"]["segments"][0]
    segment["sources"] = ["call_1"]
    assert len(check_omissions(messages).wrong) == 1
    segment["sources"] = ["call_9"]
    assert "cannot see" in check_omissions(messages).wrong[0]


def test_a_source_of_the_same_batch_is_found() -> None:
    messages = conversation(("cat a", BODY), ("cat a", BODY))
    messages[3]["extra"]["account"]["batch"] = "0"
    assert "at the same time" in check_omissions(messages).wrong[0]


def test_an_omission_without_an_account_is_found() -> None:
    messages = conversation(("cat a", BODY), ("cat a", BODY))
    del messages[3]["extra"]["account"]
    assert check_omissions(messages).wrong == ["something was left out of a result that has no account"]


def test_a_run_without_readcache_has_nothing_to_prove() -> None:
    messages = copy.deepcopy(conversation(("cat a", BODY)))
    for message in messages[1::2]:
        del message["extra"]["account"], message["extra"]["full_output"]
    found = check_omissions(messages)
    assert (found.accounts, found.markers, found.wrong) == (0, 0, [])
