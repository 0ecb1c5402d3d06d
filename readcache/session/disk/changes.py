"""Find the files that others changed since the agent saw them: keep each file with the version that the agent knows.

File systems do not record who made a change. So every change during the agent's own command counts as the agent's, and
every change before or after counts as another's. A change is listed until the agent reads or writes the file again, or
the old bytes come back. Listing it does not end that: the harness knows which notices the agent got, and can repeat a
notice that was lost in a compaction.

Each answer is based on hashing every file (20 µs for 8 KB), never on events: `watch` can lose events, and only wakes up
`wait`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from readcache.core.model.call import BASH, Call
from readcache.core.model.claims import FileLines, glob_stem
from readcache.core.model.reply import Reason
from readcache.core.model.text import bodies, split_lines
from readcache.core.model.view import View
from readcache.log.forks import FILES, ForkLock
from readcache.session.disk.files import MOST_BYTES, Fingerprint, take_fingerprint
from readcache.session.disk.watch import Watch

Lines = tuple[int, Sequence[str]]  # the number of the first one in the file, and the lines
Printed = tuple[str, str | None]  # a tool's output, and the separator after its line numbers (None: no numbers)

POLL = 1.0  # seconds between checks of the files while no event arrives
BURST = 0.05  # seconds: a save causes several events, and a checkout thousands
MOST_NAMED = 8  # files in a notice; it is one line in a model's context
_LAST = 1 << 62  # past the end of any file


@dataclass(frozen=True, slots=True)
class Change:
    """A file that others changed since the agent saw it. `call_id`: the call that showed it."""

    path: str
    deleted: bool = False
    call_id: str = ""


@dataclass(slots=True)
class _Seen:
    """The version of a file that the agent knows. `digest`: None if that version was gone before it could be hashed."""

    digest: bytes | None
    call_id: str
    change: Change | None = None


class SeenFiles:
    """The files that one reader has seen. Every method is safe to call from any thread. No method raises because of the
    disk."""

    def __init__(self) -> None:
        self._lock = ForkLock(FILES)
        self._seen: dict[str, _Seen] = {}
        self._watch = Watch()
        self._own_calls = 0  # commands of the agent that are running

    # ------------------------------------------------------------ the agent's own calls

    def begin(self, view: View, *, local: bool) -> None:
        """Follow the files that the agent has seen already, except a file that was only said to be the same as another.
        A file whose visible lines differ from the lines on disk counts as changed by others: it changed before the
        watch began. `local`: as for `saw`."""
        with self._lock:
            for path in view.known_keys():
                current = view.key(path).current
                if current and _is_file_path(path):
                    call_id = current[-1].delivery.event.call_id
                    self._know(view, path, call_id, _visible(view, path), local=local)

    def saw(self, view: View, call: Call, *, local: bool) -> None:
        """Record the files that an answered call showed; `view` contains the answer. `local`: the call certainly ran on
        this machine. Otherwise a file is followed only if the shown lines are on this disk, because it may be another
        machine's."""
        if call.skip_reason not in (None, Reason.UNREADABLE):
            return
        only_read = call.reading.only_reads  # otherwise the same command may have overwritten the shown lines
        with self._lock:
            if not only_read:  # the call may have run elsewhere, without a report of its start
                self._own_call_ended()
            answers = view.of_call(call.call_id)
            as_another = any(answer.event.markers for answer in answers)  # and perhaps no line of this file was shown
            printed_file = _printed_file(call) if only_read and answers else None
            for path in call.reading.keys:
                if call.skip_reason is not None and os.path.isfile(path):  # nothing of it was shown
                    continue
                if path in self._seen or (_is_file_path(path) and (as_another or view.key(path).current)):
                    shown = _visible(view, path, call.call_id) if only_read else []
                    self._know(view, path, call.call_id, shown, printed_file=printed_file, local=local)
                elif printed_file is not None and local:  # no line counts as seen: it is empty, binary or protected
                    now = take_fingerprint(path, MOST_BYTES)
                    if now is not None and _is_all(printed_file, now):
                        self._follow(path, _Seen(now.digest, call.call_id))

    def wrote(self, view: View, path: str, call_id: str, *, local: bool) -> None:
        """Record that the agent's own tool wrote the file. `view` contains its text if that is known."""
        with self._lock:
            names = [other for other in self._seen if other != path and _is_same_file(other, path)]
            if path in self._seen or view.key(path).current:
                names.append(path)
            text = _visible(view, path, call_id)
            for name in names:
                self._know(view, name, call_id, text, local=local, is_own=True)

    @contextlib.contextmanager
    def own_call(self) -> Iterator[None]:
        """Count changes as the agent's own while one of its commands runs. Such calls may overlap."""
        with self._lock:
            if not self._own_calls:
                self._look()
            self._own_calls += 1
        try:
            yield
        finally:
            with self._lock:
                self._own_calls -= 1
                self._own_call_ended()

    # ------------------------------------------------------------ changes by others

    def changes(self) -> list[Change]:
        """Return the changes by others since the agent saw the files, by path. While a command of the agent runs, these
        are the changes before its start."""
        with self._lock:
            if not self._own_calls:
                self._look()
            return sorted((seen.change for seen in self._seen.values() if seen.change), key=lambda change: change.path)

    def wait(self, timeout: float) -> bool:
        """Wait until `changes` returns another list than now, at most `timeout` seconds. Return True if it does."""
        before = self.changes()
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            self._watch.wait(min(left, POLL))
            time.sleep(min(max(0.0, deadline - time.monotonic()), BURST))
            if self.changes() != before:
                return True
        return False

    def close(self) -> None:
        """Stop following. Closing twice is allowed."""
        with self._lock:
            self._seen.clear()
        self._watch.close()

    # ------------------------------------------------------------ inside

    def _know(
        self,
        view: View,
        path: str,
        call_id: str,
        shown: Sequence[Lines],
        *,
        printed_file: Printed | None = None,
        local: bool,
        is_own: bool = False,
    ) -> None:
        """Note that the agent knows the current file, if the call describes it correctly. `shown`: the lines that it
        showed. `printed_file`: its output, if that may be the whole file. `is_own`: the agent wrote the file itself."""
        known = self._seen.get(path)
        now = take_fingerprint(path, MOST_BYTES)
        if now is None:
            exists = os.path.isfile(path)  # it exists, but keeps changing or cannot be read
            if (shown or exists) and (local or known is not None):
                self._follow(path, _Seen(None, call_id, Change(path, not exists, call_id)))
            elif known is not None:
                del self._seen[path]
            return
        if known is not None and not is_own and (known.change or not (self._own_calls or known.digest == now.digest)):
            # Someone else wrote this version, so it must contain every line that the agent can see.
            visible = _visible(view, path)
            is_unchanged = (bool(visible) and _is_unchanged(visible, now)) or _is_all(printed_file, now)
        else:
            is_unchanged = _is_unchanged(shown, now)
        if is_unchanged:
            self._follow(path, _Seen(now.digest, call_id))
        elif known is not None:
            known.change = known.change or Change(path, call_id=known.call_id)
        elif local:
            self._follow(path, _Seen(None, call_id, Change(path, call_id=call_id)))

    def _follow(self, path: str, seen: _Seen) -> None:
        self._seen[path] = seen
        self._watch.follow(path)

    def _look(self) -> None:
        """Find the files that others have changed."""
        for path, seen in self._seen.items():
            now = take_fingerprint(path)
            if now is not None and now.digest == seen.digest:
                seen.change = None
            else:
                seen.change = Change(path, not os.path.exists(path), seen.call_id)

    def _own_call_ended(self) -> None:
        """Count all new changes as the agent's own, because its command has ended and may have written any file. Do
        nothing while another command runs."""
        if self._own_calls:
            return
        for path, seen in list(self._seen.items()):
            if seen.change is not None:
                continue
            now = take_fingerprint(path)
            if now is not None:
                seen.digest = now.digest
            elif not os.path.exists(path):
                del self._seen[path]


def _is_same_file(path: str, other: str) -> bool:
    """Return True if both names lead to the same file."""
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def _printed_file(call: Call) -> Printed | None:
    """Return the output of a call that may have printed all of one file, or None. The file may end before the last
    requested line."""
    claims = call.reading.claims
    first = claims[0] if len(claims) == 1 else None
    if not isinstance(first, FileLines) or len(first.keys) != 1 or first.gaps or first.shift:
        return None
    return (call.output, first.sep) if first.lines is not None and first.lines[0] == 1 else None


def notice(changes: Sequence[Change], root: str = "") -> str:
    """Return one line for a harness to show the model, or "" if there are no changes. Paths below `root` are
    shortened."""
    parts = []
    for what, deleted in (("Changed", False), ("Deleted", True)):
        names = [_name(change.path, root) for change in changes if change.deleted is deleted]
        if names:
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            parts.append(f"{what} on disk since you saw them (not by you): {', '.join(names[:MOST_NAMED])}{more}.")
    return " ".join([*parts, "Read them again before you rely on them."]) if parts else ""


def _name(path: str, root: str) -> str:
    name = path.removeprefix(root.rstrip("/") + "/") if root else path
    return name if name.isprintable() else repr(name)


def _is_file_path(path: str) -> bool:
    """Return False for a git blob, a pattern, and a path below an unknown home directory."""
    return path.startswith("/") and glob_stem(path) is None


def _visible(view: View, path: str, call_id: str | None = None) -> list[Lines]:
    """Return the visible lines that are known to be in the current file. `call_id`: only lines shown by this call.
    Without it, only lines that are the file's bytes."""
    known, out = view.key(path), list[Lines]()
    numbered = known.numbered_in(BASH) if call_id is None else known.numbered
    for start, end, visible in numbered.overlaps(1, _LAST):
        mapped = visible.mapped
        if len(mapped.keys) == 1 and call_id in (None, visible.event.call_id):
            out.append((start, view.bodies(visible)[start - mapped.first : end - mapped.first + 1]))
    return out


def _is_unchanged(wanted: Sequence[Lines], now: Fingerprint) -> bool:
    """Return True if the file contains all these lines at their numbers. Lines past the end of its head are not
    checked."""
    if not wanted:
        return True
    lines = split_lines(now.head.decode("utf-8", "replace"))
    if now.is_truncated:
        lines = lines[:-1]
        wanted = [(first, some) for first, some in wanted if first + len(some) - 1 <= len(lines)]
    return all(lines[first - 1 : first - 1 + len(some)] == list(some) for first, some in wanted)


def _is_all(printed_file: Printed | None, now: Fingerprint) -> bool:
    """Return True if the output is exactly this file, with or without numbers."""
    if printed_file is None:
        return False
    printed, sep = printed_file
    text = now.head.decode("utf-8", "replace")
    if sep is None or text.endswith("\n") != printed.endswith("\n"):
        return text == printed
    return split_lines(text) == bodies(split_lines(printed), sep)
