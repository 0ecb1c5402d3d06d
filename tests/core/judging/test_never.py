"""Which commands count as the agent's answer: commands do, and what merely stands in them does not."""

from __future__ import annotations

import pytest

from readcache import Policy, Session
from readcache.core.model.reply import Reason
from tests.helpers.files import text

ANSWERS = (
    "submit",
    "  submit",
    "cd x && submit",
    "git add -A; submit",
    "submit < patch.txt",
    "echo a\nsubmit",
    "# done\nsubmit",
    "cat > f <<'EOF'\nx\nEOF\nsubmit",
    "if true; then\n  submit\nfi",
    "while true\ndo\nsubmit\ndone",
    "case x in\n a) submit;;\nesac",
    "submit() { cat f; }\nsubmit",
    "bash <<EOF\nsubmit\nEOF",
    "bash -c 'true\nsubmit'",
    'echo "$(\nsubmit\n)"',
    "cat <<EOF\n$(submit)\nEOF",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat f",
    "git diff > p\necho 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'; cat p",
)
OTHERS = (
    "submit = 1",
    "python3 -c 'submit(form)'",
    "submitted",
    "grep submit f",
    "echo x\n# submit",
    "echo 'x' submit",
)


@pytest.mark.parametrize("command", ANSWERS)
def test_the_output_of_an_answer_is_never_touched(command: str) -> None:
    assert Session("/r").observe(command, text()).reason is Reason.NEVER


@pytest.mark.parametrize("command", OTHERS)
def test_a_word_that_begins_no_command_is_no_answer(command: str) -> None:
    assert Session("/r").observe(command, text()).reason is not Reason.NEVER


@pytest.mark.parametrize(
    "command", ["cat > form.py <<'EOF'\nsubmit()\nEOF\ncat form.py", "git commit -m 'Forms\n\nsubmit is a button'"]
)
def test_what_only_looks_like_an_answer_is_shown_in_full(command: str) -> None:
    assert Session("/r").observe(command, text()).reason is Reason.NEVER


def test_a_pattern_of_the_users_own_sees_a_command_over_several_lines() -> None:
    session = Session("/r", policy=Policy(never=("deploy .*prod",)))
    assert session.observe("./deploy --to prod", text()).reason is Reason.NEVER
    assert session.observe("./deploy \\\n  --to prod", text()).reason is Reason.NEVER
    assert session.observe("./deploy --to test", text()).reason is not Reason.NEVER
