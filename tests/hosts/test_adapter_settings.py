"""What a user may set for an adapter that runs inside its host, and what stands in for us when we fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from readcache import Budget, HeadTail, Marks, Mode, Policy, Session, UsageError
from readcache.hosts.adapter_settings import adapter_settings, fallback, policy_by_settings
from readcache.process.buffered import chosen_policy, rules_of
from readcache.process.settings import read_settings

NOTHING = Budget(max_tokens=0)


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        ({}, {}, Policy()),
        ({"policy": "delta"}, {}, Policy(delta=True)),
        ({}, {"READCACHE_POLICY": "delta"}, Policy(delta=True)),
        ({"policy": "max"}, {"READCACHE_POLICY": "delta"}, Policy.named("max")),
        ({"mode": "advise"}, {}, Policy(mode=Mode.ADVISE)),
        ({}, {"READCACHE": "advise"}, Policy(mode=Mode.ADVISE)),
        ({"mode": "on"}, {"READCACHE": "advise"}, Policy()),
        ({"mode": "on"}, {"READCACHE": "off"}, Policy(mode=Mode.OFF)),
        ({"mode": True}, {}, Policy()),  # `mode: on` of YAML
        ({"mode": False}, {}, Policy(mode=Mode.OFF)),
        ({"clip": [100, 200]}, {}, Policy(clip=HeadTail(100, 200))),
        ({"clip": None}, {}, Policy()),
    ],
)
def test_what_is_set_in_the_host_wins_except_over_off(
    given: dict[str, Any], environment: dict[str, str], expected: Policy
) -> None:
    assert policy_by_settings(given, environment) == expected


@pytest.mark.parametrize("given", [{"polcy": "max"}, {"policy": "most"}, {"mode": "loud"}])
def test_what_means_nothing_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        policy_by_settings(given, {})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Budget()),
        ({"restore": True}, Budget()),
        ({"restore": 7000}, Budget(max_tokens=7000)),
        ({"restore": Budget(max_files=3)}, Budget(max_files=3)),
        ({"restore": False}, NOTHING),
        ({"restore": 0}, NOTHING),
        ({"restore": None}, NOTHING),
        ({"mode": "advise"}, NOTHING),  # what only watches changes nothing
    ],
)
def test_what_is_put_back_is_a_budget_or_nothing(given: dict[str, Any], expected: Budget) -> None:
    assert adapter_settings(given, {}).policy.restore == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"clear": None}, None),
        ({"clear": False}, None),
        ({"clear": True}, Marks(160_000, 120_000)),
        ({"clear": [100, 60]}, Marks(100, 60)),
        ({"clear": (100, 60)}, Marks(100, 60)),
        ({"clear": Marks(9, 8)}, Marks(9, 8)),
        ({"policy": Policy(clear=Marks(9, 8))}, Marks(9, 8)),
        ({"policy": Policy(clear=Marks(9, 8)), "clear": False}, None),
    ],
)
def test_results_are_cleared_by_marks_or_never(given: dict[str, Any], expected: Marks | None) -> None:
    assert adapter_settings(given, {}).policy.clear == expected


def test_marks_of_the_environment_count_where_the_host_sets_none() -> None:
    environment = {"READCACHE_CLEAR": "100:60"}
    assert adapter_settings({}, environment).policy.clear == Marks(100, 60)
    assert adapter_settings({"clear": False}, environment).policy.clear is None
    for wrong in ("100", "60:100", "much:little", "1:2:3"):
        with pytest.raises(UsageError):
            adapter_settings({}, {"READCACHE_CLEAR": wrong})


@pytest.mark.parametrize(("window", "marks"), [(1_000_000, (160_000, 120_000)), (100_000, (80_000, 60_000))])
def test_the_default_marks_fit_the_window(window: int, marks: tuple[int, int]) -> None:
    assert adapter_settings({"clear": True}, {}, window=window).policy.clear == Marks(*marks)


@pytest.mark.parametrize("share", [0.25, Budget(max_tokens=0.25)])
def test_a_share_is_put_back_where_the_window_is_known(share: float | Budget) -> None:
    assert adapter_settings({"restore": share}, {}, window=20_000).policy.restore == Budget(max_tokens=5_000)
    with pytest.raises(UsageError, match="the window is not known: give a number of tokens"):
        adapter_settings({"restore": share}, {})


@pytest.mark.parametrize(
    "given",
    [
        {"restore": "much"},
        {"clear": "much"},
        {"clear": [60, 100]},
        {"clear": [True, 0]},
        {"restore": "much", "mode": "advise"},
        {"on_reply": "print"},
        {"store": "reddis://host"},
    ],
)
def test_what_an_adapter_cannot_use_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        adapter_settings(given, {})


def test_a_session_is_kept_where_it_is_set(tmp_path: Path) -> None:
    session = adapter_settings({"root": str(tmp_path), "store": str(tmp_path / "log.db")}).new_session("h")
    session.observe("cat f", "text\n" * 100)
    assert session.root == str(tmp_path)
    assert (tmp_path / "log.db").is_file()
    session.close()


def test_when_we_fail_the_host_has_what_it_had_without_us(caplog: pytest.LogCaptureFixture) -> None:
    assert fallback(lambda: "ours", "theirs") == "ours"
    assert fallback(lambda: str(1 / 0), "theirs") == "theirs"
    assert "ZeroDivisionError" in caplog.text


def test_the_environment_names_the_model_in_a_host_and_at_the_command_line() -> None:
    environment = {"READCACHE_MODEL": "claude-opus-5"}
    for policy in (adapter_settings({}, environment).policy, chosen_policy(read_settings(environment))):
        assert policy.tokens("x" * 84) == 42


def test_a_host_has_its_usual_models_if_nobody_names_one() -> None:
    assert Session("/w", host="claude-code").policy.tokens("x" * 84) == 30
    assert Session("/w", host="codex", policy=Policy(model="claude-opus-5")).policy.tokens("x" * 84) == 42
    assert rules_of(read_settings({"READCACHE_SESSION": "s", "READCACHE_HOST": "codex"})).policy.model == "gpt-5"
    assert Session("/w", host="langchain").policy == Policy()
