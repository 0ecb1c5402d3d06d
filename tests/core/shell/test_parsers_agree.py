"""Two parsers, one shape: what ours and tree-sitter make of the same command, each from its own reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readcache.core.shell.parse import parse_command
from readcache.core.shell.syntax import Node
from tests.core.shell.corpus import COMMANDS
from tests.core.shell.treesitter_backend import parse_by_tree_sitter

pytest.importorskip("tree_sitter_bash")  # ships no wheels for some platforms

OTHERS = [
    "a && b || c; d & e\nf |& g &",
    "if a; then b; elif c; then d; else e; fi >f 2>&1",
    "for i in a 'b c' $d; do cat $i; done | head",
    "for i; do a; done",
    "{ a; b; } >f | ( cd x && c )",
    "A=1 B='2 3' C=$(d) e; F=g; H=(1 2) I+=x",
    "export A=b C; unset A; declare -a X=(1 2)",
    "find . -name '*.py' 2>/dev/null -exec cat {} \\; -print",
    "find . -exec cat {}\\;",
    "cat - <f; python3 - <<'E'\n  import x\n\nE\ncat f",
    "cat <<-E | head && b\n\ta\n\tE\nc",
    "cat >f <<'E' || h\n$x `a`\nE\n",
    "cat <<<'a b' 2>&- &>>g >|h",
    "[ -f f ] && [[ $x == a* ]] || (( x > 1 ))",
    "case x in a) b;; esac; cat f",
    "while read x; do cat $x; done < f | head",
    "f() { cat g; }; f",
    "! grep -q a b | c && d",
    "time cat f",
    "time ( a )",
    "cat ~/a ~ $HOME/b \"${c}d\" ${e:-f} $1 \"$(g)\" `h` <(i) {j,k} $'l\\n' \"\\m\" $((1))",
    "echo naïve '日本' 😀 && cat é",
    "# comment\ncat f # more\n\n\ncat g\n",
    "cat a \\\n  b",
    "",
]  # fmt: skip


@pytest.mark.parametrize("source", [*COMMANDS.values(), *OTHERS])
def test_both_parsers_see_the_same_command(source: str) -> None:
    node = parse_command(source)
    assert node is not None
    assert parse_by_tree_sitter(source) == node


# tree-sitter slips here; it is told from its tree that it did, so that it refuses and is not wrong.
SLIPS = [
    "head -12\necho a",  # two lines joined
    "cat <<'E' 2>/dev/null | head\na\nE",
    "cat <<A <<B\na\nA\nb\nB",
    "cat >f <<'E'\na\n E\nE\ncat f",  # an indented delimiter taken for the end
]


@pytest.mark.parametrize("source", SLIPS)
def test_where_tree_sitter_slips_it_refuses(source: str) -> None:
    node = parse_command(source)
    assert node is not None
    assert parse_by_tree_sitter(source) in (None, node)


names = st.sampled_from(["a", "-n", "'x y'", '"$z"', "f.py", "é", "10,20p", "{}", "\\;", "$x", "a=b", "-"])
commands = st.lists(names, min_size=1, max_size=4).map(lambda words: "cat " + " ".join(words))
redirected = st.tuples(commands, st.sampled_from(["", " >f", " 2>&1", " 2>/dev/null", " <g"])).map("".join)
scripts = st.recursive(
    redirected,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" | ", " && ", " || ", "; ", " & "]), inner).map("".join),
        inner.map(lambda one: f"{{ {one}; }}"),
        inner.map(lambda one: f"( {one} ) >h"),
        st.tuples(inner, inner).map(lambda two: f"if {two[0]}; then {two[1]}; fi"),
        inner.map(lambda one: f"for i in a 'b c'; do {one}; done"),
    ),
    max_leaves=5,
)


@given(scripts)
def test_both_parsers_see_the_same_in_any_composition(source: str) -> None:
    nodes: set[Node | None] = {parse_command(source), parse_by_tree_sitter(source)} - {None}
    assert len(nodes) == 1
