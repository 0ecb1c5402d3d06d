"""`readcache serve --metrics`: counters of this process's answers, for Prometheus.

Scrapes run in threads of their own, so no client waits for a scrape.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from functools import cache

from readcache.core.model.errors import ReadcacheError, UsageError
from readcache.core.model.limits import whole_number
from readcache.core.model.plugins import how_to_add, plugin_names
from readcache.log.telemetry import BUCKETS, HOST, HOSTS, LISTENERS, METRICS, OTHER, SECONDS


def serve_metrics(address: str, hosts: Collection[str]) -> str:
    """Count from now on, and answer scrapes until the process ends. Return the URL.

    `address`: an IP address and a port. `hosts`: names of hosts that are labels, in addition to the known hosts. Raise
    UsageError if other machines could reach the address. Raise ReadcacheError if the address is in use, or if
    prometheus_client is missing.
    """
    ip, port = _loopback(address)
    try:
        from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, start_http_server
    except ImportError:
        raise ReadcacheError(f"`serve --metrics` needs prometheus_client: {how_to_add('metrics')}") from None
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry, known = CollectorRegistry(), HOSTS.union(plugin_names("hosts"), hosts) - {""}
    counters = [(m, Counter(m.name, m.help, [HOST, *filter(None, [m.label])], registry=registry)) for m in METRICS]
    seconds = Histogram(SECONDS.name, SECONDS.help, [HOST], buckets=BUCKETS, registry=registry)

    @cache
    def series_of(host: str) -> tuple[dict[str, list[Counter]], Histogram]:
        """Return the series of a host, by the names that they count, and its histogram."""
        # All series start at 0 when the host is first seen, because Prometheus' `rate` ignores a series' first value.
        found: dict[str, list[Counter]] = {}
        for metric, counter in counters:
            for name in metric.counted:
                series = counter.labels(host, *[name] * bool(metric.label))
                found.setdefault(name, []).append(series)
        return found, seconds.labels(host)

    def count(host: str, changed: Mapping[str, int], took: float | None) -> None:
        (series, histogram), sums = series_of(host if host in known else OTHER), dict[Counter, int]()
        for name in changed.keys() & series.keys():
            for one in series[name]:
                sums[one] = sums.get(one, 0) + changed[name]
        for one, amount in sums.items():
            one.inc(max(0, amount))
        if took is not None:
            histogram.observe(took)

    try:
        server, _ = start_http_server(port, ip, registry)
    except OSError as error:
        raise ReadcacheError(f"cannot serve metrics at {address}: {error.strerror}; choose another port") from None
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a scraper may hang up
    LISTENERS.append(count)
    return f"http://{f'[{ip}]' if ':' in ip else ip}:{server.server_port}/metrics"


def _loopback(address: str) -> tuple[str, int]:
    """Return the IP address and the port of "127.0.0.1:9464". Raise UsageError if `address` is not a loopback address
    with a port."""
    named, _, port = address.rpartition(":")
    host = "127.0.0.1" if named == "localhost" else named.removeprefix("[").removesuffix("]")
    try:
        if ipaddress.ip_address(host).is_loopback and (number := whole_number(port)) is not None and number < 1 << 16:
            return host, number
    except ValueError:
        pass
    raise UsageError(f"--metrics {address!r} is not an address of this machine alone: give 127.0.0.1:9464 or the like")
