"""What the command line must know of a host: the settings that switch it on, and the function that answers its hooks.
Slow imports are avoided: a hook is a process for each tool call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from readcache import Sessions
    from readcache.hosts.scripted import Scripted

HOOK_SECONDS = 5  # that a host waits for a hook; beyond them the agent has the real output


class InstallTarget(NamedTuple):
    """The place at which a host is switched on."""

    root: str  # the project's directory, absolute
    home: str  # the user's
    is_user: bool  # for all of the user's projects, not for this one alone
    program: tuple[str, ...]  # the words that start this readcache, e.g. ("/venv/bin/readcache",)
    mode: str  # "on", "advise" or "off"
    policy: str  # the name of a preset, see `Policy.named`
    environment: Mapping[str, str] = {}  # this process's: some hosts name their directory there
    client: str = ""  # the program that asks the server for hooks, see shims/tool.c; "" where none was built
    protected: str = ""  # globs of files never to omit or store, with commas between
    restore: str = ""  # tokens that are put back after a compaction; "" for the default

    def scope_option(self) -> str:
        """The option of `init` that means this place."""
        return "--user" if self.is_user else "--project"

    def words(self, *command: str) -> tuple[str, ...]:
        """The words that start `readcache COMMAND` with this mode and policy, for a host that starts it by words."""
        mode = () if self.mode == "on" else (f"--{self.mode}",)
        program = (self.client, *self.program) if self.client and command[0] == "hook" else self.program
        return (*program, *command, *mode, *self.policy_words())

    def policy_words(self) -> tuple[str, ...]:
        """The options of the policy; none for the default one: then READCACHE_POLICY and READCACHE_PROTECTED have
        their say."""
        policy = "" if self.policy == "default" else self.policy
        given = {"--policy": policy, "--protected": self.protected, "--restore": self.restore}
        return tuple(word for name, value in given.items() if value for word in (name, value))

    def line(self, *command: str) -> str:
        """The same as one line, for a host that gives it to a shell. It ends with status 0 even where the program is
        gone: some hosts take any other for a refusal, and withhold what their tool printed. A program that is looked
        for on PATH cannot be started with -I, so the shell takes from it the variables that can keep Python from
        starting."""
        import shlex

        words = self.words(*command)
        isolated = "" if "/" in words[0] else "PYTHONHOME= PYTHONPATH= "
        return f"{isolated}{shlex.join(words)} || exit 0"


class Entry(NamedTuple):
    """A value that is put into a settings file of JSON with comments.

    `keys` leads to it from the top; objects and lists that are missing are made. If the last key is "+", `value` is put
    at the front of a list; else it is set, which is refused where the user has another value. A text in it has to name
    readcache and its command, so that it is known again when nothing else remembers it.
    """

    path: str
    keys: tuple[str, ...]
    value: object


def hook_entry(target: InstallTarget, host: str, path: str, event: str, matcher: str, **more: object) -> Entry:
    """A hook as several hosts have it in their settings."""
    hook = {"type": "command", "command": target.line("hook", host), "timeout": HOOK_SECONDS, **more}
    return Entry(path, ("hooks", event, "+"), {"matcher": matcher, "hooks": [hook]})


class OwnFile(NamedTuple):
    """A file that is ours as a whole: a plugin, a hook's script. It says `readcache init NAME` in a comment, which is
    how it is known again."""

    path: str
    text: str


class Host(NamedTuple):
    """One host. `hook` answers an event of its hooks; None: nothing is printed, and the host goes on as without us."""

    name: str
    mode: str  # without --advise or --off: "on" where the host tells what leaves the conversation, else "advise"
    why: str  # of that mode, one sentence that `init` prints
    changes: Callable[[InstallTarget], Sequence[Entry | OwnFile]]
    hook: Callable[[Mapping[str, Any], Sessions], Mapping[str, Any] | None] | None = None
    # Why nothing can be omitted here, though the host's mode is "on"; None: it can.
    only_advises: Callable[[InstallTarget], str | None] = lambda _: None
    # What `doctor` says; raises ReadcacheError with what is wrong.
    in_force: Callable[[InstallTarget], str] | None = None
    # Events of a made-up conversation, the last of which `hook` answers; what they need is written into the directory.
    trial: Callable[[str], Sequence[Mapping[str, Any]]] = lambda _: ()
    # Files of all the ways to switch it on: another than today's may have been used before.
    former_files: Callable[[InstallTarget], Sequence[str]] = lambda _: ()
    keeps: bool = True  # what it showed stays in the user's store
    # What is left to the user once the settings are written.
    todo: Callable[[InstallTarget], str] = lambda _: "start it anew"
    # Why the host is not switched on in the best way that there is for it, which `init` prints; "" if it is.
    second_best: Callable[[InstallTarget], str] = lambda _: ""
    scripted: Callable[[], Scripted] | None = None  # how it is run with a model that is a script
