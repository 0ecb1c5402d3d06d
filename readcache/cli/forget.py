"""`forget` and `doctor --scrub`: remove texts from the store, and leave the logs readable."""

from __future__ import annotations

import argparse
from contextlib import closing

from readcache.cli.output import say
from readcache.cli.show import open_recorded
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.policy import Policy
from readcache.log.scrub import scrub, scrub_all
from readcache.log.store import open_store
from readcache.log.store.protocol import without_password
from readcache.process.settings import Settings
from readcache.process.state import is_missing, is_unnamed, unnamed_stores
from readcache.process.tidy import note_scrubbed
from readcache.report import many


def forget_command(options: argparse.Namespace, settings: Settings) -> int:
    """Remove the texts of one call from a session. Return 0. Raise ReadcacheError if the session has none of them."""
    policy = Policy().protecting(settings.protected)
    with open_recorded(settings) as (session, _):
        name = session.session_id
        if not scrub(session.reader.log.store, name, policy, {options.call}):
            raise ReadcacheError(f"session {name} has no text of call {options.call}: see `readcache log`")
    say(f"removed the text of call {options.call} of session {name}")
    return 0


def scrub_stores(settings: Settings) -> int:
    """Remove certain secrets and lines of protected files from the named store, or from all unnamed ones. Print how
    many. Return 0."""
    policy, is_all = Policy().protecting(settings.protected), is_unnamed(settings.store)
    for spec in unnamed_stores() if is_all else [settings.store]:
        if is_missing(spec):
            continue
        with closing(open_store(spec)) as store:
            counts = scrub_all(store, policy)
        found = f"{many(sum(counts), 'call')} of {many(len(counts), 'session')}"
        say(f"removed secrets and protected lines from {found} in {without_password(spec)}")
    if is_all:
        note_scrubbed()
    return 0
