"""Find what the calls of a conversation read and wrote, from the messages or from a session.

A session knows the directory in which a command ran. Without a session, paths are taken from the calls. After a `cd`,
relative paths name nothing, because it is unknown how long the new directory lasts. `Links` connects a session's
deliveries with the results of a message list, with or without call IDs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from readcache.context.notes import has_note
from readcache.core.judging.marker import RECALL, find_markers
from readcache.core.judging.match import map_output
from readcache.core.messages.editing import TextKey
from readcache.core.messages.messages import Kind, Message, Part, raw_messages
from readcache.core.messages.structure import answered
from readcache.core.messages.tools import COMMANDS, ToolUse, lines_read, tool_use
from readcache.core.model.claims import Claim, FileLines
from readcache.core.model.events import MappedSpan, Origin
from readcache.core.model.key_view import Delivery
from readcache.core.model.paths import canonical_path
from readcache.core.model.text import find_separator, split_lines
from readcache.core.model.view import View
from readcache.core.shell.read import read_command
from readcache.core.sync.locate import CharSpan, locate
from readcache.core.sync.recall import asked_recall
from readcache.core.sync.sync import Reconciler
from readcache.core.sync.texts import strings_of


@dataclass(frozen=True, slots=True)
class PlainResult:
    """A reply inside the plain text of the message at index `at`: the characters `char_span` of `text`."""

    at: int
    text: str
    char_span: CharSpan
    delivery: Delivery


class Links:
    """The links between a view and a message list."""

    def __init__(self, view: View | None = None, messages: Sequence[Message] = (), tag: str = "") -> None:
        self.plain: list[PlainResult] = []
        self._view = view or View()
        self._at: defaultdict[TextKey, list[Delivery]] = defaultdict(list)
        results = {
            part.call_id: (at, part.call_id, part.text)
            for at, message in enumerate(messages)
            for part in message.parts
            if part.kind is Kind.RESULT and part.call_id is not None
        }
        deliveries = [d for d in self._view.deliveries if d.event.origin is Origin.RESULT]
        for delivery in deliveries:
            if delivery.event.call_id in results:
                self._at[results[delivery.event.call_id]].append(delivery)
        if not all(delivery.event.call_id in results for delivery in deliveries):
            self._find_others(results, messages, tag)

    def _find_others(self, results: Mapping[str, TextKey], messages: Sequence[Message], tag: str) -> None:
        """Link the deliveries whose call IDs do not occur in the list."""
        reconciler = Reconciler()
        reconciler.reconcile(self._view, raw_messages(messages), tag=tag, gives_back=False)
        for delivery, location in reconciler.located():
            if delivery.event.call_id in results or location.text is None:
                continue
            text, at = location.text, reconciler.message_of(location.text)
            if text.kind is Kind.RESULT:
                self._at[at, text.call_id, text.raw].append(delivery)
            elif text.content == text.raw:
                self.plain.append(PlainResult(at, text.raw, location.char_span, delivery))
        self.plain.sort(key=lambda plain: (plain.at, plain.char_span))

    def deliveries_in(self, at: int, result: Part) -> list[Delivery]:
        """Return the replies in this result of the message at `at`, and the agent's own texts in the same calls."""
        key = at, result.call_id, result.text
        return [each for delivery in self._at.get(key, ()) for each in self.of_call(delivery)]

    def of_call(self, delivery: Delivery) -> list[Delivery]:
        """Return the visible texts of the delivery's call."""
        return self._view.of_call(delivery.event.call_id)

    def named_from(self, border: int) -> frozenset[str]:
        """Return the calls that markers in message `border` or later messages name."""
        late = [d for (at, _, _), found in self._at.items() if at >= border for d in found]
        late += [plain.delivery for plain in self.plain if plain.at >= border]
        return frozenset(source for d in late for marker in d.event.markers for source in marker.sources)


NOWHERE = "/?"  # no path starts with this: the unknown directory of relative names
_CHANGES_DIRECTORY = re.compile(r"(?<![\w./-])(?:cd|pushd|popd)(?![\w./-])")
# Words in a tool's answer to a write. Only a write that certainly succeeded counts. A false alarm only costs a saving.
_MAY_HAVE_FAILED = re.compile(
    r"error|fail|cannot|can't|could ?n[o']t|unable|denied|refused|reject|already exists|no such|not found|invalid"
    r"|read-only|no space left|not permitted|quota|directory|too long|ambiguous redirect"
    r"|traceback|(?:return|exit)\s?-?_?(?:code|status)\W{1,4}[1-9]",
    re.IGNORECASE,
)
LOOKED_AT = 500  # characters of the result of a write; "ok" and similar answers are shorter
# A write that runs in any case. Before it, only commands may occur that print an error if they fail.
_WRITES_FIRST = re.compile(r"\s*(?:(?:cd|mkdir|set)\s[^;&|\n<>()]*(?:&&|;|\n)\s*)*(?:cat|tee|echo|printf)\b")
# The result of a command that printed nothing: it contains only the words of harnesses.
_SAYS_NOTHING = re.compile(
    r"(?:<[^<>\n]*>|[\s{}\[\]\"':;,.()*-]|(?:exit|return)[ _]?(?:code|status)|returncode|with|output|stdout|stderr"
    r"|\b0\b|null|none|no|ok|done|success\w*|command|ran|completed|executed|tool|finished)*",
    re.IGNORECASE,
)
_SUCCEEDED = re.compile(
    r"\b(?:success\w*|written|wrote|created|saved|updated|overwrote|overwritten|ok|done)\b", re.IGNORECASE
)
_SURELY_FAILED = re.compile(r"\s*(?:<tool_use_error>|error\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ListedCall:
    """A call and its result, in the messages at `call_at` and `result_at`.

    `cwd`: the call's directory, or an unknown one below `NOWHERE`. `known`: the session's deliveries of the call.
    """

    call: Part
    result: Part
    call_at: int
    result_at: int
    cwd: str
    known: Sequence[Delivery] = ()
    plain: PlainResult | None = None  # the location of the result in a chat without call IDs

    @property
    def use(self) -> ToolUse:
        """The kind of the call, and its command, path and content."""
        return tool_use(self.call.name, self.call.arguments or {})

    @property
    def file(self) -> str | None:
        """The file on which a tool other than a shell is called; None without a path."""
        path = self.use.path
        return canonical_path(path, self.cwd) if path else None

    @property
    def is_read(self) -> bool:
        """True if the call is known to read files and to do nothing else."""
        use = self.use
        return use.kind == "read" if use.command is None else read_command(use.command, self.cwd).only_reads

    @property
    def is_recall(self) -> bool:
        """True if the result is an earlier one that the agent asked for by `readcache recall`."""
        return asked_recall(self.use.command or "") is not None

    def recall(self, tag: str) -> str:
        """Return the command that shows the result as it was. Return "" if it is not the result of a command, if the
        command is better repeated because it only reads, or if the log lacks the text."""
        command, events = self.use.command, [known.event for known in self.known]
        if command is None or self.is_recall:
            return (command or "").strip()
        stored = [event.when.call for event in events if event.text and event.origin is Origin.RESULT]
        return f"{RECALL}{tag}.{stored[-1]}" if stored and not self.is_read else ""


def tool_calls(messages: Sequence[Message], root: str, links: Links) -> list[ListedCall]:
    """Return every result with its call, in the order of the results. If an ID is used again, the newer call has it."""
    calls = [*_linked_calls(messages, root, links), *(_plain_call(plain, links) for plain in links.plain)]
    return sorted(calls, key=lambda call: call.result_at)


def _plain_call(plain: PlainResult, links: Links) -> ListedCall:
    command = plain.delivery.event.label
    start, end = plain.char_span
    call = Part(Kind.CALL, command, arguments={COMMANDS[0]: command})
    result = Part(Kind.RESULT, plain.text[start:end])
    return ListedCall(call, result, max(0, plain.at - 1), plain.at, NOWHERE, links.of_call(plain.delivery), plain)


def _linked_calls(messages: Sequence[Message], root: str, links: Links) -> list[ListedCall]:
    cwd, where = root, dict[int, str]()  # directories by call
    for index, message in enumerate(messages):
        for part in message.parts:
            if part.kind is Kind.CALL:
                where[id(part)] = cwd
                if _CHANGES_DIRECTORY.search(tool_use(part.name, part.arguments or {}).command or ""):
                    cwd = f"{NOWHERE}{index}"
    return [
        ListedCall(call, result, call_at, at, where[id(call)], links.deliveries_in(at, result))
        for call_at, call, at, result in answered(messages)
    ]


def source_map_of(tool_call: ListedCall, tag: str = "") -> tuple[MappedSpan, ...]:
    """Return the source map of the result's text. It comes from the session's delivery, or from the call's claims."""
    text = tool_call.result.text
    for delivery in tool_call.known:
        found = locate(delivery.event, text) if delivery.event.origin is Origin.RESULT else None
        if found is not None:  # the harness may have put words of its own around it
            above = text.count("\n", 0, found[0])
            return tuple(replace(mapped, at=mapped.at + above) for mapped in delivery.event.source_map)
    if tool_call.result.is_error or has_note(text) or (tag and find_markers(text, tag)):
        return ()
    lines = split_lines(text)
    command = tool_call.use.command
    claims = _claims(tool_call, lines) if command is None else read_command(command, tool_call.cwd).claims
    return map_output(claims, lines, View())


def source_map_in_json(tool_call: ListedCall) -> tuple[MappedSpan, ...]:
    """Return the source map of the session's delivery if the host shows its whole text in a JSON object. Indexes of
    lines are those in the delivery."""
    strings = strings_of(tool_call.result.text) or ""
    events = (delivery.event for delivery in tool_call.known if delivery.event.origin is Origin.RESULT)
    return next((event.source_map for event in events if locate(event, strings) is not None), ())


def overwritten(tool_call: ListedCall) -> frozenset[str]:
    """Return the files that the call certainly gave a complete new content, which is in the call itself.

    Edits do not count. Neither does a write that may have failed, or may not have run.
    """
    text = tool_call.result.text
    command = tool_call.use.command
    if tool_call.result.is_error or _MAY_HAVE_FAILED.search(text[:LOOKED_AT]):
        return frozenset()
    if command is not None and not _WRITES_FIRST.match(command):
        return frozenset()
    if tool_call.known:  # the session knows what a command wrote only if the command did not fail
        written = [
            mapped
            for d in tool_call.known
            if d.event.origin is Origin.COMMAND
            for mapped in d.event.source_map
            if mapped.eof
        ]
        return frozenset(key for mapped in written for key in mapped.keys)
    if not (len(text) < LOOKED_AT and _SAYS_NOTHING.fullmatch(text)) and (
        command is not None or not _SUCCEEDED.search(text[:LOOKED_AT])
    ):
        return frozenset()
    if command is not None:
        reading = read_command(command, tool_call.cwd)
        keys = [write.key for write in reading.writes]
        return frozenset(part.key for part in reading.authored if part.first == 1 and keys.count(part.key) == 1)
    path = tool_call.file
    return frozenset((path,)) if path is not None and tool_call.use.content is not None else frozenset()


def failed_and_wrote_nothing(tool_call: ListedCall) -> bool:
    """Return True if the call certainly failed, and none of its input became a file's content before it did.

    OpenAI's message shape has no field for a failure, so there the result must start by reporting it.
    """
    if not (tool_call.result.is_error or _SURELY_FAILED.match(tool_call.result.text)):
        return False
    command = tool_call.use.command
    return command is None or not read_command(command, tool_call.cwd).authored


def _claims(tool_call: ListedCall, lines: list[str]) -> tuple[Claim, ...]:
    """Return the claim for the result of a tool that reads files; () for other calls."""
    key = tool_call.file
    if key is None or tool_call.use.kind != "read":
        return ()
    sep = find_separator(lines)
    if sep is not None:  # the printed numbers decide, because tools count an offset from 0 or from 1
        return (FileLines((key,), (1, None), sep),)
    read = lines_read(tool_call.call.arguments or {}, tool_call.result.text)
    return (FileLines((key,), (read.first, read.last)),) if read is not None else ()


def name_spans(source_map: Sequence[MappedSpan]) -> list[tuple[str, int, int]]:
    """Return (path, first, last) of each span. Return [] unless each span has known lines of a single file."""
    if not all(len(mapped.keys) == 1 and mapped.first for mapped in source_map):
        return []
    return [(mapped.keys[0], mapped.first, mapped.first + mapped.count - 1) for mapped in source_map]
