"""Replay files on all cores. A process takes a file, or a line of a file whose lines are conversations."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial

from readcache import Policy
from readcache.report.replay.replay_totals import Outcomes, Sum
from readcache.report.replay.replayer import Choices, replay_recording
from readcache.transcripts.files import Found, Unit, read_content, units_of
from readcache.transcripts.formats import FORMS, Form, recordings_in
from readcache.transcripts.records import NotUnderstood

SMALL = 200_000  # bytes on disk: replaying fewer takes less time than starting processes
AHEAD = 4  # units that wait for each process: more would use memory, fewer would let it idle


def replay_files(
    files: Sequence[Found],
    policies: Sequence[str],
    choices: Choices,
    since: float | None,
    progress: Callable[[int], object],
) -> Sum:
    """Return the totals. `since` (seconds since the epoch): conversations that began earlier do not count. `progress`
    is called with the number of bytes on disk that were read."""
    found = Sum()
    work = partial(replay_unit, policies=tuple(policies), choices=choices, since=since, forms=tuple(FORMS))
    units = (unit for file in files for unit in units_of(file))
    processes = 1 if sum(file.size for file in files) < SMALL else _cores()
    with contextlib.closing(_each(work, units, processes)) as done:
        for unit, outcomes in done:
            found.add(outcomes)
            if outcomes.not_understood:
                (found.not_understood if unit.file.named else found.strangers).append(outcomes.not_understood)
            progress(unit.size)
    return found


def replay_unit(
    unit: Unit, policies: Sequence[str], choices: Choices, since: float | None, forms: Sequence[Form]
) -> Outcomes:
    """Replay one file, or one line of a file. Return the outcomes."""
    outcomes = Outcomes()
    try:
        content = read_content(unit)
        outcomes.damage = content.damage
        presets = {name: Policy.named(name) for name in policies}
        for recording in recordings_in(content, forms):
            began = recording.since if recording.since is not None else os.path.getmtime(unit.file.path)
            if since is not None and began < since:
                outcomes.too_old += 1
            else:
                outcomes.replayed.append(replay_recording(recording, presets, choices))
    except NotUnderstood as error:
        outcomes.not_understood = str(error)
    return outcomes


def _each(
    work: Callable[[Unit], Outcomes], units: Iterable[Unit], processes: int
) -> Generator[tuple[Unit, Outcomes], None, None]:
    """Yield each unit and its outcomes, in the order in which they finish. No process outlives the generator."""
    if processes == 1:
        yield from ((unit, work(unit)) for unit in units)
        return
    context = multiprocessing.get_context("spawn")  # the only method that works on every system and in every thread
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent)
    running: dict[Future[Outcomes], Unit] = {}
    try:
        for unit in units:
            running[pool.submit(work, unit)] = unit
            if len(running) >= AHEAD * processes:
                yield from _done(running)
        while running:
            yield from _done(running)
    except BaseException:  # the user ends this process: a worker would first finish its unit, which takes seconds
        for worker in multiprocessing.active_children():
            worker.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Make this worker end when its parent ends, even if the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    parent = multiprocessing.parent_process()
    assert parent is not None

    # Without this, the worker waits for work indefinitely, and a reader of the parent's output waits for the worker.
    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _done(running: dict[Future[Outcomes], Unit]) -> Iterator[tuple[Unit, Outcomes]]:
    ready, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in ready:
        yield running.pop(future), future.result()


def _cores() -> int:
    """Return the number of cores that this process may use."""
    with contextlib.suppress(AttributeError):  # some systems do not have it
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
