"""What costs time with every character is done once for a call: parsing a command."""

from __future__ import annotations

import pytest

from readcache import Session
from readcache.core.shell import lexer, parse
from tests.helpers.files import TEXT


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
