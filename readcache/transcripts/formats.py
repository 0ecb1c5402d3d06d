"""Find the format of a file: the first format that recognises one of the file's first objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from readcache.core.model.plugins import load_plugin, plugin_names
from readcache.transcripts import atif, chats, claude_code, codex, copilot, gemini, opencode, openhands, pi, swe_agent
from readcache.transcripts.records import Content, HistoryRemoval, Item, NotUnderstood, Recording, RequestSent
from readcache.transcripts.records import Form as Form

# A request with less than this share of the previous request's tokens does not continue the conversation. This was so
# for 1 of 2,991 recorded requests of Claude Code, and for 85 of 10,159 requests of pi with an extension that prunes.
SHRUNK = 0.85
KEYS = 6  # names of keys in the error for an unknown format
# Errors that a loader raises if an object does not match its format.
_BAD_SHAPES = (AttributeError, IndexError, KeyError, TypeError, ValueError)


# `chats` is last, because other formats have messages, too.
_MODULES = (claude_code, codex, opencode, pi, copilot, gemini, swe_agent, openhands, atif, chats)
FORMS = [module.FORM for module in _MODULES]


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
