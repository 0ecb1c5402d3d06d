"""The decision table: one small story for each `Reason`, told through the public session."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from readcache import Mode, Outcome, Policy, Reason, Reply, Session
from readcache.core.model.errors import StoreError
from readcache.core.model.reply import without_omissions
from readcache.log.store import Store
from readcache.log.store.protocol import MemoryStore
from tests.helpers.files import LINES, TEXT, in_time_enough, text, with_numbers
from tests.helpers.one_call import one_call_session
from tests.helpers.replies import sources


class Sessions:
    """Makes the sessions of a story and keeps them."""

    def __init__(self) -> None:
        self.made: list[Session] = []

    def __call__(self, policy: Policy | None = None, root: str = "/w", store: Store | None = None) -> Session:
        self.made.append(Session(root, policy=policy or Policy(), store=store))
        return self.made[-1]


@pytest.fixture
def new() -> Sessions:
    return Sessions()


def twice(session: Session, command: str, output: str) -> Reply:
    session.observe(command, output)
    return session.observe(command, output)


def covered(new: Sessions) -> Reply:
    return twice(new(), "cat f", text())


def overlap(new: Sessions) -> Reply:
    session = new()
    session.observe("head -n 25 f", text(1, 25))
    return session.observe("cat f", text())


def unchanged_lines(new: Sessions) -> Reply:
    session = new(Policy(delta=True))
    session.observe("cat f", text())
    session.observe("sed -i 's/a/b/' f", "")
    return session.observe("cat f", text(l20="this line is new"))


def identical(new: Sessions) -> Reply:
    return twice(new(), "make test", text())


def identical_result_of_a_tool(new: Sessions) -> Reply:
    session = new()
    session.observe_tool("search", text(), arguments={"pattern": "line"})
    return session.observe_tool("search", text(), arguments={"pattern": "line"})


def repeated_lines(new: Sessions) -> Reply:
    session = new(Policy(any_output=True))
    session.observe("make test", text())
    return session.observe("make test", "another run\n" + text())


def not_seen(new: Sessions) -> Reply:
    return new().observe("cat f", text())


def changed(new: Sessions) -> Reply:
    session = new()
    session.observe("cat f", text())
    return session.observe("cat f", text(l20="somebody else was here"))


def other_view(new: Sessions) -> Reply:
    session = new()
    session.observe_read("f", TEXT.replace("\n", " \n"), numbered=False)
    return session.observe("cat f", TEXT)


def written(new: Sessions) -> Reply:
    session = new()
    session.observe("cat f", text())
    session.wrote("f")
    return session.observe("cat f", text())


def insisted(new: Sessions) -> Reply:
    session = new()
    twice(session, "cat f", text())
    return session.observe("cat f", text())


def too_short(new: Sessions) -> Reply:
    return twice(new(), "cat f", text(1, 3))


def no_gain(new: Sessions) -> Reply:
    session = new()
    session.observe("head -n 2 f", text(1, 2))
    return session.observe("cat f", text())


def not_worth(new: Sessions) -> Reply:
    session = new()
    session.observe("head -n 5 f", text(1, 5))
    return session.observe("cat f", text())


def same_batch(new: Sessions) -> Reply:
    session = new()
    with session.batch():
        return twice(session, "cat f", text())


def unnumbered(new: Sessions) -> Reply:
    session = new()
    session.observe("cat f", text())
    return session.observe("nl -ba -v 100 f", "".join(f"{n:6}\t{line}\n" for n, line in enumerate(LINES[:60], 100)))


def no_partial(new: Sessions) -> Reply:
    session = new(Policy(partial=False))
    session.observe("head -n 25 f", text(1, 25))
    return session.observe("cat f", text())


def never(new: Sessions) -> Reply:
    return twice(new(), "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt", text())


def always(new: Sessions) -> Reply:
    return twice(new(), "cat SKILL.md", text())


def polled(new: Sessions) -> Reply:
    return twice(new(), "cat build.log", text())


def protected(new: Sessions) -> Reply:
    return twice(new(Policy(protected=("*.key",))), "cat my.key", text())


def mode_off(new: Sessions) -> Reply:
    return twice(new(Policy(mode=Mode.OFF)), "cat f", text())


def advised(new: Sessions) -> Reply:
    return twice(new(Policy(mode=Mode.ADVISE)), "cat f", text())


def holds_a_marker(new: Sessions) -> Reply:
    session = new()
    marker = twice(session, "cat f", text()).text
    return twice(session, "cat notes", text(21) + marker)


def binary(new: Sessions) -> Reply:
    return twice(new(), "cat f", text() + "\0")


def too_large(new: Sessions) -> Reply:
    return twice(new(), "cat f", text() * 5_000)


def not_text(new: Sessions) -> Reply:
    replies: list[Reply] = []
    bash = new().wrap(lambda command: (TEXT, command), on_reply=replies.append)
    assert bash("cat f") == (TEXT, "cat f")
    return replies[0]


def bytes_that_are_no_text(new: Sessions) -> Reply:
    session = new(root="/")
    with tempfile.NamedTemporaryFile("wb") as file:
        for last in (b"caf\xe9\n", b"caf\xe8\n"):
            file.seek(0)
            file.write(TEXT.encode() + last)
            file.flush()
            reply = session.run(f"cat {file.name}")
    return reply


def timed_out(new: Sessions) -> Reply:
    return in_time_enough(
        lambda timeout: new(root="/").run("echo started; sleep 60", timeout=timeout),
        lambda reply: "started" in reply.text,
    )


def killed(new: Sessions) -> Reply:
    return new(root="/").run("echo started; kill -9 $$")


def not_run(new: Sessions) -> Reply:
    return new(root="/").run("echo a\0b")


def unreadable(new: Sessions) -> Reply:
    return new(root="/").read("no such file")


def fresh(new: Sessions) -> Reply:
    session = new(root="/")
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write(text())
        file.flush()
        session.read(file.name)
        return session.read(file.name, fresh=True, call_id="in doubt")


def recalled(new: Sessions) -> Reply:
    session = new()
    session.observe("make test", text())
    return session.run(f"readcache recall {session.tag}.1")


def unstable(new: Sessions) -> Reply:
    session = new(root="/")
    with tempfile.NamedTemporaryFile("w+") as file, mock.patch("os.fstat", _restless(os.fstat)):
        file.write(text())
        file.flush()
        session.read(file.name)
        return session.read(file.name)


def _restless(fstat: Callable[[int], os.stat_result]) -> Callable[[int], os.stat_result]:
    """The state of a file that somebody writes to between any two looks."""
    ticks = itertools.count(1)

    def look(fd: int) -> os.stat_result:
        found = fstat(fd)
        times = {"st_mtime_ns": next(ticks), "st_ctime_ns": found.st_ctime_ns}
        return os.stat_result(tuple(found), times)

    return look


class _Broken(MemoryStore):
    """A store that fails as a full disk does."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        raise StoreError("the disk is full")
        yield


def store_failed(new: Sessions) -> Reply:
    return twice(new(store=_Broken()), "cat f", text())


def internal_error(new: Sessions) -> Reply:
    class Clip:
        def kept(self, text: str) -> tuple[str, ...]:
            raise RuntimeError(f"a clip that does not work, of {len(text)} characters")

    return twice(new(Policy(clip=Clip())), "cat f", text())  # type: ignore[arg-type]


Story = Callable[[Sessions], Reply]
F = Outcome.FULL


def settled_in_full(new: Sessions, reason: Reason | None) -> Reply:
    session = new()
    session.observe("cat f", text())
    reply = session.observe("cat f", text(), commit=False)
    session.reader.settle(reply.call_id, reply.full_text, reason)
    return without_omissions(reply, reason or Reason.NOT_SENT)


def not_proven(new: Sessions) -> Reply:
    return settled_in_full(new, Reason.NOT_PROVEN)


def not_sent(new: Sessions) -> Reply:
    return settled_in_full(new, None)


def unconfirmed(new: Sessions) -> Reply:
    session = new()
    session.observe("cat f", text())
    return without_omissions(session.observe("cat f", text(), commit=False), Reason.UNCONFIRMED)


ROWS: list[tuple[Story, Outcome, Reason]] = [
    (covered, Outcome.UNCHANGED, Reason.COVERED),
    (overlap, Outcome.PARTIAL, Reason.OVERLAP),
    (unchanged_lines, Outcome.PARTIAL, Reason.UNCHANGED_LINES),
    (identical, Outcome.IDENTICAL_OUTPUT, Reason.IDENTICAL),
    (identical_result_of_a_tool, Outcome.IDENTICAL_OUTPUT, Reason.IDENTICAL),
    (repeated_lines, Outcome.PARTIAL, Reason.REPEATED_LINES),
    (not_seen, F, Reason.NOT_SEEN),
    (changed, F, Reason.CHANGED),
    (other_view, F, Reason.OTHER_VIEW),
    (written, F, Reason.WRITTEN),
    (insisted, F, Reason.INSISTED),
    (fresh, F, Reason.FRESH),
    (recalled, F, Reason.RECALLED),
    (too_short, F, Reason.TOO_SHORT),
    (no_gain, F, Reason.NO_GAIN),
    (not_worth, F, Reason.NOT_WORTH),
    (same_batch, F, Reason.SAME_BATCH),
    (unnumbered, F, Reason.UNNUMBERED),
    (holds_a_marker, F, Reason.HOLDS_A_MARKER),
    (no_partial, F, Reason.NO_PARTIAL),
    (not_proven, F, Reason.NOT_PROVEN),
    (not_sent, F, Reason.NOT_SENT),
    (unconfirmed, F, Reason.UNCONFIRMED),
    (never, F, Reason.NEVER),
    (always, F, Reason.ALWAYS),
    (polled, F, Reason.POLLED),
    (protected, F, Reason.PROTECTED),
    (mode_off, F, Reason.MODE_OFF),
    (advised, F, Reason.ADVISED),
    (binary, F, Reason.BINARY),
    (not_text, F, Reason.NOT_TEXT),
    (bytes_that_are_no_text, F, Reason.NOT_TEXT),
    (too_large, F, Reason.TOO_LARGE),
    (timed_out, F, Reason.TIMED_OUT),
    (killed, F, Reason.KILLED),
    (not_run, F, Reason.NOT_RUN),
    (unreadable, F, Reason.UNREADABLE),
    (unstable, F, Reason.UNSTABLE),
    (store_failed, F, Reason.STORE_FAILED),
    (internal_error, F, Reason.INTERNAL_ERROR),
]


@pytest.mark.parametrize(("story", "outcome", "reason"), ROWS, ids=lambda v: getattr(v, "value", None) or "")
def test_each_reason_follows_from_its_story(new: Sessions, story: Story, outcome: Outcome, reason: Reason) -> None:
    reply = story(new)
    assert (reply.outcome, reply.reason) == (outcome, reason)
    assert (reply.text == reply.full_text) == (outcome is Outcome.FULL)


def test_every_reason_has_a_story() -> None:
    assert list(dict.fromkeys(reason for *_, reason in ROWS)) == list(Reason)


@pytest.mark.parametrize("reason", [r for r in Reason if r is not Reason.MODE_OFF], ids=lambda r: r.value)
def test_every_reason_is_counted(new: Sessions, reason: Reason) -> None:
    story = next(story for story, _, of in ROWS if of is reason)
    story(new)
    assert new.made[-1].stats()[reason.value] >= 1


def test_a_session_that_is_off_records_nothing(new: Sessions) -> None:
    mode_off(new)
    assert new.made[-1].stats() == {}
    assert new.made[-1].events() == []


# ------------------------------------------------------------ which rule goes before which


def test_numbered_lines_stand_for_raw_ones(session: Session) -> None:
    session.observe("nl -ba f", with_numbers())
    assert session.observe("cat f", text()).reason is Reason.COVERED


def test_a_submit_command_is_not_touched_even_when_its_output_was_seen_by_another_command(session: Session) -> None:
    session.observe("cat patch.txt", text())
    assert session.observe("submit", text()).reason is Reason.NEVER


def test_after_a_write_an_unchanged_output_of_another_command_is_still_identical(session: Session) -> None:
    session.observe("make test", text())
    session.observe("sed -i 's/a/b/' f", "")
    reply = session.observe("make test", text())
    assert reply.reason is Reason.IDENTICAL


def test_what_the_agent_wrote_in_a_heredoc_need_not_be_shown_to_it(session: Session) -> None:
    session.observe(f"cat > f <<'EOF'\n{text()}EOF", "", call_id="w")
    reply = session.observe("cat f", text())
    assert reply.reason is Reason.COVERED
    assert sources(reply) == {"w"}


def test_of_several_files_those_that_could_be_read_count(session: Session) -> None:
    session.observe("cat missing f", "cat: missing: No such file or directory\n" + text(), exit_code=1, call_id="both")
    reply = session.observe("cat f", text())
    assert sources(reply) == {"both"}


def test_a_protected_glob_with_directories_holds_at_any_depth(tmp_path: Path) -> None:
    session = Session(tmp_path, policy=Policy(protected=("**/secrets/*",)))
    assert twice(session, "cat secrets/a", text()).reason is Reason.PROTECTED
    assert twice(session, "cat x/secrets/a", text()).reason is Reason.PROTECTED
    assert twice(session, "cat x/public/a", text(2)).reason is Reason.COVERED


def test_another_repeat_shortly_after_an_omission_insists_too(session: Session) -> None:
    twice(session, "cat f", text())
    session.observe("pwd", "/w\n")
    assert session.observe("cat f", text()).reason is Reason.INSISTED
    assert session.observe("cat f", text()).outcome is Outcome.UNCHANGED


def test_a_reader_can_insist_on_a_command_that_also_writes(session: Session) -> None:
    command = "date >> log; cat f"
    twice(session, command, text())
    assert session.observe(command, text()).text == text()


def test_a_reader_can_insist_although_another_context_wrote_meanwhile(session: Session) -> None:
    twice(session, "cat f", text())
    session.fork("helper").wrote("g")
    assert session.observe("cat f", text()).text == text()


def test_a_reader_can_insist_right_after_the_conversation_went_back_to_the_omission(session: Session) -> None:
    session.observe("cat f", text())
    session.observe("cat f", text(), call_id="marker")
    session.observe("pwd", "/w\n")
    session.rewind("marker")
    assert session.observe("cat f", text()).text == text()


@pytest.mark.parametrize("between", [["ls", "pwd", "date"], ["sed -i s/a/b/ g"], [f"cat g{n}" for n in range(100)]])
def test_no_loop_of_requests_goes_without_its_bytes(session: Session, between: list[str]) -> None:
    outcomes = []
    for _ in range(8):
        outcomes.append(session.observe("cat f", text()).outcome)
        for command in between:
            session.observe(command, text(of=command) if command.startswith("cat") else "x\n")
    assert all(Outcome.FULL in outcomes[n : n + 3] for n in range(6))


def test_a_loop_of_processes_that_judge_one_call_gets_its_bytes(tmp_path: Path) -> None:
    outcomes: dict[int, list[Outcome]] = {n: [] for n in range(5)}
    for _ in range(8):
        for n in range(5):
            with one_call_session(tmp_path / "s.db") as session:
                outcomes[n].append(session.observe(f"cat f{n}", text(of=f"f{n}")).outcome)
    for each in outcomes.values():
        assert Outcome.UNCHANGED in each
        assert all(Outcome.FULL in each[n : n + 3] for n in range(6))


# ------------------------------------------------------------ instructions


@pytest.mark.parametrize("name", ["SKILL.md", "docs/AGENTS.md", "CLAUDE.md", ".cursorrules"])
@pytest.mark.parametrize("preset", ["default", "max"])
def test_a_file_of_instructions_is_shown_whole_each_time_and_counts_as_seen(
    new: Sessions, name: str, preset: str
) -> None:
    """Skills that were answered by a stub were obeyed less."""
    session = new(Policy.named(preset))
    for command in (f"cat {name}", f"cat {name}", f"sed -n '2,40p' {name}", f"cat {name}"):
        output = text(2, 40) if "sed" in command else text()
        reply = session.observe(command, output)
        assert (reply.text, reply.reason) == (output, Reason.ALWAYS)
    assert session.view.covers(f"/w/{name}", 1, 60)
    assert session.observe_read(name, text()).reason is Reason.ALWAYS


def test_a_user_may_name_other_files_that_are_always_shown(new: Sessions) -> None:
    session = new(Policy(always=("rules/*.txt",)))
    for n in range(2):
        assert session.observe("cat rules/a.txt", text(), call_id=f"a{n}").outcome is Outcome.FULL
    session.observe("cat SKILL.md", text(of="s"))
    assert session.observe("cat SKILL.md", text(of="s")).outcome is Outcome.UNCHANGED
