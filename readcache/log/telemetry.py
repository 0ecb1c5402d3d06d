"""Report each answer of a process to the metrics of `readcache serve`, and as an event of OpenTelemetry.

Nothing is reported unless somebody listens. A failure here never affects an answer.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from readcache.core.model.reply import Omitted, Reason, Reply


class Metric(NamedTuple):
    """A counter for Prometheus, which adds `_total` to its name. It is the sum of the counters of `Session.stats` that
    `counted` names. With a `label`, each of these counters is one value of the label."""

    name: str
    help: str
    counted: tuple[str, ...]
    label: str = ""


_LEFT_OUT = Reason.COVERED, Reason.OVERLAP, Reason.UNCHANGED_LINES, Reason.IDENTICAL, Reason.REPEATED_LINES
FAILED = Reason.INTERNAL_ERROR, Reason.STORE_FAILED
METRICS = (
    Metric("readcache_calls", "Tool results that were judged", ("calls",)),
    Metric("readcache_omissions", "Results with lines left out", tuple(r.value for r in _LEFT_OUT), "reason"),
    Metric("readcache_left_out_tokens", "Tokens left out, net of markers", ("tokens_saved", "tokens_bounced")),
    Metric("readcache_asked_again_tokens", "Those of them that were asked for again at once", ("tokens_bounced",)),
    Metric("readcache_bounces", "Omissions that were asked for again at once: a turn each", ("bounces",)),
    Metric("readcache_turns_avoided", "Writes of what was put back and not read again", ("turns_avoided",)),
    Metric("readcache_failures", "Results shown in full for a failure", tuple(r.value for r in FAILED), "cause"),
)
SECONDS = Metric("readcache_judging_seconds", "Time from a result to its reply", ())
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0)  # seconds
HOST, OTHER = "host", "other"  # the label of each metric, and its value for an unknown name
# The names of hosts and entry points. A sandbox may give itself any name, so only these become labels.
HOSTS = frozenset(
    (
        *("claude-agent-sdk", "claude-code", "codex", "copilot", "copilot-sdk", "gemini", "google-adk", "kilo"),
        *("langchain", "mcp", "mini-swe-agent", "openai-agents", "opencode", "openhands", "pi", "pydantic-ai"),
        *("python", "run", "serve", "shims", "strands"),
    )
)
EVENT = "readcache.reply"  # on the span in which a call is answered


# Called with a host, changes of the counters of `Session.stats` (by an answer, or by a report of the harness), and the
# seconds that it took to judge a call, or None. A listener must be quick, because the answer waits for it.
LISTENERS: list[Callable[[str, Mapping[str, int], float | None], None]] = []


def tell_failed(host: str) -> None:
    """Tell the listeners that a result was shown in full because of a bug in readcache. No log has the result."""
    tell_counted(host, {Reason.INTERNAL_ERROR.value: 1})


def tell_counted(host: str, changed: Mapping[str, int], seconds: float | None = None) -> None:
    """Tell the listeners how the counters of `Session.stats` changed, and the seconds that judging a call took."""
    for listener in LISTENERS:
        with contextlib.suppress(Exception):
            listener(host, changed, seconds)


def tell_answered(host: str, reply: Reply, seconds: float) -> None:
    """Tell the listeners how long it took to judge a call, and add the reply to the current span. There is a span only
    if the program has imported OpenTelemetry."""
    tell_counted(host, {}, seconds)
    if (trace := sys.modules.get("opentelemetry.trace")) is not None:
        with contextlib.suppress(Exception):
            span = trace.get_current_span()
            if span.is_recording():
                span.add_event(EVENT, dict(_attributes(host, reply)))


def _attributes(host: str, reply: Reply) -> Iterator[tuple[str, str | int | list[str]]]:
    omitted = [segment for segment in reply.segments if isinstance(segment, Omitted)]
    yield "readcache.host", host
    yield "readcache.outcome", reply.outcome.value
    yield "readcache.reason", reply.reason.value
    yield "readcache.tokens_saved", reply.tokens_saved
    yield "readcache.sources", [*dict.fromkeys(source for segment in omitted for source in segment.sources)]
