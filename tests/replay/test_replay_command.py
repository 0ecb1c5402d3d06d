"""`readcache replay`: what it prints of recorded conversations."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from readcache.cli.main import main
from readcache.report.replay import replayer
from readcache.report.replay.replay_totals import ranked
from tests.helpers.files import WATCHDOG, wait_until
from tests.helpers.forks import ROOT
from tests.replay.loaded import DATA
from tests.replay.sessions import APP, COMPACTION, bash, lines, read, sed, session, write


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["replay", "--json", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_lines_that_were_shown_before_are_saved_and_each_omission_is_proven(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work / "s.jsonl", session(sed(1, 100), sed(20, 80)))
    found = run(capsys, "s.jsonl")
    assert (found["counts"]["sessions"], found["counts"]["calls"]) == (1, 2)
    assert found["counts"]["bound"] == len(lines(20, 80))
    default = found["policies"]["default"]
    assert 0 < default["saved"] < len(lines(20, 80))
    assert default["cut"] == len(lines(20, 80))
    assert (default["omissions"], default["markers"], default["wrong"]) == (1, 1, 0)
    assert default["by_tool"] == {"bash": default["saved"]}


@pytest.mark.parametrize(
    "records",
    [
        pytest.param((sed(1, 100), sed(1, 100)), id="repeat"),
        pytest.param((sed(1, 100), sed(50, 150)), id="overlap"),
        pytest.param((read(1, 100), bash("sed -i '$a new' app.py", ""), read(1, 100)), id="after an edit"),
        pytest.param(
            (bash(f"cat >app.py <<'E'\n{lines(1, 60)}E", ""), bash("cat app.py", lines(1, 60))), id="own writes"
        ),
        pytest.param((bash("make", lines(1, 60)), bash("make", lines(1, 60))), id="other outputs"),
    ],
)
def test_every_kind_of_repetition_is_saved(
    records: tuple[dict[str, Any], ...], work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work / "s.jsonl", session(*records))
    found = run(capsys, "s.jsonl", "--policy", "delta")["policies"]["delta"]
    assert found["wrong"] == 0
    assert found["saved"] > 0


def test_a_compaction_takes_away_and_a_restore_plan_would_have_put_back(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work / "s.jsonl", session(sed(1, 100), COMPACTION, sed(1, 100)))
    found = run(capsys, "s.jsonl")
    assert found["policies"]["max"]["saved"] == 0
    counts = found["counts"]
    assert (counts["cuts"], counts["bound"]) == (1, 0)
    assert counts["reread"] == counts["held"] == len(lines(1, 100))


def test_who_asks_again_at_once_bounced_and_what_that_saved_is_taken_off(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work / "s.jsonl", session(sed(1, 100), sed(1, 100), sed(1, 100)))
    default = run(capsys, "s.jsonl")["policies"]["default"]
    assert (default["omissions"], default["bounces"]) == (1, 1)
    assert 3 * default["tokens_bounced"] == default["chars_bounced"] == pytest.approx(default["saved"], rel=0.01)


def test_the_table_fits_a_hundred_columns_and_names_what_it_does_not_know(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work / "s.jsonl", session(sed(1, 100), sed(20, 80), COMPACTION, sed(1, 50), name="n" * 300))
    assert main(["replay", "s.jsonl"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert re.search(r"of the bill, by usage fields +n/a +n/a +n/a$", out, re.MULTILINE)
    assert "not guessed" in out
    assert re.search(r"bounces.* 0 \(0.0 %\)", out)
    assert "No fault rate: a recording does not react" in out


def test_the_verdict_comes_first_with_money_and_the_line_that_does_it(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(DATA / "pi.jsonl", work / "s.jsonl")
    found = run(capsys, "s.jsonl")
    assert main(["replay", "s.jsonl"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    saved, bill = max(one["saved_bill"] for one in found["policies"].values()), found["counts"]["bill"]
    assert 0 < saved < bill
    assert out.startswith(" ".join(found["verdict"][0].split()))
    assert f"would have saved ${saved / 1e6:,.2f} of ${bill / 1e6:,.2f}" in out
    best = max(found["policies"], key=lambda name: found["policies"][name]["saved_bill"])
    assert found["verdict"][0].endswith(f"readcache init pi --policy {best}")
    assert f"the bill: ${bill / 1e6:,.2f}, by the prices of gemini-3-flash (2026-04-23)" in out


def test_where_no_price_is_known_the_verdict_has_a_share_and_the_model_is_named(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DATA / "pi.jsonl").read_text(encoding="utf-8").replace("gemini-3-flash", "secret-9")
    (work / "s.jsonl").write_text(text, encoding="utf-8")
    assert main(["replay", "s.jsonl"]) == 0
    out = capsys.readouterr().out
    assert "$" not in out
    assert "of what tool output cost while it was carried" in " ".join(out.split())
    assert "no prices for secret-9 (1 conversation): give them in --prices FILE" in out
    assert re.search(r"of the bill, by usage fields +n/a +n/a +n/a$", out, re.MULTILINE)
    assert run(capsys, "s.jsonl")["unpriced"] == {"secret-9": 1}


def test_where_nothing_comes_again_the_verdict_says_so(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work / "s.jsonl", session(sed(1, 100)))
    assert run(capsys, "s.jsonl")["verdict"] == [
        "Lines that the agent could still see did not come again: readcache would have saved nothing."
    ]


def test_a_model_and_prices_of_ones_own_make_the_bill(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"input": 1, "read": 0.1, "write": 1.25, "output": 5}
    rows = {"cheap": row, "dear": {name: 3 * price for name, price in row.items()}}
    (work / "prices.json").write_text(json.dumps(rows))
    shutil.copy(DATA / "codex.jsonl", work / "s.jsonl")
    bills = [
        run(capsys, "s.jsonl", "--prices", "prices.json", "--model", name)["counts"]["bill"]
        for name in ("cheap", "dear")
    ]
    assert bills[1] == pytest.approx(3 * bills[0], rel=1e-5)
    assert run(capsys, "s.jsonl")["models"] == {"gpt-5.4 (2026-10-09)": 1}
    assert main(["replay", "s.jsonl", "--model", "cheap"]) == 2
    assert capsys.readouterr().err.startswith("readcache: --model 'cheap' has no prices")


def test_what_is_carried_and_a_turn_go_by_the_prices_of_the_model(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work / "s.jsonl", session(sed(1, 100), sed(20, 80)))
    (work / "p.json").write_text(json.dumps({"m": {"input": 2, "read": 0.1, "write": 2.5, "output": 10}}))
    usual, priced = (
        run(capsys, "s.jsonl", "--policy", "default", *more)["policies"]["default"]
        for more in ((), ("--prices", "p.json", "--model", "m"))
    )
    assert usual["saved"] == priced["saved"] > 0
    first = len(lines(1, 100))
    assert usual["turns_priced"] == round(0.1 * (60_000 + first) + 5 * 3 * 150)
    assert priced["turns_priced"] == round(0.05 * (60_000 + first) + 5 * 3 * 560)


@pytest.mark.slow
def test_long_conversations_are_kept_in_other_ways_and_short_ones_where_that_is_asked_for(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def edit(number: int) -> dict[str, Any]:
        given = {"path": "/w/app.py", "old_string": APP[number], "new_string": "pass"}
        return {"tool": "edit", "input": given, "output": "done", "cwd": "/w"}

    filling = [bash(f"make {n}", f"{n} words of it\n" * 1500) for n in range(24)]
    write(work / "long.jsonl", session(sed(1, 100), *filling, edit(3), *[edit(50)] * 2))
    write(work / "short.jsonl", session(sed(1, 100), sed(20, 80)))
    ways = run(capsys, ".")["conversation"]
    tried = ["compact:200k", "compact:160k", "clear:200k:80k", "clear:160k:120k", "clear:160k:60k"]
    assert list(ways) == ["none", "recorded", *tried, "anthropic", "gemini-cli"]
    assert {counts["sessions"] for counts in ways.values()} == {1}
    assert (ways["none"]["missed"], ways["anthropic"]["missed"], ways["anthropic"]["needs"]) == (0, 2, 2)
    assert ways["clear:160k:60k"]["shortened"] == 1
    assert run(capsys, "short.jsonl")["conversation"] == {}
    asked = run(capsys, ".", "--conversation", "mask:1", "--conversation", "clear:50k:1k")["conversation"]
    assert list(asked) == ["none", "recorded", "mask:1", "clear:50k:1k"]
    assert asked["none"]["sessions"] == 2
    assert main(["replay", "."]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert len(re.findall(r"^  \+ (?:default|delta|max) +\d", out, re.MULTILINE)) == 3 * len(ways)
    assert re.search(
        r"^clear:160k:60k(?: \*)? +[\d.]+ % +n/a +[\d.]+ % +\d+ +1 +[\d,]+k +\d \([\d.]+ %\)", out, re.MULTILINE
    )
    assert "the agent is taken to do as it did; each missed need costs one turn" in out


def test_what_is_cheaper_and_takes_little_is_recommended(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filling = [bash(f"make {n}", f"{n} words of it\n" * 2000) for n in range(40)]
    write(work / "s.jsonl", session(*filling))
    found = run(capsys, "s.jsonl", "--conversation", "mask:3", "--conversation", "clear:100k:60k")
    ways = found["conversation"]
    less = 1 - ways["clear:100k:60k"]["bill"] / ways["recorded"]["bill"]
    long, said = found["verdict"][1:]
    assert long == "1 of 1 conversation reached more than 160,000 tokens."
    assert said == (
        "1 conversation: of the 3 schedules tried, clear:100k:60k is the cheapest that misses at most 5 % of what "
        f"edits needed. Beside what you do now, it would have cost {100 * less:.1f} % less:\n"
        "  messages = clear(messages, session, above=100_000, down_to=60_000)"
    )
    assert found["best_schedule"] == "clear:100k:60k"
    assert main(["replay", "s.jsonl", "--conversation", "mask:3", "--conversation", "clear:100k:60k"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^clear:100k:60k \* +\d", out, re.MULTILINE)
    assert "  * the best: no schedule that misses at most 5 % of what edits needed is cheaper" in out


def test_where_nothing_leaves_a_preset_knows_what_the_host_took_out(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work / "s.jsonl", session(sed(1, 100), COMPACTION, sed(1, 100), bash("true", "")))
    found = run(capsys, "s.jsonl", "--conversation", "mask:9", "--policy", "default")
    alone, together = found["conversation"], {way: pair["default"] for way, pair in found["together"].items()}
    assert found["policies"]["default"]["saved"] == 0, "the host compacted"
    assert together["recorded"] == alone["recorded"]
    assert together["none"]["carried"] < alone["none"]["carried"]
    assert together["mask:9"] == together["none"]


def test_a_way_and_a_preset_that_cost_less_together_are_the_third_sentence(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [f"{n} words of it\n" * 2000 for n in range(40)]
    write(work / "s.jsonl", session(*[bash(f"make {n // 2}", texts[n // 2]) for n in range(80)]))
    found = run(capsys, "s.jsonl", "--conversation", "clear:100k:60k", "--policy", "default", "--policy", "max")
    alone, pairs = found["conversation"], found["together"]["clear:100k:60k"]
    assert set(found["together"]) == set(alone)
    assert pairs["default"]["bill"] < alone["clear:100k:60k"]["bill"]
    assert pairs["default"]["shortened"] < alone["clear:100k:60k"]["shortened"]
    assert found["together"]["none"]["default"]["bill"] < alone["none"]["bill"]
    name = min(pairs, key=lambda name: pairs[name]["bill"])
    less = 1 - pairs[name]["bill"] / alone["recorded"]["bill"]
    said = f"Both together, clear:100k:60k with {name}, would have cost {100 * less:.1f} % less"
    assert found["verdict"][3] == f'{said}:\n  session = Session(policy=Policy.named("{name}"))'


@pytest.mark.parametrize(
    ("spec", "said"),
    [("keep", "unknown --conversation 'keep'"), ("clear:9k:10k", "'clear:9k:10k' clears from 9,000 tokens up")],
)
def test_a_way_of_keeping_a_conversation_that_makes_no_sense_is_an_error_of_usage(
    spec: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", ".", "--conversation", spec]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_many_conversations_are_replayed_by_several_processes_and_add_up(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = session(sed(1, 100), sed(20, 80), *[bash(f"echo {n}", os.urandom(9000).hex()) for n in range(2)])
    write(work / "one.jsonl", one)
    write(work / "many.jsonl", *[one] * 9)
    single, many = run(capsys, "one.jsonl"), run(capsys, "many.jsonl")
    assert many["policies"]["max"]["saved"] == 9 * single["policies"]["max"]["saved"] > 0
    assert many["counts"]["calls"] == 9 * single["counts"]["calls"]


def test_files_are_known_by_their_content_whatever_they_are_called(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "packed").write_bytes(lzma.compress(session(sed(1, 100)).encode()))
    (work / "notes.jsonl").write_text("# notes\n")
    (work / "other.json").write_text('{"name": "x"}\n')
    found = run(capsys, ".")
    assert found["formats"] == {"normalised": 1}
    assert found["left_aside"]["no_transcripts"] == 2


def test_damaged_lines_are_skipped_and_counted(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = session(sed(1, 100), sed(1, 100))
    write(work / "s.jsonl", good, good[:500] + "\n", "[1]\n", good)
    found = run(capsys, "s.jsonl")
    assert found["counts"]["sessions"] == 2
    assert (found["left_aside"]["damaged_lines"], found["left_aside"]["first_damaged"]) == (2, "s.jsonl:2")


def test_copies_of_a_conversation_count_once_at_their_longest(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = (DATA / "claude-code.jsonl").read_bytes().splitlines(keepends=True)
    for name, lines_of_it in (("a", whole[: len(whole) // 2]), ("b", whole), ("c", whole[:-4])):
        (work / name).write_bytes(b"".join(lines_of_it))
    found = run(capsys, ".")
    assert (found["counts"]["sessions"], found["counts"]["calls"]) == (1, 15)
    assert found["left_aside"]["copies"] == 2


def messages_beside(directory: Path, rollout: list[dict[str, Any]], output: object) -> None:
    """Write a message list with the calls of a rollout, each with this output."""
    messages: list[dict[str, Any]] = []
    for row in rollout:
        item = row["payload"]
        if item.get("type") == "function_call":
            call = {"id": item["call_id"], "function": {"name": item["name"], "arguments": item["arguments"]}}
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": output})
    messages += [*messages[-2:]] * 9
    (directory / "a.json").write_text(json.dumps(messages))


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_of_two_copies_the_one_with_more_output_counts_on_any_number_of_cores(
    cores: int, work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty copy with more calls won, and between equal ones the process that ended first."""
    monkeypatch.setattr(replayer, "SMALL", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    text = (DATA / "codex.jsonl").read_text(encoding="utf-8")
    (work / "one.jsonl").write_text(text)
    alone = run(capsys, "one.jsonl")
    messages_beside(work, [json.loads(line) for line in text.splitlines()], [{"type": "image"}])
    rest = text.replace('"output_tokens"', '"unknown_tokens"').replace("input_tokens", "unknown")
    (work / "z.jsonl").write_text(rest)
    found = run(capsys, ".")
    assert found["counts"] == alone["counts"]
    assert found["counts"]["requests"] > 0
    assert (found["formats"], found["left_aside"]["copies"]) == ({"codex": 1}, 2)


@pytest.mark.slow
def test_of_equal_copies_the_first_counts_even_if_its_process_ends_last(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = json.dumps({"cmd": "cat a"})
    call = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": "one"}
    result = {"type": "function_call_output", "call_id": "one", "output": lines(1, 99)}
    rows = [("session_meta", {"id": "s"}), ("response_item", call), ("response_item", result)]
    rows += [("event_msg", {"type": "other"})] * 100_000  # so that its process ends last
    text = "".join(json.dumps({"type": kind, "payload": payload}) + "\n" for kind, payload in rows)
    (work / "a.jsonl").write_text(text)
    asked = {"id": "one", "function": {"name": "exec_command", "arguments": arguments}}
    answer = {"role": "tool", "tool_call_id": "one", "content": lines(1, 99)}
    (work / "b.json").write_text(json.dumps([{"role": "assistant", "tool_calls": [asked]}, answer]))
    found = run(capsys, "--policy", "default", ".")
    assert (found["formats"], found["left_aside"]["copies"]) == ({"codex": 1}, 1)


def test_where_no_output_was_understood_there_is_no_verdict(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work / "s.jsonl", session(bash("true", ""), bash("true", "")))
    assert run(capsys, "s.jsonl")["verdict"] == []
    assert main(["replay", "s.jsonl"]) == 0
    assert "2 calls, 0 characters of tool output" in capsys.readouterr().out


def test_json_has_every_count_also_those_that_are_zero(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A script that read `counts["calls"]` of a file without calls died."""
    (work / "empty.json").write_text('[{"role": "user", "content": "hello"}]')
    write(work / "s.jsonl", session(sed(1, 100), sed(20, 80), COMPACTION, sed(1, 50)))
    empty, full = (run(capsys, name, "--conversation", "mask:9") for name in ("empty.json", "s.jsonl"))
    assert empty["counts"].keys() == full["counts"].keys()
    assert (empty["counts"]["calls"], empty["counts"]["out"]) == (0, 0)
    for name in ("policies", "conversation"):
        for key, counts in full[name].items():
            assert empty[name][key].keys() == counts.keys()


def test_each_request_pays_for_its_own_cache_writes(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All writes were priced for an hour as soon as most were: $4.00 in place of $3.625."""
    rows: list[dict[str, Any]] = []
    for n in range(4):
        kind = "ephemeral_5m_input_tokens" if n == 3 else "ephemeral_1h_input_tokens"
        usage = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 100_000}
        message = {
            "id": f"m{n}",
            "model": "claude-opus-4-6",
            "content": [],
            "usage": usage | {"cache_creation": {kind: 100_000}},
        }
        parent = f"u{n - 1}" if n else None
        rows.append({"uuid": f"u{n}", "parentUuid": parent, "sessionId": "s", "type": "assistant", "message": message})
    (work / "s.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(capsys, "s.jsonl")["counts"]["bill"] == pytest.approx(3.625e6)


def test_times_are_those_of_the_transcript_where_it_has_some(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(DATA / "claude-code.jsonl", work / "s.jsonl")
    os.utime(work / "s.jsonl", (1_000_000, 1_000_000))
    assert run(capsys, "s.jsonl", "--since", "2000-01-01")["counts"]["sessions"] == 1
    assert main(["replay", "--json", "s.jsonl", "--since", "2999-01-01"]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["left_aside"]["too_old"] == 1
    assert told.err == "readcache: no conversation since 2999-01-01 in s.jsonl: nothing was replayed\n"


def test_a_packed_file_that_is_damaged_is_named(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = lzma.compress(b"".join(session(sed(1, 100), name=str(n)).encode() for n in range(50)))
    (work / "s.xz").write_bytes(packed[: len(packed) // 2])
    assert main(["replay", "s.xz"]) == 1
    assert "s.xz cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# notes\n", "notes:1: neither JSON"),
        ('{"a": 1}\n', "notes:1: a transcript of no known format"),
        ('{"role": "x", "text": "y"}\n', "it has the keys 'role', 'text'"),
        ("", "notes:1:"),
    ],
)
def test_a_named_file_that_is_not_understood_is_an_error_with_its_place(
    text: str, said: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work / "notes").write_text(text)
    assert main(["replay", "notes"]) == 1
    assert said in capsys.readouterr().err


def test_what_is_not_there_is_an_error_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "missing"]) == 2
    assert "missing does not exist" in capsys.readouterr().err
    assert main(["replay", ".", "--policy", "most"]) == 2
    assert main(["replay", ".", "--since", "soon"]) == 2


def test_a_directory_without_a_conversation_is_named(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "empty").mkdir()
    assert main(["replay", "empty"]) == 1
    assert capsys.readouterr().err == "readcache: no conversation in empty: nothing was replayed\n"


def test_without_a_path_it_looks_where_hosts_keep_transcripts(
    work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(work / "home"))
    monkeypatch.setenv("CODEX_HOME", str(work / "codex"))
    assert main(["replay", "--json"]) == 1
    said = capsys.readouterr().err
    assert f"looked in {work}/home/.claude/projects: not there\n" in said
    assert said.endswith("no host keeps transcripts there: give files, or directories that contain some\n")
    for directory, name in (("home/.claude/projects/-w", "claude-code.jsonl"), ("codex/sessions/2026", "codex.jsonl")):
        (work / directory).mkdir(parents=True)
        shutil.copy(DATA / name, work / directory)
    assert main(["replay", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["formats"] == {"claude-code": 1, "codex": 1}
    assert f"looked in {work}/codex/sessions: replayed below\n" in told.err


def test_conversations_from_before_a_time_are_left_aside(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write(work / "old.jsonl", session(sed(1, 100)))
    write(work / "new.jsonl", session(sed(1, 100)))
    os.utime(old, (1_000_000, 1_000_000))  # the plain form has no times of its own
    found = run(capsys, ".", "--since", "7d")
    assert found["counts"]["sessions"] == 1
    assert found["left_aside"]["too_old"] == 1


def test_what_is_printed_does_not_depend_on_which_worker_ends_first() -> None:
    assert ranked(Counter({"pi": 1, "codex": 1, "opencode": 2})) == [("opencode", 2), ("codex", 1), ("pi", 1)]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists() or os.cpu_count() == 1, reason="needs /proc and two cores")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_that_ends_replay_leaves_no_worker_and_nobody_who_holds_its_output(work: Path, number: int) -> None:
    one = session(sed(1, 100), sed(20, 80), *[bash(f"echo {n}", os.urandom(9000).hex()) for n in range(9)])
    write(work / "many.jsonl", *[one] * 100)
    words = [sys.executable, "-m", "readcache", "replay", "many.jsonl"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    usual = partial(signal.signal, number, signal.SIG_DFL) if number != signal.SIGKILL else None
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=usual) as process:
        wait_until(lambda: workers_of(process.pid), "the workers")
        process.send_signal(signal.SIGSTOP)  # it cannot end before it is told to
        workers = workers_of(process.pid)
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=WATCHDOG)  # to the end of both: nobody holds them any more
    assert process.returncode == -number
    assert out == b""
    wait_until(lambda: not any(map(is_running, workers)), "the end of the workers")


def workers_of(pid: int) -> list[int]:
    """Process IDs of the workers that this process has started."""
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
