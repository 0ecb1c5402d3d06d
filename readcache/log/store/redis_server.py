"""The Redis or Valkey server that a URL names: its client, how long to wait for it, and the advice for its errors.

A server that does not answer costs `DEADLINE` seconds once. Then every use fails immediately until ten times as long
has passed, so waiting costs at most a tenth of the time. A server that refuses is asked each time, because a refusal
costs nothing.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from readcache.core.model.errors import StoreError, UsageError
from readcache.log.forks import CONNECTIONS, ForkLock
from readcache.log.store.protocol import without_password

DEADLINE = 2.0  # seconds for a connection, and for an answer; a call makes about three requests of a millisecond each
PREFIX = "readcache"
EXPIRE_DAYS = 30.0  # as long as the default store keeps sessions
REST = 10.0  # times the seconds that a failed request cost
_IDENTIFYING = ("db", "prefix")  # the options of the URL that distinguish one store from another
_YES = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class RedisServer:
    """A server, or a cluster of them, for all threads and sessions of this process. Raise UsageError for a URL that
    makes no sense, or that the redis package cannot use."""

    def __init__(self, url: str) -> None:
        self.address = without_password(url)
        scheme, _, rest = url.partition("://")
        where, _, query = rest.partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        if told_apart := urlencode({name: options[name] for name in _IDENTIFYING if name in options}):
            self.address += f"?{told_apart}"
        self.prefix = options.pop("prefix", PREFIX)
        if {"{", "}"} & set(self.prefix):
            raise UsageError(
                f"the prefix {self.prefix!r} contains a brace, which a cluster uses to place keys: remove it"
            )
        self.expire_seconds = 86_400 * _days(options.pop("expire", EXPIRE_DAYS))
        cluster = options.pop("cluster", "no")
        if cluster.lower() not in _YES:
            raise UsageError(f"cluster={cluster} in the URL of the store is neither yes nor no")
        self._is_cluster = _YES[cluster.lower()]
        self._address = f"{scheme.lower().removeprefix('redis+')}://{where}?{urlencode(options)}"
        try:  # without asking the server
            redis.Redis.from_url(self._address, protocol=2).connection_pool.make_connection()
        except (ValueError, TypeError) as error:
            raise UsageError(f"the redis package cannot use the store {self.address}: {error}") from None
        self._client: Any = None
        self._connecting = ForkLock(CONNECTIONS)
        self._rests_until = 0.0

    def script(self, text: str) -> Callable[[Sequence[str], Sequence[Any]], Any]:
        """Return the Lua script as a function of its keys and arguments. The function may raise StoreError."""
        return lambda keys, arguments: self.ask(lambda client: client.register_script(text)(keys, arguments))

    def ask(self, question: Callable[[Any], Any]) -> Any:
        """Return the server's answer to `question(client)`. If the connection was lost, reconnect and ask once more, so
        asking twice must do no harm. Raise StoreError."""
        if time.monotonic() < self._rests_until:
            raise StoreError(f"the store {self.address} did not answer in time: not asking it for a while")
        began = time.monotonic()
        try:
            try:
                return question(self._connected())
            except exceptions.ConnectionError:
                if time.monotonic() - began > DEADLINE / 2:
                    raise
                return question(self._connected())
        # A RedisClusterException is not a RedisError.
        except (exceptions.RedisError, exceptions.RedisClusterException, OSError) as error:
            cost = time.monotonic() - began
            if cost > DEADLINE / 2:
                self._rests_until = time.monotonic() + REST * cost
            if isinstance(error, exceptions.ReadOnlyError):
                self._client = None  # the server is a replica now, so these connections lead to the wrong server
            text = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(f"cannot use the store {self.address}: {text}; {_advice(error)}") from error

    def _connected(self) -> Any:
        with self._connecting:
            if self._client is None:
                kind: Any = redis.RedisCluster if self._is_cluster else redis.Redis
                self._client = kind.from_url(
                    self._address,
                    socket_timeout=DEADLINE,
                    socket_connect_timeout=DEADLINE,
                    protocol=2,  # every server and every proxy speaks it
                    retry=Retry(NoBackoff(), int(self._is_cluster)),
                )
                weakref.finalize(self, self._client.close).atexit = False  # a cluster's client lives until collected
            return self._client


_servers: weakref.WeakValueDictionary[str, RedisServer] = weakref.WeakValueDictionary()
_finding = ForkLock(CONNECTIONS)


def server_at(url: str) -> RedisServer:
    """Return the server at that URL: one object for all stores of this process, so that they share its connections."""
    with _finding:
        found = _servers.get(url)
        if found is None:
            found = _servers[url] = RedisServer(url)
        return found


def _days(given: str | float) -> float:
    try:
        found = float(given)
    except ValueError:
        found = 0.0
    if not 0 < found < 36_500:
        raise UsageError(f"expire={given} in the URL of the store is not a number of days (default: {EXPIRE_DAYS:g})")
    return found


def _advice(error: BaseException) -> str:
    if isinstance(error, (exceptions.AuthenticationError, exceptions.NoPermissionError)):
        return "check the user and password in its URL, and that user's rights (see docs/stores.md)"
    if isinstance(error, exceptions.OutOfMemoryError) or str(error).startswith("OOM"):
        return "give the server more memory, or a maxmemory-policy that evicts"
    if isinstance(error, exceptions.ReadOnlyError):
        return "it is a replica: name the primary"
    if isinstance(error, exceptions.AskError):  # MOVED, too
        return "it is a node of a cluster: add cluster=yes to its URL"
    if "luster mode is not enabled" in str(error):
        return "it is not a cluster: remove cluster=yes from its URL"
    if str(error).startswith("unknown command"):
        return "if it is a Sentinel, name the primary; else check that it is Redis 6 or Valkey"
    if isinstance(error, exceptions.ResponseError):
        return "check that it is Redis 6 or Valkey, and that nobody else uses the keys under its prefix"
    return "check that the server runs and can be reached, or name another store"
