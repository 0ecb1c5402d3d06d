"""How many recorded commands are parsed, how fast, and whether the parser and its oracle agree.

    PYTHONPATH=. python tests/benchmarks/parsing.py --data DIR

DIR holds `*.jsonl.xz`: one session a line, `{"records": [{"tool": "bash", "input": {"command": …}}]}`. Bash is the
judge of what is shell (`bash -n`); it runs nothing.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from readcache.core.shell import grammar
from readcache.core.shell.bashlex_backend import build
from readcache.core.shell.lexer import tokenize
from readcache.core.shell.parse import parse_command
from readcache.core.shell.syntax import For, Group, Node, Pipeline, Sequence, SimpleCommand, Word, WordText
from tests.core.shell.treesitter_backend import parse_by_tree_sitter


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", type=Path, required=True, metavar="DIR")
    arguments.add_argument("--show", type=int, default=5, metavar="N", help="examples to print of each kind")
    chosen = arguments.parse_args()
    counts = Counter(recorded_commands(chosen.data))
    with ThreadPoolExecutor() as threads:
        accepted = dict(zip(counts, threads.map(accepted_by_bash, counts), strict=True))
    shell = {command: count for command, count in counts.items() if accepted[command]}
    print(f"commands: {counts.total()}, distinct: {len(counts)}, of which bash accepts {len(shell)}")
    parse_command("if a; then b; fi")  # not to time the imports
    parse_by_tree_sitter("a")
    ways: dict[str, Callable[[str], Node | None]] = {
        "as shipped": parse_command,
        "bashlex alone": by_bashlex,
        "tree-sitter": parse_by_tree_sitter,
    }
    nodes = {name: measure(name, way, shell, chosen.show) for name, way in ways.items()}
    taken = [command for command in counts if not accepted[command] and parse_command(command) is not None]
    show("parsed though bash refuses", taken, len(counts) - len(shell), chosen.show)
    short = [command for command in shell if is_flat(command)]
    print(f"put together without a parser: {len(short)} = {len(short) / len(shell):.1%}")
    compare("as shipped", "bashlex alone", nodes, chosen.show)
    compare("as shipped", "tree-sitter", nodes, chosen.show)


def recorded_commands(directory: Path) -> Iterator[str]:
    """Every command of a bash tool."""
    for path in sorted(directory.glob("*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                for record in json.loads(line)["records"]:
                    command = record["input"].get("command") if record["tool"] == "bash" else None
                    if isinstance(command, str):
                        yield command


def accepted_by_bash(command: str) -> bool:
    if "\0" in command:
        return False
    run = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
    return run.returncode == 0


def by_bashlex(source: str) -> Node | None:
    """What bashlex makes of it without the short way."""
    try:
        return build(source, tokenize(source))
    except Exception:  # it raises of any class
        return None


def is_flat(source: str) -> bool:
    try:
        return grammar.flat(source, tokenize(source)) is not None
    except Exception:  # refused
        return False


def measure(
    name: str, way: Callable[[str], Node | None], shell: dict[str, int], examples: int
) -> dict[str, Node | None]:
    """Parses every command once and says how that went."""
    nodes: dict[str, Node | None] = {}
    took: list[float] = []
    gc.disable()  # a collection of all those nodes would be counted to some command
    for command in shell:
        began = time.thread_time()
        nodes[command] = way(command)
        took.append((time.thread_time() - began) * 1000)
    gc.enable()
    percentiles = statistics.quantiles(took, n=100)
    print(
        f"{name}: ms median {percentiles[49]:.3f}, p99 {percentiles[98]:.3f}, max {max(took):.2f}, sum {sum(took):.0f}"
    )
    show(f"{name}: unparsed", [command for command in shell if nodes[command] is None], len(shell), examples)
    return nodes


def compare(one: str, other: str, nodes: dict[str, dict[str, Node | None]], examples: int) -> None:
    """Where both have a node: the same node, the same literal words?"""
    both = {
        command: (first, nodes[other][command])
        for command, first in nodes[one].items()
        if first is not None and nodes[other][command] is not None
    }
    words = [command for command, (a, b) in both.items() if list(literal_words(a)) != list(literal_words(b))]
    show(f"{one} / {other}: other literal words", words, len(both), examples)
    show(f"{one} / {other}: other nodes", [command for command, (a, b) in both.items() if a != b], len(both), examples)


def literal_words(node: Node | None) -> Iterator[str]:
    """Every word that is nothing but text, of commands and their redirections, in order."""
    found: list[Word] = []
    if isinstance(node, SimpleCommand):
        found = [*node.words, *(value for _, value in node.assignments)]
    elif isinstance(node, For):
        found = list(node.words or ())
    if isinstance(node, (SimpleCommand, Group, For)):
        found += [redirect.target for redirect in node.redirects if redirect.target is not None]
    for word in found:
        if all(isinstance(part, WordText) for part in word.parts):
            yield "".join(part.text for part in word.parts if isinstance(part, WordText))
    for child in children(node):
        yield from literal_words(child)


def children(node: Node | None) -> list[Node | None]:
    if isinstance(node, Sequence):
        return [item for _, item in node.items]
    if isinstance(node, Pipeline):
        return list(node.commands)
    if isinstance(node, (Group, For)):
        return [node.body]
    return []


def show(what: str, commands: list[str], of: int, examples: int) -> None:
    print(f"{what}: {len(commands)} of {of} = {len(commands) / max(of, 1):.2%}")
    for command in commands[:examples]:
        print("    " + repr(command)[:160])


if __name__ == "__main__":
    main()
