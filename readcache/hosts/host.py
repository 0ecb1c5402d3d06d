"""The facts that the command line needs about a host: its settings for readcache, and the function that answers its
hooks.

A hook is a new process for each tool call, so slow imports are avoided here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from readcache import Sessions

Json = dict[str, Any]
HOOK_SECONDS = 5  # a host waits this long for a hook; after that the agent gets the real output


class InstallTarget(NamedTuple):
    """The settings in which a host is switched on: the user's or a project's."""

    root: str  # the project's directory, absolute
    home: str  # the user's home directory
    is_user: bool  # for all of the user's projects, not only for this one
    program: tuple[str, ...]  # the command that starts this readcache, e.g. ("/venv/bin/readcache",)
    mode: str  # "on", "advise" or "off"
    policy: str  # the name of a preset, see `Policy.named`
    environment: Mapping[str, str] = {}  # of this process: some hosts name their directory in it
    client: str = ""  # the program that asks the server for hooks, see shims/tool.c; "" if not built
    protected: str = ""  # comma-separated globs of files never to omit or store
    restore: str = ""  # tokens to restore after a compaction; "" for the default

    def scope_option(self) -> str:
        """Return the option of `init` that selects this target."""
        return "--user" if self.is_user else "--project"

    def words(self, *command: str) -> tuple[str, ...]:
        """Return the command that starts `readcache COMMAND` with this mode and policy, for a host that takes a list of
        arguments."""
        mode = () if self.mode == "on" else (f"--{self.mode}",)
        program = (self.client, *self.program) if self.client and command[0] == "hook" else self.program
        return (*program, *command, *mode, *self.policy_words())

    def policy_words(self) -> tuple[str, ...]:
        """Return the options of the policy. The default policy has none: then READCACHE_POLICY and READCACHE_PROTECTED
        count."""
        policy = "" if self.policy == "default" else self.policy
        given = {"--policy": policy, "--protected": self.protected, "--restore": self.restore}
        return tuple(word for name, value in given.items() if value for word in (name, value))

    def line(self, *command: str) -> str:
        """Return the command of `words` as one line, for a host that passes it to a shell. The line always exits with
        status 0, even if the program is gone."""
        import shlex

        words = self.words(*command)
        # A program on PATH cannot be started with -I. So the shell empties the variables that can stop Python.
        isolated = "" if "/" in words[0] else "PYTHONHOME= PYTHONPATH= "
        # Some hosts treat any other status as a refusal, and do not show what their tool printed.
        return f"{isolated}{shlex.join(words)} || exit 0"


class Entry(NamedTuple):
    """A value that is inserted into a settings file of JSON with comments.

    `keys` lead to it from the top. Missing objects and lists are created. If the last key is "+", `value` becomes the
    first item of a list. Otherwise the key is set to `value`, which is refused if the user has another value there. A
    text in `value` must name readcache and its command, so that the entry is recognised if no record of it is left.
    """

    path: str
    keys: tuple[str, ...]
    value: object


def hook_entry(target: InstallTarget, host: str, path: str, event: str, matcher: str, **more: object) -> Entry:
    """Return the entry of a hook, in the form that several hosts use in their settings."""
    hook = {"type": "command", "command": target.line("hook", host), "timeout": HOOK_SECONDS, **more}
    return Entry(path, ("hooks", event, "+"), {"matcher": matcher, "hooks": [hook]})


class OwnFile(NamedTuple):
    """A file that belongs to readcache as a whole: a plugin, or a hook's script. It is recognised by the words
    `readcache init NAME` in a comment."""

    path: str
    text: str


class Scripted(NamedTuple):
    """How to run a host with another address of its API, and how to answer as that API.

    The host runs in a home directory of its own, so it has neither the user's settings nor a key.

    `answer(path, number, command)` returns the body of the answer to a request to that path. The answer calls the shell
    with that command, for the `number`th time. If the command is "", the answer ends the conversation.
    """

    words: tuple[str, ...]  # the program's name on PATH, and its arguments
    environment: Callable[[str], Mapping[str, str]]  # address -> environment variables besides HOME and PATH
    files: Callable[[str], Mapping[str, str]]  # address -> settings files: path below the home -> text
    result: str  # a text that a request has once for each tool result
    answer: Callable[[str, int, str], str]
    seconds: float = 0.0  # that the model takes for an answer, if readcache needs time in the host


class Host(NamedTuple):
    """One host. `hook` returns the answer to an event of its hooks. If it is None or returns None, nothing is printed,
    and the host continues as without readcache."""

    name: str
    mode: str  # the default mode: "on" if the host shows what leaves the conversation, otherwise "advise"
    why: str  # the reason for that mode: one sentence that `init` prints
    changes: Callable[[InstallTarget], Sequence[Entry | OwnFile]]
    hook: Callable[[Mapping[str, Any], Sessions], Mapping[str, Any] | None] | None = None
    # Returns the reason why nothing can be omitted here although the host's mode is "on"; None if lines can be.
    only_advises: Callable[[InstallTarget], str | None] = lambda _: None
    # Returns what `doctor` reports. Raises ReadcacheError if something is wrong.
    in_force: Callable[[InstallTarget], str] | None = None
    # Returns events of a made-up conversation, and writes their files into the directory. `hook` answers the last one.
    trial: Callable[[str], Sequence[Mapping[str, Any]]] = lambda _: ()
    # Returns the files of all ways to switch the host on, because another way may have been used before.
    former_files: Callable[[InstallTarget], Sequence[str]] = lambda _: ()
    keeps: bool = True  # the results that it showed stay in the user's store
    # Returns what the user must do after the settings are written.
    todo: Callable[[InstallTarget], str] = lambda _: "start it anew"
    # Returns the reason, for `init` to print, why the host is not switched on in its best way; "" if it is.
    second_best: Callable[[InstallTarget], str] = lambda _: ""
    scripted: Scripted | None = None
    program: str = ""  # its name on PATH, if `scripted` does not have it


def stream(events: Iterable[Json], last: str = "") -> str:
    """Return the events as a stream of server-sent events. `last`: text to append."""
    named = ((f"event: {event['type']}\n" if "type" in event else "", event) for event in events)
    return "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in named) + last


def chat_answer(_: str, number: int, command: str) -> str:
    """Return the answer (see `Scripted`) of hosts that use OpenAI's chat completions and have a shell tool named
    `bash`."""
    function = {"name": "bash", "arguments": json.dumps({"command": command, "description": "look"})}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    said: Json = {"tool_calls": [call]} if command else {"content": "done"}
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
    choices: list[list[Json]] = [
        [{"index": 0, "delta": {"role": "assistant", **said}, "finish_reason": None}],
        [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if command else "stop"}],
        [],
    ]
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "model"}
    return stream(
        ({**chunk, "choices": one, **({} if one else {"usage": usage})} for one in choices), "data: [DONE]\n\n"
    )
