"""`Session.recall`, and the command `readcache recall NAME [FIRST-LAST]` at each door."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from readcache import Budget, HeadTail, Mode, Outcome, Policy, RestorePlan, Session, UsageError
from readcache.core.judging.marker import name_in
from readcache.core.model.text import session_tag
from readcache.core.restore.plan import NOT_RESTORED
from readcache.core.sync.recall import UNANSWERED

LINES = [f"line {n} of a file that is read twice\n" for n in range(1, 61)]
TEXT = "".join(LINES)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    (tmp_path / "a.py").write_text(TEXT)
    return Session(tmp_path, session_id="s", store=tmp_path / "store")


def reread(session: Session) -> str:
    """Read the file a second time. Return the name in the marker."""
    session.run("sed -n 1,40p a.py", call_id="c1")
    reply = session.run("cat a.py", call_id="c2")
    assert reply.outcome is Outcome.PARTIAL
    return name_in(session.markers_in(reply.text)[0])


def test_omitted_lines_are_filled_in(session: Session) -> None:
    name = reread(session)
    assert session.recall(name).text == TEXT
    assert session.recall(name, 30, 45).text == "".join(LINES[29:45])
    session.compacted()
    assert session.recall(name).text == TEXT


def test_numbered_lines_are_filled_in_as_they_were_printed(session: Session) -> None:
    session.run("cat a.py", call_id="c1")
    reply = session.run("cat -n a.py", call_id="c2")
    name = name_in(session.markers_in(reply.text)[0])
    assert session.recall(name).text == reply.full_text


def test_a_changed_file_is_named_first(session: Session, tmp_path: Path) -> None:
    name = reread(session)
    session.run("sed -i 's/line 7 /line x /' a.py", call_id="c3")
    first, _, rest = session.recall(name).text.partition("\n")
    assert first == "[a.py changed after this was shown; below are the earlier lines]"
    assert rest == TEXT
    (tmp_path / "a.py").unlink()
    assert session.recall(name).text == f"{first}\n{TEXT}"


def test_only_names_of_this_reader_resolve(session: Session) -> None:
    name = reread(session)
    fork = session.fork("sub", inherit=True)
    other = Session(session.root, session_id="other")
    assert len({session.tag, fork.tag, other.tag}) == 3
    for stranger in (fork, other):
        with pytest.raises(UsageError, match="no call"):
            stranger.recall(name)
    for wrong in ("", "x", session.tag, f"{session.tag}.99", f"{session.tag}.x", f"{session.tag[:4]}.2"):
        with pytest.raises(UsageError, match="no call"):
            session.recall(wrong)
    for first, last in ((0, None), (61, None), (9, 3)):
        with pytest.raises(UsageError, match="not a range"):
            session.recall(name, first, last)


def test_what_the_host_truncated_was_never_shown(session: Session) -> None:
    session.run("cat a.py", call_id="c1")
    session.settle("c1", "".join(LINES[:10]) + "[truncated]\n")
    assert session.recall(f"{session.tag}.1").text == "".join(LINES[:10]) + "[truncated]\n"


def test_newly_protected_files_and_secrets_are_filtered(session: Session, tmp_path: Path) -> None:
    name = reread(session)
    with (
        Session(tmp_path, session_id="s", store=tmp_path / "store", policy=Policy(protected=("a.py",))) as later,
        pytest.raises(UsageError, match="is not kept"),
    ):
        later.recall(name)
    key = "AKIA" + "Q3RT" * 4
    unprotected = Session(tmp_path, policy=Policy(protected=()))
    unprotected.observe("make", f"key = {key}\n" * 40, call_id="c1")
    assert key not in unprotected.recall(f"{unprotected.tag}.1").text


def test_a_long_recall_says_how_to_see_the_rest(session: Session) -> None:
    output = "".join(f"{n}\n" for n in range(1, 5001))
    session.observe("make test", output, call_id="c1")
    name = f"{session.tag}.1"
    text = session.recall(name).text
    assert text.endswith(
        f'2000\n[lines 2001-5000 are not shown; to see them, run "readcache recall {name} 2001-5000"]\n'
    )
    assert session.recall(name, 4001).text.startswith("4001\n")
    session.observe("make", ("x" * 999 + "\n") * 300, call_id="c2")
    assert len(session.recall(f"{session.tag}.2").text) < 26_000


def test_old_markers_and_those_of_other_readers_are_still_recognised(session: Session) -> None:
    for tag in (session.tag, session.tag[:4], session.fork("sub").tag):
        marker = f'[UNCHANGED {tag}.2: a.py lines 1-40, above in "cat a.py"; repeat to see]'
        assert session.markers_in(f"x {marker} y") == [marker]
    stranger = session_tag("someone else")
    assert session.markers_in(f'[UNCHANGED {stranger}.2: a.py lines 1-40, above in "cat"; repeat to see]') == []


def test_a_wrapped_tool_and_run_answer_the_command_themselves(session: Session) -> None:
    name = reread(session)
    for command in (f"readcache recall {name}", f" readcache recall {name} 1-60 "):
        assert session.run(command, call_id="c3").text == TEXT
        assert session.observe(command, "readcache: it is not known", call_id="c4").text == TEXT
        assert session.wrap(lambda command: f"{command}: not found")(command) == TEXT
    assert session.run("readcache recall 0000.1").text.startswith("readcache: no call 0000.1")
    session.commit("c3")
    assert session.stats()["recalled"] == 7
    assert not [d for d in session.view.deliveries if d.event.label.startswith("readcache recall") and d.event.text]


def test_a_recall_is_answered_only_if_readcache_is_on(session: Session) -> None:
    name, command = reread(session), "readcache recall 0000.1"
    off = Session(session.root, session_id="s", store=session.reader.log.store, is_off=lambda: True)
    never = Session(session.root, policy=Policy(mode=Mode.OFF))
    for one in (off, never):
        assert one.run(f"readcache recall {name}").text == UNANSWERED
        assert one.observe(command, "bash: readcache: command not found\n").text.startswith("bash: ")


def test_a_recall_is_never_shortened_and_is_no_source(session: Session) -> None:
    name = reread(session)
    for _ in range(2):
        assert session.run(f"readcache recall {name}").text == TEXT
    session.compacted()
    session.run(f"readcache recall {name}")
    assert session.run("cat a.py").text == TEXT


def test_a_recall_fits_in_what_the_host_shows(tmp_path: Path) -> None:
    session = Session(tmp_path, policy=Policy(clip=HeadTail(5_000, 5_000)))
    session.observe("make test", "".join(f"{n:09}\n" for n in range(990)), call_id="c1")
    text = session.recall(f"{session.tag}.1").text
    assert len(text) < 10_000
    assert "lines 981-990 are not shown" in text


def test_the_process_recalls_only_for_a_named_session(session: Session, tmp_path: Path) -> None:
    name, store = reread(session), str(tmp_path / "store")
    env = {key: value for key, value in os.environ.items() if not key.startswith("READCACHE")}

    def said(*words: str, **more: str) -> tuple[str, int]:
        words = (sys.executable, "-m", "readcache", *words)
        done = subprocess.run(words, env={**env, **more}, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.stdout, done.returncode

    text, status = said("recall", name)
    assert (text.count("\n"), status) == (1, 0)
    assert text == UNANSWERED
    named = {"READCACHE_SESSION": "s", "READCACHE_STORE": store}
    assert said("recall", name, **named) == (TEXT, 0)
    assert said("recall", name, "3-4", **named) == ("".join(LINES[2:4]), 0)
    assert said("run", "-c", f"readcache recall {name}", **named) == (TEXT, 0)
    assert said("recall", "0000.1", **named) == ("", 2)
    assert said("recall", name, "x", **named) == ("", 2)
    assert said("recall", name, READCACHE_SESSION="s", READCACHE_AGENT="sub", READCACHE_STORE=store) == ("", 2)


def test_a_restored_section_ends_with_the_outputs_that_it_lacks(session: Session) -> None:
    session.run("cat a.py")
    output = "".join(f"test {n} passed, as all the others did before it\n" for n in range(400))
    for n in range(10):
        session.observe(f"make test{n}", output.replace("passed", f"passed {n} times"), call_id=f"t{n}")
    plan = session.restore_plan()
    lines = plan.render().splitlines()
    start = next(n for n, line in enumerate(lines) if NOT_RESTORED in line)
    assert plan.recalls
    assert lines[start + 1 :] == list(plan.recalls)
    assert len(plan.recalls) <= 8
    restored = {item.command for item in plan.items}
    for line in plan.recalls:
        command, _, label = line.partition(" (400 lines): ")
        assert label not in restored
        assert session.run(command).text.startswith(f"test 0 passed {label[-1]} times")
    assert RestorePlan.from_dict(plan.to_dict()) == plan
    assert session.policy.tokens(plan.render()) <= Budget().max_tokens
    session.compacted(restored=plan)
    assert session.run("cat a.py").outcome is Outcome.UNCHANGED
    assert not session.restore_plan(budget=Budget(max_tokens=300)).recalls
