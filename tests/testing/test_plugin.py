"""The pytest plugin in suites of users: each test here is a suite of its own, run by a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "readcache.testing.plugin"
PYFAKEFS = "pyfakefs.pytest_plugin"
SUITE = """
    import pytest
    TEXT = "".join(f"line number {n} says something that no other line says\\n" for n in range(1, 41))
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Nothing is loaded but what a test names, and every warning is an error."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    pytester.makeini("[pytest]\naddopts = --strict-markers --strict-config -p no:cacheprovider\nfilterwarnings = error")
    return pytester


def outcomes(pytester: pytest.Pytester, *plugins: str) -> dict[str, int]:
    return pytester.runpytest_subprocess(*(word for plugin in plugins for word in ("-p", plugin))).parseoutcomes()


@pytest.mark.parametrize("fixtures", ["fs, readcache_session", "readcache_session, fs", "readcache_session, my_fs"])
def test_the_session_is_on_the_mocked_file_system_whichever_is_named_first(run: pytest.Pytester, fixtures: str) -> None:
    run.makepyfile(
        SUITE
        + f"""
    @pytest.fixture
    def my_fs(fs):
        return fs

    @pytest.mark.parametrize("again", range(2))
    def test_a_read({fixtures}, again):
        import os
        from readcache import Reason
        assert readcache_session.root == os.getcwd() == "/"
        os.mkdir("/repo")
        with open("/repo/f", "w") as file:
            file.write(TEXT)
        assert readcache_session.read("repo/f").text == TEXT
        assert readcache_session.read("/repo/f").reason is Reason.COVERED
    """
    )
    assert outcomes(run, PYFAKEFS, PLUGIN) == {"passed": 2}


def test_without_a_mocked_file_system_it_is_in_the_working_directory(run: pytest.Pytester) -> None:
    run.makepyfile(
        SUITE
        + """
    def test_a_read(tmp_path, monkeypatch, readcache_session):
        (tmp_path / "f").write_text(TEXT)
        assert readcache_session.read(tmp_path / "f").text == TEXT
        assert readcache_session.run("pwd").text.strip() == readcache_session.root
    """
    )
    assert outcomes(run, PLUGIN) == {"passed": 1}


def test_modules_of_the_package_are_the_same_in_every_test(run: pytest.Pytester) -> None:
    """pyfakefs forgets what was first imported while it was active."""
    run.makepyfile(
        SUITE
        + """
    import sys
    kept = []

    @pytest.mark.parametrize("n", range(3))
    def test_it(fs, readcache_session, n):
        readcache_session.observe(f"if true; then cat f{n}; fi", TEXT)
        fs.create_file("/f", contents=TEXT)
        readcache_session.read("/f")
        import readcache
        from readcache.core.model.reply import Reason
        assert readcache.Reason is Reason
        assert "bashlex.parser" in sys.modules
        kept.append({name: id(module) for name, module in sys.modules.items() if name.startswith("readcache")})
        assert kept[0] == kept[-1]
    """
    )
    assert outcomes(run, PYFAKEFS, PLUGIN) == {"passed": 3}


def test_each_test_has_a_session_of_its_own_that_is_closed_after_it(run: pytest.Pytester) -> None:
    run.makepyfile(
        SUITE
        + """
    sessions = []

    def test_one(readcache_session):
        readcache_session.observe("cat f", TEXT)
        sessions.append(readcache_session)

    def test_two(readcache_session):
        assert readcache_session is not sessions[0]
        assert readcache_session.stats() == {}
        assert readcache_session.tag == sessions[0].tag
        sessions[0].observe("cat f", TEXT)
        assert sessions[0].stats()["store_failed"]
    """
    )
    assert outcomes(run, PLUGIN) == {"passed": 2}


def test_policy_and_clock_are_the_suites_own(run: pytest.Pytester) -> None:
    run.makeconftest(
        """
    import pytest
    from readcache import Mode, Policy

    @pytest.fixture
    def readcache_policy():
        return Policy(mode=Mode.ADVISE)
    """
    )
    run.makepyfile(
        SUITE
        + """
    def test_it(readcache_session, readcache_clock):
        readcache_session.observe("cat f", TEXT)
        readcache_clock.tick(60)
        assert readcache_session.observe("cat f", TEXT).reason.value == "advised"
        assert [record.at for record in readcache_session.events()] == [0, 60]
    """
    )
    assert outcomes(run, PLUGIN) == {"passed": 1}


def test_a_suite_that_does_not_use_it_imports_nothing_of_the_package(run: pytest.Pytester) -> None:
    run.makepyfile(
        """
    import sys

    def test_it():
        ours = {name for name in sys.modules if name.partition(".")[0] == "readcache"}
        assert ours == {"readcache", "readcache.testing", "readcache.testing.plugin"}
        assert not {"bashlex", "xxhash", "watchdog", "pyfakefs"} & sys.modules.keys()
    """
    )
    assert outcomes(run, PLUGIN) == {"passed": 1}


def test_being_named_twice_is_no_error(run: pytest.Pytester) -> None:
    run.makeconftest(f"pytest_plugins = ['{PLUGIN}']")
    run.makepyfile("def test_it(readcache_session): pass")
    assert outcomes(run, PLUGIN, PLUGIN) == {"passed": 1}


def test_the_entry_point_is_named_as_the_module_so_that_it_can_be_named_on_the_command_line_too() -> None:
    """pluggy takes a plugin that it knows by another name for a mistake."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"{PLUGIN}" = "{PLUGIN}"' in text.partition("[project.entry-points.pytest11]\n")[2]
    installed = [point for point in entry_points(group="pytest11") if point.value == PLUGIN]
    assert all(point.name == PLUGIN for point in installed)


def test_the_fixtures_say_what_they_are(run: pytest.Pytester) -> None:
    result = run.runpytest_subprocess("--fixtures", "-p", PLUGIN)
    for name in ("readcache_session", "readcache_policy", "readcache_clock"):
        result.stdout.re_match_lines([rf"{name} -- .*", r"    [A-Z].*"])


def test_the_helpers_work_without_pytest_and_pyfakefs() -> None:
    program = (
        "import sys; sys.modules.update(pytest=None, pyfakefs=None)\n"
        "from readcache.testing import *\n"
        "print(FakeClock(7.0)(), assert_shown.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["7.0", "assert_shown"]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import readcache.testing

    with pytest.raises(AttributeError, match=r"module 'readcache\.testing' has no attribute 'Nothing'"):
        _ = readcache.testing.Nothing
    assert all(hasattr(readcache.testing, name) for name in readcache.testing.__all__)
