"""Checks by its newest results whether readcache works in each host that uses the store."""

from __future__ import annotations

from contextlib import closing

from readcache.core.model.errors import ReadcacheError
from readcache.log.store import open_store
from readcache.process.settings import Settings
from readcache.process.state import is_missing
from readcache.report.coverage import ENOUGH, HostCoverage
from readcache.report.gain.answered import ReaderFold

_MOST_SESSIONS = 60  # the newest; each takes some milliseconds


def coverage(spec: str) -> list[HostCoverage]:
    """Return one for each host: of its newest sessions, as many as have enough results. StoreError."""
    found = dict[str, HostCoverage]()
    if is_missing(spec):
        return []
    with closing(open_store(spec)) as store:
        newest = sorted(store.sessions(), key=lambda context: context[3], reverse=True)[:_MOST_SESSIONS]
        for session, agent, *_ in newest:
            calls = ReaderFold(session, agent, None).take(store.records(session, agent))
            host = next((call.host for call in calls if call.host), "")
            known = found.setdefault(host, HostCoverage(host))
            if known.seen < ENOUGH:
                known.add(calls)
    return list(found.values())


def coverage_lines(spec: str) -> list[str]:
    """Return a line for each host in which results were not judged, or no marker reached the model. StoreError."""
    return [line for host in coverage(spec) if (line := host.line())]


def check_coverage(settings: Settings) -> str:
    """Return how many of the newest results were judged. ReadcacheError if readcache does not work in a host."""
    found = coverage(settings.store_spec())
    if problems := [problem for host in found if (problem := host.problem())]:
        raise ReadcacheError("; ".join(problems))
    seen = ", ".join(f"{host.host or 'no host'}: {host.judged} of {host.seen}" for host in found)
    return f"judged of the newest: {seen}" if seen else "none yet"
