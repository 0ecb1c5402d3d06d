"""Find the format of a file: the first format that recognises one of the file's first objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from readcache.core.model.plugins import load_plugin, plugin_names
from readcache.transcripts.atif import is_atif, load_atif
from readcache.transcripts.chats import is_chat, load_chats
from readcache.transcripts.claude_code import is_claude_code, load_claude_code
from readcache.transcripts.codex import is_codex, load_codex
from readcache.transcripts.copilot import is_copilot, load_copilot
from readcache.transcripts.gemini import is_gemini, load_gemini
from readcache.transcripts.opencode import is_opencode, load_opencode
from readcache.transcripts.openhands import is_openhands, load_openhands
from readcache.transcripts.pi import is_pi, load_pi
from readcache.transcripts.records import Content, HistoryRemoval, Item, NotUnderstood, Recording, RequestSent
from readcache.transcripts.swe_agent import is_swe_agent, load_swe_agent

# A request with less than this share of the previous request's tokens does not continue the conversation. This was so
# for 1 of 2,991 recorded requests of Claude Code, and for 85 of 10,159 requests of pi with an extension that prunes.
SHRUNK = 0.85
KEYS = 6  # names of keys in the error for an unknown format
# Errors that a loader raises if an object does not match its format.
_BAD_SHAPES = (AttributeError, IndexError, KeyError, TypeError, ValueError)


class Form(NamedTuple):
    """A format: its name, a function that recognises its objects, and a function that reads a file.

    `kept`: the directory in which the host keeps such files, or None: the variable that names the host's directory, the
    default of that variable, and the path below it.
    """

    name: str
    knows: Callable[[Mapping[str, Any]], bool]
    load: Callable[[Content], Iterator[Recording]]
    kept: tuple[str, str, str] | None = None


FORMS = [
    Form("claude-code", is_claude_code, load_claude_code, ("CLAUDE_CONFIG_DIR", "~/.claude", "projects")),
    Form("codex", is_codex, load_codex, ("CODEX_HOME", "~/.codex", "sessions")),
    Form("opencode", is_opencode, load_opencode),
    Form("pi", is_pi, load_pi, ("PI_CODING_AGENT_DIR", "~/.pi/agent", "sessions")),
    Form("copilot", is_copilot, load_copilot, ("COPILOT_HOME", "~/.copilot", "session-state")),
    Form("gemini", is_gemini, load_gemini, ("GEMINI_CLI_HOME", "~", ".gemini/tmp")),
    Form("swe-agent", is_swe_agent, load_swe_agent),
    Form("openhands", is_openhands, load_openhands),
    Form("atif", is_atif, load_atif),
    Form("messages", is_chat, load_chats),  # also mini-swe-agent; last, because other formats have messages too
]


def recordings_in(content: Content, forms: Sequence[Form] = FORMS) -> Iterator[Recording]:
    """Return the conversations of a file. Raise NotUnderstood, with file and line, if its format is unknown or if an
    object does not match it.

    Other packages add formats as entry points `readcache.transcripts`. These are tried last.
    """
    if not content.sample:
        return iter(())  # one line of a file, and it is damaged
    for form in chain(forms, (load_plugin("transcripts", name) for name in plugin_names("transcripts"))):
        if any(form.knows(row) for _, row in content.sample):
            return _loaded(form, content)
    names = ", ".join([*(form.name for form in forms), *plugin_names("transcripts")])
    line, row = content.sample[0]
    keys = ", ".join(repr(key[:30]) for key in list(row)[:KEYS])
    raise NotUnderstood(f"{content.location(line)}: a transcript of no known format ({names}); it has the keys {keys}")


def _loaded(form: Form, content: Content) -> Iterator[Recording]:
    try:
        yield from (replace(one, items=tuple(_with_unseen_removals(one.items))) for one in form.load(content))
    except _BAD_SHAPES as error:
        what = f"{type(error).__name__}: {error}"
        raise NotUnderstood(f"{content.location(content.line)}: does not match its format ({what})") from error


def _with_unseen_removals(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, and a removal before each request that is much shorter than the one before it.

    There the host, or an extension of it, removed something without a record in the transcript. So nothing before that
    request is proven to be visible.
    """
    before = 0
    for item in items:
        if isinstance(item, HistoryRemoval):
            before = 0
        elif isinstance(item, RequestSent):
            if item.prompt < before * SHRUNK:
                yield HistoryRemoval(compacts=False)
            before = item.prompt
        yield item
