"""`replay [PATH…]`: what recorded conversations would have been spared."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator

from readcache.cli.output import print_parts, progress, warn, width, write_html
from readcache.core.model.errors import ReadcacheError
from readcache.process.ages import seconds_of
from readcache.process.settings import Settings


def replay_command(options: argparse.Namespace, _: Settings) -> int:
    """Print the table or one JSON object, or write a page. Return 1 if an omission was wrong, a named file was not
    understood, or no conversation was found."""
    from readcache.core.model.policy import PRESETS, Policy
    from readcache.report.replay.as_json import replay_json
    from readcache.report.replay.conversations import DEFAULT_STRATEGIES, LONG, parse_strategy
    from readcache.report.replay.prices import built_in_prices, prices_of, read_prices
    from readcache.report.replay.replayer import Choices
    from readcache.report.replay.table import WIDTH, table
    from readcache.report.replay.workers import replay_files
    from readcache.transcripts.files import find_files

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

        write_html(options.html, lambda write: [*map(write, replay_page(replay_json(found, policies)))])
    elif options.json:
        print(json.dumps(replay_json(found, policies), indent=2))
    else:
        print_parts(table(found, policies), width(WIDTH))
    total = found.total()
    if not total.counts["sessions"]:
        warn(f"no conversation{f' since {options.since}' if since else ''} in {', '.join(paths)}: nothing was replayed")
    wrong = any(totals.counts["wrong"] for totals in total.policies.values())
    return 1 if wrong or found.not_understood or not total.counts["sessions"] else 0


def kept_transcripts() -> Iterator[tuple[str, str]]:
    """(format, directory) where each host keeps its transcripts, if it is on this machine."""
    from readcache.transcripts.formats import FORMS

    for form in FORMS:
        if form.kept:
            variable, home, below = form.kept
            yield form.name, os.path.join(os.environ.get(variable) or os.path.expanduser(home), below)


def _is_there(path: str) -> bool:
    found = os.path.isdir(path)
    warn(f"looked in {path}: {'replayed below' if found else 'not there'}")
    return found
