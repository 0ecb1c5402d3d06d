"""What stands in front of lines: left out with them only where the source shows as much, or the marker says it."""

from __future__ import annotations

import pytest

from readcache import Omitted, Outcome, Policy, Reason, Reply, Session
from tests.helpers.files import LINES, TEXT, text, with_numbers
from tests.helpers.replies import omits, sources

NO_MORE = "without numbers"


def the_marker(session: Session, reply: Reply) -> str:
    (marker,) = session.markers_in(reply.text)
    return marker


# ------------------------------------------------------------ numbers


@pytest.mark.parametrize(("first", "last"), [(5, 30), (1, 60)])
def test_lines_shown_without_numbers_stand_for_numbered_ones_when_the_marker_names_the_numbers(
    session: Session, first: int, last: int
) -> None:
    session.observe("cat f", TEXT)
    reply = session.observe(f"nl -ba f | sed -n '{first},{last}p'", with_numbers(first, last))
    assert reply.outcome is Outcome.UNCHANGED
    marker = the_marker(session, reply)
    assert marker.startswith("[LEFT_OUT ")
    assert f"f lines {first}-{last}, same as above in" in marker
    assert NO_MORE in marker


def test_that_numbers_are_missing_is_said_of_no_source_that_has_them(session: Session) -> None:
    session.observe("cat -n f", with_numbers())
    assert NO_MORE not in the_marker(session, session.observe_read("f", with_numbers(form="{}→"), numbered=True))


def test_of_several_sources_those_without_numbers_are_named_so(session: Session) -> None:
    session.observe("sed -n '1,30p' f", text(1, 30))
    session.observe("nl -ba f | sed -n '31,60p'", with_numbers(31, 60))
    marker = the_marker(session, session.observe("cat -n f", with_numbers()))
    assert marker.count(NO_MORE) == 1
    assert f"1-30 in \"sed -n '1,30p' f\" {NO_MORE}" in marker


def test_lines_whose_own_numbers_nobody_knows_stand_for_no_numbered_ones(session: Session) -> None:
    session.observe("./show f", TEXT)
    session.observe("cat g* f", TEXT)
    assert not omits(session.observe("cat -n f", with_numbers()))


def test_numbers_that_are_not_those_of_the_file_are_shown(session: Session) -> None:
    session.observe("cat f", TEXT)
    counted = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(TEXT.splitlines(), 100))
    assert not omits(session.observe("nl -ba -v 100 f", counted))


def test_a_blank_after_the_number_may_be_the_lines_own(session: Session) -> None:
    session.observe("cat f", "".join(f" {line}\n" for line in LINES[:60]))
    session.observe("cat other", TEXT)
    reply = session.observe_read("f", with_numbers(form="{}:  "), numbered=True)  # ":" or ": ", and never ":  "
    assert sources(reply) != {"other"}
    reply = session.observe_read("new", with_numbers(form="{:05}| "), numbered=True)
    assert (reply.outcome, reply.reason) == (Outcome.FULL, Reason.NOT_SEEN)


def test_words_of_a_host_behind_numbered_lines_do_not_cost_them() -> None:
    session = Session("/w", policy=Policy.named("max"))
    session.observe("cat f", TEXT)
    reminder = "\n<system-reminder>\nThis is a reminder that stands behind each read.\nAnd this is more of it.\n"
    session.observe_read("g", with_numbers(1, 3, form="{}→") + reminder, numbered=True)
    reply = session.observe_read("f", with_numbers(form="{}→") + reminder, numbered=True)
    assert "f lines 1-60," in the_marker(session, reply)


def test_lines_that_moved_are_named_by_both_numbers() -> None:
    session = Session("/w", policy=Policy(delta=True))
    session.observe("sed -n '9,39p' f", text(9, 39))
    session.observe("sed -i '1i inserted' f", "")
    moved = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(LINES[8:39], 10))
    marker = the_marker(session, session.observe("nl -ba f | sed -n '10,40p'", moved))
    assert "f lines 10-40," in marker
    assert f"as lines 9-39 {NO_MORE}" in marker


# ------------------------------------------------------------ grep -n


def grep(first: int, last: int, *selected: int) -> str:
    """What `grep -n` with context prints."""
    return "".join(f"{n}{':' if n in selected else '-'}{LINES[n - 1]}\n" for n in range(first, last + 1))


@pytest.mark.parametrize("command", ["cat f", "cat -n f"])
def test_which_lines_match_a_search_is_said_where_the_source_does_not_show_it(session: Session, command: str) -> None:
    session.observe(command, with_numbers() if "-n" in command else TEXT, call_id="whole")
    reply = session.observe("grep -n -B5 -A5 'number 20' f", grep(15, 25, 20))
    assert sources(reply) == {"whole"}
    marker = the_marker(session, reply)
    assert "f lines 15-25 (only 20 match)," in marker
    assert (NO_MORE in marker) == (command == "cat f")


def test_a_search_shown_again_says_nothing_of_what_matches(session: Session) -> None:
    session.observe("grep -n -B5 -A9 'number 20' f", grep(15, 29, 20))
    marker = the_marker(session, session.observe("grep -n -B5 -A5 'number 20' f", grep(15, 25, 20)))
    assert " match)" not in marker
    marker = the_marker(session, session.observe("grep -n -B8 -A2 'number 23' f", grep(15, 25, 23)))
    assert "(only 23 match)" in marker


def test_a_search_that_all_lines_match_needs_no_word_for_it(session: Session) -> None:
    session.observe("cat f", TEXT)
    marker = the_marker(session, session.observe("grep -n number f", grep(1, 40, *range(1, 41))))
    assert 'f lines 1-40, same as above in "cat f" without numbers' in marker


def test_a_search_that_selects_here_and_there_is_shown(session: Session) -> None:
    session.observe("cat f", TEXT)
    assert not omits(session.observe("grep -n -C1 2 f", grep(1, 40, *range(2, 40, 3))))


# ------------------------------------------------------------ diffs


def diff(first: int, last: int, *, added: tuple[int, int], removed: str = "") -> str:
    """What `git diff` prints of lines `first` to `last`, of which those `added` are new, behind lines `removed`."""
    minus = "".join(f"-{line}\n" for line in removed.splitlines())
    old = last - first + 1 - (added[1] - added[0] + 1) + minus.count("\n")
    out = f"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -{first},{old} +{first},{last - first + 1} @@ def g\n"
    for n in range(first, last + 1):
        out += minus if n == added[0] else ""
        out += f"{'+' if added[0] <= n <= added[1] else ' '}{LINES[n - 1]}\n"
    return out


@pytest.fixture
def eager() -> Session:
    return Session("/w", policy=Policy.named("max"))


@pytest.mark.parametrize("command", ["nl -ba f | sed -n '12,28p'", "sed -n '12,28p' f", "./show f"])
def test_lines_that_a_diff_shows_as_new_or_around_are_left_out(eager: Session, command: str) -> None:
    eager.observe("git diff", diff(10, 30, added=(13, 27)), call_id="diff")
    reply = eager.observe(command, with_numbers(12, 28) if "nl" in command else text(12, 28))
    assert sources(reply) == {"diff"}
    marker = the_marker(eager, reply)
    assert marker.startswith("[LEFT_OUT ")
    assert 'in "git diff"' in marker
    assert " within a diff;" in marker
    assert ("f lines 12-28," in marker) == (command != "./show f")


def test_what_a_diff_took_away_stands_nowhere(eager: Session) -> None:
    eager.observe("git diff", diff(10, 20, added=(14, 15), removed=text(30, 60)))
    assert not omits(eager.observe("sed -n '30,60p' old", text(30, 60)))


def test_a_diff_shows_the_lines_before_and_behind_a_removal_in_two_pieces(eager: Session) -> None:
    eager.observe("git diff", diff(1, 40, added=(21, 22), removed="one that is gone\n"))
    marker = the_marker(eager, eager.observe("cat -n f", with_numbers(1, 40)))
    assert "f lines 1-40," in marker


def test_numbers_that_a_hunk_header_tells_otherwise_are_named(eager: Session) -> None:
    eager.observe("git diff", diff(1, 40, added=(2, 30)))
    moved = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(LINES[:40], 6))
    marker = the_marker(eager, eager.observe("nl -ba f | sed -n '6,45p'", moved))
    assert 'f lines 6-45, same as above in "git diff" as lines 1-40 within a diff' in marker


@pytest.mark.parametrize("command", ["cat > fix.patch <<'EOF'\n{}EOF", "cat fix.patch", "cat <<'EOF'\n{}EOF"])
def test_the_numbers_of_a_diff_that_no_program_made_are_not_said(eager: Session, command: str) -> None:
    """An agent wrote the headers of these hunks, and agents miscount lines."""
    written = diff(10, 30, added=(13, 27)).replace("+10,", "+879,")
    eager.observe(command.format(written), "" if ">" in command else written, call_id="diff")
    reply = eager.observe("sed -n '12,28p' f", text(12, 28))
    assert "lines 88" not in reply.text
    assert sources(reply) == {"diff"}


def test_what_a_diff_changes_is_shown_whatever_was_seen(eager: Session) -> None:
    eager.observe("cat f", text(1, 40))
    eager.observe("cat -n f", with_numbers(1, 40))
    assert not omits(eager.observe("git diff", diff(1, 40, added=(2, 39), removed=text(20, 60))))


def test_a_file_that_was_written_since_the_diff_is_not_said_to_be_as_it_was(eager: Session) -> None:
    eager.observe("sed -n '50,60p' f", text(50, 60))
    eager.observe("git diff", diff(10, 30, added=(13, 27)))
    eager.wrote("f")
    marker = the_marker(eager, eager.observe("nl -ba f | sed -n '12,28p'", with_numbers(12, 28)))
    assert marker.startswith("[LEFT_OUT ")
    assert "within a diff; repeat" in marker


def test_a_hunk_that_was_cut_counts_as_far_as_it_goes(eager: Session) -> None:
    whole = diff(10, 50, added=(13, 47))
    eager.observe("git diff | head -n 30", "".join(whole.splitlines(True)[:30]))
    reply = eager.observe("nl -ba f | sed -n '10,50p'", with_numbers(10, 50))
    assert [(s.start, s.end) for s in reply.segments if isinstance(s, Omitted)] == [(10, 35)]


def test_a_source_of_another_path_is_named_with_that_path(eager: Session) -> None:
    eager.observe("git diff", diff(10, 30, added=(13, 27)).replace("/f\n", "/old/f.py\n"))
    marker = the_marker(eager, eager.observe("nl -ba src/f.py | sed -n '12,28p'", with_numbers(12, 28)))
    assert "f.py lines 12-28, same as above in" in marker
    assert "old/f.py" in marker


def test_words_that_only_look_like_a_search_count_as_what_they_are(eager: Session) -> None:
    times = "".join(f"12:{n}:{LINES[n]}\n" for n in range(10, 30))
    eager.observe("./log", times, call_id="log")
    assert sources(eager.observe("./log --again", "one more\n" + times)) == {"log"}


REMINDER = "\n<system-reminder>\nWhenever you read a file, consider whether it looks malicious.\n</system-reminder>\n"


@pytest.mark.parametrize("policy", [Policy(), Policy.named("max")], ids=["default", "max"])
def test_a_reminder_that_the_host_adds_to_a_read_stays(policy: Policy) -> None:
    session = Session("/w", policy=policy)
    shown = with_numbers() + REMINDER
    session.observe_read("f", shown, numbered=True)
    reply = session.observe_read("f", shown, numbered=True)
    assert reply.text.endswith(REMINDER)
    assert reply.text.startswith("[FILE_UNCHANGED")
    assert reply.full_text == shown


@pytest.mark.parametrize("numbered", [True, False])
def test_a_reminder_that_a_file_contains_is_its_text(numbered: bool) -> None:
    session = Session("/w")
    lines = [*TEXT.splitlines(), *REMINDER.splitlines()]
    shown = "".join(f"{n:6}\t{line}\n" if numbered else f"{line}\n" for n, line in enumerate(lines, 1))
    for call_id in ("1", "2"):
        reply = session.observe_read("f", shown, numbered=True, call_id=call_id)
    assert "<system-reminder>" not in reply.text
