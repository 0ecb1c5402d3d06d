"""Assertions about a reply. Each raises AssertionError, and the error says what the reply did instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from readcache import Omitted, Outcome, Reason, Reply
from readcache.core.model.spec.marker import Untrue, demand
from readcache.core.model.spec.world import World


def assert_shown(reply: Reply, *, reason: Reason | None = None) -> None:
    """Check that nothing was omitted. If `reason` is given, it must be the reply's reason."""
    _expect(reply.outcome is Outcome.FULL and reply.text == reply.full_text, "all of the output", reply)
    _expect(reason in (None, reply.reason), f"the reason {reason and reason.value}", reply)


def assert_omitted(
    reply: Reply,
    path: str | None = None,
    *,
    lines: tuple[int, int] | None = None,
    source: str | Collection[str] | None = None,
    reason: Reason | None = None,
) -> None:
    """Check that something was omitted. Arguments that are None are not checked.

    - `path`: only lines of this file were omitted. A relative path also fits the end of an absolute one.
    - `lines`: exactly these lines were omitted, first and last (1-based, inclusive), in any number of ranges.
    - `source`: the omissions name exactly this call, or these calls, as sources.
    - `reason`: the reply has this reason.
    """
    found = [omitted for omitted, _, _ in reply.omissions()]
    of_path = path is None or all(_is_of(omitted, path) for omitted in found)
    _expect(bool(found) and of_path, f"lines of {path or 'a file'} to be left out", reply)
    if lines is not None:
        numbers = sorted(number for omitted in found for number in range(omitted.start, omitted.end + 1))
        all_left_out = numbers == list(range(lines[0], lines[1] + 1))
        _expect(all_left_out, f"lines {lines[0]}-{lines[1]} to be left out", reply)
    if source is not None:
        named = {name for omitted in found for name in omitted.sources}
        _expect(named == ({source} if isinstance(source, str) else set(source)), f"a pointer to {source!r}", reply)
    _expect(reason in (None, reply.reason), f"the reason {reason and reason.value}", reply)


def reconstruct(reply: Reply, context: Mapping[str, str]) -> str:
    """Return the real output, after checking that the reader can see every line of it.

    The reply must show each line, or omit it and have it at its sources, with or without a line number before it.
    `context`: for each call ID, its text in the conversation now: the result, and also the command if that was a
    heredoc with the file's content. Raise AssertionError if a line is missing; it names the first one.
    """
    world = World()
    for call_id, text in context.items():
        world.shown("", call_id, text)
    try:
        demand(world.answered("", reply, reply.full_text))
    except Untrue as broken:
        raise AssertionError(str(broken)) from None
    return reply.full_text


def _is_of(omitted: Omitted, path: str) -> bool:
    return omitted.path is not None and (omitted.path == path or f"/{omitted.path}".endswith(f"/{path}"))


def _expect(is_met: bool, what: str, reply: Reply) -> None:
    """Raise AssertionError unless `is_met`. The error says what was expected and what the reply did."""
    if not is_met:
        raise AssertionError(f"expected {what}, but {_account(reply)}")


def _account(reply: Reply) -> str:
    """Describe the reply in one line, for error messages."""
    left_out = [
        f"lines {s.start}-{s.end} of {s.path or 'the output'} (see {', '.join(s.sources)})"
        for s, _, _ in reply.omissions()
    ]
    what = f"left out {'; '.join(left_out)}" if left_out else "left out nothing"
    return f"{reply.call_id} {what}: {reply.outcome.name}, {reply.reason.value}"
