"""Whether the answers of a hook reach the model, as the host's own record of a conversation proves it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from contextlib import closing
from glob import escape, glob

from readcache.cli.replay import kept_transcripts
from readcache.core.model.errors import ReadcacheError
from readcache.core.model.events import Delivered
from readcache.log.store import Store, open_store
from readcache.process.settings import Settings
from readcache.process.state import is_missing

NEWEST = 100  # conversations that are looked at


def recorded_proof(host: str, settings: Settings) -> str:
    """The transcript of this host on this machine that proves it; "" where there is none."""
    folder, spec = dict(kept_transcripts()).get(host), settings.store_spec()
    if folder is not None and not is_missing(spec):
        with closing(open_store(spec)) as store:
            newest_first = sorted(store.sessions(), key=lambda context: context[3], reverse=True)
            for session, agent, *_ in newest_first[:NEWEST]:
                markers = markers_in(store, session, agent, host)
                named = f"{escape(folder)}/**/*{escape(session[:8])}*.jsonl"  # Gemini's names have no more of it
                for path in glob(named, recursive=True) if markers else ():
                    if _has_one(path, markers):
                        return path
    return ""


def markers_in(store: Store, session: str, agent: str, host: str) -> set[str]:
    """Those of the replies that this host was given."""
    events = [record.event for record in store.records(session, agent)]
    replies = [e for e in events if isinstance(e, Delivered) and e.account and e.account.host == host]
    return {marker.wording for reply in replies for marker in reply.markers if marker.wording}


def _has_one(path: str, markers: Collection[str]) -> bool:
    """True where a result that the model was given has one of the markers."""
    from readcache.core.model.tool_call import ToolCall
    from readcache.report.replay.replayed_session import conversations_in

    with contextlib.suppress(ReadcacheError):
        items = (item for readers in conversations_in(path) for reader in readers for item in reader.items)
        return any(marker in item.output for item in items if isinstance(item, ToolCall) for marker in markers)
    return False
