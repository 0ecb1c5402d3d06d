"""What costs time with every character is done once for a call: digesting a text, parsing a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache import Session
from readcache.model import call, stored_text, text
from readcache.shell import lexer, parse
from tests.helpers.files import TEXT


@pytest.fixture
def digested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of which digests were made."""
    texts: list[str] = []

    def digest(of: str) -> str:
        texts.append(of)
        return real(of)

    real = text.digest
    for module in (call, stored_text):
        monkeypatch.setattr(module, "digest", digest)
    return texts


@pytest.mark.parametrize("durable", [False, True])
def test_a_text_is_digested_once(tmp_path: Path, digested: list[str], durable: bool) -> None:
    with Session("/w", session_id="s", store=tmp_path / "log.db" if durable else None) as session:
        for output in (TEXT, TEXT.replace("number", "nümber")):
            digested.clear()
            session.observe("cat f", output)
            assert digested.count(output) == 1


def test_a_command_is_parsed_once_whatever_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    sources: list[str] = []

    def tokenize(source: str) -> list[lexer.Token]:
        sources.append(source)
        return lexer.tokenize(source)

    monkeypatch.setattr(parse, "tokenize", tokenize)
    command = "cat only_here; cat g"
    for status in (0, 1, 2):
        Session("/w").observe(command, TEXT, exit_code=status)
    assert sources == [command]
