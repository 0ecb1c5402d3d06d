"""`gain`: what was really saved, from the store."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from readcache.cli.coverage import coverage, coverage_lines
from readcache.cli.output import print_parts, say, width, write_html
from readcache.core.model.errors import ReadcacheError, StoreError, UsageError
from readcache.log.store import Store, open_store
from readcache.log.store.open import without_password
from readcache.process.ages import seconds_of
from readcache.process.settings import Settings
from readcache.process.state import is_missing, require_recorded
from readcache.report.gain import DIMENSIONS
from readcache.report.gain.plain import gain_json
from readcache.report.gain.table import ASCII_BLOCK, FULL_BLOCK, WIDTH, gain_table, short_line
from readcache.report.gain.totals import Asked, Gain

SHOWN = ("day", "host", "tool", "reason")  # groups of the table where none is asked for


def gain_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print a table, JSON or one line, or write a page. Return 1 if there are no calls, or if the log does not prove
    every omission."""
    spec = settings.store_spec()
    if options.short:
        say(_short(spec))
        return 0
    require_recorded(spec)
    price, asked = _price(options.price), _asked(options, _groups(options))
    if options.model:
        from readcache.report.replay.prices import built_in_prices, prices_of

        model = prices_of(options.model, built_in_prices())
        asked = replace(asked, prices=model.ratios, seconds=model.seconds)
        price = model.input if price is None else price
    found = Gain(asked)
    with closing(open_store(spec)) as store:
        if not (contexts := list(_contexts(store, options))) and (options.session or options.agent):
            raise ReadcacheError(f"no such session or agent in {without_password(spec)}: see `readcache sessions`")
        for session, agent, _, newest in contexts:
            if found.asked.since is None or newest >= found.asked.since:
                found.add_reader(session, agent, store.records(session, agent))
    _print(found, options, price)
    if not (options.html or options.json):
        for line in coverage_lines(spec):
            say(line)
    return 0 if found.sessions and found.proof.proven == found.proof.markers else 1


def _short(spec: str) -> str:
    """Of today's readers alone, so that a store may grow. A status bar shows stdout: what fails is said there."""
    if is_missing(spec):
        return short_line(None)
    found = Gain(Asked(_local_day, _local_day(time.time()), by=()), proves=False)
    try:
        with closing(open_store(spec)) as store:
            for session, agent, _, newest in store.sessions():
                if _local_day(newest) >= found.asked.today:
                    found.add_reader(session, agent, store.records(session, agent))
        problem = next(filter(None, (host.problem() for host in coverage(spec))), "")
    except StoreError:
        return "readcache: the store cannot be read, see `readcache doctor`"
    return f"readcache: {problem}" if problem else short_line(found)


def _contexts(store: Store, options: argparse.Namespace) -> Iterator[tuple[str, str, int, float]]:
    """Those that the options name; the environment, in which an agent may run us, names none."""
    for context in store.sessions():
        if options.session in (None, context[0]) and options.agent in (None, context[1]):
            yield context


def _asked(options: argparse.Namespace, by: tuple[str, ...]) -> Asked:
    now = time.time()
    since = None if options.since is None else seconds_of(options.since, now, "--since")
    until = None if options.until is None else seconds_of(options.until, now, "--until", is_end=True)
    return Asked(_local_day, _local_day(now), since, until, by)


def _local_day(at: float) -> datetime.date:
    try:
        return datetime.date.fromtimestamp(at)
    except (OverflowError, ValueError, OSError):  # a broken clock
        return datetime.date.min


def _groups(options: argparse.Namespace) -> tuple[str, ...]:
    if options.by:
        return (options.by,)
    return DIMENSIONS if options.json or options.html else SHOWN


def _price(given: str | None) -> float | None:
    try:
        price = None if given is None else float(given)
    except ValueError:
        price = -1.0
    if price is not None and not 0 <= price < float("inf"):
        raise UsageError(f"--price {given!r} is not a price: give dollars per million input tokens, for example 3")
    return price


def _print(found: Gain, options: argparse.Namespace, price: float | None) -> None:
    if options.html:
        from readcache.report.page.savings import gain_page

        write_html(options.html, lambda write: [*map(write, gain_page(found, price))])
    elif options.json:
        print(json.dumps(gain_json(found, price), indent=2))
    else:
        columns, block = width(WIDTH), FULL_BLOCK if _can_print(FULL_BLOCK) else ASCII_BLOCK
        print_parts(gain_table(found, price=price, block=block, width=columns), columns)


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True
