"""Replies as events on the current span of OpenTelemetry, told through its API alone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from readcache import Session
from readcache.log.telemetry import EVENT

TEXT = "".join(f"line {number} of a file\n" for number in range(60))


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("an agent").start_as_current_span("tool"):
        yield exporter
    provider.shutdown()


def events() -> list[dict[str, Any]]:
    """Those of the current span."""
    span: Any = trace.get_current_span()
    return [dict(event.attributes) for event in span.events if event.name == EVENT]


def test_each_reply_is_an_event_on_the_tools_span(exported: InMemorySpanExporter) -> None:
    tracer = trace.get_current_span()
    session = Session("/w", host="my-agent")
    session.observe("cat f", TEXT, call_id="one")
    reply = session.observe("cat f", TEXT, call_id="two")
    first, second = events()
    assert (first["readcache.reason"], first["readcache.sources"]) == ("not_seen", ())
    assert second == {
        "readcache.host": "my-agent",
        "readcache.outcome": "unchanged",
        "readcache.reason": "covered",
        "readcache.tokens_saved": reply.tokens_saved,
        "readcache.sources": ("one",),
    }
    tracer.end()
    assert [len(span.events) for span in exported.get_finished_spans()] == [2], "they are exported"


@pytest.mark.usefixtures("exported")
def test_so_it_is_where_the_call_is_awaited_or_the_tool_wrapped() -> None:
    session = Session("/")

    async def tool(command: str) -> str:
        return command and TEXT

    asyncio.run(session.wrap(tool)("cat f"))
    asyncio.run(session.arun("echo it"))
    assert [event["readcache.outcome"] for event in events()] == ["full", "full"]


@pytest.mark.usefixtures("exported")
def test_a_store_that_fails_is_told_of_as_such() -> None:
    session = Session("/w", store="redis://127.0.0.1:1/0")
    assert session.observe("cat f", TEXT).text == TEXT
    assert [event["readcache.reason"] for event in events()] == ["store_failed"]


class Broken(trace.NonRecordingSpan):
    """A span of somebody's that cannot take events."""

    def is_recording(self) -> bool:
        return True

    def add_event(self, *_: object, **__: object) -> NoReturn:
        raise RuntimeError("no room")


def test_a_span_that_fails_costs_no_tool_its_output() -> None:
    session = Session("/w")
    with trace.use_span(Broken(trace.INVALID_SPAN_CONTEXT)):
        assert session.observe("cat f", TEXT).text == TEXT
        assert "UNCHANGED" in session.observe("cat f", TEXT).text
    assert "internal_error" not in session.stats()


def test_a_program_without_it_imports_nothing_of_it() -> None:
    program = (
        "import sys, readcache; readcache.Session('/w').observe('cat f', 'a line\\n' * 99);"
        "sys.exit(any(name.startswith(('opentelemetry', 'prometheus')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
