"""Failures of tools like this one: what happens later, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from readcache import Head, HeadTail, Mode, Outcome, Policy, Reason, Session
from readcache.context import Compactor, prune
from readcache.core.model.policy import PRESETS
from readcache.log.store import open_store
from tests.helpers.chats import SHAPES_WITH_IDS, WORDS_IN_FRONT, message_list, results, texts
from tests.helpers.compactor import Model, commands
from tests.helpers.files import TEXT, text
from tests.helpers.replies import omits, sources

CLEARED = "[Old tool result content cleared]"


@pytest.fixture(params=PRESETS)
def session(request: pytest.FixtureRequest) -> Session:
    """A session under each preset."""
    return Session("/w", policy=replace(Policy.named(request.param), min_worth=0))


def talk(session: Session, shape: str, *commands: str) -> list[Any]:
    """A conversation in which each command prints the same file."""
    named = [(f"c{number}", command) for number, command in enumerate(commands, 1)]
    return message_list(shape, [(name, each, session.observe(each, TEXT, call_id=name).text) for name, each in named])


# ------------------------------------------------------------ N6: nothing but a marker


@pytest.mark.parametrize(("command", "said"), [("cat f", "f lines 1-60"), ("./show", "this output, 60 lines")])
def test_where_all_is_left_out_the_reply_says_how_much_there_was(session: Session, command: str, said: str) -> None:
    """An omission of the whole output read as "no output", and was pulled back at once. A listing whose length is the
    news was folded to a pointer. A stub counted as a failed call, and weak models looped."""
    session.observe(command, TEXT)
    reply = session.observe(command, TEXT)
    assert (reply.outcome is not Outcome.FULL, reply.text.count("\n")) == (True, 1)
    assert said in reply.text
    assert session.observe(command, TEXT).text == TEXT, "who asks again at once gets every byte"


def test_a_short_output_is_never_given_as_a_marker(session: Session) -> None:
    short = text(1, 5)
    for _ in range(5):
        assert session.observe("cat f", short).text == short


# ------------------------------------------------------------ N7, N8: the source went, and nobody said so


@pytest.mark.parametrize("shape", SHAPES_WITH_IDS)
def test_a_conversation_that_began_anew_without_a_word_holds_nothing_of_the_old(session: Session, shape: str) -> None:
    """A compaction that nobody signalled, and the ledger went on. A compaction that was computed ahead, or while idle:
    no command, no threshold."""
    talk(session, shape, "cat f", "head -n 60 f")
    anew = message_list(shape, [("", "", "This session is being continued from one that ran out of context.")])
    assert session.mend(anew) is anew
    assert session.observe("cat f", TEXT).text == TEXT


@pytest.mark.parametrize("shape", SHAPES_WITH_IDS)
def test_what_the_harness_pruned_is_no_source(session: Session, shape: str) -> None:
    """The harness pruned the source, which is no compaction."""
    messages = talk(session, shape, "cat f", "head -n 60 f")
    assert session.mend(messages) is messages
    marker = results(messages)["c2"].removeprefix(WORDS_IN_FRONT)
    pruned = message_list(shape, [("c1", "cat f", CLEARED), ("c2", "head -n 60 f", marker)])
    assert session.mend(pruned) is not pruned, "the marker that named it is told"
    assert session.observe("cat f", TEXT).text == TEXT


# ------------------------------------------------------------ N9: given back


@pytest.mark.parametrize("shape", SHAPES_WITH_IDS)
def test_what_is_given_back_is_given_once(session: Session, shape: str) -> None:
    """A text that was given back was sent again in every request."""
    messages = talk(session, shape, "cat f", "head -n 60 f")
    without = [message for message in messages if TEXT not in texts([message])[0]]
    repaired = session.mend(without)
    for _ in range(3):
        assert session.mend(repaired) is repaired, "a list that is true is left as it is"
    assert sum(part.count(TEXT) for part in texts(repaired)) == 1


def test_what_a_reader_got_by_asking_again_need_not_be_sent_a_third_time(session: Session) -> None:
    session.observe("cat f", TEXT)
    session.observe("cat f", TEXT)
    session.observe("cat f", TEXT, call_id="given back")
    for name in "abc":
        session.observe(f"ls {name}", f"{name}\n")
    assert sources(session.observe("cat f", TEXT)) == {"given back"}


# ------------------------------------------------------------ N10: the file at work


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_the_file_at_work_outlives_pruning_and_is_put_back_first_after_a_compaction(session: Session, api: str) -> None:
    """An eviction sent the model to read all again. A small compaction evicted the file at work, and the model read it
    66 times."""
    given = [(f"cat {name}", text(1, 90, of=name)) for name in "abcdef"]
    messages = commands(api, session, *given, ("sed -i s/x/y/ c", ""), ("cat f", text(1, 90, of="f")))
    assert results(prune(messages, session))["c8"] == results(messages)["c8"]
    compactor = Compactor(session, Model(), trigger_tokens=6_000, keep_turns=1)
    compacted = compactor.compact(messages)
    section = next(part for part in texts(compacted) if "Files restored" in part)
    assert section.index("/w/c ") < min(section.find(f"/w/{name} ") % len(section) for name in "abde")


# ------------------------------------------------------------ N11: bytes behind a handle


def test_without_its_store_every_byte_comes_back_by_asking_again(tmp_path: Path) -> None:
    """A handle outlived the store behind it."""
    (tmp_path / "f").write_text(TEXT)
    with Session(tmp_path, session_id="s", store=tmp_path / "log.db") as session:
        session.run("cat f")
        assert omits(session.run("cat f"))
    for file in tmp_path.glob("log.db*"):
        file.unlink()
    with Session(tmp_path, session_id="s", store=tmp_path / "log.db") as session:
        assert session.run("cat f").text == TEXT


# ------------------------------------------------------------ N12: a long history


@pytest.mark.parametrize("beside", ["of other sessions", "of this session"])
def test_a_process_that_judges_one_call_reads_as_little_after_a_long_history(tmp_path: Path, beside: str) -> None:
    """The rows that it takes from the store: what they cost is in tests/benchmarks/scale.py."""
    read_rows = []
    for size in (10, 150):
        store = open_store(tmp_path / f"{size}.db")
        with Session("/w", session_id="s", store=store) as session:
            session.observe("cat f", TEXT)
            other = session if beside == "of this session" else Session("/w", session_id="other", store=store)
            for number in range(size):
                other.observe(f"cat g{number}", text(of=f"{number} line"))
        read_rows.append(len(list(store.records_about("s", "main", ["/w/f"], []))))
    assert read_rows[0] == read_rows[1] > 0


# ------------------------------------------------------------ N13: what is counted as saved


def tokens(said: str) -> int:
    return -(-len(said) // 3)


@pytest.mark.parametrize("clip", [HeadTail(500, 500), Head(1_000)])
def test_what_the_host_would_have_cut_anyway_is_no_saving(session: Session, clip: Head | HeadTail) -> None:
    """Figures: what the host cuts anyway, the agent's own `head`, losses floored, failures, one payload's rate."""
    session = Session("/w", policy=replace(session.policy, clip=clip))
    long = text(1, 200)
    for first in range(1, 200, 10):  # each short enough to be shown whole
        session.observe(f"sed -n '{first},{first + 9}p' f", text(first, first + 9))
    before = session.stats()
    reply = session.observe("cat f", long)
    shown, would_be = clip.kept(reply.text), clip.kept(long)
    assert omits(reply)
    assert reply.tokens_saved == sum(map(tokens, would_be)) - sum(map(tokens, shown)) <= tokens("".join(would_be))
    after = session.stats()
    assert after["output_chars"] - before["output_chars"] == sum(map(len, would_be))
    assert after["tokens_saved"] - before.get("tokens_saved", 0) == reply.tokens_saved


def test_the_same_read_again_saves_no_more_than_the_host_would_have_shown() -> None:
    clip = Head(2_000)
    session = Session("/w", policy=Policy(clip=clip, count_tokens=len, min_worth=0))
    session.observe("cat f", text(1, 30))
    reply = session.observe("cat f", text(1, 30))
    assert reply.tokens_saved == len(clip.kept(text(1, 30))[0]) - len(reply.text)


def test_what_the_agent_did_not_ask_for_is_no_saving(session: Session) -> None:
    session.observe("cat f", text(1, 200))
    reply = session.observe("head -n 20 f", text(1, 20))
    assert 0 < reply.tokens_saved == tokens(text(1, 20)) - tokens(reply.text)


def test_a_loss_is_counted_as_one() -> None:
    """By a tokenizer for which markers are dear."""
    policy = Policy(min_worth=0, count_tokens=lambda said: 5_000 * said.count("UNCHANGED") + len(said) // 4)
    session = Session("/w", policy=policy)
    session.observe("cat f", TEXT)
    reply = session.observe("cat f", TEXT)
    assert omits(reply)
    assert session.stats()["tokens_saved"] == reply.tokens_saved < 0


def test_what_would_have_been_saved_is_counted_apart() -> None:
    session = Session("/w", policy=Policy(mode=Mode.ADVISE, min_worth=0))
    session.observe("cat f", TEXT)
    reply = session.observe("cat f", TEXT)
    counts = session.stats()
    assert (reply.text, reply.reason, reply.tokens_saved) == (TEXT, Reason.ADVISED, 0)
    assert counts["tokens_saved_if_on"] > 400
    assert counts.get("tokens_saved", 0) == 0


def test_the_counters_are_of_the_whole_session_with_all_that_was_shown_in_full(session: Session) -> None:
    outputs = [("cat f", TEXT), ("ls", "f\n"), ("cat f", TEXT), ("make", text(of="made"))]
    replies = [session.observe(*each) for each in outputs]
    counts = session.stats()
    assert counts["calls"] == len(outputs)
    assert counts["output_chars"] == sum(len(output) for _, output in outputs)
    assert counts["shown_chars"] == sum(len(reply.text) for reply in replies)
    assert counts["tokens_saved"] == sum(reply.tokens_saved for reply in replies)


@pytest.mark.parametrize("how", ["the host showed it after all", "answered anew under its id"])
def test_what_was_shown_after_all_is_no_saving(session: Session, how: str) -> None:
    session.observe("cat f", TEXT, call_id="c1")
    reply = session.observe("head -n 60 f", TEXT, call_id="c2")
    assert session.stats()["tokens_saved"] == reply.tokens_saved > 0
    if how == "the host showed it after all":
        session.settle("c2", TEXT)
        session.settle("c2", TEXT[:200])
    else:
        assert session.observe("head -n 60 f", TEXT, call_id="c2").text == TEXT
    counts = session.stats()
    assert (counts["tokens_saved"], counts["calls"]) == (0, 2)
    assert counts["shown_chars"] == counts["output_chars"] == 2 * len(TEXT)


def test_a_marker_that_was_retired_later_has_saved_what_it_saved(session: Session) -> None:
    listed: list[Any] = talk(session, "openai", "cat f", "head -n 60 f")
    before = session.stats()["tokens_saved"]
    assert session.mend(listed) is listed
    without = [message for message in listed if TEXT not in str(message.get("content"))]
    session.sync(session.mend(without))
    assert session.stats()["tokens_saved"] == before > 0


def test_a_failure_of_ours_is_counted_and_is_no_saving(tmp_path: Path) -> None:
    store = tmp_path / "log.db"
    store.mkdir()
    session = Session("/w", store=store)
    assert [session.observe("cat f", TEXT).tokens_saved for _ in range(3)] == [0, 0, 0]
    assert session.stats()["store_failed"] >= 3
    assert session.stats().get("tokens_saved", 0) == 0
