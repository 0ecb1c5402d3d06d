"""Texts that are certainly secrets, and those that only look like some."""

from __future__ import annotations

import random
import string

import pytest

from readcache.core.model.secrets import contains_secret, secrets_given, without_given, without_secrets

WORDS = string.ascii_letters + string.digits


def any_word(length: int, of: str = WORDS) -> str:
    return "".join(random.Random(length).choices(of, k=length))


HEXADECIMAL = "0123456789abcdef"
TOKENS = {
    "AWS": "AKIA" + any_word(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "AWS, for a session": "ASIA" + any_word(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    **{f"GitHub, {kind}": f"gh{kind}_{any_word(36)}" for kind in "pousr"},
    "GitHub, fine-grained": f"github_pat_{any_word(22)}_{any_word(59)}",
    "GitLab": f"glpat-{any_word(20)}",
    "Slack": f"xoxb-123456789012-1234567890123-{any_word(24)}",
    "Slack's webhook": f"https://hooks.slack.com/services/T0123ABCD/B0123ABCD/{any_word(24)}",
    "Anthropic": f"sk-ant-api03-{any_word(93)}AA",
    "OpenAI": f"sk-proj-{any_word(74)}T3BlbkFJ{any_word(73)}",
    "OpenAI, older": f"sk-{any_word(20)}T3BlbkFJ{any_word(20)}",
    "OpenRouter": f"sk-or-v1-{any_word(64, HEXADECIMAL)}",
    "Google": f"AIza{any_word(35)}",
    "npm": f"npm_{any_word(36)}",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{any_word(60)}",
    "Stripe": f"sk_live_{any_word(24)}",
    "SendGrid": f"SG.{any_word(22)}.{any_word(43)}",
    "Hugging Face": f"hf_{any_word(34)}",
    "Vault": f"hvs.{any_word(95)}",
    "a JWT": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{any_word(43)}",
    "age": "AGE-SECRET-KEY-1" + any_word(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
}
BLOCKS = {
    "RSA": "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n",
    "OpenSSH": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXkt\n",
    "PGP": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQOYBF\n",
    "numbered by grep": "7:-----BEGIN PRIVATE KEY-----\n8:MIIEow\n",
    "indented in YAML": "key: |\n    -----BEGIN EC PRIVATE KEY-----\n    MHcCAQEE\n",
    "in a string": '"-----BEGIN PRIVATE KEY-----\\nMIIEow',
    "on one line": f"-----BEGIN PRIVATE KEY----- {any_word(64)}",
    "CRLF": "-----BEGIN PRIVATE KEY-----\r\nMIIEow\r\n",
    "Kubernetes": "apiVersion: v1\nkind: Secret\ndata:\n  password: aHVudGVyMg==\n",
    "Kubernetes, JSON": '{"kind": "Secret", "data": {"password": "aHVudGVyMg=="}}',
}


@pytest.mark.parametrize("secret", [*TOKENS.values(), *BLOCKS.values()], ids=[*TOKENS, *BLOCKS])
def test_a_secret_of_a_known_form_is_found_and_taken_out(secret: str) -> None:
    for text in (secret, f"x = '{secret}'", f"before\n{secret}\nafter\n", f"Authorization: Bearer {secret}"):
        assert contains_secret(text)
        left = without_secrets(text)
        assert not contains_secret(left)
        assert "…" in left
        assert secret[-12:] not in left
        assert left.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        *("AKIAIOSFODNN7EXAMPLE", "ghp_" + "x" * 36, "github_pat_" + "X" * 40, "sk-ant-api03-" + "x" * 40),
        *("xoxb-your-token-here", "sk_live_...", "AIza" + "*" * 35, "npm_config_registry=https://registry.example"),
        *(
            'if "-----BEGIN PRIVATE KEY-----" in text:',
            "-----BEGIN PUBLIC KEY-----\nMIIB\n",
            "-----BEGIN CERTIFICATE-----\n",
        ),
        *("the line `-----BEGIN RSA PRIVATE KEY-----` begins a key", "kind: SecretStore\n", "eyJhbGciOi.eyJ.x"),
        *("", "ghp", "hf_model_name_of_some_length_that_is_no_token_at_all", "a.eyJ", "DASIA" + "A" * 16),
    ],
)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert not contains_secret(text)
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("export API_KEY=a1b2c3d4e5; ls", "export API_KEY=…; ls"),
        ("DB_PASSWORD='a1b2c3d4e5' ./run", "DB_PASSWORD='…' ./run"),
        ("curl -H 'Authorization: Bearer a1b2c3d4e5' x", "curl -H 'Authorization: Bearer …' x"),
        ("mysql -u root -pa1b2c3d4e5 db", "mysql -u root -p… db"),
        ("login --password a1b2c3d4e5 --token=b2c3d4e5f6", "login --password … --token=…"),
        ("psql postgres://me:a1b2c3d4e5@host/db", "psql postgres://me:…@host/db"),
        (f"GH_TOKEN={TOKENS['GitHub, p']} gh pr list", "GH_TOKEN=… gh pr list"),
    ],
)
def test_a_secret_that_a_command_is_given_is_taken_out_of_it(command: str, kept: str) -> None:
    assert without_given(command) == kept


@pytest.mark.parametrize(
    "command",
    [
        *(
            "MAX_TOKENS=4096000 ./run",
            "API_KEY=$OTHER_KEY_1 ./run",
            'API_KEY="$(cat key1)" ./run',
            "CACHE_KEY=users ls",
        ),
        *("psql postgres://postgres:postgres@localhost/db", "ls --token", "git clone https://github.com/a/b1c2d3e4f5"),
    ],
)
def test_a_command_without_a_secret_stays_as_it_is(command: str) -> None:
    assert list(secrets_given(command)) == []
    assert without_given(command) == command


def test_the_lines_behind_a_key_stay() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEow\nAKCAQEA==\n-----END PRIVATE KEY-----\n"
    assert without_secrets(f"a(1)\n{key}b(2)\n") == "a(1)\n…\n…\n…\n…\nb(2)\n"
