"""Pruning. What each test of lore, Cline and DCP became is listed in pruning.md."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from readcache import Mode, Policy, Session
from readcache.context import PruneReport, prune, prune_report
from readcache.context.notes import spell_file_lines
from readcache.core.messages.messages import normalise
from readcache.core.model.errors import UsageError
from tests.helpers.chats import APIS, Step, arguments, chat, numbered, read, results, text, texts, write

NOW = Step("ls", "f\n")  # the turn that is under way
IMAGE: dict[str, dict[str, Any]] = {
    "openai": {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    "converse": {"image": {"format": "png", "source": {"bytes": b"png"}}},
    "gemini": {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
}

each_shape = pytest.mark.parametrize("shape", APIS)


def kept(messages: list[Any], **options: Any) -> set[str]:
    """The calls whose results stay as they are."""
    before, after = results(messages), results(prune(messages, **options))
    assert before.keys() == after.keys()
    return {call_id for call_id in before if before[call_id] == after[call_id]}


# ------------------------------------------------------------ duplicates


@each_shape
def test_of_equal_results_the_newest_stays(shape: str) -> None:
    same = Step("pytest -q", text())
    assert kept(chat(shape, same, same, same, NOW)) == {"c3", "c4"}
    assert kept(chat(shape, [same, same], NOW)) == {"c2", "c3"}


@each_shape
def test_a_read_of_other_bytes_stays(shape: str) -> None:
    messages = chat(shape, read("/f", text()), read("/f", text(of="row")), NOW)
    assert kept(messages, strategies=["duplicate_outputs"]) == {"c1", "c2", "c3"}


@each_shape
def test_another_output_of_the_same_command_stays(shape: str) -> None:
    """DCP goes by tool and parameters alone, and loses the older of two different test runs."""
    first, second = Step("pytest -q", text(of="failed")), Step("pytest -q", text(of="passed"))
    assert kept(chat(shape, first, second, NOW)) == {"c1", "c2", "c3"}
    assert kept(chat(shape, first, second, first, NOW)) == {"c2", "c3", "c4"}


PARTS = {
    "offset": (read("/f", text(10, 60), offset=10, limit=51), read("/f", text(1, 100))),
    "offset from 0": (read("/f", text(10, 60), offset=9, limit=51), read("/f", text(1, 100))),
    "range in range": (read("/f", text(10, 60), offset=10, limit=51), read("/f", text(5, 90), offset=5, limit=86)),
    "then cat": (read("/f", text(10, 60), offset=10, limit=51), Step("cat /f", text(1, 100))),
    "then with numbers": (read("/f", text(10, 60), offset=10, limit=51), read("/f", numbered(1, 100))),
    "view_range": (read("/f", text(10, 60), view_range=[10, 60]), read("/f", text(1, 100))),
    "range in words": (read("/f", text(10, 60), lines="10-60"), read("/f", text(1, 100))),
    "first lines": (read("/f", text(1, 60), limit=60), read("/f", text(1, 100))),
}


@pytest.mark.parametrize("case", PARTS)
@each_shape
def test_a_ranged_read_without_numbers_is_a_part_of_a_later_read(shape: str, case: str) -> None:
    assert kept(chat(shape, *PARTS[case], NOW), strategies=["duplicate_outputs"]) == {"c2", "c3"}


@each_shape
def test_a_ranged_read_stays_if_it_is_no_part_of_a_later_read_of_that_file(shape: str) -> None:
    part, only = read("/f", text(10, 60), offset=10, limit=51), ["duplicate_outputs"]
    other_file = read("/g", text(1, 100))
    with_a_gap = read("/f", text(1, 30) + text(32, 100))
    within_lines = read("/f", text(1, 9) + "x" + text(10, 100))
    for later in (other_file, with_a_gap, within_lines):
        assert kept(chat(shape, part, later, NOW), strategies=only) == {"c1", "c2", "c3"}


@each_shape
def test_a_report_says_what_a_pruning_saved(shape: str) -> None:
    messages = chat(shape, read("/f", text()), read("/f", text()), NOW)
    pruned = prune(messages)
    saved = len(text()) - len(results(pruned)["c1"])
    assert prune_report(messages, pruned, count_tokens=len) == PruneReport(messages=1, chars=saved, tokens=saved)
    assert prune_report(messages, messages) == PruneReport(0, 0, 0)
    with pytest.raises(UsageError, match="before and after one pruning"):
        prune_report(messages, pruned[:-1])


COVERS = {
    "whole, whole": ((None, None), (None, None), True),
    "range, whole": ((11, 30), (None, None), True),
    "whole, range": ((None, None), (11, 30), False),
    "the same": ((11, 30), (11, 30), True),
    "wider": ((11, 30), (5, 35), True),
    "narrower": ((5, 35), (11, 30), False),
    "apart": ((1, 20), (21, 40), False),
    "overlapping": ((1, 25), (21, 40), False),
    "bounded by open": ((11, 30), (11, None), True),
    "open by bounded": ((11, None), (11, 30), False),
    "open by lower open": ((11, None), (5, None), True),
    "open by higher open": ((11, None), (15, None), False),
}


def ranged(first: int | None, last: int | None, how: str, path: str = "/w/f") -> Step:
    first_, last_ = first or 1, last or 40
    if how == "cat -n":
        return Step(f"cat -n {path} | sed -n '{first_},{last_}p'", numbered(first_, last_))
    if how == "sed":
        return Step(f"sed -n '{first_},{last or '$'}p' {path}", text(first_, last_))
    if how == "raw":
        given = {"start_line": first, "end_line": last}
        return read(path, text(first_, last_), **{name: line for name, line in given.items() if line})
    given = {"offset": first} if first else {}
    if last:
        given["limit"] = last - first_ + 1
    return read(path, numbered(first_, last_), **given)


@pytest.mark.parametrize("how", ["sed", "cat -n", "raw", "numbered"])
@pytest.mark.parametrize(("earlier", "later", "goes"), COVERS.values(), ids=COVERS)
def test_a_read_goes_when_a_later_one_shows_its_lines(
    earlier: tuple[int | None, int | None], later: tuple[int | None, int | None], goes: bool, how: str
) -> None:
    messages = chat("openai", ranged(*earlier, how), ranged(*later, how), NOW)
    assert kept(messages) == ({"c2", "c3"} if goes else {"c1", "c2", "c3"})


def test_a_read_of_another_file_covers_nothing() -> None:
    messages = chat("openai", ranged(11, 30, "sed"), ranged(1, None, "sed", path="/w/g"), NOW)
    assert kept(messages) == {"c1", "c2", "c3"}


def test_several_later_reads_cover_together() -> None:
    steps = [ranged(1, None, "sed"), ranged(1, 20, "numbered"), ranged(21, 40, "sed"), NOW]
    assert kept(chat("openai", *steps)) == {"c2", "c3", "c4"}
    steps[2] = ranged(22, 40, "sed")
    assert kept(chat("openai", *steps)) == {"c1", "c2", "c3", "c4"}


def test_what_was_shown_with_numbers_is_not_covered_by_what_has_none() -> None:
    assert kept(chat("openai", ranged(1, 30, "numbered"), ranged(1, 40, "sed"), NOW)) == {"c1", "c2", "c3"}
    assert kept(chat("openai", ranged(1, 30, "sed"), ranged(1, 40, "numbered"), NOW)) == {"c2", "c3"}


def test_a_line_around_the_file_must_stand_in_what_stays() -> None:
    first, second = ranged(1, 20, "numbered"), ranged(1, 40, "numbered")
    assert first.output is not None
    assert second.output is not None
    framed = read("/w/f", f"<file>\n{first.output}</file>\n")
    assert kept(chat("openai", framed, read("/w/f", f"<file>\n{second.output}</file>\n"), NOW)) == {"c2", "c3"}
    assert kept(chat("openai", framed, second, NOW)) == {"c1", "c2", "c3"}


def test_one_file_by_several_names_and_argument_names() -> None:
    later = Step({"filePath": "/w/./f"}, text(), tool="Read")
    assert kept(chat("openai", ranged(11, 30, "sed"), later, NOW)) == {"c2", "c3"}


@pytest.mark.parametrize("name", ["Read", "readFile", "mcp__fs__read_text_file", "view", "open_file"])
def test_tools_that_read_are_known_by_their_names(name: str) -> None:
    earlier, later = (Step({"path": "/w/f"}, shown, tool=name) for shown in (numbered(1, 20), numbered(1, 40)))
    assert kept(chat("openai", earlier, later, NOW)) == {"c2", "c3"}


@pytest.mark.parametrize("name", ["spread", "grep", "review_thread"])
def test_other_tools_are_not(name: str) -> None:
    earlier, later = (Step({"path": "/w/f"}, shown, tool=name) for shown in (numbered(1, 20), numbered(1, 40)))
    assert kept(chat("openai", earlier, later, NOW)) == {"c1", "c2", "c3"}


def test_relative_names_after_a_change_of_directory_name_nothing() -> None:
    earlier, later = ranged(11, 30, "sed", path="f"), ranged(1, 40, "sed", path="f")
    assert kept(chat("openai", earlier, later, NOW)) == {"c2", "c3"}
    assert kept(chat("openai", earlier, Step("cd sub", ""), later, NOW)) == {"c1", "c2", "c3", "c4"}


def test_lines_never_shown_are_never_said_to_be_shown() -> None:
    messages = chat("openai", ranged(1, 50, "sed"), Step("sed -n '100,150p' /w/f", text(100, 150)), NOW)
    assert prune(messages) is messages


def test_reads_of_other_parts_of_one_file_all_stay() -> None:
    messages = chat("openai", Step("git log /w/f", text()), Step("git blame /w/f", text(of="row")), NOW)
    assert prune(messages) is messages


def test_equal_errors_stay() -> None:
    failed = Step("make", text(), error=True)
    messages = chat("anthropic", [failed, failed], NOW)
    assert kept(messages, strategies=["duplicate_outputs"]) == {"c1", "c2", "c3"}


def test_a_note_tells_two_files_of_one_name_apart() -> None:
    named = spell_file_lines([("/w/src/util.py", 1, 40), ("/w/lib/util.py", 3, 9), ("/w/src/util.py", 90, 95)])
    assert named == "src/util.py lines 1-40, 90-95 and lib/util.py lines 3-9"


def test_the_note_says_which_lines() -> None:
    messages = chat("openai", ranged(11, 30, "sed"), ranged(1, 40, "sed"), Step("true", text(of="row")), NOW)
    note = results(prune(messages))["c1"]
    assert note == "[PRUNED: f lines 11-30; shown again later, byte for byte; repeat this call to see]"
    same = Step("pytest", text())
    note = results(prune(chat("openai", same, same, NOW)))["c1"]
    assert note == "[PRUNED: this output, 40 lines; shown again later, byte for byte]"


def test_the_note_for_a_command_that_does_more_than_read_says_all_that_stood_there_and_invites_to_nothing() -> None:
    """Failed: it named the file alone, and invited the agent to repeat `make`."""
    made = Step("make; echo ---; cat -n /w/f", text(of="made") + "---\n" + numbered(1, 40))
    note = results(prune(chat("openai", made, made, NOW)))["c1"]
    assert note == "[PRUNED: this output, 81 lines (f lines 1-40 among them); shown again later, byte for byte]"


# ------------------------------------------------------------ superseded reads


SUPERSEDED = {"strategies": ["superseded_reads"]}
HEREDOC = "cat > /w/f <<'EOF'\n" + text(of="row") + "EOF\n"


@each_shape
@pytest.mark.parametrize("written", [write("/w/f", text(of="row")), Step(HEREDOC, "")], ids=["tool", "heredoc"])
@pytest.mark.parametrize("how", ["sed", "cat -n", "raw", "numbered"])
def test_a_read_goes_when_its_file_is_overwritten(shape: str, written: Step, how: str) -> None:
    messages = chat(shape, ranged(5, 25, how), written, NOW)
    assert kept(messages, **SUPERSEDED) == {"c2", "c3"}
    assert arguments(prune(messages, strategies=["superseded_reads"])) == arguments(messages)


EDITS = {
    "edit": Step({"path": "/w/f", "old_string": "line", "new_string": "row"}, "ok", tool="edit_file"),
    "sed -i": Step("sed -i s/line/row/ /w/f", ""),
    "append": Step("cat >> /w/f <<'EOF'\nmore\nEOF\n", ""),
    "a copy": Step("cp /w/g /w/f", ""),
    "a patch": Step({"patch": "*** Update File: /w/f\n"}, "ok", tool="apply_patch"),
    "insert": Step({"path": "/w/f", "command": "insert", "insert_line": 3, "new_str": "x"}, "ok", tool="editor"),
    "tool that appends": Step({"path": "/w/f", "content": "x", "append": True}, "ok", tool="write_file"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_supersedes_nothing(edit: Step) -> None:
    messages = chat("openai", ranged(5, 25, "sed"), edit, NOW)
    assert prune(messages, strategies=["superseded_reads"]) is messages


FAILED = {
    "says so": write("/w/f", text(), error=True),
    "in words": write("/w/f", text(), "File already exists at: /w/f. Cannot overwrite"),
    "by status": Step(HEREDOC, "<returncode>1</returncode>\n<output>\n</output>"),
    "in bash's words": Step(HEREDOC, "bash: /w/f: Permission denied\n"),
    "no answer": write("/w/f", text(), None),
}


@each_shape
@pytest.mark.parametrize("failed", FAILED.values(), ids=FAILED)
def test_a_failed_write_supersedes_nothing(shape: str, failed: Step) -> None:
    messages = chat(shape, ranged(5, 25, "sed"), failed, *([] if failed.output is None else [NOW]))
    assert prune(messages, strategies=["superseded_reads"]) is messages


def test_only_reads_before_the_write_go() -> None:
    steps = [ranged(1, 20, "sed"), ranged(5, 25, "raw"), write("/w/f", text()), ranged(1, 40, "sed"), NOW]
    assert kept(chat("openai", *steps), **SUPERSEDED) == {"c3", "c4", "c5"}


def test_only_reads_of_that_file_go() -> None:
    steps = [ranged(1, 20, "sed"), ranged(1, 20, "sed", path="/w/g"), write("/w/f", text()), NOW]
    assert kept(chat("openai", *steps), **SUPERSEDED) == {"c2", "c3", "c4"}


def test_a_result_that_also_says_other_things_stays() -> None:
    both = Step("cat /w/f; echo ---; cat /w/g", text() + "---\n" + text(of="row"))
    log = Step("cat /w/f; git log", text() + text(of="commit"))
    made = Step("make; cat -n /w/f", text(of="made") + numbered(1, 40))
    messages = chat("openai", both, log, made, write("/w/f", text()), NOW)
    assert prune(messages, strategies=["superseded_reads"]) is messages


def test_what_a_tool_says_around_a_file_goes_with_it() -> None:
    given = {"command": "view", "path": "/w/f"}
    view = Step(given, f"Here's the result of running `cat -n` on /w/f:\n{numbered(1, 40)}", tool="str_replace_editor")
    created = Step({"command": "create", "path": "/w/f", "file_text": text()}, "created", tool="str_replace_editor")
    assert kept(chat("anthropic", view, created, NOW), **SUPERSEDED) == {"c2", "c3"}


@pytest.mark.parametrize("glob", ["f", "/w/*", "**/f"])
def test_a_protected_file_stays(glob: str) -> None:
    messages = chat("openai", ranged(1, 20, "sed"), ranged(1, 40, "sed"), write("/w/f", text()), NOW)
    assert prune(messages, protected=[glob]) is messages
    assert prune(messages, Session("/w", policy=Policy(protected=(glob,)))) is messages


@pytest.mark.parametrize(
    "step",
    [Step("awk 1 /w/.env", text()), Step("grep -rn line /w", "/w/.env:1:line\n" + text())],
    ids=["named by the command", "named by the output"],
)
def test_a_result_with_lines_of_a_protected_file_stays(step: Step) -> None:
    """Failed: only reads of whole stretches were known to be of it."""
    messages = chat("openai", step, step, NOW)
    assert prune(messages, protected=[".env"]) is messages
    assert prune(messages) is not messages


# ------------------------------------------------------------ inputs of failed calls


@each_shape
def test_a_long_input_of_a_failed_call_goes(shape: str) -> None:
    failed = Step({"path": "/w/f", "old_string": text(), "new_string": "x"}, "no match", tool="edit", error=True)
    messages = chat(shape, failed, NOW)
    after = prune(messages)
    note = f"[PRUNED: {len(text()):,} characters of input of a failed call]"
    assert arguments(after)["c1"] == {"path": "/w/f", "old_string": note, "new_string": "x"}
    assert results(after) == results(messages)


def test_a_failed_command_that_may_have_written_a_file_keeps_its_text() -> None:
    messages = chat("anthropic", Step(HEREDOC + "pytest\n", text(), error=True), NOW)
    assert arguments(prune(messages)) == arguments(messages)


def test_inputs_of_calls_that_succeeded_or_wait_stay() -> None:
    messages = chat("anthropic", write("/w/f", text()), NOW, Step({"text": text()}, None, tool="note"))
    assert prune(messages, strategies=["errored_inputs"], protect_last_turns=0) is messages


# ------------------------------------------------------------ oversized outputs


@each_shape
def test_a_long_result_keeps_its_head_and_tail(shape: str) -> None:
    long = text(1, 1000)
    after = results(prune(chat(shape, Step("make", long), NOW)))["c1"]
    assert len(after) <= 10_000
    head, note, tail = after.partition("[PRUNED: ")
    count, rest = tail.split(" lines (", 1)
    tail = rest.partition("]\n")[2]
    assert note
    assert long.startswith(head)
    assert long.endswith(tail)
    assert head.count("\n") + tail.count("\n") + int(count) == 1000


def test_a_line_is_cut_only_where_it_is_longer_than_the_room() -> None:
    after = results(prune(chat("openai", Step("make", "x" * 50_000), NOW)))["c1"]
    assert len(after) <= 10_000
    assert after.startswith("x" * 4_900)
    assert after.endswith("x" * 4_900)


def test_a_long_error_is_cut_too() -> None:
    after = results(prune(chat("anthropic", Step("make", text(1, 1000), error=True), NOW)))["c1"]
    assert len(after) <= 10_000


@each_shape
def test_images_become_a_text(shape: str) -> None:
    shot = Step("screenshot", "taken", blocks=(IMAGE[shape],))
    messages = chat(shape, shot, shot, NOW)
    after = prune(messages)
    assert "image" not in {part.kind.value for message in normalise(after) for part in message.parts}
    assert "\ntaken\n[PRUNED: an image was shown here]" in "\n".join(texts(after))
    assert prune(messages, strategies=["duplicate_outputs"]) is messages


@each_shape
def test_an_image_that_belongs_to_the_task_or_the_last_turn_stays(shape: str) -> None:
    messages = chat(shape, NOW, Step("screenshot", "taken", blocks=(IMAGE[shape],)))
    words = {"text": "as here"} if shape in ("converse", "gemini") else {"type": "text", "text": "as here"}
    said_so = {"role": "user", "parts" if shape == "gemini" else "content": [words, IMAGE[shape]]}
    messages[-len(chat(shape)) - 3] = said_so
    assert prune(messages) is messages


# ------------------------------------------------------------ calls without ids, as Gemini's are


def test_of_results_without_ids_in_one_message_only_the_one_that_is_meant_goes() -> None:
    same = Step("pytest -q", text())
    after = prune(chat("gemini without ids", [same, same], NOW))
    assert [text() in words for words in texts(after)].count(True) == 1
    assert [words.startswith("[PRUNED") for words in texts(after)].count(True) == 1


def test_calls_without_ids_that_were_made_at_once_have_their_results_in_order() -> None:
    reads = [read("/a", text(of="a")), read("/b", text(of="b")), read("/c", text(of="c"))]
    after = prune(chat("gemini without ids", reads, write("/b", text(of="new")), NOW))
    assert [text(of=name) in texts(after) for name in "abc"] == [True, False, True]


# ------------------------------------------------------------ all of them


@each_shape
def test_the_last_turns_are_untouched(shape: str) -> None:
    same = Step("pytest -q", text(1, 400))
    messages = chat(shape, same, [same, same])
    assert kept(messages) == {"c2", "c3"}
    assert prune(messages, protect_last_turns=2) is messages
    assert kept(messages, protect_last_turns=0, strategies=["duplicate_outputs"]) == {"c3"}


def test_an_agent_alone_with_one_user_message_has_turns_too() -> None:
    same = Step("pytest -q", text())
    assert kept(chat("anthropic", *[same] * 5)) == {"c5"}


def test_short_results_stay() -> None:
    short = Step("pytest -q", "x" * 299)
    messages = chat("openai", short, short, NOW)
    assert prune(messages) is messages


@each_shape
def test_the_very_same_list_comes_back_when_nothing_changes(shape: str) -> None:
    messages = chat(shape, Step("pytest", text()), read("/f", text(of="row")), NOW)
    assert prune(messages) is messages
    assert prune(messages, Session("/w")) is messages


@each_shape
def test_what_was_given_is_not_changed(shape: str) -> None:
    same = Step("pytest -q", text())
    messages = chat(
        shape, same, same, Step({"x": text()}, "e", error=True), Step("shot", "", blocks=(IMAGE[shape],)), NOW
    )
    before = copy.deepcopy(messages)
    after = prune(messages)
    assert messages == before
    assert after != before
    untouched = [a is b for a, b in zip(after, messages, strict=True)]
    assert untouched.count(False) == 3


@pytest.mark.parametrize(
    "messages", [[], [{"role": "user", "content": "hi"}], chat("openai", Step({}, text(), tool="t"))]
)
def test_nothing_to_prune_is_no_error(messages: list[Any]) -> None:
    assert prune(messages) is messages


def test_a_chat_without_ids_has_no_results_to_prune() -> None:
    turn = [{"role": "assistant", "content": "```bash\ncat f\n```"}, {"role": "user", "content": text()}]
    messages: list[Any] = [{"role": "user", "content": "task"}, *turn, *turn, *turn]
    assert prune(messages) is messages


def test_an_id_used_again_names_the_newer_call() -> None:
    same = Step("pytest -q", text())
    turn = chat("anthropic", same)[1:]
    messages = [*chat("anthropic"), *turn, *turn, *turn]
    after = prune(messages)
    assert after[-2:] == messages[-2:]
    assert [after[k] == messages[k] for k in (2, 4)] == [False, False]


def test_only_the_strategies_asked_for_are_applied() -> None:
    same = Step("pytest -q", text(1, 400))
    messages = chat("openai", same, same, ranged(1, 20, "sed"), write("/w/f", text()), NOW)
    assert prune(messages, strategies=()) is messages
    assert kept(messages, strategies=["superseded_reads"]) == {"c1", "c2", "c4", "c5"}
    assert kept(messages, strategies=["duplicate_outputs"]) == {"c2", "c3", "c4", "c5"}
    assert kept(messages, strategies=["oversized_outputs"]) == {"c3", "c4", "c5"}


def test_a_strategy_that_there_is_none_of_is_an_error() -> None:
    with pytest.raises(UsageError, match="unknown pruning strategy 'everything'"):
        prune([], strategies=["everything"])


def test_while_readcache_is_off_nothing_is_pruned() -> None:
    same = Step("pytest -q", text())
    messages = chat("openai", same, same, NOW)
    assert prune(messages, Session("/w", is_off=lambda: True)) is messages


@pytest.mark.parametrize("mode", [Mode.ADVISE, Mode.OFF])
def test_a_session_that_only_advises_has_nothing_pruned(mode: Mode) -> None:
    same = Step("pytest -q", text())
    messages = chat("openai", same, same, NOW)
    assert prune(messages, Session("/w", policy=Policy(mode=mode))) is messages
