"""What recorded conversations would have been spared, as a page: the choices of policy side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from readcache.model.policy import CHARS_PER_TOKEN
from readcache.report.page.frame import whole_page
from readcache.report.page.markup import brief, escaped, number, plural
from readcache.report.page.tables import Bar, Row, bar_table, lengths

MOST_TOOLS = 20
Counts = Counter[str]
# (what, its count, the count that it is a share of; "": none)
_MEASURES = (
    ("of all tool output", "saved", "out"),
    ("less what bounced", "kept", "out"),
    ("priced while carried", "saved_priced", "out_priced"),
    ("of all input, by usage fields", "saved_input", "prompt"),
    ("of the bill, by usage fields", "saved_bill", "bill"),
    ("results with something left out", "omissions", ""),
    ("bounces: asked for again at once", "bounces", ""),
    ("wrong omissions, each one checked", "wrong", ""),
)


def replay_page(found: Mapping[str, Any]) -> Iterator[str]:
    """In parts. `found`: what `readcache replay --json` prints."""
    counts = found["counts"]
    about = {
        "conversations": number(counts.get("sessions", 0)),
        "calls": number(counts.get("calls", 0)),
        "characters of tool output": number(counts.get("out", 0)),
        "formats": ", ".join(found["formats"]),
    }
    footer = "A recording does not react: nobody knows what the model would have done. docs/replay.md says what counts."
    return whole_page("replay", "What readcache would have saved", about, _main(found), footer)


def _main(found: Mapping[str, Any]) -> Iterator[str]:
    yield "<h2>What to switch on</h2>\n"
    for sentence in found["verdict"]:
        said, _, line = sentence.partition("\n")
        yield f'<p class="verdict">{escaped(said)}</p>\n'
        yield f'<pre tabindex="0"><code>{escaped(line.strip())}</code></pre>\n' if line else ""
    if not found["counts"].get("calls"):
        return
    yield "<h2>Policies side by side</h2>\n"
    yield from _policies(Counter(found["counts"]), found["policies"])
    if found["conversation"]:
        yield "<h2>Ways of keeping a conversation</h2>\n"
        yield from _ways(found["conversation"], found.get("together", {}))
    yield "<h2>Saved, by tool</h2>\n"
    yield from _tools(found["tools"], found["policies"])


def _policies(total: Counts, policies: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    arms: list[Counts] = [Counter({**total, **counts}) for counts in policies.values()]
    for arm in arms:
        arm["kept"] = arm["saved"] - CHARS_PER_TOKEN * arm["tokens_bounced"]
    rows: list[Row] = []
    for label, name, whole in _MEASURES:
        if not whole:
            rows.append((label, *(number(arm[name]) for arm in arms)))
        elif all(arm[whole] for arm in arms):
            shares = [arm[name] / arm[whole] for arm in arms]
            cells = zip(shares, lengths(shares), strict=True)
            rows.append((label, *(Bar(f"{100 * share:.1f} %", length) for share, length in cells)))
    yield from bar_table(("saved", *policies), rows)
    for name, counts in policies.items():
        yield from (f'<p class="note">Wrong, {escaped(name)}: {escaped(fault)}</p>\n' for fault in counts["wrong_ones"])


def _ways(ways: Mapping[str, Counts], together: Mapping[str, Mapping[str, Counts]]) -> Iterator[str]:
    named = {spec: Counter(counts) for spec, counts in ways.items()}
    none = named["none"]
    yield f"<p>{plural(none['sessions'], 'conversation')}. The bill is that of all requests, beside that of a "
    yield "conversation from which nothing leaves. Each missed need costs a turn.</p>\n"
    bills = [counts["bill"] / none["bill"] for counts in named.values()]
    rows: list[Row] = []
    for (name, counts), bill, length in zip(named.items(), bills, lengths(bills), strict=True):
        missed = (number(counts[key]) for key in ("turns", "missed", "rereads_missed"))
        rows.append((Bar(name, length, kind="asked1"), f"{100 * bill:.1f} %", *missed))
    yield from bar_table(("way", "bill", "turns", "needs missed", "re-reads"), rows)
    policies = list(dict.fromkeys(name for pairs in together.values() for name in pairs))
    shares = {
        spec: [counts["bill"] / none["bill"] for counts in (named[spec], *(pairs[name] for name in policies))]
        for spec, pairs in together.items()
    }
    most = max((max(some) for some in shares.values()), default=1)
    rows = [
        (spec, *(Bar(f"{100 * bill:.1f} %", bill / most, kind="asked1") for bill in some))
        for spec, some in shares.items()
    ]
    if rows:
        yield "<h3>The bill, with a policy as well</h3>\n"
        yield from bar_table(("way", "alone", *policies), rows)


def _tools(tools: Mapping[str, Mapping[str, int]], policies: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    names = sorted(tools, key=lambda name: (-tools[name]["characters"], name))[:MOST_TOOLS]
    saved = [[counts["by_tool"].get(name, 0) for counts in policies.values()] for name in names]
    rows: list[Row] = []
    for name, by_policy, length in zip(names, saved, lengths([max(one) for one in saved]), strict=True):
        sizes = number(tools[name]["calls"]), brief(tools[name]["characters"])
        rows.append((Bar(name, length), *sizes, *map(brief, by_policy)))
    yield from bar_table(("tool", "calls", "characters", *policies), rows)
    if len(tools) > MOST_TOOLS:
        yield f"<p>And {plural(len(tools) - MOST_TOOLS, 'more tool')}: --json has them all.</p>\n"
