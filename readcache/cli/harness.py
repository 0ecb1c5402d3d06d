"""The commands for a harness in another language: `restore`, `compacted`, `wrote`, `prune`, `compact`, `forget`.

They change the view, so their reports must not get lost. They wait for a locked store, and fail if they cannot record.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from readcache import RestorePlan, Session
from readcache.cli.output import say, warn
from readcache.core.model.errors import ReadcacheError, StoreError, UsageError
from readcache.core.model.events import Delivered
from readcache.core.model.policy import Budget
from readcache.log.store.protocol import without_password
from readcache.process.buffered import chosen_policy
from readcache.process.settings import Settings
from readcache.process.state import is_missing
from readcache.serve.fields import strict_json

PATIENCE = 30.0  # seconds to wait for a locked store; a harness seldom compacts, and can wait
TODO = "repeat the command, or start a new session: otherwise lost results still count as visible"


def restore_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print the restored section. With `--json`, print the plan for `compacted --restored`, with the section in "text".

    The session's files are assumed to be on this machine, on which `run` was used.
    """
    messages = None if options.messages is None else _read_messages(options.messages)
    budget = Budget(options.max_files, options.max_tokens, options.max_tokens_per_file)
    with _open(settings, is_recorded=True) as session:
        _name_unknown(session, options.keep)
        plan = session.restore_plan(keep=options.keep, budget=budget, messages=messages)
        if failed := session.reader.log.unlogged():  # the plan is empty because the log could not be read
            raise ReadcacheError(f"no plan could be made: {failed[-1].detail}; see `readcache doctor`")
    if options.json:
        print(json.dumps({**plan.to_dict(), "text": plan.render()}))
    else:
        print(plan.render(), end="")
    return 0


def compacted_command(options: argparse.Namespace, settings: Settings) -> int:
    """Record a compaction, and print {"restored_id", "rewrites"}.

    `--restored`: a file with the plan that `restore --json` printed. Its section is now in the conversation.
    """
    plan = _read_plan(options.restored) if options.restored is not None else None
    with _open(settings, is_recorded=True) as session:
        _name_unknown(session, options.keep)
        done = session.compacted(keep=options.keep, restored=plan)
    print(json.dumps({"restored_id": done.restored_id, "rewrites": done.rewrites}))
    return 0


def forget_command(options: argparse.Namespace, settings: Settings) -> int:
    """Remove the texts of one call from the store. Return 0. Raise ReadcacheError if the session has none of them."""
    from readcache.log.scrub import scrub

    with _open(settings, is_recorded=True) as session:
        if not scrub(session.reader.log.store, settings.session, session.policy, {options.call}):
            raise ReadcacheError(f"session {settings.session} has no text of call {options.call}: see `readcache log`")
    say(f"removed the text of call {options.call} of session {settings.session}")
    return 0


def wrote_command(options: argparse.Namespace, settings: Settings) -> int:
    """Record that the agent's own tool wrote a file."""
    content = None if options.content_file is None else _read_text(options.content_file)
    with _open(settings) as session:
        session.wrote(options.path, content=content)
    return 0


def prune_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print the message list without the parts that are not needed."""
    from readcache.context.pruner import prune

    messages = _read_messages(options.file)
    with _open(settings) as session:
        shorter = prune(messages, session)
    return _hand_over(shorter, messages, settings)


def compact_command(options: argparse.Namespace, settings: Settings) -> int:
    """Print the compacted message list, with the summary if one is given. With `--request`, print the request for a
    summary."""
    from readcache.context.compaction import How
    from readcache.context.two_steps import compact_with, compaction_request

    if options.file == options.summary == "-":
        raise UsageError("FILE and --summary are both stdin: give one of them as a file")
    messages = _read_messages(options.file)
    if options.request:
        with _open(settings) as session:
            print(json.dumps(compaction_request(messages, session)))
        return 0
    summary = "" if options.summary is None else _read_text(options.summary)
    with _open(settings) as session:
        shorter, report, _ = compact_with(messages, session, summary)
    if options.summary is not None and report.how is not How.SUMMARISED:
        warn(f"the summary was not used: {report.trouble or 'there is nothing to summarise'}")
    return _hand_over(shorter, messages, settings)


def _hand_over(new: list[Mapping[str, Any]], old: list[Mapping[str, Any]], settings: Settings) -> int:
    """Print the new message list. Return 0."""
    try:
        print(json.dumps(new), flush=True)
    except OSError:  # the harness continues with the old list, so report it to the session
        with _open(settings) as session:
            session.sync(old)
        raise
    return 0


@contextmanager
def _open(settings: Settings, *, is_recorded: bool = False) -> Iterator[Session]:
    """Yield the session with its log read. At the end, everything that was reported to it is in the log.

    `is_recorded`: raise ReadcacheError if the store does not have the session or its reader, because the name may be
    misspelt. Raise UsageError if no session is named. Raise StoreError if the log cannot be read, or if a report could
    not be logged.
    """
    if not settings.session:
        raise UsageError("no session is named: use --session or READCACHE_SESSION")
    spec = settings.store_spec()
    if is_recorded and is_missing(spec):
        raise _unknown(settings)
    with Session(
        os.getcwd(),
        session_id=settings.session,
        agent_id=settings.agent,
        store=spec,
        policy=chosen_policy(settings),
        local=True,
    ) as session:
        _reach(session, "the session's log cannot be read")
        if is_recorded and settings.agent not in (agents := {record.agent_id for record in session.events()}):
            raise _unknown(settings, *agents)
        yield session
        if session.reader.log.unlogged():
            _reach(session, "this was not recorded")


def _unknown(settings: Settings, *agents: str) -> ReadcacheError:
    if agents:
        known = f"there are: {', '.join(sorted(agents))}"
        return ReadcacheError(f"nothing recorded for agent {settings.agent} in {settings.session}; {known}")
    address = without_password(settings.store_spec())
    return ReadcacheError(f"nothing of session {settings.session} was recorded in {address}: see `readcache log`")


def _reach(session: Session, trouble: str) -> None:
    """Wait until the view matches the log, and the log has every report. Raise StoreError, with `trouble` first, if the
    store fails or stays locked for `PATIENCE` seconds."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with session.reader.log.transaction():
                return
        except StoreError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise StoreError(f"{trouble}: {error}; {TODO}") from error
        time.sleep(0.05)


def _name_unknown(session: Session, keep: Collection[str]) -> None:
    """Warn about IDs that are not in the log."""
    # They may be valid: `run` does not record commands that read and write nothing.
    known = {record.event.call_id for record in session.events() if isinstance(record.event, Delivered)}
    if unknown := [name for name in dict.fromkeys(keep) if name not in known]:
        warn(f"unknown call ids, so nothing is kept for them: {', '.join(unknown)}")


def _read_plan(file: str) -> RestorePlan:
    return RestorePlan.from_dict(_read_json(file, "what `readcache restore --json` prints"))


def _read_messages(file: str) -> list[Mapping[str, Any]]:
    messages = _read_json(file, "a list of messages, each an object")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise UsageError(f"{_named(file)} is not a list of message objects: give the list itself as JSON")
    return messages


def _read_json(file: str, expected: str) -> Any:
    """Return the value of a JSON file. Raise UsageError if it cannot be read or is not JSON. `expected`: for that
    error."""
    data = _read_bytes(file)
    try:
        return strict_json(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{_named(file)} is not JSON: {error}; give {expected}") from None


def _read_text(file: str) -> str:
    """Return the whole text of a file, with its own line ends."""
    return _read_bytes(file).decode("utf-8", "replace")


def _read_bytes(file: str) -> bytes:
    """Return the whole content of a file, or of stdin for "-". Raise UsageError if it cannot be read."""
    try:
        if file != "-":
            return Path(file).read_bytes()
        if sys.stdin is None:
            raise OSError("it is closed")
        return sys.stdin.buffer.read()
    except OSError as error:
        raise UsageError(
            f"cannot read {_named(file)}: {error.strerror or error}; give a file, or - for stdin"
        ) from None


def _named(file: str) -> str:
    return "stdin" if file == "-" else file
