"""What each of sixty commands of recorded agents is believed to print and write when run in /w.

How a reading is written down here, one string for each thing, in order:
`*` anything · `= text` literal text · `path 1-5,9-` lines of a file (`?`: unknown lines), then, where numbers stand in
front, their separator, the shift and `gaps` · `> path @n` a write before claim n, `?` a possible one ·
`>> path text` text authored.
"""

from __future__ import annotations

import pytest

from readcache.core.model.claims import Anything, Authored, Claim, FileLines, Write
from readcache.core.shell.read import read_command
from tests.core.shell.corpus import COMMANDS


def _claim(claim: Claim) -> str:
    if isinstance(claim, Anything):
        return "*"
    if not isinstance(claim, FileLines):
        return f"= {claim.text}"
    lines = "?" if claim.lines is None else f"{claim.lines[0]}-{claim.lines[1] or ''}"
    numbers = "" if claim.sep is None else f" {claim.sep!r}{claim.shift:+d}"
    return f"{' '.join(claim.keys)} {lines}{numbers}{' gaps' if claim.gaps else ''}"


def _write(write: Write) -> str:
    return f"{'>' if write.is_certain else '?'} {write.key} @{write.before}"


def _authored(authored: Authored) -> str:
    return f">> {authored.key} {authored.first}: {authored.text}"


def written_down(command: str) -> list[str]:
    """The reading of a command that succeeded, in the notation above."""
    reading = read_command(command, "/w")
    assert reading.parsed
    return [*map(_claim, reading.claims), *map(_write, reading.writes), *map(_authored, reading.authored)]


EXPECTED: dict[int, list[str]] = {
    # cd + range
    1: ["/testbed/django/utils/autoreload.py 276-290"],
    # two ranges, one file
    2: [
        "/w/django/db/models/fields/related_descriptors.py 760-840 '\\t'+0",
        "/w/django/db/models/fields/related_descriptors.py 1188-1260 '\\t'+0",
    ],
    # four ranges in one sed behind nl
    3: ["/w/packages/core/src/evaluation/trace.ts ? '\\t'+0 gaps"],
    # three ranges, no line numbers shown
    4: ["/w/packages/core/src/evaluation/trace-envelope.ts ?"],
    # adjoining ranges; line 470 twice
    5: [
        "/w/apps/dashboard/src/components/ResultTable.tsx 180-470",
        "/w/apps/dashboard/src/components/ResultTable.tsx 470-590",
        "/w/apps/dashboard/src/components/ResultTable.tsx 988-1070",
    ],
    # `$` in an unquoted path: bash expands it, the file is not read
    6: ["*"],
    # `|| true &&` chain; either file may be missing
    7: [
        "*",
        "/w/packages/core/src/evaluation/providers/pi-coding-agent.ts 1-260",
        "/w/packages/core/src/evaluation/providers/pi-sdk.ts 1-320",
    ],
    # conditional
    8: ["/w/CONCEPTS.md 1-220"],
    # inside `if`
    9: ["/w/.compound-engineering/config.local.yaml 1-160"],
    # fallback; only one side prints; `$p`
    10: ["/w/src/sqlfluff/core/linter/linted_file.py 486-550", "/w/src/sqlfluff/core/linter/linted_file.py 486-"],
    # ranges known only at run time
    11: [
        "= === Line 575 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 933 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 1010 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 1151 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 1283 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 1483 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 1530 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 1682 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 1769 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 1880 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 2025 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 2120 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 2257 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n=== Line 2297 ===\n",
        "/testbed/django/db/models/fields/__init__.py ?",
        "= \n",
    ],
    # range from a substitution
    12: ["/w/django/db/models/base.py ?"],
    # regex range, then head
    13: ["/w/pvlib/iam.py ?"],
    # awk is not understood
    14: ["*"],
    # range of a range
    15: ["/w/django/template/engine.py 140-170 '\\t'+0"],
    # = lines 200-299
    16: ["/w/django/utils/cache.py 200-299"],
    # a blob, not the work tree
    17: ["git:HEAD:django/views/static.py 128-142"],
    # a blob of a moving ref
    18: ["git:origin/main:.agentv/targets.yaml 78-118 '\\t'+0"],
    # several files + glob; `==> f <==` banners; cut by the outer head
    19: ["*"],
    # glob, filtered
    20: ["*"],
    # glob in a directory name
    21: ["*"],
    # path from a command; unquoted script
    22: ["*"],
    # path from find
    23: ["*", "= ---\n", "*"],
    # nested shell
    24: ["*"],
    # through xargs sh -c
    25: ["*"],
    # find -exec cat
    26: ["*"],
    # drive-letter path
    27: ["/d/oh-my-posh/src/segments/git.go ?"],
    # backslash path in double quotes: bashlex returns `D:oh-my-posh...`
    28: ["*"],
    # tail (unknown start) and head of one file
    29: [
        "/d/oh-my-posh/website/docs/configuration/general.mdx ?",
        "/d/oh-my-posh/website/docs/configuration/general.mdx 1-15",
    ],
    # bytes changed by cat -A and sed: not raw
    30: ["*"],
    # grep context as a reader; bashlex drops the backslash
    31: ["/w/src/sqlfluff/rules/L003.py ? ':'+0 gaps"],
    # 150 lines by grep -A
    32: ["/w/pvlib/iam.py ? ':'+0 gaps"],
    # python slice, repr()d
    33: ["*", "? */RemediateTab.tsx @0"],
    # python heredoc (quoted delimiter: bashlex fails)
    34: ["*", "? */django.db.models @0"],
    # search and read in one output
    35: ["*", "/w/django/db/models/fields/json.py 120-340 '\\t'+0"],
    # two files, no border between them
    36: ["/d/oh-my-posh/.gitignore 1-", "/d/oh-my-posh/src/.gitignore 1-"],
    # tilde, escaped space, `tee` only in the path
    37: ["~/Library/Application Support/rtk/tee/1771501992_test.log ?"],
    # python one-liner
    38: ["*", "? */test.sql @0"],
    # tee from a here-string, by sudo
    39: ["*"],
    # reads by `<`, shows 100 lines, writes all
    40: ["*", "> /tmp/main_part1.txt @0"],
    # `$(( ))`: bashlex NotImplementedError
    41: ["/tmp/new_tests.txt 1-10", "> /tmp/new_tests.txt @0"],
    # edit, then read the same file
    42: ["/w/django/template/engine.py 149-165 '\\t'+0", "> /w/django/template/engine.py @0"],
    # heredoc, a tool rewrites the file, read; bashlex fails
    43: [
        "*",
        "/w/test_parentheses.sql 1-",
        "> /w/test_parentheses.sql @0",
        ">> /w/test_parentheses.sql 1: "
        "(\n    SELECT my_id,\n        other_thing,\n        one_more\n    FROM\n        my_table\n)\n",
    ],
    # head/cat/tail >> then mv over the source
    44: ["> /tmp/new_file.py @0", "> /w/astroid/brain/brain_builtin_inference.py @0"],
    # cp, sed -i, mv back
    45: ["> /w/pvlib/tools.py.fixed @0", "> /w/pvlib/tools.py @0"],
    # BSD `-i ''`
    46: ["> /w/cmd/entire/cli/strategy/manual_commit_test.go @0"],
    # a patch in a file: what it writes is not known
    47: ["*", "> /testbed/pydicom/dataset.py @0"],
    # git apply of a patch in a heredoc
    48: ["*"],
    # git: what it writes is not known
    49: ["*"],
    # the same, cd twice
    50: ["*"],
    # git checkout of one file
    51: ["*"],
    # a formatter: what it writes is not known
    52: ["*", "= BUILD_OK\n"],
    # a Python program may write the files that it names
    53: ["*", "? */django/db/migrations/autodetector.py @0", "? */django/db/migrations/autodetector.py.backup2 @0"],
    # heredoc inside `$( )` inside quotes: bashlex fails, reads nothing
    54: ["*"],
    # in a loop with variables
    55: [
        "= === Testing test_with_issue.sql ===\nResult:\n",
        "/testbed/test_with_issue.sql 1-",
        "= \n=== Testing test_with_distinct.sql ===\nResult:\n",
        "/testbed/test_with_distinct.sql 1-",
        "= \n=== Testing test_no_with.sql ===\nResult:\n",
        "/testbed/test_no_with.sql 1-",
        "= \n=== Testing test_all_same_line.sql ===\nResult:\n",
        "/testbed/test_all_same_line.sql 1-",
        "= \n",
        "> /testbed/test_with_issue.sql @1",
        "> /testbed/test_with_distinct.sql @3",
        "> /testbed/test_no_with.sql @5",
        "> /testbed/test_all_same_line.sql @7",
    ],
    # output file of a run
    56: ["*", "/tmp/output.txt 1-", "> /tmp/output.txt @0"],
    # git diff to a file, then cat
    57: ["/testbed/patch.txt 1-", "> /testbed/patch.txt @0"],
    # `time`: bashlex NotImplementedError
    58: ["*"],
    # `||` inside `$( )`: bashlex ParsingError
    59: ["*", "= ---fieldalignment---\n", "*"],
    # backticks in `body='..'`: bashlex ParsingError, though single-quoted
    60: ["*"],
}


@pytest.mark.parametrize("number", COMMANDS)
def test_the_reading_of_a_recorded_command(number: int) -> None:
    assert written_down(COMMANDS[number]) == EXPECTED[number]
