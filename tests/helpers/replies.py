"""What a test asks of a reply."""

from __future__ import annotations

from readcache import Omitted, Reply, Shown


def sources(reply: Reply) -> set[str]:
    """The call ids at which the lines that were left out stand."""
    return {source for segment in reply.segments if isinstance(segment, Omitted) for source in segment.sources}


def omits(reply: Reply) -> bool:
    """Whether anything was left out."""
    return any(isinstance(segment, Omitted) for segment in reply.segments)


def shown(reply: Reply) -> list[str]:
    """The pieces of the output that the reply shows."""
    return [segment.text for segment in reply.segments if isinstance(segment, Shown)]
