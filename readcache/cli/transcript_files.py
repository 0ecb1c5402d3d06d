"""One line on what is kept of a user's sessions: where, for how long, and how to delete it."""

from __future__ import annotations

import os

from readcache.log.store.open import without_password
from readcache.process.settings import Settings
from readcache.process.state import is_unnamed, store_file
from readcache.process.tidy import DAY, kept_seconds


def what_is_kept(settings: Settings) -> str:
    """What is kept, where and for how long. UsageError."""
    spec, how_long = settings.store_spec(), "with no time limit"
    address = store_file(spec)
    keep = kept_seconds(os.environ) if is_unnamed(settings.store) else None
    if address is None:
        address, how_long = without_password(spec), "for as long as that store's URL says (expire=DAYS)"
    elif keep is not None:
        how_long = f"for {keep / DAY:g} days after a session's last call"
    return f"what agents are shown, but not protected files, in {address}, {how_long}; `readcache clear` deletes it"
