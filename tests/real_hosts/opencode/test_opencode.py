"""opencode with its plugin, with the real program: what the plugin takes care of, and what happens when it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from readcache import Session
from readcache.core.judging.marker import name_in
from readcache.testing.conformance import make_project
from readcache.testing.hosts import Bash, Clear, Compact, Delegate, Edit, Read, Seen, Step
from readcache.testing.requests import markers
from tests.real_hosts.fired import check_fire
from tests.real_hosts.measured import Run, compare
from tests.real_hosts.opencode.host import PROGRAM, TOP, Conversation
from tests.real_hosts.opencode.scripted import Model, Opencode, install, load, opencode
from tests.real_hosts.taken_away import CAT, HEAD, LOSSES, TAIL, Environment, stale_markers

ENV = {"PYTHONPATH": str(TOP)}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opencode]:
    """opencode without readcache in its user's configuration."""
    directory = tmp_path_factory.mktemp("opencode")
    with opencode(directory / "home", Model(), directory / "nowhere", **ENV) as host:
        yield host


@pytest.fixture
def project(running: Opencode, tmp_path: Path) -> Opencode:
    """A project of its own in that opencode."""
    root = tmp_path / "project"
    make_project(root)
    return running.at(root)


def run_steps(host: Opencode, *steps: Step) -> list[Seen]:
    return Conversation(host).run_steps(steps)


def change_plugin(root: Path, old: str, new: str) -> None:
    path = load(root, PROGRAM)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


# ---------------------------------------------------------------- what the model is sent, and what opencode keeps


def test_the_model_is_sent_markers_and_opencode_keeps_the_real_output(project: Opencode) -> None:
    install(project.root, PROGRAM, is_user=False)
    talk = Conversation(project)
    seen = talk.run_steps([(CAT,), (CAT,), (Edit("shop.py", "number 7 of", "number seven of"),), (CAT,)])
    assert markers(seen[1].results[0])
    assert seen[3].results[0] == (project.root / "shop.py").read_text()
    kept = [part["state"]["output"] for part in project.parts(talk.session).values()]
    assert kept[0] == kept[1] != kept[3]
    assert not any(markers(text) for text in kept)


def test_the_frame_of_a_read_is_passed_on_and_never_counted(project: Opencode) -> None:
    load(project.root, PROGRAM)
    (project.root / "blank.py").write_text("import os\n\n" + "".join(f"value_{n} = {n}\n" for n in range(58)))
    seen = run_steps(project, (Read("blank.py"),), (Bash("cat blank.py"),), (Read("blank.py", 21, 40),))
    assert "blank.py lines 1-60," in markers(seen[1].results[0])[0]
    head, rest = seen[2].results[0].split("<content>\n")
    assert head.startswith("<path>")
    assert "blank.py lines 21-40," in rest
    assert rest.endswith("\n\n(Showing lines 21-40 of 60. Use offset=41 to continue.)\n</content>")


def test_written_files_are_known_by_what_the_model_wrote(project: Opencode) -> None:
    load(project.root, PROGRAM)
    text = "".join(f"value_{n} = {n}  # of the new file\n" for n in range(200))
    talk = Conversation(project)
    calls = iter([("call_w", "write", {"filePath": str(project.root / "new.py"), "content": text})])
    scripted = talk.script
    project.model.script = lambda request: (
        {"tool_calls": [call]} if request.get("tools") and (call := next(calls, None)) else scripted(request)
    )
    project.prompt(talk.session, "write it")
    seen = talk.run_steps([(Bash("cat new.py"),)])
    assert "your" in markers(seen[0].results[0])[0]


def test_a_patch_is_a_write_to_each_of_its_files(project: Opencode) -> None:
    node = """
      const results = tellings("/w", "apply_patch", { patchText: "" }, { output: "Success.", metadata: { files: [
        { filePath: "/w/a.py", type: "update" }, { filePath: "/w/b.py", movePath: "/w/c.py", type: "move" } ] } })
      console.log(JSON.stringify(results))
    """
    path = load(project.root, PROGRAM)
    script = project.root / "try.mjs"
    script.write_text(path.read_text(encoding="utf-8") + node)
    done = subprocess.run(["node", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [["wrote", {"path": f"/w/{name}.py"}] for name in "abc"]


def test_the_summary_is_made_of_real_texts(project: Opencode) -> None:
    load(project.root, PROGRAM)
    talk, asked = Conversation(project), []
    talk.run_steps([(CAT,), (HEAD,), (Bash("ls"),)])

    def script(request: dict[str, object]) -> dict[str, object]:
        asked.append(json.dumps(request))
        return talk.script(request)

    project.model.script = script
    seen = talk.step(Compact())
    assert asked[0].count("number 20 of the shop") == 2
    assert not markers(asked[0])
    assert not stale_markers([seen])


def test_a_fork_begins_with_the_real_outputs_and_is_not_shown_them_again(project: Opencode) -> None:
    load(project.root, PROGRAM)
    talk = Conversation(project)
    assert markers(talk.run_steps([(CAT,), (CAT,)])[1].results[0])
    fork = Conversation(project)
    fork.session = project.ask(f"/session/{talk.session}/fork", {})["id"]
    shop = project.root / "shop.py"
    shop.write_text(shop.read_text().replace("number 60 of", "number sixty of"))
    seen = fork.run_steps([(Bash("true"),), (HEAD,), (TAIL,)])
    assert sum("number 20 of the shop" in text for text in seen[0].texts) == 2
    assert not any(markers(text) for text in seen[0].texts)
    assert len(markers(seen[1].results[0])) == 1
    assert not stale_markers(seen)
    assert "number sixty of" in seen[2].results[0]


def test_what_another_plugin_takes_out_of_a_result_is_not_brought_back(project: Opencode) -> None:
    ours, other = load(project.root, PROGRAM), project.root / "_plugin/other.js"
    other.write_text("""
      export const Other = async () => ({
        "tool.execute.after": async (_, result) => {
          result.output = result.output.replace("number 20 of the shop", "number ** of the shop")
        },
      })
    """)
    (project.root / "opencode.json").write_text(json.dumps({"plugin": [str(ours), str(other)]}))
    seen = run_steps(project, (CAT,), (CAT,), (HEAD,))
    assert not any("number 20" in text for one in seen for text in one.texts)
    assert all("number ** of the shop" in one.results[0] for one in seen)


def test_a_sub_agent_costs_its_parent_nothing(project: Opencode) -> None:
    load(project.root, PROGRAM)
    seen = run_steps(project, (CAT,), (Delegate((Bash("ls"), Bash("ls -a"))),), (TAIL,))
    assert markers(seen[2].results[0])


def test_a_conversation_that_goes_on_in_another_process_is_sent_as_before(tmp_path: Path) -> None:
    make_project(tmp_path / "project")
    install(tmp_path / "home", PROGRAM, is_user=True)
    model = Model()
    with opencode(tmp_path / "home", model, tmp_path / "project", **ENV) as host:
        talk = Conversation(host)
        before = talk.run_steps([(CAT,), (HEAD,)])
    with opencode(tmp_path / "home", model, tmp_path / "project", **ENV) as host:
        talk.host = host
        after = talk.run_steps([(TAIL,)])
    assert markers(before[1].results[0])
    assert before[1].results[0] in after[0].texts
    assert markers(after[0].results[0])


# ---------------------------------------------------------------- after a compaction

SECTION = "## Files restored after compaction"


def sections(seen: Seen) -> list[str]:
    return [text for text in seen.texts if SECTION in text]


def test_what_a_compaction_took_away_is_put_back_in_each_request_and_is_a_source(project: Opencode) -> None:
    install(project.root, PROGRAM, is_user=False)
    real = (project.root / "shop.py").read_text()
    talk = Conversation(project)
    seen = talk.run_steps(
        [(CAT,), (Bash("ls"),), Compact(), (HEAD,), (Edit("shop.py", "number 7 of", "number seven of"),)]
    )
    (first,), (second,), (third,) = map(sections, seen[2:])
    assert first == second == third, "the same bytes in each request"
    assert first.count(SECTION) == 1
    assert real in first
    assert 'shop.py lines 1-40, in the section "Files restored after compaction"' in seen[3].results[0]
    assert SECTION not in json.dumps(project.messages(talk.session)), "opencode keeps its own summary"
    seen = talk.run_steps([Compact(), (TAIL,)])
    assert sections(seen[0]) != [first]
    assert all(len(sections(one)) == 1 for one in seen)
    assert "lines 21-60, in the section" in seen[1].results[0]


def test_so_it_is_after_opencode_compacted_by_itself(tmp_path: Path) -> None:
    home, root, model = tmp_path / "home", tmp_path / "project", Model()
    make_project(root)
    install(root, PROGRAM, is_user=False)
    model.compacts = True
    with opencode(home, model, root, **ENV) as host:
        talk = Conversation(host)
        talk.run_steps([(CAT,)])
        model.prompt, talk.requests, talk.calls = 995_000, [], (Bash("ls"),)
        host.prompt(talk.session, "go on")
        assert model.prompt == 100, "it asked for a summary"
        (seen,) = talk.run_steps([(HEAD,)])
    assert len(sections(seen)) == 1
    assert 'shop.py lines 1-40, in the section "Files restored after compaction"' in seen.results[0]


def test_the_section_is_the_same_in_another_process(tmp_path: Path) -> None:
    home, root, model = tmp_path / "home", tmp_path / "project", Model()
    make_project(root)
    install(root, PROGRAM, is_user=False)
    with opencode(home, model, root, **ENV) as host:
        talk = Conversation(host)
        before = talk.run_steps([(CAT,), Compact()])
    with opencode(home, model, root, **ENV) as host:
        talk.host = host
        after = talk.run_steps([(HEAD,)])
    assert sections(after[0]) == sections(before[1])
    assert markers(after[0].results[0])


@pytest.mark.parametrize("words", [("--advise",), ("--restore", "0")])
def test_nothing_is_put_back_where_that_was_not_asked_for(words: tuple[str, ...], project: Opencode) -> None:
    command = [*PROGRAM, "init", "opencode", "--project", *words]
    subprocess.run(command, cwd=project.root, env=os.environ | ENV, check=True, capture_output=True)
    assert not sections(run_steps(project, (CAT,), Compact(), (HEAD,))[-1])


# ---------------------------------------------------------------- each piece of care is needed


def test_without_a_look_at_what_was_pruned_a_marker_dangles(project: Opencode) -> None:
    steps: tuple[Step, ...] = ((CAT,), (HEAD,), Clear(), (Bash("ls"),))
    change_plugin(project.root, 'if (state.time.compacted) return { id: callID, real: "" }', "")
    assert stale_markers(run_steps(project, *steps))


def test_with_it_none_does(project: Opencode) -> None:
    load(project.root, PROGRAM)
    assert not stale_markers(run_steps(project, (CAT,), (HEAD,), Clear(), (Bash("ls"),)))


def test_without_batches_a_call_points_at_one_that_was_made_at_once(project: Opencode) -> None:
    change_plugin(project.root, "{ call_id: call, batch, commit: false }", "{ call_id: call, commit: false }")
    (seen,) = run_steps(project, (CAT, CAT))
    assert [text for text in seen.results if markers(text)]


# ---------------------------------------------------------------- failing and turning it off


@pytest.mark.parametrize(("what", "when"), LOSSES)
def test_what_is_taken_away_costs_the_agent_nothing(what: str, when: str, tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "project"
    make_project(root)
    own = Environment(tmp_path, home)
    load(root, own.program)
    with opencode(home, Model(), root) as host:
        own.check(what, when, Conversation(host).run_steps, (root / "shop.py").read_text())


@pytest.mark.parametrize(
    ("program", "starts"),
    [
        ("echo nonsense; cat > /dev/null", 3),
        ("echo null; cat", 3),
        ("exit 3", 3),
        ("while read -r x; do echo {}; done", 3),
        ("sleep 100", 1),  # one deadline, then it is left aside
    ],
)
def test_a_server_that_talks_nonsense_or_hangs_costs_little(
    program: str, starts: int, project: Opencode, tmp_path: Path
) -> None:
    load(project.root, ("bash", "-c", f"echo x >> {tmp_path}/started; {program}"))
    began = time.monotonic()
    seen = run_steps(project, (CAT,), (CAT,), (CAT,))
    assert {one.results for one in seen} == {((project.root / "shop.py").read_text(),)}
    assert len((tmp_path / "started").read_text().split()) == starts
    assert time.monotonic() - began < 20


def test_a_sub_agent_belongs_to_the_conversation_that_it_serves(project: Opencode) -> None:
    load(project.root, PROGRAM)
    talk = Conversation(project)
    talk.run_steps([(CAT,), (Delegate((CAT,)),)])
    store = project.home / ".local/state/readcache/readcache.db"
    agents = [record.agent_id for record in Session(project.root, session_id=talk.session, store=store).events()]
    assert agents[0] == "main"
    assert [agent[:4] for agent in agents[1:]] == ["ses_"]


def test_a_server_that_was_killed_is_started_again_and_nothing_dangles(project: Opencode, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    load(project.root, ("bash", "-c", f'echo $$ >> {pids}; exec {" ".join(PROGRAM)} "$@"', "bash"))
    talk = Conversation(project)
    seen = talk.run_steps([(CAT,), (CAT,)])
    assert markers(seen[1].results[0])
    for step in ((TAIL,), (HEAD,), (CAT,), (TAIL,)):
        os.kill(int(pids.read_text().split()[-1]), signal.SIGKILL)
        time.sleep(0.2)
        seen += talk.run_steps([step])
        assert not stale_markers(seen)
        if len(pids.read_text().split()) == 3:  # it is not started a fourth time
            break
    os.kill(int(pids.read_text().split()[-1]), signal.SIGKILL)
    time.sleep(0.2)
    last = talk.run_steps([(CAT,)])[0]
    assert last.results == ((project.root / "shop.py").read_text(),)
    assert not any(markers(text) for text in last.texts)
    assert len(pids.read_text().split()) == 3


@pytest.mark.parametrize("mode", ["advise", "off"])
def test_turned_down_it_leaves_nothing_out(mode: str, project: Opencode) -> None:
    load(project.root, PROGRAM, mode=mode)
    seen = run_steps(project, (CAT,), (CAT,))
    assert seen[0].results == seen[1].results


def test_the_environment_turns_it_off(tmp_path: Path) -> None:
    make_project(tmp_path / "project")
    install(tmp_path / "project", PROGRAM, is_user=False)
    with opencode(tmp_path / "home", Model(), tmp_path / "project", READCACHE="off", **ENV) as host:
        seen = run_steps(host, (CAT,), (CAT,))
    assert seen[0].results == seen[1].results
    assert not (tmp_path / "home/.local/state/readcache").exists()


def test_a_user_and_a_project_that_both_have_it_have_it_once(tmp_path: Path) -> None:
    make_project(tmp_path / "project")
    for directory, is_user in ((tmp_path / "home", True), (tmp_path / "project", False)):
        count = ("bash", "-c", f'echo {directory} >> {tmp_path}/started; exec {" ".join(PROGRAM)} "$@"', "bash")
        install(directory, count, is_user=is_user)
    with opencode(tmp_path / "home", Model(), tmp_path / "project", **ENV) as host:
        seen = run_steps(host, (CAT,), (CAT,), (CAT,))
    assert [bool(markers(one.results[0])) for one in seen] == [False, True, False]
    assert len((tmp_path / "started").read_text().split()) == 1


# ---------------------------------------------------------------- figures


def test_what_it_saves_is_measured(running: Opencode, tmp_path: Path) -> None:
    script: tuple[Step, ...] = (
        (CAT,),
        (Read("shop.py"),),
        (Read("shop.py", 10, 40),),
        (Edit("shop.py", "number 7 of", "number seven of"),),
        (CAT,),
        (HEAD,),
        (Bash("cat long.txt | head -200"),),
        (Bash("sed -n '50,150p' long.txt"),),
        (Bash("git diff --no-index /dev/null shop.py; true"),),
        (CAT,),
        (TAIL,),
    )

    def run(root: Path, on: bool) -> Run:
        make_project(root)
        if on:
            load(root, PROGRAM)
        run_steps(running.at(root), (Bash("true"),))  # opencode and the server have started
        talk, began = Conversation(running.at(root)), time.monotonic()
        talk.run_steps(script)
        return Run(talk.result_chars, time.monotonic() - began, len(script))

    version = subprocess.run(["opencode", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    compare("opencode", {"opencode-ai": version}, run, tmp_path)


def test_doctor_proves_with_a_scripted_model_that_its_copy_changed() -> None:
    check_fire("opencode")


def test_a_recall_is_answered_by_the_plugin(project: Opencode) -> None:
    install(project.root, PROGRAM, is_user=False)
    talk = Conversation(project)
    seen = talk.run_steps([(CAT,), (CAT,), Compact()])
    name = name_in(markers(seen[1].results[0])[0])
    (recalled,) = talk.run_steps([(Bash(f"readcache recall {name}"),)])
    assert recalled.results[0].rstrip() == (project.root / "shop.py").read_text().rstrip()
