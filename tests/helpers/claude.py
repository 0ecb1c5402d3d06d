"""Claude Code as its transcripts and hooks show it (recorded from 2.1.330), without the program: for tests in no time.

The real one is driven in `tests/real_hosts/claude-code`.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from readcache import Policy, Sessions
from readcache.hosts.claude_code.adapter import claude_hook
from readcache.testing.hosts import FORMS, Bash, Clear, Compact, Delegate, Edit, Read, Rewind, Seen, Step, ToolUse

Entry = dict[str, Any]
CLEARED = "[Old tool result content cleared]"
# Claude Code itself numbers the lines that a hook leaves of a Read: only the whole, the beginning or the end can go.
IN_THE_MIDDLE: dict[str, tuple[str, ...]] = {form: ("part_read", "sed_read") for form in FORMS}
IN_THE_MIDDLE["blank-lines"] += ("search_read", "search_part")  # a search shows no blank lines


class QuickClaude:
    """Claude Code as a host of the conformance suite."""

    can: frozenset[type] = frozenset((Bash, Read, Edit, Delegate, Compact, Rewind))
    cannot_shorten = IN_THE_MIDDLE

    def __init__(self, policy: str = "default") -> None:
        self.policy = policy
        self.store: Path | None = None

    def normal(self, text: str) -> str:
        """Without the line that Read adds to a file that ends with a newline."""
        text = text.replace("/without", "/with")
        return re.sub(r"(?<=\n)\d+\t$", "", text).rstrip("\n")

    def converse(self, root: Path, steps: Sequence[Step], *, on: bool) -> list[Seen]:
        """See `HostUnderTest`."""
        sessions = Sessions(root, store=self.store, policy=Policy.named(self.policy)) if on else None
        talk = ClaudeTalk(root, root.parent / f".{root.name}", sessions)
        return [talk.step(step) for step in steps]


class ClaudeTalk:
    """One conversation, or a sub-agent's. `sessions`: None without readcache."""

    def __init__(self, root: Path, home: Path, sessions: Sessions | None, agent: str = "") -> None:
        self.root, self.home, self.sessions, self.agent = root, home, sessions, agent
        self.session, self.model = "conversation", "claude-opus-4-6"
        self.path = home / "conversation.jsonl"
        if agent:
            self.path = home / "conversation/subagents" / f"agent-{agent}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.cwd = root
        self.messages: list[Entry] = []  # as they are sent
        self.leaf: str | None = None
        self._leaves: list[tuple[int, str | None]] = []  # before each answer: how many messages, the newest entry
        self._last: tuple[str, list[str]] | None = None  # the last request: its id, the messages by hash
        self.inner: list[Seen] = []
        self.count = 0

    # ------------------------------------------------------------ what happens

    def step(self, step: Step) -> Seen:
        """What the model is sent after it."""
        self.inner, ids = [], []
        if isinstance(step, Compact):
            self.compact()
        elif isinstance(step, Clear):
            self.clear()
        elif isinstance(step, Rewind):
            self.go_back(step.calls)
        elif isinstance(step, tuple):
            ids = self.calls(step)
        results = {b["tool_use_id"]: str(b["content"]) for b in self._blocks() if "tool_use_id" in b}
        texts = [
            json.dumps(b["input"]) if "input" in b else str(b.get("content", b.get("text"))) for b in self._blocks()
        ]
        return Seen(tuple(texts), tuple(results[name] for name in ids), tuple(self.inner))

    def calls(self, calls: Sequence[ToolUse]) -> list[str]:
        """The model makes these calls at once; gives their ids."""
        self.say("go on") if not self.messages else None
        self._leaves.append((len(self.messages), self.leaf))
        ref, message = self.request(), f"msg_{uuid.uuid4()}"
        blocks = [self._block(call) for call in calls]
        for block in blocks:
            self._entry(
                "assistant",
                {"model": self.model, "id": message, "role": "assistant", "content": [block]},
                requestRef=ref,
                cwd=str(self.cwd),
            )
        parents = [self.leaf] * len(blocks)
        self.messages.append({"role": "assistant", "content": blocks})
        shown = [self.answer(block, call) for block, call in zip(blocks, calls, strict=True)]
        for parent, block in zip(parents, shown, strict=True):
            self.leaf = parent
            self._entry("user", {"role": "user", "content": [block]})
        self.messages.append({"role": "user", "content": shown})
        return [block["id"] for block in blocks]

    def answer(self, block: Entry, call: ToolUse) -> Entry:
        """One call is made, and its hook asked; gives the result's block."""
        response, error = self.run(call)
        told = {
            "tool_name": block["name"],
            "tool_input": block["input"],
            "tool_use_id": block["id"],
            "cwd": str(self.cwd),
        }
        if error is not None:
            self.event("PostToolUseFailure", **told, error=error)
            return {"tool_use_id": block["id"], "type": "tool_result", "content": error, "is_error": True}
        answer = self.event("PostToolUse", **told, tool_response=response)
        if answer:
            response = answer["hookSpecificOutput"]["updatedToolOutput"]
        return {"tool_use_id": block["id"], "type": "tool_result", "content": self.rendered(response)}

    def event(self, name: str, **told: Any) -> Any:
        """A hook's answer."""
        if self.sessions is None:
            return None
        who = {"agent_id": self.agent} if self.agent else {}
        path = str(self.home / "conversation.jsonl")
        event = {"hook_event_name": name, "session_id": self.session, "transcript_path": path, "cwd": str(self.cwd)}
        return claude_hook(json.loads(json.dumps({**event, **who, **told})), self.sessions)

    def say(self, text: str) -> None:
        """The user says something."""
        self._entry("user", {"role": "user", "content": text})
        self.messages.append({"role": "user", "content": [{"type": "text", "text": text}]})

    def compact(self, *restored: str) -> None:
        """The conversation becomes a summary. `restored`: files that are shown again by Claude Code itself."""
        self.leaf, self._last = None, None
        self._entry("system", None, subtype="compact_boundary")
        self.messages = []
        self._leaves = []
        self.say("This session is being continued from a previous conversation: files were looked at.")
        for name in restored:
            file = self._file(self.root / name, 1, None)
            text = f"<system-reminder>\nResult of calling the Read tool:\n{self.rendered(file)}\n</system-reminder>"
            kept = {"type": "file", "filename": name, "content": file}
            self._entry("attachment", None, attachment=kept, rendered=[{"content": text}])
            self.messages[-1]["content"].append({"type": "text", "text": text})
        if answer := self.event("SessionStart", source="compact"):
            self.attach(answer["hookSpecificOutput"]["additionalContext"])

    def attach(self, added: str) -> None:
        """What a hook adds to the conversation."""
        text = f"<system-reminder>\nSessionStart hook additional context: {added}\n</system-reminder>"
        kept = {"type": "hook_additional_context", "content": [added], "hookEvent": "SessionStart"}
        self._entry("attachment", None, attachment=kept, rendered=[{"content": text}])
        self.messages[-1]["content"].append({"type": "text", "text": text})

    def clear(self) -> None:
        """The oldest result that is still there is cleared, of which the transcript tells only by later requests."""
        for block in self._blocks():
            if "tool_use_id" in block and block["content"] != CLEARED:
                block["content"] = CLEARED
                return

    def go_back(self, calls: int) -> None:
        """As if the last calls and all after them had not been made."""
        keep, self.leaf = self._leaves[-calls]
        del self._leaves[-calls:]
        self.messages = self.messages[:keep]
        self.say("let us try something else")

    # ------------------------------------------------------------ what is written

    def request(self) -> str:
        """Logs the request that is sent now; gives its id."""
        hashes = [hashlib.sha256(json.dumps(message).encode()).hexdigest() for message in self.messages]
        before, old = self._last or ("", [])
        keep = next(
            (n for n, (a, b) in enumerate(zip(old, hashes, strict=False)) if a != b), min(len(old), len(hashes))
        )
        name = str(uuid.uuid4())
        base = {"base": before} if keep else {}
        edits = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
        for digest, message in zip(hashes[keep:], self.messages[keep:], strict=True):
            if message["role"] == "user":
                self.write({"type": "api-request-blob", "hash": digest, "message": message})
        self.write({"type": "api-request", "id": name, "params": edits, **base, "keep": keep, "tail": hashes[keep:]})
        self._last = name, hashes
        return name

    def _entry(self, kind: str, message: Entry | None, **more: Any) -> None:
        entry = {"parentUuid": self.leaf, "type": kind, **({"message": message} if message else {}), **more}
        self.leaf = entry["uuid"] = str(uuid.uuid4())
        self.write(entry)

    def write(self, entry: Entry) -> None:
        """A line of the transcript."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, separators=(",", ":")) + "\n")

    def _blocks(self) -> list[Entry]:
        return [block for message in self.messages for block in message["content"]]

    # ------------------------------------------------------------ its tools

    def _block(self, call: ToolUse) -> Entry:
        self.count += 1
        given: Entry = {}
        if isinstance(call, Bash):
            given = {"command": call.command}
        elif isinstance(call, Read):
            limit = {} if call.end is None else {"limit": call.end - call.start + 1}
            given = {"file_path": str(self.root / call.path), "offset": call.start, **limit}
        elif isinstance(call, Edit):
            given = {"file_path": str(self.root / call.path), "old_string": call.old, "new_string": call.new}
        name = "Agent" if isinstance(call, Delegate) else type(call).__name__
        return {"type": "tool_use", "id": f"toolu_{self.agent}{self.count}", "name": name, "input": given}

    def run(self, call: ToolUse) -> tuple[Any, str | None]:
        """(the response, the error) of a tool."""
        if isinstance(call, Bash):
            return self._bash(call)
        if isinstance(call, Delegate):
            agent = ClaudeTalk(self.root, self.home, self.sessions, f"a{self.count}")
            self.inner = [agent.step((inner,)) for inner in call.calls]
            return {"status": "completed"}, None
        path = self.root / call.path
        if not path.exists():
            return None, f"File does not exist. Note: your current working directory is {self.root}."
        if isinstance(call, Read):
            return self._file(path, call.start, call.end), None
        path.write_text(path.read_text().replace(call.old, call.new))
        return {"filePath": str(path), "oldString": call.old, "newString": call.new}, None

    def _bash(self, call: Bash) -> tuple[Any, str | None]:
        command = ["bash", "-c", f"{call.command}\nstatus=$?; pwd >&9; exit $status"]
        cwd_file = self.home / "cwd"
        try:
            with cwd_file.open("wb") as end:
                script = f"exec 9>{cwd_file}; {command[2]}"
                ran = subprocess.run(
                    ["bash", "-c", script], cwd=self.cwd, stdout=-1, stderr=-2, timeout=call.timeout, check=False
                )
                end.close()
        except subprocess.TimeoutExpired as late:
            return {"stdout": (late.stdout or b"").decode(), "stderr": "", "interrupted": True, "isImage": False}, None
        self.cwd = Path(cwd_file.read_text().strip() or self.cwd)
        text = re.sub(r"\A(\s*\n)+", "", ran.stdout.decode(errors="replace")).rstrip()
        if ran.returncode:
            return None, f"Exit code {ran.returncode}\n{text}"
        response: Entry = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        if len(text) > 30_000:
            response |= {"stdout": text[:30_000], "persistedOutputPath": "/somewhere/else.txt"}
        return response, None

    def _file(self, path: Path, start: int, end: int | None) -> Entry:
        lines = path.read_bytes().decode().replace("\r\n", "\n").split("\n")
        some = lines[start - 1 : end]
        file = {"filePath": str(path), "content": "\n".join(some), "numLines": len(some)}
        return {"type": "text", "file": {**file, "startLine": start, "totalLines": len(lines)}}

    def rendered(self, response: Any) -> str:
        """What the model reads of a response."""
        if "persistedOutputPath" in response:
            preview = response["stdout"][:2000]
            return f"<persisted-output>\nOutput too large.\n\nPreview (first 2KB):\n{preview}\n</persisted-output>"
        if "stdout" in response:
            return response["stdout"] or "(Bash completed with no output)"
        if "file" in response:
            file = response["file"]
            numbered = enumerate(file["content"].split("\n"), file["startLine"])
            return "\n".join(f"{number}\t{line}" for number, line in numbered)
        return "done"
