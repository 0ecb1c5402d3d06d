"""The law of names: a marker names a file only if the bytes prove it."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache import Outcome, Policy, Session

OF_TWO_FILES = [
    "cat a && cat b",
    "cat nope; cat b",
    "cat a b",
    "tail -20 a; cat b",
    "cat a; ls; cat b",
    "grep alpha a; cat b",
    "cat a; echo; cat b",
    "sed -n '20,45p' a b",
    "head -n 40 a b",
    "sed -n '20,60p' a; sed -n '1,30p' b",
    "cat a; cat a; cat b",
]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    for name, word in (("a", "alpha"), ("b", "beta")):
        lines = (f"{word} line {n} of this file here\n" for n in range(1, 31))
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    return Session(tmp_path, policy=Policy(min_worth=0))


@pytest.mark.parametrize("command", OF_TWO_FILES)
@pytest.mark.parametrize("again", ["cat b", "sed -n '1,15p' b", "cat -n b | sed -n '1,15p'"])
def test_a_file_whose_bytes_are_known_is_named_at_its_source_and_no_other(
    session: Session, command: str, again: str
) -> None:
    session.run(command)
    reply = session.run(again)
    assert reply.outcome is not Outcome.FULL
    (marker,) = session.markers_in(reply.text)
    assert ": b lines 1-" in marker
    assert " as " not in marker.replace("same as above", "")


@pytest.mark.parametrize("command", ["cat a && cat b", "cat nope; cat b", "sed -n '20,60p' a; sed -n '1,99p' b"])
def test_a_whole_file_that_was_shown_among_others_is_called_unchanged(session: Session, command: str) -> None:
    session.run(command)
    assert f'[FILE_UNCHANGED {session.tag}.2: b lines 1-30, above in "' in session.run("cat b").text


def test_an_edit_of_another_file_that_was_shown_in_front_changes_nothing(session: Session) -> None:
    session.run("cat a && cat b")
    session.run("sed -i 's/alpha line 7/new line 7/' a")
    assert session.run("cat b").outcome is Outcome.UNCHANGED


def test_a_file_that_changed_after_it_was_shown_among_others_is_shown(session: Session) -> None:
    session.run("cat a && cat b")
    session.run("sed -i 's/beta line 7/new line 7/' b")
    assert session.run("cat b").outcome is Outcome.FULL


def test_lines_of_a_program_are_not_called_lines_of_the_file_that_follows(session: Session) -> None:
    session.run("tac a | tac; cat b")
    assert session.run("cat a").text == (
        f'[LEFT_OUT {session.tag}.2: a lines 1-30, same as above in "tac a | tac; cat b"; repeat this call to see]\n'
    )


def test_the_only_file_of_known_lines_is_named(session: Session, tmp_path: Path) -> None:
    (tmp_path / "copy").write_bytes((tmp_path / "a").read_bytes())
    session.run("cat a")
    shown = session.run("sed -n '1,29p' copy").text
    assert 'copy lines 1-29, same as above in "cat a" as a; repeat' in shown


def test_the_last_line_before_a_numbered_file_is_omitted_too(session: Session) -> None:
    session.run("cat -n a; cat -n b")
    assert session.run("cat -n a").text == (
        f'[FILE_UNCHANGED {session.tag}.2: a lines 1-30, above in "cat -n a; cat -n b"; repeat this call to see]\n'
    )


def test_a_name_that_reads_like_words_of_the_marker_is_quoted(session: Session, tmp_path: Path) -> None:
    name = "a, lines 1-3.c"
    (tmp_path / name).write_bytes((tmp_path / "a").read_bytes())
    session.read(name)
    reply = session.read(name, start=10)
    assert reply.text.startswith(
        f'[UNCHANGED {session.tag}.2: "{name}" lines 10-30, above in the read of the whole file;'
    )
    shown = session.run(f"sed -n '2,29p' a; sed -n '2,29p' '{name}'").text
    assert f'above in the read of "{name}"' in shown


def heredoc(path: str, word: str) -> tuple[str, str]:
    """Return a command that writes forty lines to the file, and these lines. `word` is in line 30."""
    lines = [f"line {n} of the file, {word if n == 30 else 'as ever'}, with more words\n" for n in range(1, 41)]
    return f"cat > {path} <<'EOF'\n{''.join(lines)}EOF", "".join(lines)


@pytest.mark.parametrize("policy", ["delta", "max"])
def test_of_two_commands_that_look_the_same_in_a_marker_the_older_is_called_earlier(policy: str) -> None:
    session = Session("/w", local=False, policy=Policy.named(policy))
    (first, text), (second, newer) = heredoc("a.py", "first"), heredoc("a.py", "second")
    session.observe(first, "")
    session.observe(second, "")
    assert "above in your own earlier command" in session.observe("cat lib.py", text).text
    assert "earlier" not in session.observe("cat lib2.py", newer).text


def test_a_marker_never_gives_two_sources_one_name() -> None:
    session = Session("/w", local=False, policy=Policy(any_output=True, min_worth=0))
    parts = [heredoc("f", f"part {k}")[1].replace("line", f"row {k}") for k in range(2)]
    commands = [f"run-the-tool --with-options --of-part {k} --and-a-long-end-of-the-command" for k in range(2)]
    for command, part in zip(commands, parts, strict=True):
        session.observe(command, part)
    reply = session.observe("make all", "".join(parts))
    first, second = session.markers_in(reply.text)
    assert 'output lines 1-40, same as above in an earlier "run-the-tool' in first
    assert 'output lines 41-80, same as above in "run-the-tool' in second


def test_places_are_named_in_the_order_of_the_omitted_lines(session: Session, tmp_path: Path) -> None:
    a, b = ((tmp_path / name).read_text(encoding="utf-8").splitlines(True) for name in ("a", "b"))
    (tmp_path / "mixed").write_text("".join([*a[:10], *b[:10], *a[10:20]]), encoding="utf-8")
    session.run("cat a; echo ---; cat b")
    assert session.run("cat mixed").text == (
        f'[LEFT_OUT {session.tag}.2: mixed lines 1-30, same as above in "cat a; echo ---; cat b" '
        "as a lines 1-10 and b lines 1-10 and a lines 11-20; repeat this call to see]\n"
    )


def test_lines_of_two_files_by_turns_are_named_in_their_order(session: Session) -> None:
    session.run("cat a; echo ---; cat b")
    reply = session.run("sed -n '1,15p' a; sed -n '1,15p' b; sed -n '16,30p' a")
    first, second = session.markers_in(reply.text)
    assert ": a lines 1-15 and b lines 1-15, above in " in first
    assert ": a lines 16-30, above in " in second
