"""`readcache demo --keep`: the sample, for the examples of docs/python.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from readcache.cli.demo import SAMPLE
from readcache.cli.main import main

Capture = pytest.CaptureFixture[str]


def test_the_sample_stays_as_the_examples_need_it(work: Path, capfd: Capture) -> None:
    for _ in range(2):
        assert main(["demo", "--keep", "new/place"]) == 0
    assert capfd.readouterr().out.endswith("The sample is in new/place: the examples of docs/python.md run there.\n")
    assert {path.name: path.read_text() for path in (work / "new/place").iterdir()} == SAMPLE


def test_without_it_nothing_stays(work: Path) -> None:
    assert main(["demo"]) == 0
    assert [path.name for path in work.iterdir()] == ["f"]


def test_another_file_of_that_name_stays_as_it_is(work: Path, capfd: Capture) -> None:
    (work / "shop.py").write_text("mine")
    assert main(["demo", "--keep", "."]) == 1
    assert capfd.readouterr().err == "readcache: shop.py exists and is not the sample: give another directory\n"
    assert (work / "shop.py").read_text() == "mine"
    assert main(["demo", "--keep", "f"]) == 1
    assert "cannot write the sample into f: File exists" in capfd.readouterr().err
