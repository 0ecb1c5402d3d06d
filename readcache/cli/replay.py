"""`replay PATH…`: what recorded conversations would have been spared."""

from __future__ import annotations

import argparse
import json
import sys
import time

from readcache.cli.terminal import say, warn
from readcache.process.ages import seconds_of
from readcache.process.settings import Settings


def replay_command(options: argparse.Namespace, _: Settings) -> int:
    """Prints the table, or one JSON object; 1 when an omission was wrong or a named file was not understood."""
    from tqdm import tqdm

    from readcache.model.policy import PRESETS, Policy
    from readcache.replay.as_json import replay_json
    from readcache.replay.table import table
    from readcache.replay.workers import replay_files
    from readcache.transcripts.files import find_files

    policies = list(dict.fromkeys(options.policy or PRESETS))
    for name in policies:
        Policy.named(name)
    since = seconds_of(options.since, time.time(), "--since") if options.since else None
    files = list(find_files(options.paths))
    total = sum(file.size for file in files)
    # None: only on a terminal
    with tqdm(total=total, unit="B", unit_scale=True, disable=None, leave=False, file=sys.stderr) as bar:
        found = replay_files(files, policies, since, bar.update)
    for trouble in found.not_understood:
        warn(trouble)
    if options.json:
        print(json.dumps(replay_json(found, policies), indent=2))
    else:
        for line in table(found, policies):
            say(line)
    wrong = any(tally.counts["wrong"] for tally in found.total().policies.values())
    return 1 if wrong or found.not_understood else 0
