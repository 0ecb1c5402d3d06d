"""Assertions about a reply. Each raises AssertionError with what the reply did instead."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from readcache import Omitted, Outcome, Reason, Reply
from readcache.model.text import SEPARATORS, split_lines, split_number


def assert_shown(reply: Reply, *, reason: Reason | None = None) -> None:
    """Nothing was left out; with `reason`, for that reason."""
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
    """Something was left out. What is not given is not checked.

    `path`: of this file, and of no other; a relative one also fits the end of an absolute one. `lines`: exactly these,
    first and last (1-based, inclusive), in however many stretches. `source`: the calls named as the places where they
    stand are this one, or these. `reason`: the reply's.
    """
    found = [segment for segment in reply.segments if isinstance(segment, Omitted)]
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
    """The real output, after every line of it was found where the reader can see it: shown by the reply, or left out
    and standing at one of its sources, with or without a line number in front.

    `context`: for each call id, the text that the conversation now holds of it: the result, and the command too where
    that was a heredoc with the file's content. AssertionError names the first line that is not there.
    """
    rest = split_lines(reply.full_text)
    for segment in reply.segments:
        if isinstance(segment, Omitted):
            count = segment.end - segment.start + 1
            _require_visible(segment, rest[:count], context)
        else:
            shown = split_lines(segment.text)
            count = len(shown)
            if rest[:count] != shown:
                raise AssertionError(f"the reply shows {shown[:1]} where the output says {rest[:1]}")
        rest = rest[count:]
    if rest:
        raise AssertionError(f"{len(rest)} lines of the output are in no segment, from {rest[0]!r} on")
    return reply.full_text


def _require_visible(omitted: Omitted, lines: Sequence[str], context: Mapping[str, str]) -> None:
    visible: set[str] = set()
    for source in omitted.sources:
        if source not in context:
            raise AssertionError(f"the reply points at {source}, which the context does not contain")
        visible.update(split_lines(context[source]))
    bodies = {body for line in visible for body in _bodies(line)}
    for number, line in enumerate(lines, omitted.start):
        if line not in visible and line not in bodies and bodies.isdisjoint(_bodies(line)):
            raise AssertionError(
                f"line {number} of {omitted.path or 'the output'} was left out, but does not stand at "
                f"{', '.join(omitted.sources)}: {line!r}"
            )


def _bodies(line: str) -> set[str]:
    """What the line says behind its number, for each form of number that it may be read to have."""
    return {found[1] for sep in SEPARATORS if (found := split_number(line, sep)) is not None}


def _is_of(omitted: Omitted, path: str) -> bool:
    return omitted.path is not None and (omitted.path == path or f"/{omitted.path}".endswith(f"/{path}"))


def _expect(held: bool, what: str, reply: Reply) -> None:
    """Raises AssertionError unless `held`, with what was expected and what the reply did."""
    if not held:
        raise AssertionError(f"expected {what}, but {_account(reply)}")


def _account(reply: Reply) -> str:
    """The reply in one line, for messages."""
    left_out = [
        f"lines {s.start}-{s.end} of {s.path or 'the output'} (see {', '.join(s.sources)})"
        for s in reply.segments
        if isinstance(s, Omitted)
    ]
    what = f"left out {'; '.join(left_out)}" if left_out else "left out nothing"
    return f"{reply.call_id} {what}: {reply.outcome.name}, {reply.reason.value}"
