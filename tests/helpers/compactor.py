"""What the tests of pruning and compaction need: a model from a script, an agent's conversation, true markers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from readcache import Session
from tests.helpers.chats import Messages, Step, chat, text, texts, turn_of

SUMMARY = "<analysis>hm</analysis><summary>TASK: go on\nNEXT STEP: read on</summary>"


class Model:
    """Answers what it was told to answer, and remembers what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers) or [SUMMARY]
        self.asked: list[str] = []

    def __call__(self, request: list[dict[str, str]]) -> Any:
        (message,) = request
        self.asked.append(message["content"])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def commands(shape: str, session: Session, *given: tuple[str, str]) -> Messages:
    """The conversation of an agent whose tool answers through a session."""
    steps = [
        Step(command, session.observe(command, output, call_id=f"c{n}").text)
        for n, (command, output) in enumerate(given, 1)
    ]
    return chat(shape, *steps)


def six_reads(shape: str, session: Session) -> Messages:
    return commands(shape, session, *[(f"cat {name}", text(of=name)) for name in "abcdef"])


class TooLong(Exception):
    """As OpenAI says it."""

    def __init__(self) -> None:
        super().__init__("This model's maximum context length is 8192 tokens, however you requested 9000")


def assert_true_markers(session: Session, messages: Messages) -> None:
    """Every marker in the messages names a source that is visible, and nothing counts as visible that is not there."""
    everything = "\n".join(texts(messages))
    lines = everything.split("\n")
    for delivery in session.view.deliveries:
        assert set(delivery.event.text.split("\n")) <= {*lines, ""}, delivery.event.call_id
        for logged in delivery.event.markers:
            assert all(session.view.is_visible(source) for source in logged.sources)
    known = "\n".join(delivery.event.text for delivery in session.view.deliveries)
    for marker in session.markers_in(everything):
        assert marker in known or marker.startswith(("[GONE ", "[PRUNED "))


# ------------------------------------------------------------ what an agent may do

FILES = {name: text(1, 60, of=name) for name in "fgh"}


def part_of(name: str, first: int, last: int) -> tuple[str, str]:
    lines = FILES[name].splitlines(True)[first - 1 : last]
    return f"sed -n '{first},{last}p' {name}", "".join(lines)


reads = st.builds(part_of, st.sampled_from("fgh"), st.sampled_from([1, 11, 21]), st.sampled_from([30, 45, 60]))
writes = st.builds(lambda name: (f"cat > {name} <<'EOF'\n{FILES[name]}EOF\n", ""), st.sampled_from("fgh"))
edits = st.builds(lambda name: (f"sed -i s/x/y/ {name}", ""), st.sampled_from("fgh"))
others = st.sampled_from([("make", text(1, 300)), ("make", text(1, 20)), ("true", "")])
agent_turns = st.lists(st.lists(reads | reads | writes | edits | others, min_size=1, max_size=3), max_size=10)


def observed_turn(shape: str, session: Session, number: int, asked: list[tuple[str, str]]) -> Messages:
    """The messages of one turn, as a tool that answers through the session makes them."""
    if shape == "no ids":
        command, output = asked[0]
        shown = session.observe(command, output).text
        return [
            {"role": "assistant", "content": f"so\n\n```bash\n{command}\n```"},
            {"role": "user", "content": f"<output>\n{shown}\n</output>"},
        ]
    steps = []
    with session.batch():
        for at, (command, output) in enumerate(asked):
            call_id = f"c{number}-{at}"
            steps.append((call_id, Step(command, session.observe(command, output, call_id=call_id).text)))
    return turn_of(shape, *steps)
