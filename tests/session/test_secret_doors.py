"""Secrets are shown to the agent, and are neither omitted nor stored, restored or pruned, at any door."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from readcache import Outcome, Policy, Reason, Session
from readcache.context import prune
from readcache.core.model.secrets import SECRET_NAMES
from readcache.core.restore.fit import why_not_name
from tests.helpers.chats import Step, chat, text

TOKEN = "ghp_" + "Zzsecretzz" * 4
KEY = "-----BEGIN RSA PRIVATE KEY-----\nzzsecretzz\n-----END RSA PRIVATE KEY-----\n"
# A name for each of `SECRET_NAMES`.
NAMES = (
    *(".env", ".env.local", ".env-prod", ".envrc", "prod.env", "/proc/1/environ", ".netrc", ".pgpass", ".pypirc"),
    *(".npmrc", ".git-credentials", ".htpasswd", ".my.cnf", ".dockercfg", ".aws/config", ".docker/config.json"),
    *(".kube/config", "kubeconfig", ".codex/auth.json", ".vault-token", ".aws/credentials", "credentials.json"),
    *("credentials.yml", "credentials.xml", "credentials.csv", ".credentials.json", "credentials.toml"),
    *(
        "application_default_credentials.json",
        "service-account-1.json",
        "service_account.json",
        "secrets.json",
        "secrets.yaml",
        "secrets.toml",
    ),
    *("terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars", ".bash_history", "id_rsa.old", "id_dsa"),
    *("id_ecdsa_sk", "id_ed25519", "a.ppk", "a.pem", "server.key", "a.p8", "a.p12", "a.pfx", "a.jks", "a.keystore"),
    *("a.kdbx", "a.ovpn"),
)


class Kept:
    """A session with a store, and what is in its files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.session = Session("/w", session_id="s", store=directory / "db")

    def has(self, what: str) -> bool:
        """Whether the store's files have it, now and once the session is closed."""
        now = self._bytes()
        self.session.close()
        return what.encode() in now + self._bytes()

    def _bytes(self) -> bytes:
        return b"".join(file.read_bytes() for file in self._directory.iterdir())


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path)
    yield kept
    kept.session.close()


def test_each_name_of_the_list_has_an_example() -> None:
    from readcache.core.model.paths import matches_any

    assert [glob for glob in SECRET_NAMES if not any(matches_any(name, (glob,)) for name in NAMES)] == []


@pytest.mark.parametrize("name", NAMES)
def test_one_list_decides_what_is_omitted_stored_restored_and_pruned(kept: Kept, name: str) -> None:
    output = "zzsecretzz of an unknown form\n" * 30
    for command in (f"cat {name}", f"awk 1 deploy/{name}"):
        assert [kept.session.observe(command, output).reason for _ in range(2)] == [Reason.PROTECTED] * 2
    assert kept.session.observe_read(name, output).reason is Reason.PROTECTED
    assert why_not_name(f"/w/{name}") is not None
    messages = chat("openai", *(Step(f"cat {name}", output) for _ in range(3)), Step("ls", "f\n"))
    assert prune(messages, kept.session) is messages
    kept.session.wrote(name, content=output)
    assert not kept.has("zzsecretzz")


@pytest.mark.parametrize("secret", [TOKEN + "\n", KEY])
@pytest.mark.parametrize("name", ["deploy_key", "tls.yaml", "notes.txt"])
def test_an_output_with_a_secret_of_a_known_form_is_shown_and_not_kept(kept: Kept, name: str, secret: str) -> None:
    output = text() + secret + text(of="after")
    for command in (f"cat {name}", f"cat -n {name}", "./print", f"cat {name} | cat"):
        replies = [kept.session.observe(command, output) for _ in range(2)]
        assert [(reply.text, reply.reason) for reply in replies] == [(output, Reason.PROTECTED)] * 2
    assert kept.session.observe_read(name, output).reason is Reason.PROTECTED
    assert kept.session.observe_tool("show", output).reason is Reason.PROTECTED
    assert kept.session.observe("cat f", text()).reason is Reason.NOT_SEEN, "nothing of it is a source"
    assert not kept.has("zzsecretzz")


def test_a_file_with_a_secret_that_we_read_ourselves_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "deploy_key").write_text(text() + KEY)
    (tmp_path / "state").mkdir()
    with Session(tmp_path, store=tmp_path / "state/db") as session:
        assert [session.read("deploy_key").reason for _ in range(2)] == [Reason.PROTECTED] * 2
        assert session.run("cat deploy_key").reason is Reason.PROTECTED
    assert b"zzsecretzz" not in (tmp_path / "state/db").read_bytes()


def test_an_output_without_the_secret_is_omitted_as_ever(kept: Kept) -> None:
    replies = [kept.session.observe("cat deploy_key.md", text()) for _ in range(2)]
    assert [reply.outcome for reply in replies] == [Outcome.FULL, Outcome.UNCHANGED]


@pytest.mark.parametrize(
    "command",
    [
        *("env", "printenv", "set", "export -p", "declare -x", "docker inspect x", "kubectl get secret x -o yaml"),
        *("gh auth token", "aws sts get-session-token", "vault kv get a", "op read op://a/b", "bash -c 'env | sort'"),
        *("echo $API_TOKEN", "grep -rh '' .", "grep -rhn '' .", "rg -n --no-filename '' ."),
    ],
)
def test_what_a_command_prints_that_is_asked_for_secrets_is_not_kept(kept: Kept, command: str) -> None:
    output = text() + f"{'7:' if '-n' in command or 'hn' in command else ''}API_TOKEN=zzsecretzz\n"
    assert [kept.session.observe(command, output).reason for _ in range(2)] == [Reason.PROTECTED] * 2
    assert not kept.has("zzsecretzz")


@pytest.mark.parametrize("command", ["env X=1 make", "set -e; cat f", "export A=1 && cat f", "docker logs web"])
def test_a_neighbour_of_such_a_command_is_omitted_and_kept(kept: Kept, command: str) -> None:
    replies = [kept.session.observe(command, text()) for _ in range(2)]
    assert [reply.text == text() for reply in replies] == [True, False]
    assert kept.has(command)


def test_a_secret_in_a_command_is_in_no_label_and_no_marker(kept: Kept) -> None:
    command = f"GH_TOKEN={TOKEN} API_KEY=zzsecretzz1 ./list"
    kept.session.observe(command, text(), call_id="c1")
    kept.session.observe("ls", "f\n")
    marker = kept.session.observe(command, text(), call_id="c2").text
    assert 'above in "GH_TOKEN=… API_KEY=… ./list"' in marker
    assert kept.session.observe(command, text() + "zzsecretzz1\n").reason is Reason.PROTECTED, "it printed the key"
    assert not kept.has("zzsecretzz")


@pytest.mark.parametrize(
    "command",
    [
        f"cat > config.py <<'EOF'\ntoken = '{TOKEN}'\nEOF",
        f"cat > deploy_key <<'EOF'\n{KEY}EOF",
        "cat > run.sh <<'EOF'\nAPI_KEY=zzsecretzz1 ./run\nEOF",
        "echo API_KEY=zzsecretzz1 | tee run.sh",
    ],
)
def test_a_secret_that_the_agent_writes_is_not_kept(kept: Kept, command: str) -> None:
    kept.session.observe(command, "", call_id="c1")
    kept.session.wrote("config.py", content=f"{text()}token = '{TOKEN}'\n")
    kept.session.wrote("other.py", content=f"{text()}{KEY}")
    assert not kept.has("zzsecretzz")


def test_a_secret_that_a_host_puts_into_a_result_is_not_kept(kept: Kept) -> None:
    kept.session.observe("cat f", text(), call_id="c1")
    shown = text() + f"note: your token is {TOKEN}\n"
    kept.session.settle("c1", shown)
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [_call("c1", "cat f")]},
        {"role": "tool", "tool_call_id": "c1", "content": f"{TOKEN}\n" + text().partition("\n")[2] + KEY},
    ]
    kept.session.sync(messages)
    assert kept.session.observe("cat f", text()).outcome is Outcome.PARTIAL, "the other lines are a source all the same"
    assert not kept.has("zzsecretzz")


def test_a_marker_beside_a_secret_of_the_host_is_retired_all_the_same(kept: Kept) -> None:
    kept.session.observe("cat f", text(), call_id="c1")
    marker = kept.session.observe("cat f; ls", text() + "f\n", call_id="c2").text
    assert marker.startswith("[")
    messages: list[dict[str, Any]] = []
    for name, command, shown in (("c1", "cat f", text()), ("c2", "cat f; ls", f"{KEY}{TOKEN}\n{marker}")):
        messages.append({"role": "assistant", "content": None, "tool_calls": [_call(name, command)]})
        messages.append({"role": "tool", "tool_call_id": name, "content": shown})
    assert kept.session.mend(messages) is messages
    messages[1] = {**messages[1], "content": "[cleared]"}
    repaired = str(kept.session.mend(messages)[3]["content"])
    assert repaired.startswith(f"{KEY}{TOKEN}\n[GONE ")
    assert not kept.has("zzsecretzz")


def _call(name: str, command: str) -> dict[str, object]:
    return {"id": name, "type": "function", "function": {"name": "bash", "arguments": f'{{"command": "{command}"}}'}}


@pytest.mark.parametrize(
    "arguments",
    [
        {"uri": "file:///w/%2Eenv"},
        '{"path": "\\u002eenv"}',
        {"path": "C:\\w\\.env"},
        {"path": "C:/w/.env"},
        {"paths": ["a.py", "deploy/.env"]},
    ],
)
def test_a_tool_that_is_given_the_name_of_a_protected_file_is_not_kept(kept: Kept, arguments: object) -> None:
    output = "zzsecretzz of an unknown form\n" * 30
    for _ in range(2):
        assert kept.session.observe_tool("fs_read", output, arguments=arguments).reason is Reason.PROTECTED  # type: ignore[arg-type]
    assert not kept.has("zzsecretzz")


@pytest.mark.parametrize(
    "heading",
    [
        *("C:\\w\\.env:12:", "C:/w/.env:12:", "File: .env\n", "### File: deploy/.env\n", "**File:** `.env`\n"),
        *('<document path=".env">\n', "<file name='.env'>\n", "file_path: .env\n", "Path = .env\n"),
    ],
)
def test_a_heading_of_a_tool_names_a_protected_file(kept: Kept, heading: str) -> None:
    output = f"{text()}{heading}API=zzsecretzz\n"
    assert kept.session.observe_tool("search", output).reason is Reason.PROTECTED
    assert not kept.has("zzsecretzz")


@pytest.mark.parametrize(
    "command",
    ["grep -rn 'process.env' src", "grep -n 'import.meta.env' a.ts", "jq '.key' a.json", "python3 x.py self.env"],
)
def test_an_attribute_is_no_name_of_a_file(kept: Kept, command: str) -> None:
    assert kept.session.observe(command, text()).reason is Reason.NOT_SEEN


PAGE = Path(__file__).parents[2] / "docs/threats.md"
STORED = re.findall(
    r"^\| .* \| `(.*)` \|$", PAGE.read_text().partition("## Secrets")[2].partition("\n## ")[0], re.MULTILINE
)


def test_the_page_on_threats_lists_what_is_stored_all_the_same() -> None:
    assert len(STORED) == 4


@pytest.mark.parametrize("command", STORED)
def test_what_the_page_on_threats_says_is_stored_is_stored(kept: Kept, command: str) -> None:
    kept.session.observe(command, text() + "password: zzsecretzz\n")
    assert kept.has("zzsecretzz")


def test_without_protection_nothing_is_protected(tmp_path: Path) -> None:
    with Session("/w", store=tmp_path / "db", policy=Policy(protected=())) as session:
        for command in ("env", "cat .env", "cat deploy_key"):
            replies = [session.observe(command, text(of=command) + KEY).text for _ in range(2)]
            assert ["zzsecretzz" in shown for shown in replies] == [True, False]
