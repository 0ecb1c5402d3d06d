# ruff: noqa: E501  a rule's pattern is one line
"""Find habits that make English hard to read, in Markdown, docstrings, comments and string literals.

    python tests/docs/prose.py README.md docs readcache      # file:line: rule: text (hint), then a count
    python tests/docs/prose.py --max 120 docs                # exit 1 above 120 findings, 0 otherwise
    python tests/docs/prose.py --strings readcache/cli       # string literals only, without docstrings and comments
    python tests/docs/prose.py --folders .                   # one line per folder
    python tests/docs/prose.py --rules                       # list the rules
    python tests/docs/prose.py --only stand,is-no readcache  # these rules only

Pure Python 3.10+, no dependencies. To accept a sentence, put `prose: ok` in a comment on its first line.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 32  # words in a sentence
MOST_CLAUSES = 4  # "that", "which", "what", "who", "where" in one sentence
MOST_NEGATIVES = 4
SKIPPED = {".git", ".venv", "venv", "node_modules", "__pycache__", "build", "dist", "data", ".mirror"}

BE = r"(?:is|are|was|were|be|been|being)"
VERB = (
    r"(?:is|are|was|were|has|have|had|does|do|did|may|must|can|cannot|will|would|goes|comes?|counts?|stays?|costs?"
    r"|gets?|needs?|leaves?|takes?|begins?|follows?|depends?)"
)
ANY_VERB = (
    rf"(?:{VERB}|(?!this |its |his |various |previous )\w{{3,}}(?:ed|s)|shown|seen|given|taken|known|written|gone|saw|read"
    r"|put|cut|led|left|held|sent|told|said|ran|wrote|sees?|knows?|says?|made)"
)
START = r"(?:^|(?<=[;:] )|(?<=, and )|(?<=, but ))"


class Rule(NamedTuple):
    name: str
    pattern: str
    hint: str
    kinds: str = "mdcs"  # Markdown, docstring, comment, string


RULES = [
    # Riddles: the subject is hidden in a clause.
    Rule(
        "what-subject",
        rf"{START}[Ww]hat (?!(?:\w+ ){{0,4}}?(?:would|will|may|must|can|could|should|has|have|had|was|were|is|are) (?:\w+ )?(?:have|be|been|being)\b[^,.;:]*(?:[,.;:]|$))(?:[^,.;:?\s]+ ){{0,7}}?{ANY_VERB} (?:(?!and |or )[^,.;:?\s]+ ){{0,7}}?{VERB}\b(?![^.]*\?)",
        "name the thing, then say what it does",
    ),
    Rule("who-subject", rf"{START}[Ww]ho(?:ever)? (?!am |are you)\w+[^?]*$", "name the person or part"),
    Rule(
        "docstring-noun",
        r"\A(?:What|Whether|Who|Which|Where|How (?:many|much|long|often))\b",
        "start with a verb: Return, Raise, Check, Write",
        "d",
    ),
    Rule("docstring-same", r"\A(?:The same|That of|Those (?:of|that)|The ones? that|See `|Of )", "say it in full", "d"),
    Rule(
        "help-noun", r"\Awhat (?:was|were|is|your|the|a|comes|it|others|they)\b", "start the help text with a verb", "s"
    ),
    Rule(
        "of-inversion",
        rf"(?:^|(?<=[;:] ))[Oo]f (?!what follows)(?:it|them|those|these|that|which|what|all|no|each|two|such|another|a|an)\b[^.]*? {VERB}\b",
        "put the subject first",
        "mdcs",
    ),
    # Old or translated words.
    Rule(
        "stand",
        r"(?<!things )\b(?:stands?|stood|standing)\b(?! (?:for|alone|out|by|still|in for)\b)(?![\w.]*\.(?:py|md))",
        "is, appears, occurs",
    ),
    Rule(
        "is-no",
        rf"(?<!there )(?<!There )\b{BE} no (?!longer|more|one|doubt|less|fewer|better|worse|different|matter)\w+",
        "is not a, has no",
    ),
    Rule(
        "place-of",
        r"\bin (?:the|its|their|whose|\w+'s?) place\b|\btake(?:s|n)? (?:the|its|their) place\b",
        "replaces, instead of",
    ),
    Rule(
        "else",
        r"\ball else\b|(?:^|(?<=[,;:.] ))[Ee]lse (?!if\b)\w+|\b(?:or|and|but) else\b",
        "otherwise, everything else",
        "mdcs",
    ),
    Rule("nothing-but", r"\bnothing but\b|\bbut for\b", "only, except"),
    Rule("as-far-as", r"\bas far as\b", "if, where known"),
    Rule("very", r"\b(?:the|this|that) very (?!least|first|last|end|beginning)\w+", "the same, exactly"),
    Rule(
        "tell-of",
        r"\b(?:tell|tells|told|telling|hear|hears|heard|speak|speaks|spoke) of\b",
        "report, describe, mention",
    ),
    Rule("so-many", r"\b[Ss]o (?:many|much|few|long)\b(?! (?:as|that|for|to|more|less|of)\b)", "this many, N"),
    Rule("at-once", r"\bat once\b", "in parallel, or immediately"),
    Rule(
        "archaic",
        r"\b(?:anew|heed(?:s|ed)?|amid|in vain|for ever|whence|thereby|wherein|lest|bear (?:it|them) out|bears? out|bore out"
        r"|gives? way|gave way|likewise|at hand|lately|taken for|as without (?:us|it)|had \w+ not)\b",
        "use a modern word",
    ),
    Rule(
        "behind",
        r"(?<!left )(?<!nothing )(?<!falls )\bbehind\b(?! (?:(?:a|the) )?(?:links?|proxy|firewall|NAT)\b)",
        "after",
    ),
    Rule("go-on", r"(?<!what )\b(?:go|goes|went) on\b", "continue"),
    Rule("go-by", r"\b(?:go|goes|went) by\b", "is based on, uses"),
    Rule("has-it", r"\bas \w+ (?:has|have|had) it\b", "as in"),
    Rule(
        "be-of",
        rf"\b{BE} of (?:the|a|an|another|its|their|no|one|these|those|this|that|what|some|other|files?|lines?)\b|\b(?:is|are|was) of(?=[.,;:]|$)",
        "belongs to, comes from",
    ),
    Rule(
        "take-away",
        r"\b(?:take|takes|taken|took|taking)\b(?: \w+){0,2} (?:out|away)\b(?! of (?:account|context))",
        "remove",
    ),
    Rule("those-of", r"\b[Tt]hose (?:of|that|it|which)\b|\bthat of\b", "repeat the noun"),
    Rule(
        "postposed-alone",
        r"\b(?:those|these|that|this|it|them|lines?|files?|host|conversations?|readers?|words|message|blocks?"
        r"|results?|calls?|markers?|range|command) alone\b(?! (?:is|are|does|do|will|in|has|have|can|would|takes?)\b)",
        "only X",
    ),
    Rule(
        "where-if",
        r"(?<!say )(?<!says )(?<!said )(?<!know )(?<!knows )(?<!show )(?<!shows )(?<!told )(?<!tell )(?<!tells )(?<!find )"
        r"\bwhere (?:that|this|it|they|none|nothing|one|some|both|all|neither|its|there|he|such) "
        r"(?:is|are|was|were|has|have|does|do|did|can|may|differs?|needs?|fits?|fails?|costs?|knows?|gives?|takes?)\b(?![,;.]|$)"
        r"|\b(?:None|[Nn]othing|True|False|[Ee]mpty|\w+Error|\"\") where\b",
        "if, when",
    ),
    Rule(
        "comma-whatever",
        r", (?:whatever|whichever|whoever|however|wherever) (?!it takes|,)\w+",
        "cut the clause, or start with it",
    ),
    Rule(
        "be-to",
        r"\b(?:is|are) to (?:be (?!found)\w+|stay|go|learn|see|have|change|get|say|read|come|stand|hold)\b",
        "must, will",
    ),
    Rule("ours", r"\b(?:ours|theirs)\b(?!\.\w)", "name it"),
    Rule("begin-so", r"\bbegins? so\b|\bends? so\b|\bis so\b(?! \w)", "starts with X"),
    Rule("prep-which", r"\b(?:of|by|from|behind|after|below|above) (?:which|whom)\b", "split the sentence"),
    Rule("start-of", r"\ba start of \w+", "starting X"),
    Rule("is-said", rf"\b{BE} (?:said|told|believed|thought|meant) (?:of|to|that|what)\b", "use the active voice"),
]
CHECKED = [(rule, re.compile(rule.pattern)) for rule in RULES]
LINKS = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"``.+?``|`[^`]*`")
ENDS = re.compile(r"(?<=[.!?])['\")\]]*\s+(?=[A-Z`\"'(\[*])|\n\s*\n|\n\s*[-*] ")
CLAUSES = re.compile(r"\b(?:that|which|whose|whom|who|what|whatever|where|whether)\b")
NEGATIVES = re.compile(r"\b(?:not|no|nothing|none|never|nor|neither|nobody|cannot|without|unless|\w+n't)\b")
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
REGEX_LIKE = re.compile(
    r"\\[AZbdswS]|\(\?[:=!<P]|\[\^|\b(?:SELECT|INSERT|CREATE|DELETE|UPDATE|PRAGMA)\b|=>|\{\{|^\s*[{<]|\bimport \w"
    r"|\|[^|]+\|[^|]+\|"
)


class Text(NamedTuple):
    line: int
    kind: str  # m: Markdown, t: a table cell, d: docstring, c: comment, s: string
    text: str


def markdown(source: str) -> Iterator[Text]:
    block: list[str] = []
    first, fence = 1, False
    for number, line in enumerate(source.split("\n"), 1):
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            fence = not fence
            bare = ""
        cut = (
            fence
            or not bare
            or bare.startswith(("#", "<!--", "<", "|", "- ", "* ", "    "))
            or line.startswith("    ")
            or re.match(r"\d+\. ", bare)
        )
        if cut and block:
            yield Text(first, "m", "\n".join(block))
            block = []
        if fence or not bare or bare.startswith(("#", "<", "```")) or (line.startswith("    ") and not block):
            continue
        if bare.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", bare):
                if len(cell.split()) > 5:
                    yield Text(number, "t", cell.strip())
            continue
        if not block:
            first = number
        block.append(re.sub(r"^(?:[-*] |\d+\. )", "", bare))
    if block:
        yield Text(first, "m", "\n".join(block))


def python(source: str) -> Iterator[Text]:
    tree = ast.parse(source)
    rows = source.split("\n")
    inside: set[int] = set()
    docs: set[int] = set()
    spans: list[tuple[int, int, int, int]] = []
    found: list[Text] = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and body:
            value = getattr(body[0], "value", None)
            if isinstance(body[0], ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                docs.add(id(value))
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in ast.walk(node) if isinstance(part, ast.Constant))
            spans.append((node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0))
            parts = (str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values)
            found.append(Text(node.lineno, "s", "".join(parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            spans.append((node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0))
            found.append(Text(node.lineno, "d" if id(node) in docs else "s", node.value))
    for text in found:
        if text.kind == "d":
            yield Text(text.line, "d", "\n".join(row for row in text.text.split("\n")))
        elif len(WORD.findall(text.text)) >= 4 and not REGEX_LIKE.search(text.text) and text.text.count("\n") < 6:
            yield text
    strings = [False] * (len(rows) + 2)
    columns: dict[int, list[tuple[int, int]]] = {}
    for low, left, high, right in spans:
        for number in range(low, high + 1):
            begin = left if number == low else 0
            columns.setdefault(number, []).append((begin, right if number == high else 10**6))
            strings[number] = True
    comment: list[str] = []
    first = 0
    for number, row in enumerate(rows, 1):
        at = row.find("#")
        if at >= 0 and strings[number]:
            while at >= 0 and any(a <= len(row[:at].encode()) < b for a, b in columns[number]):
                at = row.find("#", at + 1)
        own = at >= 0 and not row[:at].strip()
        if not own and comment:
            yield Text(first, "c", "\n".join(comment))
            comment = []
        if at < 0 or re.match(r"#\s*(?:type:|noqa|pragma|!|-{5,})", row[at:]):
            continue
        said = row[at:].lstrip("# ")
        if own:
            first = first if comment else number
            comment.append(said)
        elif len(said.split()) > 2:
            yield Text(number, "c", said)
    if comment:
        yield Text(first, "c", "\n".join(comment))


def sentences(text: Text) -> Iterator[tuple[int, str, bool]]:
    body, start = text.text, 0
    while start < len(body):
        end = ENDS.search(body, start)
        stop = end.start() if end else len(body)
        piece = body[start:stop]
        lead = len(piece) - len(piece.lstrip())
        line = text.line + body.count("\n", 0, start + lead)
        rows = [row for row in piece.split("\n") if not (text.kind == "d" and re.match(r" {5,}\S", row))]
        flat = " ".join(" ".join(rows).split())
        if flat:
            yield line, flat, start == 0
        start = end.end() if end else len(body)


def check(text: Text, only: set[str]) -> Iterator[tuple[int, str, str, str]]:
    for line, sentence, is_first in sentences(text):
        plain = CODE.sub(
            "`x`",
            LINKS.sub(lambda link: f"`{link[1]}`" if link[1].islower() and " " not in link[1] else link[1], sentence),
        )
        words = len(WORD.findall(plain))
        if words < 3:
            continue
        for rule, pattern in CHECKED:
            if text.kind.replace("t", "m") not in rule.kinds or (only and rule.name not in only):
                continue
            if rule.pattern.startswith(r"\A") and not is_first:
                continue
            if pattern.search(plain):
                yield line, rule.name, sentence, rule.hint
        extra = (
            ("long", words > LONGEST, f"{words} words: split it"),
            ("clauses", len(CLAUSES.findall(plain)) >= MOST_CLAUSES, "too many that/which/what: split it"),
            ("negatives", len(NEGATIVES.findall(plain)) >= MOST_NEGATIVES, "say what happens instead of what does not"),
            (
                "colons",
                len(re.findall(r"[:;] ", plain)) >= 3 and words > 20 and text.kind in "md",
                "one idea per sentence",
            ),
        )
        for name, is_bad, hint in extra:
            if is_bad and (not only or name in only):
                yield line, name, sentence, hint


def files(paths: list[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isfile(path):
            yield path
        for folder, names, found in os.walk(path):
            names[:] = sorted(name for name in names if name not in SKIPPED)
            yield from (os.path.join(folder, name) for name in sorted(found) if name.endswith((".md", ".py")))


def main() -> int:
    parser = argparse.ArgumentParser(description="Find habits that make English hard to read.")
    parser.add_argument("paths", nargs="*", default=["."])
    parser.add_argument("--max", type=int, help="exit with status 1 above this many findings")
    parser.add_argument("--folders", action="store_true", help="print a count per folder only")
    parser.add_argument("--strings", action="store_true", help="check only string literals of Python files")
    parser.add_argument("--only", default="", help="comma-separated rule names")
    parser.add_argument("--rules", action="store_true", help="list the rules and exit")
    options = parser.parse_args()
    if options.rules:
        print("\n".join(f"{rule.name:16} {rule.hint}" for rule in RULES))
        print("long, clauses, negatives, colons: counted per sentence, see the constants")
        return 0
    if missing := [path for path in options.paths if not os.path.exists(path)]:
        parser.error(f"{missing[0]} does not exist")  # a misspelt path must not pass in CI
    only = set(filter(None, options.only.split(",")))
    by_rule: Counter[str] = Counter()
    by_folder: Counter[str] = Counter()
    lines_in: Counter[str] = Counter()
    for path in files(options.paths or ["."]):
        with open(path, encoding="utf-8", errors="replace") as file:
            source = file.read()
        folder = os.path.dirname(os.path.relpath(path)) or "."
        lines_in[folder] += source.count("\n")
        rows = source.split("\n")
        try:
            texts = list(markdown(source) if path.endswith(".md") else python(source))
        except SyntaxError:
            continue
        for text in texts:
            if options.strings and text.kind != "s":
                continue
            for line, name, sentence, hint in check(text, only):
                if line <= len(rows) and "prose: ok" in rows[line - 1]:
                    continue
                by_rule[name] += 1
                by_folder[folder] += 1
                if not options.folders:
                    print(f"{os.path.relpath(path)}:{line}: {name}: {sentence[:160]} ({hint})")
    if options.folders:
        for folder in sorted(lines_in):
            per = 1000 * by_folder[folder] / max(1, lines_in[folder])
            print(f"{by_folder[folder]:6} {per:6.0f} per 1,000 lines  {folder}")
    total = sum(by_rule.values())
    print(f"{total} findings: " + ", ".join(f"{name} {count}" for name, count in by_rule.most_common()))
    return int(options.max is not None and total > options.max)


if __name__ == "__main__":
    sys.exit(main())
