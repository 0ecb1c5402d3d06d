"""mini-swe-agent for real: `mini` itself, its batch runner for SWE-bench, and its classes by themselves."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from mini_host import OURS, MiniHost, agent_for
from minisweagent.exceptions import FormatError, Submitted
from minisweagent.models import GLOBAL_MODEL_STATS, get_model
from minisweagent.run.benchmarks import swebench
from minisweagent.run.benchmarks.utils.batch_progress import RunBatchProgressManager

from readcache import Reply, Session
from readcache.core.judging.marker import name_in
from readcache.hosts.host import InstallTarget, OwnFile
from readcache.hosts.mini_swe_agent import ReadcacheEnvironment, ReadcacheModel
from readcache.hosts.mini_swe_agent.adapter import HOST
from readcache.testing.conformance import Conformance
from readcache.testing.requests import markers
from tests.real_hosts.chat_api import Json, ScriptedModel, result_chars
from tests.real_hosts.measured import Run, compare
from tests.real_hosts.user_tools import check_settings
from tests.real_hosts.window import MODEL, ChatProvider

SHOP = "".join(f"def item_{n}(count):\n    return count * {n} + {n * n} < {n}\n\n\n" for n in range(60))
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat patch.txt"
COMMANDS = (
    ("cat shop.py",),
    ("sed -n '1,80p' shop.py", "grep -n 'item_7' shop.py"),
    ("sed -i 's/item_7(count)/item_7(number)/' shop.py",),
    ("cat shop.py",),
    ("sed -n '20,60p' shop.py", "cat shop.py | tail -100"),
    ("git diff > patch.txt; cat patch.txt",),
    ("cat patch.txt; sed -n '60,200p' shop.py",),
    (SUBMIT,),
)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo")


def make_repo(root: Path) -> Path:
    root.mkdir(parents=True)
    (root / "shop.py").write_text(SHOP)
    commit = "git init -q . && git add . && git -c user.name=a -c user.email=a@b.c commit -qm begin"
    subprocess.run(commit, shell=True, cwd=root, check=True)
    return root


def play(model: ScriptedModel, *commands: tuple[str, ...]) -> None:
    for batch in commands or COMMANDS:
        model.says(*(model.call("bash", {"command": command}) for command in batch))


def results(messages: list[Json]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


def settings_file(path: Path, **settings: Any) -> Path:
    path.write_text(yaml.safe_dump(settings))
    return path


def overlay(root: Path, mode: str = "on") -> Path:
    """What `readcache init mini-swe-agent` puts there."""
    target = InstallTarget(str(root), str(root), False, ("readcache",), mode, "default", {})
    (made,) = HOST.changes(target)
    assert isinstance(made, OwnFile)
    Path(made.path).write_text(made.text)
    return Path(made.path)


def run_mini(model: ScriptedModel, repo: Path, *more: Path, **environment: str) -> Json:
    """The trajectory of one run of the program `mini`."""
    kept = repo.parent / f"{repo.name}.traj.json"
    own = settings_file(
        repo.parent / "own.yaml", model={"model_name": "openai/fake", "model_kwargs": {"api_base": model.url}}
    )
    configs = [word for file in ("mini.yaml", own, *more) for word in ("-c", str(file))]
    mini = [str(Path(sys.executable).with_name("mini")), *configs, "-t", "Rename it.", "-y", "--exit-immediately"]
    environment = {"MSWEA_GLOBAL_CONFIG_DIR": str(repo.parent / "config"), **os.environ, **environment}
    done = subprocess.run([*mini, "-o", str(kept)], cwd=repo, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    trajectory: Json = json.loads(kept.read_text())
    return trajectory


def test_the_patch_is_the_same_and_what_it_saves_is_measured(tmp_path: Path) -> None:
    patches = set()

    def run_steps(directory: Path, on: bool) -> Run:
        repo = make_repo(directory / "repo")
        more = [overlay(directory)] if on else []
        with ScriptedModel() as model:
            play(model)
            began = time.monotonic()
            trajectory = run_mini(model, repo, *more)
            seconds = time.monotonic() - began
        assert trajectory["info"]["exit_status"] == "Submitted"
        patches.add(trajectory["info"]["submission"])
        shown = results(model.requests[-1])
        assert bool(markers(shown[1])) == on
        assert json.loads(shown[4])["output"] == (repo / "shop.py").read_text(), "after an edit all of it is shown"
        return Run(result_chars(model.requests), seconds, sum(map(len, COMMANDS)))

    compare("mini-swe-agent", {"mini-swe-agent": version("mini-swe-agent")}, run_steps, tmp_path, most=1)
    assert len(patches) == 1
    assert "" not in patches


def test_it_is_off_where_the_environment_says_so(model: ScriptedModel, repo: Path) -> None:
    play(model)
    run_mini(model, repo, overlay(repo.parent), READCACHE="off")
    assert not [text for text in results(model.requests[-1]) if markers(text)]


def test_it_is_off_where_its_file_says_so(model: ScriptedModel, repo: Path) -> None:
    play(model)
    run_mini(model, repo, overlay(repo.parent, "off"))
    assert not [text for text in results(model.requests[-1]) if markers(text)]


def docker(path: Path) -> Path:
    """What mini asks of docker, done without a container; the arguments of `run` are noted."""
    path.write_text(
        "#!/usr/bin/env bash\n"
        'if [ "$1" = run ]; then echo "$@" >"$0.ran"; echo container; exit; fi\n'
        '[ "$1" = exec ] || exit 0\n'
        "shift\n"
        'while [ "$1" = -w ] || [ "$1" = -e ]; do\n'
        '  if [ "$1" = -w ]; then cd "$2"; else export "$2"; fi\n'
        "  shift 2\n"
        "done\n"
        "shift\n"
        'exec "$@"\n'
    )
    path.chmod(0o755)
    return path


def batch_config(api: ScriptedModel, repo: Path, **more: Any) -> Json:
    from minisweagent.config import get_config_from_spec
    from minisweagent.utils.serialize import recursive_merge

    program = docker(repo.parent / "docker")
    settings = {"model_name": "openai/fake", "model_kwargs": {"api_base": api.url, "parallel_tool_calls": None}}
    directory = {"cwd": str(repo), "executable": str(program), "env": {"BASH_ENV": "/dev/null"}}
    own: Json = {"model": settings, "environment": directory, "agent": {"cost_limit": 0}}
    config: Json = recursive_merge(get_config_from_spec("swebench.yaml"), own, more)
    return config


def run_instance(api: ScriptedModel, repo: Path, **more: Any) -> tuple[Json, Json]:
    """The prediction and the trajectory of one instance, as `mini-extra swebench` makes them."""
    out, instance = repo.parent / "out", {"instance_id": "a__b-1", "problem_statement": "Rename it."}
    out.mkdir()
    swebench.process_instance(instance, out, batch_config(api, repo, **more), RunBatchProgressManager(1))
    prediction: Json = json.loads((out / "preds.json").read_text())["a__b-1"]
    return prediction, json.loads((out / "a__b-1/a__b-1.traj.json").read_text())


def test_batch_runs_start_their_image_and_make_the_same_predictions(tmp_path: Path) -> None:
    predictions, chars = [], []
    for name in ("without", "with"):
        repo = make_repo(tmp_path / name / "testbed")
        with ScriptedModel() as model:
            play(model)
            ours = {"model": {"model_class": OURS + "ReadcacheModel"}} if name == "with" else {}
            prediction, trajectory = run_instance(model, repo, **ours)
        assert trajectory["info"]["exit_status"] == "Submitted"
        assert "swebench/sweb.eval.x86_64.a_1776_b-1" in (repo.parent / "docker.ran").read_text()
        predictions.append(prediction)
        chars.append(result_chars(model.requests))
        assert bool(markers("".join(results(model.requests[-1])))) == (name == "with")
    assert predictions[0] == predictions[1]
    assert chars[1] < chars[0]


def test_batch_runs_name_no_image_for_an_environment_class_that_is_not_minis(model: ScriptedModel, repo: Path) -> None:
    """This is why the model class is the one that is recommended."""
    ours = {"environment_class": OURS + "ReadcacheEnvironment", "readcache": {"environment_class": "docker"}}
    config = batch_config(model, repo, environment=ours)
    with pytest.raises(ValueError, match="image"):
        swebench.get_sb_environment(config, {"instance_id": "a__b-1"})


def test_the_environment_class_leaves_out_what_was_shown_and_lets_a_submission_pass(
    model: ScriptedModel, repo: Path
) -> None:
    play(model)
    agent = agent_for(model, repo, wrapped="environment", config="swebench.yaml")
    done = agent.run("Rename it.")
    assert done["exit_status"] == "Submitted"
    assert "item_7(number)" in done["submission"]
    assert markers("".join(results(model.requests[-1])))


def test_the_environment_class_knows_how_minis_templates_cut(tmp_path: Path) -> None:
    suite = Conformance()
    lacking = MiniHost(wrapped="environment", config="swebench.yaml", clip=None)
    suite.host = lacking  # type: ignore[misc]  # for this instance
    with pytest.raises(AssertionError):
        suite.test_what_the_host_cut_away_is_shown_when_it_is_asked_for(tmp_path / "lacking")


def test_of_exactly_ten_thousand_characters_the_line_in_the_middle_is_cut_in_two(
    model: ScriptedModel, repo: Path
) -> None:
    middle = "".join(f"{n:04} of these lines there are too many.\n" for n in range(249))
    (repo / "long.txt").write_text("x" * 19 + "\n" + middle + "x" * 19 + "\n")
    for wrapped in ("model", "environment"):
        play(model, ("cat long.txt",), ("sed -n '116,136p' long.txt",), ("true",))
        agent = agent_for(model, repo, wrapped=wrapped, config="swebench.yaml")
        agent.messages = [{"role": "user", "content": "Look."}]
        for _ in range(3):
            agent.step()
        first, again = results(model.requests[-1])
        assert "0124 of these lines there are too many.\n" not in first
        assert "0124 of these lines there are too many.\n" in again


def test_the_real_output_is_kept_in_the_trajectory(model: ScriptedModel, repo: Path) -> None:
    play(model, ("cat shop.py",), ("cat shop.py",), (SUBMIT,))
    agent = agent_for(model, repo)
    agent.messages = [{"role": "user", "content": "Look."}]
    first, second = agent.step()[0], agent.step()[0]
    assert "full_output" not in first["extra"]
    assert second["extra"]["full_output"] == SHOP
    assert second["extra"]["returncode"] == 0
    assert markers(second["content"])


def test_a_command_that_ran_out_of_time_has_no_lines_with_numbers(model: ScriptedModel, repo: Path) -> None:
    play(model, ("cat shop.py",), ("cat shop.py; sleep 20",), ("sed -n '1,90p' shop.py",), ("true",))
    agent = agent_for(model, repo)
    agent.env.config.timeout = 1
    agent.messages = [{"role": "user", "content": "Look."}]
    for _ in range(4):
        agent.step()
    _, late, again = results(model.requests[-1])
    assert "timed out" in late
    assert markers(late)
    assert "UNCHANGED" not in late, "nobody knows whether the file went on"
    assert markers(again)


def test_calls_of_one_message_do_not_point_at_each_other_but_at_earlier_ones(model: ScriptedModel, repo: Path) -> None:
    for wrapped in ("model", "environment"):
        play(model, ("cat shop.py", "cat shop.py"), ("sed -n '1,90p' shop.py", "sed -n '50,150p' shop.py"), ("true",))
        agent = agent_for(model, repo, wrapped=wrapped)
        agent.messages = [{"role": "user", "content": "Look."}]
        for _ in range(3):
            agent.step()
        assert [bool(markers(text)) for text in results(model.requests[-1])] == [False, False, True, True]


def test_what_was_written_in_a_call_is_known_in_each_shape_of_messages(repo: Path) -> None:
    body = "".join(f"line {n} of what the model itself wrote in its command\n" for n in range(30))
    for inner in ("litellm", "litellm_response"):
        with ScriptedModel() as model:
            play(model, (f"cat >new.txt <<'EOF'\n{body}EOF",), ("cat new.txt",), ("true",))
            agent = agent_for(model, repo, inner)
            agent.messages = [agent.model.format_message(role="user", content="Write.")]
            for _ in range(3):
                agent.step()
            sent = json.dumps(model.requests[-1])
        assert markers(sent.replace('\\"', '"')), inner


def test_a_command_of_the_user_is_answered_as_the_models_are(model: ScriptedModel, repo: Path) -> None:
    """In mini's interactive agent: no ids, and no call of the model between."""
    agent = agent_for(model, repo)
    said: Json = {"role": "user", "content": "User command", "extra": {"actions": [{"command": "cat shop.py"}]}}
    agent.messages = [said]
    first, again = agent.execute_actions(said)[0], agent.execute_actions(said)[0]
    assert first["role"] == again["role"] == "user"
    assert SHOP in first["content"]
    assert markers(again["content"])


def test_what_was_not_run_is_told_as_before(model: ScriptedModel, repo: Path) -> None:
    """A submission in the middle of a message: mini's interactive agent fills up what is missing."""
    agent = agent_for(model, repo)
    play(model, ("cat shop.py", SUBMIT, "ls"))
    agent.messages = [{"role": "user", "content": "Look."}]
    message = agent.query()
    outputs = [agent.env.execute(message["extra"]["actions"][0])]
    (repo / "patch.txt").write_text("patch\n")
    with pytest.raises(Submitted):
        agent.env.execute(message["extra"]["actions"][1])
    told = agent.model.format_observation_messages(message, outputs, agent.get_template_vars())
    assert ["was not executed" in one["content"] for one in told] == [False, True, True]


def test_a_result_that_was_cleared_before_the_model_saw_what_points_at_it(model: ScriptedModel, repo: Path) -> None:
    play(model, ("cat shop.py",), ("sed -n '1,90p' shop.py",), ("true",))
    agent = agent_for(model, repo)
    agent.messages = [{"role": "user", "content": "Look."}]
    agent.step()
    agent.step()
    assert markers(agent.messages[-1]["content"])
    agent.messages[2] = {**agent.messages[2], "content": "[cleared]"}
    agent.step()
    assert "".join(SHOP.splitlines(keepends=True)[:90]) in results(model.requests[-1])[1]


def test_a_failure_of_ours_costs_the_agent_nothing(
    model: ScriptedModel, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr(Session, "observe", fail)
    monkeypatch.setattr(Session, "mend", fail)
    monkeypatch.setattr(Session, "stats", fail)
    play(model)
    done = agent_for(model, repo).run("Rename it.")
    assert "item_7(number)" in done["submission"]
    assert [text for text in results(model.requests[-1]) if (repo / "shop.py").read_text() in text]


@pytest.mark.parametrize("inner", ["litellm", "litellm_response"])
def test_where_markers_cannot_be_mended_every_line_is_put_back(
    model: ScriptedModel, repo: Path, monkeypatch: pytest.MonkeyPatch, inner: str
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    play(model, ("cat shop.py",), ("sed -n '1,90p' shop.py",), ("true",))
    agent = agent_for(model, repo, inner)
    agent.messages = [{"role": "user", "content": "Look."}]
    agent.step()
    agent.step()
    before = copy.deepcopy(agent.messages)
    assert markers(str(before))
    monkeypatch.setattr(Session, "mend", fail)
    agent.step()
    sent = str(model.requests[-1])
    assert not markers(sent)
    assert sent.count("item_7(") == 2
    assert agent.messages[: len(before)] == before, "the trajectory is as it was"


def test_the_inner_model_is_what_mini_asks_for(model: ScriptedModel, repo: Path) -> None:
    plain, ours = agent_for(model, repo, wrapped=""), agent_for(model, repo)
    assert isinstance(ours.model, ReadcacheModel)
    assert ours.model.config == plain.model.config
    assert ours.model.get_template_vars() == plain.model.get_template_vars()
    assert ours.model.abort_exceptions == plain.model.abort_exceptions
    kept, theirs = ours.model.serialize()["info"], plain.model.serialize()["info"]
    assert kept.pop("readcache") == ours.model._session.stats()
    assert kept == theirs
    play(model, ("ls",))
    before = GLOBAL_MODEL_STATS.n_calls
    ours.messages = [{"role": "user", "content": "Look."}]
    ours.step()
    assert (ours.n_calls, GLOBAL_MODEL_STATS.n_calls - before) == (1, 1)
    environment = agent_for(model, repo, wrapped="environment").env
    assert environment.serialize() == plain.env.serialize()
    assert environment.get_template_vars() == plain.env.get_template_vars()


def test_a_model_that_was_given_no_class_is_minis_own_choice() -> None:
    made = get_model("anthropic/claude", {"model_class": OURS + "ReadcacheModel"})
    assert type(made._inner).__name__ == "LitellmModel"
    assert made.config.set_cache_control == "default_end"


def test_a_setting_that_means_nothing_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="unknown setting polcy"):
        get_model("m", {"model_class": OURS + "ReadcacheModel", "readcache": {"polcy": "max"}})


# ------------------------------------------------------------ compaction


WINDOW = 5000  # tokens


def long_work(model: ScriptedModel) -> None:
    """Each step reads 60 lines, and 60 that were read three steps before."""
    play(model, ("for n in 1 2 3; do sed s/item/item_$n/ shop.py; done > big.py",))
    for n in range(12):
        lines = [f"sed -n '{60 * at + 1},{60 * at + 60}p' big.py" for at in (n, max(0, n - 3))]
        play(model, (f"{lines[0]}; echo step {n}", lines[1]))
    play(model, ("git diff > patch.txt",), (SUBMIT,))


def compacting(path: Path, **settings: Any) -> Path:
    ours = {"model_class": OURS + "ReadcacheModel", "readcache": {"window": WINDOW, **settings}}
    return settings_file(path, model=ours)


def test_a_conversation_that_fills_its_window_is_compacted_and_goes_on(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with ScriptedModel(summary="<summary>TASK: rename it\nNEXT STEP: read on</summary>", window=WINDOW) as model:
        long_work(model)
        trajectory = run_mini(model, repo, compacting(tmp_path / "ours.yaml"))
    assert trajectory["info"]["exit_status"] == "Submitted"
    assert len(model.requests) == 15
    assert max(len(json.dumps(request)) // 4 for request in model.requests) < WINDOW
    lengths = [len(request) for request in model.requests]
    assert sum(after < before for before, after in pairwise(lengths)) >= 2
    last = json.dumps(model.requests[-1])
    assert "NEXT STEP: read on" in last
    assert "Files restored after compaction" in last
    assert all("Rename it." in json.dumps(request) for request in model.requests), "the task stays"
    kept = [message for message in trajectory["messages"] if message["role"] == "tool"]
    assert len(kept) >= 25, "the trajectory is whole"


def test_what_a_compaction_put_back_is_not_read_twice(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with ScriptedModel(summary="<summary>TASK: go on\nNEXT STEP: read on</summary>", window=WINDOW) as model:
        long_work(model)
        run_mini(model, repo, compacting(tmp_path / "ours.yaml"))
    shown = [text for request in model.requests for text in results(request)]
    assert any("Files restored after compaction" in found for text in shown for found in markers(text))


def test_a_model_that_says_too_long_is_asked_again(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with ScriptedModel(summary="<summary>TASK: go on\nNEXT STEP: read on</summary>", window=WINDOW) as model:
        long_work(model)
        trajectory = run_mini(model, repo, compacting(tmp_path / "ours.yaml", window=1_000_000))
    assert trajectory["info"]["exit_status"] == "Submitted"


def test_results_are_cleared_before_a_window_is_full(tmp_path: Path) -> None:
    model = ChatProvider(tmp_path, "bash")
    with model:
        agent = agent_for(model, tmp_path, clear=True, model_name=f"openai/{MODEL}")
        agent.add_messages(agent.model.format_message(role="user", content="Do it."))
        with contextlib.suppress(FormatError):  # the last answer has no command
            while True:
                agent.step()
    model.provider.check()


def test_without_a_window_nothing_is_compacted(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo")
    with ScriptedModel() as model:
        long_work(model)
        run_mini(model, repo, overlay(tmp_path))
    lengths = [len(request) for request in model.requests]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize("wrapper", [ReadcacheModel, ReadcacheEnvironment])
def test_settings_are_checked_and_come_from_the_environment(
    wrapper: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(**given: Any) -> Any:
        if wrapper is ReadcacheEnvironment:
            return wrapper(readcache={"clip": None, **given})
        return wrapper(readcache={"model_class": "deterministic", **given}, model_name="m", outputs=[])

    kept = lambda ours: (ours._settings.policy, ours._settings.store)  # noqa: E731
    check_settings(make, kept, monkeypatch, tmp_path, lacks=["tools"])


def test_replies_are_told(tmp_path: Path) -> None:
    heard = list[Reply]()
    ours = ReadcacheEnvironment(readcache={"root": str(tmp_path), "on_reply": heard.append}, cwd=str(tmp_path))
    ours.execute({"command": "echo hello"})
    assert [reply.text for reply in heard] == ["hello\n"]
    assert ours.stats()["calls"] == 1


@pytest.mark.parametrize("wrapped", ["model", "environment"])
def test_a_recall_is_answered_where_the_sandbox_has_no_readcache(
    model: ScriptedModel, repo: Path, wrapped: str
) -> None:
    play(model, ("cat shop.py",), ("cat shop.py",))
    agent = agent_for(model, repo, wrapped=wrapped)
    agent.env.config.env["PATH"] = "/usr/bin:/bin"
    agent.messages = [{"role": "user", "content": "Look."}]
    name = name_in(markers([agent.step()[0], agent.step()[0]][1]["content"])[0])
    play(model, (f"readcache recall {name} 3-40",))
    assert "".join(SHOP.splitlines(keepends=True)[2:40]) in agent.step()[0]["content"]
