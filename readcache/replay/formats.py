"""Which format a file has: the first whose mark is in its first objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from readcache.replay.content import Content
from readcache.replay.loaders.claude_code import is_claude_code, load_claude_code
from readcache.replay.loaders.codex import is_codex, load_codex
from readcache.replay.loaders.plain_form import is_normalised, load_normalised
from readcache.replay.records import NotUnderstood, Recording


class Form(NamedTuple):
    """A format: its name, whether an object is one of its own, and what reads a file of it."""

    name: str
    knows: Callable[[Mapping[str, Any]], bool]
    load: Callable[[Content], Iterator[Recording]]


FORMS = (
    Form("normalised", is_normalised, load_normalised),
    Form("claude-code", is_claude_code, load_claude_code),
    Form("codex", is_codex, load_codex),
)


def recordings_in(content: Content) -> Iterator[Recording]:
    """The conversations of a file. NotUnderstood, with file and line, for one of no known format."""
    if not content.sample and content.whole is None:
        return iter(())  # a damaged line
    for form in FORMS:
        if any(form.knows(row) for _, row in content.sample):
            return form.load(content)
    line = content.sample[0][0] if content.sample else 1
    names = ", ".join(form.name for form in FORMS)
    raise NotUnderstood(f"{content.place(line)}: a transcript of no known format ({names})")
