"""`Policy.protected`: one rule for what is left out, put back and pruned."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Outcome, Policy, Reason, Session
from readcache.context import prune
from readcache.core.model.paths import literals_of, matches_any
from readcache.core.model.secrets import SECRET_NAMES
from readcache.core.restore.plan import RestorePlan
from readcache.hosts.adapter_settings import policy_by_settings
from readcache.process.buffered import chosen_policy
from readcache.process.settings import read_settings
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
    assert matches_any(path, [glob])
    assert not matches_any("/w/other.py", [glob])


NAMES = (
    "a",
    "abc",
    ".env",
    ".env.local",
    "secrets",
    "k.pem",
    "a.txt",
    "x",
    "y",
    "w",
    "vendor",
    "",
    "credentials",
    "\n",
)
GLOBS = (
    *("*.pem", "secrets/*.txt", "**/secrets/*", "/w/vendor/*", ".env", ".env.*", "a?c", "[ab]x", "*", "**/x/**/y", ""),
    *("x/**", "[!a]*", "a[]x]", "credentials"),
)


@given(
    path=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), globs=st.lists(st.sampled_from(GLOBS), max_size=3)
)
def test_one_pattern_says_the_same_as_each_glob_alone(path: list[str], globs: list[str]) -> None:
    name = "/".join(path)
    forms = [form for glob in globs for form in (glob, glob.replace("**/", ""))]
    expected = any(fnmatchcase(name, form) or fnmatchcase(name, f"*/{form}") for form in forms)
    assert matches_any(name, globs) is expected
    found = any(part.search(f"cat {name}") for part in literals_of(tuple(globs)))
    assert not expected or found, "what cannot be found is not looked for"


def protecting() -> Session:
    return Session("/w", policy=Policy(protected=(GLOB,)))


def on_disk(place: Path) -> bytes:
    return b"".join(file.read_bytes() for file in place.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        "cat secrets/a.txt",
        "awk 1 secrets/a.txt",
        "cat > secrets/a.txt <<'E'\nKEY=hunter2\nE\ncat other",
        "echo KEY=hunter2 > secrets/a.txt",
        "cd secrets && echo KEY=hunter2 > a.txt",
        "cd secrets; cat > a.txt <<E\nKEY=hunter2\nE",
        "cat > other <<E\nsome text\nE\nsed -i s/x/hunter2/ secrets/a.txt",
        "cat secrets/a.txt; sed -i s/x/hunter2/ secrets/a.txt",
    ],
)
def test_of_a_protected_file_nothing_is_kept(tmp_path: Path, command: str) -> None:
    with Session("/w", store=tmp_path / "db", policy=Policy(protected=(GLOB,))) as session:
        output = "KEY=hunter2\n" * 30 if command.startswith(("cat", "awk")) else ""
        assert session.observe("cat secrets/a.txt", "KEY=hunter2\n" * 30).full_text.count("hunter2") == 30
        session.observe(command, output, call_id="c1")
        session.settle("c1", output + "KEY=hunter2 and more\n")
        session.wrote("secrets/a.txt", content="KEY=hunter2\n")
        session.observe_read("secrets/a.txt", "KEY=hunter2\n" * 30)
        assert b"hunter2" not in on_disk(tmp_path)
        assert b"secrets/a.txt" in on_disk(tmp_path) or "cd" in command
    assert b"hunter2" not in on_disk(tmp_path)


def test_of_an_output_that_a_harness_reads_as_an_answer_nothing_is_kept(tmp_path: Path) -> None:
    with Session("/w", store=tmp_path / "db", policy=Policy(never=("^submit",))) as session:
        assert session.observe("submit", "hunter2\n" * 30, call_id="c1").reason is Reason.NEVER
        session.settle("c1", "hunter2\n" * 10)
        session.observe("cat f", "hunter3\n" * 30)
        assert b"hunter3" in on_disk(tmp_path)
        assert b"hunter2" not in on_disk(tmp_path)


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
    assert session.restore_plan() == RestorePlan()


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_a_protected_file_is_not_pruned(shape: str) -> None:
    messages = chat(shape, *(Step("cat secrets/a.txt", text()) for _ in range(3)), Step("ls", "f\n"))
    assert prune(messages, protecting()) is messages
    assert prune(messages) is not messages


# ------------------------------------------------------------ by a link of another name


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A directory with a protected file, and links of other names to it and to its directory."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/a.txt").write_text("KEY=hunter2\n" * 30)
    (tmp_path / "link").symlink_to("secrets/a.txt")
    (tmp_path / "directory").symlink_to("secrets")
    (tmp_path / "further").symlink_to(tmp_path / "link")
    return tmp_path


@pytest.mark.parametrize("path", ["link", "directory/a.txt", "further"])
def test_a_link_to_a_protected_file_is_protected(linked: Path, path: str) -> None:
    for read in ("run", "read", "observe", "observe_read"):
        session = Session(linked, store=linked / "state/db", policy=Policy(protected=(GLOB,)), local=True)
        output = (linked / path).read_text()
        with session:
            for _ in range(2):
                if read == "run":
                    reply = session.run(f"cat {path}")
                elif read == "read":
                    reply = session.read(path)
                elif read == "observe":
                    reply = session.observe(f"cd {linked}; cat {path}", output, cwd="/")
                else:
                    reply = session.observe_read(path, output)
                assert (reply.text, reply.reason) == (output, Reason.PROTECTED), read
            assert b"hunter2" not in on_disk(linked / "state")


@pytest.mark.parametrize("command", ["awk 1 link", "cd /; cat < {}/further", "f=link; cat $f", "awk 1 directory/a.txt"])
def test_a_command_whose_words_name_a_link_to_a_protected_file_is_shown_whole_each_time(
    linked: Path, command: str
) -> None:
    session = Session(linked, policy=Policy(protected=(GLOB,)))
    assert [session.run(command.format(linked)).reason for _ in range(2)] == [Reason.PROTECTED] * 2


def test_of_what_is_written_through_a_link_to_a_protected_file_nothing_is_kept(linked: Path) -> None:
    with Session(linked, store=linked / "state/db", policy=Policy(protected=(GLOB,))) as session:
        session.run("cat > link <<'E'\nKEY=hunter3\nE\n")
        session.wrote("link", content="KEY=hunter4\n")
        session.run("echo KEY=hunter5 > directory/b.txt")
        assert (linked / "secrets/a.txt").read_text() == "KEY=hunter3\n"
        assert not any(b"hunter%d" % number in on_disk(linked / "state") for number in (3, 4, 5))


@pytest.mark.parametrize("word", ["~\0", "\0", "\ud800", "~nobody/x", "a" * 5000, "loop", "~/x"])
def test_words_that_are_no_names_of_files_do_no_harm(linked: Path, word: str) -> None:
    (linked / "loop").symlink_to("loop")
    session = Session(linked, policy=Policy(protected=(GLOB,)), local=True)
    assert session.observe(f"cat {word} f", text()).text == text()
    assert session.observe(f"awk 1 {word} link", text()).reason is Reason.PROTECTED


def test_a_link_in_the_home_directory_is_followed(linked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(linked))
    session = Session("/", policy=Policy(protected=(GLOB,)))
    assert session.run("cat ~/link").reason is Reason.PROTECTED


def test_a_link_to_another_file_is_not_protected(linked: Path) -> None:
    (linked / "other").write_text(text())
    (linked / "link").unlink()
    (linked / "link").symlink_to("other")
    session = Session(linked, policy=Policy(protected=(GLOB,)))
    assert [session.run("cat link").reason for _ in range(2)][1] is Reason.COVERED


def test_whose_files_are_elsewhere_asks_no_disk_of_this_machine(linked: Path) -> None:
    session = Session(linked, policy=Policy(protected=(GLOB,)))
    output = (linked / "link").read_text()
    assert [session.observe("cat link", output).reason for _ in range(2)][1] is Reason.COVERED


@pytest.mark.parametrize("name", [".env", "deploy/.env.local", "server.pem", "/root/.ssh/id_rsa", "~/.aws/credentials"])
def test_the_usual_secrets_are_not_kept_by_default(tmp_path: Path, name: str) -> None:
    with Session("/w", store=tmp_path / "db") as session:
        for _ in range(2):
            assert session.observe(f"cat {name}", "KEY=hunter2\n" * 30).reason is Reason.PROTECTED
        assert b"hunter2" not in on_disk(tmp_path)
    assert b"hunter2" not in on_disk(tmp_path)


@pytest.mark.parametrize("name", ["credentials.py", "environment.ts", "key.go", "tests/env.py"])
def test_code_about_secrets_is_a_file_like_any_other(name: str) -> None:
    session = Session("/w")
    assert [session.observe(f"cat {name}", text()).outcome.name for _ in range(2)] == ["FULL", "UNCHANGED"]


def test_a_variable_adds_to_the_protected_files_at_every_door() -> None:
    settings = read_settings({"READCACHE_PROTECTED": "notes/*, *.secret"})
    by_adapter = policy_by_settings({}, {"READCACHE_PROTECTED": "notes/*, *.secret"})
    for policy in (chosen_policy(settings), by_adapter):
        assert policy.protected == (*SECRET_NAMES, "notes/*", "*.secret")
    assert chosen_policy(read_settings({})) == Policy()


# ------------------------------------------------------------ files that the command does not name


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A directory with code, and a secret in three protected files."""
    for name in (".env", "server.pem", "deploy/.env.local"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("KEY=hunter2\n" * 30)
    (tmp_path / "a.py").write_text(text() + "KEY = 1\n")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        *("grep -r KEY .", "grep -rn KEY .", "grep -rn -A2 KEY . | head -40", "grep -rn KEY . | grep -v a.py"),
        *("tail -n +1 *.pem a.py", "tail -n +1 a.py deploy/.e*", "head -50 server.* a.py"),
        *("cat {.env,a.py}", "cat a.py .en?", "cat deploy/.*", "cat .e*"),
        *("for f in .env a.py; do cat $f; done", "for f in .e*; do cat $f; done", "f=.env; cat $f"),
        *("cat $(echo .env)", "ls .env | xargs cat", "find . -name '.env*' -exec cat {} +", "xargs cat <<< .env"),
        *("python3 -c \"print(open('.env').read())\"", "while read l; do echo $l; done < .env", "diff -u a.py .env"),
        *("git diff --no-index a.py .env", "grep -c '' .env && cat <.env"),
        *("cat .{env,none} 2>/dev/null", "cat {a.py,.{x,env}} 2>/dev/null", "cat $(ls -A | grep -w env)"),
        *("for f in $(ls -A); do cat $f; done 2>/dev/null", "ls -A | while read f; do cat $f; done 2>/dev/null"),
        *("grep -rh KEY .", "find . -type f | grep -v db | xargs cat"),
        *("sed -n 1,5p ./.env", "base64 .env | base64 -d", "cp .env x.txt; cat x.txt", "ln -s .env x; cat x"),
    ],
)
def test_a_secret_is_not_kept_however_its_file_is_read(planted: Path, command: str) -> None:
    with Session(planted, store=planted / "state/db") as session:
        reply = session.run(command)
        assert "hunter2" in reply.text or "base64" in command
        assert reply.text == reply.full_text
        assert b"hunter2" not in on_disk(planted / "state")
    assert b"hunter2" not in on_disk(planted / "state")


@pytest.mark.parametrize(
    "output",
    [
        "{}:3:KEY=hunter2\n",
        "{}-3-KEY=hunter2\n",
        "{}:KEY=hunter2\n",
        "{}\n3:KEY=hunter2\n",
        "==> {} <==\nKEY=hunter2\n",
        "--- a/{}\n+++ b/{}\n@@ -1 +1 @@\n-KEY=1\n+KEY=hunter2\n",
    ],
)
def test_an_output_that_names_a_protected_file_above_its_lines_is_not_kept(tmp_path: Path, output: str) -> None:
    with Session("/w", store=tmp_path / "db") as session:
        for name in ("deploy/.env", "./id_rsa"):
            assert session.observe("./show", text() + output.replace("{}", name)).reason is Reason.PROTECTED
        assert b"hunter2" not in on_disk(tmp_path)


@pytest.mark.parametrize(
    "output", ["a.py\n.env\nb.py\n", "see .env: it has the key\n", "import os  # .env\n", " M .env\n"]
)
def test_an_output_that_speaks_of_a_protected_file_is_kept(output: str) -> None:
    session = Session("/w")
    assert session.observe("./show", text() + output).reason is Reason.NOT_SEEN


def test_a_file_that_we_read_is_not_protected_for_a_heading_in_it(tmp_path: Path) -> None:
    text = "==> .env <==\n" + "".join(f"line {number} of a file about heads\n" for number in range(80))
    (tmp_path / "notes").write_text(text)
    session = Session(tmp_path)
    assert session.read("notes").outcome is Outcome.FULL
    session.run("true")
    assert session.read("notes", end=60).outcome is Outcome.UNCHANGED
    assert session.observe("head *", text).reason is Reason.PROTECTED
