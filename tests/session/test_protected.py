"""`Policy.protected`: one rule for what is left out, put back and pruned."""

from __future__ import annotations

import pytest

from readcache import Policy, Reason, Session
from readcache.context import prune
from readcache.model.paths import matches
from readcache.restore.plan import RestorePlan
from tests.helpers.chats import Step, chat, text

GLOB = "secrets/*.txt"


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.pem", "/w/deep/key.pem"),
        ("secrets/*.txt", "/w/deep/secrets/a.txt"),
        ("**/secrets/*", "/w/secrets/a"),
        ("/w/vendor/*", "/w/vendor/deep/x.py"),
        ("SKILL.md", "/w/SKILL.md"),
    ],
)
def test_a_glob_names_files_below_any_directory(glob: str, path: str) -> None:
    assert matches(path, [glob])
    assert not matches("/w/other.py", [glob])


def protecting() -> Session:
    return Session("/w", policy=Policy(protected=(GLOB,)))


def test_a_protected_file_is_shown_whole_each_time() -> None:
    session = protecting()
    assert [session.observe("cat secrets/a.txt", text()).reason for _ in range(2)] == [Reason.PROTECTED] * 2


@pytest.mark.parametrize(
    "command",
    [
        "awk 1 secrets/a.txt",
        "cat -A ./secrets/a.txt | tr a-z A-Z",
        "python3 -c \"print(open('secrets/a.txt').read())\"",
        "sort <secrets/a.txt",
        "grep -h x /w/deep/secrets/a.txt other.txt",
    ],
)
def test_a_command_whose_words_name_a_protected_file_is_shown_whole_each_time(command: str) -> None:
    session = protecting()
    assert [session.observe(command, text()).reason for _ in range(2)] == [Reason.PROTECTED] * 2
    other = command.replace("secrets/a.txt", "public/a.txt")
    assert [session.observe(other, text(of="other")).outcome.name for _ in range(2)][1] != "FULL"


def test_a_protected_file_that_the_agent_wrote_is_not_restored() -> None:
    session = protecting()
    session.wrote("secrets/a.txt", content=text())
    session.observe("cat > secrets/b.txt <<'EOF'\n" + text() + "EOF\n", "")
    refused = (("/w/secrets/a.txt", "protected"), ("/w/secrets/b.txt", "protected"))
    assert session.restore_plan() == RestorePlan(left_out=refused)


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_a_protected_file_is_not_pruned(shape: str) -> None:
    messages = chat(shape, *(Step("cat secrets/a.txt", text()) for _ in range(3)), Step("ls", "f\n"))
    assert prune(messages, protecting()) is messages
    assert prune(messages) is not messages
