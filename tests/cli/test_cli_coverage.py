"""Results that were not judged, and markers that never reached the model, as `readcache`, `doctor` and `gain` tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache import Session
from readcache.cli.main import main

Capture = pytest.CaptureFixture[str]
LATE = "the server was late"


def record(store: Path, *, calls: int = 0, missed: int = 0, host: str = "claude-code", shown: str = "nothing") -> None:
    """A session with so many results. `shown`: instead of each marker but the last, which nobody confirms: "all" of the
    output, the "marker", or "nothing" for calls in which no marker is possible."""
    with Session(store.parent, session_id=f"{shown}-{calls}-{missed}", store=str(store), host=host) as session:
        for number in range(calls):
            lines = [
                f"line {line} of the output of {number // 2 if shown != 'nothing' else number}" for line in range(99)
            ]
            output, name = "\n".join(lines), f"call_{number}"
            reply = session.observe(f"./print {number}", output, cwd="/", call_id=name, commit=False)
            if reply.text != output and number < calls - 1:
                session.settle(name, output) if shown == "all" else session.commit(name)
        session.missed(missed, LATE)


def told(capfd: Capture, store: Path, *words: str) -> tuple[int, str]:
    capfd.readouterr()
    status = main([*words, "--store", str(store)])
    return status, capfd.readouterr().out


def test_a_host_in_which_nothing_is_judged_is_broken(
    capfd: Capture, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = work / "s.db"
    record(store, missed=20)
    line = f"0 of 20 results were judged: {LATE}"
    status, out = told(capfd, store, "doctor")
    assert status == 1
    assert f"broken  results    {line}" in out
    assert line in told(capfd, store, "gain")[1]
    assert told(capfd, store, "gain", "--short") == (0, f"readcache: {line}\n")
    monkeypatch.setenv("READCACHE_STORE", str(store))
    capfd.readouterr()
    main([])
    assert f"results: {line}" in capfd.readouterr().out


def test_a_host_that_never_sends_a_possible_marker_is_broken(capfd: Capture, work: Path) -> None:
    record(work / "s.db", calls=22, shown="all")
    status, out = told(capfd, work / "s.db", "doctor")
    assert status == 1
    assert "claude-code: 0 of 10 markers reached the model: the host showed the whole output" in out


def test_one_marker_that_was_sent_is_enough_and_what_was_not_judged_is_counted(capfd: Capture, work: Path) -> None:
    record(work / "s.db", calls=4, missed=19, shown="marker")
    status, out = told(capfd, work / "s.db", "doctor")
    assert status == 0
    assert "judged of the newest: claude-code: 4 of 23" in out
    assert f"claude-code: 19 of 23 results were not judged: {LATE}" in told(capfd, work / "s.db", "gain")[1]


@pytest.mark.parametrize(("calls", "missed", "shown"), [(30, 0, "nothing"), (19, 0, "all"), (0, 19, "nothing")])
def test_too_few_results_or_none_that_could_be_shortened_is_no_trouble(
    capfd: Capture, work: Path, calls: int, missed: int, shown: str
) -> None:
    record(work / "s.db", calls=calls, missed=missed, shown=shown)
    assert told(capfd, work / "s.db", "doctor")[0] == 0


def test_what_is_mended_is_forgotten_after_enough_results(capfd: Capture, work: Path) -> None:
    record(work / "s.db", calls=22, shown="all")
    assert told(capfd, work / "s.db", "doctor")[0] == 1
    record(work / "s.db", calls=21, shown="marker")
    assert told(capfd, work / "s.db", "doctor")[0] == 0
