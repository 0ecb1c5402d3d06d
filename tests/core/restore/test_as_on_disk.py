"""Restored sections have the text that is on disk, say at its place what changed, and have no line twice."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Policy, Session
from tests.helpers.files import text

OLD, NEW = "beta number 7 ", "beta NUMBER 7 "


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "a").write_text(text(1, 30, of="alpha"))
    (tmp_path / "b").write_text(text(1, 30, of="beta"))
    return Session(tmp_path)


def edit(session: Session, by: str) -> None:
    """Change line 7 of b."""
    command = "sed -i 's/beta number 7 /beta NUMBER 7 /' b"
    path = Path(session.root, "b")
    if by == "the agent":
        session.run(command)
    elif by == "a sub-agent":
        session.fork("other").run(command)
    elif by == "a formatter":
        path.write_text(path.read_text().replace(OLD, "beta\n    NUMBER 7 "))
    else:
        path.write_text(path.read_text().replace(OLD, NEW))


BY = ["nobody", "the agent", "a sub-agent", "another program", "a formatter"]
READS = ["cat a b", "cat a && cat b", "cat nosuch b", "cat b nosuch", "cat a; ls nosuch; cat b", "tail -n 20 a; cat b"]


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("command", READS)
def test_lines_of_several_files_come_back_as_they_are_on_disk(session: Session, command: str, by: str) -> None:
    session.run(command)
    if by != "nobody":
        edit(session, by)
    section = session.restore_plan().render()
    assert Path(session.root, "b").read_text() in section
    assert by == "nobody" or OLD not in section
    assert set(text(11, 30, of="alpha").splitlines()) <= set(section.splitlines()) or " a" not in command


@pytest.mark.parametrize("by", BY)
def test_no_line_comes_back_twice(session: Session, by: str) -> None:
    for command in (*READS, "cat b; true", "sed -n '5,25p' a b", "cat b"):
        session.run(command)
    if by != "nobody":
        edit(session, by)
    lines = Counter(session.restore_plan().render().splitlines())
    assert [line for line, times in lines.items() if times > 1] == []
    assert set(lines) >= set(text(1, 30, of="alpha").splitlines()) | set(
        Path(session.root, "b").read_text().splitlines()
    )
    assert by == "nobody" or not any(OLD in line for line in lines)


@pytest.mark.parametrize("changed", [range(1, 26), range(6, 31)], ids=["at its start", "at its end"])
def test_of_a_file_that_was_mostly_rewritten_all_lines_come_back(session: Session, changed: range) -> None:
    session.run("cat b")
    new = text(1, 30, of="beta", **{f"l{n}": f"new line {n} that nobody was shown" for n in changed})
    Path(session.root, "b").write_text(new)
    assert new in session.restore_plan().render()


@pytest.mark.parametrize("by", BY[1:])
def test_a_result_with_lines_of_files_comes_back_in_parts(session: Session, by: str) -> None:
    noise = [f"note {n} of a program that prints much more than the lines of files" for n in range(60)]
    Path(session.root, "notes").write_text("".join(f"echo '{line}'\n" for line in noise))
    session.run("cat b; echo; sh notes")
    edit(session, by)
    section = session.restore_plan().render()
    assert OLD not in section
    assert Path(session.root, "b").read_text() in section
    assert "\n".join(noise) in section
    notes = [line for line in section.splitlines() if line.startswith("[")]
    assert notes == ["[6 lines of b]", "[1 line from before b changed]", "[23 lines of b]"]


@pytest.mark.parametrize("by", BY[1:])
def test_a_line_of_a_diff_that_changed_since_is_named_at_its_place(session: Session, by: str) -> None:
    git = "git -c user.name=n -c user.email=e"
    session.run(f"git init -q; git add a b; {git} commit -qm one; cp a b; {git} commit -qam two")
    path = Path(session.root, "b")
    path.write_text(text(1, 30, of="beta"))
    session.run("cat b")
    session.run("git diff")
    edit(session, by)
    section = session.restore_plan().render()
    assert f"+{OLD}" not in section
    assert "[1 line that is not in b now]" in section


def test_an_output_says_how_many_files_were_written_since(session: Session) -> None:
    session.run("grep -rn number .")
    edit(session, "the agent")
    (item,) = session.restore_plan().items
    assert item.why == "2 calls ago; 1 file was edited since"


def test_each_heading_names_the_file_or_the_command(session: Session) -> None:
    for command in ("sed -n '1,10p' a", "sed -n '15,25p' a", "ls -l /; seq 100 199"):
        session.run(command)
    section = session.restore_plan().render().splitlines()
    headings = [line[4:] for line in section if line.startswith("### ")]
    assert [re.split(":|,", heading)[0] for heading in headings] == [
        f"{session.root}/a lines 1-10",
        "a lines 15-25",
        "Output of `ls -l /; seq 100 199` from 1 call ago",
    ]


@given(st.data())
def test_a_marker_names_the_heading_and_the_lines_below_it(data: st.DataObject) -> None:
    session = Session("/w", policy=Policy(min_worth=0, min_chars=100, any_output=True))
    outputs = {name: text(1, 60, of=name) for name in ("alpha", "beta", "gamma")}
    for name, output in outputs.items():
        session.observe(f"make {name}", output)
    plan = session.restore_plan()
    session.compacted(restored=plan)
    rows = outputs[data.draw(st.sampled_from(sorted(outputs)))].splitlines(True)
    low, high = data.draw(st.integers(0, 20)), data.draw(st.integers(30, 50))
    printed = "".join(rows[high : high + 9] + rows[low : low + 9])
    reply = session.observe("make other", printed)
    (marker,) = session.markers_in(reply.text)
    heading, spans = re.findall(r'under "([^"]+)" as lines ([\d, -]+) of that output;', marker)[0]
    section = plan.render().splitlines()
    at = next(n for n, line in enumerate(section) if line.startswith(f"### {heading}"))
    bounds = [span.partition("-") for span in spans.split(", ")]
    named = [line for first, _, last in bounds for line in section[at + int(first) : at + int(last or first) + 1]]
    assert named == printed.splitlines()


def test_a_file_that_was_deleted_does_not_come_back_as_an_output(session: Session) -> None:
    session.run("cat a b")
    session.run("rm b")
    plan = session.restore_plan()
    assert "beta" not in plan.render()
    assert text(1, 30, of="alpha") in plan.render()


@pytest.mark.parametrize("by", ["nobody", "the agent"])
def test_without_a_disk_later_reads_tell_which_lines_are_of_which_file(by: str) -> None:
    session = Session("/w")
    old, new = text(1, 30, of="beta"), text(1, 30, of="beta", l7=f"{NEW}says something else")
    session.observe("cat a b", text(1, 30, of="alpha") + old)
    if by == "the agent":
        session.wrote("/w/b")
    session.observe("cat b", new if by == "the agent" else old)
    section = session.restore_plan().render()
    lines = Counter(section.splitlines())
    assert [line for line, times in lines.items() if times > 1] == []
    assert (OLD in section) is (by == "nobody")
    assert text(1, 30, of="alpha") in section


def test_without_a_disk_a_note_is_above_lines_that_may_be_older_than_a_change() -> None:
    session = Session("/w")
    both = text(1, 30, of="alpha") + text(1, 30, of="beta")
    session.observe("cat a b", both)
    session.wrote("/w/b")
    plan = session.restore_plan()
    heading = "### Output of `cat a b` from 2 calls ago; b has changed since\n"
    assert f"{heading}[60 lines that may be from before b changed:]\n{both}" in plan.render()
    assert plan.source_map() == ()  # they are not credited as lines of the files
