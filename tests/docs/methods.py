"""The methods of `readcache serve`, from the schema of its requests."""

from __future__ import annotations

from readcache.serve.protocol import METHODS
from tests.docs.tables import table

READER = ("conversation", "agent")  # parameters of nearly every method
# By method: its result, and notes on its parameters.
RESULTS = {
    "hello": "`readcache` (the version), `mode`, `methods`, `limits`; it needs no `conversation`",
    "observe": "a reply",
    "observe_read": "a reply",
    "observe_tool": "a reply",
    "run": "a reply, with `full_text` if lines were omitted",
    "read": "a reply, with `full_text` if lines were omitted",
    "wrote": "",
    "observe_file": "`text` is the whole file as a message has it",
    "settle": "`text` is what was shown instead of the reply",
    "commit": "the reply was shown",
    "missed": "`count` tool results were not judged, and `why`",
    "failed": "`why` is an error of the client, for `readcache doctor`",
    "sync": "`rewrites`: call id to the new text of that result. `cleared`: how many of the oldest results the "
    "provider clears, or their ids; `excluded`: tools that it leaves alone",
    "mend": "`changed`; if true, `messages`. Old results are cleared as `READCACHE_CLEAR` says, unless `cleared` or "
    "`excluded` is given. `prompt_tokens`: the provider's count of the last request; `answer`: the name of its "
    "answer; `model`: the model's name",
    "restore_plan": "the plan, and its section as `text`. `messages`: the list before the compaction; default: the "
    "last sync's",
    "prune": "`changed`; if true, `messages`",
    "compaction_request": "`request`: the messages that ask a model for the summary; none if there is nothing to "
    "summarise. `attempt`: how many requests for this list were too long. `condensations`: see "
    "[the whole list](#keeping-the-whole-list)",
    "compact": "`changed`; if true, `messages`; `how`, `tokens_before`, `tokens_after`, `trouble` (why `summary`, the "
    "model's answer, was not used); `condensations`: the new one, or none",
    "view": "`changed`; if true, `messages`: the whole list after its `condensations` (default: the ones in the log); "
    "`condensations`: the ones that were applied; `trouble`: the ones that were not",
    "compacted": "`restored_id`, `rewrites`. `restored`: a plan, as it was given",
    "restored_section": "`section`: what to put after the summary, the same text for the same `compaction` (the "
    "summary, or a name for it); it also does what `compacted` does. Give `keep`, the ids of all calls in the list, at "
    "each request",
    "rewind": "",
    "fork": "`agent`: the new reader's name; a different one if `name` was taken",
    "events": "`events` with a higher `seq`, 1,000 at most; `more`",
    "stats": "the counters",
    "recall": "a reply with lines `first` to `last` of the call's result, as it was shown; it needs no `commit`",
    "files": "`files`: see [Python](python.md)",
    "markers_in": "`markers`",
    "close": "ends the conversation and frees its memory",
}


def methods() -> str:
    """Return a table of the methods, and a table of their parameters' types."""
    rows, types = [], dict[str, dict[str, None]]()
    for name, method in METHODS.items():
        properties = method.params["properties"]
        for each, schema in properties.items():
            types.setdefault(schema.get("description", "an object"), {})[f"`{each}`"] = None
        own = [each for each in properties if each not in READER]
        needed = [each for each in own if each in method.params["required"]]
        given = ", ".join([f"**`{each}`**" for each in needed] + [f"`{each}`" for each in own if each not in needed])
        rows.append((f"`{name}`", given, RESULTS[name]))
    told = ((what, ", ".join(sorted(names))) for what, names in types.items())
    return (
        table(("method", "parameters (**needed**)", "result"), rows)
        + "\n"
        + table(("parameters", "type"), ((names, what) for what, names in told))
    )
