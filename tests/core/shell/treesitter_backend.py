"""The oracle of the parser: tree-sitter-bash reads the source by itself.

Quote removal (`words`) and the inside of `[ … ]` are shared with the first; all else is its own, so that each tests the
other. It is far faster than bashlex, and is repaired where it slips: a word in two nodes (`{}\\;`), arguments that hang
under a redirection before them, what follows a heredoc on its line. A tree with an error in it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from readcache.core.shell import grammar
from readcache.core.shell.lexer import skip_commands, tokenize
from readcache.core.shell.syntax import (
    For,
    Group,
    Heredoc,
    Node,
    Opaque,
    Redirect,
    Refused,
    Sequence,
    SimpleCommand,
    Unknown,
    Word,
)
from readcache.core.shell.words import read_word

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

_LISTS = frozenset(("program", "list", "pipeline"))
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_SIMPLE = frozenset(("command", "variable_assignment", "variable_assignments", "declaration_command", "unset_command"))
_JOINS = frozenset((";", "&", "&&", "||", "|", "|&", "\n"))
# A "%" stands in for each: as good a part of a word, and one byte. tree-sitter-bash 0.25.1 gives them to C's isdigit,
# so that a `{` before U+10A2CC kills the process.
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[[^\]]*\])?(\+?)=")


def parse_by_tree_sitter(source: str) -> Node | None:
    """As `parse_command`, None for what is refused. Never raises."""
    try:
        return None if "\0" in source else build_from_source(source)
    except Exception:  # Refused, or RecursionError
        return None


def build_from_source(source: str) -> Node | None:
    """The node of a script; None where tree-sitter finds an error. Raises whatever the libraries raise."""
    import tree_sitter
    import tree_sitter_bash

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    root = parser.parse(_NOT_ASCII.sub("%", source).encode("ascii")).root_node
    return None if root.has_error else _Builder(source).body(root.children)


@dataclass(slots=True)
class _Attached:
    """What hangs behind a command: redirections, arguments that slipped under them, and what follows on the line."""

    redirects: list[Redirect] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    following: list[Node | str] = field(default_factory=list)
    end: int = 0


class _Builder:
    """Turns trees into nodes. A *run* is a flat list of nodes and the operators between them."""

    def __init__(self, source: str) -> None:
        self.source = source

    def span(self, tree: Tree) -> tuple[int, int]:
        return tree.start_byte, tree.end_byte

    def text(self, tree: Tree) -> str:
        start, end = self.span(tree)
        return self.source[start:end]

    def body(self, trees: Iterable[Tree]) -> Node:
        """The trees between two keywords as one node."""
        items: list[tuple[str, Node]] = []
        before, commands, pipes = ";", list[Node](), list[str]()
        for step in (*self.run(trees), ";"):
            if not isinstance(step, str):
                if commands and len(pipes) < len(commands):  # only a newline between, which the tree leaves out
                    items.append((before, grammar.pipeline(commands)))
                    before, commands, pipes = ";", [], []
                commands.append(step)
            elif step in ("|", "|&"):
                pipes.append(step)
            elif commands:
                items.append((before, grammar.pipeline(commands)))
                before, commands, pipes = step, [], []
        return grammar.sequence(items, trailing=before if items else ";") if items else Sequence(())

    def run(self, trees: Iterable[Tree]) -> list[Node | str]:
        out: list[Node | str] = []
        for tree in trees:
            if tree.type in _JOINS:
                out.append(";" if tree.type == "\n" else tree.type)
            elif tree.type in _LISTS and not _is_negated(tree):
                out += self.run(tree.children)
            elif tree.type == "redirected_statement":
                out += self.redirected(tree)
            elif tree.type != "comment":
                out.append(self.statement(tree))
        return out

    def statement(self, tree: Tree) -> Node:
        if tree.type in _SIMPLE:
            return self.simple(tree)
        if tree.type == "test_command" and self.text(tree).startswith("[") and not self.text(tree).startswith("[["):
            return grammar.flat(self.text(tree), tokenize(self.text(tree))) or Opaque(self.text(tree))
        if tree.type == "subshell" or (tree.type == "compound_statement" and tree.children[0].type == "{"):
            return Group(self.body(tree.children[1:-1]), tree.type == "subshell")
        if tree.type == "if_statement":
            return self.conditional(tree)
        if tree.type == "for_statement" and tree.children[0].type == "for" and tree.children[-1].type == "do_group":
            return self.loop(tree)
        return Opaque(self.text(tree))

    def redirected(self, tree: Tree) -> list[Node | str]:
        """A statement with redirections: they belong to its last command."""
        attached = _Attached()
        inner = self.run(child for child in tree.children if child.type not in _REDIRECTS)
        for before, child in pairwise((None, *tree.children)):
            if child is not None and child.type in _REDIRECTS:
                if before is not None and before.type not in _REDIRECTS:
                    attached.spans += self.lost(before, child)
                self.redirect(child, attached)
        last = inner.pop() if inner else SimpleCommand(())
        if isinstance(last, str):
            raise Refused("redirections behind an operator")
        if isinstance(last, SimpleCommand):
            last = replace(last, words=last.words + self.words(attached.spans))
        if isinstance(last, Opaque):
            last = Opaque(self.source[self.span(_last_statement(tree))[0] : attached.end])
        else:
            last = _with_redirects(last, attached.redirects)
        return [*inner, last, *attached.following]

    def lost(self, before: Tree, tree: Tree) -> list[tuple[int, int]]:
        """A lone `-` before a heredoc, which is not in the tree."""
        end, start = self.span(before)[1], self.span(tree)[0]
        index = self.source.find("-", end, start)
        return [] if index < 0 else [(index, index + 1)]

    def redirect(self, tree: Tree, attached: _Attached) -> None:
        fd: int | None = None
        op = ""
        target: Word | None = None
        body = ""
        delimiter = ""
        words: list[tuple[int, int]] = []
        mark = len(attached.redirects)
        for child in tree.children:
            if child.type == "file_descriptor":
                fd = int(self.text(child))
            elif not op:
                op = self.text(child)
            elif child.type == "heredoc_start":
                delimiter = self.text(child)
                attached.end = self.span(child)[1]
            elif child.type == "heredoc_body":
                body = self.heredoc_body(child, op)
            elif child.type in _REDIRECTS:
                self.redirect(child, attached)
            elif child.type in _JOINS or child.type in ("pipeline", "command", "redirected_statement"):
                attached.following += self.run([child])
            elif child.type != "heredoc_end":
                words.append(self.span(child))
        if op in ("<<", "<<-"):
            quoted = any(char in delimiter for char in "'\"\\")
            attached.redirects.insert(mark, Redirect(op, None, fd, Heredoc(body, quoted, op == "<<-")))
            attached.spans += words
            return
        if op.endswith("-"):
            op, target = op[:-1], self.word(attached.end, attached.end, "-")
        merged = _merge(words)
        if target is None:
            target = self.word(*merged.pop(0))
        attached.end = max(attached.end, self.span(tree)[1])
        attached.redirects.append(Redirect(op, target, fd))
        attached.spans += merged

    def heredoc_body(self, tree: Tree, op: str) -> str:
        """The body from line start to line start; the tree leaves out blanks before it and may end it too early."""
        start, end = self.span(tree)
        header = len(self.source[:start].rstrip(" \t\n"))
        start = self.source.index("\n", header) + 1
        last = self.source.rfind("\n", start, end) + 1
        if self.source[last:end].strip("\t" if op == "<<-" else ""):
            raise Refused("tree-sitter ended a heredoc early")
        return self.source[start : max(start, last)]

    def simple(self, tree: Tree) -> Node:
        if any(child.type == "subshell" for child in tree.children):  # `time ( … )`
            return Opaque(self.text(tree))
        attached = _Attached()
        spans: list[tuple[int, int]] = []
        assignments: list[tuple[str, Word]] = []
        for child in [tree] if tree.type == "variable_assignment" else tree.children:
            if child.type == "variable_assignment" and tree.type != "declaration_command":
                assignments.append(self.assignment(*self.span(child)))
            elif child.type in _REDIRECTS:
                self.redirect(child, attached)
                spans += attached.spans
                attached.spans.clear()
            else:
                spans.append(self.span(child))
        return SimpleCommand(self.words(spans), tuple(attached.redirects), tuple(assignments))

    def assignment(self, start: int, end: int) -> tuple[str, Word]:
        found = _ASSIGNMENT.match(self.source, start, end)
        if found is None:
            raise Refused("no assignment")
        value = self.source[found.end() : end]
        if found.group(2) or found.group(3) or value.startswith("("):
            return found.group(1), Word((Unknown(value),), value)
        word, stop = read_word(self.source, start, skip_commands, found.end())
        return found.group(1), word if stop == end else Word((Unknown(value),), value)

    def words(self, spans: list[tuple[int, int]]) -> tuple[Word, ...]:
        for (_, end), (start, _) in pairwise(spans):
            if "\n" in self.source[end:start].replace("\\\n", ""):
                raise Refused("tree-sitter joined two lines")
        return tuple(self.word(*span) for span in _merge(spans))

    def word(self, start: int, end: int, text: str = "") -> Word:
        """The word between two places, or of `text`; unknown when it is no one word by our own rules."""
        source, at, stop = (text, 0, len(text)) if text else (self.source, start, end)
        if (found := _ASSIGNMENT.match(source, at, stop)) and source.startswith("(", found.end()):
            return Word((Unknown(source[at:stop]),), source[at:stop])
        word, read_to = read_word(source, at, skip_commands)
        return word if read_to == stop else Word((Unknown(source[at:stop]),), source[at:stop])

    def conditional(self, tree: Tree) -> Node:
        parts: list[Node] = []
        otherwise: list[Node] = []
        clauses: list[list[Tree]] = [[]]
        for child in tree.children:
            if child.type == "elif_clause":
                clauses.append(child.children)
            elif child.type == "else_clause":
                otherwise.append(self.body(child.children[1:]))
            elif child.type != "fi":
                clauses[0].append(child)
        for clause in clauses:
            then = next(index for index, child in enumerate(clause) if child.type == "then")
            parts += [self.body(clause[1:then]), self.body(clause[then + 1 :])]
        return grammar.conditional([*parts, *otherwise])

    def loop(self, tree: Tree) -> For:
        kinds = [child.type for child in tree.children]
        words: tuple[Word, ...] | None = None
        if "in" in kinds:
            listed = tree.children[kinds.index("in") + 1 : -1]
            words = self.words([self.span(child) for child in listed if child.type not in _JOINS])
        return For(self.text(tree.children[1]), words, self.body(tree.children[-1].children[1:-1]))


def _is_negated(tree: Tree) -> bool:
    """Does a `!` stand before this pipeline?"""
    return tree.type == "pipeline" and tree.children[0].type == "negated_command"


def _last_statement(tree: Tree) -> Tree:
    """The statement to which the redirections of a redirected one belong."""
    while tree.type in _LISTS or tree.type == "redirected_statement":
        tree = [child for child in tree.children if child.is_named and child.type not in _REDIRECTS][-1]
    return tree


def _with_redirects(node: Node, redirects: list[Redirect]) -> Node:
    if isinstance(node, (SimpleCommand, Group, For)):
        return replace(node, redirects=(*node.redirects, *redirects))
    return node


def _merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Nodes that touch are one word."""
    out: list[tuple[int, int]] = []
    for start, end in spans:
        if out and out[-1][1] == start:
            out[-1] = (out[-1][0], end)
        else:
            out.append((start, end))
    return out
