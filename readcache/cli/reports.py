"""`gain`, `replay` and `report`: print the savings, estimate possible savings, and write a page about a session."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import time
from contextlib import closing
from dataclasses import replace
from urllib.parse import quote

from readcache.cli.output import print_parts, progress, say, warn, width, write_html
from readcache.cli.sessions import contexts
from readcache.cli.status import coverage, coverage_lines
from readcache.core.model.errors import ReadcacheError, StoreError, UsageError
from readcache.core.model.events import Record
from readcache.core.model.policy import Policy
from readcache.log.store import open_store
from readcache.log.store.protocol import without_password
from readcache.process.settings import Settings
from readcache.process.state import is_missing, require_recorded, state_directory
from readcache.process.tidy import seconds_of
from readcache.report import DIMENSIONS
from readcache.report.gain import ASCII_BLOCK, FULL_BLOCK, WIDTH, gain_json, gain_table
from readcache.report.net import short_line
from readcache.report.totals import Asked, Gain

SHOWN = ("day", "host", "tool", "reason")  # groups of the table if the user names none
# Conversations that an error names if the requested one does not exist.
MOST_NAMED = 5


def gain_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print a table, JSON or one line, or write a page. Return 1 if nothing was recorded in that time, or if the log
    does not prove every omission."""
    spec = settings.store_spec()
    if options.short:
        say(_short(spec, options))
        return 0
    require_recorded(spec)
    price, (asked, listed) = _price(options.price), _asked(options)
    found = _found(spec, options, Gain(asked))
    _print(found, options, listed if price is None else price)
    if not (options.html or options.json):
        for line in coverage_lines(spec):
            say(line)
    return 0 if found.sessions and found.proof.proven == found.proof.markers else 1


def _found(spec: str, options: argparse.Namespace, found: Gain) -> Gain:
    """Return `found` with the store's readers that the query is for. Raise ReadcacheError if there is none of the given
    session or agent."""
    with closing(open_store(spec)) as store:
        # The environment does not choose: an agent may run this command in its own.
        if not (readers := contexts(store, options.session, options.agent)) and (options.session or options.agent):
            raise ReadcacheError(f"no such session or agent in {without_password(spec)}: see `readcache sessions`")
        for session, agent, _, newest in readers:
            if found.asked.since is None or newest >= found.asked.since:
                found.add_reader(session, agent, store.records(session, agent))
    return found


def _short(spec: str, options: argparse.Namespace) -> str:
    """Return the line for a status bar, of today unless the options name other days; or a line about a failure."""
    when = "" if options.since or options.until else " today"
    if when:  # so that the time does not grow with the store
        options.since = options.until = _local_day(time.time()).isoformat()
    if is_missing(spec):
        return short_line(None)
    asked, _ = _asked(options)
    try:
        found = _found(spec, options, Gain(replace(asked, by=()), proves=False))
        problem = next(filter(None, (host.problem() for host in coverage(spec))), "")
    except StoreError:  # a status bar shows stdout
        return "readcache: the store cannot be read, see `readcache doctor`"
    return f"readcache: {problem}" if problem else short_line(found.total, when)


def _asked(options: argparse.Namespace) -> tuple[Asked, float | None]:
    """Return the query, and the price of the model if one is named: dollars for a million input tokens."""
    now = time.time()
    by = (options.by,) if options.by else DIMENSIONS if options.json or options.html else SHOWN
    since = None if options.since is None else seconds_of(options.since, now, "--since")
    until = None if options.until is None else seconds_of(options.until, now, "--until", is_end=True)
    asked = Asked(_local_day, _local_day(now), since, until, by)
    if not options.model:
        return asked, None
    from readcache.report.replay.bills import built_in_prices, prices_of

    model = prices_of(options.model, built_in_prices())
    return replace(asked, prices=model.ratios, seconds=model.seconds, model=options.model), model.input


def _local_day(at: float) -> datetime.date:
    try:
        return datetime.date.fromtimestamp(at)
    except (OverflowError, ValueError, OSError):  # a broken clock
        return datetime.date.min


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

        write_html(options.html, gain_page(found, price))
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


def replay_command(options: argparse.Namespace, _: Settings) -> int:
    """Print a table or one JSON object, or write a page. Return 1 if an omission was wrong, if a named file was not
    understood, or if no conversation was found."""
    from readcache.core.model.policy import PRESETS, Policy
    from readcache.report.replay.bills import built_in_prices, prices_of, read_prices
    from readcache.report.replay.conversations import DEFAULT_STRATEGIES, LONG, parse_strategy
    from readcache.report.replay.output import WIDTH, replay_json, table
    from readcache.report.replay.replayer import Choices, replay_files
    from readcache.transcripts.files import find_files, kept_transcripts

    policies = list(dict.fromkeys(options.policy or PRESETS))
    for name in policies:
        Policy.named(name)
    for spec in options.conversation or ():
        parse_strategy(spec)
    rows = {**built_in_prices(), **(read_prices(options.prices) if options.prices else {})}
    if options.model:
        prices_of(options.model, rows)
    strategies, least = (options.conversation, 0) if options.conversation else (DEFAULT_STRATEGIES, LONG)
    choices = Choices(tuple(strategies), least, rows, options.model or "")
    since = seconds_of(options.since, time.time(), "--since") if options.since else None
    paths = options.paths or [path for _, path in kept_transcripts() if _is_there(path)]
    if not paths:
        raise ReadcacheError("no host keeps transcripts there: give files, or directories that contain some")
    files = list(find_files(paths))
    with progress(sum(file.size for file in files)) as advance:
        found = replay_files(files, policies, choices, since, advance)
    for problem in found.not_understood:
        warn(problem)
    if options.html:
        from readcache.report.page.savings import replay_page

        write_html(options.html, replay_page(found, policies, options.by or ""))
    elif options.json:
        print(json.dumps(replay_json(found, policies, options.by or ""), indent=2))
    else:
        print_parts(table(found, policies, options.by or ""), width(WIDTH))
    total = found.total()
    if not total.counts["sessions"]:
        warn(f"no conversation{f' since {options.since}' if since else ''} in {', '.join(paths)}: nothing was replayed")
    wrong = any(totals.counts["wrong"] for totals in total.policies.values())
    return 1 if wrong or found.not_understood or not total.counts["sessions"] else 0


def _is_there(path: str) -> bool:
    found = os.path.isdir(path)
    warn(f"looked in {path}: {'replayed below' if found else 'not there'}")
    return found


def report_command(options: argparse.Namespace, settings: Settings) -> int:
    """Write the page, and open it in a browser if it is the default page and stdout is a terminal. Return 0. Raise
    ReadcacheError if nothing is recorded."""
    from readcache.report.page.page import session_page

    source, agent = options.source or "", options.agent or ""
    if is_file := bool(source) and os.path.exists(source):
        # Use the option only: the environment names the caller's session, which is not in the file.
        title, about, records = _from_file(source, options.session or "", settings.policy)
    else:
        title, about, records = _from_store(settings, source)
    if not any(agent in ("", record.agent_id) for record in records):
        raise ReadcacheError(f"{title}: nothing recorded" + (f" for agent {agent}" if agent else ""))
    output = options.output or os.path.join(state_directory(), "report.html")
    if not options.output:
        os.makedirs(state_directory(), mode=0o700, exist_ok=True)
    write_html(output, session_page(records, title, about, agent, is_live=not is_file), "; it holds what the agent saw")
    if not options.output and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(f"file://{quote(output)}")
    return 0


def _from_store(settings: Settings, source: str) -> tuple[str, dict[str, str], list[Record]]:
    if os.sep in source:
        raise UsageError(f"{source} does not exist: give a transcript, or the id of a session in the store")
    from readcache.cli.show import open_recorded  # here, because `gain --short` must start quickly

    with open_recorded(settings._replace(session=source or settings.session)) as (session, cursor):
        return f"Session {session.session_id}", {"store": settings.store_spec()}, list(cursor.past)


def _from_file(source: str, name: str, preset: str) -> tuple[str, dict[str, str], list[Record]]:
    """Return (title, facts about it, records) of the conversation `name` in a transcript, replayed with the policy
    `preset`. Without a name, use the longest. Raise ReadcacheError if there is no such conversation."""
    from readcache.report.replay.replayer import conversations_in, replayed_session

    policy = Policy.named(preset)
    found = conversations_in(source)
    if not found:
        raise ReadcacheError(f"no conversation found in {source}")
    names = {readers[0].name: readers for readers in found}
    if name and name not in names:
        raise ReadcacheError(f"{source} has no conversation {name}; it has {', '.join(list(names)[-MOST_NAMED:])}")
    longest = max(found, key=lambda readers: sum(len(recording.items) for recording in readers))
    readers = names.get(name, longest)
    if len(found) > 1 and not name:
        warn(f"{readers[0].name}, the longest of {len(found)} conversations in {source}; name another with --session")
    about = {"transcript": os.path.basename(source), "format": readers[0].form, "policy": preset}
    return f"Replay of {readers[0].name}", about, replayed_session(readers, policy).events()
