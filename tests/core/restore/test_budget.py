"""How much comes back after a compaction: by default any number of files, 5,000 tokens in all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from readcache import Budget, Reason, Session, UsageError
from tests.helpers.chats import text

FILE = text(1, 200)  # some 3,000 tokens
ROOMY = Budget(max_tokens=50_000)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    for name in "abcdefgh":
        (tmp_path / name).write_text(FILE.replace("line", name))
    return Session(tmp_path)


def tokens_of_files(session: Session, budget: Budget = ROOMY) -> Counter[str]:
    """What the plan spends on each file, by name."""
    plan = session.restore_plan(budget=budget)
    spent: Counter[str] = Counter()
    for item in plan.items:
        spent[Path(item.path or "").name] += item.tokens
    return spent


def test_as_many_files_come_back_as_the_tokens_allow(session: Session) -> None:
    for name in "abcdefgh":
        session.run(f"cat {name}")
    assert set(tokens_of_files(session)) == set("abcdefgh")


def test_of_more_files_than_may_come_back_those_at_hand_last_do_and_the_others_are_named(session: Session) -> None:
    for name in "abcdefgh":
        session.run(f"cat {name}")
    five = Budget(max_files=5, max_tokens=50_000)
    assert set(tokens_of_files(session, five)) == set("defgh")
    assert {Path(path).name for path, _ in session.restore_plan(budget=five).left_out} == set("abc")


def test_a_file_that_was_edited_comes_before_files_read_later(session: Session) -> None:
    for name in "abc":
        session.run(f"cat {name}")
    session.run("sed -i '7s/number/NUMBER/' a")
    for name in "def":
        session.run(f"cat {name}")
    assert set(tokens_of_files(session, Budget(max_files=5, max_tokens=50_000))) == set("acdef")


def test_what_comes_back_is_what_is_on_disk_now_and_counts_as_read(session: Session) -> None:
    session.run("cat a")
    Path(session.root, "a").write_text(FILE.replace("line", "row"))
    plan = session.restore_plan()
    assert FILE.replace("line", "row") in plan.render()
    session.compacted(restored=plan)
    assert session.run("cat a").reason is Reason.COVERED


def test_of_a_file_above_its_limit_the_lines_that_fit_come_back_and_not_its_name_alone(session: Session) -> None:
    Path(session.root, "large").write_text(text(1, 1000))
    session.run("cat large")
    assert session.policy.count_tokens(text(1, 1000)) > 10_000
    spent = tokens_of_files(session)["large"]
    assert 13_000 < spent <= 14_000
    (path, why) = session.restore_plan(budget=ROOMY).left_out[0]
    assert (Path(path).name, "lines" in why) == ("large", True)


def test_the_limit_of_a_file_is_not_that_of_them_all(session: Session) -> None:
    """A loop that compares what all of them take with the limit of one restores a tenth."""
    for name in "abcde":
        session.run(f"cat {name}")
    assert sum(tokens_of_files(session).values()) > 10_000
    assert sum(tokens_of_files(session, Budget(max_tokens=7_000)).values()) <= 7_000


def test_by_default_it_is_what_pays_for_itself(session: Session) -> None:
    for name in "abcde":
        session.run(f"cat {name}")
    plan = session.restore_plan()
    assert 6_500 < session.policy.tokens(plan.render()) <= 7_000


def test_a_share_needs_a_window(session: Session) -> None:
    with pytest.raises(UsageError, match=r"0\.1 is a share of a window"):
        session.restore_plan(budget=Budget(max_tokens=0.1))
    assert Budget(max_tokens=0.1).within(30_000) == Budget(max_tokens=3_000)
    assert Budget(max_tokens=5_000).within(30_000) == Budget(max_tokens=5_000)


@pytest.mark.parametrize("given", [{"max_files": -1}, {"max_tokens": -1}, {"max_tokens_per_file": -0.5}])
def test_a_negative_limit_is_an_error(given: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="cannot be negative"):
        Budget(**given)
