"""What a trajectory of mini-swe-agent says: how the run ended, what it used, what readcache did in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from readcache.transcripts.chats import usage_of
from readcache.transcripts.values import list_in, object_in

from .budget import Spent
from .omissions import check_omissions

KINDS = ("fresh", "written", "cached", "output")  # of tokens: sent anew, written to a cache, read from one, received
TOLD = 300  # characters of a failure that are kept
COUNTED = ("bounces", "insisted", "tokens_saved", "internal_error", "store_failed")
# How an agent comes to its end by itself. Any other exit status names an exception: the trouble is a provider's, a
# server's or the operator's, and the run is made again. The last two are litellm's: a conversation that grew too long,
# or that the provider refuses, is the agent's own.
AGENTS_OWN = frozenset(
    (
        "Submitted",
        "LimitsExceeded",
        "TimeExceeded",
        "RepeatedFormatError",
        "ContextWindowExceededError",
        "ContentPolicyViolationError",
    )
)


def tokens_of(message: Mapping[str, Any]) -> dict[str, int]:
    """The tokens that an answer of the model was billed for, by kind; all 0 for another message."""
    inside = object_in(object_in(message.get("extra")).get("response")).get("usage")
    used = usage_of(object_in(message.get("usage") or inside))
    return dict(zip(KINDS, (used.fresh, used.cache_write, used.cache_read, used.output), strict=True))


def read_trajectory(path: Path) -> Mapping[str, Any]:
    """The trajectory in a file; empty where there is none, or a crash left a part of one."""
    try:
        return object_in(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def spent_in(trajectory: Mapping[str, Any]) -> Spent:
    """What the run used."""
    stats = object_in(object_in(trajectory.get("info")).get("model_stats"))
    tokens = sum(sum(tokens_of(each).values()) for each in _messages(trajectory))
    return Spent(float(stats.get("instance_cost") or 0), tokens, int(stats.get("api_calls") or 0))


def outcome_of(trajectory: Mapping[str, Any], *, has_readcache: bool) -> dict[str, Any]:
    """The fields that the journal has of a run that is over. `failed`: why it is to be run again; "" when the agent
    itself brought it to an end."""
    info, spent = object_in(trajectory.get("info")), spent_in(trajectory)
    status = str(info.get("exit_status") or "")
    told = f"{status}: {info.get('exception_str') or ''}"[:TOLD] if status else "no environment could be made"
    tokens = dict.fromkeys(KINDS, 0)
    for message in _messages(trajectory):
        tokens = {kind: count + tokens_of(message)[kind] for kind, count in tokens.items()}
    out: dict[str, Any] = {
        "failed": "" if spent.steps and status in AGENTS_OWN else told,
        "exit_status": status,
        "has_patch": bool(str(info.get("submission") or "").strip()),
        "money": spent.money,
        "steps": spent.steps,
        "tokens": tokens,
        "calls": sum("raw_output" in object_in(each.get("extra")) for each in _messages(trajectory)),
    }
    if has_readcache:
        stats, found = object_in(info.get("readcache")), check_omissions(list(_messages(trajectory)))
        out["readcache"] = {name: int(stats.get(name) or 0) for name in COUNTED}
        out["readcache"] |= {"markers": found.markers, "accounts": found.accounts, "wrong": found.wrong}
    return out


def _messages(trajectory: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (object_in(each) for each in list_in(trajectory.get("messages")))
