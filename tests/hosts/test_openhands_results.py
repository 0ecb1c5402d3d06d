"""What OpenHands' terminal and editor put around their outputs, and what of their results is a command's output."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from readcache import Session
from readcache.hosts.openhands.results import editor_frame, reply_to, shown_text, terminal_frame

ON, OFF = "\x1b[?2004h", "\x1b[?2004l"
SHOP = "".join(f"def item_{n}(count):  # of the shop, with a few words\n" for n in range(60))


class Action(SimpleNamespace):
    """As the SDK has it, in what is looked at."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return vars(self)


class TerminalAction(Action):
    pass


class FileEditorAction(Action):
    pass


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        (f"{OFF}one\ntwo\n{ON}", (OFF, "one\ntwo\n", ON)),
        (f"{OFF}x{ON}", (OFF, "x", ON)),
        (f"{OFF}{ON}", (OFF, "", ON)),
        (f"{OFF}one\n", (OFF, "one\n", "")),  # it goes on
        (
            f"cat <<'E'\n{OFF}{ON}one\n{OFF}{ON}E\n{OFF}one\n{ON}",
            (f"cat <<'E'\n{OFF}{ON}one\n{OFF}{ON}E\n{OFF}", "one\n", ON),
        ),
        (f"{OFF}a\n{OFF}b\n{ON}c\n{ON}", (OFF, f"a\n{OFF}b\n{ON}c\n", ON)),  # a recording of a terminal
        ("one\ntwo", ("", "one\ntwo", "")),  # tmux
        ("^C\n" + ON, ("", "^C\n", ON)),
        ("", ("", "", "")),
    ],
)
def test_controls_of_the_terminal_are_around_an_output(text: str, frame: tuple[str, str, str]) -> None:
    assert terminal_frame(text) == frame


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("Here's the result of running `cat -n` on /w/f:\n     1\tone\n", 42 + 5),
        ("NOTE: the end is 3.\nHere's the result of running `cat -n` on /w/f:\n     1\tone\n", 20 + 47),
        ("     1\tHere's the result of running `cat -n` on /w/f:\n", 0),
    ],
)
def test_the_header_of_the_editor_is_around_the_lines(text: str, head: int) -> None:
    assert editor_frame(text) == (text[:head], text[head:], "")


class Told:
    """A conversation, told result by result."""

    def __init__(self) -> None:
        self.session = Session("/w")
        self.cwd: str | None = None
        self.calls = 0

    def result(self, action: Any, observation: Any, response: str = "") -> str:
        """What the model is to see."""
        self.calls += 1
        event = SimpleNamespace(
            id=f"e{self.calls}", tool_call_id=f"c{self.calls}", tool_name="tool", observation=observation
        )
        call = SimpleNamespace(action=action, llm_response_id=response or f"r{self.calls}")
        reply, self.cwd = reply_to(self.session, call, event, self.cwd)
        return shown_text(reply, observation.text)

    def ran(self, command: str, text: str, *, where: str = "/w", status: int = 0, **more: Any) -> str:
        """A command in the terminal."""
        asked = {"is_input": False, "reset": False, **{k: v for k, v in more.items() if k in ("is_input", "reset")}}
        metadata = SimpleNamespace(prefix=more.get("prefix", ""), working_dir=where, exit_code=status)
        observation = SimpleNamespace(text=text, metadata=metadata, exit_code=status, content=[text])
        return self.result(TerminalAction(command=command, **asked), observation, more.get("response", ""))


def test_a_whole_output_names_the_lines_of_its_file() -> None:
    told = Told()
    told.ran("cat shop.py", f"{OFF}{SHOP}{ON}")
    again = told.ran("cat shop.py", f"{OFF}{SHOP}{ON}")
    assert again.startswith(f"{OFF}[FILE_UNCHANGED ")
    assert "shop.py lines 1-60, " in again
    assert again.endswith(f"]\n{ON}")


def test_where_the_terminal_took_blanks_off_no_line_has_a_number() -> None:
    told = Told()
    told.ran("cat shop.py", SHOP.rstrip())
    again = told.ran("cat shop.py", SHOP.rstrip())
    assert "this output, 60 lines, " in again
    assert not again.endswith("\n"), "nor did the output"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (f"{OFF}{SHOP}<response clipped><NOTE>…</NOTE>{ON}", 0),
        (f"{OFF}{SHOP}", -1),
        (f"{OFF}{SHOP}{ON}", -1),
    ],
)
def test_what_was_cut_or_goes_on_is_not_said_to_be_the_file(text: str, status: int) -> None:
    told = Told()
    told.ran("cat shop.py", f"{OFF}{SHOP}{ON}")
    again = told.ran("cat shop.py; sleep 60", text, status=status)
    assert "LEFT_OUT" in again
    assert "UNCHANGED" not in again


def test_calls_of_one_answer_do_not_point_at_each_other() -> None:
    told = Told()
    told.ran("cat shop.py", f"{OFF}{SHOP}{ON}", response="r")
    assert SHOP in told.ran("cat shop.py", f"{OFF}{SHOP}{ON}", response="r")


@pytest.mark.parametrize(
    "more",
    [
        {"prefix": "[Below is the output of the previous command.]\n"},  # this one was not run
        {"is_input": True},
        {"reset": True},
    ],
)
def test_what_is_no_output_of_the_command_is_not_taken_for_its_file(more: dict[str, Any]) -> None:
    told = Told()
    told.ran("cat other.py", f"{OFF}{SHOP}{ON}", **more)
    again = told.ran("cat other.py", f"{OFF}{SHOP}{ON}")
    assert "UNCHANGED" not in again
    assert 'above in "terminal ' in again, "by its text alone"


def test_a_command_runs_where_the_one_before_it_ended() -> None:
    told = Told()
    told.ran("cat shop.py", f"{OFF}{SHOP}{ON}")
    other = SHOP.replace("item", "thing")
    assert other in told.ran("cd sub && cat shop.py", f"{OFF}{other}{ON}", where="/w/sub")
    again = told.ran("cat ../shop.py", f"{OFF}{SHOP}{ON}", where="/w/sub")
    assert "shop.py lines 1-60, " in again
    assert "FILE_UNCHANGED" in told.ran("cat shop.py", f"{OFF}{other}{ON}", where="/w/sub")


def test_of_parallel_shells_each_is_where_it_ends_when_its_command_does_not_move() -> None:
    told = Told()
    told.ran("cd a", f"{OFF}{ON}", where="/w/a", response="r")
    told.ran("cat shop.py", f"{OFF}{SHOP}{ON}", where="/w", response="r")
    assert "shop.py lines 1-60, " in told.ran("cat /w/shop.py", f"{OFF}{SHOP}{ON}", where="/w/a")


def view(told: Told, path: str, text: str, *, is_error: bool = False, **asked: Any) -> str:
    known = {"view_range": None, "file_text": None, **asked}
    observation = SimpleNamespace(text=text, is_error=is_error, content=[text])
    return told.result(FileEditorAction(**{"command": "view", "path": path, **known}), observation)


def numbered(path: str, low: int, high: int) -> str:
    lines = "".join(f"{n:6}\t{line}" for n, line in enumerate(SHOP.splitlines(True), 1) if low <= n <= high)
    return f"Here's the result of running `cat -n` on {path}:\n{lines}"


def test_views_are_reads_and_errors_are_not() -> None:
    told = Told()
    error = "ERROR: " + "no such file, " * 40
    assert [view(told, "/w/shop.py", error, is_error=True) for _ in range(2)] == [error, error]
    assert view(told, "/w/shop.py", numbered("/w/shop.py", 1, 60)) == numbered("/w/shop.py", 1, 60)
    part = view(told, "/w/shop.py", numbered("/w/shop.py", 11, 50), view_range=[11, 50])
    head, _, marker = part.partition("\n")
    assert head == "Here's the result of running `cat -n` on /w/shop.py:"
    assert "lines 11-50, " in marker
    again = view(told, "/w/shop.py", numbered("/w/shop.py", 1, 60))
    assert again.startswith(head)
    assert "FILE_UNCHANGED" in again


def test_what_the_model_wrote_counts_as_seen_and_what_it_edited_does_not() -> None:
    told = Told()
    view(told, "/w/new.py", "File created successfully at: /w/new.py", command="create", file_text=SHOP)
    assert "new.py lines 1-60, " in told.ran("cat new.py", f"{OFF}{SHOP}{ON}")
    view(told, "/w/new.py", "The file /w/new.py has been edited.", command="str_replace")
    assert SHOP in told.ran("cat new.py", f"{OFF}{SHOP}{ON}")


def test_an_edit_that_failed_changed_nothing() -> None:
    told = Told()
    told.ran("cat shop.py", f"{OFF}{SHOP}{ON}")
    view(told, "/w/shop.py", "ERROR: no match", command="str_replace", is_error=True)
    assert "FILE_UNCHANGED" in told.ran("cat shop.py", f"{OFF}{SHOP}{ON}")
