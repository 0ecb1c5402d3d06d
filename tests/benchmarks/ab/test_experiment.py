"""An experiment is sealed, run, stopped, taken up again, and proven."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ab import experiment as module
from ab.errors import AbError
from ab.experiment import JOURNAL, open_experiment, trajectory_path
from ab.journal import Journal, read_journal
from ab.made import MadePlayer, Trajectory, go_on, made_experiment, small_plan, trajectory
from ab.plan import Limits, Run
from ab.versions import code_version


@pytest.fixture(autouse=True)
def nothing_overrules(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in module.OVERRULE:
        monkeypatch.delenv(name, raising=False)


def kinds(folder: Path) -> Counter[str]:
    return Counter(line["kind"] for line in read_journal(folder / JOURNAL))


def test_every_run_is_played_once_in_the_planned_order(tmp_path: Path) -> None:
    folder, player = made_experiment(tmp_path / "e", small_plan(repetitions=2)), MadePlayer()
    assert go_on(folder, player) == ""
    found = open_experiment(folder)
    assert player.played == [run for block in found.blocks for run in block.runs()]
    assert found.is_done()
    assert found.verify() == []
    assert kinds(folder) == {"sealed": 1, "began": 16, "ended": 16, "finished": 1}


def test_what_each_run_used_is_noted(tmp_path: Path) -> None:
    folder = made_experiment(tmp_path / "e", small_plan(), count=1)
    go_on(folder, MadePlayer())
    for run, line in open_experiment(folder).ended().items():
        assert (line["money"], line["steps"], line["exit_status"]) == (0.5, 4, "Submitted")
        assert line["tokens"] == {"fresh": 160, "written": 0, "cached": 240, "output": 40}
        assert ("readcache" in line) == (run.arm == "max")


def test_after_a_crash_finished_runs_are_not_played_again(tmp_path: Path) -> None:
    class Crash(BaseException):
        pass

    def crashes(_run: Run) -> Trajectory:
        if len(first.played) == 4:
            raise Crash
        return trajectory()

    folder = made_experiment(tmp_path / "e", small_plan())
    first, second = MadePlayer(crashes), MadePlayer()
    with pytest.raises(Crash):
        go_on(folder, first)
    assert go_on(folder, second) == ""
    assert first.played[:3] + second.played == [r for block in open_experiment(folder).blocks for r in block.runs()]
    assert kinds(folder)["lost"] == 1
    lost = next(line for line in open_experiment(folder).lines if line["kind"] == "lost")
    again = open_experiment(folder).ended()[second.played[0]]
    assert (lost["attempt"], again["attempt"]) == (1, 2)


def test_what_a_lost_attempt_used_counts_for_the_budget(tmp_path: Path) -> None:
    folder = made_experiment(tmp_path / "e", small_plan(whole_limits=Limits(money=2.9)), count=1)
    run = next(open_experiment(folder).blocks[0].runs())
    with Journal(folder / JOURNAL) as journal:
        journal.append("began", {**run._asdict(), "attempt": 1})
    path = trajectory_path(open_experiment(folder).directory({**run._asdict(), "attempt": 1}), run)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(trajectory("", money=0.95, steps=3)))
    player = MadePlayer()
    assert go_on(folder, player).startswith("budget: money: 0.95 are used, 2 more runs may need 2.95")
    assert player.played == []


def test_a_lost_attempt_that_left_nothing_to_read_counts_with_all_that_it_was_allowed(tmp_path: Path) -> None:
    folder = made_experiment(tmp_path / "e", small_plan(whole_limits=Limits(money=2.9)), count=1)
    with Journal(folder / JOURNAL) as journal:
        journal.append("began", {**next(open_experiment(folder).blocks[0].runs())._asdict(), "attempt": 1})
    assert go_on(folder, MadePlayer()).startswith("budget: money: 1 are used, 2 more runs may need 3")


def test_the_budget_stops_before_a_block_that_may_not_fit(tmp_path: Path) -> None:
    folder, player = made_experiment(tmp_path / "e", small_plan(whole_limits=Limits(money=3.5))), MadePlayer()
    reason = go_on(folder, player)
    assert reason.startswith("budget: money: 2 are used")
    assert len(player.played) == 4, "two blocks, each a dollar; the third may need two"
    assert open_experiment(folder).is_done()
    assert go_on(folder, player) == reason, "and it stays so"
    assert len(player.played) == 4


def test_a_run_that_the_provider_ended_is_played_again_and_paid_for(tmp_path: Path) -> None:
    def fails_first(run: Run) -> Trajectory:
        return trajectory("RateLimitError" if player.played.count(run) == 1 else "Submitted")

    folder, player = made_experiment(tmp_path / "e", small_plan(), count=2), MadePlayer(fails_first)
    assert go_on(folder, player) == ""
    assert kinds(folder)["failed"] == kinds(folder)["ended"] == 4
    assert open_experiment(folder).lines[-1]["spent"]["money"] == 4.0


def test_another_attempt_must_fit_into_the_budget_too(tmp_path: Path) -> None:
    folder = made_experiment(tmp_path / "e", small_plan(whole_limits=Limits(money=2.4)), count=1)
    player = MadePlayer(lambda _: trajectory("RateLimitError"))
    assert go_on(folder, player).startswith("budget: money: 0.5 are used, 1 more runs may need 2.5")
    assert len(player.played) == 1


def test_a_run_that_never_reached_the_model_is_played_again(tmp_path: Path) -> None:
    folder = made_experiment(tmp_path / "e", small_plan(attempts=2), count=1)
    player = MadePlayer(lambda _: trajectory("RuntimeError", steps=0, money=0.0))
    assert "2 runs failed" in go_on(folder, player)
    assert len(player.played) == 2, "two attempts at the first run; without it the second says nothing"
    assert not open_experiment(folder).is_done()
    assert go_on(folder, MadePlayer()) == ""


def test_what_the_player_raises_is_told_and_no_result(tmp_path: Path) -> None:
    def raises(_run: Run) -> Trajectory:
        raise ValueError("no such model")

    folder = made_experiment(tmp_path / "e", small_plan(attempts=1), count=3)
    assert "ValueError: no such model" in go_on(folder, MadePlayer(raises))
    assert open_experiment(folder).ended() == {}


def test_an_agent_that_fills_its_context_window_has_failed_by_itself(tmp_path: Path) -> None:
    folder = made_experiment(tmp_path / "e", small_plan(), count=1)
    assert go_on(folder, MadePlayer(lambda _: trajectory("ContextWindowExceededError", patch=""))) == ""
    assert not any(line["has_patch"] for line in open_experiment(folder).ended().values())


def test_three_blocks_in_trouble_stop_it_all(tmp_path: Path) -> None:
    folder = made_experiment(tmp_path / "e", small_plan(attempts=1), count=9)
    player = MadePlayer(lambda _: trajectory("AuthenticationError", steps=1))
    assert go_on(folder, player).startswith("3 blocks in a row could not be finished")
    assert len(player.played) == 3


def test_several_at_once_play_every_run_once_within_the_budget(tmp_path: Path) -> None:
    folder, player = made_experiment(tmp_path / "e", small_plan(), count=12), MadePlayer()
    assert go_on(folder, player, workers=4) == ""
    assert sorted(player.played) == sorted(run for b in open_experiment(folder).blocks for run in b.runs())
    tight = made_experiment(tmp_path / "tight", small_plan(whole_limits=Limits(money=6.0)), count=12)
    assert go_on(tight, MadePlayer(), workers=4).startswith("budget: ")
    assert sum(line["money"] for line in open_experiment(tight).ended().values()) == 5.0, "five blocks, as by one alone"


@pytest.mark.parametrize("name", ["plan.json", "instances.json", "config.json"])
def test_what_was_sealed_cannot_be_changed(tmp_path: Path, name: str) -> None:
    folder = made_experiment(tmp_path / "e", small_plan())
    path = folder / name
    path.write_text(path.read_text().replace('"Do it."', '"Do that."').replace("0.05", "0.5").replace("none", "some"))
    with pytest.raises(AbError, match=f"{name} is not what was sealed"):
        open_experiment(folder)


def test_an_experiment_is_sealed_once(tmp_path: Path) -> None:
    made_experiment(tmp_path / "e", small_plan())
    with pytest.raises(AbError, match="sealed once"):
        made_experiment(tmp_path / "e", small_plan())


def test_other_code_than_was_sealed_runs_nothing_unless_somebody_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made_experiment(tmp_path / "e", small_plan())
    sealed = code_version()
    monkeypatch.setattr(module, "code_version", lambda: {**sealed, "kit": "0"})
    with pytest.raises(AbError, match=r"not the sealed code \(kit\)"):
        go_on(folder, MadePlayer())
    assert go_on(folder, MadePlayer(), code_changed="a crash was mended") == ""
    assert [line["reason"] for line in open_experiment(folder).lines if line["kind"] == "code changed"]


def test_the_environment_may_not_overrule_the_arms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made_experiment(tmp_path / "e", small_plan())
    monkeypatch.setenv("READCACHE", "off")
    with pytest.raises(AbError, match="READCACHE in the environment would change the arms"):
        go_on(folder, MadePlayer())


def test_a_trajectory_that_was_changed_is_found(tmp_path: Path) -> None:
    folder = made_experiment(tmp_path / "e", small_plan(), count=1)
    go_on(folder, MadePlayer())
    found = open_experiment(folder)
    run, line = next(iter(found.ended().items()))
    trajectory_path(found.directory(line), run).write_text("{}")
    (wrong,) = found.verify()
    assert wrong.endswith("is missing, or was changed since its run")
