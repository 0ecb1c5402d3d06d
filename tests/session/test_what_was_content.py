"""What of a tool's text is content, and which lines of which file: failures, cuts, frames, forms of line numbers."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from readcache import Frame, Mode, Omitted, Outcome, Policy, Reason, Reply, RestoreItem, Session, Shown
from tests.helpers.files import LINES, TEXT, text

NEW = text(1, 30, of="new")
HEREDOC = f"cat > f <<'EOF'\n{NEW}EOF"
TRUNCATED = "".join(TEXT.splitlines(True)[:20]) + "\n... [160456 characters truncated] ...\n" + text(150, 180)


def restored_lines(session: Session) -> list[RestoreItem]:
    """What a plan puts back as lines of a file."""
    return [item for item in session.restore_plan().items if item.kind == "lines"]


@pytest.fixture
def session() -> Session:
    return Session("/w")


def joined(reply: Reply, sources: dict[str, str]) -> str:
    """The segments, with the omitted lines of the sources given by path."""
    out = []
    for segment in reply.segments:
        if isinstance(segment, Omitted):
            assert segment.path is not None
            out += sources[segment.path].splitlines(True)[segment.start - 1 : segment.end]
        else:
            out.append(segment.text)
    return "".join(out)


# ------------------------------------------------------------ writes


@pytest.mark.parametrize(
    ("command", "output", "exit_code"),
    [
        (HEREDOC, "bash: f: Permission denied\n", 1),
        (HEREDOC, "bash: line 1: f: Read-only file system\n", 1),
        (HEREDOC, "", 1),
        (HEREDOC, "bash: f: Permission denied\n", 0),
        (HEREDOC, "bash: f: Permission denied\n", None),
        (f"[ -d /nope ] && {HEREDOC}", "", 1),
        (f"[ -d /nope ] && {HEREDOC}", "", None),
        (f"[ -d /nope ] && {HEREDOC}\nls", "a\n", 0),
        (f"cat > f <<'EOF' || true\n{NEW}EOF", "bash: f: Permission denied\n", 0),
        (f"[ -d /nope ] && cat > f <<'EOF' || true\n{NEW}EOF", "", 0),
        (f"cat > f <<'EOF' && false\n{NEW}EOF", "", 1),
        (f"{{ {HEREDOC}\n}} 2>/dev/null\ntrue", "", 0),
        (f"{HEREDOC}\nls", "bash: f: No space left on device\na\n", 0),
        (f"cat <<'EOF' | tee f > /dev/null\n{NEW}EOF", "tee: f: Permission denied\n", 1),
        (f"if test -w f; then {HEREDOC}\nfi", "", 0),
        (f"cat > f <<'EOF' &\n{NEW}EOF", "", 0),
        (f"exit 0; {HEREDOC}", "", 0),
    ],
)
def test_a_write_that_may_have_failed_is_never_the_files_content(
    session: Session, command: str, output: str, exit_code: int | None
) -> None:
    session.observe("cat f", TEXT)
    session.observe(command, output, exit_code=exit_code)
    assert not session.view.covers("/w/f", 1, 1), "it is a possible write all the same"
    assert not any("new number" in item.text for item in session.restore_plan().items)
    assert session.observe("head -n 30 f", NEW).outcome is Outcome.FULL


@pytest.mark.parametrize(
    ("command", "exit_code"),
    [
        (HEREDOC, 0),
        (HEREDOC, None),
        (f"[ -d /w ] && {HEREDOC}", 0),
        (f"cd /w && {HEREDOC}\ntrue", 0),
        (f"{HEREDOC}\n{HEREDOC.replace('> f', '> g')}", 0),
        (f"cat <<'EOF' | tee f > /dev/null\n{NEW}EOF", 0),
    ],
)
def test_a_write_that_surely_took_is_content(session: Session, command: str, exit_code: int | None) -> None:
    session.observe(command, "", exit_code=exit_code)
    assert session.view.covers("/w/f", 1, 30)


def test_of_a_tool_that_ran_out_of_time_no_text_is_content(session: Session) -> None:
    session.observe(HEREDOC, "", complete=False)
    assert not session.view.covers("/w/f", 1, 1)


def test_a_wrapped_tool_that_gives_text_alone_does_not_say_that_it_succeeded(session: Session) -> None:
    session.wrap(lambda _command: "")(f"[ -d /nope ] && {HEREDOC}")
    assert not session.view.covers("/w/f", 1, 1)


def test_after_a_whole_overwrite_no_older_line_is_restored(session: Session) -> None:
    session.observe("cat f", TEXT)
    session.observe(f"cat > f <<'EOF'\n{text(1, 10, of='new')}EOF", "")
    assert [(item.start, item.end) for item in session.restore_plan().items] == [(1, 10)]
    session.observe("cat f", text(1, 10, of="new"))
    assert [(item.start, item.end) for item in session.restore_plan().items] == [(1, 10)]


# ------------------------------------------------------------ reads that failed


@pytest.mark.parametrize(
    ("command", "output", "exit_code"),
    [
        ("cat f", "cat: f: No such file or directory\n", 1),
        ("cat f; true", "cat: f: No such file or directory\n", 0),
        ("cat f | head", "cat: f: No such file or directory\n", 0),
        ("sed -n '1,80p' f", "Error response from daemon: container 3f2a is not running\n", 1),
        ("cat f", "something that no one has ever said\n", 1),
    ],
)
def test_an_error_is_no_line_of_the_file(session: Session, command: str, output: str, exit_code: int) -> None:
    assert session.observe(command, output, exit_code=exit_code).text == output
    assert not session.view.covers("/w/f", 1, 1)
    assert not restored_lines(session)
    assert session.observe("cat f", TEXT).reason is Reason.NOT_SEEN


def test_an_error_amid_the_output_moves_no_line(session: Session) -> None:
    session.observe("cat f nosuch g", f"{TEXT}cat: nosuch: No such file or directory\n{text(of='row')}", exit_code=1)
    assert not any(session.view.covers(key, 1, 1) for key in ("/w/f", "/w/g", "/w/nosuch"))
    assert session.observe("cat g", text(of="row")).outcome is Outcome.UNCHANGED


def test_a_read_tool_that_failed_credits_nothing(session: Session) -> None:
    error = "Error: the file does not exist, and here is a long list of others\n" * 9
    for _ in range(2):
        reply = session.observe_read("f", error, failed=True)
        assert (reply.text, reply.reason, reply.exit_code) == (error, Reason.UNREADABLE, 1)
    assert not session.view.covers("/w/f", 1, 1)
    assert session.observe_read("f", TEXT).reason is Reason.NOT_SEEN


# ------------------------------------------------------------ cut outputs


def test_a_tool_that_cuts_its_output_gives_no_false_numbers(session: Session) -> None:
    session.wrap(lambda _command: TRUNCATED)("cat f")
    assert session.view.covers("/w/f", 1, 19)
    assert not session.view.covers("/w/f", 1, 23)
    assert all((item.end or 0) <= 20 and "truncated" not in item.text for item in restored_lines(session))
    again = session.observe("cat f", TRUNCATED)
    assert all(s.path is None or s.end <= 20 for s in again.segments if isinstance(s, Omitted))
    assert session.observe("cat f", text(1, 180)).text.endswith(text(150, 180))


@pytest.mark.parametrize("read", [False, True])
def test_an_incomplete_output_has_no_known_lines(session: Session, read: bool) -> None:
    if read:
        session.observe_read("f", TEXT, complete=False)
    else:
        session.observe("cat f", TEXT, complete=False)
    assert not session.view.covers("/w/f", 1, 1)
    assert not restored_lines(session)
    assert session.observe("cat f", TEXT).reason is not Reason.CHANGED


# ------------------------------------------------------------ frames


@pytest.mark.parametrize(
    "frame", [Frame(head=2, tail=1), lambda t: (t[: t.index("\n", 9) + 1], t[t.index("\n", 9) + 1 : -4], t[-4:])]
)
def test_a_frame_is_passed_on_and_is_never_content(session: Session, frame: Any) -> None:
    def framed(n: int, body: str) -> str:
        return f"Chunk {n}\nOutput:\n{body}end\n"

    session.observe("cat f", framed(1, TEXT), frame=frame)
    assert session.view.covers("/w/f", 1, 60)
    assert not session.view.covers("/w/f", 61, 61)
    reply = session.observe("cat f", framed(2, TEXT), frame=frame)
    assert reply.outcome is Outcome.UNCHANGED
    assert reply.text.startswith("Chunk 2\nOutput:\n")
    assert reply.text.endswith("\nend\n")
    assert reply.full_text == joined(reply, {"/w/f": TEXT}) == framed(2, TEXT)
    assert reply.segments[0] == Shown("Chunk 2\nOutput:\n")
    read = session.observe_read("f", framed(3, text(1, 40)), end=40, frame=frame)
    assert next(s for s in read.segments if isinstance(s, Omitted)).path == "/w/f"


def test_a_frame_may_stand_in_a_line_of_the_output(session: Session) -> None:
    session.observe("cat f", TEXT)
    output = f"<o>{TEXT[:-1]}\n</o>"
    reply = session.observe("cat f", output, frame=lambda t: (t[:3], t[3:-5], t[-5:]))
    assert reply.text.startswith("<o>[")
    assert reply.text.endswith("]\n</o>")
    assert joined(reply, {"/w/f": TEXT}) == output


@pytest.mark.parametrize("frame", [lambda _: 1 / 0, lambda _: ("", "", ""), lambda _: None, Frame(head=99, tail=99)])
def test_a_frame_that_does_not_fit_costs_nothing_but_numbers(session: Session, frame: Any) -> None:
    for _ in range(2):
        reply = session.observe("cat f", TEXT, frame=frame)
        assert reply.full_text == TEXT
    assert not session.view.covers("/w/f", 1, 1)


def test_a_frame_passes_through_where_nothing_is_judged() -> None:
    reply = Session("/w", policy=Policy(mode=Mode.OFF)).observe("cat f", f"h\n{TEXT}", frame=Frame(head=1))
    assert reply.text == reply.full_text == f"h\n{TEXT}"


@pytest.mark.parametrize(
    ("command", "skipped", "covers"),
    [
        ("sed -n 10,50p f", 3, True),
        ("sed -n 10,50p f; echo --; ls", 3, True),
        ("head -n 2 f", 3, False),
        ("cat -n f", 3, False),
        ("sed -i s/a/b/ f", 3, False),
        ("make", 3, False),
    ],
)
def test_lines_that_a_host_removed_from_the_start_are_counted(
    session: Session, command: str, skipped: int, covers: bool
) -> None:
    ends = "--\nf\n" if "ls" in command else ""
    session.observe(command, text(13, 50) + ends, skipped=skipped)
    assert session.view.covers("/w/f", 13, 50) == covers
    assert not session.view.covers("/w/f", 10, 10), "what was removed was not shown"


# ------------------------------------------------------------ edges


def test_of_lines_that_the_host_numbers_the_middle_is_never_left_out(session: Session) -> None:
    session.observe("sed -n 10,50p f", text(10, 50))
    shown = session.observe_read("f", TEXT, edges_only=True)
    assert (shown.text, shown.outcome) == (TEXT, Outcome.FULL)
    session = Session("/w")
    session.observe("head -n 40 f", text(1, 40))
    (gap, rest) = session.observe_read("f", TEXT, edges_only=True).segments
    assert (gap.start, gap.end, rest) == (1, 40, Shown(text(41, 60)))  # type: ignore[union-attr]


# ------------------------------------------------------------ forms of line numbers


FORMS = ["{:6}\t", "{}→", "{}: ", "{:05}| ", "{}:", "{:3}. "]
INDENTED = ["class Shop:", *(f"    {line}" for line in LINES[:20]), "", *(f"    {line}" for line in LINES[20:58])]


def shown_as(form: str, first: int, last: int, lines: list[str] = INDENTED) -> str:
    return "".join(f"{form.format(n)}{lines[n - 1]}\n" for n in range(first, last + 1))


@pytest.mark.parametrize("form", FORMS)
def test_each_usual_form_of_numbers_is_known(session: Session, form: str) -> None:
    session.observe_read("f", shown_as(form, 1, 60), numbered=True)
    assert session.view.covers("/w/f", 1, 60)
    assert session.observe("cat f", "".join(line + "\n" for line in INDENTED)).outcome is Outcome.UNCHANGED
    inner = session.observe_read("f", shown_as(form, 2, 19), start=2, end=19, numbered=True)
    assert (inner.outcome, inner.reason) == (Outcome.UNCHANGED, Reason.COVERED)
    assert session.observe_read("f", shown_as(form, 1, 60), numbered=True).reason is Reason.COVERED


@pytest.mark.parametrize("form", ["{}: ", "{}:", "{:5}| ", "{}|"])
def test_where_the_separator_is_open_no_blank_is_taken_for_it(session: Session, form: str) -> None:
    inner = shown_as(form, 2, 19)
    session.observe_read("f", inner, start=2, end=19, numbered=True)
    for blanks in (2, 3, 5):
        other = "".join(" " * blanks + line + "\n" for line in LINES[:18])
        assert session.observe("sed -n 2,19p f", other).text == other
    session = Session("/w")
    for _ in range(2):
        reply = session.observe_read("f", inner, start=2, end=19, numbered=True)
    assert reply.outcome is not Outcome.FULL, "the very same text is left out all the same"


def test_a_list_that_the_tool_did_not_number_keeps_its_own_numbers(session: Session) -> None:
    """A tool that says `numbered` has numbered each line: see `judging/test_numbers.py`."""
    items = "".join(f"{n}. {line}\n" for n, line in enumerate(LINES[:40], 1))
    session.observe_read("list.md", items)
    without = "".join(line + "\n" for line in LINES[:40])
    assert session.observe("cat list.md", without).text == without
    assert session.observe("cat list.md", items).outcome is not Outcome.PARTIAL


def test_numbers_that_do_not_rise_are_not_line_numbers(session: Session) -> None:
    items = "".join(f"1. {line}\n" for line in LINES[:40])
    session.observe_read("list.md", items, numbered=True)
    assert not session.view.covers("/w/list.md", 1, 1)


# ------------------------------------------------------------ two files in one output


def test_lines_that_moved_are_named_by_the_numbers_that_they_have_at_the_source() -> None:
    session = Session("/w", policy=Policy.named("max"))
    rows = TEXT.splitlines(True)

    def output(first: int, lines: list[str]) -> str:
        return "Here is f:\n" + "".join(f"{n:6}\t{line}" for n, line in enumerate(lines, first))

    session.observe("cat -n f", output(1, rows))
    reply = session.observe("cat -n f | sed -n '23,60p'", output(23, ["new\n", *rows][22:60]))
    assert "22-59" in reply.text, "the numbers there are not those that the output had"
    reply = session.observe("cat -n f | sed -n '123,182p'", output(123, rows))
    assert "lines 1-60" in reply.text


@pytest.mark.parametrize("command", ["sed -n '1,33p' f; cat g", "head -n 40 f; cat g", "cat f g", "cat f; cat g"])
def test_where_one_file_ends_is_not_guessed(session: Session, command: str) -> None:
    session.observe(command, text(1, 21) + text(1, 60, of="row"))
    assert not session.view.covers("/w/f", 1, 1)
    assert not session.view.covers("/w/g", 1, 1)
    assert not restored_lines(session)


def test_a_file_without_a_final_newline_ends_in_the_next_words(session: Session) -> None:
    session.observe("echo '==' && cat f && echo done", f"==\n{text(1, 21)[:-1]}done\n")
    assert session.view.covers("/w/f", 1, 20)
    assert not session.view.covers("/w/f", 21, 21)
    assert not any("done" in item.text for item in session.restore_plan().items)


def test_a_completed_process_says_that_it_failed(session: Session) -> None:
    def bash(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "bash: f: Permission denied\n")

    session.wrap(bash)(HEREDOC)
    assert not session.view.covers("/w/f", 1, 1)


@pytest.mark.parametrize("known", [{"complete": False}, {"exit_code": 1}])
def test_the_same_text_again_is_no_better_known_than_it_was(session: Session, known: dict[str, Any]) -> None:
    session.observe("cat f", "the daemon is not running, and here is why that may be so\n" * 9, **known)
    reply = session.observe("cat f", "the daemon is not running, and here is why that may be so\n" * 9, **known)
    assert all(segment.path is None for segment in reply.segments if isinstance(segment, Omitted))
    assert not session.view.covers("/w/f", 1, 1)
