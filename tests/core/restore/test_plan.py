"""What a plan holds: ranges, bytes, budgets, and what it leaves out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache import Budget, Policy, Session
from readcache.core.model.errors import UsageError
from readcache.core.model.events import Amended, Delivered, Event
from readcache.core.model.text import split_lines
from readcache.core.model.tokens import count_by_chars
from readcache.core.model.view import View
from readcache.core.restore.choose import plan_restore
from readcache.core.restore.plan import Bytes, RestorePlan
from tests.helpers.files import text, with_numbers
from tests.helpers.strategies import CALLS, histories


def ranges(plan: RestorePlan) -> list[tuple[str, int, int]]:
    return [
        (item.path.rsplit("/", 1)[-1], item.start, item.end)
        for item in plan.items
        if item.path is not None and item.start is not None and item.end is not None
    ]


@pytest.fixture
def local(tmp_path: Path) -> Session:
    """A session that reads its files itself."""
    (tmp_path / "f").write_text(text())
    return Session(tmp_path)


# ------------------------------------------------------------ ranges


def test_overlapping_and_adjoining_ranges_become_one(session: Session) -> None:
    for first, last in ((1, 20), (15, 40), (41, 60)):
        session.observe(f"sed -n '{first},{last}p' f", text(first, last))
    plan = session.restore_plan()
    assert ranges(plan) == [("f", 1, 60)]
    assert plan.items[0].text + "\n" == text()


def test_blank_lines_at_the_ends_are_not_paid_for(session: Session) -> None:
    session.observe("sed -n '1,24p' f", "\n\n" + text(3, 22) + "\n \n")
    assert ranges(session.restore_plan()) == [("f", 3, 22)]


def test_lines_that_stay_visible_are_not_restored(local: Session) -> None:
    local.run("sed -n '1,30p' f", call_id="kept")
    local.run("sed -n '21,40p' f")
    assert ranges(local.restore_plan(keep=["kept"])) == [("f", 31, 40)]


def test_lines_seen_in_several_states_are_those_of_the_last(session: Session) -> None:
    session.observe("cat f", text())
    session.observe("sed -n '1,30p' f", text(1, 30, of="LINE"))  # it differs: the file has changed
    plan = session.restore_plan()
    assert [(i.start, i.end, i.bytes) for i in plan.items] == [(1, 30, Bytes.SEEN), (31, 60, Bytes.OUTDATED)]
    assert plan.items[0].text + "\n" == text(1, 30, of="LINE")


def test_showings_of_different_old_states_are_not_put_together(session: Session) -> None:
    session.observe("sed -n '1,30p' f", text(1, 30))
    session.wrote("/w/f")
    session.observe("sed -n '31,60p' f", text(31, 60))
    session.wrote("/w/f")
    assert ranges(session.restore_plan()) == [("f", 1, 30), ("f", 31, 60)]


# ------------------------------------------------------------ bytes


def test_without_a_disk_the_section_says_that_the_bytes_are_those_last_seen(session: Session) -> None:
    session.observe("cat f", text())
    plan = session.restore_plan()
    assert plan.items[0].why.endswith("; as last seen")
    assert plan.items[0].why in plan.render()


@pytest.mark.parametrize("form", ["{:6}\t", ""])
def test_lines_that_were_left_out_since_a_diff_had_them_are_put_back_too(session: Session, form: str) -> None:
    added = "".join("+" + line for line in text().splitlines(True))
    session.observe("git diff", f"--- /dev/null\n+++ b/f\n@@ -0,0 +1,60 @@\n{added}")
    reply = session.observe("cat -n f" if form else "cat f", with_numbers(form=form) if form else text())
    assert session.markers_in(reply.text)
    (item,) = (item for item in session.restore_plan().items if item.kind == "lines")
    assert (item.path, item.start, item.end, item.text) == ("/w/f", 1, 60, text().rstrip("\n"))
    session.wrote("f")
    assert "the file was edited later" in next(
        item.why for item in session.restore_plan().items if item.kind == "lines"
    )


def test_lines_from_before_a_write_say_so_and_are_found_by_their_text_alone(session: Session) -> None:
    session.observe("cat f", text())
    session.wrote("/w/f")
    plan = session.restore_plan()
    assert plan.items[0].why.endswith("; as last seen; the file was edited later")
    assert plan.source_map() == ()
    session.compacted(restored=plan)
    assert not session.view.covers("/w/f", 1, 1)
    reply = session.observe("cat f", text())
    assert reply.text.startswith("[LEFT_OUT "), "nothing is said of the file"
    assert 'in the section "' in reply.text


def test_where_there_is_a_disk_the_bytes_are_those_on_it(local: Session) -> None:
    local.run("cat f")
    Path(local.root, "f").write_text(text(of="row"))
    (item,) = local.restore_plan().items
    assert (item.text + "\n", item.bytes) == (text(of="row"), Bytes.CURRENT)


def test_lines_that_an_edit_moved_are_found_where_they_stand_now(local: Session) -> None:
    local.run("sed -n '30,40p' f")
    Path(local.root, "f").write_text("new\n" * 10 + text())
    local.wrote("f")
    (item,) = local.restore_plan().items
    assert (item.start, item.end) == (40, 50)
    assert text(30, 40) in item.text + "\n"


def test_a_file_that_shrank_ends_where_it_ends(local: Session) -> None:
    local.run("cat f")
    Path(local.root, "f").write_text(text(1, 10))
    assert ranges(local.restore_plan()) == [("f", 1, 10)]


def test_a_file_that_was_emptied_is_named_as_left_out(local: Session) -> None:
    local.run("cat f")
    Path(local.root, "f").write_text("")
    plan = local.restore_plan()
    assert (plan.items, [path for path, _ in plan.left_out]) == ((), [f"{local.root}/f"])


# ------------------------------------------------------------ what is left out


def test_a_binary_is_left_out_and_named(local: Session) -> None:
    """Object files were restored after a compaction."""
    local.run("cat f")
    Path(local.root, "f").write_bytes(b"\0\1\2" * 400)
    assert local.restore_plan() == RestorePlan(left_out=((f"{local.root}/f", "binary"),))


@pytest.mark.parametrize("name", ["CLAUDE.md", "AGENTS.md", "sub/GEMINI.md"])
def test_memory_files_that_harnesses_attach_are_not_attached_twice(session: Session, name: str) -> None:
    """Memory files stood in the context twice after a compaction."""
    session.observe(f"cat {name}", text())
    assert session.restore_plan().left_out == ((f"/w/{name}", "memory file, harnesses attach it themselves"),)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".env", "looks like a secret"),
        ("deploy/server.pem", "looks like a secret"),
        ("yarn.lock", "generated"),
        ("app.min.js", "generated"),
        ("api_pb2.py", "generated"),
        ("vendor/x.py", "protected"),
        ("f.secret", "protected"),
    ],
)
def test_files_are_left_out_by_name(tmp_path: Path, name: str, why: str) -> None:
    store = tmp_path / "log.db"
    # With these policies from the start, the files would not be remembered.
    with Session("/w", session_id="s", store=store, policy=Policy(protected=())) as session:
        session.observe(f"cat {name}", text())
    policy = Policy(protected=("/w/vendor/*", "*.secret"))
    with Session("/w", session_id="s", store=store, policy=policy) as session:
        assert session.restore_plan() == RestorePlan(left_out=((f"/w/{name}", why),))


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("// Code generated by protoc-gen-go. DO NOT EDIT.", "generated"),
        ("# @generated by a tool", "generated"),
    ],
)
@pytest.mark.parametrize("on_disk", [True, False])
def test_files_are_left_out_by_what_they_hold(tmp_path: Path, head: str, why: str, on_disk: bool) -> None:
    session = Session(tmp_path)
    (tmp_path / "f").write_text(f"{head}\n{text()}")
    if on_disk:
        session.run("cat f")
    else:
        session.observe("cat f", f"{head}\n{text()}")
    assert session.restore_plan() == RestorePlan(left_out=((f"{tmp_path}/f", why),))


@pytest.mark.parametrize("secret", ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "key = 'AKIAIOSFODNN7ABCDEFG'\n"])
def test_a_file_that_holds_a_secret_by_now_is_left_out(tmp_path: Path, secret: str) -> None:
    session = Session(tmp_path)
    (tmp_path / "f").write_text(text())
    session.run("cat f")
    (tmp_path / "f").write_text(f"{secret}{text()}")
    assert session.restore_plan() == RestorePlan(left_out=((f"{tmp_path}/f", "looks like a secret"),))


@pytest.mark.parametrize("secret", ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", "key = 'AKIAIOSFODNN7ABCDEFG'\n"])
def test_of_a_file_that_was_shown_with_a_secret_nothing_is_known(tmp_path: Path, secret: str) -> None:
    session = Session(tmp_path)
    session.observe("cat f", f"{secret}{text()}")
    assert session.restore_plan() == RestorePlan()


def test_what_a_file_says_of_itself_counts_in_its_head_alone(session: Session) -> None:
    session.observe("cat f", text() + "# @generated\n")
    assert ranges(session.restore_plan()) == [("f", 1, 61)]


def test_a_script_of_very_long_lines_is_taken_for_minified(session: Session) -> None:
    session.observe("cat a.js", "".join(f"var a{n}={n};" * 30 + "\n" for n in range(20)))
    session.observe("cat a.md", "".join(f"a long line of prose number {n} " * 10 + "\n" for n in range(20)))
    plan = session.restore_plan()
    assert ({item.path for item in plan.items}, plan.left_out) == ({"/w/a.md"}, (("/w/a.js", "generated"),))


@pytest.mark.parametrize("change", ["rm f", "mv f g", "rm f; mkdir f"])
def test_a_file_that_is_gone_is_left_out_and_named(local: Session, change: str) -> None:
    local.run("cat f")
    local.run(change)
    plan = local.restore_plan()
    assert (plan.items, [path for path, _ in plan.left_out]) == ((), [f"{local.root}/f"])
    assert plan.left_out[0][1] == ("unreadable" if "mkdir" in change else "deleted or moved")


@pytest.mark.parametrize(
    ("command", "is_gone"),
    [
        ("rm -f f", True),
        ("git rm g f", True),
        ("mv f g", True),
        ("git mv /w/f sub/", True),
        ("mv g f", False),
        ("rm g; touch f", False),
        ("sed -i s/a/b/ f", False),
    ],
)
def test_without_a_disk_a_file_is_taken_for_gone_after_a_command_that_removes_it(
    session: Session, command: str, is_gone: bool
) -> None:
    session.observe("cat f", text())
    session.observe(command, "")
    assert (("/w/f", "deleted or moved") in session.restore_plan().left_out) is is_gone
    session.observe("cat f", text())
    assert session.restore_plan().left_out == ()


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(directory), *arguments], check=True, capture_output=True)


def test_what_git_ignores_is_left_out_but_for_what_is_tracked(tmp_path: Path) -> None:
    for name in ("inner", "build"):
        (tmp_path / name).mkdir()
    git(tmp_path, "init", "-q")
    git(tmp_path / "inner", "init", "-q")
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    (tmp_path / "inner/.gitignore").write_text("cache\n")
    (tmp_path / "link").symlink_to("build")
    names = ("build/out", "a.log", "kept.log", "f", "inner/cache", "inner/f", "link/out2")
    session = Session(tmp_path)
    for name in names:
        (tmp_path / name).write_text(text(of=name))
    git(tmp_path, "add", "-f", "kept.log")
    for name in names:
        session.run(f"cat {name}")
    left_out = session.restore_plan(budget=Budget(max_files=9)).left_out
    assert left_out == tuple(
        (str(tmp_path / name), "ignored by git") for name in ("a.log", "build/out", "inner/cache", "link/out2")
    )


def test_without_a_repository_or_git_nothing_counts_as_ignored(local: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    local.run("cat f")
    assert local.restore_plan().left_out == ()
    git(Path(local.root), "init", "-q")
    Path(local.root, ".gitignore").write_text("f\n")
    monkeypatch.setenv("PATH", "")
    assert local.restore_plan().left_out == ()


def test_what_never_was_plain_numbered_lines_of_a_file_is_named(session: Session) -> None:
    session.observe("git show HEAD:g", text())
    session.observe("grep -A 9 of h", text(20, 50))
    assert "not a file of the work tree" in dict(session.restore_plan().left_out).values()


def test_the_lines_that_the_budget_cut_off_are_named(session: Session) -> None:
    session.observe("cat f", text())
    plan = session.restore_plan(budget=Budget(max_tokens=300))
    ((_, _, end),) = ranges(plan)
    assert plan.left_out == (("/w/f", f"budget: lines {end + 1}-60"),)


# ------------------------------------------------------------ budgets, for any log and any tokenizer

COUNTERS: dict[str, Callable[[str], int]] = {
    "a third of the characters": count_by_chars,
    "words": lambda text: len(text.split()),
    "characters": len,
    "more than their sum": lambda text: len(text) ** 2 // 400,
    "a price for every text": lambda text: 5 + len(text) // 4,
    "lines": lambda text: text.count("\n"),
}


@given(
    log=histories(),
    kept=st.frozensets(st.sampled_from(CALLS)),
    counter=st.sampled_from(sorted(COUNTERS)),
    budget=st.builds(Budget, st.integers(0, 3), st.integers(0, 300), st.integers(0, 200)),
    disk=st.none() | st.text("ab\n", max_size=200),
)
def test_a_plan_keeps_its_budget_and_holds_each_line_verbatim(
    log: list[Event], kept: frozenset[str], counter: str, budget: Budget, disk: str | None
) -> None:
    view = View()
    for event in log:
        view.apply(event)
    count = COUNTERS[counter]

    def make() -> RestorePlan:
        return plan_restore(
            view,
            kept,
            budget,
            log,
            count_tokens=count,
            refuses=lambda paths: dict.fromkeys(paths[:1], "refused"),
            current=None if disk is None else lambda _: split_lines(disk),
        )

    plan = make()
    assert plan == make()
    section = plan.render().split("\n")
    assert not plan.items or count(plan.render()) <= budget.max_tokens
    of_file = {item.path: [i for i in plan.items if i.path == item.path] for item in plan.items if item.path}
    assert len(of_file) <= budget.max_files
    assert all(sum(item.tokens for item in items) <= budget.max_tokens_per_file for items in of_file.values())
    shown = {line for event in log if isinstance(event, Delivered | Amended) for line in event.text.split("\n")}
    known = shown if disk is None else set(split_lines(disk))
    assert all(line in known for item in plan.items for line in item.text.split("\n"))
    assert all(item.tokens == count(item.text) for item in plan.items)
    lines = [item for item in plan.items if item.kind == "lines"]
    assert all((item.end or 0) - (item.start or 0) == item.text.count("\n") for item in lines)
    credited = [(item.path, item.start, item.text.split("\n")) for item in lines if item.bytes is not Bytes.OUTDATED]
    found = [(p.keys[0], p.first, section[p.at : p.at + p.count]) for p in plan.source_map()]
    assert [each for each in found if each in credited] == credited
    results = [item.text.split("\n") for item in plan.items if item.kind == "result"]
    assert all(each in credited or any(_within(each[2], text) for text in results) for each in found)
    without = replace(plan, items=tuple(replace(item, source_map=()) for item in plan.items))
    assert RestorePlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == without


def _within(lines: list[str], text: list[str]) -> bool:
    return any(text[n : n + len(lines)] == lines for n in range(len(text)))


def test_a_plan_is_the_same_in_every_process() -> None:
    program = (
        "from readcache import Session\n"
        "session = Session('/w')\n"
        "for name in 'abcdefgh':\n"
        "    session.observe(f'cat {name}', ''.join(f'{name} line {n} of the file\\n' for n in range(40)))\n"
        "session.observe('ls', 'b\\nf:30: x\\n')\n"
        "print(session.restore_plan().to_dict())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(outputs) == 1


# ------------------------------------------------------------ as JSON


@pytest.mark.parametrize(
    "given",
    [None, [], {}, {"items": [{}]}, {"items": [], "heading": "x"}],
)
def test_what_is_no_plan_is_refused(given: object) -> None:
    with pytest.raises(UsageError, match="not a restore plan"):
        RestorePlan.from_dict(given)


@pytest.mark.parametrize(
    "change", [{"start": 0}, {"end": 61}, {"text": "another\n"}, {"bytes": "guessed"}, {"start": None}]
)
def test_a_plan_whose_text_is_not_that_of_its_lines_is_refused(session: Session, change: dict[str, object]) -> None:
    session.observe("cat f", text())
    given = json.loads(json.dumps(session.restore_plan().to_dict()))
    given["items"][0].update(change)
    with pytest.raises(UsageError, match="not a restore plan"):
        RestorePlan.from_dict(given)


def test_lines_beyond_the_end_of_a_file_that_was_overwritten_are_not_restored(session: Session) -> None:
    session.observe("cat f", text(1, 60, of="old"))
    session.observe(f"cat > f <<'EOF'\n{text(1, 10, of='new')}EOF", "")
    session.observe("cat f", text(1, 10, of="new"))
    assert [(item.start, item.end) for item in session.restore_plan().items] == [(1, 10)]
